"""Writes a generated world: as the two released kinds of dump, as an SQLite file, and as an embedded graph."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from decisor.benchmarks.dqa.generator.supply import Supply
from decisor.benchmarks.dqa.generator.tables import Cell, Sheet, sheets
from decisor.benchmarks.dqa.generator.trade import Trade
from decisor.extras import needs

AT_ONCE = 5000  # rows in one graph statement


def write_sql(world: Trade | Supply, path: Path) -> None:
    """One statement per line, strings in double quotes: the released SQL format."""
    parts = sheets(world)
    with path.open("w", encoding="utf-8") as file:
        for sheet in parts:
            file.write(create(sheet) + ";\n\n")
        for sheet in parts:
            file.writelines(_inserts(sheet))


def write_cypher(world: Trade | Supply, path: Path) -> None:
    """One CREATE per line: the released graph format."""
    with path.open("w", encoding="utf-8") as file:
        for sheet in sheets(world):
            line = sheet.graph + ";\n"
            values = ([cypher_literal(value) for value in row] for row in sheet.rows)
            file.writelines(line.format(**dict(zip(sheet.names, row, strict=True))) for row in values)


def write_sqlite(world: Trade | Supply, path: Path) -> None:
    """A new SQLite file; numbers as 64-bit floats."""
    with closing(sqlite3.connect(path)) as database, database:
        for sheet in sheets(world):
            database.execute(create(sheet).replace("FLOAT", "DOUBLE"))
            marks = ", ".join("?" * len(sheet.columns))
            database.executemany(f"INSERT INTO {sheet.name} VALUES ({marks})", sheet.rows)


def write_graph(world: Trade | Supply, path: Path) -> None:
    """A file of the embedded graph engine (kglite)."""
    with needs("kglite", "graph"):
        import kglite

    graph = kglite.KnowledgeGraph()
    for sheet in sheets(world):
        make = "UNWIND $rows AS row " + sheet.graph.format(**{name: f"row.{name}" for name in sheet.names})
        while some := [dict(zip(sheet.names, row, strict=True)) for row in islice(sheet.rows, AT_ONCE)]:
            graph.cypher(make, params={"rows": some})
    graph.save(str(path))


def create(sheet: Sheet) -> str:
    """CREATE TABLE of one sheet, without a semicolon."""
    columns = ", ".join(f"{name} {kind}" for name, kind in sheet.columns)
    return f"CREATE TABLE {sheet.name}({columns}, PRIMARY KEY ({sheet.key}))"


def _inserts(sheet: Sheet) -> Iterator[str]:
    head = f"INSERT INTO {sheet.name}({', '.join(sheet.names)}) VALUES ("
    return (f"{head}{', '.join(map(sql_literal, row))});\n" for row in sheet.rows)


def sql_literal(value: Cell) -> str:
    """
    >>> sql_literal("velmere"), sql_literal(True), sql_literal(0.1)
    ('"velmere"', 'TRUE', '0.1')
    """
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).upper() if isinstance(value, bool) else repr(value)


def cypher_literal(value: Cell) -> str:
    """
    >>> cypher_literal("velmere"), cypher_literal(True), cypher_literal(0.1)
    ('"velmere"', 'true', '0.1')
    """
    return str(value).lower() if isinstance(value, bool) else sql_literal(value)
