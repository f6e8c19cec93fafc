"""How much a query will read, asked of the engine before it runs, and refused over a limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from decisor.errors import SetupError, ToolError
from decisor.max_scan import MaxScan
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.scan_plans import READERS, VALUE_BYTES, Scan, of_graph
from decisor.tools.databases.sql_tables import TableInfo

SECONDS = 5.0
SERVER_SECONDS = 20.0
WAYS = (
    "Let it read less: filter by a column with an index or the key, read one part (a day, a region), join fewer "
    "tables, or add up a smaller table."
)


def check_limits(engine: Engine, name: str, limits: Sequence[MaxScan]) -> None:
    """Raises SetupError where the engine does not tell ahead what they limit. ``name``: of the source."""
    if not limits:
        return
    if not engine.plans and (engine.dialect is None or not engine.dialect.plan):
        raise SetupError(
            f"{engine.title} does not tell ahead what a query reads, so no --max-scan can hold for {name}: leave it "
            "out, and give the account a limit on the server."
        )
    if engine.plans and any(most.bytes for most in limits):
        raise SetupError(f"{engine.title} tells ahead how many rows a query reads, not bytes: limit those of {name}, "
                         "as in --max-scan 5M.")  # fmt: skip


async def check_scan(worker: Worker, statement: str, tables: Sequence[TableInfo], limits: Sequence[MaxScan]) -> None:
    """Nothing where the statement only tells of tables.

    Raises:
        ToolError: the engine's complaint about the statement; or it is refused, with how much it would read and what to
            do.
    """
    engine = worker.description
    assert engine.dialect is not None
    plan = await worker.plan(statement, wide(worker))
    if plan is None:
        return
    scans = list(READERS[engine.dialect.name](plan, sizes_of(statement, tables, engine.dialect), statement))
    for most in limits:
        check_costs(engine, scans, [cost_of(scan, most, tables) for scan in scans], most)


async def check_graph_scan(worker: Worker, statement: str, limits: Sequence[MaxScan]) -> None:
    """As ``check_scan``, of a graph."""
    if limits and (plan := await worker.plan(statement, wide(worker))):
        scans = list(of_graph(plan))
        for most in limits:
            check_costs(worker.description, scans, [scan.rows for scan in scans], most)


def wide(worker: Worker) -> Caps:
    """For a plan."""
    seconds = SERVER_SECONDS if worker.description.warehouse else SECONDS
    return replace(worker.caps, rows=10_000, cell_chars=1_000_000, bytes=20_000_000, seconds=seconds)


def check_costs(engine: Engine, scans: Sequence[Scan], costs: Sequence[float | None], most: MaxScan) -> None:
    """Raises ToolError (refused) where they are more, or not known."""
    if unknown := [scan.table for scan, cost in zip(scans, costs, strict=True) if cost is None]:
        raise ToolError(
            f"Not run: {engine.title} does not tell how many {most.unit} it would read of {unknown[0]}, and at most "
            f"{most} are allowed. Use another table, or ask for its statistics to be collected, or a limit in bytes.",
            refused=True,
        )
    known = [cost or 0.0 for cost in costs]
    if (cost := sum(known)) > most.number:
        part, largest = max(zip(known, scans, strict=True), key=lambda pair: pair[0])
        of = f" (of {largest.table} {part:,.0f} {most.unit})" if largest.table else ""
        raise ToolError(
            f"Not run: it would read about {cost:,.0f} {most.unit}{of}, and at most {most} are allowed. {WAYS}",
            refused=True,
        )


def cost_of(scan: Scan, most: MaxScan, tables: Sequence[TableInfo]) -> float | None:
    """In rows or bytes, as ``most`` is; None where that is not known."""
    if not most.bytes or scan.bytes is not None:
        return scan.bytes if most.bytes else scan.rows
    table = next((one for one in tables if scan.table.lower() in (one.bare.lower(), one.name.lower())), None)
    return None if scan.rows is None else scan.rows * VALUE_BYTES * (len(table.columns) if table else 1)


def sizes_of(statement: str, tables: Sequence[TableInfo], dialect: Dialect) -> Mapping[str, TableInfo]:
    """Tables by what a plan calls them by, in lower case: their names, and what the statement calls them. Where that is
    several of them, the largest."""
    named = [(name, table) for table in tables for name in (table.bare.lower(), table.name.lower())]
    own = dict(sorted(named, key=lambda pair: size_of(pair[1])))
    aliases = [(alias, own[name]) for alias, name in names_in(statement, dialect) if name in own]
    return dict(sorted([*own.items(), *aliases], key=lambda pair: size_of(pair[1])))


def size_of(table: TableInfo) -> float:
    """In rows; one that is not known is the largest."""
    return math.inf if table.rows is None else table.rows


def names_in(statement: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Of the tables of a statement, in lower case: what it calls them, and their names."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, dialect=dialect.name)
    except (SqlglotError, RecursionError):
        return
    for table in tree.find_all(exp.Table):
        yield (table.alias or table.name).lower(), table.name.lower()
