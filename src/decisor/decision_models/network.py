"""The shape of a trade network: indexes by name, downstream edges in file order, and an order to simulate in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from decisor.decision_models.rows import CountryRow, FlowRow, NodeRow, PowerRow
from decisor.errors import SetupError


@dataclass(frozen=True)
class Network:
    """Nodes, countries and power rows by their index in the data.

    ``order`` is topological; nodes on or behind a cycle are left out of it, their value stays as published.
    """

    nodes: dict[str, int]
    countries: dict[str, int]
    homes: dict[str, int]
    down: list[list[int]]  # per node: the nodes its edges lead to
    rows_at: list[list[int]]  # per node: its power rows
    rows_of: dict[str, dict[int, int]]  # per country: node -> power row
    order: list[int]
    above: dict[int, frozenset[int]] = field(default_factory=dict)  # per home: what leads to it, filled on demand

    @classmethod
    def of(
        cls,
        countries: Sequence[CountryRow],
        nodes: Sequence[NodeRow],
        flows: Sequence[FlowRow],
        powers: Sequence[PowerRow],
    ) -> Network:
        """Raises SetupError where an edge, a home or a power row names a node that is not there."""
        index = {row.trade_node: at for at, row in enumerate(nodes)}
        try:
            down: list[list[int]] = [[] for _ in nodes]
            for edge in flows:
                down[index[edge.source]].append(index[edge.dest])
            rows_at: list[list[int]] = [[] for _ in nodes]
            rows_of: dict[str, dict[int, int]] = {}
            for at, power in enumerate(powers):
                rows_at[index[power.trade_node]].append(at)
                rows_of.setdefault(power.country_name, {})[index[power.trade_node]] = at
            homes = {row.country_name: index[row.home_node] for row in countries}
        except KeyError as missing:
            raise SetupError(f"The data name a trading node {missing} that is not among the nodes.") from missing
        names = {row.country_name: at for at, row in enumerate(countries)}
        return cls(index, names, homes, down, rows_at, rows_of, topological(down))

    def steers(self, node: int, country: str) -> int | None:
        """Which downstream edge of ``node`` (its number there) a merchant of ``country`` favours; None for none.

        The edge straight to its home, else the first from which home can be reached.
        """
        home = self.homes[country]
        down = self.down[node]
        if home in down:
            return down.index(home)
        above = self.leading_to(home)
        return next((edge for edge, dest in enumerate(down) if dest in above), None)

    def leading_to(self, home: int) -> frozenset[int]:
        """All nodes from which ``home`` can be reached."""
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


def topological(down: Sequence[Sequence[int]]) -> list[int]:
    """Each node after everything that flows into it, earlier nodes first where there is a choice.

    >>> topological([[2], [2], [], [4], [3]])
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
