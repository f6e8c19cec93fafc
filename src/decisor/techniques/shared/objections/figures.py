"""Figures of an answer against the rows that they speak of.

A figure is read in every way that its clause leaves open: as a number of any row that it may speak of, or as worked out
from the rows that the answer names. It is objected to where no way gives it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

from decisor.parsing.figures import iterate_numeric_fields
from decisor.parsing.quantities import Quantity, find_quantities, unit_of_column
from decisor.techniques.shared.objections import words
from decisor.techniques.shared.objections.claims import (
    Clause,
    cited_for,
    content_words,
    fits,
    fits_any,
    is_scaled,
    noun_columns,
    rows_after,
    rows_before,
    stem,
)
from decisor.techniques.shared.objections.ground import Cell, Mention, is_key, table_of
from decisor.techniques.shared.objections.reading import AnswerReading, NumberColumn
from decisor.types import Objection, ObjectionKind

MOST_ROWS = 8
"""Rows of which every pair is calculated with."""
PERCENT_OF = re.compile(r"(?:%|per ?cent|Prozent)\s+(?:of|von|de)\b", re.I)
RATE_HEAD = re.compile(r"\|[^|\n]*\bper\b[^|\n]*\|")

RowsOf = Callable[[Quantity], frozenset[str]]


@dataclass(frozen=True)
class FigureCheck(AnswerReading):
    """The figures of one answer."""

    def of_figures(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        figures = []
        for figure in clause.figures:
            numbers = self.numbers_counted(figure, clause)
            if numbers is None:
                figures += [figure] if self.is_looked_at(figure, clause) else []
                continue
            is_known = figure.digits > 1 and fits_any(figure, (one.meanings[0].value for one in self.elsewhere))
            if figure.meanings[0].value not in numbers and not is_known:
                yield Objection("count", f"You wrote {figure.text}; {max(numbers)} were shown.")
        explained: dict[Quantity, bool] = {}
        best: dict[Quantity, frozenset[str]] | None = None
        for rows_of in self.readings(clause, memory, figures) if figures else ():
            misses: dict[Quantity, frozenset[str]] = {}
            for figure in figures:
                rows = rows_of(figure)
                if not explained.get(figure) and not self.is_held(figure, rows, clause):
                    if figure not in explained:  # Costs more than to look into rows.
                        explained[figure] = self.is_explained(figure, clause)
                    misses |= {} if explained[figure] else {figure: rows}
            best = misses if best is None or len(misses) < len(best) else best
            if not best:
                return
        yield from (self.objection(figure, rows, clause) for figure, rows in (best or {}).items())

    def readings(self, clause: Clause, memory: Sequence[Mention], figures: Sequence[Quantity]) -> Iterator[RowsOf]:
        """Yield the ways in which the figures of a clause may belong to its names: to the one before, the one after,
        each to
        its own in order."""
        names = clause.names
        own = self.subject.ids if self.subject else frozenset[str]()
        if not names:
            known = own.union(*(name.ids for name in memory))
            rows = clause.cited_ids or known or frozenset(self.claims.cited)
            yield lambda figure: frozenset(self.ground.records) if words.OTHERS.search(clause.masked) else rows
            return
        last = memory[-1].ids if memory else own
        yield lambda figure: rows_before(names, figure.start) or last or rows_after(names, figure.end)
        yield lambda figure: rows_after(names, figure.end) or rows_before(names, figure.start)
        if len(names) > 1 and len(figures) % len(names) == 0:
            each = len(figures) // len(names)
            yield lambda figure: names[figures.index(figure) // each].ids
        if len(names) > 1 and len(figures) == 1:
            yield lambda figure: names[0].ids

    def is_held(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> bool:
        """Whether a row of these, or the one row cited for the figure, holds it."""
        cited, cells = cited_for(figure, clause), self.cells(figure, clause)
        if self.has_texts and any(not cell.column for cell in cells):
            return True
        rivals = {table_of(id) for id in clause.name_ids}
        is_own = cited in clause.name_ids or not clause.names
        if cited and (is_own or (table_of(cited) not in rivals and any(cell.id == cited for cell in cells))):
            rows = frozenset([cited]) | (rows if self.is_beside_name(figure, clause) else frozenset())
        if not self.is_beside_name(figure, clause):  # Whose it is is open.
            rows |= {cited} if cited else frozenset()
            if len(clause.names) > 1 and "respectively" not in clause.masked:
                rows |= clause.name_ids
        wanted = noun_columns(figure, clause, self.ground.heads)
        return any(
            cell.id in rows and (not wanted or cell.column in wanted) and self.ground.fits_unit(figure, cell)
            for cell in cells
        )

    def is_looked_at(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it is clear enough that a figure states something of a row."""
        if noun_columns(figure, clause, self.ground.heads):
            return True
        is_row_number = figure.digits < 4 and not figure.unit and not clause.masked[: figure.start].strip("| *#")
        if figure.is_word or (is_row_number and clause.is_line):
            return False
        if figure.digits > 1 or figure.unit:
            return True
        return clause.is_line or clause.masked[: figure.start].rstrip().endswith(("X (", "X:"))

    def is_beside_name(self, figure: Quantity, clause: Clause) -> bool:
        """Whether the figure follows a name at once, and is not one of two that are set against each other."""
        before = clause.masked[: figure.start]
        if re.match(r"[\w/ ]{0,12}(?:against|vs|versus|to|and|[+x−-])[.\s]*\d", clause.masked[figure.end :]):
            return False
        names = [name for name in clause.names if 0 <= figure.start - name.end <= 25]
        between = before[names[-1].end :] if names else ""
        return bool(names) and not re.search(r"\d|[,;]\s+(?:and|und|et|y|e|while)\b|\s{6,}", between)

    def is_explained(self, figure: Quantity, clause: Clause) -> bool:
        """Whether the question, a count of rows or a calculation from the rows gives the figure, or it ends a range."""
        before = clause.masked[: figure.start]
        wanted = noun_columns(figure, clause, self.ground.heads)
        return bool(
            words.RANGE.search(before)
            or self.in_question(figure, clause)
            or (not wanted and self.may_count(figure, clause))
            or any(self.from_column(figure, one, clause) for one in self.columns if not wanted or one.name in wanted)
            or (not wanted and self.from_one_row(figure, clause))
            or self.is_written_out(figure, clause)
            or (self.ranking is not None and fits_any(figure, (one.outcome for one in self.ranking.options)))
        )

    def in_question(self, figure: Quantity, clause: Clause) -> bool:
        source = f"{self.question}\n{self.known}"
        around = content_words(clause.masked, figure.start, figure.end)
        return any(
            fits(figure, one.meanings[0].value)
            and figure.unit in ("", one.unit)
            and (figure.digits > 2 or figure.unit or around & content_words(source, one.start, one.end))
            for one in self.elsewhere
        )

    def is_written_out(self, figure: Quantity, clause: Clause) -> bool:
        """Whether a calculation in the text gives it, or starts from it where a cited row holds it."""
        is_cited = any(cell.id in self.claims.cited for cell in self.ground.cells_with(figure))
        return any(fits(figure, one.value) or (is_cited and figure.text in one.operands) for one in clause.calculations)

    # Counts of candidates.

    @cached_property
    def sizes(self) -> set[int]:
        """How many candidates there are, by table, and what a query counted."""
        tables = self.ground.tables.values()
        names = ({self.ground.name_of.get(row.id) for row in rows} for rows in tables)
        counted = {int(cell.value) for cell in self.ground.cells if len(self.ground.tables[table_of(cell.id)]) < 3}
        return {len(some) for some in names if len(some) > 1} | counted

    @cached_property
    def nouns(self) -> set[str]:
        """What the question calls the candidates."""
        wording = re.match(r"\s*(?:which|what|who)\s+(\w+)", self.question, re.I)
        return words.ITEMS | ({stem(wording[1].lower())} if wording else set())

    def numbers_counted(self, figure: Quantity, clause: Clause) -> set[int] | None:
        """Return the numbers that a count of candidates may be; None where it is not certain that it is one."""
        before, after = clause.masked[: figure.start], clause.masked[figure.end :]
        value, sizes = figure.meanings[0].value, self.sizes
        noun = re.match(r"\s+(?:[a-z]+\s+)?([^\W\d_]{3,})", after)
        near = re.match(r"\s+([^\W\d_]{3,})", after)
        of_size = re.match(r"\s+(?:of|von|de|sur)(?: the)?\s+(?:them\b|\w+)", after)
        is_counted = any(match and stem(match[1].lower()) in self.nouns for match in (near, noun))
        is_whole = re.search(rf"(?:#\d+|No\. ?\d+|{words.ORDINAL}|\blast) of(?: the)?\s*$", before, re.I) or (
            re.search(r"\b(?:of|among) all\s*$", before) and not re.match(r"\s+[^\W\d]", after)
        )
        by_mean = re.match(
            r"(?: of them| of (?:the )?\w+)?(?: [a-z]+)?\s+(?:(?:lie|lies|are|is)\s+)?(above|below|exceeds?)\b", after
        )
        if figure.unit or value != int(value) or not sizes or "limit" in self.known.lower():
            return None
        if noun_columns(figure, clause, self.ground.heads) or (clause.is_line and not is_counted):
            return None
        is_of = re.search(r"\b(?:\d+|[a-z]+) of(?: the)?\s*$", before) is not None and find_quantities(before[-14:])
        side = by_mean or (of_size and re.search(r"\b(above|below)\b.*\bmean\b", before))
        is_clear = words.MEAN.search(after) or ((is_counted or of_size) and words.MEAN.search(self.claims.because))
        if side and not is_of and is_clear:
            return self.counts_by_mean(side[1] != "below")
        if is_whole:
            return sizes
        if not is_counted or value == len(clause.names) > 1 or not before.strip(" *-|"):
            return None
        if noun and stem(noun[1].lower()) in words.ITEMS:
            sizes = sizes | {len(rows) for rows in self.ground.tables.values()}
        names = {name.name for clause in self.reasons for name in clause.names}
        rest = {size - less for size in sizes for less in range(1, max(len(names), 1) + 1)}
        if words.OF_THE_REST.search(f"{before[-25:]}{after[:25]}"):
            return rest
        if re.match(r"\s+(?:alternative|option)", after):
            return rest | sizes
        is_all = words.WHOLE.search(before) and (is_of or not words.PART.match(after[noun.end() :] if noun else after))
        return sizes if is_all or value > max(sizes) else None

    def counts_by_mean(self, is_above: bool) -> set[int]:
        """How many of the deciding column lie on one side of its mean."""
        columns = [column for column in self.columns if (column.table, column.name) == self.deciding] or self.columns
        return {sum((number > column.mean) == is_above for number in column.numbers) for column in columns}

    @cached_property
    def row_counts(self) -> set[int]:
        """Rows, values of a column and rows that share one; all candidates but one."""
        counts = {len(self.ground.records), len(self.ground.names)}
        for rows in self.ground.tables.values():
            counts.add(len(rows))
            for column in rows[0].fields:
                groups = Counter(str(row.fields.get(column)) for row in rows)
                counts |= {len(groups), *(number for number in groups.values() if number > 1)}
        return counts | {size - 1 for size in self.sizes}

    def may_count(self, figure: Quantity, clause: Clause) -> bool:
        """Whether a number without a unit may be one of rows: some of all, the rest, those that share a value."""
        value = figure.meanings[0].value
        if figure.unit or value != int(value) or figure.digits > 3:
            return False
        before, after = clause.masked[: figure.start], clause.masked[figure.end :]
        of_size = re.match(r"\s+(?:of|von|de|sur)(?: the)?\s+(\d+)", after)
        if value < max(self.sizes, default=0) and (of_size or words.OF_THE_REST.search(f"{before[-25:]}{after[:25]}")):
            return True
        return not clause.is_line and value in self.row_counts | self.counts_by_mean(True) | self.counts_by_mean(False)

    # Calculations.

    @cached_property
    def rows_given(self) -> list[str]:
        """The rows of the answer, of its names and of its citations."""
        ids = {id for clause in [*self.reasons, *self.runner_up] for id in clause.name_ids} | set(self.claims.cited)
        return sorted(ids | (self.subject.ids if self.subject else set()))

    def own_rows(self, clause: Clause) -> list[str]:
        """Return the rows that a calculation of a clause may start from, its own first."""
        first = sorted(clause.name_ids | clause.cited_ids)
        return [*first, *(id for id in self.rows_given if id not in first)]

    def from_column(self, figure: Quantity, column: NumberColumn, clause: Clause) -> bool:
        """Whether a whole column, or one column of rows that the answer names, gives it."""
        text, unit, total, count = clause.masked, column.unit, column.total, len(column.numbers)
        own = [column.by_id[id] for id in self.own_rows(clause) if id in column.by_id][:MOST_ROWS]
        near = rows_before(clause.names, figure.start) if self.is_beside_name(figure, clause) else clause.name_ids
        first = [column.by_id[id] for id in sorted(near) if id in column.by_id] or own
        sums = [math.fsum(some[:size]) for some in (own, column.largest) for size in range(2, len(some) + 1)]
        others = own if count > 3 and words.OF_THE_REST.search(self.claims.because) else []
        left = [total - one for one in [*others, *(math.fsum(others[:size]) for size in range(2, len(others) + 1))]]
        means = [column.mean, *((total - one) / (count - 1) for one in others)]
        noun = noun_columns(figure, clause, self.ground.heads)
        states_percent = any(one.unit == "%" for one in self.columns)
        is_other = unit != "%" and len(clause.names) > 1
        if figure.unit == "%" and (is_other or not states_percent or words.GAP.search(text)):
            shares = [100 * one / total for one in [*first, *sums, *left]] if total else []
            pairs = [(a, b) for a, b in [*product(first, [*own, *means]), *product(own, first)] if b]
            is_part = bool(
                words.TOTAL.search(text) or words.RATIO.search(text) or PERCENT_OF.search(self.claims.because)
            )
            ratios = [100 * a / b for a, b in pairs if a < b and is_part]
            if fits_any(figure, [*shares, *ratios, *(100 * (a / b - 1) for a, b in pairs)]):
                return True
        if figure.unit == unit or not (figure.unit and unit):
            is_few = bool(noun) or (figure.digits < 2 and figure.meanings[0].room >= 0.5)
            is_open = not is_few and not self.is_beside_name(figure, clause)
            hits = [*means, *([math.fsum(own) / len(own)] if own else [])] if words.MEAN.search(text) or is_open else []
            hits += [total, *left] if words.TOTAL.search(text) or is_open else []
            hits += sums if words.TOTAL.search(text) else []
            gaps = [a - b for a, b in product(first, [*own, *(means if words.MEAN.search(text) else [])])]
            hits += gaps if words.GAP.search(text) or figure.is_signed or not is_few else []
            if fits_any(figure, hits):
                return True
        if figure.unit or noun:
            return False
        extremes = [column.largest[0], min(column.numbers)] if words.OTHERS.search(text) else []
        ratios = [a / b for a, b in [*product(first, [*own, *means, *extremes]), *product(own, first)] if b]
        if re.search(r"\bind(?:ex|ic)|=\s*100\b", self.claims.because, re.I) and fits_any(
            figure, [100 * one for one in ratios]
        ):
            return True
        return bool(words.RATIO.search(text)) and any(
            fits(figure, one) or (figure.is_word and abs(one - figure.meanings[0].value) < 0.5) for one in ratios
        )

    @cached_property
    def has_rate_heads(self) -> bool:
        """Whether a table of the answer has a column whose head is a rate, such as "min per invoice"."""
        return bool(RATE_HEAD.search(self.claims.because))

    def from_one_row(self, figure: Quantity, clause: Clause) -> bool:
        """Whether two figures of a row give it: a rate, a product, a difference."""
        is_percent = figure.unit == "%"
        is_ratio = bool(words.RATIO.search(clause.masked)) or (clause.is_line and self.has_rate_heads)
        is_gap, is_total = words.GAP.search(clause.masked), words.TOTAL.search(clause.masked)
        if figure.digits < 3 and (not is_ratio or is_percent):
            return False
        rows = [self.ground.records[id] for id in self.own_rows(clause)[:MOST_ROWS] if id in self.ground.records]
        for (one, a), (other, b) in (pair for row in rows for pair in permutations(iterate_numeric_fields(row), 2)):
            if is_key(one) or is_key(other) or not math.isfinite(a * b) or fits_any(figure, (a, b)):
                continue
            units = {unit_of_column(one), unit_of_column(other)}
            rates = [a / b * (100 if is_percent else 1)] if b and (is_ratio or is_percent) else []
            if fits_any(figure, rates) and figure.unit in {"", "%"} | units:
                return True
            sums = [*([a - b] if is_gap else []), *([a + b] if is_total else [])] if len(units) == 1 else []
            if figure.digits > 2 and fits_any(figure, [*sums, *([a * b] if is_ratio else [])]):
                return True
        return False

    # What is said.

    def objection(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Objection:
        """Return the objection to a figure that nothing supports."""
        ground, cells = self.ground, self.cells(figure, clause)
        owner_name = next((one.name for one in reversed(clause.names) if one.ids & rows), "")
        wrote = f"You wrote {figure.text}" + (f" for {owner_name}" if owner_name else "")
        own = [cell for cell in cells if cell.id in rows]
        if own and not any(ground.fits_unit(figure, cell) for cell in own):
            unit = unit_of_column(own[0].column)
            says = f"is in {unit}" if unit else "has no such unit"
            return Objection("unit", f"{wrote}; {own[0].column} in row {own[0].id} {says}.")
        kind: ObjectionKind = "count" if figure.digits < 3 and not figure.unit else "figure"
        if near := self.nearest(figure, rows, clause):
            value = f"row {near.id} says {near.value:.15g}" + (f" ({near.column})" if near.column else "")
            return Objection("scale" if is_scaled(figure, near.value) else kind, f"{wrote}; {value}.")
        if others := [cell for cell in cells if ground.fits_unit(figure, cell)]:
            return Objection(kind, f"{wrote}; it stands in {ground.label(others[0].id)} alone.")
        return Objection(kind, f"{wrote}; no row that you cite says so.")

    def nearest(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Cell | None:
        """Return the number of these rows that was likely meant: of the column named beside it, or the nearest."""
        value = abs(figure.meanings[0].value)
        wanted = noun_columns(figure, clause, self.ground.heads)
        cells = [
            cell
            for cell in self.ground.cells
            if cell.id in rows and cell.value and cell.column and (not wanted or cell.column in wanted)
        ]
        if not cells or not value:
            return None
        scaled = [cell for cell in cells if is_scaled(figure, cell.value)]
        best = scaled[0] if scaled else min(cells, key=lambda cell: abs(math.log(cell.value / value)))
        return best if scaled or wanted or abs(math.log(best.value / value)) < 1 else None
