"""What a model may write instead of a query: ``describe NAME`` shows all of a table or label, ``find WORDS`` says which
of them, which columns or properties, and which stored values have the words."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from decisor.calls.estimates import tokens_in
from decisor.errors import ToolError
from decisor.outside import one_line
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.schema_index import SchemaIndex, column_fits, masked
from decisor.tools.databases.schema_words import question_words, quotations
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo
from decisor.types import Observation, Record, Table

LOOKUP = re.compile(r"\s*(describe|desc|find)\s+(?!select\b|with\b|table\b|from\b)(.+?)\s*;?\s*", re.I | re.S)
TOKENS = 3_000
"""Of the descriptions that one input asks for."""
MOST_TABLES, MOST_HITS, NAMED = 12, 20, 0.5
ALIKE = 3
"""Tables of a family that are searched for a value."""
SECONDS = 4.0
SCANNED = 1_000_000
"""Rows of a table that are searched for a value."""
Read = Callable[[str, Caps], Awaitable[Table]]


@dataclass(frozen=True, slots=True)
class Lookup:
    """``describe`` tables by name, or ``find`` words."""

    verb: str
    words: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored value."""

    table: str
    column: str
    value: str


@dataclass(frozen=True)
class Language:
    """How a schema is written and searched. ``table``, ``column``: what these are called. ``head``: a table with its
    size; ``lines``: each line about it, with the name that it is about; ``place``: a table, and ``name``: a column, as
    a query writes them. ``texts``: the columns that are searched, ``known``: the values of one that the schema tells
    (None where it does not), ``search``: a query for rows whose columns hold one of some texts, in any case."""

    table: str
    column: str
    head: Callable[[TableInfo], str]
    lines: Callable[[TableInfo], Iterator[tuple[str, str]]]
    place: Callable[[TableInfo], str]
    name: Callable[[str], str]
    texts: Callable[[TableInfo], list[ColumnInfo]]
    known: Callable[[ColumnInfo], Sequence[str] | None]
    search: Callable[[TableInfo, Sequence[ColumnInfo], Sequence[str]], str]


def parse_lookup(text: str) -> Lookup | None:
    """None for a statement.

    >>> parse_lookup("find 'manowars'"), parse_lookup("DESCRIBE orders;"), parse_lookup("SELECT 1")
    (Lookup(verb='find', words="'manowars'"), Lookup(verb='describe', words='orders'), None)
    """
    match = LOOKUP.fullmatch(text)
    return Lookup("find" if match[1].lower() == "find" else "describe", match[2]) if match else None


def named_tables(words: str, tables: Sequence[TableInfo], language: Language) -> list[TableInfo]:
    """The tables that a model names, separated by commas or blanks.

    Raises:
        ToolError: one is not there, with names that are near.
    """
    by_name: dict[str, TableInfo] = {}
    for table in tables:
        by_name.setdefault(plain(table.bare), table)
        by_name[plain(table.name)] = table
    whole = by_name.get(plain(words))
    names = [words] if whole else re.split(r"\s*,\s*|\s+", words.strip())
    unknown = [name for name in names if plain(name) not in by_name]
    if unknown:
        near = difflib.get_close_matches(plain(unknown[0]), by_name, 3, 0.5)
        hint = f" Did you mean: {', '.join(by_name[name].name for name in near)}?" if near else " Try find WORDS."
        raise ToolError(f"There is no {language.table} {one_line(unknown[0], 60)}.{hint}")
    return list(dict.fromkeys(by_name[plain(name)] for name in names))


def plain(name: str) -> str:
    """
    >>> plain('"Orders"'), plain("(:City)"), plain("[:LIES_IN]")
    ('orders', 'city', 'lies_in')
    """
    return re.sub(r"[\"'`\[\]():]", "", name).strip().lower()


def description(tables: Sequence[TableInfo], index: SchemaIndex, language: Language) -> str:
    """All lines about the tables as far as ``TOKENS`` goes, then by name."""
    lines: list[str] = []
    left = TOKENS
    for table in tables:
        lines.append(language.head(table))
        names: list[str] = []
        for line, name in language.lines(table):
            left -= tokens_in(line) + 1
            if left > 0:
                lines.append(line)
            else:
                names.append(name)
        if names:
            lines.append(f"  and {len(names)} more: {one_line(', '.join(names), 4 * TOKENS)}")
        mask = masked(table.name)
        alike = [other.name for other in index.tables if other.name != table.name and masked(other.name) == mask]
        if alike:
            more = f" and {len(alike) - MOST_TABLES} more" if len(alike) > MOST_TABLES else ""
            lines.append(f"  {language.table.capitalize()}s like it: {', '.join(alike[-MOST_TABLES:])}{more}")
    return "\n".join(lines)


async def find(words: str, index: SchemaIndex, language: Language, read: Read, caps: Caps, source: str) -> Observation:
    """The tables and columns that have the words, and where a value with them is stored: each a record."""
    names = "\n".join(names_with(words, index, language))
    wishes = quotations(words) or (words.strip(),)
    hits, looked, total = await stored(wishes, index, words, language, read, caps)
    records = tuple(
        Record(
            f"r{number}", {language.table: one.table, language.column: one.column, "value": one.value}, source=source
        )
        for number, one in enumerate(hits, 1)
    )
    quoted = ", ".join(f'"{one_line(wish, 60)}"' for wish in wishes)
    values = f"Stored values with {quoted}: " + ("the records." if records else "none.")
    if looked < total and len(hits) < MOST_HITS:
        values += f" Of {total} {language.table}s with texts, {looked} could be looked into."
    nothing = f"No name of a {language.table} or {language.column} has them."
    return Observation(records, f"{names or nothing}\n{values}", total=len(records))


def names_with(words: str, index: SchemaIndex, language: Language) -> Iterator[str]:
    """A line for each table that the words fit, with the columns that they fit."""
    wishes = frozenset(question_words(words))
    for fit in index.rank(words, tied=False)[:MOST_TABLES]:
        if fit.score > 0:
            table = index.tables[fit.family.tables[-1]]
            fits = column_fits(table.columns, wishes)
            columns = [column for column, one in zip(table.columns, fits, strict=True) if one >= NAMED][:8]
            more = len(fit.family.tables) - 1
            yield (
                f"{language.place(table)}{f' and {more} alike' if more else ''}"
                + (": " + ", ".join(language.name(column.name) for column in columns) if columns else "")
            )


async def stored(
    wishes: Sequence[str], index: SchemaIndex, words: str, language: Language, read: Read, caps: Caps
) -> tuple[list[Hit], int, int]:
    """Values that hold one of ``wishes`` in any case; how many tables were looked into, and how many have texts. Tables
    that fit best come first. Through the same checks as a query of the model's."""
    until = time.monotonic() + SECONDS
    numbers = [number for fit in index.rank(words) for number in fit.family.tables[-ALIKE:]]
    homes = [(table, columns) for table in (index.tables[number] for number in numbers)
             if table.runs and (columns := language.texts(table))]  # fmt: skip
    hits: list[Hit] = []
    looked = 0
    for table, columns in homes:
        left = until - time.monotonic()
        if left <= 0 or len(hits) >= MOST_HITS:
            break
        own: list[ColumnInfo] = []
        for column in columns:
            if (values := language.known(column)) is None:
                own.append(column)
            else:
                hits += [Hit(table.name, column.name, value) for value in values if has(value, wishes)]
        narrow = replace(caps, rows=MOST_HITS, cell_chars=200, seconds=min(left, 1.0, caps.seconds))
        try:
            rows = (await read(language.search(table, own, wishes), narrow)).rows if own else ()
        except ToolError:
            continue
        looked += 1
        for row in rows:
            hits += [Hit(table.name, column.name, str(value)) for column, value in zip(own, row, strict=False)
                     if has(str(value), wishes)]  # fmt: skip
        hits = list(dict.fromkeys(hits))
    return hits[:MOST_HITS], looked, len(homes)


def has(value: str, wishes: Sequence[str]) -> bool:
    return any(wish.lower() in value.lower() for wish in wishes)
