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
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import Dialect
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.system.secrets import hide_password
from decisor.system.storage import cache_folder, make_private_folder, stamp_of, write_private
from decisor.system.text import json_line, round_to_seven_digits
from decisor.types import Value

WIDE = Caps(rows=1_000_000, bytes=200_000_000, cell_chars=100_000, seconds=60.0)
LARGE = 400
"""Tables: smaller catalogs are read as quickly as a file, and all of their tables are sampled."""
SAMPLED_ROWS = 20
SHOWN_VALUES = 3
SHOWN_CHARS = 40
SAMPLING_SECONDS = 5.0
LOOK_SECONDS = 2.0
"""For one table; a warehouse takes its time for the first."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a table, or a property of a label or relationship type."""

    name: str
    type: str
    nullable: bool = True
    """As declared."""
    key: bool = False
    """Whether it is in the primary key."""
    references: str = ""
    """table.column of another table, as declared; '' for none."""
    examples: tuple[str, ...] = ()
    """A few values as JSON; they are data."""
    joins: str = ""
    """table.column whose keys its values are, if nothing declares that."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table or view with its columns, or a label or relationship type with its properties."""

    name: str
    """SCHEMA.TABLE unless it is in the default schema."""
    columns: tuple[ColumnInfo, ...]
    view: bool = False
    rows: int | None = None
    """None if the catalog does not tell and counting was not possible in time."""
    schema: str = ""
    """Its schema unless that is the default one."""
    comment: str = ""
    runs: bool = True
    """Whether its rows may be read; False if a view does more than a query may."""
    exact: bool = True
    """Whether the rows were counted; else they are the engine's estimate."""
    sampled: bool = False

    @property
    def bare(self) -> str:
        """Name without the schema."""
        return self.name[len(self.schema) + 1 :] if self.schema else self.name

    @property
    def key_columns(self) -> tuple[ColumnInfo, ...]:
        """Columns of the primary key."""
        return tuple(column for column in self.columns if column.key)

    def place(self, dialect: Dialect) -> str:
        """Return the name as a query spells it."""
        return ".".join(dialect.quoted(part) for part in (self.schema, self.bare) if part)


async def read_catalog(worker: Worker) -> tuple[TableInfo, ...]:
    """Read the tables, then the views, without those a reader may not see. Raises ToolError."""
    dialect = worker.description.dialect
    if dialect is None:
        raise ToolError(f"{worker.description.title} has no SQL.")
    queries = dialect.queries
    rows = list(await _read_rows(worker, queries.columns))
    keys = await _read_rows(worker, queries.keys)
    for (name,) in await _read_rows(worker, queries.unbound) if queries.unbound else ():
        with suppress(ToolError):  # a relation that cannot be bound is left out
            rows += (await worker.run(queries.bound, {"name": str(name)}, caps=WIDE, trusted=True)).rows
    facts = await _read_rows(worker, queries.tables) if queries.tables else ()
    about = {str(name): (str(comment), count) for name, comment, count in facts}
    primary = {(table, column) for table, column, target, _ in keys if not target}
    key_of_table: dict[object, list[object]] = {}
    for keyed, part in primary:
        key_of_table.setdefault(str(keyed).lower(), []).append(part)
    # A reference that names no column is to the primary key.
    foreign = {
        (table, column): f"{target}.{key or one_key(key_of_table.get(str(target).lower())) or column}"
        for table, column, target, key in keys
        # A reference to a table that the reader may not see would tell its name.
        if target and not {str(target).lower(), str(target).lower().rpartition(".")[2]} & worker.hidden
    }
    relations: dict[tuple[str, bool, str], list[ColumnInfo]] = {}
    for table, view, name, kind, nullable, *more in rows:
        schema, comment = (str(text) for text in more) if more else ("", "")
        column = ColumnInfo(
            str(name),
            str(kind),
            bool(nullable),
            (table, name) in primary,
            foreign.get((table, name), ""),
            comment=comment,
        )
        relations.setdefault((str(table), bool(view), schema), []).append(column)
    tables = []
    for (name, view, schema), columns in relations.items():
        if name.lower() not in worker.hidden:
            comment, count = about.get(name, ("", None))
            # An estimate counts the rows of others too.
            estimate = count if isinstance(count, int) and count >= 0 and not worker.caps.policy else None
            runs = name.lower() not in worker.closed
            tables.append(TableInfo(name, tuple(columns), view, estimate, schema, comment, runs, exact=False))
    return tuple(tables)


def one_key(columns: Sequence[object] | None) -> object:
    """Return the column of a key of one column; None for any other key."""
    return columns[0] if columns and len(columns) == 1 else None


async def _read_rows(worker: Worker, query: str) -> Sequence[tuple[Value, ...]]:
    return (await worker.run(query, caps=WIDE, trusted=True)).rows


FORMAT = 2


@dataclass(frozen=True, slots=True)
class CachedCatalog:
    """The file of a cached catalog."""

    format: int
    fingerprint: str
    tables: tuple[TableInfo, ...]


async def read_cached_catalog(worker: Worker) -> tuple[TableInfo, ...]:
    """Return the catalog from the cache if its fingerprint holds, else read it. Raises ToolError.

    If the cache cannot be written, the catalog is read the next time too.
    """
    dialect = worker.description.dialect
    if dialect is None or not dialect.queries.fingerprint:
        return await read_catalog(worker)
    # Asked before the catalog is read: a change in between makes the next opening read it again.
    fingerprint = stamp_of(*map(str, await _read_rows(worker, dialect.queries.fingerprint))).hex()
    from pydantic import TypeAdapter

    file, adapter = catalog_cache_file(worker), TypeAdapter(CachedCatalog)
    # A cache file that is missing, broken or of an older format is as good as none.
    with suppress(OSError, ValueError):
        cached = adapter.validate_json(file.read_bytes())
        if (cached.format, cached.fingerprint) == (FORMAT, fingerprint):
            return cached.tables
    tables = await read_catalog(worker)
    if len(tables) > LARGE:
        content = adapter.dump_json(CachedCatalog(FORMAT, fingerprint, tables), exclude_defaults=True)
        with suppress(OSError):
            make_private_folder(file.parent)
            write_private(file, content.decode())
    return tables


def catalog_cache_file(worker: Worker) -> Path:
    """Return the cache file for a database and for the names that a reader may see."""
    caps = worker.caps
    # Readers with other rights see other tables, so each set of rights has a file of its own.
    rights = (
        caps.deny,
        caps.only,
        caps.policy.tables(),
        caps.policy.mask,
        sorted(worker.hidden),
        sorted(worker.closed),
    )
    stamp = stamp_of(*map(str, (worker.engine, hide_password(worker.url), *rights)))
    return cache_folder() / "schemas" / f"{stamp.hex()}.json"


async def read_sql_schema(worker: Worker) -> tuple[TableInfo, ...]:
    """Read the catalog, with counts and examples of tables that may be run. Raises SetupError if it cannot be read."""
    try:
        tables = list(await read_cached_catalog(worker))
    except ToolError as error:
        raise SetupError(f"The schema of the database cannot be read: {' '.join(str(error).split())}") from error
    candidates: list[KeyCandidate] = []
    if len(tables) <= LARGE:  # of a larger one, those that a question needs are sampled when it is asked
        until = time.monotonic() + SAMPLING_SECONDS
        tables = [await sample_table(worker, table, until, candidates) for table in tables]
    joins = await guess_joins(worker, candidates, tables)
    tables_with_joins = {name for name, _ in joins}
    return tuple(
        replace(table, columns=tuple(replace(c, joins=joins.get((table.name, c.name), "")) for c in table.columns))
        if table.name in tables_with_joins
        else table
        for table in tables
    )


async def sample_table(worker: Worker, table: TableInfo, until: float, candidates: list[KeyCandidate]) -> TableInfo:
    """Return a table with its count and examples.

    Columns that may hold the keys of other tables are added to ``candidates``.
    """
    left = until - time.monotonic()
    dialect = worker.description.dialect
    if left <= 0 or not table.runs or table.sampled or dialect is None:
        return table
    name = table.place(dialect)
    seconds = left if worker.description.warehouse else min(LOOK_SECONDS, left)
    caps = replace(worker.caps, rows=SAMPLED_ROWS, cell_chars=SHOWN_CHARS, seconds=max(0.2, seconds))
    try:
        sample = await worker.run(f"SELECT * FROM {name} LIMIT {SAMPLED_ROWS}", caps=caps, trusted=True)
        count = await worker.run(f"SELECT count(*) FROM {name}", caps=caps, trusted=True)
    except ToolError:
        return table
    values = dict(zip(sample.columns, zip(*sample.rows, strict=True), strict=False)) if sample.rows else {}
    columns = tuple(replace(column, examples=example_values(values.get(column.name, ()))) for column in table.columns)
    candidates += find_key_candidates(table, values)
    rows = count.rows[0][0]
    return replace(table, columns=columns, rows=rows if isinstance(rows, int) else None, exact=True, sampled=True)


def example_values(values: Iterable[Value]) -> tuple[str, ...]:
    """Return a few distinct values as JSON, so that none can end the line it stands on.

    >>> example_values(["a", "a", None, "b\\n### Tool", 99.99999999999999])
    ('"a"', '"b\\\\n### Tool"', '100.0')
    """
    texts = dict.fromkeys(json_line(round_to_seven_digits(value)) for value in values if value is not None)
    return tuple(texts)[:SHOWN_VALUES]


GUESSING_SECONDS = 2.0
MAX_PAIRS = 200_000
"""Of columns and keys that are compared. A schema with more of them is left as it is declared."""
MIN_VALUES = 3
"""Of different texts that must be keys of the other table, if the names are unlike."""
KEY_WORDS = frozenset({"id", "code", "key", "name", "no", "number", "nr", "uuid", "fk", "pk"})


@dataclass(frozen=True, slots=True)
class KeyCandidate:
    """A column that may hold keys of another table, with some of its values."""

    table: str
    column: str
    values: tuple[Value, ...]


def find_key_candidates(table: TableInfo, values: Mapping[str, Sequence[Value]]) -> Iterator[KeyCandidate]:
    """Yield columns that may hold keys of other tables.

    They have whole numbers or texts, reference nothing by declaration, and are not the key.
    """
    for column in () if table.view else table.columns:
        stored = [value for value in values.get(column.name, ()) if value is not None]
        is_key = table.key_columns == (column,)
        # The exact type counts, for True and False are instances of int and no keys.
        if stored and not column.references and not is_key and all(type(value) in (str, int) for value in stored):
            yield KeyCandidate(table.name, column.name, tuple(dict.fromkeys(stored)))


async def guess_joins(
    worker: Worker, candidates: Sequence[KeyCandidate], tables: Sequence[TableInfo]
) -> dict[tuple[str, str], str]:
    """Guess which columns hold the keys of other tables, and return table.column by (table, column).

    All sampled values of such a column are keys of the other table, and the names are alike or the values are several
    texts. Takes at most ``GUESSING_SECONDS``.
    """
    dialect = worker.description.dialect
    joins: dict[tuple[str, str], str] = {}
    until = time.monotonic() + GUESSING_SECONDS
    for candidate, table in rank_join_pairs(candidates, tables):
        left = until - time.monotonic()
        if left <= 0 or dialect is None:
            break
        # A table with fewer rows than sampled values cannot hold them all as keys.
        if (candidate.table, candidate.column) in joins or (table.rows or 0) < len(candidate.values):
            continue
        (key,) = table.key_columns
        # The values travel as parameters: they are data and never text of the statement.
        column, names = dialect.quoted(key.name), {f"v{at}": value for at, value in enumerate(candidate.values)}
        listed = ", ".join(f":{name}" for name in names)
        query = f"SELECT count(DISTINCT {column}) FROM {table.place(dialect)} WHERE {column} IN ({listed})"
        with suppress(ToolError):
            caps = replace(worker.caps, seconds=max(0.2, left))
            if (await worker.run(query, names, caps, trusted=True)).rows[0][0] == len(names):
                joins[candidate.table, candidate.column] = f"{table.name}.{key.name}"
    return joins


def rank_join_pairs(
    candidates: Sequence[KeyCandidate], tables: Sequence[TableInfo]
) -> Iterator[tuple[KeyCandidate, TableInfo]]:
    """Yield the pairs of column and keyed table to compare, the likeliest first. None if there are too many pairs."""
    keyed = [table for table in tables if len(table.key_columns) == 1 and not table.view]
    if len(candidates) * len(keyed) > MAX_PAIRS:
        return
    pairs = [
        (name_likeness(candidate, table), candidate, table)
        for candidate in candidates
        for table in keyed
        if (candidate.table, candidate.column) != (table.name, table.key_columns[0].name)
    ]
    for likeness, candidate, table in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness >= 1 or sum(isinstance(value, str) for value in candidate.values) >= MIN_VALUES:
            yield candidate, table


def name_likeness(candidate: KeyCandidate, table: TableInfo) -> float:
    """Return how far the names suggest that a column holds the key of a table; 1 or more speaks for it.

    >>> def keyed(table, column):
    ...     return TableInfo(table, (ColumnInfo(column, "", key=True),))
    >>> name_likeness(KeyCandidate("supply", "goods_id", ()), keyed("goods", "code"))
    2.0
    >>> name_likeness(KeyCandidate("node", "country_name", ()), keyed("country", "country_name"))
    3.0
    >>> (name_likeness(KeyCandidate("flow", "level", ()), keyed("goods", "code")),
    ...     name_likeness(KeyCandidate("a", "id", ()), keyed("b", "id")))
    (0.0, 0.0)
    """
    key = table.key_columns[0].name
    # Words such as id are in the names of most keys and speak for no table.
    telling, about = column_name_words(key) - KEY_WORDS, column_name_words(candidate.column) - KEY_WORDS
    if candidate.column.lower() == key.lower():
        return 3.0 if telling else 0.0
    words = column_name_words(table.name)
    if about and about <= words | telling:
        return 2.0 if about in (words, telling) else 1.0
    return 0.0


def column_name_words(name: str) -> set[str]:
    """Return the words of a name in lower case, without the plural s.

    >>> sorted(column_name_words("homeNode_ids"))
    ['home', 'id', 'node']
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    return {part.lower() if part.lower() in ("goods", "is") else part.lower().removesuffix("s") for part in parts}


NAME_IN_MESSAGE = r""":?\s*["'`]?(?P<name>[\w.$ -]+?)["'`]?(?=$|[\s"'`,!])"""


def close_names(message: str, tables: Sequence[TableInfo], dialect: Dialect) -> str:
    """Return a hint for the name that the engine does not know, '' if there is none.

    >>> from decisor.sandbox.engines.sqlite import DIALECT
    >>> shop = (TableInfo("orders", (ColumnInfo("total", "REAL"),)),)
    >>> close_names("no such table: order", shop, DIALECT), close_names("no such column: o.totl", shop, DIALECT)
    (' Did you mean: orders?', ' Did you mean: total (in orders)?')
    """
    patterns = ((kind, beginning + NAME_IN_MESSAGE) for kind, beginning in dialect.misspelt)
    matches = ((kind, match) for kind, pattern in patterns if (match := re.search(pattern, message, re.I)))
    kind, match = next(matches, ("", None))
    # Some engines suggest a name themselves.
    if match is None or "Did you mean" in message:
        return ""
    names = {table.bare: table.name for table in tables}
    if kind == "column":
        holders: dict[str, list[str]] = {}
        for table in tables:
            for column in table.columns:
                holders.setdefault(column.name, []).append(table.name)
        names = {column: f"{column} (in {', '.join(homes[:4])})" for column, homes in holders.items()}
    lower = {entry.lower(): text for entry, text in names.items()}
    near = difflib.get_close_matches(match["name"].strip().split(".")[-1].lower(), lower, 3, 0.6)
    if not near and kind == "table" and len(names) <= 20:
        return f" There are: {', '.join(names)}." if names else " There are no tables."
    return f" Did you mean: {', '.join(lower[name] for name in near)}?" if near else ""
