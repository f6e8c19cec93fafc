"""Measure which mistakes planted in right queries the rules on wrong queries find.

    DECISOR_DATA=../shared/data python performance/planted_queries.py [--spider FOLDER] [--show KIND]

Right queries of defog, acme, nl2sql_bugs and Spider's development set (see ``wrong_queries.py``), each changed in one
place by each kind of change that it has a place for: no rule was written by these mistakes. A change that leaves the
rows of defog or acme as they were is none. Prints for each kind the share found, then for each rule the changed and the
right queries that it flags, and its precision with one wrong query per right one. ``--show KIND`` lists the changed
queries of a kind that no rule flags.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import sqlglot
from sqlglot import Expr, exp

import wrong_queries
from decisor.databases.sql import SqlTool
from decisor.errors import ToolError
from head import words
from wrong_queries import DATA, MADE_UP, Case, is_flagged, look_at, read_acme, read_bugs, read_defog, read_spider, share

AGGREGATES: Mapping[type[Expr], type[Expr]] = {
    exp.Sum: exp.Avg,
    exp.Avg: exp.Sum,
    exp.Count: exp.Sum,
    exp.Max: exp.Min,
    exp.Min: exp.Max,
}
SIGNS: Mapping[type[Expr], type[Expr]] = {
    exp.GT: exp.LT,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.LTE: exp.GTE,
    exp.EQ: exp.NEQ,
}
Schema = Mapping[str, list[str]]
"""The columns of each table, in lower case."""


def list_conjuncts(tree: Expr) -> Iterator[Expr]:
    for clause in tree.find_all(exp.Where, exp.Having):
        yield from clause.this.flatten() if isinstance(clause.this, exp.And) else [clause.this]


def lose(node: Expr) -> None:
    """Take a condition out of its AND, or a clause out of its SELECT."""
    parent = node.parent
    if isinstance(parent, exp.And):
        parent.replace(parent.expression if parent.this is node else parent.this)
    elif isinstance(parent, exp.Where | exp.Having):
        parent.pop()
    else:
        node.pop()


def swap_column(column: exp.Column, schema: Schema, chance: random.Random) -> None:
    """Name another column of the table in place of this one: a twin, if it has one."""
    select = column.parent_select
    tables = [table for table in select.find_all(exp.Table) if table.parent_select is select] if select else []
    homes = [table for table in tables if column.table.lower() in ("", table.alias_or_name.lower())]
    names = [name for table in homes for name in schema.get(table.name.lower(), [])]
    rest = [name for name in dict.fromkeys(names) if name != column.name.lower()]
    parts = set(column.name.lower().split("_"))
    twins = [name for name in rest if parts & set(name.split("_"))]
    if rest and column.name.lower() in names:
        column.set("this", exp.to_identifier(chance.choice(twins or rest), quoted=True))


def change_value(literal: exp.Literal, chance: random.Random, values: list[str]) -> None:
    is_number = not literal.is_string and literal.name.isdigit()
    literal.set("this", str(int(literal.name) + 1) if is_number else chance.choice([*values, f"no {literal.name}"]))


def join_idle(select: exp.Select, schema: Schema, chance: random.Random) -> None:
    """Join a table by a column that it shares by name, and use nothing of it."""
    tables = [table for table in select.find_all(exp.Table) if table.parent_select is select]
    known = {table.name.lower() for table in tables}
    pairs = [
        (table, other, name)
        for table in tables
        for other in schema
        for name in schema.get(table.name.lower(), [])
        if other not in known and name in schema[other] and name.endswith("id")
    ]
    if pairs:
        table, other, name = chance.choice(pairs)
        on = exp.EQ(this=exp.column(name, table=table.alias_or_name), expression=exp.column(name, table=other))
        select.join(other, on=on, copy=False)
        for column in select.find_all(exp.Column):
            if not column.table and len(tables) == 1 and column.parent_select is select:
                column.set("table", exp.to_identifier(tables[0].alias_or_name))


def plant(tree: Expr, kind: str, schema: Schema, values: list[str], chance: random.Random) -> None:
    """Make one mistake of a kind in a query, if it has a place for it."""
    keys = {id(column) for join in tree.find_all(exp.Join) for column in join.find_all(exp.Column)}
    columns = [column for column in tree.find_all(exp.Column) if id(column) not in keys and not column.is_star]
    outputs: list[Expr] = [column for column in columns if isinstance(column.parent, exp.Select | exp.Alias)]
    literals = [literal for condition in list_conjuncts(tree) for literal in condition.find_all(exp.Literal)]
    places: dict[str, list[Expr]] = {
        "condition lost": list(list_conjuncts(tree)),
        "output column": outputs,
        "condition column": [column for condition in list_conjuncts(tree) for column in condition.find_all(exp.Column)],
        "join column": [column for join in tree.find_all(exp.Join) for column in join.find_all(exp.Column)],
        "text value": [literal for literal in literals if literal.is_string],
        "number value": [literal for literal in literals if not literal.is_string],
        "idle table": list(tree.find_all(exp.Select)),
        "aggregate": [node for node in tree.find_all(*AGGREGATES) if isinstance(node.this, exp.Column)],
        "aggregate lost": [node for node in tree.find_all(*AGGREGATES) if isinstance(node.this, exp.Column)],
        "direction": list(tree.find_all(exp.Ordered)),
        "order lost": list(tree.find_all(exp.Order)),
        "limit": list(tree.find_all(exp.Limit)),
        "group lost": list(tree.find_all(exp.Group)),
        "distinct lost": list(tree.find_all(exp.Distinct)),
        "sign": [node for condition in list_conjuncts(tree) for node in condition.find_all(*SIGNS)],
        "and or": [node for node in tree.find_all(exp.And, exp.Or) if not node.find_ancestor(exp.Join)],
    }
    if not places[kind]:
        return
    place = chance.choice(places[kind])
    match kind:
        case "output column" | "condition column" | "join column":
            assert isinstance(place, exp.Column)
            swap_column(place, schema, chance)
        case "text value" | "number value":
            assert isinstance(place, exp.Literal)
            change_value(place, chance, [value for value in values if value != place.name])
        case "idle table":
            assert isinstance(place, exp.Select)
            join_idle(place, schema, chance)
        case "aggregate":
            place.replace(AGGREGATES[type(place)](this=place.this))
        case "aggregate lost":
            place.replace(place.this)
        case "direction":
            place.set("desc", not place.args.get("desc"))
        case "limit":
            place.set("expression", exp.Literal.number(int(place.expression.name) + 1))
        case "distinct lost" if isinstance(place.parent, exp.Count):
            place.replace(place.expressions[0])
        case "sign":
            place.replace(SIGNS[type(place)](this=place.this, expression=place.expression))
        case "and or":
            change = exp.Or if isinstance(place, exp.And) else exp.And
            place.replace(change(this=place.this, expression=place.expression))
        case _:
            lose(place)


KINDS = (
    *("condition lost", "output column", "condition column", "join column", "text value", "number value", "idle table"),
    *(
        "aggregate",
        "aggregate lost",
        "direction",
        "order lost",
        "limit",
        "group lost",
        "distinct lost",
        "sign",
        "and or",
    ),
)


async def plant_all(cases: list[Case]) -> list[Case]:
    """Return the changed queries, each with the kind of its mistake; what the engine refuses is left out."""
    planted = []
    for database, group in groupby(sorted(cases, key=lambda case: str(case.database)), key=lambda case: case.database):
        tool = await SqlTool.open(f"sqlite:///{database}")
        schema = {table.name.lower(): [column.name.lower() for column in table.columns] for table in tool.tables}
        trees = [(case, sqlglot.parse_one(case.sql, dialect="sqlite")) for case in group]
        values = [node.name for _, tree in trees for node in tree.find_all(exp.Literal) if node.is_string]
        for case, tree in trees:
            right = None if case.corpus in MADE_UP else (await tool.worker.run(case.sql)).rows
            for kind in KINDS:
                changed = tree.copy()
                plant(changed, kind, schema, values, random.Random(f"{case.corpus} {case.id} {kind}"))
                sql = changed.sql(dialect="sqlite")
                if changed != tree and right != await fetch_rows(tool, sql, right):
                    planted.append(replace(case, sql=sql, is_right=False, mistakes=(kind,), found=[]))
        await tool.close()
    return planted


async def fetch_rows(tool: SqlTool, sql: str, refused: object) -> object:
    """Return the rows of a query, ``refused`` if the engine refuses it; rows that are made up are no rows: True."""
    try:
        rows = (await tool.worker.run(sql)).rows
    except ToolError:
        return refused
    return True if refused is None else rows


async def main(spider: str, shown: str) -> None:
    wrong_queries.ROUNDS = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [*read_bugs(DATA, Path(folder)), *read_defog(DATA), *read_acme(DATA)]
        if spider:
            made = Path(folder) / "spider"
            made.mkdir()
            cases += read_spider(Path(spider), DATA, made)
        cases = [case for case in cases if case.is_right]
        planted = await plant_all(cases)
        await look_at([*cases, *planted])
    for kind in KINDS:
        of_kind = [case for case in planted if case.mistakes == (kind,)]
        rules = Counter(name for case in of_kind for name in {pitfall.kind for pitfall in case.found}).most_common(4)
        found = sum(bool(case.found) for case in of_kind)
        print(f"{kind:18} {found:4} of {len(of_kind):4} {share(found, len(of_kind))}  {dict(rules)}")
        for case in of_kind if kind == shown else ():
            if not case.found:
                print(f"  {case.corpus} {case.question} | {case.rules} | {case.sql}")
    for name in sorted({pitfall.kind for case in [*cases, *planted] for pitfall in case.found} | {"wrong", "ask"}):
        hits = sum(is_flagged(case, {name}) for case in planted)
        alarms = [case.corpus for case in cases if is_flagged(case, {name})]
        rates = hits / len(planted), len(alarms) / len(cases)
        precision = share(round(1e6 * rates[0]), round(1e6 * sum(rates)))
        print(f"{name:20} planted {hits:4}, right {len(alarms):3} {dict(Counter(alarms))}, precision {precision}")
    found = sum(bool(case.found) for case in planted)
    print(f"all: {found} of {len(planted)} planted, {sum(bool(case.found) for case in cases)} of {len(cases)} right")


if __name__ == "__main__":
    arguments = words(__doc__)
    spider, shown = (
        arguments[arguments.index(option) + 1] if option in arguments else "" for option in ("--spider", "--show")
    )
    asyncio.run(main(spider, shown))
