"""Replies that are a TOML file, in a fence or bare."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from decisor.errors import ParseError
from decisor.replies.cleaning import clean, strip_fence
from decisor.replies.form import Form

FENCE = re.compile(r"^[ \t]*```[ \t]*(?:toml)?[ \t]*\n(.*?)^[ \t]*```", re.S | re.M)


@dataclass(frozen=True)
class TomlReply:
    """``text``: the file as it was written. ``content``: what it says."""

    text: str
    content: dict[str, Any]


def read_toml(reply: str) -> TomlReply:
    """
    >>> read_toml("Here it is:\\n```toml\\ntake = 2\\n```").content
    {'take': 2}

    Raises:
        ParseError: it is no TOML, or says nothing.
    """
    fences = FENCE.findall(reply)
    text = max(fences, key=len) if fences else strip_fence(clean(reply))
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"This is no TOML: {error}. Write the whole file, in one ```toml fence.", "shape") from error
    if not content:
        raise ParseError("There is no file in the reply. Write it whole, in one ```toml fence.", "missing_field")
    return TomlReply(text.strip() + "\n", content)


def toml_form(name: str, text: str, check: Callable[[TomlReply], object] = lambda reply: None) -> Form[TomlReply]:
    """``text``: how it is asked for. ``check`` raises ParseError where the file cannot be used."""

    def read(reply: str) -> TomlReply:
        file = read_toml(reply)
        check(file)
        return file

    return Form(name, text, read)
