"""Estimates how much a query will read, from the engine's plan before it runs, and refuses it over a limit.

The plans of PostgreSQL, MySQL, SQLite, DuckDB, Trino, ClickHouse, Spark and graph engines each have a reader
(``READERS``, by dialect). Amounts are estimates, in rows or bytes. A query whose amount is not known is refused too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from decisor.databases.schema import TableInfo
from decisor.errors import SetupError, ToolError
from decisor.runtime.budget import MaxScan
from decisor.sandbox.dialect import Dialect, parse_sql
from decisor.sandbox.engine import Engine
from decisor.sandbox.process import Worker
from decisor.types import Table

VALUE_BYTES = 8
"""Of a value, if the engine does not tell."""
ROUNDS = 100.0
"""Runs that the recursive part of a WITH counts, and rows of anything whose size SQLite does not tell."""
LOOKUP_COST, ROW_COST = 10.0, 0.02
"""Costs in PostgreSQL: at most of a look into an index, and at least of a row that is read in its order."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A table that is read, with about how many rows and bytes in all; None if the engine does not tell."""

    table: str
    rows: float | None
    bytes: float | None = None


Sizes: TypeAlias = "Mapping[str, TableInfo]"
Read = Callable[[Table, Sizes, str], Iterator[Scan]]


def estimated_rows(name: str, sizes: Sizes) -> float | None:
    """Return the rows of a table, None if they are not known; 1 for a part of the statement."""
    table = sizes.get(name.lower())
    return 1.0 if table is None else None if table.rows is None else max(1.0, float(table.rows))


def read_postgres_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of PostgreSQL's plan."""
    (root,) = plan.rows[0]
    tree: Any = json.loads(root) if isinstance(root, str) else root
    yield from read_postgres_node(tree[0]["Plan"], 1.0, sizes)


def read_postgres_node(node: Mapping[str, Any], times: float, sizes: Sizes) -> Iterator[Scan]:
    """Yield the scans of a node of PostgreSQL's plan and its parts.

    A loop runs its second part for each row of its first, unless that part keeps the rows it has read. A subplan runs
    for each row that its node reads.
    """
    kind, parts = str(node["Node Type"]), node.get("Plans", ())
    rows = rows_read_in_postgres(node, kind, sizes)
    if "Relation Name" in node:
        width = int(node.get("Plan Width", 0))
        yield Scan(str(node["Relation Name"]), rows * times, rows * times * width or None)
    for number, part in enumerate(parts):
        runs = 1.0
        if part.get("Parent Relationship") == "SubPlan":
            # A hashed SubPlan is read once into a hash table; the condition of its node calls it so.
            runs = 1.0 if f"hashed {part.get('Subplan Name')}" in str(node) else rows
        elif number and kind == "Recursive Union":
            runs = ROUNDS
        elif number and kind == "Nested Loop" and part["Node Type"] not in ("Materialize", "Memoize"):
            runs = rows_in_postgres(parts[0])
        yield from read_postgres_node(part, times * runs, sizes)


def rows_in_postgres(node: Mapping[str, Any]) -> float:
    """Return the number of rows that a node yields."""
    return max(1.0, float(node.get("Plan Rows", 1)))


def rows_read_in_postgres(node: Mapping[str, Any], kind: str, sizes: Sizes) -> float:
    """Return the number of rows that a node reads: more than it yields, if it has a filter."""
    rows, parts = rows_in_postgres(node), node.get("Plans", ())
    if "Relation Name" in node:
        table_rows = estimated_rows(str(node["Relation Name"]), sizes) or 1.0
        if kind == "Bitmap Heap Scan":
            return max(rows, sum(map(rows_in_bitmap, parts)))
        # A sequential scan reads all rows, whatever its filter lets through.
        if kind in ("Seq Scan", "Parallel Seq Scan", "Sample Scan") or ("Filter" in node and "Index Cond" not in node):
            return max(table_rows, rows)
        # The cost of an index scan with a filter bounds how many rows it can have read.
        paid = (float(node.get("Total Cost", 0)) - LOOKUP_COST) / ROW_COST if "Filter" in node else rows
        return max(rows, min(table_rows, paid))
    # SubPlans and InitPlans bring no rows to this node; only its inputs do.
    most = [rows_in_postgres(part) for part in parts if part.get("Parent Relationship") not in ("SubPlan", "InitPlan")]
    return max(rows, math.prod(most) if kind == "Nested Loop" else max(most, default=1.0))


def rows_in_bitmap(node: Mapping[str, Any]) -> float:
    parts = node.get("Plans", ())
    return sum(map(rows_in_bitmap, parts)) if parts else float(node.get("Plan Rows", 1))


def read_mysql_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of MySQL's plan.

    The tables of one SELECT are loops within each other, in order, except those read once into a buffer. A SELECT that
    depends on another runs for each of its rows.
    """
    rows = [dict(zip(map(str.lower, plan.columns), map(str, values), strict=True)) for values in plan.rows]
    recursive = {row["id"] for row in rows if "RECURSIVE" in row["select_type"].upper() or "Recursive" in row["extra"]}
    runs: dict[str, float] = {}
    outer: dict[str, float] = {}
    for row in rows:
        name, number, kind = row["table"], row["id"], row["select_type"]
        if number not in runs:
            times = max(outer.values(), default=1.0) if kind.startswith(("DEPENDENT", "UNCACHEABLE")) else 1.0
            runs[number] = outer[number] = times * (ROUNDS if number in recursive else 1.0)
        seen = float(row["rows"]) if row["rows"] != "None" else 1.0
        if row["type"] in ("ALL", "index"):  # a LIMIT lowers what it tells
            seen = max(seen, estimated_rows(name, sizes) or 1.0)
        # Names such as <derived2> or <union1,2> are results of other SELECTs and no tables.
        if name != "None" and not name.startswith("<"):
            yield Scan(name, seen * (runs if "join buffer" in row["extra"] else outer)[number])
        share = float(row["filtered"]) / 100 if row.get("filtered", "None") != "None" else 1.0
        outer[number] *= max(seen, 1.0) * share


def read_sqlite_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of SQLite's plan.

    Lines under one parent are loops within each other. SEARCH takes a row by an index, or all rows if it asks for more
    or less than a value.
    """
    runs: dict[object, float | None] = {}
    outer: dict[object, float | None] = {}
    for number, parent, _, detail in plan.rows:
        text, base = str(detail), runs.get(parent, 1.0)
        times = outer.get(parent, base)
        runs[number] = times if text.startswith(("CORRELATED", "MULTI-INDEX")) else base
        if text.startswith("RECURSIVE"):
            runs[number] = product_or_none(base, ROUNDS)
        if match := re.match(r"(SCAN|SEARCH) (?:TABLE )?(.+)", text):
            name, size = find_sqlite_table(match[2], sizes, statement)
            if "USING AUTOMATIC" in text:  # an index that is made for this query, of all rows
                yield Scan(name, product_or_none(base, size))
            # A search for a value, (id=?), finds single rows; a range, (id>?), may hold all of them.
            reads_all = match[1] == "SCAN" or "(" not in text or re.search(r"[<>]", text)
            outer[parent] = product_or_none(times, size if reads_all else 1.0)
            yield Scan(name, outer[parent])


def product_or_none(times: float | None, rows: float | None) -> float | None:
    return None if times is None or rows is None else times * rows


def find_sqlite_table(text: str, sizes: Sizes, statement: str) -> tuple[str, float | None]:
    """Return the table that a line of SQLite's plan names, and its rows.

    A view's own name for a table is not known: it may be the largest table.
    """
    lower = f"{text.lower()} "
    if names := [name for name in sizes if lower.startswith(f"{name} ")]:
        rows = [estimated_rows(name, sizes) for name in names]
        return max(names, key=len), largest_or_none(rows)
    name = text.partition(" ")[0]
    views = (table.bare for table in sizes.values() if table.view)
    if name.startswith("(") or not any(
        re.search(rf"(?<!\w){re.escape(view)}(?!\w)", statement, re.I) for view in views
    ):
        return name, 1.0 if text == "CONSTANT ROW" else ROUNDS
    return name, largest_or_none(
        [float(table.rows or 1) if table.rows is not None else None for table in sizes.values() if not table.view]
    )


def largest_or_none(rows: Sequence[float | None]) -> float | None:
    """Return the largest number, None if one is not known."""
    known = [number for number in rows if number is not None]
    return max(known, default=1.0) if len(known) == len(rows) else None


def read_duckdb_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of DuckDB's plan. Each scan reads its columns whole, for filters work while it reads."""
    trees = [json.loads(str(text)) for _, text in plan.rows if str(text).lstrip().startswith("[")]
    nodes = [(node, 1.0) for tree in trees for node in tree]
    while nodes:
        node, times = nodes.pop()
        for number, part in enumerate(node.get("children", ())):
            nodes.append((part, times * ROUNDS if number and node.get("name") == "REC_CTE" else times))
        about = node.get("extra_info", {})
        if isinstance(about, Mapping) and "Table" in about:
            name = str(about["Table"]).rpartition(".")[2].strip('"')
            columns = about.get("Projections", [])
            number = len(columns) if isinstance(columns, list) else 1
            rows = times * max(estimated_rows(name, sizes) or 1.0, float(about.get("Estimated Cardinality", 1)))
            yield Scan(name, rows, rows * VALUE_BYTES * max(1, number))


def read_graph_plan(plan: Table) -> Iterator[Scan]:
    """Yield the scans of a graph engine's plan: operators that read nodes or follow relationships.

    The rows are the engine's estimate for all turns of a loop together.
    """
    if not plan.rows:
        # A plan without operators tells no amount, and an unknown amount is refused.
        yield Scan("the graph", None)
    for operator, rows in plan.rows:
        if any(part in str(operator) for part in ("Scan", "Seek", "Expand", "Path", "Triadic")):
            yield Scan(str(operator).partition("@")[0], float(rows) if isinstance(rows, int | float) else None)


LEAF = re.compile(
    r"[ :|+-]*(?:Relation (?P<table>[\w.]+)|(?P<other>LocalRelation|Range|HiveTableRelation)\b).*"
    r"Statistics\(sizeInBytes=(?P<size>[\d.E+]+) (?P<unit>[KMGTPE]?i?B)(?:, rowCount=(?P<rows>[\d.E+]+))?\)"
)
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}


def read_trino_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of Trino's ``EXPLAIN (TYPE IO)``, each table once. Files that need not be opened are left out."""
    for source in json.loads(str(plan.rows[0][0]))["inputTableColumnInfos"]:
        estimate, name = source["estimate"], str(source["table"]["schemaTable"]["table"])
        rows = finite_number(estimate.get("outputRowCount"))
        size = finite_number(estimate.get("outputSizeInBytes"))
        yield Scan(name, estimated_rows(name, sizes) if rows is None else rows, size)


def finite_number(value: object) -> float | None:
    """Return a number as a float; None for "NaN" and for a missing value.

    >>> finite_number(3), finite_number("NaN"), finite_number(None)
    (3.0, None, None)
    """
    # NaN is unequal to itself.
    return float(value) if isinstance(value, int | float) and value == value else None


def read_clickhouse_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of ClickHouse's ``EXPLAIN ESTIMATE``.

    It covers tables of the MergeTree family; the others are taken from the catalog. A count of all rows of a table
    reads none.
    """
    import sqlglot
    from sqlglot import exp

    names = set()
    for _, name, _, rows, _ in plan.rows:
        names.add(str(name).lower())
        yield Scan(str(name), float(str(rows)))
    tree = sqlglot.parse_one(statement, dialect="clickhouse")
    filters = tree.find(exp.Where, exp.Join, exp.Group, exp.Subquery, exp.CTE, exp.SetOperation)
    counts = isinstance(tree, exp.Select) and all(isinstance(item.unalias(), exp.Count) for item in tree.selects)
    for table in () if counts and not filters else tree.find_all(exp.Table):
        if table.name.lower() in sizes and table.name.lower() not in names:
            yield Scan(table.name, estimated_rows(table.name, sizes))


def read_spark_plan(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Yield the scans of Spark's ``EXPLAIN COST``.

    They are the leaves of the optimized plan, with the bytes of their files; rows if the tables were analyzed.

    >>> line = "+- Relation spark_catalog.shop.t[id#1L] parquet, Statistics(sizeInBytes=2.0 KiB, rowCount=1.50E+3)"
    >>> list(read_spark_plan(Table(("plan",), ((line,),)), {}, ""))
    [Scan(table='t', rows=1500.0, bytes=2048.0)]
    """
    for line in str(plan.rows[0][0]).partition("== Physical Plan ==")[0].splitlines():
        if match := LEAF.match(line):
            name = (match["table"] or match["other"]).rpartition(".")[2]
            known = estimated_rows(name, sizes) if name.lower() in sizes else None
            yield Scan(
                name, float(match["rows"]) if match["rows"] else known, float(match["size"]) * UNITS[match["unit"]]
            )


READERS: Mapping[str, Read] = {
    "postgres": read_postgres_plan,
    "mysql": read_mysql_plan,
    "sqlite": read_sqlite_plan,
    "duckdb": read_duckdb_plan,
    "trino": read_trino_plan,
    "clickhouse": read_clickhouse_plan,
    "spark": read_spark_plan,
}
"""How a plan is read, by the dialect."""


SECONDS = 5.0
SERVER_SECONDS = 20.0
ADVICE = (
    "Let it read less: filter by a column with an index or the key, read one part (a day, a region), join fewer "
    "tables, or add up a smaller table."
)


def check_limits(engine: Engine, name: str, limits: Sequence[MaxScan]) -> None:
    """Raise SetupError if the engine does not estimate ahead the amounts that are limited. name: of the source."""
    if not limits:
        return
    if not engine.plans and (engine.dialect is None or not engine.dialect.plan):
        raise SetupError(
            f"{engine.title} does not tell ahead what a query reads, so no --max-scan can hold for {name}: leave it "
            "out, and give the account a limit on the server."
        )
    if engine.plans and any(most.bytes for most in limits):
        raise SetupError(
            f"{engine.title} tells ahead how many rows a query reads, not bytes: limit those of {name}, "
            "as in --max-scan 5M."
        )


async def check_scan(
    worker: Worker, statement: str, limits: Sequence[MaxScan], tables: Sequence[TableInfo] = ()
) -> None:
    """Raise ToolError if a query would read more than its limits. A statement that only describes tables passes.

    Args:
        tables: named by the statement; of a graph the plan tells enough.

    Raises:
        ToolError: the engine's complaint about the statement; or it is refused, with how much it would read and what to
            do.
    """
    engine = worker.description
    seconds = SERVER_SECONDS if engine.warehouse else SECONDS
    caps = replace(worker.caps, rows=10_000, cell_chars=1_000_000, bytes=20_000_000, seconds=seconds)
    if not limits or (plan := await worker.plan(statement, caps)) is None:
        return
    if engine.dialect is None:
        scans = list(read_graph_plan(plan))
    else:
        sizes = tables_by_plan_name(statement, tables, engine.dialect)
        scans = list(READERS[engine.dialect.name](plan, sizes, statement))
    for most in limits:
        check_costs(engine, scans, [cost_of_scan(scan, most, tables) for scan in scans], most)


def check_costs(engine: Engine, scans: Sequence[Scan], costs: Sequence[float | None], most: MaxScan) -> None:
    """Raise ToolError (refused) if the costs are above the limit, or not known."""
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
            f"Not run: it would read about {cost:,.0f} {most.unit}{of}, and at most {most} are allowed. {ADVICE}",
            refused=True,
        )


def cost_of_scan(scan: Scan, most: MaxScan, tables: Sequence[TableInfo]) -> float | None:
    """Return the rows or bytes of a scan, as ``most`` counts; None if they are not known."""
    if not most.bytes or scan.bytes is not None:
        return scan.bytes if most.bytes else scan.rows
    table = next((table for table in tables if scan.table.lower() in (table.bare.lower(), table.name.lower())), None)
    return None if scan.rows is None else scan.rows * VALUE_BYTES * (len(table.columns) if table else 1)


def tables_by_plan_name(statement: str, tables: Sequence[TableInfo], dialect: Dialect) -> Mapping[str, TableInfo]:
    """Return the tables by the names that a plan may use, in lower case.

    These are their own names, and their aliases in the statement. If several tables have one of them, the largest.
    """
    named = [(name, table) for table in tables for name in (table.bare.lower(), table.name.lower())]
    # Sorted by size, for a dict keeps the last entry: of two tables with one name the largest counts.
    by_name = dict(sorted(named, key=lambda pair: row_count_or_infinity(pair[1])))
    aliases = [(alias, by_name[name]) for alias, name in list_table_aliases(statement, dialect) if name in by_name]
    return dict(sorted([*by_name.items(), *aliases], key=lambda pair: row_count_or_infinity(pair[1])))


def row_count_or_infinity(table: TableInfo) -> float:
    """Return the number of rows of a table, infinity if it is not known."""
    return math.inf if table.rows is None else table.rows


def list_table_aliases(statement: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield the alias and the name of each table of a statement, in lower case."""
    from sqlglot import exp

    tree = parse_sql(statement, dialect.name)
    for table in tree.find_all(exp.Table) if tree else ():
        yield (table.alias or table.name).lower(), table.name.lower()
