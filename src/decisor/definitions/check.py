"""Definitions held against the database that they are about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal, assert_never

from decisor.definitions.format import (
    Calendar,
    Definition,
    Definitions,
    Dimension,
    Entity,
    Example,
    Join,
    Metric,
    Reading,
    ValueWords,
    title,
)
from decisor.definitions.measure import Rows, cardinality, doubles, number, split
from decisor.errors import ToolError
from decisor.finding import Finding
from decisor.plurals import counted
from decisor.tools.databases.sandbox.audit import asked_by

NO_SQL = "needs an SQL database; of a graph, a metric is a whole query"


async def check(definitions: Definitions, rows: Rows) -> list[Finding]:
    """What is wrong, in the order of the file. A database that fails is told as a finding of what was asked of it."""
    with asked_by("decisor"):
        findings = [one async for each_one in each(definitions) async for one in of_one(each_one, definitions, rows)]
    return sorted([*findings, *shared_names(definitions)], key=lambda one: one.line)


async def each(definitions: Definitions) -> AsyncIterator[Definition]:
    for one in definitions:
        yield one


async def of_one(one: Definition, definitions: Definitions, rows: Rows) -> AsyncIterator[Finding]:
    if rows.form != "sql" and not (isinstance(one, Metric) and one.query):
        if isinstance(one, Metric | Dimension | Entity | Join | ValueWords):
            yield Finding(0, definitions.line(one), f"{title(one)} {NO_SQL}")
        return
    try:
        async for words, key, kind in faults(one, rows):
            yield Finding(0, definitions.line(one, key), f"{title(one)} {words}", kind)
    except ToolError as error:
        yield Finding(0, definitions.line(one), f"{title(one)}: {' '.join(str(error).split())}")


Fault = tuple[str, str, Literal["error", "doubt"]]


async def faults(one: Definition, rows: Rows) -> AsyncIterator[Fault]:
    """Words, the key that they are about, and how grave it is. Raises ToolError where a statement fails."""
    match one:
        case Metric():
            async for fault in of_metric(one, rows):
                yield fault
        case Dimension():
            if not one.source and "." not in one.sql:
                yield "needs from: the rows that sql is computed over", "", "error"
                return
            source = one.source or split([one.sql], rows)[0]
            await rows.fetch(f"SELECT {one.sql} AS {rows.quoted(one.name)} FROM {source} LIMIT 1", 1)
        case Entity():
            table, columns = rows.quoted(one.table), [rows.quoted(name) for name in one.key]
            if count := await doubles(columns, table, rows):
                yield f"has the key {', '.join(one.key)}, and rows share {count:,} of its values", "key", "error"
            empty = " OR ".join(f"{column} IS NULL" for column in columns)
            if count := await number(f"SELECT count(*) AS n FROM {table} WHERE {empty}", rows):
                yield f"has the key {', '.join(one.key)}, and it is empty in {counted(count, 'row')}", "key", "error"
        case Join():
            measured, alone = await cardinality(one, rows)
            if measured != one.cardinality:
                wrong = any(here == "many" and claim == "one" for here, claim in zip(
                    measured.split(" to "), one.cardinality.split(" to "), strict=True))  # fmt: skip
                yield f"is {measured} as measured, not {one.cardinality}", "cardinality", "error" if wrong else "doubt"
            if alone:
                yield f"leaves {counted(alone, 'row')} on the left without a partner", "left", "doubt"
        case ValueWords():
            table, (column,) = split([one.name], rows)
            for stored in one.words:
                text = stored.replace("'", "''")
                if not await number(f"SELECT count(*) AS n FROM {table} WHERE {column} = '{text}'", rows):
                    yield f"has {stored!r}, which no row has", stored, "error"
        case Example():
            if one.sql:
                await rows.call(one.sql)
        case Calendar() | Reading():
            return
        case _:
            assert_never(one)


async def of_metric(one: Metric, rows: Rows) -> AsyncIterator[Fault]:
    observation = await rows.call(one.whole())
    key = "query" if one.query else "sql"
    if len(observation.records) != 1 or len(observation.records[0].fields) != 1:
        count = observation.total or len(observation.records)
        yield f"gives {counted(count, 'row')}, and a metric is one number: is there an aggregate in it?", key, "error"
        return
    (value,) = observation.records[0].fields.values()
    if value is None:
        yield "is empty: no row is left, or its columns are", key, "doubt"
    elif isinstance(value, bool) or (not isinstance(value, int | float) and not is_number(str(value))):
        yield f"gives {str(value)[:40]!r}, which is no number", key, "error"
    if one.grain and one.source and (count := await doubles(one.grain, one.source, rows, one.where)):
        yield (f"says that a row is one {', '.join(one.grain)}, and rows share {count:,} of its values: a join "
               "multiplies them", "grain", "error")  # fmt: skip
    if one.date and one.source:
        await rows.fetch(f"SELECT min({one.date}) AS first_day FROM {one.source}", 1)


def is_number(text: str) -> bool:
    """Also one that a driver gives as text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def shared_names(definitions: Definitions) -> Iterator[Finding]:
    """Two that one word could mean."""
    owners: dict[str, Definition] = {}
    for one in definitions:
        names = one.words if isinstance(one, Reading) else (one.name, *getattr(one, "synonyms", ()))
        if isinstance(one, Join | ValueWords | Example):
            continue
        for name in names:
            other = owners.setdefault(f"{type(one).__name__} {name.replace('_', ' ').lower()}", one)
            if other is not one:
                yield Finding(
                    0, definitions.line(one), f"{title(one)} is called {name!r}, and so is {title(other)}", "doubt"
                )
