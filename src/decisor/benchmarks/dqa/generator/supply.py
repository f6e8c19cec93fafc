"""Building worlds: goods, buildings, what each building supplies and demands; goods may need each other in rings.

The simulation follows the printed rules ("paper" semantics). The share of a demand that is met is the same for every
building, min(1, TS/TD), so ten rounds for all goods are products with one goods x goods matrix, and expanding one
building adds one row and one column to it: all candidates are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from decisor.benchmarks.dqa.generator.arrays import Floats, Ints, rows_of, tally
from decisor.benchmarks.dqa.generator.names import goods

FIELDS = ("field", "pit", "farm", "camp")
WORKS = ("works", "mill", "yard", "hall")
ROUNDS, LEVELS, SPREAD = 10, 5, 0.75


@dataclass(frozen=True)
class Supply:
    """Supply row r: building ``supplier[r]`` can make ``max_supply[r]`` of goods ``supplied[r]``; demand rows likewise.

    Goods and buildings are counted from 0; ``ids`` are the published building ids. The last three are the state.
    """

    goods: tuple[str, ...]
    base_price: Floats
    pop_demand: Floats
    ids: Ints
    names: tuple[str, ...]
    level: Ints
    supplied: Ints
    supplier: Ints
    max_supply: Floats
    demanded: Ints
    demander: Ints
    max_demand: Floats
    current_price: Floats
    current_output: Floats
    current_input: Floats


@dataclass(frozen=True)
class Balance:
    """The constants of a simulation: per goods, and how much of goods g hangs on goods h (``chain[h, g]``)."""

    demand: Floats
    potential: Floats
    free: Floats
    chain: Floats
    inputs: Ints

    @classmethod
    def of(cls, world: Supply) -> Balance:
        count = len(world.goods)
        inputs = np.bincount(world.demander, minlength=len(world.ids)).astype(np.int64)
        makes, used = rows_of(world.demander, world.supplier)
        reach = world.max_supply[makes] / inputs[world.supplier[makes]]
        chain = tally(world.demanded[used] * count + world.supplied[makes], reach, count * count)
        free = world.max_supply * (inputs[world.supplier] == 0)
        demand = world.pop_demand + tally(world.demanded, world.max_demand, count)
        return cls(demand, tally(world.supplied, world.max_supply, count),
                   tally(world.supplied, free, count), chain.reshape(count, count), inputs)  # fmt: skip


def settle(world: Supply, balance: Balance, expanded: Ints | None = None) -> tuple[Floats, Floats, Floats]:
    """Total demand, total supply and the met share of each goods after ten rounds; shapes (candidates, goods).

    ``expanded``: one building (by number) per candidate gains five levels; None is one row, with nothing changed.
    """
    count = len(world.goods)
    rows = 1 if expanded is None else len(expanded)
    uses, more_uses = np.zeros((rows, count)), np.zeros((rows, count))
    makes = np.zeros((rows, count))
    if expanded is not None:
        growth = LEVELS / world.level[expanded]
        row, which = rows_of(world.demander, expanded)
        uses[row, world.demanded[which]] = 1 / balance.inputs[world.demander[which]]
        more_uses[row, world.demanded[which]] = world.max_demand[which] * growth[row]
        row, which = rows_of(world.supplier, expanded)
        makes[row, world.supplied[which]] = world.max_supply[which] * growth[row]
    fixed = np.ones(rows) if expanded is None else (balance.inputs[expanded] == 0).astype(np.float64)
    demand = balance.demand + more_uses
    supply = balance.potential + makes
    share = supply
    for _ in range(ROUNDS):
        share = np.minimum(np.divide(supply, demand, out=np.ones_like(supply), where=demand > 0), 1.0)
        effort = (share * uses).sum(1) + fixed
        supply = balance.free + share @ balance.chain + effort[:, None] * makes
    return demand, supply, share


def prices(world: Supply, demand: Floats, supply: Floats) -> Floats:
    """Of each goods, shape as given; the base price where nothing is demanded or supplied."""
    most = np.maximum(demand, supply)
    gap = np.divide(demand - supply, most, out=np.zeros_like(most), where=most > 0)
    return np.asarray(world.base_price * (1 + SPREAD * gap))


def with_state(world: Supply) -> Supply:
    """The world with its state: simulated once."""
    balance = Balance.of(world)
    demand, supply, share = settle(world, balance)
    ratio = np.divide(tally(world.demander, share[0][world.demanded], len(world.ids)), balance.inputs,
                      out=np.ones(len(world.ids)), where=balance.inputs > 0)  # fmt: skip
    output = world.max_supply * ratio[world.supplier]
    met = np.divide(supply[0], demand[0], out=np.zeros(len(world.goods)), where=demand[0] > 0)
    price = prices(world, demand, supply)[0]
    return replace(
        world, current_price=price, current_output=output, current_input=world.max_demand * met[world.demanded]
    )


def make_supply(count: int, buildings: int, edges: int, rng: np.random.Generator) -> Supply:
    """A new world with its state published: ``count`` goods, ``buildings``, about ``edges`` supply and demand rows."""
    names = goods(count)
    raw = max(count // 4, 1)
    output = np.concatenate([np.arange(count), rng.integers(0, count, max(buildings - count, 0))])[:buildings]
    rng.shuffle(output)
    level = rng.integers(1, 21, buildings)
    second = np.flatnonzero((rng.random(buildings) < 0.2) & (count > 1))
    supplier = np.concatenate([np.arange(buildings), second])
    supplied = np.concatenate([output, (output[second] + rng.integers(1, count, len(second))) % count])
    order = np.argsort(supplier, kind="stable")
    supplier, supplied = supplier[order], supplied[order]
    demander, demanded = _demands(output, raw, count, max(edges - len(supplier), 1), rng)
    yields = np.round(rng.uniform(8, 40, len(supplier)), 2)
    needs = np.round(rng.uniform(2, 12, len(demander)), 2)
    max_supply, max_demand = yields * level[supplier], needs * level[demander]
    totals = tally(supplied, max_supply, count)
    spare = totals - tally(demanded, max_demand, count)
    pop_demand = np.round(np.maximum(spare, 0.1 * totals) * rng.uniform(0.5, 1.8, count), 2)
    kinds = [f"{names[makes]}_{(FIELDS if makes < raw else WORKS)[makes % 4]}" for makes in output.tolist()]
    ids = np.sort(rng.choice(np.arange(100, 100 + 3 * buildings), buildings, replace=False))
    nothing = np.zeros(0)
    return with_state(Supply(
        tuple(names), np.round(rng.uniform(20, 80, count), 0), np.where(rng.random(count) < 0.8, pop_demand, 0.0), ids,
        tuple(kinds), level, supplied, supplier, max_supply, demanded, demander, max_demand, nothing, nothing, nothing,
    ))  # fmt: skip


def _demands(output: Ints, raw: int, count: int, rows: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """(building, goods) pairs: buildings that make no raw goods need a few others; each goods has its recipe."""
    users = np.flatnonzero(output >= raw)
    if not len(users):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    most = count - 1
    mean = min(max(rows / len(users), 1.0), most)
    recipe = [rng.permutation(np.delete(np.arange(count), makes)) for makes in range(count)]
    sizes = np.clip(np.floor(mean + rng.random(len(users))).astype(np.int64), 1, most)
    demander = np.repeat(users, sizes)
    demanded = np.concatenate([recipe[output[user]][:size] for user, size in zip(users, sizes, strict=True)])
    return demander, demanded
