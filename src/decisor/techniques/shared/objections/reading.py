"""An answer read against its ground: clauses, the columns of numbers, the one that decides, and the places in it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from decisor.parsing.figures import CITATION, find_citations
from decisor.parsing.quantities import UNIT_OF, Quantity, find_quantities, iterate_periods, split_name, unit_of_column
from decisor.techniques.shared.objections import words
from decisor.techniques.shared.objections.claims import Claims, Clause, is_claim, rounded_to, stem, widen
from decisor.techniques.shared.objections.ground import Cell, Ground, Mention, is_key, table_of
from decisor.types import Observation, Ranking

Place = tuple[str, str]
"""A table and a column of it."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """The numbers of one column, no key, with what is worked out from all of them."""

    table: str
    name: str
    unit: str
    by_id: Mapping[str, float]
    numbers: tuple[float, ...]
    total: float
    largest: tuple[float, ...]

    @property
    def mean(self) -> float:
        return self.total / len(self.numbers)


@dataclass(frozen=True)
class AnswerReading:
    """One answer and its ground."""

    claims: Claims
    ground: Ground
    question: str
    ranked: Observation | None = None
    known: str = ""

    @property
    def ranking(self) -> Ranking | None:
        return self.ranked.ranking if self.ranked else None

    @property
    def options(self) -> list[str]:
        """Candidates of the ranking, from the best."""
        return [one.name for one in self.ranking.options] if self.ranking else []

    @cached_property
    def reasons(self) -> list[Clause]:
        return list(self.clauses(self.claims.because))

    @cached_property
    def runner_up(self) -> list[Clause]:
        return list(self.clauses(self.claims.runner_up))

    @cached_property
    def elsewhere(self) -> list[Quantity]:
        """Figures of the question and of what came with the records."""
        return find_quantities(f"{self.question}\n{self.known}")

    @cached_property
    def subject(self) -> Mention | None:
        """The rows of the answer."""
        names = self.ground.mentions(self.claims.answer)
        return names[0] if len(names) == 1 else None

    @cached_property
    def has_texts(self) -> bool:
        """Whether passages were shown: what they say of whom is not read."""
        return any(record.text for record in self.ground.records.values())

    def clauses(self, text: str) -> Iterator[Clause]:
        names = self.ground.mentions(text)
        cites = list(CITATION.finditer(text))
        masked = text
        for one in names:
            masked = masked[: one.start] + "X" * (one.end - one.start) + masked[one.end :]
        for match in cites:
            masked = masked[: match.start()] + " " * len(match.group()) + masked[match.end() :]
        start = 0
        heads: tuple[str, ...] = ()
        breaks = [match.span() for match in words.BREAK.finditer(masked)]
        for end, after in [*breaks, (len(text), len(text))]:
            piece = masked[start:end]
            if text[start:end].strip():
                times = tuple(iterate_periods(piece))
                for time in times:
                    piece = piece[: time.start] + "Y" * len(time.text) + piece[time.end :]
                is_line = piece.lstrip().startswith("|") or piece.count("\t") > 1
                heads = () if not is_line else heads or tuple(head.strip() for head in words.SEPARATOR.split(piece))
                inside = [one for one in names if start <= one.start < end]
                yield Clause(
                    text[start:end],
                    piece,
                    tuple(Mention(one.name, one.start - start, one.end - start, one.ids) for one in inside),
                    tuple(widen(one, piece) for one in find_quantities(piece) if is_claim(one, piece)),
                    times,
                    tuple(
                        (match.start() - start, match.end() - start, find_citations(match.group(), self.ground.records))
                        for match in cites
                        if start <= match.start() < end
                    ),
                    heads,
                )
            start = after

    def cells(self, figure: Quantity, clause: Clause) -> list[Cell]:
        hits, value = self.ground.cells_with(figure), abs(figure.meanings[0].value)
        bound = None if hits else words.BOUND.search(clause.masked[: figure.start])
        if bound and (figure.unit or rounded_to(value) > 1):  # Nobody says over 42 of 44.
            is_low = re.match(r"over|above|more|at least|exceed", bound.group(), re.I)
            return list(self.ground.between(value, value * 1.5) if is_low else self.ground.between(value / 1.5, value))
        return hits

    # Columns.

    @cached_property
    def columns(self) -> list[NumberColumn]:
        hits = []
        for table, rows in self.ground.tables.items():
            for name in rows[0].fields:
                by_id = {} if is_key(name) else self.ground.column(table, name)
                if numbers := tuple(by_id.values()):
                    largest = tuple(sorted(numbers, reverse=True)[:5])
                    unit = unit_of_column(name)
                    hits.append(NumberColumn(table, name, unit, by_id, numbers, math.fsum(numbers), largest))
        return hits

    @cached_property
    def named_tables(self) -> set[str]:
        """Those with one row for each name."""
        name_of = self.ground.name_of
        return {
            table
            for table, rows in self.ground.tables.items()
            if len(rows) > 1 and len({name_of.get(row.id, "") for row in rows}) == len(rows)
        }

    @cached_property
    def ranked_columns(self) -> list[Place]:
        """Numbers of tables with one row for each candidate."""
        return [(one.table, one.name) for one in self.columns if one.table in self.named_tables and len(one.by_id) > 1]

    @cached_property
    def deciding(self) -> Place | None:
        """The column that most figures of the answer are from, of those that the question names where it names any."""
        counts: Counter[Place] = Counter()
        for clause in self.reasons:
            rows = clause.name_ids | clause.cited_ids
            for figure in clause.figures:
                if figure.digits > 2 or figure.unit:
                    hits = {
                        (table_of(cell.id), cell.column)
                        for cell in self.cells(figure, clause)
                        if cell.id in rows and self.ground.fits_unit(figure, cell)
                    }
                    counts.update(sorted(hits))
        places = [place for place, _ in counts.most_common() if place in self.ranked_columns]
        candidates = [place for place in places or self.ranked_columns if self.is_asked(place[1])]
        if candidates or not places:
            return candidates[0] if places or len(candidates) == 1 else None
        return places[0] if len(places) == 1 or counts[places[0]] > counts[places[1]] else None

    def is_asked(self, column: str) -> bool:
        """Whether the question names the column, or its unit."""
        wording = re.findall(r"[a-z]+", self.question.lower().replace("kilowatt hours", "kwh"))
        units = {UNIT_OF[word] for word in wording if len(word) > 1 and word in UNIT_OF}
        return unit_of_column(column) in units or bool({*map(stem, wording)} & {*map(stem, split_name(column))})

    @cached_property
    def goal(self) -> str:
        """max or min, where the question asks for one extreme and restricts nothing; else ''."""
        hits = {"max" if match["max"] else "min" for match in words.SUPERLATIVE.finditer(self.question)}
        return hits.pop() if len(hits) == 1 and not words.RULED.search(self.question) else ""

    def ranks(self, id: str, place: Place) -> tuple[range, range] | None:
        """From the largest and from the smallest, equal ones in any order; None where the row is not among them."""
        numbers = self.ground.column(*place)
        if id not in numbers:
            return None
        own, room = numbers[id], 1e-9 * abs(numbers[id])
        above = sum(one > own + room for one in numbers.values())
        below = sum(one < own - room for one in numbers.values())
        return range(above + 1, len(numbers) - below + 1), range(below + 1, len(numbers) - above + 1)

    def row_of(self, name: Mention, place: Place) -> str | None:
        """Return the one row of a name in a table."""
        ids = [id for id in name.ids if table_of(id) == place[0]]
        return ids[0] if len(ids) == 1 else None

    def mention(self, id: str) -> Mention:
        return Mention(self.ground.name_of.get(id, id), 0, 0, frozenset([id]))

    def name(self, id: str) -> str:
        return self.ground.name_of.get(id, id)
