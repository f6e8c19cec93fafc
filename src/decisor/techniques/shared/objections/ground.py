"""The rows that an answer may stand on, indexed by their names, numbers and periods."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeGuard

from decisor.parsing.figures import iterate_numbers
from decisor.parsing.quantities import UNITS, Period, Quantity, iterate_periods, split_name, unit_of_column
from decisor.types import Record, Value

IDS = {"id", "ids", "key", "code", "uuid", "guid", "phone", "fax", "zip", "postal"}
"""A column whose name ends so holds keys: never quoted as an amount, never calculated with."""
PARTS = {"share", "ratio", "fraction", "proportion", "probability", "quotient", "index", "factor"}
AMOUNTS = frozenset(
    ["price", "cost", "costs", "revenue", "sales", "turnover", "profit", "rent", "salary", "wage", "fee", "budget"]
)
COUNTS = {"count", "quantity", "qty", "stock", "orders", "number", "stores", "customers", "invoices", "tracks"}
MOST_LETTERS = 60
DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a row."""

    value: float
    id: str
    column: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A name of rows in a text."""

    name: str
    start: int
    end: int
    ids: frozenset[str]


@lru_cache(maxsize=4096)
def is_key(column: str) -> bool:
    """
    >>> is_key("ProductID"), is_key("postal_code"), is_key("paid")
    (True, True, False)
    """
    return (split_name(column) or ("",))[-1] in IDS


class Ground:
    """The records that a model was shown."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.records = records
        self._columns: dict[tuple[str, str], dict[str, float]] = {}
        self.tables: dict[str, list[Record]] = {}
        self.ids_of_text: dict[str, set[str]] = {}
        self.names: dict[str, str] = {}
        self.name_of: dict[str, str] = {}
        for record in records.values():
            self.tables.setdefault(table_of(record.id), []).append(record)
        for rows in self.tables.values():
            self._index(rows)

    def _index(self, rows: Sequence[Record]) -> None:
        texts: dict[str, list[str]] = {}
        for row in rows:
            for column, value in row.fields.items():
                if isinstance(value, str) and value:
                    self.ids_of_text.setdefault(value.strip().lower(), set()).add(row.id)
                    texts.setdefault(column, []).append(value)
        owner_name = [column for column, values in texts.items() if not rows[0].text and are_names(values)]
        for column in owner_name:
            if column != owner_name[0] and (is_key(column) or len(set(texts[column])) < len(rows)):
                continue
            for row in rows:
                if isinstance(value := row.fields.get(column), str) and value.strip():
                    self.names.setdefault(value.strip().lower(), value.strip())
                    self.name_of.setdefault(row.id, value.strip())

    @cached_property
    def heads(self) -> list[Record]:
        """The first row of each table."""
        return [rows[0] for rows in self.tables.values()]

    @cached_property
    def tables_words(self) -> set[str]:
        """The names of all columns."""
        return {column for rows in self.tables.values() for column in rows[0].fields}

    @cached_property
    def cells(self) -> list[Cell]:
        """Every number of a row, keys apart, smallest first."""
        hits = []
        keys = {column for column in self.tables_words if is_key(column)}
        for record in self.records.values():
            for column, value in record.fields.items():
                if value is None or column in keys:
                    continue
                if type(value) in (int, float):
                    hits += [Cell(abs(float(value)), record.id, column)] if is_number(value) else []
                elif not isinstance(value, bool):
                    hits += (Cell(abs(one), record.id, column) for one in numbers_within(value))
            if record.text:
                hits += (Cell(abs(one), record.id, "") for one in iterate_numbers(record.text))
        return sorted(hits, key=lambda cell: cell.value)

    @cached_property
    def _sizes(self) -> list[float]:
        return [cell.value for cell in self.cells]

    def between(self, low: float, high: float) -> Iterable[Cell]:
        for at in range(bisect_left(self._sizes, low), len(self.cells)):
            if self.cells[at].value > high:
                return
            yield self.cells[at]

    def cells_with(self, figure: Quantity, room: float = 1.0) -> list[Cell]:
        """Return the cells that a figure rounds, whatever their unit."""
        hits: dict[Cell, None] = {}
        for meaning in figure.meanings:
            value, near = abs(meaning.value), meaning.room * room * (1 + 1e-9) + 1e-9 * abs(meaning.value)
            hits |= dict.fromkeys(self.between(value - near, value + near))
            if figure.unit == "%" or (figure.is_word and value == 0.5):
                parts = self.between((value - near) / 100, (value + near) / 100)
                hits |= dict.fromkeys(cell for cell in parts if not unit_of_column(cell.column) or cell.value <= 1)
            for unit, size in same_dimension(figure.unit):
                there = self.between((value - near) * size, (value + near) * size)
                hits |= dict.fromkeys(cell for cell in there if unit_of_column(cell.column) == unit)
        return list(hits)

    def fits_unit(self, figure: Quantity, cell: Cell) -> bool:
        """Whether the unit that is written may be that of the column."""
        unit, words = unit_of_column(cell.column), set(split_name(cell.column))
        value = abs(figure.meanings[0].value)
        if not figure.unit or not cell.column or unit == figure.unit:
            return True
        if figure.unit == "%" and unit == "":
            is_part = abs(cell.value * 100 - value) < abs(cell.value - value)
            return is_part or not (words & (AMOUNTS | COUNTS) or (words & PARTS and cell.value < 2))
        if unit == "":
            return not (UNITS[figure.unit][0] == "money" and words & COUNTS)
        is_same = any(abs(cell.value - abs(one.value)) <= one.room * 1.001 for one in figure.meanings)
        return not is_same and any(unit == other for other, _ in same_dimension(figure.unit))

    def column(self, table: str, column: str) -> dict[str, float]:
        """Return the numbers of a column by row."""
        if (table, column) not in self._columns:
            values = ((row.id, row.fields.get(column)) for row in self.tables.get(table, ()))
            self._columns[table, column] = {id: float(value) for id, value in values if is_number(value)}
        return self._columns[table, column]

    def periods_of(self, id: str) -> list[Period]:
        """Return the dates, months and years that a row holds."""
        record = self.records[id]
        hits = list(iterate_periods(record.text))
        for value in record.fields.values():
            if isinstance(value, str):
                hits += iterate_periods(value)
            elif isinstance(value, int) and 1900 <= value < 2100:
                hits.append(Period(str(value), 0, 0, value))
        return hits

    def mentions(self, text: str) -> list[Mention]:
        """Return the names of rows in a text, the longest first where they overlap."""
        low = text.lower()
        if len(low) != len(text):
            low = text
        spans: list[Mention] = []
        names = sorted((name for name in self.names if name in low), key=len, reverse=True)
        for name, whole in [*((name, name) for name in names), *self._short_names(text)]:
            for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", low):
                start, end = match.span()
                if any(start < one.end and one.start < end for one in spans):
                    continue
                if len(name) > 2 or (text[start:end] == self.names[whole] and name not in ("a", "i")):
                    spans.append(Mention(self.names[whole], start, end, frozenset(self.ids_of_text[whole])))
        return sorted(spans, key=lambda one: one.start)

    def _short_names(self, text: str) -> list[tuple[str, str]]:
        """First and last words that belong to one name alone, where the text has them."""
        words = {word.lower() for word in re.findall(r"\b[A-Z]\w{3,}", text)}
        owners: dict[str, set[str]] = {}
        for name in self.names:
            parts = re.findall(r"\w+", name)
            if len(parts) > 1:
                for part in {parts[0], parts[-1]} & words:
                    owners.setdefault(part, set()).add(name)
        return [
            (part, next(iter(names))) for part, names in owners.items() if len(names) == 1 and part not in self.names
        ]

    def label(self, id: str) -> str:
        """
        >>> Ground({"o1.r1": Record("o1.r1", {"site": "elm"})}).label("o1.r1")
        'o1.r1 (elm)'
        """
        return f"{id} ({self.name_of[id]})" if id in self.name_of else id


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def table_of(id: str) -> str:
    return id.partition(".")[0]


def are_names(values: Sequence[str]) -> bool:
    if sum(map(len, values)) > MOST_LETTERS * len(values) or not all(
        re.search(r"[^\W\d_]", value) for value in values[:5]
    ):
        return False
    return not any(True for value in values[:3] for _ in iterate_periods(value))


def numbers_within(value: Value) -> Iterable[float]:
    """Return the numbers of a cell that is no number itself; dates have none."""
    return numbers_of_text(value) if isinstance(value, str) else iterate_numbers(value)


@lru_cache(maxsize=4096)
def numbers_of_text(text: str) -> tuple[float, ...]:
    return () if not DIGIT.search(text) or any(True for _ in iterate_periods(text)) else tuple(iterate_numbers(text))


def same_dimension(unit: str) -> list[tuple[str, float]]:
    """Other units of this dimension, and what turns an amount into them; of money and counts none."""
    if unit not in UNITS or UNITS[unit][0] in ("money", "share", "count"):
        return []
    dimension, size, _ = UNITS[unit]
    return [(other, size / by) for other, (kind, by, _) in UNITS.items() if kind == dimension and other != unit]
