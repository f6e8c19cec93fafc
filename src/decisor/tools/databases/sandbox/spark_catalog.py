"""What Spark tells of its tables, as text, one statement for all tables of a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Row = tuple[object, ...]
Say = Callable[[str], Iterable[Sequence[object]]]
COLUMN = re.compile(r"^ \|-- (?P<name>.+): (?P<type>.+?) \(nullable = (?P<nullable>true|false)\)$", re.M)
KIND = re.compile(r"^Type: (\w+)$", re.M)
VIEW = re.compile(r"^View Text: (.*?)^View Original Text: ", re.M | re.S)


@dataclass(frozen=True, slots=True)
class SparkTable:
    """``schema``: '' for the default one. ``query``: of a view, None where it is not told. ``columns``: name, type,
    nullable."""

    name: str
    schema: str
    view: bool
    query: str | None
    columns: tuple[tuple[str, str, bool], ...]


def read_tables(say: Say, here: str) -> list[SparkTable]:
    """Of all databases; ``here`` is the default one. ``say`` gives the rows of a statement."""
    others = [str(row[0]) for row in say("SHOW DATABASES") if str(row[0]) != here]
    tables = []
    for schema in (here, *others):
        quoted = schema.replace("`", "``")
        for _, name, temporary, text in say(f"SHOW TABLE EXTENDED IN `{quoted}` LIKE '*'"):
            tables.append(table_of(str(name), "" if temporary or schema == here else schema, str(text)))
    return list(dict.fromkeys(tables))


def table_of(name: str, schema: str, text: str) -> SparkTable:
    """
    >>> text = "Type: VIEW\\nView Text: SELECT a\\nView Original Text: x\\nSchema: root\\n"
    >>> table_of("v", "", text + " |-- a: integer (nullable = true)\\n")
    SparkTable(name='v', schema='', view=True, query='SELECT a', columns=(('a', 'integer', True),))
    """
    kind = KIND.search(text)
    view = bool(kind and kind[1].endswith("VIEW"))
    query = VIEW.search(text) if view else None
    columns = tuple((one["name"], one["type"], one["nullable"] == "true") for one in COLUMN.finditer(text))
    return SparkTable(name, schema, view, query[1].strip() if query else None, columns)


def column_rows(tables: Sequence[SparkTable]) -> Iterator[Row]:
    for table in sorted(tables, key=lambda one: (one.view, one.schema != "", one.schema, one.name)):
        name = f"{table.schema}.{table.name}" if table.schema else table.name
        for column, kind, nullable in table.columns:
            yield name, table.view, column, kind, nullable, table.schema, ""


def definition_rows(tables: Sequence[SparkTable]) -> Iterator[Row]:
    for table in tables:
        kind = "view" if table.view else "table"
        yield table.name, table.query if table.view else "", kind, table.schema, not table.schema
