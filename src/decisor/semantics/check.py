"""Check definitions on the database that they are about.

Each definition is run or measured through the sandbox: whether columns tell rows apart, how many rows of one table
belong to how many of another, whether a metric gives one number. A database that fails is a finding about the
definition, not an error. Of a graph only metrics that are whole queries are checked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, Protocol, assert_never

from decisor.errors import ToolError
from decisor.sandbox.process import set_asker
from decisor.semantics.definitions import (
    ApprovedExample,
    Calendar,
    Cardinality,
    Definition,
    Definitions,
    Dimension,
    Entity,
    Join,
    Metric,
    Reading,
    Relation,
    ValueWords,
    section_title,
)
from decisor.system.structured_files import Finding
from decisor.system.wording import format_count
from decisor.types import Observation, Table


class SandboxedDatabase(Protocol):
    """A database behind the sandbox, with its schema."""

    @property
    def name(self) -> str: ...

    @property
    def form(self) -> str: ...

    @property
    def tables(self) -> Sequence[Relation]: ...

    def quoted(self, name: str) -> str: ...

    async def call(self, text: str) -> Observation: ...

    async def fetch(self, query: str, max_rows: int = ..., trusted: bool = ...) -> Table: ...


async def run_count_query(query: str, rows: SandboxedDatabase) -> int:
    """Run a query that counts and return its number. Raises ToolError if the query fails."""
    table = await rows.fetch(query, 1)
    value = table.rows[0][0] if table.rows else 0
    return int(value) if isinstance(value, int | float) else 0


async def count_shared_values(
    columns: Sequence[str], source: str, rows: SandboxedDatabase, where: Sequence[str] = ()
) -> int:
    """Count the values of ``columns`` that several rows of ``source`` share.

    0 means that the columns tell the rows apart. columns, source and where are SQL.

    Raises:
        ToolError: they are no columns of these rows.
    """
    names = ", ".join(columns)
    condition = f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
    groups = f"SELECT count(*) AS n FROM {source}{condition} GROUP BY {names} HAVING count(*) > 1"
    return await run_count_query(f"SELECT count(*) AS n FROM ({groups}) AS shared", rows)


async def measure_cardinality(join: Join, rows: SandboxedDatabase) -> tuple[Cardinality, int]:
    """Measure the cardinality of a join, and count the rows on the left without a partner.

    Raises:
        ToolError: a table or column is not there.
    """
    sides = []
    for places in (join.left, join.right):
        table, columns = quote_column_places(places, rows)
        # NULL joins nothing, so rows without a value make no side "many".
        filled = [f"{column} IS NOT NULL" for column in columns]
        sides.append("many" if await count_shared_values(columns, table, rows, filled) else "one")
    (left, own), (right, there) = quote_column_places(join.left, rows), quote_column_places(join.right, rows)
    equal = " AND ".join(f"a.{one} = b.{other}" for one, other in zip(own, there, strict=True))
    filled = [f"a.{column} IS NOT NULL" for column in own]
    alone = (
        f"SELECT count(*) AS n FROM {left} AS a WHERE {' AND '.join(filled)} AND NOT EXISTS "
        f"(SELECT 1 AS one FROM {right} AS b WHERE {equal})"
    )
    words: Cardinality = f"{sides[0]} to {sides[1]}"  # type: ignore[assignment]
    return words, await run_count_query(alone, rows)


def quote_column_places(places: Sequence[str], rows: SandboxedDatabase) -> tuple[str, list[str]]:
    """Convert places TABLE.COLUMN of one table to the quoted names of the table and its columns."""
    table = places[0].rpartition(".")[0]
    return rows.quoted(strip_name_quotes(table)), [
        rows.quoted(strip_name_quotes(place.rpartition(".")[2])) for place in places
    ]


def strip_name_quotes(name: str) -> str:
    return name.strip().strip('"`[]')


NO_SQL = "needs an SQL database; of a graph, a metric is a whole query"


async def check_definitions(definitions: Definitions, rows: SandboxedDatabase) -> list[Finding]:
    """Check definitions on their database; return the findings in the order of the file.

    If a statement fails, its error is a finding about the definition.
    """
    findings: list[Finding] = []
    # The audit shows these queries as the program's own and not as a person's.
    with set_asker("decisor"):
        for definition in definitions:
            findings += [finding async for finding in check_definition(definition, definitions, rows)]
    return sorted([*findings, *find_shared_names(definitions)], key=lambda one: one.line)


async def check_definition(
    one: Definition, definitions: Definitions, rows: SandboxedDatabase
) -> AsyncIterator[Finding]:
    if rows.form != "sql" and not (isinstance(one, Metric) and one.query):
        if isinstance(one, Metric | Dimension | Entity | Join | ValueWords):
            yield Finding(0, definitions.line(one), f"{section_title(one)} {NO_SQL}")
        return
    try:
        async for words, key, kind in find_definition_faults(one, rows):
            yield Finding(0, definitions.line(one, key), f"{section_title(one)} {words}", kind)
    except ToolError as error:
        yield Finding(0, definitions.line(one), f"{section_title(one)}: {' '.join(str(error).split())}")


Fault = tuple[str, str, Literal["error", "doubt"]]


async def find_definition_faults(one: Definition, rows: SandboxedDatabase) -> AsyncIterator[Fault]:
    """Yield the faults of a definition: words, the key concerned, and the severity.

    Raises ToolError if a statement fails.
    """
    match one:
        case Metric():
            async for fault in find_metric_faults(one, rows):
                yield fault
        case Dimension():
            if not one.source and "." not in one.sql:
                yield "needs from: the rows that sql is computed over", "", "error"
                return
            source = one.source or quote_column_places([one.sql], rows)[0]
            await rows.fetch(f"SELECT {one.sql} AS {rows.quoted(one.name)} FROM {source} LIMIT 1", 1)
        case Entity():
            table, columns = rows.quoted(one.table), [rows.quoted(name) for name in one.key]
            if count := await count_shared_values(columns, table, rows):
                yield f"has the key {', '.join(one.key)}, and rows share {count:,} of its values", "key", "error"
            empty = " OR ".join(f"{column} IS NULL" for column in columns)
            if count := await run_count_query(f"SELECT count(*) AS n FROM {table} WHERE {empty}", rows):
                yield (
                    f"has the key {', '.join(one.key)}, and it is empty in {format_count(count, 'row')}",
                    "key",
                    "error",
                )
        case Join():
            measured, alone = await measure_cardinality(one, rows)
            if measured != one.cardinality:
                # "Many" where the file says "one" repeats rows and is an error; the other way round it is a doubt.
                wrong = any(
                    here == "many" and claim == "one"
                    for here, claim in zip(measured.split(" to "), one.cardinality.split(" to "), strict=True)
                )
                yield f"is {measured} as measured, not {one.cardinality}", "cardinality", "error" if wrong else "doubt"
            if alone:
                yield f"leaves {format_count(alone, 'row')} on the left without a partner", "left", "doubt"
        case ValueWords():
            table, (column,) = quote_column_places([one.name], rows)
            for stored in one.words:
                text = stored.replace("'", "''")
                if not await run_count_query(f"SELECT count(*) AS n FROM {table} WHERE {column} = '{text}'", rows):
                    yield f"has {stored!r}, which no row has", stored, "error"
        case ApprovedExample():
            if one.sql:
                await rows.call(one.sql)
        case Calendar() | Reading():
            return
        case _:
            assert_never(one)


async def find_metric_faults(one: Metric, rows: SandboxedDatabase) -> AsyncIterator[Fault]:
    observation = await rows.call(one.full_query())
    key = "query" if one.query else "sql"
    if len(observation.records) != 1 or len(observation.records[0].fields) != 1:
        count = observation.total or len(observation.records)
        yield (
            f"gives {format_count(count, 'row')}, and a metric is one number: is there an aggregate in it?",
            key,
            "error",
        )
        return
    (value,) = observation.records[0].fields.values()
    if value is None:
        yield "is empty: no row is left, or its columns are", key, "doubt"
    elif isinstance(value, bool) or (not isinstance(value, int | float) and not is_number_text(str(value))):
        yield f"gives {str(value)[:40]!r}, which is no number", key, "error"
    if one.grain and one.source and (count := await count_shared_values(one.grain, one.source, rows, one.where)):
        yield (
            f"says that a row is one {', '.join(one.grain)}, and rows share {count:,} of its values: a join "
            "multiplies them",
            "grain",
            "error",
        )
    if one.date and one.source:
        # The query only has to run, which shows that the date is a column of these rows.
        await rows.fetch(f"SELECT min({one.date}) AS first_day FROM {one.source}", 1)


def is_number_text(text: str) -> bool:
    """Return whether a text is a number, for some drivers give numbers as text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def find_shared_names(definitions: Definitions) -> Iterator[Finding]:
    """Yield a finding for each two definitions of one kind that share a name or a synonym."""
    owners: dict[str, Definition] = {}
    for one in definitions:
        names = one.words if isinstance(one, Reading) else one.names
        if isinstance(one, Join | ValueWords | ApprovedExample):
            continue
        for name in names:
            other = owners.setdefault(f"{type(one).__name__} {name.replace('_', ' ').lower()}", one)
            if other is not one:
                yield Finding(
                    0,
                    definitions.line(one),
                    f"{section_title(one)} is called {name!r}, and so is {section_title(other)}",
                    "doubt",
                )
