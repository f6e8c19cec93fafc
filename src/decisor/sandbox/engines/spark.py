"""Spark through Spark Connect: ``sc://HOST:15002/DATABASE;token=...``. The guard keeps it to reading; statements end on
the server with the session's operations."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import COMMON, INFORMATION_SCHEMA, Dialect, word_set
from decisor.sandbox.engine import SECONDS, Caps, ConnectionLost, Engine, Warehouse
from decisor.sandbox.engines.sqlalchemy import FILES, INSPECTED, Row, check_policy_support
from decisor.sandbox.sql_guard import SqlGuard, build_guard
from decisor.sandbox.wire import build_capped_table
from decisor.types import Table, Value

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

URL = re.compile(r"(?:sc|spark)://(?P<host>[^/;]+)/?(?P<schema>[^;]*)(?P<options>;.*)?")
LOST = re.compile(
    r"UNAVAILABLE|INVALID_HANDLE|SESSION_(CHANGED|CLOSED|NOT_FOUND)|failed to connect|Socket closed", re.I
)
COLUMN = re.compile(r"^ \|-- (?P<name>.+): (?P<type>.+?) \(nullable = (?P<nullable>true|false)\)$", re.M)
KIND = re.compile(r"^Type: (\w+)$", re.M)
VIEW = re.compile(r"^View Text: (.*?)^View Original Text: ", re.M | re.S)
DIALECT = Dialect(
    name="spark",
    queries=INSPECTED,
    plan="EXPLAIN COST",
    schemas=True,
    functions=COMMON
    | word_set(
        """add_months aggregate any_value approx_percentile array array_contains array_distinct array_join array_max
        array_min array_position array_size array_sort bool_and bool_or bround cardinality ceil collect_list
        collect_set conv corr count_if covar_pop covar_samp crc32 date_add date_diff date_format date_from_unix_date
        date_part date_sub date_trunc datediff dayofmonth dayofweek dayofyear element_at elt endswith exists explode
        filter find_in_set flatten forall from_json from_unixtime get_json_object grouping grouping_id
        histogram_numeric inline isnan isnotnull isnull json_object_keys kurtosis last_day levenshtein listagg
        locate make_date make_timestamp map map_keys map_values max_by md5 min_by mode months_between next_day nvl
        nvl2 percentile percentile_approx pmod posexplode quarter range regexp_extract regexp_extract_all
        regexp_replace regr_slope repeat reverse rint sequence sha1 sha2 size skewness slice sort_array soundex
        split split_part stack startswith std stddev_pop string_agg struct substring_index timestampdiff to_json
        to_unix_timestamp transform translate trunc try_add try_cast try_divide try_subtract try_to_number
        try_to_timestamp typeof unix_date unix_timestamp var_pop var_samp weekday weekofyear width_bucket zip_with"""
    ),
    catalogs={**INFORMATION_SCHEMA, **FILES},
    function_schemas=word_set("-"),
    checks_views=True,
    quote="`",
    other_catalogs=True,
    token="concat('masked_', left(sha2(concat('{key}', CAST({value} AS STRING)), 256), 16))",
    misspelt=(("table", "table or view"), ("column", "with name")),
)


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table or view of Spark's catalog."""

    name: str
    schema: str
    """'' for the default one."""
    view: bool
    query: str | None
    """Query of a view; None if it is not told, or for a table."""
    columns: tuple[tuple[str, str, bool], ...]
    """Name, type and whether it may be NULL."""


@dataclass(eq=False)
class Spark:
    """A Spark server with one session, opened anew after it was lost."""

    url: str
    guard: SqlGuard
    session: SparkSession | None
    tables: list[SparkTable] = field(default_factory=list, repr=False)
    """Its catalog at the time of opening."""

    def check(self, statement: str) -> str:
        return self.guard.check(statement)

    def run(self, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
        if (catalog := self.catalog(statement)) is not None:
            return build_capped_table(
                [f"c{number}" for number in range(len(catalog[0]) if catalog else 0)], catalog, caps
            )
        try:
            # A session that was lost is not opened anew by the client itself.
            if self.session is None:
                self.session = open_spark_session(self.url)
            frame = self.session.sql(statement, dict(parameters) or None)
            return build_capped_table(frame.columns, frame.limit(caps.rows + 1).toLocalIterator(), caps)
        except Exception as error:  # of Spark, gRPC and Arrow
            if LOST.search(str(error)):
                self.session = None
                raise ConnectionLost(f"Spark cannot be reached: {spark_complaint(error)}") from error
            raise ToolError(spark_complaint(error)) from error

    def catalog(self, statement: str) -> list[tuple[object, ...]] | None:
        """Return the rows for one of the words in ``INSPECTED``, None for a statement."""
        if statement == INSPECTED.columns:
            return list(column_rows(self.tables))
        if statement == INSPECTED.definitions:
            return list(definition_rows(self.tables))
        return [] if statement in (INSPECTED.keys, INSPECTED.tables) else None

    def cancel(self) -> None:
        if self.session is not None:
            self.session.interruptAll()

    def close(self) -> None:
        if self.session is not None:
            with contextlib.suppress(Exception):
                self.session.stop()


def read_tables(session: SparkSession) -> list[SparkTable]:
    """Read the tables of all databases, as text, one statement a database."""
    here = session.catalog.currentDatabase()
    others = [str(row[0]) for row in session.sql("SHOW DATABASES").collect() if str(row[0]) != here]
    tables = []
    for schema in (here, *others):
        quoted = schema.replace("`", "``")
        for _, name, temporary, text in session.sql(f"SHOW TABLE EXTENDED IN `{quoted}` LIKE '*'").collect():
            # A temporary view belongs to the session and is listed for every database; the copies are dropped below.
            tables.append(parse_spark_table(str(name), "" if temporary or schema == here else schema, str(text)))
    return list(dict.fromkeys(tables))


def parse_spark_table(name: str, schema: str, text: str) -> SparkTable:
    """Parse Spark's text about a table or view.

    >>> text = "Type: VIEW\\nView Text: SELECT a\\nView Original Text: x\\nSchema: root\\n"
    >>> parse_spark_table("v", "", text + " |-- a: integer (nullable = true)\\n")
    SparkTable(name='v', schema='', view=True, query='SELECT a', columns=(('a', 'integer', True),))
    """
    kind = KIND.search(text)
    view = bool(kind and kind[1].endswith("VIEW"))
    query = VIEW.search(text) if view else None
    columns = tuple((one["name"], one["type"], one["nullable"] == "true") for one in COLUMN.finditer(text))
    return SparkTable(name, schema, view, query[1].strip() if query else None, columns)


def column_rows(tables: Sequence[SparkTable]) -> Iterator[Row]:
    for relation in sorted(tables, key=lambda one: (one.view, one.schema != "", one.schema, one.name)):
        name = f"{relation.schema}.{relation.name}" if relation.schema else relation.name
        for column, kind, nullable in relation.columns:
            yield name, relation.view, column, kind, nullable, relation.schema, ""


def definition_rows(tables: Sequence[SparkTable]) -> Iterator[Row]:
    for relation in tables:
        kind = "view" if relation.view else "table"
        yield relation.name, relation.query if relation.view else "", kind, relation.schema, not relation.schema


def spark_complaint(error: Exception) -> str:
    """Return Spark's complaint on one line, without the plan of the query.

    A complaint of gRPC is reduced to its details.
    """
    details = re.search(r'details = "(.*?)"\n', str(error))
    text = details[1] if details else re.split(r"; line \d+ pos \d+|\n+(?:JVM stacktrace|== SQL|'\w+ )", str(error))[0]
    return " ".join(text.split()) or type(error).__name__


def open_spark_session(url: str) -> SparkSession:
    """Open a session. Raises SetupError if the URL is not Spark's, or an error of Spark or gRPC if nobody answers."""
    os.environ.setdefault("SPARK_HOME", os.devnull)  # the client alone has none, and its import ends the process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it knows no pandas 3 yet, which nothing here gives it
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

    parts = URL.fullmatch(url)
    if parts is None:
        raise SetupError("The URL of Spark is sc://HOST:15002, or sc://HOST:15002/DATABASE;token=...")
    session = SparkSession(connection=f"sc://{parts['host']}/{parts['options'] or ''}")
    # The client's own policy retries far longer than a query may take.
    session.client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=100, max_backoff=500)])
    if parts["schema"]:
        session.catalog.setCurrentDatabase(parts["schema"])
    return session


def connect_spark(url: str, caps: Caps) -> Spark:
    """Open a Spark server. Raises SetupError if it does not answer, or a policy cannot be kept."""
    import sqlglot.dialects.spark  # noqa: F401  warm: the first query should not pay for it

    check_policy_support("Spark", caps, DIALECT)
    try:
        session = open_spark_session(url)
        database = Spark(url, SqlGuard(DIALECT), session, read_tables(session))
    except (SetupError, ModuleNotFoundError):
        raise
    except Exception as error:  # of Spark, gRPC and Arrow
        raise SetupError(f"Spark cannot be reached: {spark_complaint(error)}") from error
    database.guard = build_guard(DIALECT, caps, lambda query: database.catalog(query) or ())
    return database


ENGINE = Engine(
    name="spark",
    title="Spark",
    schemes=("sc", "spark"),
    form="sql",
    connect=connect_spark,
    server=True,
    heap=True,
    probe="SELECT 1",
    dialect=DIALECT,
    extra="spark",
    seconds=SECONDS,
    warehouse=Warehouse(
        cancels=True,
        role=(
            "-- Spark has no accounts of its own: let its server run as a user who may only read the files;",
            "-- where a catalog with rights is behind it (Unity, Hive with Ranger, Polaris), grant there:",
            "GRANT USE SCHEMA, SELECT ON SCHEMA shop TO `decisor`;",
        ),
        tried="Spark 4.2",
        opening=120.0,
    ),
)
