"""Questions about a generated world that have one best decision, with how hard each is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from decisor.benchmarks.dqa.generator.arrays import Floats, Ints, rows_of
from decisor.benchmarks.dqa.generator.supply import Balance, Supply, prices, settle
from decisor.benchmarks.dqa.generator.trade import Trade, distances, profit, simulate

CELLS = 4_000_000  # numbers per array while candidates are computed


@dataclass(frozen=True)
class Difficulty:
    """``differ``: candidates that change the outcome. ``margin``: distance from the best to the second,
    relative to the larger.

    ``hops``: edges from the best node to home, or stages of inputs behind the goods. ``inputs``: rows that matter.
    """

    differ: int
    margin: float
    hops: int
    inputs: int


@dataclass(frozen=True)
class WorldQuestion:
    """A subject (country or goods, by number), its best decision as published, and how hard it is to find."""

    subject: int
    answer: str | int
    difficulty: Difficulty


def trade_questions(world: Trade, rng: np.random.Generator, margin: float) -> Iterator[WorldQuestion]:
    """One question per country, in random order, where one node is better than all others by at least ``margin``."""
    for country in rng.permutation(len(world.countries)).tolist():
        home = int(world.home[country])
        steps = distances(world, home)
        reaches = [step >= 0 for step in steps]
        rows = [int(r) for r in np.flatnonzero(world.of == country) if world.at[r] != home]
        still = profit(world, simulate(world), country)
        profits = [profit(world, simulate(world, row, reaches), country) for row in rows]
        if len(rows) < 2 or still <= 0:
            continue
        ranked = sorted(zip(profits, rows, strict=True), reverse=True)
        best, second = ranked[0], max(ranked[1][0], still)
        gap = (best[0] - second) / best[0]
        if gap < margin:
            continue
        upstream = np.array(reaches)
        node = int(world.at[best[1]])
        inputs = int(upstream[world.at].sum() + upstream[world.source].sum())
        differ = sum(abs(value - still) > 1e-9 * still for value in profits)
        yield WorldQuestion(country, world.nodes[node], Difficulty(differ, gap, steps[node], inputs))


def supply_questions(world: Supply, rng: np.random.Generator, margin: float) -> Iterator[WorldQuestion]:
    """One question per goods, in random order, where one building that makes it is better than all by ``margin``."""
    best, second, who, differ = _two_best(world)
    for goods in rng.permutation(len(world.goods)).tolist():
        building = int(who[goods])
        makers = world.supplier[world.supplied == goods]
        gap = float((second[goods] - best[goods]) / second[goods])
        if len(makers) < 2 or building not in makers or gap < margin or best[goods] >= world.current_price[goods]:
            continue
        hops, inputs = _behind(world, goods)
        yield WorldQuestion(goods, int(world.ids[building]), Difficulty(int(differ[goods]), gap, hops, inputs))


def _two_best(world: Supply) -> tuple[Floats, Floats, Ints, Ints]:
    """Per goods: the two lowest prices, the building of the lowest, and how many buildings change the price."""
    count, buildings = len(world.goods), len(world.ids)
    balance, step = Balance.of(world), max(CELLS // len(world.goods), 1)
    now = world.current_price
    two, who = np.full((2, count), np.inf), np.zeros((2, count), dtype=np.int64)
    differ = np.zeros(count, dtype=np.int64)
    for first in range(0, buildings, step):
        some = np.arange(first, min(first + step, buildings))
        demand, supply, _ = settle(world, balance, some)
        price = prices(world, demand, supply)
        differ += (np.abs(price - now) > 1e-9 * now).sum(0)
        every = np.concatenate([two, price])
        names = np.concatenate([who, np.broadcast_to(some[:, None], price.shape)])
        lowest = _lowest(every)
        two, who = np.take_along_axis(every, lowest, 0), np.take_along_axis(names, lowest, 0)
    return two[0], two[1], who[0], differ


def _lowest(every: Floats) -> Ints:
    """Rows of the two lowest values of each column, lowest first."""
    rows = np.argpartition(every, 1, axis=0)[:2]
    order = np.argsort(np.take_along_axis(every, rows, 0), axis=0, kind="stable")
    return np.asarray(np.take_along_axis(rows, order, 0), dtype=np.int64)


def _behind(world: Supply, goods: int) -> tuple[int, int]:
    """Stages of inputs behind one goods (at most the ten of the rounds), and the supply and demand rows there."""
    front, hops = np.array([goods]), 0
    visits, rows = {goods}, set[tuple[str, int]]()
    while len(front) and hops < 10:
        makes = rows_of(world.supplied, front)[1]
        uses = rows_of(world.demander, np.unique(world.supplier[makes]))[1]
        rows.update(("supply", row) for row in makes.tolist())
        rows.update(("demand", row) for row in uses.tolist())
        new = sorted(set(world.demanded[uses].tolist()) - visits)
        visits.update(new)
        front, hops = np.array(new, dtype=np.int64), hops + bool(new)
    return hops, len(rows)
