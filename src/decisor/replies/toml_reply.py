"""Replies that are a TOML file, in a fence or bare, and such files as text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from decisor.errors import ParseError
from decisor.replies.cleaning import clean, strip_fence
from decisor.replies.form import Form

FENCE = re.compile(r"^[ \t]*```[ \t]*(?:toml)?[ \t]*\n(.*?)^[ \t]*```", re.S | re.M)
START = re.compile(r"^[ \t]*(?:\[{1,2}[\w.\"-]+\]|[\w-]+[ \t]*=)", re.M)
BARE = re.compile(r"[A-Za-z0-9_-]+")
Table = Mapping[str, Any]


@dataclass(frozen=True)
class TomlReply:
    """``text``: the file as it was written. ``content``: what it says."""

    text: str
    content: dict[str, Any]


def read_toml(reply: str) -> TomlReply:
    """
    >>> read_toml("Here it is:\\n```toml\\ntake = 2\\n```").content
    {'take': 2}
    >>> read_toml("I look first.\\nqueries = ['SELECT 1']").content
    {'queries': ['SELECT 1']}

    Raises:
        ParseError: it is no TOML, or says nothing.
    """
    fences = FENCE.findall(reply)
    text = max(fences, key=len) if fences else strip_fence(clean(reply))
    if not fences and (start := START.search(text)):
        text = text[start.start() :]
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"This is no TOML: {error}. Write the whole file, in one ```toml fence.", "shape") from error
    if not content:
        raise ParseError("There is no file in the reply. Write it whole, in one ```toml fence.", "missing_field")
    return TomlReply(text.strip() + "\n", content)


def toml_form(name: str, check: Callable[[TomlReply], object] = lambda reply: None, text: str = "") -> Form[TomlReply]:
    """``check`` raises ParseError where the file cannot be used. ``text``: how it is asked for, which a complaint shows
    again; without it a complaint is all that is added to the prompt."""

    def read(reply: str) -> TomlReply:
        file = read_toml(reply)
        check(file)
        return file

    return Form(name, text, read)


def toml_text(content: Table) -> str:
    """A file: values first, then tables; one whose name has a point stands on a line.

    >>> print(toml_text({"rule": {"a": {"text": "b"}}, "input": {"t.c": {"unit": "EUR"}}, "example": [{"x": 2.5}]}))
    [rule.a]
    text = "b"
    <BLANKLINE>
    [input]
    "t.c" = { unit = "EUR" }
    <BLANKLINE>
    [[example]]
    x = 2.5
    <BLANKLINE>
    """
    return "\n".join(sections("", content))


def sections(head: str, table: Table) -> Iterator[str]:
    parts = {key: value for key, value in table.items() if "." not in key and (is_table(value) or are_tables(value))}
    own = [f"{key_text(key)} = {value_text(value)}" for key, value in table.items() if key not in parts]
    if own:
        yield "\n".join([*([head] if head else []), *own, ""])
    for key, value in parts.items():
        path = f"{head.strip('[]')}.{key_text(key)}".lstrip(".")
        if is_table(value):
            yield from sections(f"[{path}]", value)
        else:
            for one in value:
                yield from sections(f"[[{path}]]", one)


def is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_table, value))


def key_text(name: str) -> str:
    return name if BARE.fullmatch(name) else value_text(name)


def value_text(value: object) -> str:
    """
    >>> print(value_text(True), value_text(0.5), value_text(["a", 1]), value_text("x\\x7f"), value_text({"b": "c"}))
    true 0.5 ["a", 1] "x\\u007f" { b = "c" }
    >>> print(value_text("SELECT 1\\nFROM t"))
    '''
    SELECT 1
    FROM t'''
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key_text(key)} = {value_text(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    if "\n" in text and "'''" not in text and re.sub(r"[\n\t]", "", text).isprintable():
        return f"'''\n{text}'''"
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return "".join(map(visible, json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)))


def visible(letter: str) -> str:
    r"""
    >>> print(visible("é"), visible("\x9b"), visible("\U000e0041"))
    é \u009b \U000e0041
    """
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 2**16 else f"\\U{ord(letter):08x}"
