"""What will be read, by the plans of PostgreSQL, MySQL, SQLite and DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Table

VALUE_BYTES = 8
"""Of a value, where the engine does not tell."""


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
    """A loop runs its second part for each row of its first, but for one that keeps what it has read."""
    kind, rows = str(node["Node Type"]), float(node.get("Plan Rows", 1))
    if "Relation Name" in node:
        name = str(node["Relation Name"])
        whole = kind in ("Seq Scan", "Parallel Seq Scan", "Sample Scan")
        every = max(rows, rows_of(name, sizes) or 1.0) if whole else rows
        yield Scan(name, every * times, every * times * int(node.get("Plan Width", 0)) or None)
    parts = node.get("Plans", ())
    for number, part in enumerate(parts):
        looped = kind == "Nested Loop" and number and part["Node Type"] not in ("Materialize", "Memoize")
        again = max(1.0, float(parts[0].get("Plan Rows", 1))) if looped else 1.0
        yield from postgres_node(part, times * again, sizes)


def of_mysql(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """The tables of one SELECT are loops within each other, in order, but for those read once into a buffer."""
    outer: dict[object, float] = {}
    for values in plan.rows:
        row = dict(zip((name.lower() for name in plan.columns), values, strict=True))
        name, times = str(row.get("table") or ""), outer.get(row.get("id"), 1.0)
        rows = float(str(row.get("rows") or 0)) or 1.0
        if name and not name.startswith("<"):
            yield Scan(name, rows if "join buffer" in str(row.get("extra")) else rows * times)
        outer[row.get("id")] = times * rows * float(str(row.get("filtered") or 100)) / 100


def of_sqlite(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """What stands beside each other under one parent are loops within each other; SEARCH takes a row by an index."""
    outer: dict[object, float | None] = {}
    for _, parent, _, detail in plan.rows:
        if match := re.match(r"(SCAN|SEARCH) (?:TABLE )?(\S+)", str(detail)):
            times = outer.get(parent, 1.0)
            rows = rows_in_sqlite(match[2], sizes, statement) if match[1] == "SCAN" else 1.0
            outer[parent] = None if times is None or rows is None else times * rows
            yield Scan(match[2], outer[parent])


def rows_in_sqlite(name: str, sizes: Sizes, statement: str) -> float | None:
    """A view's own name for a table is not known: it may be the largest there is."""
    views = [
        table for table in sizes.values() if table.view and re.search(rf"\b{re.escape(table.bare)}\b", statement, re.I)
    ]
    if name.lower() in sizes or not views or name.startswith("("):
        return rows_of(name, sizes)
    rows = [table.rows for table in sizes.values() if not table.view]
    return None if None in rows else float(max((one or 1 for one in rows), default=1))


def of_duckdb(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
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
            every = max(rows_of(name, sizes) or 1.0, float(about.get("Estimated Cardinality", 1)))
            yield Scan(name, every, every * VALUE_BYTES * max(1, number))


def of_graph(plan: Table) -> Iterator[Scan]:
    """Of each operator that reads nodes or follows relationships, the rows that the engine estimates, in all: of what
    stands within a loop for all its turns."""
    if not plan.rows:
        yield Scan("the graph", None)
    for operator, rows, what in plan.rows:
        if any(part in str(operator) for part in ("Scan", "Seek", "Expand", "Path", "Triadic")):
            yield Scan(str(what) or str(operator), float(rows) if isinstance(rows, int | float) else None)


READERS: Mapping[str, Read] = {
    "postgres": of_postgres,
    "mysql": of_mysql,
    "sqlite": of_sqlite,
    "duckdb": of_duckdb,
}
"""How a plan is read, by the dialect."""
