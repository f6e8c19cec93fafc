"""A person's own tools: Python functions, web APIs by their OpenAPI documents, and MCP servers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, get_args

from decisor.errors import SetupError
from decisor.secrets import Secret, without_password
from decisor.tools.row_values import RowValuePolicy
from decisor.types import Tool

ToolSpec: TypeAlias = "str | os.PathLike[str] | Callable[..., Any] | Tool"
Tools: TypeAlias = "ToolSpecs | ToolSpec | Iterable[ToolSpec]"
FORM = (
    "--tools takes module:function, an OpenAPI document (FILE or URL, or FILE#NAME for some operations), or an "
    "MCP server (mcp:COMMAND or mcp:URL)"
)
TABLES = "Of the databases, only these tables (labels, types) may be read. NAME.TABLE: of that database alone."
DENY = "These tables (labels, types) may be neither read nor seen."
ROWS = "The rows of a table (nodes of a label; NAME.documents) that may be read, as a condition. Several times."
MASK = "Columns of which an LM gets tokens, and no values. Several times."
AUDIT = "Note each query here: when, for whom, what, how many rows."
SCAN = "At most so many rows (5M) or bytes (2GB) that one SQL query may read, by its engine's estimate."
ROW_VALUES = "Whether tools get values of rows: ask (a person, else no), allow or refuse."
METHODS = "HTTP methods beside GET that the APIs of --tools may be called with, such as post,put."
AUTH = "The environment variable with the key for the APIs of --tools; mcp=NAME for MCP servers. Several times."


CALCULATOR = "calculator"
MCP = "mcp:"
OF_SERVERS = "mcp="
"""Before a variable that is for MCP servers alone."""
PART = re.compile(r"""(?:"[^"]*"|`[^`]*`|\[[^\]]*\]|[^,])+""")
NO_SOURCES = (CALCULATOR, "whatif", "decision_model", "person", "definitions", "think", "combine")


@dataclass(frozen=True)
class ToolSpecs:
    """Tools, and how the APIs among them are called. ``specs``: functions, ``"module:function"``, OpenAPI documents
    (``"api.json"``, ``"api.json#operation,operation"``), MCP servers (``"mcp:COMMAND"``, ``"mcp:URL"``,
    ``"mcp:URL#tool,tool"``), or any object with the methods of a ``Tool``.

    ``methods``: HTTP methods beside GET that may be called. ``base_url`` takes the place of the documents' servers.
    ``auth``: environment variables with keys, as NAME or SCHEME=NAME. ``row_values``: whether they get values of rows:
    ask (a person, else no), allow or refuse; never those of a source of which something is kept back.
    """

    specs: Sequence[ToolSpec] = ()
    methods: Sequence[str] = ()
    base_url: str = ""
    auth: Sequence[str] = ()
    row_values: RowValuePolicy = "ask"

    def __post_init__(self) -> None:
        if self.row_values not in get_args(RowValuePolicy):
            raise SetupError(f"--row-values is {', '.join(get_args(RowValuePolicy))}, not {self.row_values!r:.80}.")


NO_TOOLS = ToolSpecs()


def tool_specs(tools: Tools) -> ToolSpecs:
    """One, several, or with how they are called.

    Raises:
        SetupError: the APIs are said how to be called, and there are none.
    """
    if isinstance(tools, ToolSpecs):
        if not tools.specs and (tools.methods or tools.base_url or tools.auth):
            raise SetupError("--allow-methods, --base-url and --auth say how to call --tools, and there are none.")
        return tools
    if isinstance(tools, str | os.PathLike) or callable(tools) or is_tool(tools):
        return ToolSpecs((tools,))
    if not isinstance(tools, Iterable):
        raise SetupError(f"{tools!r} is no tool: give a function, module:function, or an OpenAPI document.")
    return ToolSpecs(tuple(tools))


def with_calculator(tools: Sequence[Tool], technique: object) -> Sequence[Tool]:
    """With a calculator last, where the technique says that it ``calculates`` and something brings figures."""
    figures = any(getattr(tool, "form", "") in ("sql", "cypher", "passages") for tool in tools)
    if not figures or not getattr(technique, "calculates", False) or any(tool.name == CALCULATOR for tool in tools):
        return tools
    from decisor.tools.calculator import CalculatorTool

    return [*tools, CalculatorTool()]


def with_combine(tools: Sequence[Tool]) -> Sequence[Tool]:
    """With a tool that joins what the others bring, where there are several to fetch rows from."""
    sources = [tool for tool in tools if tool.name not in NO_SOURCES]
    if len(sources) < 2 or all(getattr(tool, "form", "") == "passages" for tool in sources):
        return tools
    from decisor.tools.databases.combine import CombineTool
    from decisor.tools.holdings import holdings

    lines = [f"- {tool.name}: {holdings(tool)}" for tool in sources if holdings(tool)]
    return [*tools, CombineTool(lines)]


def is_tool(value: object) -> TypeGuard[Tool]:
    return all(hasattr(value, name) for name in ("name", "describe", "call", "close"))


def open_tools(tools: ToolSpecs) -> list[Tool]:
    """In their order.

    Raises:
        SetupError: something cannot be used.
    """
    return [tool for spec in tools.specs for tool in open_one(spec, tools)]


def is_mcp(spec: object) -> bool:
    """
    >>> is_mcp("mcp:uvx weather"), is_mcp("prices:look_up")
    (True, False)
    """
    return isinstance(spec, str) and spec.startswith(MCP)


def names_command(spec: object) -> bool:
    """Whether using it starts a process."""
    return is_mcp(spec) and not str(spec).removeprefix(MCP).startswith(("http://", "https://"))


async def open_with_servers(tools: ToolSpecs) -> list[Tool]:
    """As ``open_tools``, MCP servers too: a command is started. Who closes the tools ends it.

    Raises:
        SetupError: something cannot be used.
    """
    from decisor.tools.functions.mcp_server import open_mcp

    opened: list[Tool] = []
    try:
        for spec in tools.specs:
            if is_mcp(spec):
                opened += await open_mcp(str(spec), keys_of_servers(tools.auth, os.environ))
            else:
                opened += open_one(spec, tools)
    except BaseException:
        for tool in opened:
            await tool.close()
        raise
    return opened


def open_one(spec: ToolSpec, tools: ToolSpecs) -> Sequence[Tool]:
    from decisor.tools.functions.python import SPEC, FunctionTool, load_function

    if not isinstance(spec, str | os.PathLike):
        if is_tool(spec):
            return [spec]
        if not callable(spec):
            raise SetupError(f"{spec!r} is no tool: give a function, module:function, or an OpenAPI document.")
        return [FunctionTool(spec)]
    text = os.fspath(spec)
    if is_mcp(text):
        raise SetupError(f"{without_password(text)} is an MCP server: it is started when a question is asked.")
    file, _, names = text.partition("#")
    if not Path(file).is_file() and SPEC.fullmatch(text):
        return [FunctionTool(load_function(text))]
    if file.endswith(".py") and not file.startswith("http"):
        raise SetupError(f"{text} is a module: name a function in it, as {Path(file).stem}:function.")
    if not file.startswith(("http://", "https://")) and not Path(file).is_file():
        raise SetupError(f"{without_password(text)} is neither a function nor a file. {FORM}.")
    from decisor.tools.functions.openapi import read_document
    from decisor.tools.functions.openapi_call import Client, tools_of

    document = read_document(file, ("get", *tools.methods), tools.base_url)
    client = Client(document, keys_from([one for one in tools.auth if not one.startswith(OF_SERVERS)], os.environ))
    return tools_of(client, [name for name in names.split(",") if name])


def split(text: str) -> list[str]:
    """Split at commas, but for those within quotes.

    >>> split("post, put"), split('a.customers,b."odd, name"')
    (['post', 'put'], ['a.customers', 'b."odd, name"'])
    """
    return [part.strip() for part in PART.findall(text) if part.strip()]


def split_all(texts: Sequence[str] | None) -> list[str]:
    """
    >>> split_all(["a, b", "c"]), split_all(None)
    (['a', 'b', 'c'], [])
    """
    return [part for text in texts or () for part in split(text)]


def servers(tools: Sequence[Tool]) -> list[str]:
    """The documents' own servers, which alone are sent keys."""
    from decisor.tools.functions.openapi_call import OperationTool

    own = (tool.client.document.server for tool in tools if isinstance(tool, OperationTool))
    return sorted({server for server in own if server})


def left_out(tools: Sequence[Tool]) -> list[str]:
    """The operations of their documents that cannot be called, with why."""
    from decisor.tools.functions.openapi_call import OperationTool

    lines = [line for tool in tools if isinstance(tool, OperationTool) for line in tool.client.document.left_out]
    return list(dict.fromkeys(lines))


def keys_of_servers(auth: Sequence[str], environment: Mapping[str, str]) -> dict[str, Secret]:
    """Those that are named for MCP servers, by their variable."""
    names = [one.removeprefix(OF_SERVERS) for one in auth if one.startswith(OF_SERVERS)]
    return {name: key for name in names for key in keys_from([name], environment).values()}


def keys_from(auth: Sequence[str], environment: Mapping[str, str]) -> dict[str, Secret]:
    """Keys by security scheme; '' is for any. Raises SetupError where a variable is not set."""
    keys = {}
    for text in auth:
        scheme, _, name = text.rpartition("=")
        if not environment.get(name):
            raise SetupError(
                f"--auth names the environment variable {name}, which is not set. It holds the key itself."
            )
        keys[scheme] = Secret(environment[name].strip())
    return keys
