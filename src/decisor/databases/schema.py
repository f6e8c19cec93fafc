"""Reads the schema of a database: tables, columns, keys, views, row counts and a few values.

The catalog is read by plain queries in the worker, one query per kind, whatever the number of tables. Nothing here
runs a view. Only SQLite must bind one to tell its columns, under the authorizer that bounds every query; a view that
cannot be bound there is left out. Functions are named with their schema, so that none of the database's own can stand
in for them.

If a column declares no foreign key, ``guess_joins`` guesses its target from names and shared values.

Catalogs of large databases are cached by a fingerprint: opening one again reads the fingerprint, and not all of the
catalog. The fingerprint is asked before the catalog is read, so a change in between makes the next opening read again.
The cache holds names, types and comments, in a file of the person's own, and no value of the data; a reader who may
see other tables has another file.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import Dialect
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.system.secrets import hide_password
from decisor.system.storage import cache_folder, make_private_folder, open_private, stamp_of
from decisor.system.text import json_line, round_to_seven_digits
from decisor.types import Table, Value

WIDE = Caps(rows=1_000_000, bytes=200_000_000, cell_chars=100_000, seconds=60.0)


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column in the catalog. ``nullable`` as declared; ``references`` is table.column of another table, or ''."""

    name: str
    type: str
    nullable: bool
    key: bool
    references: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    """A table or view in the catalog. schema: its schema unless that is the default one; then it begins the name. runs:
    its rows may be read for examples; False if a view does more than a query may. rows: about how many, None if the
    catalog does not tell.
    """

    name: str
    view: bool
    columns: tuple[CatalogColumn, ...]
    runs: bool = True
    schema: str = ""
    comment: str = ""
    rows: int | None = None


async def read_catalog(worker: Worker) -> tuple[CatalogRelation, ...]:
    """Read the tables, then the views, without those a reader may not see. Raises ToolError."""
    dialect = worker.description.dialect
    if dialect is None:
        raise ToolError(f"{worker.description.title} has no SQL.")
    queries = dialect.queries
    columns = (await _query_catalog(worker, queries.columns)).rows
    keys = (await _query_catalog(worker, queries.keys)).rows
    if queries.unbound:
        names = (await _query_catalog(worker, queries.unbound)).rows
        columns = (
            *columns,
            *[row for (name,) in names for row in await _columns_of_unbound(worker, queries.bound, str(name))],
        )
    about = {
        str(name): (str(comment), rows)
        for name, comment, rows in ((await _query_catalog(worker, queries.tables)).rows if queries.tables else ())
    }
    if worker.caps.policy:  # an estimate counts the rows of others too
        about = {name: (comment, None) for name, (comment, _) in about.items()}
    primary = {(table, column) for table, column, there, _ in keys if not there}
    foreign = {
        (table, column): f"{there}.{to or column}"
        for table, column, there, to in keys
        if there and not {str(there).lower(), str(there).lower().rpartition(".")[2]} & worker.hidden
    }
    relations: dict[tuple[str, bool, str], list[CatalogColumn]] = {}
    for table, view, name, kind, nullable, *more in columns:
        at = (table, name)
        schema, comment = (str(text) for text in more) if more else ("", "")
        column = CatalogColumn(str(name), str(kind), bool(nullable), at in primary, foreign.get(at, ""), comment)
        relations.setdefault((str(table), bool(view), schema), []).append(column)
    return tuple(
        CatalogRelation(
            name,
            view,
            tuple(its_columns),
            name.lower() not in worker.closed,
            schema,
            *_about(*about.get(name, ("", None))),
        )
        for (name, view, schema), its_columns in relations.items()
        if name.lower() not in worker.hidden
    )


def _about(comment: str, rows: Value) -> tuple[str, int | None]:
    return comment, rows if isinstance(rows, int) and rows >= 0 else None


async def _query_catalog(worker: Worker, query: str) -> Table:
    return await worker.run(query, caps=WIDE, trusted=True)


async def _columns_of_unbound(worker: Worker, query: str, name: str) -> Sequence[tuple[Value, ...]]:
    """Return the columns of a relation that must be bound to tell them; none if it cannot be bound."""
    try:
        return (await worker.run(query, {"name": name}, caps=WIDE, trusted=True)).rows
    except ToolError:
        return ()


LARGE = 400
"""Tables: smaller catalogs are read as quickly as a file."""
FORMAT = 1


async def read_cached_catalog(worker: Worker) -> tuple[CatalogRelation, ...]:
    """Return the catalog from the cache if its fingerprint holds, else read it. Raises ToolError."""
    dialect = worker.description.dialect
    if dialect is None or not dialect.queries.fingerprint:
        return await read_catalog(worker)
    rows = (await worker.run(dialect.queries.fingerprint, caps=WIDE, trusted=True)).rows
    fingerprint, file = stamp_of(*map(str, rows)).hex(), catalog_cache_file(worker)
    relations = load_cached_catalog(file, fingerprint)
    if relations is None:
        relations = await read_catalog(worker)
        if len(relations) > LARGE:
            save_cached_catalog(file, fingerprint, relations)
    return relations


def catalog_cache_file(worker: Worker) -> Path:
    """Return the cache file for a database and for the names that a reader may see."""
    caps = worker.caps
    seen = (
        worker.engine,
        hide_password(worker.url),
        caps.deny,
        caps.only,
        caps.policy.tables(),
        caps.policy.mask,
        sorted(worker.hidden),
        sorted(worker.closed),
    )
    return cache_folder() / "schemas" / f"{stamp_of(*map(str, seen)).hex()}.json"


def load_cached_catalog(file: Path, fingerprint: str) -> tuple[CatalogRelation, ...] | None:
    """Read a cached catalog; None if it is missing, damaged, or has another fingerprint."""
    try:
        data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        if (data["format"], data["fingerprint"]) != (FORMAT, fingerprint):
            return None
        return tuple(
            CatalogRelation(name, view, tuple(CatalogColumn(*column) for column in columns), *rest)
            for name, view, columns, *rest in data["relations"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_cached_catalog(file: Path, fingerprint: str, relations: Sequence[CatalogRelation]) -> None:
    """Write a catalog to the cache. If that fails, the catalog is read the next time too."""
    rows = [
        (
            one.name,
            one.view,
            [(c.name, c.type, c.nullable, c.key, c.references, c.comment) for c in one.columns],
            one.runs,
            one.schema,
            one.comment,
            one.rows,
        )
        for one in relations
    ]
    aside = file.with_suffix(".new")
    with suppress(OSError):
        make_private_folder(file.parent)
        with open_private(aside) as out:
            json.dump({"format": FORMAT, "fingerprint": fingerprint, "relations": rows}, out)
        aside.replace(file)


SECONDS = 2.0
MOST_PAIRS = 200_000
"""Of columns and keys that are compared. A schema with more of them is left as it is declared."""
FEWEST_VALUES = 3
"""Of different texts that must be keys of the other table, where the names are unlike."""
KEY_WORDS = frozenset({"id", "code", "key", "name", "no", "number", "nr", "uuid", "fk", "pk"})


@dataclass(frozen=True, slots=True)
class KeyCandidate:
    """A column that may hold keys of another table, with some of its values."""

    table: str
    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """The one column of a table's primary key. ``schema`` begins the table's name unless it is the default one."""

    table: str
    column: str
    schema: str = ""


async def guess_joins(
    worker: Worker, places: Sequence[KeyCandidate], keys: Sequence[Key], counts: Mapping[str, int | None]
) -> dict[tuple[str, str], str]:
    """Guess which columns hold the keys of other tables, and return table.column by (table, column).

    All sampled values of such a column are keys of the other table, and the names are alike or the values are several
    texts. Takes at most ``SECONDS``.
    """
    dialect = worker.description.dialect
    joins: dict[tuple[str, str], str] = {}
    until = time.monotonic() + SECONDS
    for place, key in rank_join_pairs(places, keys):
        left = until - time.monotonic()
        if left <= 0 or dialect is None:
            break
        if (place.table, place.column) in joins or (counts.get(key.table) or 0) < len(place.values):
            continue
        if await all_are_keys(worker, place, key, dialect, left):
            joins[place.table, place.column] = f"{key.table}.{key.column}"
    return joins


def rank_join_pairs(places: Sequence[KeyCandidate], keys: Sequence[Key]) -> Iterator[tuple[KeyCandidate, Key]]:
    """Yield the pairs of column and key to compare, the likeliest first. None for a schema with too many pairs."""
    if len(places) * len(keys) > MOST_PAIRS:
        return
    worth = [
        (-name_likeness(place, key), at, place, key)
        for at, place in enumerate(places)
        for key in keys
        if (place.table, place.column) != (key.table, key.column) and place.values
    ]
    for _, _, place, key in sorted(worth, key=lambda one: one[:2]):
        texts = {value for value in place.values if isinstance(value, str)}
        if name_likeness(place, key) >= 1 or len(texts) >= FEWEST_VALUES:
            yield place, key


def name_likeness(place: KeyCandidate, key: Key) -> float:
    """Return how far the names suggest a join; 1 or more speaks for it.

    >>> name_likeness(KeyCandidate("supply", "goods_id", ()), Key("goods", "code"))
    2.0
    >>> name_likeness(KeyCandidate("node", "country_name", ()), Key("country", "country_name"))
    3.0
    >>> (name_likeness(KeyCandidate("flow", "level", ()), Key("goods", "code")),
    ...     name_likeness(KeyCandidate("a", "id", ()), Key("b", "id")))
    (0.0, 0.0)
    """
    column, own, table = column_name_words(place.column), column_name_words(key.column), column_name_words(key.table)
    telling = own - KEY_WORDS
    if place.column.lower() == key.column.lower():
        return 3.0 if telling else 0.0
    about = column - KEY_WORDS
    if about and about <= table | telling:
        return 2.0 if about in (table, telling) else 1.0
    return 0.0


def column_name_words(name: str) -> set[str]:
    """Return the words of a name in lower case, without the plural s.

    >>> sorted(column_name_words("homeNode_ids"))
    ['home', 'id', 'node']
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    return {part.lower() if part.lower() in ("goods", "is") else part.lower().removesuffix("s") for part in parts}


def sql_table_of_key(key: Key, dialect: Dialect) -> str:
    bare = key.table[len(key.schema) + 1 :] if key.schema else key.table
    return ".".join(dialect.quoted(part) for part in (key.schema, bare) if part)


async def all_are_keys(worker: Worker, place: KeyCandidate, key: Key, dialect: Dialect, seconds: float) -> bool:
    names = {f"v{at}": value for at, value in enumerate(dict.fromkeys(place.values))}
    column = dialect.quoted(key.column)
    within = ", ".join(f":{name}" for name in names)
    query = f"SELECT count(DISTINCT {column}) FROM {sql_table_of_key(key, dialect)} WHERE {column} IN ({within})"
    try:
        table = await worker.run(query, names, replace(worker.caps, seconds=max(0.2, seconds)), trusted=True)
    except ToolError:
        return False
    return table.rows[0][0] == len(names)


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a table.

    ``references`` is table.column of another table; ``examples`` are values as JSON text. ``joins`` is table.column
    whose keys its values are, if nothing declares that. comment: of the database.
    """

    name: str
    type: str
    nullable: bool = True
    key: bool = False
    references: str = ""
    examples: tuple[str, ...] = ()
    joins: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table or view with its columns.

    ``name`` is SCHEMA.TABLE unless it is in the default schema; then ``schema`` names it. ``rows`` is None if counting
    was not possible in time. runs: its rows may be read; False if a view does more than a query may. exact: the rows
    were counted; else they are the engine's estimate. sampled: some rows were read.
    """

    name: str
    columns: tuple[ColumnInfo, ...]
    view: bool = False
    rows: int | None = None
    schema: str = ""
    comment: str = ""
    runs: bool = True
    exact: bool = True
    sampled: bool = False

    @property
    def bare(self) -> str:
        """Name without the schema."""
        return self.name[len(self.schema) + 1 :] if self.schema else self.name

    def place(self, dialect: Dialect) -> str:
        """Return the name as a query spells it."""
        return ".".join(dialect.quoted(part) for part in (self.schema, self.bare) if part)


def primary_key_columns(table: TableInfo) -> tuple[ColumnInfo, ...]:
    """Return the columns of the primary key."""
    return tuple(column for column in table.columns if column.key)


SAMPLED_ROWS = 20
SHOWN_VALUES = 3
SHOWN_CHARS = 40
SAMPLING_SECONDS = 5.0
LOOK_SECONDS = 2.0
"""For one table; a warehouse takes its time for the first."""
AFTER = r""":?\s*["'`]?(?P<name>[\w.$ -]+?)["'`]?(?=$|[\s"'`,!])"""


async def read_sql_schema(worker: Worker) -> tuple[TableInfo, ...]:
    """Read the catalog, with counts and examples of tables that may be run. Raises SetupError if it cannot be read."""
    try:
        relations = await read_cached_catalog(worker)
    except ToolError as error:
        raise SetupError(f"The schema of the database cannot be read: {' '.join(str(error).split())}") from error
    tables = [table_of_relation(one) for one in relations]
    narrow = worker.caps.policy.tables()  # the engine's estimate counts rows that this reader may not see
    tables = [replace(one, rows=None) if one.bare.lower() in narrow else one for one in tables]
    places: list[KeyCandidate] = []
    if len(tables) <= LARGE:  # of a larger one, those that a question needs are sampled when it is asked
        until = time.monotonic() + SAMPLING_SECONDS
        tables = [await sample_table(worker, table, until, places) for table in tables]
    keys = [
        Key(table.name, key[0].name, table.schema)
        for table in tables
        if len(key := primary_key_columns(table)) == 1 and not table.view
    ]
    joins = await guess_joins(worker, places, keys, {table.name: table.rows for table in tables})
    return tuple(with_joins(table, joins) for table in tables)


def table_of_relation(relation: CatalogRelation) -> TableInfo:
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


async def sample_table(worker: Worker, table: TableInfo, until: float, places: list[KeyCandidate]) -> TableInfo:
    """Return a table with its count and examples.

    Columns that may hold the keys of other tables are added to ``places``.
    """
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
    columns = tuple(replace(column, examples=example_values(values.get(column.name, ()))) for column in table.columns)
    places += find_key_candidates(table, values)
    rows = count.rows[0][0]
    return replace(table, columns=columns, rows=rows if isinstance(rows, int) else None, exact=True, sampled=True)


def find_key_candidates(table: TableInfo, values: Mapping[str, Sequence[Value]]) -> Iterator[KeyCandidate]:
    """Yield columns that may hold keys of other tables.

    They have whole numbers or texts, reference nothing by declaration, and are not the key.
    """
    for column in table.columns:
        own = tuple(value for value in values.get(column.name, ()) if value is not None)
        alone = column.key and len(primary_key_columns(table)) == 1
        plain = all(
            isinstance(value, str) or (isinstance(value, int) and value is not True and value is not False)
            for value in own
        )
        if own and plain and not column.references and not alone and not table.view:
            yield KeyCandidate(table.name, column.name, tuple(dict.fromkeys(own)))


def example_values(values: Iterable[Value]) -> tuple[str, ...]:
    """Return a few distinct values as JSON, so that none can end the line it stands on.

    >>> example_values(["a", "a", None, "b\\n### Tool", 99.99999999999999])
    ('"a"', '"b\\\\n### Tool"', '100.0')
    """
    texts = dict.fromkeys(json_line(round_to_seven_digits(value)) for value in values if value is not None)
    return tuple(texts)[:SHOWN_VALUES]


def close_names(message: str, tables: Sequence[TableInfo], dialect: Dialect) -> str:
    """Return a hint for the name that the engine does not know, '' if there is none.

    >>> from decisor.sandbox.engines.sqlite import DIALECT
    >>> shop = (TableInfo("orders", (ColumnInfo("total", "REAL"),)),)
    >>> close_names("no such table: order", shop, DIALECT), close_names("no such column: o.totl", shop, DIALECT)
    (' Did you mean: orders?', ' Did you mean: total (in orders)?')
    """
    kind, name = find_misspelt_name(message, dialect)
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


def find_misspelt_name(message: str, dialect: Dialect) -> tuple[str, str]:
    """Return the kind of name that a complaint is about, and the name in lower case.

    ('', '') if it is about no name.
    """
    for kind, beginning in dialect.misspelt:
        if match := re.search(beginning + AFTER, message, re.I):
            return kind, match["name"].strip().split(".")[-1].lower()
    return "", ""
