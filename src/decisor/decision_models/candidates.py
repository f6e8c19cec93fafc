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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.decision_models.schema import DecisionModel, Take
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
    takes: tuple[Take, ...]
    """How many rows a candidate has; all hold at once."""
    given: tuple[str | None, ...] = ()
    """Name of each row by the label of the file; () without one."""

    @classmethod
    def of(cls, reply: Table, takes: tuple[Take, ...]) -> Candidates:
        """Build the candidates of a machine's rows, whose last column is the name of a row."""
        rows = tuple(row[:-1] for row in reply.rows)
        names = tuple(None if row[-1] is None else format_label(row[-1]) for row in reply.rows)
        return cls(Table(reply.columns[:-1], rows), takes, () if all(name is None for name in names) else names)

    @property
    def take(self) -> Take:
        """The number of rows by which candidates are enumerated; the others only leave some out."""
        return next((one for one in self.takes if one.per and one.low), self.takes[0])

    @cached_property
    def count(self) -> int:
        """Number of candidates; where there are more than ``LIMIT``, at least so many, without enumerating them."""
        most = self.most
        return most if most > LIMIT or len(self.takes) == 1 else len(self.places)

    @cached_property
    def most(self) -> int:
        """Number of candidates by the first take alone, without enumerating them; at most ``sys.maxsize``."""
        count = 0
        if self.take.per and self.groups:
            count = math.prod(len(rows) + (not self.take.low) for rows in self.groups)
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
        return self.groups_of(self.take.per)

    def groups_of(self, column: str) -> list[list[int]]:
        lower = [name.lower() for name in self.table.columns]
        if column.lower() not in lower:
            raise ToolError(f"take: choice has no column {column}; it has {', '.join(self.table.columns)}.")
        at = lower.index(column.lower())
        groups: dict[str, list[int]] = {}
        for number, row in enumerate(self.table.rows):
            groups.setdefault(str(row[at]), []).append(number)
        return list(groups.values())

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        """Row numbers of each candidate. Raises ToolError if there are more than ``LIMIT`` candidates."""
        if self.most > LIMIT:
            raise ToolError(
                f"There are {self.most:,} candidates, more than {LIMIT:,}: too many to compute; narrow "
                "choice, or write rules and measures that are linear, for the solver."
            )
        if self.take.per:
            options: list[list[tuple[int, ...]]] = [
                [*([] if self.take.low else [()]), *((row,) for row in rows)] for rows in self.groups
            ]
            made: Iterable[tuple[int, ...]] = (
                tuple(itertools.chain.from_iterable(rows)) for rows in itertools.product(*options)
            )
        else:
            rows = range(len(self.table.rows))
            made = itertools.chain.from_iterable(itertools.combinations(rows, size) for size in self.sizes)
        for take in self.takes:
            if take != self.take:
                made = self.those_that_meet(take, made)
        return list(made)

    def those_that_meet(self, take: Take, made: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Yield the candidates that have the number of rows of a take."""
        if not take.per:
            yield from (rows for rows in made if take.low <= len(rows) <= take.high)
            return
        groups = [frozenset(rows) for rows in self.groups_of(take.per)]
        group_of = {row: at for at, rows in enumerate(groups) for row in rows}
        for rows in made:
            counts = Counter(group_of[row] for row in rows)
            if all(count <= take.high for count in counts.values()) and (not take.low or len(counts) == len(groups)):
                yield rows

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each row: its first column if that is unique, else all columns.

        Raises:
            ToolError: two rows are the same.
        """
        if self.given and len(set(self.given)) == len(self.given):
            return tuple(name or "''" for name in self.given)
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

        >>> Candidates(Table(("name",), (("Basel",), ("Lyon",))), (Take(0, 2),)).name(3)
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
        return rule.because if rule.because and not PLACE.search(rule.because) else rule.text or name
    row = {key.lower(): value for key, value in reason.rows[0].items()}
    if rule.because:
        sentence = PLACE.sub(
            lambda match: format_rule_value(row[match[1].lower()]) if match[1].lower() in row else match[0],
            rule.because,
        )
    else:
        cells = format_cells(row)
        sentence = f"{rule.text} ({cells})" if rule.text else cells
    # A missing number is no number beyond a limit: whoever reads the reason has to know it.
    lacks = [name for name, cell in row.items() if cell is None and re.search(rf"\b{name}\b", rule.must, re.I)]
    sentence += f" ({lacks[0]} is NULL, which meets no condition)" if lacks else ""
    return f"{sentence} (and {format_count(reason.count - 1, 'more row')})" if reason.count > 1 else sentence


def format_cells(row: Mapping[str, Value]) -> str:
    return ", ".join(f"{key} {format_rule_value(cell)}" for key, cell in row.items())


def format_rule_value(value: Value) -> str:
    """Format a value for a sentence.

    >>> format_rule_value(2907.0), format_rule_value(2800), format_rule_value("Metz"), format_rule_value(None)
    ('2,907', '2,800', 'Metz', 'nothing')
    """
    if value is None:
        return "nothing"
    return format_amount(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
