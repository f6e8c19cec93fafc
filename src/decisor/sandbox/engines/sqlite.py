"""SQLite through APSW (its own build: no fts3_tokenizer): mode=ro, an authorizer, limits, a deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from sqlglot import Expr, exp

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import COMMON, NAME, Dialect, Queries, StatementForms, word_set
from decisor.sandbox.engine import STOPPED, Caps, Engine, token_for
from decisor.sandbox.engines import database_file
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    import apsw
    import apsw.ext

PRAGMAS = "table_info|table_xinfo|foreign_key_list|index_list|index_info|index_xinfo"
COLUMNS = """SELECT m.name, m.type = 'view', c.name, upper(c.type), c."notnull" = 0
    FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
    WHERE m.type IN ('table', 'view') AND c.hidden <> 1 AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' AND """
QUERIES = Queries(
    fingerprint="SELECT type, name, tbl_name, sql FROM sqlite_master",
    columns=f"{COLUMNS} m.rootpage > 0 ORDER BY m.name, c.cid",
    keys="""SELECT m.name, c.name, '', '' FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
        WHERE m.rootpage > 0 AND m.type = 'table' AND c.pk > 0
        UNION ALL SELECT m.name, f."from", f."table", f."to"
        FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
        WHERE m.type = 'table' AND m.rootpage > 0""",
    # Beside a virtual table lie its shadows, such as words_content of words: they hold what it holds.
    definitions="""SELECT s.name, v.name, 'table', 'main', 1 FROM sqlite_master AS s JOIN sqlite_master AS v
        ON v.type = 'table' AND coalesce(v.rootpage, 0) = 0 AND s.type = 'table'
        AND lower(substr(s.name, 1, length(v.name) + 1)) = lower(v.name || '_')
        UNION ALL SELECT name, CASE WHEN coalesce(rootpage, 0) = 0 THEN sql ELSE '' END, type, 'main', 1
        FROM sqlite_master WHERE type IN ('table', 'view')""",
    unbound="SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND coalesce(rootpage, 0) = 0 "
    "ORDER BY type, name",
    bound=f"{COLUMNS} m.name = :name ORDER BY c.cid",
)
TELLING = word_set(
    """pragma_table_info pragma_table_xinfo pragma_table_list pragma_foreign_key_list pragma_index_list
    pragma_index_info"""
)
FUNCTIONS = (
    COMMON
    | TELLING
    | word_set(
        """date time datetime julianday strftime unixepoch timediff typeof unicode glob like likely unlikely likelihood
    group_concat string_agg iif json json_each json_tree json_extract json_patch json_set json_insert
    json_replace json_remove json_group_array json_group_object json_pretty json_error_position max min median
    percentile percentile_cont percentile_disc random abs octet_length soundex concat_ws
    generate_series stddev variance subtype acosh asinh atanh"""
    )
)


def expand_in_table(tree: Expr) -> Expr:
    """Replace ``a IN t`` by ``a IN (SELECT * FROM t)``, as SQLite means it, even if t is a text. sqlglot takes t for a
    column.
    """
    for node in list(tree.find_all(exp.In)):
        place = node.args.get("field")
        if place is None:
            continue
        if isinstance(place, exp.Column):
            table = exp.Table(this=place.this, db=place.args.get("table"), catalog=place.args.get("db"))
        else:
            table = exp.Table(this=place)
        node.set("field", None)
        node.set("query", exp.Subquery(this=exp.select("*").from_(table, copy=False)))
    return tree


DIALECT = Dialect(
    name="sqlite",
    queries=QUERIES,
    functions=FUNCTIONS,
    plan="EXPLAIN QUERY PLAN",
    forms=StatementForms(
        explain=r"EXPLAIN(\s+QUERY\s+PLAN)?(?=\s)",
        about={rf"PRAGMA\s+(?P<verb>{PRAGMAS})\s*\(\s*{NAME}\s*\)": "PRAGMA {verb}({name})"},
        whole={r"PRAGMA\s+table_list": "PRAGMA table_list"},
        linked="PRAGMA foreign_key_list(",
    ),
    closed=frozenset({"temp", "sqlite_temp_master"}),
    reserved=("pragma_", "sqlite_", "dbstat", "fts3tokenize"),
    readable=word_set("sqlite_master sqlite_schema sqlite_sequence") | TELLING,
    catalog_functions=TELLING,
    names_by_text=True,
    prepare=expand_in_table,
    token="decisor_mask({value})",
    fence="LIMIT -1",
    plain_forms=("PRAGMA table_info(", "PRAGMA table_xinfo(", "PRAGMA foreign_key_list(", "PRAGMA table_list"),
    misspelt=(("table", "no such table"), ("column", "no such column"), ("function", "no such function")),
)
FUNCTIONS_DENIED = word_set("load_extension fts3_tokenizer zeroblob randomblob readfile edit")
IN_NO_VIEW = word_set("printf format")
"""Functions whose widths the guard bounds in a query, but cannot bound within a view."""
MAX_VALUE_BYTES = 50_000_000
STEPS_BETWEEN_CHECKS = 1000
BUSY_SHARE = 0.5
"""Share of a query's time that it waits for somebody else's lock."""


@dataclass(eq=False)
class Sqlite:
    """A read-only SQLite database with one connection."""

    db: apsw.Connection
    guard: SqlGuard = field(default_factory=lambda: SqlGuard(DIALECT))
    views: frozenset[str] = frozenset()
    """Names in lower case, by which the authorizer knows that a view asks."""
    deadline: float = float("inf")
    """Time (time.monotonic) at which the progress handler ends a query."""

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        import apsw

        self.deadline = time.monotonic() + caps.seconds
        # SQLite does not call the progress handler while it waits for a lock.
        self.db.set_busy_timeout(int(caps.seconds * 1000 * BUSY_SHARE))
        try:
            try:
                return self._run(statement, parameters, caps)
            except UnicodeDecodeError:
                return self._run_in_bytes(statement, parameters, caps)
        except apsw.InterruptError as error:
            raise ToolError(STOPPED.format(caps.seconds)) from error
        except apsw.AuthError as error:
            raise ToolError(f"Refused: {error}", refused=True) from error
        except UnicodeDecodeError as error:
            raise ToolError("It holds a text that is not UTF-8, and can only be read by a query.") from error
        except (apsw.Error, KeyError) as error:
            raise ToolError(message(error)) from error

    def close(self) -> None:
        self.db.close(True)

    def _run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        columns: list[str] = []
        cursor = self.db.cursor()

        def keep_columns(*_: object) -> bool:
            columns.extend(column[0] for column in cursor.getdescription())
            return True

        cursor.exec_trace = keep_columns  # the only place that tells the columns of a query without rows
        try:
            return build_capped_table(columns, cursor.execute(statement, dict(parameters)), caps)
        finally:
            cursor.close(True)

    def _run_in_bytes(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        """Run a query again with texts as bytes, for texts that are not UTF-8; these are read as Latin-1."""
        query = statement.rstrip().rstrip(";")
        names = self._run(f"SELECT * FROM ({query}) LIMIT 0", parameters, caps).columns
        own = [f"c{number}" for number in range(len(names))]
        cells = ", ".join(f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in own)
        rows = f"WITH decisor_rows({', '.join(own)}) AS ({query})"
        wrapped = f"{rows} SELECT {cells} FROM decisor_rows"
        cursor = self.db.cursor()
        try:
            result = build_capped_table(names, decode_typed_rows(cursor.execute(wrapped, dict(parameters))), caps)
        finally:
            cursor.close(True)
        return replace(result, note="Texts that are not UTF-8 are read as Latin-1.")

    def authorize(self, what: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        """Return whether SQLite may take a step; the default is no.

        SQLite declares table-valued functions (json_each) by an UPDATE of sqlite_master.
        """
        import apsw

        match what:
            case apsw.SQLITE_SELECT | apsw.SQLITE_RECURSIVE:
                fine = True
            case apsw.SQLITE_READ:
                fine = not self.guard.access.hides(one or "")
            case apsw.SQLITE_FUNCTION:
                name = (two or "").lower()
                fine = name not in FUNCTIONS_DENIED and not (name in IN_NO_VIEW and (inner or "").lower() in self.views)
            case apsw.SQLITE_PRAGMA:
                fine = (one or "").lower() in {*PRAGMAS.split("|"), "table_list", "data_version"}
            # The declaration of json_each is such an update; a real one fails on a database opened with mode=ro.
            case apsw.SQLITE_UPDATE:
                fine = one == "sqlite_master"
            case _:
                fine = False
        return apsw.SQLITE_OK if fine else apsw.SQLITE_DENY


def decode_typed_rows(rows: Iterator[tuple[object, ...]]) -> Iterator[list[object]]:
    """Yield rows from pairs of a type and a value, with texts decoded."""
    for row in rows:
        yield [
            decode_text(value) if kind == "text" and isinstance(value, bytes) else value
            for kind, value in zip(row[::2], row[1::2], strict=True)
        ]


def decode_text(data: bytes) -> str:
    """Decode UTF-8, or Latin-1 if the bytes are no UTF-8.

    >>> decode_text("Genève".encode()), decode_text("Genève".encode("latin-1"))
    ('Genève', 'Genève')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def connect_sqlite(url: str, caps: Caps) -> Sqlite:
    """Open a SQLite file. Raises SetupError if there is no such file, or it is no database. Never makes a file."""
    path = database_file(url)
    import apsw
    import apsw.ext
    import sqlglot.dialects.sqlite  # noqa: F401  warm: the first query should not pay for it

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        db = apsw.Connection(f"{path.resolve().as_uri()}?mode=ro", flags=flags)
        # SQLite reads a file only when asked: this finds out that it is no database.
        db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except apsw.Error as error:
        raise SetupError(f"{path} cannot be read as a SQLite database: {message(error)}.") from error
    series = cast("apsw.ext.VirtualModuleCallable", apsw.ext.generate_series_sqlite)
    apsw.ext.make_virtual_module(db, "generate_series", series)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # a misspelt column is no text
    db.execute("PRAGMA temp_store=MEMORY; PRAGMA query_only=ON")
    if caps.policy:
        db.create_scalar_function("decisor_mask", partial(token_for, caps.policy.key), 1, deterministic=True)
    limits = {
        apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
        apsw.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
        apsw.SQLITE_LIMIT_EXPR_DEPTH: 500,
        apsw.SQLITE_LIMIT_COMPOUND_SELECT: 100,
        apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
        apsw.SQLITE_LIMIT_ATTACHED: 0,
        apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 5,
        apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
    }
    for limit, value in limits.items():
        db.limit(limit, value)
    engine = Sqlite(db)
    # After our own pragmas, which it would refuse.
    db.authorizer = engine.authorize
    db.set_progress_handler(lambda: time.monotonic() > engine.deadline, STEPS_BETWEEN_CHECKS)
    try:
        guard = build_guard(DIALECT, caps, lambda query: list(db.execute(query)))
    except apsw.Error as error:
        raise SetupError(f"The schema of {path} cannot be read: {message(error)}.") from error
    engine.views = frozenset(
        str(name).lower() for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")
    )
    engine.guard = guard
    return engine


def message(error: BaseException) -> str:
    return str(error.args[0]) if error.args else type(error).__name__


ENGINE = Engine(
    name="sqlite",
    title="SQLite",
    schemes=("sqlite",),
    form="sql",
    connect=connect_sqlite,
    endings=(".db", ".sqlite", ".sqlite3", ".db3"),
    file=True,
    dialect=DIALECT,
)
