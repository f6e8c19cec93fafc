"""What the columns of an answer hold: times, measures, names, or nothing that can be drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from decisor.story.answer_charts.moments import moment, year
from decisor.types import Record, Value

Kind = Literal["time", "number", "name", "key", "none"]
KEY = re.compile(r"(?:^|[_\W])(?:id|code|key|no|nr|zip|postcode|phone)$", re.I)
CAMEL_KEY = re.compile(r"[a-z](?:ID|Id|Key|Code)$")
YEAR, MONTH, QUARTER = (re.compile(f"(?:{name})$", re.I) for name in ("year|yr", "month", "quarter|qtr"))
DECIMAL = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """``cells``: as they are read; ``places``: the number of each, of a time its seconds; None where there is none."""

    name: str
    kind: Kind
    cells: tuple[Value, ...]
    places: tuple[float | None, ...] = ()

    def text(self, at: int) -> str:
        value = self.cells[at]
        return "" if value is None else str(value)


def columns_of(records: Sequence[Record]) -> list[ChartColumn]:
    """Of records with the same fields. A year beside its month or quarter is one column with both."""
    names = list(records[0].fields)
    columns = [column_of(name, [record.fields[name] for record in records]) for name in names]
    return with_periods(columns)


def column_of(name: str, cells: Sequence[Value]) -> ChartColumn:
    """
    >>> column_of("month", ["1997-01", None]).kind, column_of("total", [1, 2.5]).kind
    ('time', 'number')
    >>> column_of("orderID", [1, 2]).kind, column_of("year", [1996]).kind, column_of("tags", [["a"]]).kind
    ('key', 'time', 'none')
    """
    values = [value for value in cells if value is not None]
    if not values or not all(isinstance(value, str | int | float) for value in values):
        return ChartColumn(name, "none", tuple(cells))
    numbers = tuple(number_of(value) for value in cells)
    if YEAR.search(name):
        years = tuple(year_of(value) for value in cells)
        if all(one is not None for one, value in zip(years, cells, strict=True) if value is not None):
            return ChartColumn(name, "time", tuple(cells), years)
    if all(one is not None for one, value in zip(numbers, cells, strict=True) if value is not None):
        is_key = (KEY.search(name) or CAMEL_KEY.search(name)) and all(one is None or one == int(one) for one in numbers)
        return ChartColumn(name, "key" if is_key else "number", tuple(cells), numbers)
    times = tuple(moment(value) if isinstance(value, str) else None for value in cells)
    if all(one is not None for one, value in zip(times, cells, strict=True) if value is not None):
        return ChartColumn(name, "time", tuple(cells), times)
    return ChartColumn(name, "name", tuple(cells))


def number_of(value: Value) -> float | None:
    """Of a number, and of a decimal that a database gives as text."""
    if isinstance(value, str):
        return float(value) if DECIMAL.fullmatch(value) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value) if math.isfinite(value) else None
    return None


def year_of(value: Value) -> float | None:
    return year(int(str(value))) if re.fullmatch(r"\d{4}", str(value)) else None


def with_periods(columns: list[ChartColumn]) -> list[ChartColumn]:
    """
    >>> with_periods([column_of("year", [1997, 1997]), column_of("month", [1, "02"]), column_of("n", [5, 6])])[0].cells
    ('1997-01', '1997-02')
    """
    years = next((one for one in columns if one.kind == "time" and YEAR.search(one.name)), None)
    for part in columns:
        for pattern, most, form in ((MONTH, 12, "{}-{:02}"), (QUARTER, 4, "{}-Q{}")):
            if years and part is not years and pattern.search(part.name) and is_part(part, most):
                both = zip(years.cells, part.cells, strict=True)
                cells = [None if None in (a, b) else form.format(a, int(str(b))) for a, b in both]
                whole = column_of(part.name, cells)
                return [whole if one is years else one for one in columns if one is not part]
    return columns


def is_part(column: ChartColumn, most: int) -> bool:
    """Whether it holds numbers of months or quarters."""
    texts = [column.text(at) for at, value in enumerate(column.cells) if value is not None]
    return bool(texts) and all(re.fullmatch(r"\d{1,2}", text) and 1 <= int(text) <= most for text in texts)


def unit_of(name: str, units: Mapping[str, str]) -> str:
    """Of a column that is called as a metric is.

    >>> unit_of("Net Revenue", {"net_revenue": "USD"}), unit_of("revenue_share", {"revenue": "USD"})
    ('USD', '')
    """
    return next((unit for metric, unit in units.items() if plain(metric) == plain(name)), "")


def plain(name: str) -> str:
    return re.sub(r"\W|_", "", name).casefold()
