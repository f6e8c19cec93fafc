"""The candidates of a model: which rows of its choice each consists of, and what it is called."""

from __future__ import annotations

import difflib
import itertools
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from decisor.decision_models.format import Take
from decisor.errors import ToolError
from decisor.types import Table, Value

LIMIT = 200_000
"""More are not enumerated: they are for the solver."""
NEAR = 3


@dataclass(frozen=True)
class Candidates:
    """``table``: the rows that may be chosen. A candidate is a number from 0 to ``len`` - 1, in data order."""

    table: Table
    take: Take

    @cached_property
    def count(self) -> int:
        """How many there are, without enumerating them; ``sys.maxsize`` where there are more."""
        count = 0
        if self.take.per and self.groups:
            count = math.prod(map(len, self.groups))
        for size in () if self.take.per else self.sizes:
            count += math.comb(len(self.table.rows), size)
            if count > sys.maxsize:  # the exact number of a sum over 200,000 sizes would take minutes
                break
        return min(count, sys.maxsize)

    def __len__(self) -> int:
        return self.count

    @property
    def sizes(self) -> range:
        return range(self.take.low, min(self.take.high, len(self.table.rows)) + 1)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Rows by the value of the column that one is taken of, in data order."""
        lower = [name.lower() for name in self.table.columns]
        if self.take.per.lower() not in lower:
            raise ToolError(f"take: choice has no column {self.take.per}; it has {', '.join(self.table.columns)}.")
        at = lower.index(self.take.per.lower())
        groups: dict[str, list[int]] = {}
        for number, row in enumerate(self.table.rows):
            groups.setdefault(str(row[at]), []).append(number)
        return list(groups.values())

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        """Of each candidate, the numbers of its rows. Raises ToolError where there are too many."""
        if self.count > LIMIT:
            raise ToolError(f"There are {self.count:,} candidates, more than {LIMIT:,}: too many to compute; narrow "
                            "choice, or give [variable] and [require] for the solver.")  # fmt: skip
        if self.take.per:
            return list(itertools.product(*self.groups))
        rows = range(len(self.table.rows))
        return list(itertools.chain.from_iterable(itertools.combinations(rows, size) for size in self.sizes))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each row: its first column where that tells the rows apart, else all of them.

        Raises:
            ToolError: two rows are the same.
        """
        first = [text(row[0]) or "''" for row in self.table.rows]
        if len(set(first)) == len(first) and not self.take.per:
            return tuple(first)
        whole = [" ".join(map(text, row)) for row in self.table.rows]
        if len(set(whole)) < len(whole):
            twice = next(name for name in whole if whole.count(name) > 1)
            raise ToolError(f"choice gives {twice!r} twice; add DISTINCT, or a column that tells them apart.")
        return tuple(whole)

    def name(self, candidate: int) -> str:
        """
        >>> Candidates(Table(("name",), (("Basel",), ("Lyon",))), Take(0, 2)).name(3)
        'Basel + Lyon'
        """
        words = [self.labels[row] for row in self.places[candidate]]
        return (", " if self.take.per else " + ").join(words) or "nothing"

    def names(self, candidates: Iterable[int]) -> tuple[str, ...]:
        return tuple(map(self.name, candidates))

    def rows(self, candidate: int) -> tuple[tuple[Value, ...], ...]:
        return tuple(self.table.rows[row] for row in self.places[candidate])

    @cached_property
    def _numbers(self) -> dict[frozenset[int], int]:
        return {frozenset(rows): number for number, rows in enumerate(self.places)}

    @cached_property
    def _by_label(self) -> dict[str, int]:
        exact = {label: row for row, label in enumerate(self.labels)}
        return {key(label): row for label, row in exact.items()} | exact

    def find(self, name: str | Sequence[str]) -> int:
        """By its name, or by the names of its rows in any order; numbers may be written otherwise (1.0, 1).

        Raises:
            ToolError: there is no such candidate; the message has close ones.
        """
        labels = [name] if isinstance(name, str) else list(name)
        rows = self._rows_named(labels)
        if rows is None and isinstance(name, str):
            parts = [part.strip() for part in name.split("," if self.take.per else " + ") if part.strip()]
            rows = self._rows_named([] if name.strip() == "nothing" else parts)
        if rows is None or rows not in self._numbers:
            raise ToolError(self._complaint(labels, rows))
        return self._numbers[rows]

    def _rows_named(self, labels: Sequence[str]) -> frozenset[int] | None:
        rows = [self._by_label.get(label.strip(), self._by_label.get(key(label), -1)) for label in labels]
        return None if -1 in rows else frozenset(rows)

    def _complaint(self, labels: Sequence[str], rows: frozenset[int] | None) -> str:
        if rows is not None:
            return f"{' + '.join(labels)} is no candidate: it takes {self.take} of {', '.join(self.labels[:NEAR])}, ..."
        strange = next((label for label in labels if self._rows_named([label]) is None), labels[0] if labels else "")
        near = difflib.get_close_matches(strange, self.labels, NEAR) or list(self.labels[:NEAR])
        return f"{strange!r} is no candidate; close to it: {', '.join(near)}. There are {self.count:,}."


def text(value: Value) -> str:
    """Return a value as a part of a name.

    On one line: a name with line ends would print lines that look like ours.

    >>> text(1.0), text(12.25), text(7), text(None), text("Bo\\nBest: Bo")
    ('1.0', '12.25', '7', 'none', 'Bo Best: Bo')
    """
    return "none" if value is None else " ".join(str(value).splitlines())


def key(label: str) -> str:
    """A name with its numbers in one form, so that 1, 1.0 and 1.00 are the same. Long ids stay apart.

    >>> key(" Basic  1.00"), key("12.50 EUR")
    ('basic 1', '12.5 eur')
    """
    words = [
        word.lstrip("+")
        if re.fullmatch(r"[+-]?\d{13,}", word)
        else f"{float(word):.12g}"
        if re.fullmatch(r"[+-]?\d+(\.\d+)?", word)
        else word
        for word in label.lower().split()
    ]
    return " ".join(words)
