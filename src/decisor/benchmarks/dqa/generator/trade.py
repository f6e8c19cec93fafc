"""Locating worlds: trading nodes in an acyclic network, countries with a home node, and power in some nodes.

The simulation here follows the rules that are printed with the questions ("paper" semantics), node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decisor.benchmarks.dqa.generator.arrays import Floats, Ints, tally
from decisor.benchmarks.dqa.generator.names import places, realms

GAIN = 1.05  # of power by a merchant, and of a value that moves on


@dataclass(frozen=True)
class Trade:
    """Nodes are numbered in topological order; edges are sorted by source, then by the name of dest.

    Row r says that country ``of[r]`` has power ``base[r]`` in node ``at[r]``. The last four are the published state.
    """

    nodes: tuple[str, ...]
    local_value: Floats
    inland: NDArray[np.bool_]
    source: Ints
    dest: Ints
    countries: tuple[str, ...]
    home: Ints
    development: Floats
    at: Ints
    of: Ints
    base: Floats
    total_power: Floats
    ingoing: Floats
    outgoing: Floats
    flow: Floats

    @property
    def at_home(self) -> NDArray[np.bool_]:
        """Per row: is this the country's home?"""
        return np.asarray(self.home[self.of] == self.at)

    def starts(self) -> Ints:
        """Where the edges of each node begin; shape (nodes + 1,)."""
        return np.searchsorted(self.source, np.arange(len(self.nodes) + 1))


@dataclass(frozen=True)
class Flows:
    """What one simulation gives, per node and per edge."""

    power: Floats
    total_power: Floats
    ingoing: Floats
    outgoing: Floats
    flow: Floats


def simulate(world: Trade, row: int | None = None, reaches: Sequence[bool] = ()) -> Flows:
    """One simulation, with the merchant on ``row`` where given; ``reaches``: of each node, is home below it?"""
    power = world.base.copy()
    steered: dict[int, int] = {}
    starts = world.starts().tolist()
    if row is not None:
        node, country = int(world.at[row]), int(world.of[row])
        inland = max(world.development[country] / 3, 50.0) if world.inland[node] else 0.0
        power[row] = GAIN * (power[row] + 2 + inland)
        edge = steer(world, starts[node], starts[node + 1], int(world.home[country]), reaches)
        steered = {} if edge is None else {node: edge}
    count = len(world.nodes)
    total = tally(world.at, power, count)
    foreign = tally(world.at, power * ~world.at_home, count)
    share = np.divide(foreign, total, out=np.zeros(count), where=total > 0)
    flow, ingoing, outgoing = _move(world, starts, share.tolist(), steered)
    return Flows(power, total, ingoing, outgoing, flow)


def _move(
    world: Trade, starts: list[int], share: list[float], steered: dict[int, int]
) -> tuple[Floats, Floats, Floats]:
    """Values flow down the network, upstream nodes first."""
    dest, local = world.dest.tolist(), world.local_value.tolist()
    flow, ingoing, outgoing = [0.0] * len(dest), [0.0] * len(local), [0.0] * len(local)
    for node, value in enumerate(local):
        outgoing[node] = out = (value + ingoing[node]) * share[node]
        first, end = starts[node], starts[node + 1]
        if node in steered:
            flow[steered[node]] = out
        else:
            flow[first:end] = [out / (end - first)] * (end - first) if end > first else []
        for edge in range(first, end):
            ingoing[dest[edge]] += GAIN * flow[edge]
    return np.array(flow), np.array(ingoing), np.array(outgoing)


def steer(world: Trade, first: int, end: int, home: int, reaches: Sequence[bool]) -> int | None:
    """The edge a merchant sends everything to: straight home, else the first that leads there, else none."""
    edges = range(first, end)
    direct = (edge for edge in edges if world.dest[edge] == home)
    return next(direct, next((edge for edge in edges if reaches[int(world.dest[edge])]), None))


def distances(world: Trade, home: int) -> list[int]:
    """Steps from each node down to ``home``; -1 where no way leads there."""
    starts, dest = world.starts().tolist(), world.dest.tolist()
    steps = [-1] * len(world.nodes)
    steps[home] = 0
    for node in range(home - 1, -1, -1):
        below = [steps[dest[edge]] for edge in range(starts[node], starts[node + 1]) if steps[dest[edge]] >= 0]
        steps[node] = min(below) + 1 if below else -1
    return steps


def profit(world: Trade, flows: Flows, country: int) -> float:
    """Of ``country`` at its home node."""
    home = int(world.home[country])
    own = float(flows.power[(world.of == country) & (world.at == home)].sum())
    value = world.local_value[home] + flows.ingoing[home]
    return float(value * own / flows.total_power[home]) if flows.total_power[home] else 0.0


def make_trade(nodes: int, countries: int, rows: int, rng: np.random.Generator) -> Trade:
    """A new world with its state published: ``nodes`` trading nodes, about two edges each, about ``rows`` powers."""
    names = places(nodes, rng)
    source, dest = _edges(names, rng)
    upstream = max(nodes // 3, 1)
    home = rng.integers(min(upstream, nodes - 1), nodes, countries)
    at, of = _rows(source, dest, home, rows, rng)
    base = np.round(rng.lognormal(2.3, 0.8, len(at)), 3)
    base[home[of] == at] += np.round(rng.uniform(10, 60, int((home[of] == at).sum())), 3)
    nothing = np.zeros(nodes)
    world = Trade(
        tuple(names), np.round(rng.uniform(1, 8, nodes), 3), rng.random(nodes) < 0.3, source, dest,
        tuple(realms(countries, rng)), home, np.round(rng.uniform(20, 400, countries), 3), at, of, base,
        nothing, nothing, nothing, np.zeros(len(source)),
    )  # fmt: skip
    state = simulate(world)
    return replace(
        world, total_power=state.total_power, ingoing=state.ingoing, outgoing=state.outgoing, flow=state.flow
    )


def _edges(names: Sequence[str], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Every node but the last few sends to one to three nodes not far below it."""
    count = len(names)
    reach = max(min(count // 4, 40), 2)
    counts = rng.choice([1, 2, 3], count, p=[0.3, 0.4, 0.3])
    source = np.repeat(np.arange(count), counts)
    dest = source + rng.integers(1, reach + 1, len(source))
    pairs = np.unique(np.stack([source, dest], 1)[dest < count], axis=0)
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(np.array(names))] = np.arange(count)
    pairs = pairs[np.lexsort((rank[pairs[:, 1]], pairs[:, 0]))]
    return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)


def _rows(source: Ints, dest: Ints, home: Ints, rows: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Each country is at home, in nodes that feed its home, and in some others."""
    nodes, each = int(max(dest.max(), home.max())) + 1, max(rows // len(home), 2)
    feeders: dict[int, list[int]] = {}
    for up, down in zip(source.tolist(), dest.tolist(), strict=True):
        feeders.setdefault(down, []).append(up)
    pairs: list[tuple[int, int]] = []
    for country, at in enumerate(home.tolist()):
        near = [*feeders.get(at, [])]
        near += [far for up in near for far in feeders.get(up, [])]
        room = max(each - 1, 1)
        nodes_of = dict.fromkeys([at, *near[: (2 * room + 2) // 3], *rng.integers(0, nodes, 2 * room).tolist()])
        pairs += [(node, country) for node in list(nodes_of)[: room + 1]]
    table = np.array(sorted(pairs), dtype=np.int64)
    return table[:, 0], table[:, 1]
