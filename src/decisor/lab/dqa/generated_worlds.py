"""Generated worlds of Decision QA with their simulation: trade networks (Locating) and economies (Building).

The simulations follow the printed rules ("paper" semantics). A trade network is acyclic; countries have a home node
and power in some nodes, and values flow node by node. In an economy, goods may need each other in rings. The share of
a demand that is met is the same for every building, min(1, TS/TD), so ten rounds for all goods are products with one
goods x goods matrix, and expanding one building adds one row and one column to it: all candidates are computed
together. Names are fictional, readable and used once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.locating import LocatingData
from decisor.lab.dqa.rows import BuildingRow, CountryRow, DemandRow, FlowRow, GoodsRow, NodeRow, PowerRow, SupplyRow

HEADS = "bel cor dun esk fal gar hol ist jor kel lor mar nor oss per quel ros sol tar ul vel wen yar zan"
MIDDLES = " a en i or um est ev al"
PLACES = "by dale fell ford gate ham haven holm mere mouth port stead thorpe wick"
REALMS = "ia mark land ria mora stan tania wen"
GOODS = (
    "grain timber iron coal clay wool flax hides salt copper tin lead tools furniture glass cloth paper dye bricks "
    "steel rope sails barrels lamps clocks boots bread beer cheese candles soap ink books pottery nails wagons "
    "engines pumps saddles carpets"
)
KINDS = "fine plain red blue old northern southern eastern western royal rough light heavy dry fresh"


def make_goods_names(count: int) -> list[str]:
    """Return ``count`` names of goods, names without an adjective first.

    >>> make_goods_names(2), make_goods_names(41)[-1]
    (['grain', 'timber'], 'fine_grain')
    """
    plain = GOODS.split()
    names = [*plain, *(f"{kind}_{name}" for kind, name in product(KINDS.split(), plain))]
    return _extend_names(names, count)


def _draw_names(parts: Iterable[str], count: int, rng: np.random.Generator) -> list[str]:
    """Return ``count`` names in random order, each of one word of every part."""
    pool = list(dict.fromkeys("".join(words) for words in product(*(part.split(" ") for part in parts))))
    rng.shuffle(pool)
    return _extend_names(pool, count)


def _extend_names(names: Sequence[str], count: int) -> list[str]:
    """Return ``count`` names: the given ones, then the same with _2, _3 and so on."""
    rounds = -(-count // len(names))
    return [*names, *(f"{name}_{turn}" for turn in range(2, rounds + 1) for name in names)][:count]


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def make_empty_state() -> Floats:
    """Make the state of a world that was not simulated yet."""
    return np.zeros(0)


def zip_lists(columns: Iterable[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Iterate over the rows of columns, as Python's own numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def sum_by_place(places: Ints, amounts: Floats, size: int) -> Floats:
    """Return the sum of amounts at each place, shape (size,). They are added in the order given."""
    return np.asarray(np.bincount(places, amounts, size), dtype=np.float64)


def find_rows_of_owners(owner: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Return pairs (index in ``places``, row) of all rows whose owner is in ``places``. The rows need not be sorted.

    >>> [pairs.tolist() for pairs in find_rows_of_owners(np.array([7, 8, 7]), np.array([8, 7]))]
    [[0, 1, 1], [1, 0, 2]]
    """
    order = np.argsort(owner, kind="stable")
    first, end = np.searchsorted(owner[order], places, "left"), np.searchsorted(owner[order], places, "right")
    counts = end - first
    place = np.repeat(np.arange(len(places)), counts)
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, order[np.repeat(first, counts) + step]


FIELDS = ("field", "pit", "farm", "camp")
WORKS = ("works", "mill", "yard", "hall")
ROUNDS, LEVELS, SPREAD = 10, 5, 0.75


@dataclass(frozen=True)
class Supply:
    """A Building world as arrays. Goods and buildings are counted from 0."""

    goods: tuple[str, ...]
    base_price: Floats
    pop_demand: Floats
    ids: Ints
    """Published ids of the buildings."""
    names: tuple[str, ...]
    level: Ints
    supplied: Ints
    """Goods of each supply row."""
    supplier: Ints
    """Building of each supply row."""
    max_supply: Floats
    """The most that this building makes of these goods."""
    demanded: Ints
    """Goods of each demand row."""
    demander: Ints
    """Building of each demand row."""
    max_demand: Floats
    current_price: Floats = field(default_factory=make_empty_state)
    """State: per goods."""
    current_output: Floats = field(default_factory=make_empty_state)
    """State: per supply row."""
    current_input: Floats = field(default_factory=make_empty_state)
    """State: per demand row."""

    def rows(self) -> BuildingData:
        """Return the rows of the tables, supply and demand as they come."""
        ids, level = self.ids.tolist(), self.level.tolist()
        goods = zip(self.base_price.tolist(), self.current_price.tolist(), self.pop_demand.tolist(), strict=True)
        supply = (self.supplied, self.supplier, self.max_supply, self.current_output)
        demand = (self.demanded, self.demander, self.max_demand, self.current_input)
        return BuildingData(
            tuple(GoodsRow(name, code, *row) for code, (name, row) in enumerate(zip(self.goods, goods, strict=True))),
            tuple(map(BuildingRow, ids, self.names, level)),
            tuple(SupplyRow(g, ids[b], most, now, level[b]) for g, b, most, now in zip_lists(supply)),
            tuple(DemandRow(g, ids[b], most, now, level[b]) for g, b, most, now in zip_lists(demand)),
        )


@dataclass(frozen=True)
class Balance:
    """The constants of a simulation, per goods."""

    demand: Floats
    """Population demand and the sum of maximal demands (TD)."""
    potential: Floats
    """Sum of maximal supplies."""
    free: Floats
    """Supply of buildings without inputs."""
    chain: Floats
    """``chain[h, g]``: how much the supply of goods g depends on goods h."""
    inputs: Ints
    """Number of inputs, per building."""

    @classmethod
    def of(cls, world: Supply) -> Balance:
        count = len(world.goods)
        inputs = np.bincount(world.demander, minlength=len(world.ids)).astype(np.int64)
        # All pairs of an input and an output of the same building: the mean over inputs gives each 1 / inputs.
        makes, used = find_rows_of_owners(world.demander, world.supplier)
        reach = world.max_supply[makes] / inputs[world.supplier[makes]]
        chain = sum_by_place(world.demanded[used] * count + world.supplied[makes], reach, count * count)
        free = world.max_supply * (inputs[world.supplier] == 0)
        demand = world.pop_demand + sum_by_place(world.demanded, world.max_demand, count)
        return cls(
            demand,
            sum_by_place(world.supplied, world.max_supply, count),
            sum_by_place(world.supplied, free, count),
            chain.reshape(count, count),
            inputs,
        )


def simulate_supply(world: Supply, balance: Balance, expanded: Ints | None = None) -> tuple[Floats, Floats, Floats]:
    """Return the total demand, total supply and met share of each goods after ten rounds.

    Shapes are (candidates, goods).

    ``expanded``: one building (by number) per candidate gains five levels; None is one row, with nothing changed.
    """
    count = len(world.goods)
    rows = 1 if expanded is None else len(expanded)
    uses, more_uses = np.zeros((rows, count)), np.zeros((rows, count))
    makes = np.zeros((rows, count))
    if expanded is not None:
        growth = LEVELS / world.level[expanded]
        row, which = find_rows_of_owners(world.demander, expanded)
        uses[row, world.demanded[which]] = 1 / balance.inputs[world.demander[which]]
        more_uses[row, world.demanded[which]] = world.max_demand[which] * growth[row]
        row, which = find_rows_of_owners(world.supplier, expanded)
        makes[row, world.supplied[which]] = world.max_supply[which] * growth[row]
    fixed = np.ones(rows) if expanded is None else (balance.inputs[expanded] == 0).astype(np.float64)
    demand = balance.demand + more_uses
    supply = balance.potential + makes
    share = supply
    for _ in range(ROUNDS):
        # min(CI, MD) / MD is the same for every buyer of a goods, as CI = MD * TS / TD: one number per goods.
        share = np.minimum(np.divide(supply, demand, out=np.ones_like(supply), where=demand > 0), 1.0)
        # The expanded building's extra supply depends on its own inputs: one row and column beside the matrix.
        effort = (share * uses).sum(1) + fixed
        supply = balance.free + share @ balance.chain + effort[:, None] * makes
    return demand, supply, share


def compute_supply_prices(world: Supply, demand: Floats, supply: Floats) -> Floats:
    """Return the price of each goods, in the shape of the demand.

    It is the base price if nothing is demanded or supplied.
    """
    most = np.maximum(demand, supply)
    gap = np.divide(demand - supply, most, out=np.zeros_like(most), where=most > 0)
    return np.asarray(world.base_price * (1 + SPREAD * gap))


def add_supply_state(world: Supply) -> Supply:
    """Return the world with the state that one simulation gives."""
    balance = Balance.of(world)
    demand, supply, share = simulate_supply(world, balance)
    ratio = np.divide(
        sum_by_place(world.demander, share[0][world.demanded], len(world.ids)),
        balance.inputs,
        out=np.ones(len(world.ids)),
        where=balance.inputs > 0,
    )
    output = world.max_supply * ratio[world.supplier]
    met = np.divide(supply[0], demand[0], out=np.zeros(len(world.goods)), where=demand[0] > 0)
    price = compute_supply_prices(world, demand, supply)[0]
    return replace(
        world, current_price=price, current_output=output, current_input=world.max_demand * met[world.demanded]
    )


def make_supply(count: int, buildings: int, edges: int, rng: np.random.Generator) -> Supply:
    """Make a new Building world with its published state.

    It has ``count`` goods, ``buildings`` buildings and about ``edges`` supply and demand rows.
    """
    names = make_goods_names(count)
    raw = max(count // 4, 1)
    # Every goods has a maker first; the rest are drawn.
    output = np.concatenate([np.arange(count), rng.integers(0, count, max(buildings - count, 0))])[:buildings]
    rng.shuffle(output)
    level = rng.integers(1, 21, buildings)
    second = np.flatnonzero((rng.random(buildings) < 0.2) & (count > 1))
    supplier = np.concatenate([np.arange(buildings), second])
    supplied = np.concatenate([output, (output[second] + rng.integers(1, count, len(second))) % count])
    order = np.argsort(supplier, kind="stable")
    supplier, supplied = supplier[order], supplied[order]
    demander, demanded = _draw_demands(output, raw, count, max(edges - len(supplier), 1), rng)
    yields = np.round(rng.uniform(8, 40, len(supplier)), 2)
    needs = np.round(rng.uniform(2, 12, len(demander)), 2)
    max_supply, max_demand = yields * level[supplier], needs * level[demander]
    totals = sum_by_place(supplied, max_supply, count)
    # The population buys about what buildings leave, so prices lie on both sides of the base price.
    spare = totals - sum_by_place(demanded, max_demand, count)
    pop_demand = np.round(np.maximum(spare, 0.1 * totals) * rng.uniform(0.5, 1.8, count), 2)
    kinds = [f"{names[makes]}_{(FIELDS if makes < raw else WORKS)[makes % 4]}" for makes in output.tolist()]
    ids = np.sort(rng.choice(np.arange(100, 100 + 3 * buildings), buildings, replace=False))
    return add_supply_state(
        Supply(
            tuple(names),
            np.round(rng.uniform(20, 80, count), 0),
            np.where(rng.random(count) < 0.8, pop_demand, 0.0),
            ids,
            tuple(kinds),
            level,
            supplied,
            supplier,
            max_supply,
            demanded,
            demander,
            max_demand,
        )
    )


def _draw_demands(output: Ints, raw: int, count: int, rows: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw (building, goods) pairs.

    Buildings that make no raw goods need a few other goods; each goods has its recipe.
    """
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


GAIN = 1.05  # of power by a merchant, and of a value that moves on


@dataclass(frozen=True)
class Trade:
    """A Locating world as arrays. Nodes are numbered in topological order."""

    nodes: tuple[str, ...]
    local_value: Floats
    inland: NDArray[np.bool_]
    source: Ints
    """Upstream node of each edge; edges are sorted by it, then by the name of dest."""
    dest: Ints
    countries: tuple[str, ...]
    home: Ints
    development: Floats
    at: Ints
    """Node of each row of power."""
    of: Ints
    """Country of each row of power."""
    base: Floats
    """Power of this country in this node."""
    total_power: Floats = field(default_factory=make_empty_state)
    """State: per node, as are the next two."""
    ingoing: Floats = field(default_factory=make_empty_state)
    outgoing: Floats = field(default_factory=make_empty_state)
    flow: Floats = field(default_factory=make_empty_state)
    """State: per edge."""

    def rows(self) -> LocatingData:
        """Return the rows of the tables.

        Nodes are sorted by name, edges by source, then dest, and powers by node, then country as they come.
        """
        # Rule 4 speaks of the first edge in alphabetical order, so file order has to be that too.
        order = np.argsort(np.array(self.nodes), kind="stable")
        rank = np.argsort(order)
        edges, powers = (np.argsort(rank[of], kind="stable") for of in (self.source, self.at))
        name = self.nodes.__getitem__
        state = (self.local_value, self.inland, self.total_power, self.outgoing, self.ingoing)
        placed = zip_lists(column[powers] for column in (self.at, self.of, self.at_home, self.base))
        return LocatingData(
            tuple(map(CountryRow, self.countries, map(name, self.home), self.development.tolist())),
            tuple(NodeRow(name(node), *row) for node, *row in zip_lists((order, *(column[order] for column in state)))),
            tuple(
                FlowRow(name(up), name(down), flow)
                for up, down, flow in zip_lists(column[edges] for column in (self.source, self.dest, self.flow))
            ),
            tuple(
                PowerRow(name(node), self.countries[of], is_home, False, power, power)
                for node, of, is_home, power in placed
            ),
        )

    @property
    def at_home(self) -> NDArray[np.bool_]:
        """Whether each row is about the home node of its country."""
        return np.asarray(self.home[self.of] == self.at)

    def starts(self) -> Ints:
        """Return the index of the first edge of each node; shape (nodes + 1,)."""
        return np.searchsorted(self.source, np.arange(len(self.nodes) + 1))


@dataclass(frozen=True)
class Flows:
    """The outcome of one simulation, per node and per edge."""

    power: Floats
    total_power: Floats
    ingoing: Floats
    outgoing: Floats
    flow: Floats


def simulate_trade(world: Trade, row: int | None = None, reaches: Sequence[bool] = ()) -> Flows:
    """Simulate the flows once, with the merchant on ``row`` unless it is None.

    reaches: for each node, whether the home node is below it.
    """
    # Rule 1: power, with the bonus of the merchant.
    power = world.base.copy()
    steered: dict[int, int] = {}
    starts = world.starts().tolist()
    if row is not None:
        node, country = int(world.at[row]), int(world.of[row])
        inland = max(world.development[country] / 3, 50.0) if world.inland[node] else 0.0
        power[row] = GAIN * (power[row] + 2 + inland)
        # Rule 4: a merchant sends everything over the edge straight home, else over the first that leads there.
        edges, home = range(starts[node], starts[node + 1]), int(world.home[country])
        direct = (edge for edge in edges if world.dest[edge] == home)
        edge = next(direct, next((edge for edge in edges if reaches[int(world.dest[edge])]), None))
        steered = {} if edge is None else {node: edge}
    count = len(world.nodes)
    total = sum_by_place(world.at, power, count)
    foreign = sum_by_place(world.at, power * ~world.at_home, count)
    share = np.divide(foreign, total, out=np.zeros(count), where=total > 0)
    flow, ingoing, outgoing = _move_values(world, starts, share.tolist(), steered)
    return Flows(power, total, ingoing, outgoing, flow)


def add_trade_state(world: Trade) -> Trade:
    """Return the world with the state that one simulation gives."""
    state = simulate_trade(world)
    return replace(
        world, total_power=state.total_power, ingoing=state.ingoing, outgoing=state.outgoing, flow=state.flow
    )


def _move_values(
    world: Trade, starts: list[int], share: list[float], steered: dict[int, int]
) -> tuple[Floats, Floats, Floats]:
    """Compute how values flow down the network, upstream nodes first."""
    dest, local = world.dest.tolist(), world.local_value.tolist()
    flow, ingoing, outgoing = [0.0] * len(dest), [0.0] * len(local), [0.0] * len(local)
    # Numbers of nodes are topological, so everything has flowed in when a node is reached.
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


def count_steps_home(world: Trade, home: int) -> list[int]:
    """Return the number of steps from each node down to ``home``, -1 if no path leads there."""
    starts, dest = world.starts().tolist(), world.dest.tolist()
    steps = [-1] * len(world.nodes)
    steps[home] = 0
    # Only nodes with a smaller number can lead to home.
    for node in range(home - 1, -1, -1):
        below = [steps[dest[edge]] for edge in range(starts[node], starts[node + 1]) if steps[dest[edge]] >= 0]
        steps[node] = min(below) + 1 if below else -1
    return steps


def compute_home_profit(world: Trade, flows: Flows, country: int) -> float:
    """Return the profit of ``country`` at its home node."""
    home = int(world.home[country])
    own = float(flows.power[(world.of == country) & (world.at == home)].sum())
    value = world.local_value[home] + flows.ingoing[home]
    return float(value * own / flows.total_power[home]) if flows.total_power[home] else 0.0


def make_trade(nodes: int, countries: int, rows: int, rng: np.random.Generator) -> Trade:
    """Make a new Locating world with its published state.

    It has ``nodes`` trading nodes with about two edges each, and about ``rows`` powers.
    """
    names = _draw_names((HEADS, MIDDLES, PLACES), nodes, rng)  # such as velmere
    source, dest = _draw_edges(names, rng)
    upstream = max(nodes // 3, 1)
    home = rng.integers(min(upstream, nodes - 1), nodes, countries)
    at, of = _draw_powers(source, dest, home, rows, rng)
    base = np.round(rng.lognormal(2.3, 0.8, len(at)), 3)
    base[home[of] == at] += np.round(rng.uniform(10, 60, int((home[of] == at).sum())), 3)
    world = Trade(
        tuple(names),
        np.round(rng.uniform(1, 8, nodes), 3),
        rng.random(nodes) < 0.3,
        source,
        dest,
        tuple(name.capitalize() for name in _draw_names((HEADS, MIDDLES, REALMS), countries, rng)),  # such as Corria
        home,
        np.round(rng.uniform(20, 400, countries), 3),
        at,
        of,
        base,
    )
    return add_trade_state(world)


def _draw_edges(names: Sequence[str], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the edges: every node but the last few sends to one to three nodes not far below."""
    count = len(names)
    reach = max(min(count // 4, 40), 2)
    counts = rng.choice([1, 2, 3], count, p=[0.3, 0.4, 0.3])
    source = np.repeat(np.arange(count), counts)
    dest = source + rng.integers(1, reach + 1, len(source))
    # Edges point to a larger number, so the network has no ring.
    pairs = np.unique(np.stack([source, dest], 1)[dest < count], axis=0)
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(np.array(names))] = np.arange(count)
    pairs = pairs[np.lexsort((rank[pairs[:, 1]], pairs[:, 0]))]
    return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)


def _draw_powers(source: Ints, dest: Ints, home: Ints, rows: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the powers of each country: at home, in nodes that feed its home, and in some others."""
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
