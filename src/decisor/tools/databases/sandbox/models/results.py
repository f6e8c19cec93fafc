"""What comes of candidates: numbers, and the rows that break a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from decisor.tools.databases.sandbox.values import plain
from decisor.types import Table, Value

CELL_CHARS = 200

Floats = NDArray[np.float64]


@dataclass
class Broken:
    """Candidate (place in the request) -> how many rows break the rule, and the first of them."""

    counts: dict[int, int] = field(default_factory=dict)
    rows: dict[int, list[dict[str, Value]]] = field(default_factory=dict)

    def add(self, candidate: int, count: int, row: Mapping[str, object] | None) -> None:
        self.counts[candidate] = count
        if row is not None:
            cells = {name: plain(cell, CELL_CHARS) for name, cell in row.items()}
            self.rows.setdefault(candidate, []).append(cells)


@dataclass
class Results:
    """``values``: measure -> one number for each candidate, nan where there is none. ``how``: 'together', or why the
    candidates were computed one by one. ``note``: what is to be said of them, ''. ``cpu``: seconds that it took."""

    values: dict[str, Floats]
    broken: dict[str, Broken]
    how: str = "together"
    note: str = ""
    cpu: float = 0.0

    @classmethod
    def empty(cls, measures: Sequence[str], rules: Sequence[str], count: int) -> Results:
        return cls({name: np.full(count, np.nan) for name in measures}, {name: Broken() for name in rules})

    def table(self) -> Table:
        """As it travels to the parent."""
        rows: list[tuple[Value, ...]] = [("how", self.how, self.note, self.cpu, None)]
        for name, values in self.values.items():
            rows.append(("measure", name, [None if value != value else value for value in values.tolist()], None, None))
        for name, broken in self.broken.items():
            for candidate, count in broken.counts.items():
                rows.append(("rule", name, candidate, count, list(broken.rows.get(candidate, ()))))
        return Table(("kind", "name", "value", "count", "rows"), tuple(rows))


def joined(every: Sequence[Results], count: int) -> Results:
    """Of several trials with ``count`` candidates each."""
    first = every[0]
    values = {name: np.concatenate([one.values[name] for one in every]) for name in first.values}
    broken = {name: Broken() for name in first.broken}
    for trial, one in enumerate(every):
        for name, each in one.broken.items():
            broken[name].counts |= {at + trial * count: number for at, number in each.counts.items()}
            broken[name].rows |= {at + trial * count: rows for at, rows in each.rows.items()}
    note = next((one.note for one in every if one.note), "")
    return Results(values, broken, first.how, note)
