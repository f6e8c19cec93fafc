"""Figures of an answer against the rows that they speak of."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

from decisor.replies.figures import numbers_of_fields
from decisor.replies.quantities import Quantity, unit_of_column
from decisor.techniques.shared.objections.claims import (
    GAP,
    LOOSE,
    MEAN,
    OF_THE_REST,
    OTHERS,
    RANGE,
    RATIO,
    TOTAL,
    Clause,
    Words,
    cited_for,
    content_words,
    fits,
    fits_any,
    is_result,
    is_scaled,
    noun_columns,
    rows_after,
    rows_before,
    stem,
)
from decisor.techniques.shared.objections.ground import Cell, Mention, is_key, table_of
from decisor.techniques.shared.objections.reading import Reading
from decisor.types import Objection, ObjectionKind


@dataclass(frozen=True)
class FigureCheck(Reading):
    """The figures of one answer."""

    def of_figures(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        figures = [one for one in clause.figures if self.is_looked_at(one, clause)]
        if not figures:
            return
        tried = [self.misses(figures, rows_of, clause, memory) for rows_of in self.readings(clause, memory, figures)]
        best = min(tried, key=len)
        for figure, rows in best.items():
            objection = self.objection(figure, rows, clause)
            if objection and (objection.kind == "unit" or not self.may_be_right(figure, clause, memory)):
                yield objection

    def readings(
        self, clause: Clause, memory: Sequence[Mention], figures: Sequence[Quantity]
    ) -> Iterator[Callable[[Quantity], frozenset[str] | None]]:
        """The ways in which the figures of a clause may belong to its names: to the one before, the one after, each to
        its own in order."""
        names = clause.names
        cited = clause.cited_ids
        if not names:
            known = frozenset(id for one in memory for id in one.ids)
            own = self.subject.ids if self.subject else frozenset()
            rows = cited or (known | own) or frozenset(self.claims.cited)
            if OTHERS.search(clause.masked):
                rows = frozenset(self.ground.records)
            yield lambda figure: rows
            return

        own = self.subject.ids if self.subject else frozenset()
        last = memory[-1].ids if memory else frozenset()

        def before(figure: Quantity) -> frozenset[str]:
            return rows_before(names, figure.start) or last | own or rows_after(names, figure.end)

        def after(figure: Quantity) -> frozenset[str]:
            return rows_after(names, figure.end) or rows_before(names, figure.start)

        yield before
        yield after
        if len(names) == 1:
            return
        if len(figures) % len(names) == 0:
            each = len(figures) // len(names)
            by_figure = {figure: names[at // each].ids for at, figure in enumerate(figures)}
            yield lambda figure: by_figure[figure]
        if len(figures) == 1:
            yield lambda figure: names[0].ids

    def misses(
        self, figures: Sequence[Quantity], rows_of: Callable[[Quantity], frozenset[str] | None], clause: Clause,
        memory: Sequence[Mention],
    ) -> dict[Quantity, frozenset[str]]:  # fmt: skip
        hits: dict[Quantity, frozenset[str]] = {}
        for figure in figures:
            rows = rows_of(figure) or frozenset()
            if not self.is_held(figure, rows, clause) and not self.is_explained(figure, clause, memory, rows):
                hits[figure] = rows
        return hits

    def is_held(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> bool:
        """Whether a row of these, or the one row cited for the figure, holds it."""
        cited = cited_for(figure, clause)
        rivals = {table_of(id) for id in clause.name_ids}
        if cited and (cited in clause.name_ids or table_of(cited) not in rivals or not clause.names):
            cells = self.cells(figure, clause)
            if any(cell.id == cited for cell in cells) or cited in clause.name_ids or not clause.names:
                rows = frozenset([cited])
        wanted = noun_columns(figure, clause, self.ground.heads)
        for cell in self.cells(figure, clause):
            if self.has_texts and not cell.column:
                return True
            if self.counts_rows(figure, clause):
                return False
            if cell.id in rows and (not wanted or cell.column in wanted) and self.ground.fits_unit(figure, cell):
                return True
        return False

    def is_looked_at(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it is clear enough that a figure states something of a row."""
        if noun_columns(figure, clause, self.ground.heads) or self.counts_rows(figure, clause):
            return True
        if re.match(r"(?:\s+\w+){0,2}\s+(?:lie|are|is|lies) (?:above|below)", clause.masked[figure.end :]):
            return True
        is_row_number = figure.digits < 4 and not figure.unit and not clause.masked[: figure.start].strip("| *#")
        if figure.is_word or (is_row_number and clause.masked.lstrip().startswith("|")):
            return False
        if figure.digits > 1 or figure.unit:
            return True
        before = clause.masked[: figure.start].rstrip()
        return clause.masked.lstrip().startswith("|") or (before.endswith("X (") or before.endswith("X:"))

    def is_explained(self, figure: Quantity, clause: Clause, memory: Sequence[Mention], rows: frozenset[str]) -> bool:
        """Whether the question, a count of rows, or a calculation from the rows gives the figure."""
        if self.counts_rows(figure, clause):
            return self.is_count(figure, clause)
        return (
            self.in_question(figure, clause)
            or self.is_count(figure, clause)
            or self.is_computed(figure, clause, memory, rows)
            or self.is_written_out(figure, clause)
            or (self.ranking is not None and any(fits(figure, one.outcome) for one in self.ranking.options))
        )

    def in_question(self, figure: Quantity, clause: Clause) -> bool:
        source = f"{self.question}\n{self.known}"
        around = content_words(clause.masked, figure.start, figure.end)
        for one in self.elsewhere:
            if not fits(figure, one.meanings[0].value):
                continue
            if figure.unit and figure.unit != one.unit:
                continue
            if figure.digits > 2 or (figure.unit and figure.unit == one.unit):
                return True
            if around & content_words(source, one.start, one.end):
                return True
        return False

    @cached_property
    def row_counts(self) -> set[int]:
        counts = set()
        for rows in self.ground.tables.values():
            counts.add(len(rows))
            for column in rows[0].fields:
                counts.add(len({str(row.fields.get(column)) for row in rows}))
        counts.add(len(self.ground.records))
        counts.add(len(self.ground.names))
        return counts

    def is_count(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it counts rows: all, the others, those above or below the mean, those with one value."""
        value = figure.meanings[0].value
        if figure.unit or value != int(value) or clause.masked.lstrip().startswith("|"):
            return False
        if noun_columns(figure, clause, self.ground.heads):
            return False
        around = clause.masked[max(0, figure.start - 40) : figure.end + 60]
        counts = set(self.row_counts)
        if re.search(r"\bothers?\b", around, re.I):
            counts |= {one - 1 for one in counts}
        if re.match(r"(?:\s+\w+){0,4}\s+(?:above|below|over|under|exceed)", clause.masked[figure.end :], re.I):
            return int(value) in self.counts_by_mean
        if self.counts_rows(figure, clause):
            sizes = {len(rows) for rows in self.ground.tables.values()}
            sizes |= {one - 1 for one in sizes} if re.search(r"\bothers?\b", around, re.I) else set()
            single = (cell for cell in self.cells(figure, clause) if len(self.ground.tables[table_of(cell.id)]) < 4)
            return int(value) in sizes or "limit" in self.known.lower() or any(True for _ in single)
        if int(value) in counts:
            return True
        is_all = re.search(r"\b(?:all|of|of the|compared|total of)(?: the)?\s*$", clause.masked[: figure.start], re.I)
        return not is_all and figure.digits < 3 and int(value) in self.group_counts

    def counts_rows(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it counts all rows, or all of what the question asks for."""
        before, after = clause.masked[: figure.start], clause.masked[figure.end :]
        if re.search(r"(?:#\d+|No\. ?\d+|\d(?:st|nd|rd|th)|\blast) of(?: the)?\s*$", before):
            return True
        noun = re.match(r"\s+([a-z]{3,})", after)
        if not noun or noun_columns(figure, clause, self.ground.heads):
            return False
        wording = re.match(r"\s*(?:which|what|who)\s+(\w+)", self.question, re.I)
        return stem(noun[1]) in ({stem(wording[1].lower())} if wording else set()) | {"row", "candidate", "record"}

    @cached_property
    def counts_by_mean(self) -> set[int]:
        counts = set()
        for column in self.columns:
            above = sum(one > column.mean for one in column.numbers)
            counts |= {above, sum(one < column.mean for one in column.numbers)}
        return counts

    @cached_property
    def group_counts(self) -> set[int]:
        """How many rows of a table share a text."""
        return {
            number
            for rows in self.ground.tables.values()
            for column in rows[0].fields
            for number in Counter(str(row.fields.get(column)) for row in rows).values()
            if number > 1
        }

    def is_written_out(self, figure: Quantity, clause: Clause) -> bool:
        """Whether a calculation in the text gives it, or starts from it where a cited row holds it."""
        row_sets = any(cell.id in self.claims.cited for cell in self.ground.cells_with(figure))
        return any(fits(figure, one.value) or (row_sets and figure.text in one.operands) for one in clause.calculations)

    def is_computed(self, figure: Quantity, clause: Clause, memory: Sequence[Mention], rows: frozenset[str]) -> bool:
        """Whether a whole column, one column of two named candidates, or two figures of one row give it."""
        text, ground = clause.masked, self.ground
        names = [*clause.names, *([] if len(clause.names) > 1 else memory)]
        ids = {id for one in names for id in one.ids} | rows | clause.cited_ids
        ids |= self.subject.ids if self.subject else set()
        wanted = noun_columns(figure, clause, ground.heads)
        words = Words(
            bool(GAP.search(text)), bool(RATIO.search(text)), bool(TOTAL.search(text)), bool(MEAN.search(text))
        )
        for column in self.columns:
            if wanted and column.name not in wanted:
                continue
            unit, by_id, total, mean, best = column.unit, column.by_id, column.total, column.mean, column.largest
            is_amount = figure.unit == unit or not (figure.unit and unit)
            own = [by_id[id] for id in sorted(ids) if id in by_id][:12]
            sums = [total, *(math.fsum(some[:n]) for some in (own, best) for n in range(2, len(some) + 1))]
            if is_amount and len(column.numbers) > 1:
                means = [mean, *([math.fsum(own) / len(own)] if own else [])]
                if fits_any(figure, [*(sums if words.total else []), *(means if words.mean else [])]):
                    return True
            is_part = figure.unit == "%" and total and unit != "%"
            if is_part and fits_any(figure, (100 * one / total for one in [*own, *sums])):
                return True
            extra = [best[0], min(column.numbers), mean] if OTHERS.search(text) or words.mean else []
            if any(is_result(figure, a, b, words, is_amount) for a in own for b in [*own, *extra]):
                return True
        return not wanted and any(self.from_one_row(figure, id, words) for id in ids if id in ground.records)

    def may_be_right(self, figure: Quantity, clause: Clause, memory: Sequence[Mention]) -> bool:
        """Whether any row that the answer names, or a plain calculation from them, gives the figure, whatever words
        stand around it: then it is not sure of whom or what it speaks."""
        if self.may_be_count(figure, clause) or self.is_loose(figure, clause):
            return True
        cited, is_beside = cited_for(figure, clause), self.is_beside_name(figure, clause)
        cells = self.cells(figure, clause)
        if cited and not is_beside and any(one.id == cited and self.ground.fits_unit(figure, one) for one in cells):
            return True
        is_open = len(clause.names) > 1 and "respectively" not in clause.masked and not is_beside
        if is_open and any(one.id in clause.name_ids and self.ground.fits_unit(figure, one) for one in cells):
            return True
        ids = {id for one in (*clause.names, *memory) for id in one.ids} | set(self.claims.cited)
        ids |= {id for other in self.reasons for id in other.name_ids}
        is_index = bool(re.search(r"\bind(?:ex|ic)|=\s*100\b", self.claims.because, re.I))
        states_percent = any(column.unit == "%" for column in self.columns)
        for column in self.columns:
            unit, by_id, total, count = column.unit, column.by_id, column.total, len(column.numbers)
            own = [by_id[id] for id in sorted(ids) if id in by_id][:8]
            others = own if count > 3 and OF_THE_REST.search(self.claims.because) else []
            left = [total - math.fsum(others[:size]) for size in range(1, len(others) + 1)] + [
                total - one for one in others
            ]
            means = [column.mean, *((total - one) / (count - 1) for one in others)]
            if figure.unit == "%" and unit != "%" and not (states_percent and len(clause.names) < 2):
                shares = [100 * one / total for one in [*own, *left]] if total else []
                gaps = [100 * (a / b - 1) for a, b in [*permutations(own, 2), *product(own, means)] if b]
                if fits_any(figure, [*shares, *gaps]):
                    return True
            elif figure.unit == unit or not (figure.unit and unit):
                gaps = [a - b for a, b in permutations(own, 2) if a > b]
                if fits_any(figure, [total, *means, *left, *gaps]) and figure.digits > 1:
                    return True
                if is_index and not figure.unit and fits_any(figure, (100 * a / b for a, b in product(own, own) if b)):
                    return True
        return False

    def may_be_count(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it may count rows: all, all others, or those on one side of the mean."""
        value, text = figure.meanings[0].value, clause.masked
        sizes = {len(rows) for rows in self.ground.tables.values()}
        if figure.unit or value != int(value):
            return False
        if value == len(clause.names) > 1:  # "the three genres are A, B and C"
            return True
        near = text[max(0, figure.start - 25) : figure.end + 25]
        if value < max(sizes, default=0) and OF_THE_REST.search(near):
            return True
        if text.lstrip().startswith("|") or noun_columns(figure, clause, self.ground.heads):
            return False
        of_size = re.match(r"\s+(?:of|von|de|sur)(?: the)?\s+(\d+)", text[figure.end :])
        if value in sizes or (of_size and value < int(of_size[1]) and int(of_size[1]) in sizes):
            return True
        if re.search(r"\b(?:of|among)(?: the)?\s*$", text[: figure.start], re.I):
            return False
        by_mean = (
            self.counts_by_mean if re.search(r"\b(?:above|below|over|under|exceed|mean|average)", text, re.I) else set()
        )
        return value in {one - 1 for one in sizes} | by_mean

    def is_loose(self, figure: Quantity, clause: Clause) -> bool:
        """Whether it is one end of a range, or said to be no more than about right."""
        before, after = clause.masked[: figure.start], clause.masked[figure.end :]
        is_end = re.search(r"\b(?:between|from)\b[^.;]{0,30}\b(?:and|to)\s*$|\d\s*[–-]\s*$", before, re.I)
        return bool(RANGE.search(before) or is_end or LOOSE.match(after))

    def is_beside_name(self, figure: Quantity, clause: Clause) -> bool:
        """Whether the figure follows a name at once, and is not one of two that are set against each other."""
        before = clause.masked[: figure.start]
        if re.match(r"[\w/ ]{0,12}(?:against|vs|versus|to|and|[+x−-])[.\s]*\d", clause.masked[figure.end :]):
            return False
        return any(0 <= figure.start - one.end <= 25 for one in clause.names) and not re.search(r"\d[^X]*$", before)

    def from_one_row(self, figure: Quantity, id: str, words: Words) -> bool:
        """Whether two figures of a row give it: a rate, a product, a difference."""
        if figure.digits < 3 and (not words.ratio or figure.unit == "%"):
            return False
        for (one, a), (other, b) in permutations(numbers_of_fields(self.ground.records[id]), 2):
            if is_key(one) or is_key(other) or not math.isfinite(a * b) or fits(figure, a) or fits(figure, b):
                continue
            if b and (words.ratio or figure.unit == "%") and fits(figure, a / b * (100 if figure.unit == "%" else 1)):
                return True
            if figure.digits > 2 and words.ratio and fits(figure, a * b):
                return True
            is_alike = figure.digits > 2 and unit_of_column(one) == unit_of_column(other)
            if is_alike and ((words.gap and fits(figure, a - b)) or (words.total and fits(figure, a + b))):
                return True
        return False

    def objection(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Objection | None:
        """What is said of a figure that nothing supports."""
        ground, cells = self.ground, self.cells(figure, clause)
        owner_name = next((one.name for one in reversed(clause.names) if one.ids & rows), "")
        whom = f" for {owner_name}" if owner_name else ""
        own = [cell for cell in cells if cell.id in rows]
        if own and not any(ground.fits_unit(figure, cell) for cell in own):
            unit = unit_of_column(own[0].column)
            says = (
                f"{own[0].column} in row {own[0].id} is in {unit}"
                if unit
                else f"{own[0].column} in row {own[0].id} has no such unit"
            )
            return Objection("unit", f"You wrote {figure.text}{whom}; {says}.")
        kind: ObjectionKind = "count" if figure.digits < 3 and not figure.unit else "figure"
        if near := self.nearest(figure, rows, clause):
            value = f"row {near.id} says {near.value:.15g}" + (f" ({near.column})" if near.column else "")
            if is_scaled(figure, near.value):
                kind = "scale"
            return Objection(kind, f"You wrote {figure.text}{whom}; {value}.")
        if others := [cell for cell in cells if ground.fits_unit(figure, cell)]:
            return Objection(kind, f"You wrote {figure.text}{whom}; it stands in {ground.label(others[0].id)} alone.")
        return Objection(kind, f"You wrote {figure.text}{whom}; no row that you cite says so.")

    def nearest(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Cell | None:
        """The number of these rows that was likely meant: of the column named beside it, or the nearest."""
        value = abs(figure.meanings[0].value)
        wanted = noun_columns(figure, clause, self.ground.heads)
        cells = [cell for cell in self.ground.cells if cell.id in rows and cell.value and cell.column]
        if wanted:
            cells = [cell for cell in cells if cell.column in wanted]
        if not cells or not value:
            return None
        scaled = [cell for cell in cells if is_scaled(figure, cell.value)]
        best = scaled[0] if scaled else min(cells, key=lambda cell: abs(math.log(cell.value / value)))
        return best if scaled or wanted or abs(math.log(best.value / value)) < 1 else None
