"""What will be read, by what warehouses say ahead. Sources: their manuals on EXPLAIN, SHOWPLAN_XML and dry runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from decisor.tools.databases.scan_plans import Read, Scan, Sizes, rows_of
from decisor.types import Table

BYTES_ALONE = ("bigquery",)
"""Dialects whose engines say nothing of rows."""
LEAF = re.compile(
    r"[ :|+-]*(?:Relation (?P<table>[\w.]+)|(?P<other>LocalRelation|Range|HiveTableRelation)\b).*"
    r"Statistics\(sizeInBytes=(?P<size>[\d.E+]+) (?P<unit>[KMGTPE]?i?B)(?:, rowCount=(?P<rows>[\d.E+]+))?\)"
)
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50, "EiB": 2**60}
REDSHIFT = re.compile(
    r"(?:Seq|Index) Scan (?:on|using \S+ on) (?P<table>\S+).*\brows=(?P<rows>\d+) width=(?P<width>\d+)"
)
SHOWPLAN = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"


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


def of_snowflake(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """``EXPLAIN USING JSON``: bytes of the partitions that are read; rows by their share of a table's.

    >>> text = ('{"Operations": [[{"operation": "TableScan", "objects": ["S.PUBLIC.T"], "partitionsTotal": 4,'
    ...         '"partitionsAssigned": 1, "bytesAssigned": 900}]]}')
    >>> list(of_snowflake(Table(("content",), ((text,),)), {}, ""))
    [Scan(table='T', rows=None, bytes=900.0)]
    """
    for one in [one for step in json.loads(str(plan.rows[0][0]))["Operations"] for one in step]:
        if "bytesAssigned" in one:
            name = str((one.get("objects") or [""])[0]).rpartition(".")[2].strip('"')
            share = one.get("partitionsAssigned", 1) / max(1, one.get("partitionsTotal", 1))
            rows = rows_of(name, sizes) if name.lower() in sizes else None
            yield Scan(name, None if rows is None else rows * share, float(one["bytesAssigned"]))


def of_redshift(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """
    >>> line = "  ->  XN Seq Scan on event e  (cost=0.00..87.98 rows=8798 width=17)"
    >>> list(of_redshift(Table(("QUERY PLAN",), ((line,),)), {}, ""))
    [Scan(table='event', rows=8798.0, bytes=149566.0)]
    """
    for (line,) in plan.rows:
        if match := REDSHIFT.search(str(line)):
            name = match["table"].rpartition(".")[2].strip('"')
            rows = max(float(match["rows"]), rows_of(name, sizes) or 1.0)
            yield Scan(name, rows, rows * float(match["width"]))


def of_mssql(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """``SHOWPLAN_XML``: of each operator that reads a table, the rows that it reads, as often as it is started."""
    for step in ElementTree.fromstring(str(plan.rows[0][0])).iter(f"{SHOWPLAN}RelOp"):
        places = [step.find(f"{SHOWPLAN}{kind}/{SHOWPLAN}Object") for kind in ("IndexScan", "TableScan")]
        place = next((one for one in places if one is not None), None)
        if place is not None:
            seeks = "Seek" in step.get("PhysicalOp", "")
            rows = attribute(step, "EstimatedRowsRead", "EstimateRows" if seeks else "TableCardinality", "EstimateRows")
            times = 1 + attribute(step, "EstimateRebinds") + attribute(step, "EstimateRewinds")
            yield Scan(place.get("Table", "").strip("[]"), rows * times, rows * times * attribute(step, "AvgRowSize"))


def attribute(step: ElementTree.Element, *names: str) -> float:
    """The first that is there, 0 where none is."""
    return next((float(step.get(name, "")) for name in names if step.get(name)), 0.0)


def of_bigquery(plan: Table, sizes: Sizes, statement: str) -> Iterator[Scan]:
    """A dry run: the bytes of all that is read."""
    size: Any = plan.rows[0][0]
    yield Scan("", None, float(size))


READERS: Mapping[str, Read] = {
    "trino": of_trino,
    "clickhouse": of_clickhouse,
    "spark": of_spark,
    "databricks": of_spark,
    "snowflake": of_snowflake,
    "redshift": of_redshift,
    "tsql": of_mssql,
    "bigquery": of_bigquery,
}
"""How a plan is read, by the dialect."""
