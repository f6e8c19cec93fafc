"""The economies of a Victoria 3 save, as Building worlds: one for each country that has buildings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from decisor.benchmarks.dqa.generator.arrays import Floats, Ints
from decisor.benchmarks.dqa.generator.supply import Supply, with_state
from decisor.benchmarks.dqa.savegames.clausewitz import Block, number
from decisor.errors import SetupError

Amounts = list[tuple[int, int, float]]  # goods, building, amount


def read_economies(sections: dict[str, Block], goods_file: Block) -> Iterator[tuple[str, Supply]]:
    """(tag, world) of each country. ``goods_file``: the file of goods, name = { cost }, in the order of their codes.

    Raises:
        SetupError: the file of goods names none.
    """
    goods = [(name, about.number("cost")) for name, about in goods_file.blocks()]
    if not goods:
        raise SetupError("The file of goods names none; give the game's file of goods, name = { cost = ... }.")
    by_state: dict[str, list[tuple[int, Block]]] = defaultdict(list)
    for code, building in _database(sections["building_manager"]):
        if code.isdecimal():
            by_state[building.text("state")].append((int(code), building))
    states = dict(_database(sections.get("states", Block(()))))
    for _, country in _database(sections.get("country_manager", sections.get("countries", Block(())))):
        home = [state for state in country.block("states").values() if state in by_state]
        buildings = sorted((pair for state in home for pair in by_state[state]), key=lambda pair: pair[0])
        if buildings and country.text("definition"):
            yield country.text("definition"), _economy(goods, buildings, [states[s] for s in home if s in states])


def _database(section: Block) -> Iterator[tuple[str, Block]]:
    """The entries of a section, which a save may wrap in ``database``."""
    return (section.block("database") if section.get("database") else section).blocks()


def _economy(goods: list[tuple[str, float]], buildings: list[tuple[int, Block]], states: list[Block]) -> Supply:
    needs = np.zeros(len(goods))
    for state in states:
        for code, amount in state.block("pop_needs").items:
            if code.isdecimal() and int(code) < len(goods) and isinstance(amount, str):
                needs[int(code)] += number(amount)
    outputs, makers, most_output = _columns(_amounts("output_goods", buildings, len(goods)))
    used, users, most_used = _columns(_amounts("input_goods", buildings, len(goods)))
    nothing = np.zeros(0)
    return with_state(Supply(
        tuple(name for name, _ in goods), np.array([cost for _, cost in goods]), needs,
        np.array([code for code, _ in buildings], dtype=np.int64), tuple(one.text("building") for _, one in buildings),
        np.array([max(int(one.number("level", one.number("levels", 1))), 1) for _, one in buildings], dtype=np.int64),
        outputs, makers, most_output, used, users, most_used, nothing, nothing, nothing,
    ))  # fmt: skip


def _amounts(section: str, buildings: list[tuple[int, Block]], count: int) -> Amounts:
    """What each building takes or gives at most; outputs include its throughput."""
    rows = []
    for place, (_, building) in enumerate(buildings):
        factor = building.number("throughput", 1.0) if section == "output_goods" else 1.0
        for code, amount in building.block(section).block("goods").items:
            if code.isdecimal() and int(code) < count and isinstance(amount, str) and number(amount) > 0:
                rows.append((int(code), place, number(amount) * factor))
    return rows


def _columns(rows: Amounts) -> tuple[Ints, Ints, Floats]:
    return (np.array([row[0] for row in rows], dtype=np.int64), np.array([row[1] for row in rows], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.float64))  # fmt: skip
