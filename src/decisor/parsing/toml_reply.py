"""Replies that are a TOML file, in a fence or bare, and such files as text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from decisor.errors import ParseError
from decisor.parsing.cleaning import clean_reply, strip_fence
from decisor.parsing.reply_form import Form

FENCE = re.compile(r"^[ \t]*```[ \t]*(?:toml)?[ \t]*\n(.*?)^[ \t]*```", re.S | re.M)
START = re.compile(r"^[ \t]*(?:\[{1,2}[\w.\"-]+\]|[\w-]+[ \t]*=)", re.M)
BARE = re.compile(r"[A-Za-z0-9_-]+")
Table = Mapping[str, Any]


@dataclass(frozen=True)
class TomlReply:
    """A TOML file from a reply: its text as written, and its content."""

    text: str
    content: dict[str, Any]


def read_toml_reply(reply: str) -> TomlReply:
    """Read the TOML file of a reply, in a fence or bare.

    >>> read_toml_reply("Here it is:\\n```toml\\ntake = 2\\n```").content
    {'take': 2}
    >>> read_toml_reply("I look first.\\nqueries = ['SELECT 1']").content
    {'queries': ['SELECT 1']}

    Raises:
        ParseError: it is no TOML, or says nothing.
    """
    fences = FENCE.findall(reply)
    # The longest fence is the file: others quote parts of it.
    text = max(fences, key=len) if fences else strip_fence(clean_reply(reply))
    if not fences and (start := START.search(text)):
        text = text[start.start() :]
    try:
        content = tomllib.loads(text)
    # TOMLDecodeError is a ValueError; deeply nested arrays raise RecursionError.
    except (ValueError, RecursionError) as error:
        raise ParseError(f"This is no TOML: {error}. Write the whole file, in one ```toml fence.", "shape") from error
    if not content:
        raise ParseError("There is no file in the reply. Write it whole, in one ```toml fence.", "missing_field")
    return TomlReply(text.strip() + "\n", content)


def toml_form(name: str, check: Callable[[TomlReply], object] = lambda reply: None, text: str = "") -> Form[TomlReply]:
    """Return the form of a reply that is a TOML file.

    ``check``: raises ParseError if the file is unusable. ``text``: instruction that a complaint repeats; empty means
    that only the complaint is added to the prompt.
    """

    def read(reply: str) -> TomlReply:
        file = read_toml_reply(reply)
        check(file)
        return file

    return Form(name, text, read)


def format_toml(content: Table) -> str:
    """Format a mapping as a TOML file: values first, then tables. A table with a dot in its name is written inline.

    >>> print(format_toml({"rule": {"a": {"text": "b"}}, "input": {"t.c": {"unit": "EUR"}}, "example": [{"x": 2.5}]}))
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
    return "\n".join(format_toml_sections("", content))


def format_toml_sections(head: str, table: Table) -> Iterator[str]:
    parts = {key: value for key, value in table.items() if "." not in key and holds_tables(value)}
    own = [f"{format_toml_key(key)} = {format_toml_value(value)}" for key, value in table.items() if key not in parts]
    if own:
        yield "\n".join([*([head] if head else []), *own, ""])
    for key, value in parts.items():
        path = f"{head.strip('[]')}.{format_toml_key(key)}".lstrip(".")
        if isinstance(value, Mapping):
            yield from format_toml_sections(f"[{path}]", value)
        else:
            for row in value:
                yield from format_toml_sections(f"[[{path}]]", row)


def holds_tables(value: object) -> bool:
    """Return whether a value is a table or a list of tables."""
    tables = value if isinstance(value, list) else [value]
    return bool(tables) and all(isinstance(table, Mapping) for table in tables)


def format_toml_key(name: str) -> str:
    return name if BARE.fullmatch(name) else format_toml_value(name)


def format_toml_value(value: object) -> str:
    """Format a value as TOML on one line, a text of several lines in triple quotes.

    >>> print(format_toml_value(True), format_toml_value(0.5), format_toml_value(["a", 1]),
    ...     format_toml_value("x\\x7f"), format_toml_value({"b": "c"}))
    true 0.5 ["a", 1] "x\\u007f" { b = "c" }
    >>> print(format_toml_value("SELECT 1\\nFROM t"))
    '''
    SELECT 1
    FROM t'''
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{format_toml_key(key)} = {format_toml_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_toml_value, value))}]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    text = str(value)
    # A literal text is used where it can be: SQL stays as it was written, without escapes.
    if "\n" in text and re.sub(r"[\n\t]", "", text).isprintable():
        if "'''" not in text:
            return f"'''\n{text}'''"
        # A literal text of TOML has no escapes, so three quotes in it need the other kind.
        escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
        return f'"""\n{escaped}"""'
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return "".join(map(escape_unprintable, json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)))


def escape_unprintable(letter: str) -> str:
    r"""Escape a letter that cannot be printed.

    >>> print(escape_unprintable("é"), escape_unprintable("\x9b"), escape_unprintable("\U000e0041"))
    é \u009b \U000e0041
    """
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 2**16 else f"\\U{ord(letter):08x}"
