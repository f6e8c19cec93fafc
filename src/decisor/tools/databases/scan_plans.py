"""What will be read, by the plans of PostgreSQL, MySQL, SQLite, DuckDB, Trino, ClickHouse and Spark."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Table

VALUE_BYTES = 8
"""Of a value, where the engine does not tell."""
ROUNDS = 100.0
"""So often the recursive part of a WITH counts, and so many rows what SQLite says nothing of has."""
LOOKUP_COST, ROW_COST = 10.0, 0.02
"""Of PostgreSQL: that a look into an index costs at most, and a row that is read in its order at least."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A table that is read: how many of its rows and bytes, about, in all; None where the engine does not tell."""

    table: str
    rows: float | None
    bytes: float | None = None


Sizes: TypeAlias = "Mapping[str, TableInfo]"
Read = Callable[[Table, Sizes, str], Iterator[Scan]]


def rows_of(name: str, sizes: Sizes) -> float | None:
    """Of a table, None where that is not known; 1 of a part of the statement that is none."""
    table = sizes.get(name.lower())
    return 1.0 if table is None else None if table.rows is None else max(1.0, float(table.rows))


def of_postgres(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    (root,) = plan.rows[0]
    tree: Any = json.loads(root) if isinstance(root, str) else root
    yield from postgres_node(tree[0]["Plan"], 1.0, sizes)


def postgres_node(node: Mapping[str, Any], times: float, sizes: Sizes) -> Iterator[Scan]:
    """A loop runs its second part for each row of its first, but for one that keeps what it has read; a subplan runs
    for each row that its node looks at."""
    kind, parts = str(node["Node Type"]), node.get("Plans", ())
    seen = seen_in_postgres(node, kind, sizes)
    if "Relation Name" in node:
        width = int(node.get("Plan Width", 0))
        yield Scan(str(node["Relation Name"]), seen * times, seen * times * width or None)
    for number, part in enumerate(parts):
        again = 1.0
        if part.get("Parent Relationship") == "SubPlan":
            again = 1.0 if f"hashed {part.get('Subplan Name')}" in str(node) else seen
        elif number and kind == "Recursive Union":
            again = ROUNDS
        elif number and kind == "Nested Loop" and part["Node Type"] not in ("Materialize", "Memoize"):
            again = rows_in_postgres(parts[0])
        yield from postgres_node(part, times * again, sizes)


def rows_in_postgres(node: Mapping[str, Any]) -> float:
    """That it gives."""
    return max(1.0, float(node.get("Plan Rows", 1)))


def seen_in_postgres(node: Mapping[str, Any], kind: str, sizes: Sizes) -> float:
    """The rows that it looks at: more than it gives, where it has a filter."""
    rows, parts = rows_in_postgres(node), node.get("Plans", ())
    if "Relation Name" in node:
        every = rows_of(str(node["Relation Name"]), sizes) or 1.0
        if kind == "Bitmap Heap Scan":
            return max(rows, sum(map(rows_in_bitmap, parts)))
        if kind in ("Seq Scan", "Parallel Seq Scan", "Sample Scan") or ("Filter" in node and "Index Cond" not in node):
            return max(every, rows)
        paid = (float(node.get("Total Cost", 0)) - LOOKUP_COST) / ROW_COST if "Filter" in node else rows
        return max(rows, min(every, paid))
    most = [rows_in_postgres(part) for part in parts if part.get("Parent Relationship") not in ("SubPlan", "InitPlan")]
    return max(rows, math.prod(most) if kind == "Nested Loop" else max(most, default=1.0))


def rows_in_bitmap(node: Mapping[str, Any]) -> float:
    parts = node.get("Plans", ())
    return sum(map(rows_in_bitmap, parts)) if parts else float(node.get("Plan Rows", 1))


def of_mysql(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """The tables of one SELECT are loops within each other, in order, but for those read once into a buffer. A SELECT
    that depends on another one runs for each of its rows."""
    rows = [dict(zip(map(str.lower, plan.columns), map(str, values), strict=True)) for values in plan.rows]
    again = {row["id"] for row in rows if "RECURSIVE" in row["select_type"].upper() or "Recursive" in row["extra"]}
    runs: dict[str, float] = {}
    outer: dict[str, float] = {}
    for row in rows:
        name, number, kind = row["table"], row["id"], row["select_type"]
        if number not in runs:
            times = max(outer.values(), default=1.0) if kind.startswith(("DEPENDENT", "UNCACHEABLE")) else 1.0
            runs[number] = outer[number] = times * (ROUNDS if number in again else 1.0)
        seen = float(row["rows"]) if row["rows"] != "None" else 1.0
        if row["type"] in ("ALL", "index"):  # a LIMIT lowers what it tells
            seen = max(seen, rows_of(name, sizes) or 1.0)
        if name != "None" and not name.startswith("<"):
            yield Scan(name, seen * (runs if "join buffer" in row["extra"] else outer)[number])
        share = float(row["filtered"]) / 100 if row.get("filtered", "None") != "None" else 1.0
        outer[number] *= max(seen, 1.0) * share


def of_sqlite(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """What stands beside each other under one parent are loops within each other; SEARCH takes a row by an index, or
    all where it asks for more or less than a value."""
    runs: dict[object, float | None] = {}
    outer: dict[object, float | None] = {}
    for number, parent, _, detail in plan.rows:
        text, base = str(detail), runs.get(parent, 1.0)
        times = outer.get(parent, base)
        runs[number] = times if text.startswith(("CORRELATED", "MULTI-INDEX")) else base
        if text.startswith("RECURSIVE"):
            runs[number] = product(base, ROUNDS)
        if match := re.match(r"(SCAN|SEARCH) (?:TABLE )?(.+)", text):
            name, every = table_in_sqlite(match[2], sizes, statement)
            if "USING AUTOMATIC" in text:  # an index that is made for this query, of all rows
                yield Scan(name, product(base, every))
            whole = match[1] == "SCAN" or "(" not in text or re.search(r"[<>]", text)
            outer[parent] = product(times, every if whole else 1.0)
            yield Scan(name, outer[parent])


def product(times: float | None, rows: float | None) -> float | None:
    return None if times is None or rows is None else times * rows


def table_in_sqlite(text: str, sizes: Sizes, statement: str) -> tuple[str, float | None]:
    """The name with which a line of the plan goes on, and how many rows it has. A view's own name for a table is not
    known: it may be the largest there is."""
    lower = f"{text.lower()} "
    if names := [name for name in sizes if lower.startswith(f"{name} ")]:
        rows = [rows_of(name, sizes) for name in names]
        return max(names, key=len), largest(rows)
    name = text.partition(" ")[0]
    views = (table.bare for table in sizes.values() if table.view)
    if name.startswith("(") or not any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", statement, re.I) for one in views):
        return name, 1.0 if text == "CONSTANT ROW" else ROUNDS
    return name, largest([float(table.rows or 1) if table.rows is not None else None
                          for table in sizes.values() if not table.view])  # fmt: skip


def largest(rows: Sequence[float | None]) -> float | None:
    """None where one of them is not known."""
    known = [one for one in rows if one is not None]
    return max(known, default=1.0) if len(known) == len(rows) else None


def of_duckdb(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """Each scan reads its columns whole: filters come while it reads."""
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
            every = times * max(rows_of(name, sizes) or 1.0, float(about.get("Estimated Cardinality", 1)))
            yield Scan(name, every, every * VALUE_BYTES * max(1, number))


def of_graph(plan: Table) -> Iterator[Scan]:
    """Of each operator that reads nodes or follows relationships, the rows that the engine estimates, in all: of what
    stands within a loop for all its turns."""
    if not plan.rows:
        yield Scan("the graph", None)
    for operator, rows in plan.rows:
        if any(part in str(operator) for part in ("Scan", "Seek", "Expand", "Path", "Triadic")):
            yield Scan(str(operator).partition("@")[0], float(rows) if isinstance(rows, int | float) else None)


LEAF = re.compile(
    r"[ :|+-]*(?:Relation (?P<table>[\w.]+)|(?P<other>LocalRelation|Range|HiveTableRelation)\b).*"
    r"Statistics\(sizeInBytes=(?P<size>[\d.E+]+) (?P<unit>[KMGTPE]?i?B)(?:, rowCount=(?P<rows>[\d.E+]+))?\)"
)
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}


def of_trino(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """``EXPLAIN (TYPE IO)``: each table once, after what its files need not be opened for."""
    for one in json.loads(str(plan.rows[0][0]))["inputTableColumnInfos"]:
        about, name = one["estimate"], str(one["table"]["schemaTable"]["table"])
        rows = number(about.get("outputRowCount"))
        yield Scan(name, rows_of(name, sizes) if rows is None else rows, number(about.get("outputSizeInBytes")))


def number(value: object) -> float | None:
    """None for "NaN", and where it is not there.

    >>> number(3), number("NaN"), number(None)
    (3.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and value == value else None


def of_clickhouse(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """``EXPLAIN ESTIMATE`` tells of tables of the MergeTree family; of others the catalog does. What counts all rows of
    a table reads none."""
    import sqlglot
    from sqlglot import exp

    names = set()
    for _, name, _, rows, _ in plan.rows:
        names.add(str(name).lower())
        yield Scan(str(name), float(str(rows)))
    tree = sqlglot.parse_one(statement, dialect="clickhouse")
    filters = tree.find(exp.Where, exp.Join, exp.Group, exp.Subquery, exp.CTE, exp.SetOperation)
    counts = isinstance(tree, exp.Select) and all(isinstance(one.unalias(), exp.Count) for one in tree.selects)
    for table in () if counts and not filters else tree.find_all(exp.Table):
        if table.name.lower() in sizes and table.name.lower() not in names:
            yield Scan(table.name, rows_of(table.name, sizes))


def of_spark(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """``EXPLAIN COST``: the leaves of the optimized plan, with the bytes of their files; rows where they were analyzed.

    >>> line = "+- Relation spark_catalog.shop.t[id#1L] parquet, Statistics(sizeInBytes=2.0 KiB, rowCount=1.50E+3)"
    >>> list(of_spark(Table(("plan",), ((line,),)), {}, ""))
    [Scan(table='t', rows=1500.0, bytes=2048.0)]
    """
    for line in str(plan.rows[0][0]).partition("== Physical Plan ==")[0].splitlines():
        if match := LEAF.match(line):
            name = (match["table"] or match["other"]).rpartition(".")[2]
            known = rows_of(name, sizes) if name.lower() in sizes else None
            yield Scan(
                name, float(match["rows"]) if match["rows"] else known, float(match["size"]) * UNITS[match["unit"]]
            )


READERS: Mapping[str, Read] = {
    "postgres": of_postgres,
    "mysql": of_mysql,
    "sqlite": of_sqlite,
    "duckdb": of_duckdb,
    "trino": of_trino,
    "clickhouse": of_clickhouse,
    "spark": of_spark,
}
"""How a plan is read, by the dialect."""
