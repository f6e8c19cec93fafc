"""Where each key of a TOML text stands, for complaints: the parser of the standard library does not say."""

from __future__ import annotations

import re
from collections.abc import Mapping

HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
Lines = Mapping[tuple[str, ...], int]


def lines_of(text: str) -> Lines:
    """The line, from 1, of every table and key. A list of tables counts from 1: ("example", "2", "choice").

    >>> lines_of('a = 1\\n[measure.cost]\\nsql = \"\"\"\\nb = 2\"\"\"\\ngoal = "min"')[("measure", "cost", "goal")]
    5
    """
    places: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not quote:
            if header := HEADER.match(line):
                table = pieces(header[2])
                if header[1] == "[[":
                    counts[table] = counts.get(table, 0) + 1
                    table = (*table, str(counts[table]))
                places.setdefault(table, number)
            elif key := KEY.match(line):
                places.setdefault((*table, *pieces(key[1])), number)
        quote = after(line, quote)
    return places


def pieces(name: str) -> tuple[str, ...]:
    return tuple(one.strip("\"'") for one in PIECE.findall(name))


def after(line: str, quote: str) -> str:
    """The quotes of three that are open at the end of a line; '' where none are."""
    for mark in re.findall(r'"""|\'\'\'', line):
        if not quote:
            quote = mark
        elif mark == quote:
            quote = ""
    return quote


def line_of(lines: Lines, path: tuple[str, ...]) -> int:
    """Of a key, or of what it stands in; 0 where the text has nothing of it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)
