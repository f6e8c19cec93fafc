"""The economy of Decision QA (Building): the building that gains 5 levels and the prices of goods.

Expanding building b from level L multiplies its maximal demands MD and supplies MS by (L + 5) / L. Then 10 cycles of

    CI(g, b) = MD(g, b) * S(g) / D(g)                                input of b
    CO(g, b) = MS(g, b) * mean over b's inputs of min(CI, MD) / MD    output of b
    S(g)     = sum of CO(g, .)
    price(g) = base * (1 + 0.75 * (D - S) / max(D, S))                 base where both are 0

"paper" is the printed rule: D = population demand + sum of MD, S = sum of MS at first, and a building without inputs
puts out its MS. "released" starts, as the released answers do, from the published state, and adds to it: D =
population demand + sum of MD before + sum of MD after the expansion, S = sum of published outputs + sum of MS; a
building without inputs keeps its published output even when expanded; the decision must supply the goods and bring its
price below the published one.

``Chains`` arranges the network so that whole columns of candidates are computed at once: demand rows rank by rank
(every building's first input, every second input, ...), buildings with many inputs first, so that the k-th inputs are
one block; supply rows by goods. Within a building and within a goods the file's order stays. Sums run in the order of
the rows, so results are the same to the last bit everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from decisor.errors import SetupError
from decisor.lab.dqa.locating import Semantics, vary_figures
from decisor.lab.dqa.rows import BUILDING, BuildingRow, DemandRow, GoodsRow, SupplyRow
from decisor.types import Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Chains:
    """The shape of a production network as indexes into goods, buildings and rows."""

    goods: dict[str, int]
    """Index of each goods, by name."""
    buildings: dict[str, int]
    """Index of each building, by its id as text."""
    makers: list[list[int]]
    """Per goods: the buildings that supply it, in the order of the buildings."""
    demands: NDArray[np.intp]
    """Demand rows of the file, rank by rank."""
    demand_goods: NDArray[np.intp]
    """Goods of each of ``demands``."""
    blocks: list[int]
    """Number of buildings with a first, a second, ... input."""
    inputs: NDArray[np.float64]
    """Number of inputs of each building that has some, shape (blocks[0], 1)."""
    supplies: NDArray[np.intp]
    """Supply rows of the file, by goods."""
    slices: list[tuple[int, int, int]]
    """Goods, and start and end of its rows in ``supplies``."""
    fed: NDArray[np.intp]
    """Places in ``supplies`` of the rows whose building has inputs."""
    feeder: NDArray[np.intp]
    """The building of each of ``fed``, numbered as in ``inputs``."""
    demand_rows: list[list[int]]
    """Per building: its places in ``demands``."""
    supply_rows: list[list[int]]
    """Per building: its places in ``supplies``."""

    @classmethod
    def of(cls, data: BuildingData) -> Chains:
        """Arrange a network; raise SetupError if a row names unknown goods or an unknown building."""
        goods, buildings = data.goods, data.buildings
        codes = {row.code: at for at, row in enumerate(goods)}
        ids = {row.id: at for at, row in enumerate(buildings)}
        try:
            takes = [(codes[row.goods_id], ids[row.building_id]) for row in data.demand]
            makes = [(codes[row.goods_id], ids[row.building_id]) for row in data.supply]
        except KeyError as missing:
            raise SetupError(
                f"A supply or demand row names {missing}, which is no goods code or building id."
            ) from None
        # Rank demand rows. Buildings with many inputs come first, so the buildings with a k-th input are the first of
        # the block before.
        inputs = _places([building for _, building in takes], len(buildings))
        eaters = sorted((b for b in range(len(buildings)) if inputs[b]), key=lambda b: -len(inputs[b]))
        depth = len(inputs[eaters[0]]) if eaters else 0
        ranks = [[inputs[b][rank] for b in eaters if len(inputs[b]) > rank] for rank in range(depth)]
        demands = [row for rank in ranks for row in rank]
        supplies = sorted(range(len(makes)), key=lambda row: makes[row][0])
        place = {b: at for at, b in enumerate(eaters)}
        # 43 % of the released buildings have no demand rows: their output is no function of any input.
        fed = [at for at, row in enumerate(supplies) if makes[row][1] in place]
        return cls(
            {row.goods_name: at for at, row in enumerate(goods)},
            {str(row.id): at for at, row in enumerate(buildings)},
            [sorted({makes[row][1] for row in rows}) for rows in _places([of for of, _ in makes], len(goods))],
            np.array(demands, dtype=np.intp),
            np.array([takes[row][0] for row in demands], dtype=np.intp),
            [len(rank) for rank in ranks],
            np.array([[len(inputs[b])] for b in eaters], dtype=np.float64),
            np.array(supplies, dtype=np.intp),
            _find_slices([makes[row][0] for row in supplies]),
            np.array(fed, dtype=np.intp),
            np.array([place[makes[supplies[at]][1]] for at in fed], dtype=np.intp),
            _places([takes[row][1] for row in demands], len(buildings)),
            _places([makes[row][1] for row in supplies], len(buildings)),
        )


def _places(owners: Sequence[int], count: int) -> list[list[int]]:
    places: list[list[int]] = [[] for _ in range(count)]
    for at, owner in enumerate(owners):
        places[owner].append(at)
    return places


def _find_slices(keys: Sequence[int]) -> list[tuple[int, int, int]]:
    """Find each run of equal keys, as the key with its start and end.

    >>> _find_slices([0, 0, 3])
    [(0, 0, 2), (3, 2, 3)]
    """
    edges = [at for at in range(len(keys)) if not at or keys[at] != keys[at - 1]]
    return [(keys[start], start, end) for start, end in zip(edges, [*edges[1:], len(keys)], strict=True)]


LEVELS = 5
CYCLES = 10
CELLS = 1_000_000  # rows x candidates simulated at a time: 8 MB per array


@dataclass(frozen=True)
class BuildingData:
    """An economy as published, rows in file order."""

    goods: tuple[GoodsRow, ...]
    buildings: tuple[BuildingRow, ...]
    supply: tuple[SupplyRow, ...]
    demand: tuple[DemandRow, ...]

    @classmethod
    def of(cls, tables: Mapping[str, Iterable[Any]]) -> BuildingData:
        """Make an economy of its rows by table."""
        return cls(*(tuple(tables[name]) for name in BUILDING))

    @property
    def tables(self) -> dict[str, tuple[tuple[object, ...], ...]]:
        """The rows by table."""
        return dict(zip(BUILDING, (self.goods, self.buildings, self.supply, self.demand), strict=True))

    def model(self, goods: str, semantics: Semantics = "released") -> Building:
        """Return the decision model for one goods; raise SetupError if the data lack it."""
        if goods not in self.chains.goods:
            raise SetupError(f"The data have no goods {goods!r}; they have {', '.join(self.chains.goods)}.")
        return Building(self, goods, semantics)

    @cached_property
    def chains(self) -> Chains:
        return Chains.of(self)

    @cached_property
    def figures(self) -> BuildingFigures:
        return BuildingFigures(
            np.array([row.base_price for row in self.goods]),
            np.array([row.pop_demand for row in self.goods]),
            np.array([row.max_demand for row in self.demand]),
            np.array([row.max_supply for row in self.supply]),
            np.array([row.current_output for row in self.supply]),
        )


@dataclass(frozen=True)
class BuildingFigures:
    """The inputs that a trial varies.

    One float64 per goods (the first two), per demand row (the third), per supply row (the last two).
    """

    base_price: NDArray[np.float64]
    pop_demand: NDArray[np.float64]
    max_demand: NDArray[np.float64]
    max_supply: NDArray[np.float64]
    output: NDArray[np.float64]


@dataclass(frozen=True)
class Building:
    """A decision about which building gains 5 levels.

    Every building is a candidate (its id as text); an outcome is a price.
    """

    data: BuildingData
    goods: str
    semantics: Semantics = "released"
    shaken: BuildingFigures | None = None
    measure: str = field(default="price", init=False)
    goal: Goal = field(default="min", init=False)

    def candidates(self) -> tuple[str, ...]:
        return tuple(self.data.chains.buildings)

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Return the price after expanding each candidate, shape (len(candidates),). nan for a name of no building and,
        under the "released" rule, for a building that may not be decided.
        """
        chains = self.data.chains
        goods = chains.goods[self.goods]
        numbers = [chains.buildings.get(name.strip(), -1) for name in candidates]
        allowed = set(chains.makers[goods]) if self.semantics == "released" else set(range(len(self.data.buildings)))
        # A candidate that was named twice is simulated once.
        expanded = [building for building in dict.fromkeys(numbers) if building in allowed]
        if not expanded:
            return np.full(len(numbers), np.nan)
        after = compute_goods_prices(self.data, expanded, self.semantics, self.shaken)[:, goods]
        # The published price is of the published figures: with shaken ones the comparison would exclude candidates by
        # chance.
        if self.semantics == "released" and self.shaken is None:
            after = np.where(after < self.data.goods[goods].current_price, after, np.nan)
        price = dict(zip(expanded, after.tolist(), strict=True))
        return np.array([price.get(building, np.nan) for building in numbers], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> Building:
        return replace(self, shaken=vary_figures(self.shaken or self.data.figures, percent, rng))


def compute_goods_prices(
    data: BuildingData, expanded: Sequence[int], semantics: Semantics, figures: BuildingFigures | None = None
) -> NDArray[np.float64]:
    """Compute the price of every goods after expanding each building, shape (expanded, goods).

    A building is its index; -1 expands none.
    """
    rows = len(data.supply) + len(data.demand) + 1
    # At least two columns a piece: see the note on one column below.
    room = max(2, CELLS // rows)
    parts = [expanded[at : at + room] for at in range(0, len(expanded), room)]
    return np.concatenate([_compute_goods_prices(data, part, semantics, figures or data.figures) for part in parts])


def _compute_goods_prices(
    data: BuildingData, expanded: Sequence[int], semantics: Semantics, figures: BuildingFigures
) -> NDArray[np.float64]:
    # numpy sums a single column pairwise, several row by row: the last bits would differ with the number of candidates.
    columns = [*expanded, expanded[0]] if len(expanded) == 1 else list(expanded)
    chains, released = data.chains, semantics == "released"
    # Expand: MD and MS of the building are multiplied by (L + 5) / L.
    most_in = np.repeat(figures.max_demand[chains.demands][:, None], len(columns), axis=1)
    most_out = np.repeat(figures.max_supply[chains.supplies][:, None], len(columns), axis=1)
    for column, building in enumerate(columns):
        if building >= 0:
            level = data.buildings[building].level
            most_in[chains.demand_rows[building], column] *= (level + LEVELS) / level
            most_out[chains.supply_rows[building], column] *= (level + LEVELS) / level
    # Start: demand, and supply before the first cycle.
    published = np.repeat(figures.output[chains.supplies][:, None], len(columns), axis=1)
    demand = compute_demand(data, figures, most_in, released)
    supply = np.zeros((len(data.goods), len(columns)))
    for goods, start, end in chains.slices:
        put_out = [published[start:end]] if released else []
        supply[goods] = np.add.reduce(np.concatenate([*put_out, most_out[start:end]]), axis=0)
    # Under the released rule, rows of buildings without inputs keep this value through all cycles.
    output = published if released else most_out.copy()
    for _ in range(CYCLES):
        run_cycle(chains, demand, supply, most_in, most_out, output)
    # Price: base * (1 + 0.75 * (TD - TS) / max(TD, TS)); the divisor is 0 only where both are, and then the price is
    # the base price.
    most = np.maximum(demand, supply)
    gap = np.divide(0.75 * (demand - supply), most, out=np.zeros_like(most), where=most > 0)
    return np.asarray((figures.base_price[:, None] * (1 + gap)).T[: len(expanded)])


def run_cycle(
    chains: Chains,
    demand: NDArray[np.float64],
    supply: NDArray[np.float64],
    most_in: NDArray[np.float64],
    most_out: NDArray[np.float64],
    output: NDArray[np.float64],
) -> None:
    """Compute one round of inputs, outputs and supply, in place.

    Arrays are goods by candidates, or rows by candidates.
    """
    if chains.blocks:
        # CI = MD * S / D, then min(CI, MD) / MD, all in one array.
        met = most_in * supply[chains.demand_goods]
        idle = None if most_in.all() else most_in == 0
        np.divide(met, demand[chains.demand_goods], out=met, where=True if idle is None else ~idle)
        np.minimum(met, most_in, out=met)
        np.divide(met, most_in, out=met, where=True if idle is None else ~idle)
        if idle is not None:
            met[idle] = 1.0  # who needs nothing lacks nothing
        # Add up a building's inputs rank by rank: that is the order of the file, so sums are the same to the last bit.
        share = met[: chains.blocks[0]]
        start = chains.blocks[0]
        for size in chains.blocks[1:]:
            share[:size] += met[start : start + size]
            start += size
        share /= chains.inputs
        # Where every building has inputs no row needs to be picked out.
        if len(chains.fed) == len(output):
            np.multiply(most_out, share[chains.feeder], out=output)
        else:
            output[chains.fed] = most_out[chains.fed] * share[chains.feeder]
    for goods, start, end in chains.slices:
        np.add.reduce(output[start:end], axis=0, out=supply[goods])


def compute_demand(
    data: BuildingData, figures: BuildingFigures, most_in: NDArray[np.float64], released: bool
) -> NDArray[np.float64]:
    """Sum the demand by goods and candidate, in file order.

    If ``released``, it is added to the demand before the expansion.
    """
    chains = data.chains
    total = np.zeros((len(data.goods), most_in.shape[1]))
    where = np.empty(len(data.demand), dtype=np.intp)  # file order -> place
    where[chains.demands] = np.arange(len(data.demand))
    goods = chains.demand_goods[where].tolist()
    # The released answers count the buildings' demand twice: before the expansion and after it.
    if released:
        before = [0.0] * len(data.goods)
        for of, amount in zip(goods, figures.max_demand.tolist(), strict=True):
            before[of] += amount
        total += np.array(before)[:, None]
    for of, place in zip(goods, where.tolist(), strict=True):
        total[of] += most_in[place]
    return np.asarray(figures.pop_demand[:, None] + total)
