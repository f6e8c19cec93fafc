"""How many rows a query will read, asked of the engine before it runs, and refused over a limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Table

LIMIT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<size>[KMGT]?)(?P<bytes>B?)(?:\s*rows)?", re.I)
SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
VALUE_BYTES = 8
"""Of a value, where the engine does not tell."""
SECONDS = 5.0
WAYS = (
    "Let it read less: filter by a column with an index or the key, read one part (a day, a region), join fewer "
    "tables, or add up a smaller table."
)


@dataclass(frozen=True, slots=True)
class MaxScan:
    """At most so many rows, or bytes, that one query reads."""

    number: int
    bytes: bool = False

    def __str__(self) -> str:
        return f"{self.number:,} {'bytes' if self.bytes else 'rows'}"


@dataclass(frozen=True, slots=True)
class Scan:
    """A table that is read: how many of its rows, about, in all."""

    table: str
    rows: float
    width: int = 0


def parse_max_scan(text: str | int) -> MaxScan:
    """
    >>> print(parse_max_scan("5M"), parse_max_scan("1_000 rows"), parse_max_scan("2.5GB"), parse_max_scan(700))
    5,000,000 rows 1,000 rows 2,500,000,000 bytes 700 rows

    Raises:
        SetupError: it is neither rows nor bytes.
    """
    match = LIMIT.fullmatch(str(text).strip())
    if match is None:
        raise SetupError(f"A limit on what a query reads is rows or bytes, such as 5M or 2GB, not {text!r}.")
    number = float(match["number"].replace("_", "").replace(",", ""))
    return MaxScan(int(number * SIZES[match["size"].upper()]), bool(match["bytes"]))


async def check_scan(worker: Worker, statement: str, tables: Sequence[TableInfo], most: MaxScan) -> None:
    """Nothing where the engine cannot tell, or the statement is one that only tells of tables.

    Raises:
        ToolError: refused, with how much it would read and what to do.
    """
    engine = worker.description.name
    if engine not in PLANS or not re.match(r"\s*(?:--[^\n]*\n\s*)*(?:select|with|values|\(|from)", statement, re.I):
        return
    before, read = PLANS[engine]
    caps = replace(worker.caps, rows=10_000, cell_chars=1_000_000, bytes=20_000_000, seconds=SECONDS)
    try:
        plan = await worker.run(f"{before} {statement}", caps=caps)
    except ToolError:
        return  # running it says better what is wrong
    sizes = {name: table for table in tables for name in (table.bare.lower(), table.name.lower())}
    sizes |= {alias: sizes[name] for alias, name in aliases(statement, worker) if name in sizes}
    scans = list(read(plan, sizes))
    cost = sum(scan.rows * (bytes_of(scan, sizes) if most.bytes else 1) for scan in scans)
    if cost > most.number:
        largest = max(scans, key=lambda scan: scan.rows)
        what = "bytes" if most.bytes else "rows"
        raise ToolError(
            f"Not run: it would read about {cost:,.0f} {what} (of {largest.table} {largest.rows:,.0f} rows), and at "
            f"most {most} are allowed. {WAYS}", refused=True,
        )  # fmt: skip


def aliases(statement: str, worker: Worker) -> Iterator[tuple[str, str]]:
    """Of tables, in lower case: what a plan calls them by."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    dialect = worker.description.dialect
    try:
        tree = sqlglot.parse_one(statement, dialect=dialect.name if dialect else None)
    except (SqlglotError, RecursionError):
        return
    for table in tree.find_all(exp.Table):
        if table.alias:
            yield table.alias.lower(), table.name.lower()


def bytes_of(scan: Scan, sizes: Mapping[str, TableInfo]) -> int:
    """Of a row."""
    table = sizes.get(scan.table.lower())
    return scan.width or VALUE_BYTES * (len(table.columns) if table else 1)


def rows_of(name: str, sizes: Mapping[str, TableInfo]) -> int:
    """Of a table, 1 where that is not known."""
    table = sizes.get(name.lower())
    return max(1, table.rows or 1) if table else 1


def of_postgres(plan: Table, sizes: Mapping[str, TableInfo]) -> Iterator[Scan]:
    (root,) = plan.rows[0]
    tree: Any = json.loads(root) if isinstance(root, str) else root
    yield from postgres_node(tree[0]["Plan"], 1.0, sizes)


def postgres_node(node: Mapping[str, Any], times: float, sizes: Mapping[str, TableInfo]) -> Iterator[Scan]:
    """A loop runs its second part for each row of its first, but for one that keeps what it has read."""
    kind, rows = str(node["Node Type"]), float(node.get("Plan Rows", 1))
    if "Relation Name" in node:
        name = str(node["Relation Name"])
        every = max(rows, rows_of(name, sizes)) if kind in ("Seq Scan", "Parallel Seq Scan", "Sample Scan") else rows
        yield Scan(name, every * times, int(node.get("Plan Width", 0)))
    parts = node.get("Plans", ())
    for number, part in enumerate(parts):
        looped = kind == "Nested Loop" and number and part["Node Type"] not in ("Materialize", "Memoize")
        again = max(1.0, float(parts[0].get("Plan Rows", 1))) if looped else 1.0
        yield from postgres_node(part, times * again, sizes)


def of_mysql(plan: Table, sizes: Mapping[str, TableInfo]) -> Iterator[Scan]:
    """The tables of one SELECT are loops within each other, in order, but for those read once into a buffer."""
    outer: dict[object, float] = {}
    for values in plan.rows:
        row = dict(zip((name.lower() for name in plan.columns), values, strict=True))
        name, times = str(row.get("table") or ""), outer.get(row.get("id"), 1.0)
        rows = float(str(row.get("rows") or 0)) or 1.0
        if name and not name.startswith("<"):
            yield Scan(name, rows if "join buffer" in str(row.get("extra")) else rows * times)
        outer[row.get("id")] = times * rows * float(str(row.get("filtered") or 100)) / 100


def of_sqlite(plan: Table, sizes: Mapping[str, TableInfo]) -> Iterator[Scan]:
    """What stands beside each other under one parent are loops within each other; SEARCH takes a row by an index."""
    outer: dict[object, float] = {}
    for _, parent, _, detail in plan.rows:
        if match := re.match(r"(SCAN|SEARCH) (?:TABLE )?(\S+)", str(detail)):
            times = outer.get(parent, 1.0)
            rows = float(rows_of(match[2], sizes)) if match[1] == "SCAN" else 1.0
            yield Scan(match[2], rows * times)
            outer[parent] = times * rows


def of_duckdb(plan: Table, sizes: Mapping[str, TableInfo]) -> Iterator[Scan]:
    """Each scan reads its columns whole: filters come while it reads."""
    trees = [json.loads(str(text)) for _, text in plan.rows if str(text).lstrip().startswith("[")]
    nodes = [node for tree in trees for node in tree]
    while nodes:
        node = nodes.pop()
        nodes += node.get("children", ())
        about = node.get("extra_info", {})
        if isinstance(about, Mapping) and "Table" in about:
            name = str(about["Table"]).rpartition(".")[2].strip('"')
            columns = about.get("Projections", [])
            number = len(columns) if isinstance(columns, list) else 1
            every = max(float(rows_of(name, sizes)), float(about.get("Estimated Cardinality", 1)))
            yield Scan(name, every, VALUE_BYTES * max(1, number))


Read = Callable[[Table, Mapping[str, TableInfo]], Iterator[Scan]]
PLANS: Mapping[str, tuple[str, Read]] = {
    "postgres": ("EXPLAIN (FORMAT JSON)", of_postgres),
    "mysql": ("EXPLAIN FORMAT=TRADITIONAL", of_mysql),
    "sqlite": ("EXPLAIN QUERY PLAN", of_sqlite),
    "duckdb": ("EXPLAIN (FORMAT JSON)", of_duckdb),
}
"""What stands before a query, and how its plan is read, by the engine."""
