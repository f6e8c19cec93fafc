"""Decision QA for the careless policy: the released questions on copies of their databases.

No query computes what the worlds simulate, so each copy has a table ``outcome`` of twelve candidates with what the
decision model computes for them: to the check it is a number that a query brought. The released answer is the best.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from decisor.lab.benchmark import Case
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.databases import load_world
from decisor.lab.dqa.worlds import Scenario
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.exact import Exact
from decisor.types import Option
from planted.careless_worlds import World
from policies.dqa_queries import asked

MOST = 12
"""Candidates of a question. Worse ones, and all but one of several equal ones, are left out."""


@dataclass(frozen=True)
class DqaWorld:
    """A released question with its outcomes."""

    world: World
    allowed: list[str]
    """Candidates, best first."""
    path: Path
    first_by_other: str
    """The first candidate by the wrong measure."""
    first_unordered: str

    def fits(self, kind: str) -> bool:
        """Return whether the error leads to another answer here, and has the rows that it needs."""
        firsts = {"measure read": self.first_by_other, "unordered limit": self.first_unordered}
        # Where a column has no unit, nothing contradicts another one; and no query need name the home of a country.
        unfit = ("unit", "measure queried", *(["home, queried"] if "country" in self.world.joined else []))
        least = 4 if kind in ("no row, stored", "own order") else 2
        return len(self.allowed) >= least and firsts.get(kind) != self.allowed[0] and kind not in unfit


def build_world(case: Case, scenario: Scenario, options: Sequence[Option]) -> World:
    """Write a question as a world of which every candidate is allowed."""
    names, is_locating = asked(str(case.question)).names, scenario == "locating"
    name = "t.trade_node" if is_locating else "s.building_id"
    tables = (
        "trade_node t JOIN country c ON c.country_name = '{country}'"
        if is_locating
        else "supply s JOIN goods g ON g.code = s.goods_id AND g.goods_name = '{goods}'"
    )
    return World(
        tables=f"CREATE TABLE {'trade_node' if is_locating else 'supply'}()",
        make_rows=lambda dice: {},
        question=case.question.text,
        rules=case.question.rules,
        joined=f"{tables.format(**names)} JOIN outcome o ON o.candidate = {name}",
        name=name,
        names=[option.name for option in options],
        invented=["port_of_elsewhere", "new_holm", "vinland_coast"] if is_locating else ["9071", "8802", "9944"],
        measure=("o.profit", "profit") if is_locating else ("o.price", "price"),
        other=("t.outgoing", "outgoing") if is_locating else ("s.max_supply", "max_supply"),
        condition="",
        rule="",
        rule_column="",
        is_allowed=lambda shown: True,
        noun="profit" if is_locating else "price",
        extreme="highest" if is_locating else "lowest",
        unit="",
        wrong_unit="EUR",
        goal="max" if is_locating else "min",
        home=names["home"] if is_locating else names["goods"],
        home_column="c.home_node" if is_locating else "g.goods_name",
    )


async def list_dqa_worlds(data: Path, limit: int | None, folder: Path) -> AsyncIterator[DqaWorld]:
    """Iterate over the released questions whose best candidate is one alone, each with a database in the folder."""
    scenarios: tuple[Scenario, ...] = ("locating", "building")
    for scenario in scenarios:
        bench = DqaBench(data, scenario, "sql", limit, tools="whatif")
        for case in bench.cases():
            async with bench.environment(case) as env:
                decision = await Exact(semantics="released", trials=0)(case.question, Run(ScriptedLLM([]), env))
            assert decision.ranking is not None and decision.answer == case.gold[0], (case.id, decision)
            if len(decision.ranking.ties) > 1:
                continue
            different = {f"{option.outcome:.7g}": option for option in reversed(decision.ranking.options)}
            options = sorted(different.values(), key=decision.ranking.options.index)[:MOST]
            world, path = build_world(case, scenario, options), folder / f"{case.id}.db"
            await load_world(bench.shared.cases[case.id].world.data, f"sqlite:///{path}")
            with closing(sqlite3.connect(path)) as connection, connection:
                kind = "TEXT" if scenario == "locating" else "INTEGER"
                of = "trade_node (trade_node)" if scenario == "locating" else "building (id)"
                columns = f"candidate {kind} PRIMARY KEY REFERENCES {of}, {world.measure[1]} REAL"
                connection.execute(f"CREATE TABLE outcome ({columns})")
                rows = [(option.name, option.outcome) for option in sorted(options, key=lambda one: one.name)]
                connection.executemany("INSERT INTO outcome VALUES (?, ?)", rows)
                queries = (world.query(measure=world.other), world.query(order=False), world.query())
                other, unordered, best = (str(connection.execute(query).fetchone()[0]) for query in queries)
                assert best == case.gold[0], case.id
            yield DqaWorld(world, [option.name for option in options], path, other, unordered)
        await bench.close()
