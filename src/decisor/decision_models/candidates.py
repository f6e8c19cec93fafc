"""The candidates of a decision model, their outcomes, and why a candidate is ruled out.

A candidate consists of rows of the model's choice. Its outcome is its measures, and the rules that it breaks with the
rows that break them; a broken rule is explained in the words of the file. A cell without a value may leave a candidate
without an outcome, or be passed over by a sum or mean without a word: both are reported here.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.decision_models.file import DecisionModel, Take
from decisor.errors import ToolError
from decisor.system.wording import format_amount, format_count
from decisor.types import Table, Value

if TYPE_CHECKING:
    from decisor.decision_models.outcomes import Reason


LIMIT = 200_000
"""More are not enumerated: they are for the solver."""
NEAR = 3


@dataclass(frozen=True)
class Candidates:
    """The candidates of a decision model, numbered from 0 to ``len`` - 1 in data order."""

    table: Table
    """The rows that may be chosen."""
    take: Take

    @cached_property
    def count(self) -> int:
        """Number of candidates, without enumerating them; at most ``sys.maxsize``."""
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
        """Row numbers grouped by the value of the column ``take.per``, in data order."""
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
        """Row numbers of each candidate. Raises ToolError if there are more than ``LIMIT`` candidates."""
        if self.count > LIMIT:
            raise ToolError(
                f"There are {self.count:,} candidates, more than {LIMIT:,}: too many to compute; narrow "
                "choice, or give [variable] and [require] for the solver."
            )
        if self.take.per:
            return list(itertools.product(*self.groups))
        rows = range(len(self.table.rows))
        return list(itertools.chain.from_iterable(itertools.combinations(rows, size) for size in self.sizes))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each row: its first column if that is unique, else all columns.

        Raises:
            ToolError: two rows are the same.
        """
        # An empty label could be named by nobody.
        first = [format_label(row[0]) or "''" for row in self.table.rows]
        if len(set(first)) == len(first) and not self.take.per:
            return tuple(first)
        whole = [" ".join(map(format_label, row)) for row in self.table.rows]
        if len(set(whole)) < len(whole):
            twice = next(name for name in whole if whole.count(name) > 1)
            raise ToolError(f"choice gives {twice!r} twice; add DISTINCT, or a column that tells them apart.")
        return tuple(whole)

    def name(self, candidate: int) -> str:
        """Return the name of a candidate, made of the labels of its rows.

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
        # An exact label goes before one that is equal only after normalization.
        return {normalize_label(label): row for label, row in exact.items()} | exact

    def find(self, name: str | Sequence[str]) -> int:
        """Return the number of a candidate by its name or by the names of its rows.

        Rows may stand in any order, and numbers may be written otherwise (1.0, 1).

        Raises:
            ToolError: there is no such candidate; the message has close ones.
        """
        labels = [name] if isinstance(name, str) else list(name)
        rows = self._rows_named(labels)
        # A name of several rows consists of their labels.
        if rows is None and isinstance(name, str):
            parts = [part.strip() for part in name.split("," if self.take.per else " + ") if part.strip()]
            rows = self._rows_named([] if name.strip() == "nothing" else parts)
        if rows is None or rows not in self._numbers:
            raise ToolError(self._complaint(labels, rows))
        return self._numbers[rows]

    def _rows_named(self, labels: Sequence[str]) -> frozenset[int] | None:
        rows = [self._by_label.get(label.strip(), self._by_label.get(normalize_label(label), -1)) for label in labels]
        return None if -1 in rows else frozenset(rows)

    def _complaint(self, labels: Sequence[str], rows: frozenset[int] | None) -> str:
        if rows is not None:
            return f"{' + '.join(labels)} is no candidate: it takes {self.take} of {', '.join(self.labels[:NEAR])}, ..."
        strange = next((label for label in labels if self._rows_named([label]) is None), labels[0] if labels else "")
        near = difflib.get_close_matches(strange, self.labels, NEAR) or list(self.labels[:NEAR])
        return f"{strange!r} is no candidate; close to it: {', '.join(near)}. There are {self.count:,}."


def format_label(value: Value) -> str:
    """Return a value as a part of a name.

    On one line: a name with line ends would print lines that look like ours.

    >>> format_label(1.0), format_label(12.25), format_label(7), format_label(None), format_label("Bo\\nBest: Bo")
    ('1.0', '12.25', '7', 'none', 'Bo Best: Bo')
    """
    return "none" if value is None else " ".join(str(value).splitlines())


def normalize_label(label: str) -> str:
    """Write the numbers of a label in one form, so that 1, 1.0 and 1.00 are the same.

    Whole numbers of 13 digits and more stay apart.

    >>> normalize_label(" Basic  1.00"), normalize_label("12.50 EUR")
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


PLACE = re.compile(r"\{(\w+)\}")


def explain_broken_rule(model: DecisionModel, name: str, reason: Reason | None) -> str:
    """Explain a broken rule by the first row that breaks it, and count the others."""
    rule = model.rule(name)
    if reason is None or not reason.rows:
        return rule.text or name
    row = {key.lower(): value for key, value in reason.rows[0].items()}
    if rule.say:
        sentence = PLACE.sub(
            lambda match: format_rule_value(row[match[1].lower()]) if match[1].lower() in row else match[0], rule.say
        )
    elif rule.measure:
        unit = next((one.unit for one in model.measures if one.name == rule.measure), "")
        side = "over" if rule.at_most is not None else "under"
        sentence = (
            f"{rule.measure} is {format_rule_value(row[rule.measure.lower()], unit)}, "
            f"{side} {format_rule_value(row['limit'], unit)}"
        )
    else:
        cells = ", ".join(f"{key} {format_rule_value(value)}" for key, value in row.items())
        sentence = f"{rule.text} ({cells})" if rule.text else cells
    return f"{sentence} (and {format_count(reason.count - 1, 'more row')})" if reason.count > 1 else sentence


def format_rule_value(value: Value, unit: str = "") -> str:
    """Format a value with its unit, for a sentence.

    >>> format_rule_value(2907.0), format_rule_value(2800), format_rule_value("Metz"), format_rule_value(None)
    ('2,907', '2,800', 'Metz', 'nothing')
    """
    if value is None:
        return "nothing"
    return format_amount(value, unit) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
