"""Figures of an answer against the rows that they speak of.

A figure is read in every way that its clause leaves open: as a number of any row that it may speak of, or as worked out
from the rows that the answer names. It is objected to if no reading gives it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations, product

from decisor.parsing.figures import Quantity, find_quantities, iterate_numeric_fields, split_name, unit_of_column
from decisor.techniques.shared.objections.order import (
    COMPARATIVE,
    ITEMS,
    MEAN,
    ORDINAL,
    PLACE,
    RANK_HEAD,
    find_candidate_nouns,
)
from decisor.techniques.shared.objections.reading import (
    BOUND,
    SUPERLATIVE,
    AnswerReading,
    Cell,
    Clause,
    Mention,
    NumberColumn,
    fits,
    is_key,
    stem,
    table_of,
)
from decisor.types import Objection, ObjectionKind

MOST_ROWS = 8
"""Rows of which every pair is calculated with."""
FEW_ROWS = 3
"""Rows that a short figure is calculated from."""
CLOSE = 0.2
"""Distance, as a natural logarithm, within which a number of the row was likely meant."""
THAT_OF = re.compile(r",? that of X[X ]*(?:\s{3}|[,.;]|$)")
"""What stands between a figure and the name that it is of: "the highest is 41, that of Elm [o1.r1]"."""
RANGE = re.compile(r"\b(?:between|zwischen|entre)\b[^;]{0,30}\b(?:and|und|et|y)\b\s*[$€£]?$|\d\s*[–-]\s*$", re.I)
"""What stands before the second end of a range."""
OPERAND_AHEAD = re.compile(r"\d[)\s]*[+−×÷/*–-]\s*[($€£]*$")
OPERAND = re.compile(r"[)\s]*[+−×÷/*–-]\s*[($€£]*\d")
"""What stands before the second number of a calculation, and after the first."""
OPPOSITE = re.compile(r"\d[^\d,;]{0,20}\b(?:against|versus|vs\.?)\s*$", re.I)
OTHERS = re.compile(
    r"\b(?:next|others?|rest|follow\w*|second|runner|compared|against|than|versus|vs|while|whereas|remaining|any)\b",
    re.I,
)
OF_THE_REST = re.compile(r"\b(?:remaining|others?|rest|further|übrigen|anderen|autres|otros|restantes)\b", re.I)
WHOLE = re.compile(
    r"(?:\b(?:all|of|among|over|across|from|these|set of|compared|are|entre|von den|unter(?: den)?|alle|der"
    r"|(?:sur|tous) les|(?:de|todos) los)(?: the)?|\bthe|\bevery\b[^.;]{0,40}\()\s*$",
    re.I,
)
"""Words before a number of candidates that are all of them."""
MEMBERS = r"(?:(?:out )?of|from|among|in|von|unter|de|entre|sur)(?: the| all| den| les| los)?"
ALL = re.compile(r"\ball(?: the)?\s*$", re.I)
REMAIN = re.compile(r"\s+(?:all|are|were|have|had|lie|come|stand|rank|follow|did|do)\b")
PART = re.compile(
    r"\s+(?:with|in|that|which|whose|where|from|above|below|over|under|exceed\w*|do|does|have|lie|are|outside|beyond"
    r"|behind|after|before|besides|except|without|by|at|avec|mit|con)\b",
    re.I,
)
"""Words after it that make it some of them."""
SMALL_WORDS = set(re.findall(r"\w+", "the and with has have for are was which that than from all most least"))

PERIODS = re.compile(
    r"\s+(?:periods|quarters|years|months)\b(\s+(?:shown|listed|given|recorded|of data|in the (?:data|breakdown))\b)?",
    re.I,
)
"""Periods after a number of them, and words that say they are those of the rows: a lease may be of eight years."""
IN_ALL = re.compile(r"[^.;\d]{0,20}\b(?:altogether|together|in all|in total|compar|verglichen)", re.I)
COUNTED = re.compile(
    rf"(?:#\d+|\bNo\. ?\d+|\b{ORDINAL}|\blast|\btête|\b{PLACE}\W+\d+|{SUPERLATIVE.pattern})"
    rf"(?:/|(?: [a-z]+)? {MEMBERS}\s*)$"
    r"|\b(?:of|among|through|over|across)\s+(?:all|the)\s*$|\b(?:checked|compared|reviewed|read|looked at) all\s*$"
    r"|\blist of\s*$|\b(?:compared|candidates|n)[\"']?\s*[=:]\s*$",
    re.I,
)
SIDE = re.compile(r"(?:\s+(?:out )?of(?: the)?(?: \d+)?)?(?:\s+[a-z]+){0,4}?\s+(above|over|below|under|exceeds?)\b")
SIDE_AHEAD = re.compile(
    r"(?:\b(?:number|count)\b.*)?\b(above|over|below|under|exceeding)(?: (?:it|that|this)(?: is| are|:)?|\b[^;]*:)\s*$",
    re.I,
)
BEYOND = re.compile(
    r"\s+(?:lie|are|come|rank|stand|sit|do|have|show)(?: [a-z]+){0,2}"
    r"\s+(?:above|below|behind|ahead of|in front of|[a-z]+ than)\s+[*]*(?=X)"
)
PLAIN = re.compile(r"\b(?:with|has|have|had|at|from|shows?|records?|reach(?:es)?|posts?)\s+[*$€£]*$")
"""Words between a name and a figure of its own, which is no difference or share."""
RowsOf = Callable[[Quantity], frozenset[str]]


@dataclass(frozen=True)
class FigureCheck(AnswerReading):
    """The figures of one answer."""

    def check_figures_of(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        figures = []
        for figure in clause.figures:
            numbers = self.numbers_counted(figure, clause)
            if numbers is None:
                figures += [figure] if self.is_statement(figure, clause) else []
                continue
            value, given = figure.meanings[0].value, {known.meanings[0].value for known in self.given_figures}
            # Notes say how many rows were shown, which are more than candidates where each has several.
            given -= self.row_numbers - numbers
            if value not in numbers and (figure.digits < 2 or value not in given):
                yield Objection("count", f"You wrote {figure.text}; by the rows it is {max(numbers)}.")
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
            # The reading with the fewest misses counts: the most favourable one to the answer.
            best = misses if best is None or len(misses) < len(best) else best
            if not best:
                return
        yield from (self.objection(figure, rows, clause) for figure, rows in (best or {}).items())

    def readings(self, clause: Clause, memory: Sequence[Mention], figures: Sequence[Quantity]) -> Iterator[RowsOf]:
        """Yield the ways in which figures belong to names: the name before, the name after, each in its order."""
        names = clause.names
        own = self.subject.ids if self.subject else frozenset[str]()
        if not names:
            # Without a name or a row it is open of whom it speaks: of any row.
            is_open = not clause.cited_ids or OTHERS.search(clause.masked)
            yield lambda figure: frozenset(self.ground.records) if is_open else clause.cited_ids
            return
        last = memory[-1].ids if memory else own
        yield lambda figure: clause.rows_before(figure.start) or last or clause.rows_after(figure.end)
        # "Elm (30.67) comes before Oak": a figure in brackets is of the name before it.
        yield (
            lambda figure: (
                (not clause.masked[: figure.start].endswith("X (") and clause.rows_after(figure.end))
                or clause.rows_before(figure.start)
            )
        )
        if len(names) > 1 and len(figures) % len(names) == 0:
            each = len(figures) // len(names)
            yield lambda figure: names[figures.index(figure) // each].ids
        if len(names) > 1 and len(figures) == 1:
            yield lambda figure: names[0].ids

    def is_held(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> bool:
        """Return whether a row of these, or the one row cited for the figure, holds it."""
        cited, cells = clause.cited_for(figure), self.cells(figure, clause)
        if self.has_texts and any(not cell.column for cell in cells):
            return True
        rivals = {table_of(id) for id in clause.name_ids}
        if (
            any(cell.id == cited and self.ground.fits_unit(figure, cell) for cell in cells)
            and cited not in clause.name_ids
        ):
            return True  # Whether the row is of the name is a question of citations.
        if cited and (cited in clause.name_ids or not clause.names):
            # "Elm has 5 [o1.r1], Oak has 5", where o1.r1 is Elm's: the first 5 is not of the name after it.
            before = clause.rows_before(figure.start)
            near = rows & before if cited in before else rows
            rows = frozenset([cited]) | (near if self.is_beside_name(figure, clause) else frozenset())
        if clause.sole_id in clause.name_ids or table_of(clause.sole_id) not in rivals:
            rows |= {clause.sole_id}  # "B's stock grows by 5 if A closes [o2.r1]", where o2.r1 is A's
        if THAT_OF.match(clause.masked[figure.end :]):
            rows = clause.rows_after(figure.end)
        elif not (
            self.is_beside_name(figure, clause) and ends_phrase(figure, clause)
        ):  # Which name it belongs to is open.
            rows |= {cited} if cited else frozenset()
            ahead, after = clause.around(figure)
            # "38 orders against 41", "the lead over Oak = 41 - 38"
            if OPPOSITE.search(ahead) or OPERAND_AHEAD.search(ahead) or OPERAND.match(after):
                rows |= clause.name_ids | (self.subject.ids if self.subject else frozenset())
            is_among = len(clause.names) > 1 and not cited and "respectively" not in clause.masked
            if is_among or not clause.rows_before(figure.start):  # "Since 41 is more than 38, it is Elm"
                rows |= clause.name_ids
        wanted = self.noun_columns(figure, clause)
        # "736 power [o3.r1]" where o3 has total_power, and o2 a power.
        tables = {column.table for column in self.ground.columns if column.name in wanted}
        return any(
            cell.id in rows
            and (cell.column in wanted or table_of(cell.id) not in tables)
            and self.ground.fits_unit(figure, cell)
            for cell in cells
        )

    def is_statement(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether it is clear enough that a figure states something of a row."""
        before, after = clause.around(figure)
        # "99 less [o1.r2]" is a difference, however short; by a name it may be of any column.
        is_gap = figure.digits > 1 and not clause.names and COMPARATIVE.match(after.lstrip())
        if self.noun_columns(figure, clause) or is_gap:
            return True
        if re.fullmatch(RANK_HEAD, clause.head_of(figure), re.I):
            return False
        is_label = figure.digits < 4 and not figure.unit and "|" not in before.lstrip("| ")
        if figure.is_word or (is_label and clause.heads):
            return False
        if (own := clause.cited_for(figure)) and own in clause.rows_before(figure.start):
            return True  # "Elm has 3 of them [o1.r2]", where o1.r2 is Elm's
        is_of_name = figure.digits > (1 if len(clause.names) == 1 else 2)
        return is_of_name or bool(figure.unit or clause.heads or self.is_sure(figure, clause))

    def is_beside_name(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether the figure follows a name at once, and is not one of two set against each other."""
        before, after = clause.around(figure)
        if re.match(r"[\w/ ]{0,12}(?:against|vs|versus|to|and|[+x−-])[.\s]*\d", after):
            return False
        names = [name for name in clause.names if 0 <= figure.start - name.end <= 25]
        between = before[names[-1].end :] if names else ""
        return bool(names) and not re.search(r"\d|[,;]\s+(?!with\b|at\b|whose\b|which\b)[A-Za-z]|\s{6,}", between)

    def is_explained(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether the figure ends a range, or is of the question, a count of rows or a calculation."""
        wanted, cells = self.noun_columns(figure, clause), self.cells(figure, clause)
        is_own = clause.cited_for(figure) in clause.rows_before(figure.start) and self.is_sure(figure, clause)
        if is_own and (wanted or figure.unit not in ("", "%")) and PLAIN.search(clause.masked[: figure.start]):
            return False
        if self.is_mistaken(figure, cells, clause):
            return False
        columns = [column for column in self.ground.columns if not wanted or column.name in wanted]
        if figure.unit and figure.unit != "%":
            columns = [column for column in columns if column.unit == figure.unit] or columns
        elif figure.digits < 4:
            columns = [column for column in columns if self.is_spoken_of(column)]
        own = clause.name_ids | clause.cited_ids
        # "0.2 %" where the row says 0.2, a share.
        is_share = figure.unit == "%" and any(cell.id in own and cell.value < 1 for cell in cells)
        is_placed = clause.names or clause.cited
        is_count = is_placed and not figure.unit and figure.meanings[0].room >= 0.5 and self.is_sure(figure, clause)
        if figure.digits < 2 and (is_share or is_count):
            columns = []
        return bool(
            self.is_in_range(figure, clause)
            # "The other three have fewer than 2,500 each"
            or (BOUND.search(clause.masked[: figure.start]) and self.is_bound_of_any(figure, clause))
            or self.in_question(figure, clause)
            or (not wanted and self.may_count(figure, clause))
            or any(self.from_column(figure, column, clause) for column in columns)
            or (not wanted and self.from_one_row(figure, clause))
            or self.is_written_out(figure, clause)
            or (self.ranking and fits(figure, *(option.outcome for option in self.ranking.options)))
        )

    def is_mistaken(self, figure: Quantity, cells: Sequence[Cell], clause: Clause) -> bool:
        """Return whether a figure is one of its own row in a unit of no column, or with its point elsewhere."""
        if figure.unit == "%":
            return False
        units = {column.unit for column in self.ground.columns}
        rows = clause.rows_before(figure.start) or clause.cited_ids
        if figure.unit and figure.unit not in units:
            return any(cell.id in rows and not self.ground.fits_unit(figure, cell) for cell in cells)
        is_near = figure.digits > 2 and self.is_beside_name(figure, clause) and ends_phrase(figure, clause)
        column = self.deciding
        own = [column.by_id[id] for id in rows if id in column.by_id] if column and is_near else []
        return any(is_scaled(figure, value) for value in own)

    def is_bound_of_any(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether a bound is of no name before it or of the rest, or of how far something is apart."""
        before, after = clause.around(figure)
        is_open = OF_THE_REST.search(before) or not any(name.end <= figure.start for name in clause.names)
        is_gap = COMPARATIVE.match(after.lstrip()) or re.match(r"\s+(?:behind|ahead|apart|away)\b", after)
        return bool(is_gap or (is_open and self.cells(figure, clause)))

    def is_in_range(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether the figure is an end of a range that holds a number of the rows, or one of no amounts."""
        at = clause.figures.index(figure)
        for low, high in pairwise(clause.figures[max(0, at - 1) : at + 2]):
            if not RANGE.search(clause.masked[: high.start]):
                continue
            scale = high.meanings[0].room * 1.001
            ends = sorted((abs(low.meanings[0].value), abs(high.meanings[0].value)))
            rows = clause.name_ids | clause.cited_ids or frozenset(self.ground.records)
            inside = self.ground.between(ends[0] - scale, ends[1] + scale)
            held = any(cell.id in rows and self.ground.fits_unit(high, cell) for cell in inside)
            return high.unit == "%" or not high.unit or held
        return False

    def is_spoken_of(self, column: NumberColumn) -> bool:
        """Return whether the answer is decided by a column, or it or the question has a word of its name."""
        spoken = f"{self.claims.because} {self.claims.runner_up} {self.question}".lower()
        return column is self.deciding or any(word in spoken for word in split_name(column.name))

    def in_question(self, figure: Quantity, clause: Clause) -> bool:
        source = f"{self.question}\n{self.known}"
        around = find_nearby_words(clause.masked, figure)
        return any(
            fits(figure, known.meanings[0].value)
            and figure.unit in ("", known.unit)
            and (figure.digits > 2 or figure.unit or around & find_nearby_words(source, known))
            for known in self.given_figures
        )

    def is_written_out(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether a calculation in the text gives it, or starts from it and a cited row holds it.

        So does a difference of figures beside it, which may be rounded.
        """
        is_cited = any(cell.id in self.claims.cited for cell in self.ground.cells_with(figure))
        written = [
            known.meanings[0].value
            for known in clause.figures
            if known.unit == figure.unit != "" and known is not figure
        ]
        # A number of a row is no difference of two others, however it fits.
        is_short = figure.digits < 5 or not self.ground.cells_with(figure)
        if is_short and fits(figure, *(a - b for a, b in permutations(written, 2) if a != b)):
            return True
        return any(
            # Results are cut off as often as rounded: 172.9027 is written as 172.902.
            any(abs(abs(one.value) - abs(calculation.value)) <= 2 * one.room for one in figure.meanings)
            or (is_cited and figure.text in calculation.operands)
            for calculation in clause.calculations
        )

    # Counts of candidates.

    @cached_property
    def sizes(self) -> set[int]:
        """The numbers of candidates by table, and numbers that a query counted."""
        tables = self.ground.tables.values()
        names = ({self.ground.name_of.get(row.id) for row in rows} for rows in tables)
        counted = {int(cell.value) for cell in self.ground.cells if len(self.ground.tables[table_of(cell.id)]) < 3}
        return {len(owners) for owners in names if len(owners) > 1} | counted

    @cached_property
    def row_numbers(self) -> set[int]:
        """The numbers of rows of tables where a candidate may have several."""
        ranked = {column.table for column in self.ground.ranked_columns}
        return {len(rows) for table, rows in self.ground.tables.items() if table not in ranked}

    def numbers_counted(self, figure: Quantity, clause: Clause) -> set[int] | None:
        """Return the numbers that a count of candidates may be. None unless it is certain that it is one."""
        before, after = clause.around(figure)
        value, sizes = figure.meanings[0].value, self.sizes
        if figure.unit or value != int(value) or not sizes or "limit" in self.known.lower():
            return None
        periods = PERIODS.match(after)
        is_of_rows = periods and after.startswith(" periods") and ends_phrase(figure, clause, has_noun=True)
        if periods and (periods[1] or is_of_rows or ALL.search(before)):
            return self.period_counts or None
        candidates = find_candidate_nouns(self.question)
        nouns = [re.match(word + r"([^\W\d_]{3,})", after) for word in (r"\s+", r"\s+[a-z]+\s+")]
        noun = next((match for match in nouns if match and stem(match[1].lower()) in candidates), None)
        is_counted = noun is not None
        names = {name.name for clause in self.reasons for name in clause.names}
        is_rest = OF_THE_REST.search(f"{before[-25:]}{after[:25]}") and not re.search(r"others? of\b.{0,8}$", before)
        if self.noun_columns(figure, clause) or (clause.heads and not is_counted):
            return None
        if beyond := BEYOND.match(after, noun.end() if noun else 0):
            owners = (name for name in clause.names if name.start == figure.end + beyond.end())
            return self.counts_beyond(owners) or None
        if 1 < value <= len(names) and not ALL.search(before) and not is_rest:
            return None
        part = re.search(r"\b(?:\d+|[a-z]+) (?:out )?of(?: the)?\s*$", before)
        is_of = part is not None and bool(find_quantities(before[-14:]))
        if not is_of and (numbers := self.counts_on_side(before, after, is_counted)):
            return numbers
        is_end = is_counted or ends_phrase(figure, clause) or PART.match(after)
        own = {cell.value for cell in self.ground.cells if cell.id in clause.name_ids | clause.cited_ids}
        is_whole = COUNTED.search(before) or (is_of and (is_counted or MEAN.search(before)))
        if is_end and value not in own and is_whole and not is_rest:
            return sizes
        most = 1 if ALL.search(before) else max(len(names), 1)
        rest = {size - less for size in self.sizes for less in range(1, most + 1)}
        is_bare = noun is None and OF_THE_REST.search(before[-11:]) and (is_end or REMAIN.match(after))
        # "20 of 25 orders were late, the other 5 were not" are others of something else.
        if is_bare and not clause.names and not re.search(r"\d (?:\w+ )?of\b", self.claims.because):
            return rest
        # "There are four entries for it" counts others than candidates.
        is_of_one = noun and re.match(r"\s+(?:for|of) (?:it|him|her|them|each|this|that|X)", after[noun.end() :])
        if noun is None or not before.strip(" *-|") or is_of_one:
            return None
        is_other = stem(noun[1].lower()) in ("alternative", "option")
        if stem(noun[1].lower()) in ITEMS and not is_other:
            sizes = sizes | {len(rows) for rows in self.ground.tables.values()}
            rest |= {size - less for size in sizes for less in range(1, most + 1)}
        if is_rest:
            return rest
        if is_other:
            return rest | sizes
        tail = after[noun.end() :]
        is_all = (WHOLE.search(before) and (is_of or not PART.match(tail))) or IN_ALL.match(tail)
        return sizes if is_all or value > max(sizes) else None

    def counts_on_side(self, before: str, after: str, is_counted: bool) -> set[int]:
        """Return the numbers of rows above or below the mean, or a figure, that a number before or after says."""
        side = SIDE.match(after) or SIDE_AHEAD.search(before)
        if not side:
            return set()
        is_back = is_counted or re.search(r"\b(?:that|it|this)\b", side.string[side.end(1) :][:6])
        word = side[1].lower()
        if MEAN.search(side.string) or (is_back and MEAN.search(self.claims.because)):
            return self.counts_by_mean(word in ("above", "over") or word.startswith("exceed"))
        return set()

    def counts_beyond(self, names: Iterable[Mention]) -> set[int]:
        """Return how many rows are above or below names in the deciding column."""
        column = self.deciding
        ends = [column.ranks(column.row_of(name)) for name in names] if column else []
        return {place - 1 for both in ends if both for places in both for place in places}

    @cached_property
    def period_counts(self) -> set[int]:
        """The numbers of rows with a period, by table and name."""
        ids = [id for id in self.ground.records if any(True for _ in self.ground.periods_of(id))]
        owners = Counter((table_of(id), self.ground.name_of.get(id)) for id in ids)
        return {*owners.values(), *Counter(map(table_of, ids)).values()}

    def counts_by_mean(self, is_above: bool) -> set[int]:
        """Return the number of rows on one side of the mean of the deciding column, or of any."""
        columns = [self.deciding] if self.deciding else self.ground.columns
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
        """Return whether a number without a unit may be one of rows: some of all, the rest, rows that share a value."""
        value = figure.meanings[0].value
        if figure.unit or value != int(value) or figure.digits > 3:
            return False
        before, after = clause.around(figure)
        of_size = re.match(r"\s+(?:out of|of|von|de|sur)(?: the)?\s+(\d+)", after)
        if value < max(self.sizes, default=0) and (of_size or OF_THE_REST.search(f"{before[-25:]}{after[:25]}")):
            return True
        beyond = self.counts_beyond(clause.names)  # "Elm beats 19"
        sides = self.counts_by_mean(True) | self.counts_by_mean(False)
        return not clause.heads and value in self.row_counts | sides | beyond

    # Calculations.

    def own_rows(self, clause: Clause) -> list[str]:
        """Return the rows that a calculation of a clause may start from: its own, then those of the whole answer."""
        first = sorted(clause.name_ids | clause.cited_ids)
        ids = {id for clause in [*self.reasons, *self.runner_up] for id in clause.name_ids} | set(self.claims.cited)
        ids |= self.subject.ids if self.subject else set()
        return [*first, *sorted(ids - {*first})]

    def from_column(self, figure: Quantity, column: NumberColumn, clause: Clause) -> bool:
        """Return whether one column of rows that the answer names gives the figure: by a sum, mean, gap or ratio.

        No word of the clause is asked for which: people have more words for these than any list.
        """
        # All pairs of many rows would give nearly any figure, and take long.
        own = [column.by_id[id] for id in self.own_rows(clause) if id in column.by_id][:MOST_ROWS]
        every = column.numbers if figure.digits > 4 else ()
        total, count = column.total, len(column.numbers)
        ends = column.smallest if self.goal == "min" else column.largest
        # "Elm, Oak and Fir together have 1,830, a third of Ash's": the names right before it, from the last.
        near = [column.row_of(name) or "" for name in reversed(clause.names) if name.end <= figure.start]
        last = [column.by_id[id] for id in near if id in column.by_id]
        sums = [math.fsum(numbers[:size]) for numbers in (own, last, ends) for size in range(2, len(numbers) + 1)]
        left = [total - less for less in [*own, *sums]] if count > 3 else []
        means = [column.mean, *((total - less) / (count - 1) for less in own if count > 2)]
        means += [math.fsum(own) / len(own)] if own else []
        known = [*own, *means, column.largest[0], min(column.numbers)]
        is_sure = figure.unit == column.unit and self.is_sure(figure, clause)
        if figure.digits < (4 if is_sure else 2) and (figure.unit != "%" or column.unit == "%"):
            # So many results would give any short figure by chance.
            own = known = own[:FEW_ROWS] if figure.unit != "%" or not is_sure else []
            sums, left, means = [math.fsum(own[:2])], [], []
        if figure.unit == "%":
            parts = [100 * part / total for part in [*own, *sums, *left]] if total else []
            ratios = [100 * a / b for a, b in [*product(own, known), *product(means, own)] if b]
            parts += [a - b for a, b in permutations(parts[: len(own)], 2)]
            if fits(figure, *parts, *ratios, *(ratio - 100 for ratio in ratios)):
                return True
        is_alike = figure.unit == column.unit or not (figure.unit and column.unit)
        gaps = (a - b for a, b in product(own, [*known, *every]))
        if is_alike and fits(figure, *gaps, *sums, *left, *means, *([total] if left else [])):
            return True
        if figure.unit:
            return False
        ratios = [a / b for a, b in [*product(own, [*known, *left, total]), *product(known, own)] if b]
        value = figure.meanings[0].value
        is_about = figure.is_word and any(abs(ratio - value) < 0.5 for ratio in ratios)
        # Beside 100 each index is the number of another row.
        is_index = (figure.digits > 1 or figure.meanings[0].room < 0.5) and not fits(figure, *own)
        return is_about or fits(figure, *ratios, *(100 * ratio for ratio in ratios if is_index))

    def is_sure(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether a figure surely states a number of a row.

        It names the column, or nothing but a mark or citation follows it, and a name is before it or a row is cited.
        """
        noun = self.noun_columns(figure, clause)
        is_placed = noun or self.is_beside_name(figure, clause) or clause.cited_for(figure)
        return bool(is_placed) and ends_phrase(figure, clause, has_noun=bool(noun))

    def from_one_row(self, figure: Quantity, clause: Clause) -> bool:
        """Return whether two figures of a row give it: a rate, a product, a difference."""
        if figure.digits < 3 and self.is_sure(figure, clause):
            return False
        is_percent = figure.unit == "%"
        rows = [self.ground.records[id] for id in self.own_rows(clause)[:MOST_ROWS] if id in self.ground.records]
        for (column, a), (divisor, b) in (
            pair for row in rows for pair in permutations(iterate_numeric_fields(row), 2)
        ):
            # A product or ratio of keys means nothing, and would explain a figure by chance.
            if is_key(column) or is_key(divisor) or not math.isfinite(a * b) or fits(figure, a, b):
                continue
            units = {unit_of_column(column), unit_of_column(divisor)}
            rates = [a / b * (100 if is_percent else 1)] if b else []
            if fits(figure, *rates) and figure.unit in {"", "%"} | units:
                return True
            sums = [a - b, a + b] if len(units) == 1 else []
            if figure.digits > 2 and fits(figure, *sums, a * b):
                return True
        return False

    # The words of an objection.

    def objection(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Objection:
        """Return the objection to a figure that nothing supports."""
        ground, cells = self.ground, self.cells(figure, clause)
        owner = next((name.name for name in reversed(clause.names) if name.ids & rows), "")
        wrote = f"You wrote {figure.text}" + (f" for {owner}" if owner else "")
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
        """Return the number of these rows that was likely meant: of the column named beside it, or in which the figure
        stands for others, or close by. Empty where that is open: a wrong column would be copied.
        """
        value = abs(figure.meanings[0].value)
        wanted = self.noun_columns(figure, clause)
        wanted = wanted or {cell.column for cell in self.cells(figure, clause) if figure.digits > 1}
        cells = [cell for cell in self.ground.cells if cell.id in rows and cell.value and cell.column]
        cells = [cell for cell in cells if not wanted or cell.column in wanted]
        if not cells or not value:
            return None
        # A misplaced decimal point is the likeliest mistake, so its row is named first.
        if scaled := [cell for cell in cells if is_scaled(figure, cell.value)]:
            return scaled[0]
        # By ratio, not by difference: numbers of different columns differ in size. A 1 is mostly a flag.
        numbers = [cell for cell in cells if wanted or cell.value != 1]
        best = min(numbers, key=lambda cell: abs(math.log(cell.value / value)), default=None)
        return best if best and (wanted or abs(math.log(best.value / value)) < CLOSE) else None


def ends_phrase(figure: Quantity, clause: Clause, has_noun: bool = False) -> bool:
    """Return whether nothing but a mark, a citation or the end of the clause follows a figure, or its noun."""
    noun = r"(?:[*]*\s+(?:of the |of )?[A-Za-z]{3,}(?: and\b)?)?" if has_noun else ""
    end = r"[*\"'`]*(?:\s{3}|\s*(?![%<>=+*/-])[^\w\s]|\s*$|(?<=and))"
    return re.match(noun + end, clause.masked[figure.end :]) is not None


def find_nearby_words(text: str, figure: Quantity) -> set[str]:
    """Return the stems of the words around a figure, small words apart."""
    before, after = text[max(0, figure.start - 25) : figure.start], text[figure.end : figure.end + 25]
    around = [*re.findall(r"[A-Za-z]{3,}", before)[-3:], *re.findall(r"[A-Za-z]{3,}", after)[:2]]
    return {stem(word.lower()) for word in around} - SMALL_WORDS


def is_scaled(figure: Quantity, value: float) -> bool:
    """Return whether only the place of the decimal point differs."""
    return fits(figure, *(value * size for size in (1e-9, 1e-6, 1e-3, 0.01, 0.1, 10, 100, 1e3, 1e6, 1e9)))
