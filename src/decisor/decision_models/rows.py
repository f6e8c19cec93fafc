"""The rows of the two Decision QA worlds, with the columns of their relational form, and how a raw value is typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from decisor.errors import SetupError
from decisor.types import Value


class CountryRow(NamedTuple):
    country_name: str
    home_node: str
    development: float


class NodeRow(NamedTuple):
    trade_node: str
    local_value: float
    is_inland: bool
    total_power: float
    outgoing: float
    ingoing: float


class FlowRow(NamedTuple):
    """An edge of the trade network, from upstream to downstream."""

    source: str
    dest: str
    flow: float


class PowerRow(NamedTuple):
    """What one country holds at one node (table node_country)."""

    trade_node: str
    country_name: str
    is_home: bool
    has_merchant: bool
    base_trading_power: float
    calculated_trading_power: float


class GoodsRow(NamedTuple):
    goods_name: str
    code: int
    base_price: float
    current_price: float
    pop_demand: float


class BuildingRow(NamedTuple):
    id: int
    name: str
    level: int


class SupplyRow(NamedTuple):
    goods_id: int
    building_id: int
    max_supply: float
    current_output: float
    level: int


class DemandRow(NamedTuple):
    goods_id: int
    building_id: int
    max_demand: float
    current_input: float
    level: int


Row = TypeVar("Row", bound=tuple[object, ...])

LOCATING = {"country": CountryRow, "trade_node": NodeRow, "flow": FlowRow, "node_country": PowerRow}
BUILDING = {"goods": GoodsRow, "building": BuildingRow, "supply": SupplyRow, "demand": DemandRow}
MISNAMED = {"has_has_merchant": "has_merchant"}  # six SQL and two Cypher files of the release


def truth(value: Value) -> bool:
    """A boolean as stores and dumps give it: true, 1, "TRUE", or "  True" with blanks.

    >>> truth("  True"), truth("False"), truth(1)
    (True, False, True)
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word not in ("true", "false", "1", "0", "t", "f"):
            raise SetupError(f"{value!r} is neither true nor false.")
        return word in ("true", "1", "t")
    return bool(value)


CASTS = {"str": str, "float": float, "int": int, "bool": truth}


def typed(kind: type[Row], fields: Mapping[str, Value]) -> Row:
    """One row of ``kind`` from columns by name. Raises SetupError naming the missing or unreadable column.

    >>> typed(FlowRow, {"source": "a", "dest": "b", "flow": "1.5"})
    FlowRow(source='a', dest='b', flow=1.5)
    """
    values = []
    for name, cast in casts(kind):
        if name not in fields:
            raise SetupError(f"A row of {kind.__name__} has no {name}; it has {', '.join(fields)}.")
        try:
            values.append(cast(fields[name]))
        except (TypeError, ValueError) as error:
            raise SetupError(f"{name} of {kind.__name__} is {fields[name]!r}: {error}.") from error
    return kind(*values)


def casts(kind: type[Row]) -> list[tuple[str, type]]:
    """Each column with the function that reads it; the annotations are strings here."""
    return [(name, CASTS[str(getattr(note, "__forward_arg__", note))]) for name, note in kind.__annotations__.items()]  # type: ignore[misc]
