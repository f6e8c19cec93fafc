"""A person's own tools: Python functions, web APIs by their OpenAPI documents, and MCP servers.

An API is only called by GET unless other methods are named, and only the servers of its document are sent keys. A
command of an MCP server is started when a question is asked. The guard of row values knows the rows of earlier runs
from the beginning; a person is asked whether a tool may get such a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, get_args

from decisor.errors import SetupError
from decisor.semantics.readings import Interpreter, OpenReading
from decisor.system.secrets import Secret, hide_password
from decisor.tools.row_values import Release, RowValuePolicy, RowValues, is_governed, is_outward
from decisor.trace.events import ActionResult, TraceEntry, events_of
from decisor.types import Observation, Question, Tool

ToolSpec: TypeAlias = "str | os.PathLike[str] | Callable[..., Any] | Tool"
Tools: TypeAlias = "ToolSpecs | ToolSpec | Iterable[ToolSpec]"
FORM = (
    "--tools takes module:function, an OpenAPI document (FILE or URL, or FILE#NAME for some operations), or an "
    "MCP server (mcp:COMMAND or mcp:URL)"
)
CALCULATOR = "calculator"
MCP = "mcp:"
OF_SERVERS = "mcp="
"""Prefix of a variable in ``auth`` whose key is for MCP servers alone."""
# Names in the quotes of any engine, and everything else up to a comma.
PART = re.compile(r"""(?:"[^"]*"|`[^`]*`|\[[^\]]*\]|[^,])+""")
NO_SOURCES = (CALCULATOR, "whatif", "decision_model", "person", "definitions", "think", "combine")


@dataclass(frozen=True)
class ToolSpecs:
    """A person's tools, with the way to call the APIs among them."""

    specs: Sequence[ToolSpec] = ()
    """Functions, ``"module:function"``, OpenAPI documents, MCP servers (``"mcp:COMMAND|URL"``), or ``Tool`` objects."""
    methods: Sequence[str] = ()
    """HTTP methods beside GET that may be called."""
    base_url: str = ""
    """Address in place of the servers that documents name."""
    auth: Sequence[str] = ()
    """Environment variables with keys, as NAME or SCHEME=NAME."""
    row_values: RowValuePolicy = "ask"
    """Values of rows: ask (a person, else no), allow or refuse; never of a source with something kept back."""

    def __post_init__(self) -> None:
        if self.row_values not in get_args(RowValuePolicy):
            raise SetupError(f"--row-values is {', '.join(get_args(RowValuePolicy))}, not {self.row_values!r:.80}.")


NO_TOOLS = ToolSpecs()


def build_tool_specs(tools: Tools) -> ToolSpecs:
    """Build tool specs from one tool, from several, or from given specs.

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


def add_calculator(tools: Sequence[Tool], technique: object) -> Sequence[Tool]:
    """Add a calculator as the last tool, if the technique ``calculates`` and a tool brings figures."""
    figures = any(getattr(tool, "form", "") in ("sql", "cypher", "passages") for tool in tools)
    if not figures or not getattr(technique, "calculates", False) or any(tool.name == CALCULATOR for tool in tools):
        return tools
    from decisor.tools.calculator import CalculatorTool

    return [*tools, CalculatorTool()]


def add_combine_tool(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Add a tool that joins observations, if there are several tools to fetch rows from."""
    sources = [tool for tool in tools if tool.name not in NO_SOURCES]
    if len(sources) < 2 or all(getattr(tool, "form", "") == "passages" for tool in sources):
        return tools
    from decisor.databases.combine import CombineTool
    from decisor.tools.toolbox import describe_holdings

    lines = [f"- {tool.name}: {describe_holdings(tool)}" for tool in sources if describe_holdings(tool)]
    return [*tools, CombineTool(lines)]


def is_tool(value: object) -> TypeGuard[Tool]:
    return all(hasattr(value, name) for name in ("name", "describe", "call", "close"))


def is_mcp_spec(spec: object) -> bool:
    """Return whether a spec names an MCP server.

    >>> is_mcp_spec("mcp:uvx weather"), is_mcp_spec("prices:look_up")
    (True, False)
    """
    return isinstance(spec, str) and spec.startswith(MCP)


def starts_process(spec: object) -> bool:
    """Return whether using a spec starts a process."""
    return is_mcp_spec(spec) and not str(spec).removeprefix(MCP).startswith(("http://", "https://"))


def open_tools_of_spec(spec: ToolSpec, tools: ToolSpecs) -> Sequence[Tool]:
    from decisor.tools.python_function import SPEC, FunctionTool, load_function

    if not isinstance(spec, str | os.PathLike):
        if is_tool(spec):
            return [spec]
        if not callable(spec):
            raise SetupError(f"{spec!r} is no tool: give a function, module:function, or an OpenAPI document.")
        return [FunctionTool(spec)]
    text = os.fspath(spec)
    if is_mcp_spec(text):
        raise SetupError(f"{hide_password(text)} is an MCP server: it is started when a question is asked.")
    file, _, names = text.partition("#")
    # A file of that name goes before a function.
    if not Path(file).is_file() and SPEC.fullmatch(text):
        return [FunctionTool(load_function(text))]
    if file.endswith(".py") and not file.startswith("http"):
        raise SetupError(f"{text} is a module: name a function in it, as {Path(file).stem}:function.")
    if not file.startswith(("http://", "https://")) and not Path(file).is_file():
        raise SetupError(f"{hide_password(text)} is neither a function nor a file. {FORM}.")
    from decisor.tools.openapi import read_openapi
    from decisor.tools.openapi_call import OpenApiClient, build_operation_tools

    document = read_openapi(file, ("get", *tools.methods), tools.base_url)
    # A key that is named for MCP servers is sent to no API.
    client = OpenApiClient(
        document, read_api_keys([one for one in tools.auth if not one.startswith(OF_SERVERS)], os.environ)
    )
    return build_operation_tools(client, [name for name in names.split(",") if name])


def split_at_commas(text: str) -> list[str]:
    """Split a text at commas outside quotes and brackets.

    >>> split_at_commas("post, put"), split_at_commas('a.customers,b."odd, name"')
    (['post', 'put'], ['a.customers', 'b."odd, name"'])
    """
    return [part.strip() for part in PART.findall(text) if part.strip()]


def split_all_at_commas(texts: Sequence[str] | None) -> list[str]:
    """Split texts at commas into one list of parts.

    >>> split_all_at_commas(["a, b", "c"]), split_all_at_commas(None)
    (['a', 'b', 'c'], [])
    """
    return [part for text in texts or () for part in split_at_commas(text)]


def read_mcp_keys(auth: Sequence[str], environment: Mapping[str, str]) -> dict[str, Secret]:
    """Read the keys that are named for MCP servers, by their variable."""
    names = [one.removeprefix(OF_SERVERS) for one in auth if one.startswith(OF_SERVERS)]
    return {name: key for name in names for key in read_api_keys([name], environment).values()}


def read_api_keys(auth: Sequence[str], environment: Mapping[str, str]) -> dict[str, Secret]:
    """Read keys from environment variables, by security scheme; '' is for any scheme.

    Raises SetupError if a variable is not set.
    """
    keys = {}
    for text in auth:
        scheme, _, name = text.rpartition("=")
        if not environment.get(name):
            raise SetupError(
                f"--auth names the environment variable {name}, which is not set. It holds the key itself."
            )
        keys[scheme] = Secret(environment[name].strip())
    return keys


KEEP, SEND = "do not send it", "send it"


def build_row_values(
    specs: ToolSpecs, question: Question, tools: Sequence[Tool], past: Sequence[TraceEntry], reader: Interpreter | None
) -> RowValues:
    """Build the row values that a run knows before it begins.

    Values of runs that it follows or resumes are known from the beginning.
    """
    words = " ".join((question.text, question.rules, question.goal))
    values = RowValues(specs.row_values, ask_for_release(reader) if reader else None, words)
    # Values can only leave by a tool that reaches outside: without one nothing need be remembered.
    if any(map(is_outward, tools)):
        # The source of an earlier run's values is not known: they count as kept back if any source here is.
        governed = any(map(is_governed, tools))
        if question.earlier:
            values.add(Observation(tuple(question.earlier.records)), "an earlier run", governed)
        for one in events_of(past, ActionResult):
            values.add(one.observation, "an earlier run", governed)
    return values


def ask_for_release(reader: Interpreter) -> Release:
    """Return a function that asks the reader whether a value may be sent."""

    async def ask(words: str) -> bool:
        one = OpenReading(words, (KEEP, SEND), asks=True)
        return one.choice(await reader(one)) == SEND

    return ask
