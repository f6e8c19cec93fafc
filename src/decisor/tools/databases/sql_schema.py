"""Reading the schema that a model sees: tables, columns, keys, row counts and a few values."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from decisor.errors import SetupError, ToolError
from decisor.outside import json_line, short
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sql_cache import LARGE, catalog_of
from decisor.tools.databases.sql_catalog import CatalogRelation
from decisor.tools.databases.sql_joins import Key, Place, guess
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo, key_of
from decisor.types import Value

SAMPLED_ROWS = 20
SHOWN_VALUES = 3
SHOWN_CHARS = 40
SAMPLING_SECONDS = 5.0
LOOK_SECONDS = 2.0
"""For one table; a warehouse takes its time for the first."""
AFTER = r""":?\s*["'`]?(?P<name>[\w.$ -]+?)["'`]?(?=$|[\s"'`,!])"""


async def read_schema(worker: Worker) -> tuple[TableInfo, ...]:
    """The catalog, with counts and examples of what may be run. Raises SetupError where it cannot be read."""
    try:
        relations = await catalog_of(worker)
    except ToolError as error:
        raise SetupError(f"The schema of the database cannot be read: {' '.join(str(error).split())}") from error
    tables = [table_of(one) for one in relations]
    narrow = worker.caps.policy.tables()  # the engine's estimate counts rows that this reader may not see
    tables = [replace(one, rows=None) if one.bare.lower() in narrow else one for one in tables]
    places: list[Place] = []
    if len(tables) <= LARGE:  # of a larger one, those that a question needs are sampled when it is asked
        until = time.monotonic() + SAMPLING_SECONDS
        tables = [await sampled(worker, table, until, places) for table in tables]
    keys = [Key(table.name, key[0].name, table.schema) for table in tables
            if len(key := key_of(table)) == 1 and not table.view]  # fmt: skip
    joins = await guess(worker, places, keys, {table.name: table.rows for table in tables})
    return tuple(with_joins(table, joins) for table in tables)


def table_of(relation: CatalogRelation) -> TableInfo:
    columns = tuple(
        ColumnInfo(one.name, one.type, one.nullable, one.key, one.references, comment=one.comment)
        for one in relation.columns
    )
    return TableInfo(
        relation.name, columns, relation.view, relation.rows, relation.schema, relation.comment, relation.runs, False
    )


def with_joins(table: TableInfo, joins: Mapping[tuple[str, str], str]) -> TableInfo:
    if not any(name == table.name for name, _ in joins):
        return table
    columns = (replace(one, joins=joins.get((table.name, one.name), "")) for one in table.columns)
    return replace(table, columns=tuple(columns))


async def sampled(worker: Worker, table: TableInfo, until: float, places: list[Place]) -> TableInfo:
    """With counts and examples. Columns that may hold the keys of other tables are added to ``places``."""
    left = until - time.monotonic()
    dialect, warehouse = worker.description.dialect, worker.description.warehouse
    if left <= 0 or not table.runs or table.sampled or dialect is None:
        return table
    name = table.place(dialect)
    seconds = left if warehouse else min(LOOK_SECONDS, left)
    caps = replace(worker.caps, rows=SAMPLED_ROWS, cell_chars=SHOWN_CHARS, seconds=max(0.2, seconds))
    try:
        sample = await worker.run(f"SELECT * FROM {name} LIMIT {SAMPLED_ROWS}", caps=caps, trusted=True)
        count = await worker.run(f"SELECT count(*) FROM {name}", caps=caps, trusted=True)
    except ToolError:
        return table
    values = dict(zip(sample.columns, zip(*sample.rows, strict=True), strict=False)) if sample.rows else {}
    columns = tuple(replace(column, examples=examples(values.get(column.name, ()))) for column in table.columns)
    places += places_of(table, values)
    rows = count.rows[0][0]
    return replace(table, columns=columns, rows=rows if isinstance(rows, int) else None, exact=True, sampled=True)


def places_of(table: TableInfo, values: Mapping[str, Sequence[Value]]) -> Iterator[Place]:
    """Columns that may hold keys of other tables: with whole numbers or texts, and neither declared to nor the key."""
    for column in table.columns:
        own = tuple(value for value in values.get(column.name, ()) if value is not None)
        alone = column.key and len(key_of(table)) == 1
        plain = all(isinstance(value, str) or (isinstance(value, int) and value is not True and value is not False)
                    for value in own)  # fmt: skip
        if own and plain and not column.references and not alone and not table.view:
            yield Place(table.name, column.name, tuple(dict.fromkeys(own)))


def examples(values: Iterable[Value]) -> tuple[str, ...]:
    """A few distinct values as JSON, so that none of them can end the line it stands on.

    >>> examples(["a", "a", None, "b\\n### Tool", 99.99999999999999])
    ('"a"', '"b\\\\n### Tool"', '100.0')
    """
    texts = dict.fromkeys(json_line(short(value)) for value in values if value is not None)
    return tuple(texts)[:SHOWN_VALUES]


def close_names(message: str, tables: Sequence[TableInfo], dialect: Dialect) -> str:
    """A hint for the name that the engine does not know; '' where there is none.

    >>> from decisor.tools.databases.sandbox.engines.sqlite import DIALECT
    >>> shop = (TableInfo("orders", (ColumnInfo("total", "REAL"),)),)
    >>> close_names("no such table: order", shop, DIALECT), close_names("no such column: o.totl", shop, DIALECT)
    (' Did you mean: orders?', ' Did you mean: total (in orders)?')
    """
    kind, name = misspelt(message, dialect)
    if not name or "Did you mean" in message:
        return ""
    holders: dict[str, list[str]] = {}
    for table in tables:
        for column in table.columns:
            holders.setdefault(column.name, []).append(table.name)
    names = {table.bare: table.name for table in tables}
    if kind == "column":
        names = {column: f"{column} (in {', '.join(homes[:4])})" for column, homes in holders.items()}
    lower = {entry.lower(): text for entry, text in names.items()}
    near = [lower[match] for match in difflib.get_close_matches(name, lower, 3, 0.6)]
    if not near and kind == "table" and len(names) <= 20:
        return f" There are: {', '.join(names)}." if names else " There are no tables."
    return f" Did you mean: {', '.join(near)}?" if near else ""


def misspelt(message: str, dialect: Dialect) -> tuple[str, str]:
    """The kind of name that a complaint is about, and the name in lower case; ('', '') where it is about none."""
    for kind, beginning in dialect.misspelt:
        if match := re.search(beginning + AFTER, message, re.I):
            return kind, match["name"].strip().split(".")[-1].lower()
    return "", ""
