"""The economy of Decision QA (Building): which building gains 5 levels, and what the goods then cost.

Expanding building b from level L multiplies its maximal demands MD and supplies MS by (L + 5) / L. Then 10 cycles of

    CI(g, b) = MD(g, b) * S(g) / D(g)                                input of b
    CO(g, b) = MS(g, b) * mean over b's inputs of min(CI, MD) / MD    output of b
    S(g)     = sum of CO(g, .)

    price(g) = base * (1 + 0.75 * (D - S) / max(D, S))                 base where both are 0

"paper" is the printed rule: D = population demand + sum of MD, S = sum of MS at first, and a building without inputs
puts out its MS. "released" starts, as the released answers do, from the published state, and adds to it: D = population
demand + sum of MD before + sum of MD after the expansion, S = sum of published outputs + sum of MS; a building without
inputs keeps its published output even when expanded; the decision must supply the goods and bring its price below
the published one. Sums run in the order of the rows, so results are the same to the last bit everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from decisor.decision_models.chains import Chains
from decisor.decision_models.read_world import tables
from decisor.decision_models.rows import BUILDING, BuildingRow, DemandRow, GoodsRow, SupplyRow
from decisor.errors import SetupError
from decisor.types import BulkSource, Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray

Semantics = Literal["released", "paper"]
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

    def model(self, goods: str, semantics: Semantics = "released") -> Building:
        """The decision for one goods. Raises SetupError where the data have no such goods."""
        if goods not in self.chains.goods:
            raise SetupError(f"The data have no goods {goods!r}; they have {', '.join(self.chains.goods)}.")
        return Building(self, goods, semantics)

    @cached_property
    def chains(self) -> Chains:
        return Chains.of(self.goods, self.buildings, self.supply, self.demand)

    @cached_property
    def figures(self) -> Figures:
        return Figures(
            np.array([row.base_price for row in self.goods]),
            np.array([row.pop_demand for row in self.goods]),
            np.array([row.max_demand for row in self.demand]),
            np.array([row.max_supply for row in self.supply]),
            np.array([row.current_output for row in self.supply]),
        )


@dataclass(frozen=True)
class Figures:
    """The inputs that a trial varies; one float64 per goods (first two), per demand row, per supply row (last two)."""

    base_price: NDArray[np.float64]
    pop_demand: NDArray[np.float64]
    max_demand: NDArray[np.float64]
    max_supply: NDArray[np.float64]
    output: NDArray[np.float64]

    def varied(self, percent: float, rng: np.random.Generator) -> Figures:
        def shake(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return values * (1 + rng.uniform(-percent, percent, values.shape) / 100)

        return Figures(*(shake(getattr(self, name)) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Building:
    """Which building gains 5 levels. Every building is a candidate (its id as text); an outcome is a price."""

    data: BuildingData
    goods: str
    semantics: Semantics = "released"
    shaken: Figures | None = None
    measure: str = field(default="price", init=False)
    goal: Goal = field(default="min", init=False)

    def candidates(self) -> tuple[str, ...]:
        return tuple(self.data.chains.buildings)

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Price after expanding each candidate; nan for what is no building or, as released, may not be decided."""
        chains = self.data.chains
        goods = chains.goods[self.goods]
        numbers = [chains.buildings.get(name.strip(), -1) for name in candidates]
        allowed = set(chains.makers[goods]) if self.semantics == "released" else set(range(len(self.data.buildings)))
        expanded = [building for building in dict.fromkeys(numbers) if building in allowed]
        if not expanded:
            return np.full(len(numbers), np.nan)
        after = prices(self.data, expanded, self.semantics, self.shaken)[:, goods]
        if self.semantics == "released" and self.shaken is None:
            after = np.where(after < self.data.goods[goods].current_price, after, np.nan)
        price = dict(zip(expanded, after.tolist(), strict=True))
        return np.array([price.get(building, np.nan) for building in numbers], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> Building:
        return replace(self, shaken=(self.shaken or self.data.figures).varied(percent, rng))


def prices(
    data: BuildingData, expanded: Sequence[int], semantics: Semantics, figures: Figures | None = None
) -> NDArray[np.float64]:
    """The price of every goods after expanding each building (its index; -1 expands none): shape (expanded, goods)."""
    rows = len(data.supply) + len(data.demand) + 1
    room = max(2, CELLS // rows)
    parts = [expanded[at : at + room] for at in range(0, len(expanded), room)]
    return np.concatenate([_prices(data, part, semantics, figures or data.figures) for part in parts])


def _prices(data: BuildingData, expanded: Sequence[int], semantics: Semantics, figures: Figures) -> NDArray[np.float64]:
    columns = [*expanded, expanded[0]] if len(expanded) == 1 else list(expanded)  # numpy sums one column pairwise
    chains, released = data.chains, semantics == "released"
    most_in = np.repeat(figures.max_demand[chains.demands][:, None], len(columns), axis=1)
    most_out = np.repeat(figures.max_supply[chains.supplies][:, None], len(columns), axis=1)
    for column, building in enumerate(columns):
        if building >= 0:
            level = data.buildings[building].level
            most_in[chains.demand_rows[building], column] *= (level + LEVELS) / level
            most_out[chains.supply_rows[building], column] *= (level + LEVELS) / level
    published = np.repeat(figures.output[chains.supplies][:, None], len(columns), axis=1)
    demand = demand_of(data, figures, most_in, released)
    supply = np.zeros((len(data.goods), len(columns)))
    for goods, start, end in chains.slices:
        put_out = [published[start:end]] if released else []
        supply[goods] = np.add.reduce(np.concatenate([*put_out, most_out[start:end]]), axis=0)
    output = published if released else most_out.copy()
    for _ in range(CYCLES):
        cycle(chains, demand, supply, most_in, most_out, output)
    most = np.maximum(demand, supply)
    gap = np.divide(0.75 * (demand - supply), most, out=np.zeros_like(most), where=most > 0)
    return np.asarray((figures.base_price[:, None] * (1 + gap)).T[: len(expanded)])


def cycle(
    chains: Chains,
    demand: NDArray[np.float64],
    supply: NDArray[np.float64],
    most_in: NDArray[np.float64],
    most_out: NDArray[np.float64],
    output: NDArray[np.float64],
) -> None:
    """One round of inputs, outputs and supply, in place. Goods by candidates, or rows by candidates."""
    if chains.blocks:
        met = most_in * supply[chains.demand_goods]
        idle = None if most_in.all() else most_in == 0
        np.divide(met, demand[chains.demand_goods], out=met, where=True if idle is None else ~idle)
        np.minimum(met, most_in, out=met)
        np.divide(met, most_in, out=met, where=True if idle is None else ~idle)
        if idle is not None:
            met[idle] = 1.0  # who needs nothing lacks nothing
        share = met[: chains.blocks[0]]
        start = chains.blocks[0]
        for size in chains.blocks[1:]:
            share[:size] += met[start : start + size]
            start += size
        share /= chains.inputs
        if len(chains.fed) == len(output):
            np.multiply(most_out, share[chains.feeder], out=output)
        else:
            output[chains.fed] = most_out[chains.fed] * share[chains.feeder]
    for goods, start, end in chains.slices:
        np.add.reduce(output[start:end], axis=0, out=supply[goods])


def demand_of(
    data: BuildingData, figures: Figures, most_in: NDArray[np.float64], released: bool
) -> NDArray[np.float64]:
    """Demand by goods and candidate, summed in file order; as released, on top of the demand before expansion."""
    chains = data.chains
    total = np.zeros((len(data.goods), most_in.shape[1]))
    where = np.empty(len(data.demand), dtype=np.intp)  # file order -> place
    where[chains.demands] = np.arange(len(data.demand))
    goods = chains.demand_goods[where].tolist()
    if released:
        before = [0.0] * len(data.goods)
        for of, amount in zip(goods, figures.max_demand.tolist(), strict=True):
            before[of] += amount
        total += np.array(before)[:, None]
    for of, place in zip(goods, where.tolist(), strict=True):
        total[of] += most_in[place]
    return np.asarray(figures.pop_demand[:, None] + total)


async def read(source: BulkSource) -> BuildingData:
    """Reads the economy from a database in either form. Raises SetupError where it has another schema."""
    rows = await tables(source, BUILDING)
    return BuildingData(*(tuple(rows[name]) for name in BUILDING))  # type: ignore[arg-type]
