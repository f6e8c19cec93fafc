"""Jobs for people and checks: what the statements do to real rows, which joins count rows twice, rows turned round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.alone import changed, chosen, execute, row_of
from decisor.tools.databases.sandbox.models.parts import Parts
from decisor.tools.databases.sandbox.models.program import Program
from decisor.tools.databases.sandbox.models.statements import Statement
from decisor.tools.databases.sandbox.values import plain
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb

CELL_CHARS = 60
Side = tuple[str, str]
"""A table and a column."""


def reverse(db: duckdb.DuckDBPyConnection, tables: Mapping[str, tuple[str, ...]]) -> Table:
    """Every table with its rows turned round; a second time as they were."""
    for name in tables:
        db.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT * FROM {quoted(name)} ORDER BY rowid DESC")
    return Table((), ())


def effects(
    db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, columns: Sequence[str], candidate: Sequence[int]
) -> Table:
    """What each statement of the change does for one candidate: its table, rows before, rows that go and that come,
    and the first of each."""
    rows: list[tuple[Value, ...]] = []
    with changed(db, program, (), None), chosen(db, candidate):
        values = row_of(db, columns, candidate) if program.single else {}
        for at, statement in enumerate(parts.change):
            old = f"__old_{at}"
            db.execute(f"CREATE TEMP TABLE {old} AS SELECT * FROM {quoted(statement.target)}")
            execute(db, statement, values)
            gone = difference(db, old, statement.target)
            come = difference(db, statement.target, old)
            count = db.execute(f"SELECT count(*) FROM {old}").fetchall()[0][0]
            rows.append((statement.tree.sql("duckdb"), statement.target, count, *gone, *come))
    return Table(("statement", "table", "rows", "gone", "first_gone", "come", "first_come"), tuple(rows))


def touched(db: duckdb.DuckDBPyConnection, updates: Sequence[Statement]) -> Table:
    """How many rows each UPDATE changes, as the tables are, and how many there are."""
    rows = []
    for statement in updates:
        where = statement.tree.args.get("where")
        here = exp.select("count(*)").from_(statement.tree.this.copy())
        query = here.where(where.this.copy()) if where is not None else here
        count = execute(db, replace(statement, tree=query), {}).fetchall()[0][0]
        rows.append((count, db.execute(f"SELECT count(*) FROM {quoted(statement.target)}").fetchall()[0][0]))
    return Table(("rows", "whole"), tuple(rows))


def difference(db: duckdb.DuckDBPyConnection, one: str, other: str) -> tuple[Value, Value]:
    """How many rows one has and the other has not, and the first as a map."""
    query = f"SELECT * FROM {quoted(one)} EXCEPT ALL SELECT * FROM {quoted(other)}"
    count = db.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0]
    cursor = db.execute(f"SELECT * FROM ({query}) ORDER BY ALL LIMIT 1")
    names = [name for name, *_ in cursor.description or ()]
    first = cursor.fetchall()
    return count, {name: plain(cell, CELL_CHARS) for name, cell in zip(names, first[0], strict=True)} if first else None


def joins(db: duckdb.DuckDBPyConnection, parts: Parts, tables: Mapping[str, tuple[str, ...]]) -> Table:
    """Joins of measures and rules on columns that tell the rows of neither table apart (each row is counted several
    times), or that leave rows of a table out: part, table.column, table.column, what is wrong, how many rows."""
    rows: list[tuple[Value, ...]] = []
    for statement in (*parts.measures.values(), *parts.rules.values()):
        for left, right in set(pairs(statement, tables)):
            counts = [count(db, *side) for side in (left, right)]
            names = [".".join(side) for side in (left, right)]
            if all(every > distinct for every, distinct in counts):
                rows.append((statement.part, *names, "twice", counts[0][0]))
            for (table, column), other in ((left, right), (right, left)):
                lost = db.execute(
                    f"SELECT count(*) FROM {quoted(table)} WHERE {quoted(column)} NOT IN (SELECT {quoted(other[1])} "
                    f"FROM {quoted(other[0])} WHERE {quoted(other[1])} IS NOT NULL) OR {quoted(column)} IS NULL"
                ).fetchall()[0][0]
                if lost and count(db, *other)[0]:
                    rows.append((statement.part, f"{table}.{column}", ".".join(other), "lost", lost))
    return Table(("part", "left", "right", "what", "rows"), tuple(sorted(rows, key=str)))


def count(db: duckdb.DuckDBPyConnection, table: str, column: str) -> tuple[int, int]:
    every, distinct = db.execute(f"SELECT count(*), count(DISTINCT {quoted(column)}) FROM {quoted(table)}").fetchall()[
        0
    ]
    return every, distinct


def pairs(statement: Statement, tables: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Side, Side]]:
    """Columns of two tables of the copy that inner joins with one condition hold equal."""
    for select in statement.tree.find_all(exp.Select):
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            continue
        named = {one.alias_or_name.lower(): one.name.lower() for one in
                 [source.this, *(join.this for join in select.args.get("joins") or [])]
                 if isinstance(one, exp.Table) and one.name.lower() in tables}  # fmt: skip
        for join in select.args.get("joins") or []:
            on = join.args.get("on")
            if join.side or not isinstance(on, exp.EQ):
                continue
            sides = [side_of(one, named, tables) for one in (on.this, on.expression)]
            if sides[0] and sides[1] and sides[0][0] != sides[1][0]:
                yield sides[0], sides[1]


def side_of(tree: exp.Expr, named: Mapping[str, str], tables: Mapping[str, tuple[str, ...]]) -> Side | None:
    if not isinstance(tree, exp.Column):
        return None
    if tree.table:
        table = named.get(tree.table.lower())
        return (table, tree.name) if table else None
    owners = [table for table in set(named.values()) if tree.name.lower() in map(str.lower, tables[table])]
    return (owners[0], tree.name) if len(owners) == 1 else None
