"""The worlds of Decision QA as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from decisor.decision_models.building import BuildingData
from decisor.decision_models.locating import LocatingData
from decisor.decision_models.rows import BUILDING, LOCATING

KEYS = {
    "country": "country_name",
    "trade_node": "trade_node",
    "flow": "source, dest",
    "node_country": "trade_node, country_name",
    "goods": "code",
    "building": "id",
    "supply": "goods_id, building_id",
    "demand": "goods_id, building_id",
}
TYPES = {"str": "VARCHAR(255)", "float": "DOUBLE PRECISION", "int": "INT", "bool": "BOOLEAN"}
WorldData = LocatingData | BuildingData
Rows = Sequence[tuple[object, ...]]


def tables_of(world: WorldData) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Name, columns and rows of each table."""
    if isinstance(world, LocatingData):
        rows: tuple[Rows, ...] = (world.countries, world.nodes, world.flows, world.powers)
        kinds: Mapping[str, type[tuple[object, ...]]] = LOCATING
    else:
        rows, kinds = (world.goods, world.buildings, world.supply, world.demand), BUILDING
    for (name, kind), part in zip(kinds.items(), rows, strict=True):
        yield name, tuple(kind.__annotations__), part


def kinds_of(world: WorldData) -> Mapping[str, Mapping[str, str]]:
    """By table and column: a key of ``TYPES``."""
    return {
        name: {column: str(getattr(note, "__forward_arg__", note)) for column, note in kind.__annotations__.items()}
        for name, kind in (LOCATING if isinstance(world, LocatingData) else BUILDING).items()
    }


def schema(world: WorldData, more: str = "", ending: str = "") -> Iterator[str]:
    """One CREATE TABLE for each table; ``more`` goes before the key, ``ending`` after the bracket."""
    for name, notes in kinds_of(world).items():
        columns = ", ".join(f"{column} {TYPES[note]}" for column, note in notes.items())
        yield f"CREATE TABLE {name} ({columns}, {more}PRIMARY KEY ({KEYS[name]})){ending}"
