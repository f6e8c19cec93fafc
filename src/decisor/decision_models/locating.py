"""The trade world of Decision QA (Locating): where a country puts a merchant, and what its home node then earns.

Nodes in topological order; at each node n, with power p = base, or 1.05 * (base + bonus) where the country has a
merchant, bonus = 2, on an inland node 2 + the inland bonus:

    out(n)   = (local(n) + in(n)) * (sum of p of countries with their home elsewhere / total(n))
    flow     = out(n), split by the votes of the merchants at n, evenly over the edges where nobody votes
    in(d)   += 1.05 * flow(n, d)
    profit   = (local(h) - out(h) + in(h)) * p(h) / total(h)      at the country's home h

"released" starts, as the released answers do, from the published state: total(n) is the published total power *plus*
the sum of p, and in(n) starts at the published ingoing; the inland bonus is max(50, development). "paper" is the
printed rule: total(n) = the sum of p, in(n) starts at 0, the bonus is max(50, development / 3), and home profit has no
"- out(h)". Sums run in the order of the rows, so results are the same to the last bit everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from decisor.decision_models.network import Network
from decisor.decision_models.read_world import tables
from decisor.decision_models.rows import LOCATING, CountryRow, FlowRow, NodeRow, PowerRow
from decisor.errors import SetupError
from decisor.types import BulkSource, Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray

Semantics = Literal["released", "paper"]
GROWTH = 1.05  # what value gains on an edge, and power from a merchant
CELLS = 4_000_000  # nodes x candidates simulated at a time: 32 MB per array


@dataclass(frozen=True)
class LocatingData:
    """A trade network as published, rows in file order."""

    countries: tuple[CountryRow, ...]
    nodes: tuple[NodeRow, ...]
    flows: tuple[FlowRow, ...]
    powers: tuple[PowerRow, ...]

    def model(self, country: str, semantics: Semantics = "released") -> Locating:
        """The decision of one country. Raises SetupError where the data have no such country."""
        if country not in self.network.countries:
            raise SetupError(f"The data have no country {country!r}.")
        return Locating(self, country, semantics)

    @cached_property
    def network(self) -> Network:
        return Network.of(self.countries, self.nodes, self.flows, self.powers)

    @cached_property
    def figures(self) -> Figures:
        return Figures(
            np.array([row.local_value for row in self.nodes]),
            np.array([row.total_power for row in self.nodes]),
            np.array([row.ingoing for row in self.nodes]),
            np.array([row.outgoing for row in self.nodes]),
            np.array([row.base_trading_power for row in self.powers]),
            np.array([row.development for row in self.countries]),
        )


@dataclass(frozen=True)
class Figures:
    """The inputs that a trial varies; one float64 per node (first four), per power row, per country."""

    local: NDArray[np.float64]
    total: NDArray[np.float64]
    ingoing: NDArray[np.float64]
    outgoing: NDArray[np.float64]
    base: NDArray[np.float64]
    development: NDArray[np.float64]

    def varied(self, percent: float, rng: np.random.Generator) -> Figures:
        def shake(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return values * (1 + rng.uniform(-percent, percent, values.shape) / 100)

        return Figures(*(shake(getattr(self, name)) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Locating:
    """Where ``country`` puts its merchant. Every node but its home is a candidate; outcomes are profits at home."""

    data: LocatingData
    country: str
    semantics: Semantics = "released"
    shaken: Figures | None = None
    measure: str = field(default="profit", init=False)
    goal: Goal = field(default="max", init=False)

    @property
    def figures(self) -> Figures:
        return self.shaken or self.data.figures

    @property
    def home(self) -> str:
        network = self.data.network
        return self.data.countries[network.countries[self.country]].home_node

    def candidates(self) -> tuple[str, ...]:
        return tuple(row.trade_node for row in self.data.nodes if row.trade_node != self.home)

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Profit at home for a merchant at each candidate; nan for the home node and for what is no node."""
        network = self.data.network
        mine = network.rows_of.get(self.country, {})
        nodes = [network.nodes.get(name, -1) for name in candidates]
        home = network.nodes[self.home]
        placed = [-1, *dict.fromkeys(node for node in nodes if node in mine)]  # -1: a merchant without effect
        room = max(2, CELLS // max(1, len(self.data.nodes)))
        parts = [self.profits(placed[at : at + room], home) for at in range(0, len(placed), room)]
        profit = dict(zip(placed, np.concatenate(parts).tolist(), strict=True))
        return np.array([profit.get(n, profit[-1]) if n not in (-1, home) else np.nan for n in nodes], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> Locating:
        return replace(self, shaken=self.figures.varied(percent, rng))

    def power(self, row: int, merchant: bool) -> float:
        """Trading power of one row, with or without a merchant."""
        base = float(self.figures.base[row])
        if not merchant:
            return base
        owner = self.data.powers[row]
        if not self.data.nodes[self.data.network.nodes[owner.trade_node]].is_inland:
            return GROWTH * (base + 2)
        development = float(self.figures.development[self.data.network.countries[owner.country_name]])
        return GROWTH * (base + 2 + max(50.0, development if self.semantics == "released" else development / 3))

    def at(self, node: int, placed: bool) -> State:
        """Power and votes at a node, with the country's merchant placed there or not."""
        foreign = total = 0.0
        votes: dict[int, float] = {}
        for row in self.data.network.rows_at[node]:
            owner = self.data.powers[row]
            merchant = owner.has_merchant or (placed and owner.country_name == self.country)
            power = self.power(row, merchant)
            total += power
            if owner.is_home:
                continue
            foreign += power
            if merchant and (edge := self.data.network.steers(node, owner.country_name)) is not None:
                votes[edge] = votes.get(edge, 0.0) + power
        if self.semantics == "released":
            total = float(self.figures.total[node]) + total
        edges = len(self.data.network.down[node])
        cast = 0.0
        for power in votes.values():
            cast += power
        shares = [votes.get(edge, 0.0) / cast for edge in range(edges)] if votes else None
        return State(foreign, total, shares)

    def profits(self, placed: Sequence[int], home: int) -> NDArray[np.float64]:
        """One simulation per node in ``placed`` (index; -1 = nowhere), side by side; shape (len(placed),)."""
        figures, network = self.figures, self.data.network
        column = {node: at for at, node in enumerate(placed)}
        released = self.semantics == "released"
        start = figures.ingoing if released else np.zeros(len(self.data.nodes))
        ingoing = np.repeat(start[:, None], len(placed), axis=1)
        home_out = np.full(len(placed), figures.outgoing[home] if released else 0.0)
        for node in network.order:
            plain = self.at(node, False)
            value = figures.local[node] + ingoing[node]
            out = value * plain.share if plain.total else np.full(len(placed), figures.outgoing[node] * released)
            shares = plain.shares
            down = network.down[node]
            flows = [out * shares[e] if shares else out / len(down) for e in range(len(down))]
            if node in column:
                at = column[node]
                mine = self.at(node, True)
                flows = [flow.copy() for flow in flows]
                out[at] = value[at] * mine.share if mine.total else out[at]
                for edge in range(len(down)):
                    flows[edge][at] = out[at] * mine.shares[edge] if mine.shares else out[at] / len(down)
            if node == home:
                home_out = out
            for edge, dest in enumerate(down):
                ingoing[dest] += GROWTH * flows[edge]
        return self.earned(home, ingoing[home], home_out)

    def earned(self, home: int, ingoing: NDArray[np.float64], out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Profit at home; 0 where the country holds nothing there."""
        row = self.data.network.rows_of.get(self.country, {}).get(home)
        state = self.at(home, False)
        if row is None or not state.total:
            return np.zeros(len(ingoing))
        power = self.power(row, self.data.powers[row].has_merchant)
        remaining = self.figures.local[home] - out if self.semantics == "released" else self.figures.local[home]
        return np.asarray((remaining + ingoing) * power / state.total)


@dataclass(frozen=True, slots=True)
class State:
    """A node's foreign power, total power, and the share of each downstream edge (None: evenly)."""

    foreign: float
    total: float
    shares: list[float] | None

    @property
    def share(self) -> float:
        return self.foreign / self.total


async def read(source: BulkSource) -> LocatingData:
    """Reads the trade network from a database in either form. Raises SetupError where it has another schema."""
    rows = await tables(source, LOCATING)
    return LocatingData(*(tuple(rows[name]) for name in LOCATING))  # type: ignore[arg-type]
