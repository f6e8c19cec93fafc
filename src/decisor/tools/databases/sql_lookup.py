"""How a relational schema is described and searched, in a dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decisor.tools.databases.lookup import MOST_HITS, SCANNED, Language
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sql_render import about, column_line, identifier, path, table_head
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo

TEXTS = re.compile(r"CHAR|TEXT|CLOB|STRING|^NAME$|^$", re.I)
ENUM = re.compile(r"ENUM\((.*)\)", re.I | re.S)


def language_of(dialect: Dialect) -> Language:
    def lines(table: TableInfo) -> Iterator[tuple[str, str]]:
        for column in table.columns:
            yield column_line(column, dialect) + about(column.comment), identifier(column.name, dialect)

    def search(table: TableInfo, columns: Sequence[ColumnInfo], wishes: Sequence[str]) -> str:
        return search_query(table, columns, wishes, dialect)

    return Language(
        "table",
        "column",
        head=lambda table: table_head(table, dialect) + about(table.comment),
        lines=lines,
        place=lambda table: f"{'view' if table.view else 'table'} {path(table, dialect)}",
        name=lambda column: identifier(column, dialect),
        texts=lambda table: [column for column in table.columns if is_text(column)],
        known=labels,
        search=search,
    )


def is_text(column: ColumnInfo) -> bool:
    return not column.type.endswith("]") and bool(TEXTS.search(column.type) or ENUM.search(column.type))


def labels(column: ColumnInfo) -> list[str] | None:
    """The values of an enumeration, which the catalog tells.

    >>> labels(ColumnInfo("size", "ENUM('S', 'it''s')")), labels(ColumnInfo("name", "TEXT"))
    (['S', "it's"], None)
    """
    match = ENUM.search(column.type)
    return [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", match[1])] if match else None


def search_query(table: TableInfo, columns: Sequence[ColumnInfo], wishes: Sequence[str], dialect: Dialect) -> str:
    """A query for rows with one of the texts. Signs that LIKE takes for others stand for any."""
    from sqlglot import exp

    names = [dialect.quoted(column.name) for column in columns]
    letters = [re.sub(r"[%_\\]", "_", wish.lower()) for wish in wishes]
    patterns = [exp.Literal.string(f"%{text}%").sql(dialect.name) for text in letters]
    tests = " OR ".join(f"LOWER({name}) LIKE {pattern}" for name in names for pattern in patterns)
    some = ", ".join(names)
    part = f"(SELECT {some} FROM {table.place(dialect)} LIMIT {SCANNED}) AS part"
    return f"SELECT DISTINCT {some} FROM {part} WHERE {tests} LIMIT {MOST_HITS}"
