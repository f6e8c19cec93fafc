"""What ``--tools`` names: a Python function (``module:function``) or an OpenAPI document (``FILE``, ``FILE#NAME``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.errors import SetupError
from decisor.secrets import Secret
from decisor.types import Tool

FORM = "--tools takes module:function, or a file with an OpenAPI document (FILE, or FILE#NAME for some operations)"

METHODS = "HTTP methods beside GET that the APIs of --tools may be called with, such as post,put."
AUTH = "The environment variable that holds the key for the APIs of --tools. May be given several times."


@dataclass(frozen=True)
class ToolSpecs:
    """``specs`` as typed. ``methods``: HTTP methods beside GET that may be called. ``base_url`` takes the place of the
    documents' servers. ``auth``: environment variables with keys, as NAME or SCHEME=NAME."""

    specs: Sequence[str] = ()
    methods: Sequence[str] = ()
    base_url: str = ""
    auth: Sequence[str] = ()


def open_tools(given: ToolSpecs, taken: Sequence[str] = ()) -> list[Tool]:
    """In the order they were typed. ``taken``: names of other tools.

    Raises:
        SetupError: something cannot be used, or a name comes twice.
    """
    if not given.specs and (given.methods or given.base_url or given.auth):
        raise SetupError("--allow-methods, --base-url and --auth say how to call --tools, and there are none.")
    tools = [tool for spec in given.specs for tool in open_one(spec, given)]
    names = [*taken, *(tool.name for tool in tools)]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise SetupError(f"Two tools are called {twice[0]}: leave one out, or give it another name.")
    return tools


def open_one(spec: str, given: ToolSpecs) -> Sequence[Tool]:
    from decisor.tools.functions.python import SPEC, FunctionTool, load_function

    file, _, names = spec.partition("#")
    if not Path(file).is_file() and SPEC.fullmatch(spec):
        return [FunctionTool(load_function(spec))]
    if file.startswith(("http://", "https://")):
        raise SetupError(f"{spec} is an address; download the document, and give the file.")
    if not Path(file).is_file():
        raise SetupError(f"{spec} is neither a function nor a file. {FORM}.")
    from decisor.tools.functions.openapi import read_document
    from decisor.tools.functions.openapi_call import Client, tools_of

    document = read_document(Path(file), ("get", *given.methods), given.base_url)
    client = Client(document, keys_from(given.auth, os.environ))
    return tools_of(client, [name for name in names.split(",") if name])


def split(text: str) -> list[str]:
    """
    >>> split("post, put")
    ['post', 'put']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def left_out(tools: Sequence[Tool]) -> list[str]:
    """The operations of their documents that cannot be called, with why."""
    from decisor.tools.functions.openapi_call import OperationTool

    lines = [line for tool in tools if isinstance(tool, OperationTool) for line in tool.client.document.left_out]
    return list(dict.fromkeys(lines))


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
