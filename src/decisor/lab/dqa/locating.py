"""The trade world of Decision QA (Locating): a country's merchant and the profit of its home node.

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

``Network`` holds the indexes by name, the downstream edges in file order, and the order to simulate in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from decisor.errors import SetupError
from decisor.lab.dqa.rows import LOCATING, CountryRow, FlowRow, NodeRow, PowerRow
from decisor.types import Goal

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Network:
    """The shape of a trade network, with nodes, countries and power rows by their index in the data."""

    nodes: dict[str, int]
    countries: dict[str, int]
    homes: dict[str, int]
    """Home node of each country."""
    down: list[list[int]]
    """Per node: the nodes its edges lead to, in file order."""
    rows_at: list[list[int]]
    """Per node: its power rows."""
    rows_of: dict[str, dict[int, int]]
    """Per country: node -> power row."""
    order: list[int]
    """Topological order. Nodes on or behind a cycle are left out; their value stays as published."""
    above: dict[int, frozenset[int]] = field(default_factory=dict)
    """Per home: the nodes from which it can be reached, filled on demand."""

    @classmethod
    def of(cls, data: LocatingData) -> Network:
        """Index a network; raise SetupError if an edge, a home or a power row names an unknown node."""
        nodes = data.nodes
        index = {row.trade_node: at for at, row in enumerate(nodes)}
        try:
            down: list[list[int]] = [[] for _ in nodes]
            for edge in data.flows:
                down[index[edge.source]].append(index[edge.dest])
            rows_at: list[list[int]] = [[] for _ in nodes]
            rows_of: dict[str, dict[int, int]] = {}
            for at, power in enumerate(data.powers):
                rows_at[index[power.trade_node]].append(at)
                rows_of.setdefault(power.country_name, {})[index[power.trade_node]] = at
            homes = {row.country_name: index[row.home_node] for row in data.countries}
        except KeyError as missing:
            raise SetupError(f"The data name a trading node {missing} that is not among the nodes.") from missing
        names = {row.country_name: at for at, row in enumerate(data.countries)}
        return cls(index, names, homes, down, rows_at, rows_of, sort_topologically(down))

    def steers(self, node: int, country: str) -> int | None:
        """Return the number of the downstream edge of ``node`` that a merchant of ``country`` favours.

        It is the edge straight to its home, else the first from which home can be reached. None if there is none.
        """
        home = self.homes[country]
        down = self.down[node]
        if home in down:
            return down.index(home)
        above = self.leading_to(home)
        return next((edge for edge, dest in enumerate(down) if dest in above), None)

    def leading_to(self, home: int) -> frozenset[int]:
        """Return all nodes from which ``home`` can be reached."""
        # Search upstream from home, once for all nodes that ask.
        if home not in self.above:
            up: list[list[int]] = [[] for _ in self.down]
            for node, down in enumerate(self.down):
                for dest in down:
                    up[dest].append(node)
            above, waiting = {home}, [home]
            while waiting:
                for node in up[waiting.pop()]:
                    if node not in above:
                        above.add(node)
                        waiting.append(node)
            self.above[home] = frozenset(above)
        return self.above[home]


def sort_topologically(down: Sequence[Sequence[int]]) -> list[int]:
    """Sort nodes so that each follows all that flow into it; of several, earlier nodes come first.

    Nodes on or behind a cycle are left out.

    >>> sort_topologically([[2], [2], [], [4], [3]])
    [0, 1, 2]
    """
    waits = [0] * len(down)
    for edges in down:
        for dest in edges:
            waits[dest] += 1
    ready = deque(node for node, count in enumerate(waits) if not count)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for dest in down[node]:
            waits[dest] -= 1
            if not waits[dest]:
                ready.append(dest)
    return order


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

    @classmethod
    def of(cls, tables: Mapping[str, Iterable[Any]]) -> LocatingData:
        """Make a network of its rows by table."""
        return cls(*(tuple(tables[name]) for name in LOCATING))

    @property
    def tables(self) -> dict[str, tuple[tuple[object, ...], ...]]:
        """The rows by table."""
        return dict(zip(LOCATING, (self.countries, self.nodes, self.flows, self.powers), strict=True))

    def model(self, country: str, semantics: Semantics = "released") -> Locating:
        """Return the decision model of one country; raise SetupError if the data lack it."""
        if country not in self.network.countries:
            raise SetupError(f"The data have no country {country!r}.")
        return Locating(self, country, semantics)

    @cached_property
    def network(self) -> Network:
        return Network.of(self)

    @cached_property
    def figures(self) -> LocatingFigures:
        return LocatingFigures(
            np.array([row.local_value for row in self.nodes]),
            np.array([row.total_power for row in self.nodes]),
            np.array([row.ingoing for row in self.nodes]),
            np.array([row.outgoing for row in self.nodes]),
            np.array([row.base_trading_power for row in self.powers]),
            np.array([row.development for row in self.countries]),
        )


@dataclass(frozen=True)
class LocatingFigures:
    """The inputs that a trial varies. One float64 per node (the first four), per power row, per country."""

    local: NDArray[np.float64]
    total: NDArray[np.float64]
    ingoing: NDArray[np.float64]
    outgoing: NDArray[np.float64]
    base: NDArray[np.float64]
    development: NDArray[np.float64]


F = TypeVar("F")


def vary_figures(figures: F, percent: float, rng: np.random.Generator) -> F:
    """Return figures, a dataclass of arrays, with each number changed by at most ``percent``."""
    arrays: list[NDArray[np.float64]] = list(vars(figures).values())
    return type(figures)(*(values * (1 + rng.uniform(-percent, percent, values.shape) / 100) for values in arrays))


@dataclass(frozen=True)
class Locating:
    """A decision about where ``country`` puts its merchant.

    Every node but its home is a candidate; outcomes are profits at home.
    """

    data: LocatingData
    country: str
    semantics: Semantics = "released"
    shaken: LocatingFigures | None = None
    measure: str = field(default="profit", init=False)
    goal: Goal = field(default="max", init=False)

    @property
    def figures(self) -> LocatingFigures:
        return self.shaken or self.data.figures

    @property
    def home(self) -> str:
        network = self.data.network
        return self.data.countries[network.countries[self.country]].home_node

    def candidates(self) -> tuple[str, ...]:
        return tuple(row.trade_node for row in self.data.nodes if row.trade_node != self.home)

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Return the profit at home for a merchant at each candidate, shape (len(candidates),). nan for the home node
        and for a name of no node.
        """
        network = self.data.network
        mine = network.rows_of.get(self.country, {})
        nodes = [network.nodes.get(name, -1) for name in candidates]
        home = network.nodes[self.home]
        # Only nodes where the country has a power row can change anything (0 to 23 of 79 in the release): all others
        # share one column.
        placed = [-1, *dict.fromkeys(node for node in nodes if node in mine)]  # -1: a merchant without effect
        # Compute side by side as many candidates as fit into CELLS.
        room = max(2, CELLS // max(1, len(self.data.nodes)))
        parts = [self.profits(placed[at : at + room], home) for at in range(0, len(placed), room)]
        profit = dict(zip(placed, np.concatenate(parts).tolist(), strict=True))
        return np.array([profit.get(n, profit[-1]) if n not in (-1, home) else np.nan for n in nodes], dtype=np.float64)

    def varied(self, percent: float, rng: np.random.Generator) -> Locating:
        return replace(self, shaken=vary_figures(self.figures, percent, rng))

    def power(self, row: int, merchant: bool) -> float:
        """Return the trading power of one row, with or without a merchant."""
        base = float(self.figures.base[row])
        if not merchant:
            return base
        owner = self.data.powers[row]
        if not self.data.nodes[self.data.network.nodes[owner.trade_node]].is_inland:
            return GROWTH * (base + 2)
        development = float(self.figures.development[self.data.network.countries[owner.country_name]])
        return GROWTH * (base + 2 + max(50.0, development if self.semantics == "released" else development / 3))

    def at(self, node: int, placed: bool) -> NodePower:
        """Return power and votes at a node, with or without the country's merchant there."""
        foreign = total = 0.0
        votes: dict[int, float] = {}
        for row in self.data.network.rows_at[node]:
            owner = self.data.powers[row]
            merchant = owner.has_merchant or (placed and owner.country_name == self.country)
            power = self.power(row, merchant)
            total += power
            # P is the sum over countries whose home is elsewhere; a merchant at home casts no vote.
            if owner.is_home:
                continue
            foreign += power
            if merchant and (edge := self.data.network.steers(node, owner.country_name)) is not None:
                votes[edge] = votes.get(edge, 0.0) + power
        if self.semantics == "released":
            # The release adds the sum to the published total, which holds the powers already.
            total = float(self.figures.total[node]) + total
        edges = len(self.data.network.down[node])
        # One by one and in the order of the rows: sum() compensates for rounding since Python 3.12, and the last bit
        # would differ.
        cast = 0.0
        for power in votes.values():
            cast += power
        shares = [votes.get(edge, 0.0) / cast for edge in range(edges)] if votes else None
        return NodePower(foreign, total, shares)

    def profits(self, placed: Sequence[int], home: int) -> NDArray[np.float64]:
        """Simulate a merchant at each node of ``placed``, side by side; return shape (len(placed),).

        A node is its index; -1 means nowhere.
        """
        figures, network = self.figures, self.data.network
        column = {node: at for at, node in enumerate(placed)}
        released = self.semantics == "released"
        # Nothing is reset in the release: ingoing starts as published, and the flows are added to it.
        start = figures.ingoing if released else np.zeros(len(self.data.nodes))
        ingoing = np.repeat(start[:, None], len(placed), axis=1)
        home_out = np.full(len(placed), figures.outgoing[home] if released else 0.0)
        for node in network.order:
            plain = self.at(node, False)
            value = figures.local[node] + ingoing[node]
            # Without any power at a node the released value stays as published, the paper's is 0.
            out = value * plain.share if plain.total else np.full(len(placed), figures.outgoing[node] * released)
            shares = plain.shares
            down = network.down[node]
            flows = [out * shares[e] if shares else out / len(down) for e in range(len(down))]
            # Recompute only the column of the candidate that places its merchant here.
            if node in column:
                at = column[node]
                mine = self.at(node, True)
                # A copy, as the column is overwritten below.
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
        """Return the profit at home; 0 if the country holds nothing there."""
        # Equation 3 of the paper has no "- OUT"; the released answers have it. The best decision is the same.
        row = self.data.network.rows_of.get(self.country, {}).get(home)
        state = self.at(home, False)
        if row is None or not state.total:
            return np.zeros(len(ingoing))
        power = self.power(row, self.data.powers[row].has_merchant)
        remaining = self.figures.local[home] - out if self.semantics == "released" else self.figures.local[home]
        return np.asarray((remaining + ingoing) * power / state.total)


@dataclass(frozen=True, slots=True)
class NodePower:
    """The power at a node, and how its outgoing value is split."""

    foreign: float
    """Sum over the countries whose home is another node."""
    total: float
    shares: list[float] | None
    """Share of each downstream edge. None means evenly."""

    @property
    def share(self) -> float:
        return self.foreign / self.total
