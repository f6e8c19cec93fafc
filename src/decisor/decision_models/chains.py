"""The shape of a production network, arranged so that whole columns of candidates are computed at once.

Demand rows are kept rank by rank (every building's first input, every second input, ...), buildings with many inputs
first, so that the k-th inputs are one block; supply rows are kept by goods. Within a building and within a goods
the file's order stays, and sums run along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from decisor.decision_models.rows import BuildingRow, DemandRow, GoodsRow, SupplyRow
from decisor.errors import SetupError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Chains:
    """Indexes into goods, buildings and rows; ``demands`` and ``supplies`` are the file's row numbers as arranged."""

    goods: dict[str, int]  # by name
    buildings: dict[str, int]  # by id, as text
    makers: list[list[int]]  # per goods: the buildings that supply it, in the order of the buildings
    demands: NDArray[np.intp]
    demand_goods: NDArray[np.intp]
    blocks: list[int]  # how many buildings have a first, a second, ... input
    inputs: NDArray[np.float64]  # number of inputs of each building that has some, shape (blocks[0], 1)
    supplies: NDArray[np.intp]
    slices: list[tuple[int, int, int]]  # goods, and where its supply rows start and end
    fed: NDArray[np.intp]  # which supply rows belong to a building with inputs
    feeder: NDArray[np.intp]  # and which of those buildings it is, numbered as in ``inputs``
    demand_rows: list[list[int]]  # per building: its places in ``demands``
    supply_rows: list[list[int]]  # per building: its places in ``supplies``

    @classmethod
    def of(
        cls,
        goods: Sequence[GoodsRow],
        buildings: Sequence[BuildingRow],
        supply: Sequence[SupplyRow],
        demand: Sequence[DemandRow],
    ) -> Chains:
        """Raises SetupError where a supply or demand row names goods or a building that is not there."""
        codes = {row.code: at for at, row in enumerate(goods)}
        ids = {row.id: at for at, row in enumerate(buildings)}
        try:
            takes = [(codes[row.goods_id], ids[row.building_id]) for row in demand]
            makes = [(codes[row.goods_id], ids[row.building_id]) for row in supply]
        except KeyError as missing:
            raise SetupError(
                f"A supply or demand row names {missing}, which is no goods code or building id."
            ) from None
        inputs: list[list[int]] = [[] for _ in buildings]
        for row, (_, building) in enumerate(takes):
            inputs[building].append(row)
        eaters = sorted((b for b in range(len(buildings)) if inputs[b]), key=lambda b: -len(inputs[b]))
        depth = len(inputs[eaters[0]]) if eaters else 0
        ranks = [[inputs[b][rank] for b in eaters if len(inputs[b]) > rank] for rank in range(depth)]
        demands = [row for rank in ranks for row in rank]
        supplies = sorted(range(len(makes)), key=lambda row: makes[row][0])
        place = {b: at for at, b in enumerate(eaters)}
        fed = [at for at, row in enumerate(supplies) if makes[row][1] in place]
        return cls(
            {row.goods_name: at for at, row in enumerate(goods)},
            {str(row.id): at for at, row in enumerate(buildings)},
            [sorted(group) for group in _grouped(makes, len(goods))],
            np.array(demands, dtype=np.intp),
            np.array([takes[row][0] for row in demands], dtype=np.intp),
            [len(rank) for rank in ranks],
            np.array([[len(inputs[b])] for b in eaters], dtype=np.float64),
            np.array(supplies, dtype=np.intp),
            _slices([makes[row][0] for row in supplies]),
            np.array(fed, dtype=np.intp),
            np.array([place[makes[supplies[at]][1]] for at in fed], dtype=np.intp),
            _places([takes[row][1] for row in demands], len(buildings)),
            _places([makes[row][1] for row in supplies], len(buildings)),
        )


def _grouped(pairs: Sequence[tuple[int, int]], count: int) -> list[set[int]]:
    groups: list[set[int]] = [set() for _ in range(count)]
    for group, item in pairs:
        groups[group].add(item)
    return groups


def _places(owners: Sequence[int], count: int) -> list[list[int]]:
    places: list[list[int]] = [[] for _ in range(count)]
    for at, owner in enumerate(owners):
        places[owner].append(at)
    return places


def _slices(keys: Sequence[int]) -> list[tuple[int, int, int]]:
    """
    >>> _slices([0, 0, 3])
    [(0, 0, 2), (3, 2, 3)]
    """
    edges = [at for at in range(len(keys)) if not at or keys[at] != keys[at - 1]]
    return [(keys[start], start, end) for start, end in zip(edges, [*edges[1:], len(keys)], strict=True)]
