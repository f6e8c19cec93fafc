"""Objections to a final answer: figures, units, names, ranks, periods and counts that do not stand on its rows.

A figure is held against the row of the candidate that it speaks of: the name before it, else the row cited for it. An
objection that is false costs a call and trust, so where it is not clear of whom a figure speaks, nothing is said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from decisor.replies.figures import CITATION, citations, numbers_of_fields
from decisor.replies.quantities import (
    ORDINALS,
    UNIT_OF,
    Period,
    Quantity,
    periods,
    quantities,
    unit_of_column,
    words_of_name,
)
from decisor.replies.written_calculations import written_calculations
from decisor.techniques.shared.departure import departure
from decisor.techniques.shared.ground import Cell, Ground, Mention, is_key, table_of
from decisor.techniques.shared.uncited import UNCITED, uncited
from decisor.types import Objection, ObjectionKind, Observation, Ranking, Record

MOST = 8
LEAST = 4
"""Letters of an answer that is looked for in rows: yes and no stand anywhere."""
BREAK = re.compile(
    r"(?<=[.!?])(?<!\bvs\.)(?<!\bca\.)(?<!\b[Nn]o\.)(?<!\bapprox\.)(?<!e\.g\.)(?<!i\.e\.)[\"'*)\]]*\s+(?=[A-Z\[\d*|(\"'$€£-])"
    r"|\n+|;\s+"
)
ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.?|ca\.?|circa|some|close to)|[~≈])\s*$", re.I
)
BOUND = re.compile(
    r"\b(?:over|under|above|below|more than|less than|fewer than|at least|at most|up to|exceed\w*)\s*$", re.I
)
LABELLED = re.compile(
    r"(?:(?:\b|_)(?:top|first|last|next|option|step|rule|no\.?|number|ranks?|ranked|place|position|part|page|table|figure|level"
    r"|tier|phase|version|id|code|key)|#)\s*$", re.I,
)  # fmt: skip
MAX = r"highest|most|largest|biggest|greatest|maximum|longest|strongest"
MIN = r"lowest|least|fewest|smallest|cheapest|shortest|minimum|weakest"
SUPERLATIVE = re.compile(rf"\b(?:(?P<max>{MAX})|(?P<min>{MIN}))\b", re.I)
ORDINAL = rf"(?:{'|'.join(ORDINALS)}|\d{{1,3}}(?:st|nd|rd|th))"
RANK = re.compile(
    rf"\b(?:ranks?|ranked|comes?(?: in)?|came(?: in)?|is|was|are|placed?|finish(?:es|ed)|stands|only|and|[A-Z]\w+)\s+(?:the |only |in )?"
    rf"(?P<word>{ORDINAL})(?=\s+(?:with|of|by|at|in|place|on|among)\b|\s*[,;.(\[]|$)"
    rf"|\b(?P<ahead>{ORDINAL})[ -](?:best|place|{MAX}|{MIN})\b|(?P<sign>#\d{{1,3}}|\bNo\. ?\d{{1,3}})\b", re.I,
)  # fmt: skip
LIMITED = re.compile(
    r"\b(?:not|never|no(?!\.)|one of|those|that|which|who|eligible|allowed|remaining|other|others|besides|except|exclud\w+|without|within"
    r"|if|would|could|after|unlike|almost|nearly|open|closed)\b|n't\b", re.I,
)  # fmt: skip
RULED = re.compile(
    r"\b(?:at least|at most|no more|less than|more than|under|over|above|below|only|without|excluding|except|must|should|where"
    r"|whose|while|unless|if|with|that|who|drop|not)\b", re.I,
)  # fmt: skip
UP = r"higher|more|greater|larger|bigger|above|longer|rose|risen|grew|grown|increased?|climbed|gained|up"
DOWN = r"lower|less|fewer|smaller|below|shorter|cheaper|fell|fallen|dropped|decreased?|declined|shrank|down|sank"
MORE_THAN = re.compile(
    r"\b(?:(?P<up>higher|more|greater|larger|bigger|longer)|(?P<down>lower|less|fewer|smaller|shorter|cheaper))\b", re.I,
)  # fmt: skip
TREND = re.compile(
    r"\b(?:(?P<up>rose|risen|rises|grew|grows|grown|increased|increases|climbed|gained)"
    r"|(?P<down>fell|falls|fallen|dropped|drops|decreased|decreases|declined|shrank|sank))\b", re.I,
)  # fmt: skip
MEAN = re.compile(r"\b(?:average|mean|typical)\b", re.I)
TOTAL = re.compile(r"\b(?:total|sum|together|combined|altogether|overall|in all|all|adding|adds?|share|make)\b", re.I)
GAP = re.compile(
    rf"\b(?:{UP}|{DOWN}|differ\w*|gap|lead\w*|ahead|behind|margin|than|by|saves?|saving|beats?|off|abstand|mehr|weniger|left|net"
    r"|change\w*|growth|rise|drop|fall|increase|decrease|from)\b", re.I,
)  # fmt: skip
RATIO = re.compile(
    r"\b(?:times|factor|twice|half|double|ratio|fold|per|each|every|an?|as (?:much|many))\b|×|\d\s?x\b", re.I
)
OTHERS = re.compile(
    r"\b(?:next|others?|rest|follow\w*|second|runner|compared|against|than|versus|vs|while|whereas|remaining|any)\b",
    re.I,
)


@dataclass(frozen=True)
class Clause:
    """A sentence, or what a semicolon or line ends. ``masked`` has letters for its names and blanks for citations."""

    text: str
    masked: str
    names: tuple[Mention, ...]
    figures: tuple[Quantity, ...]
    periods: tuple[Period, ...]
    cited: tuple[tuple[int, int, tuple[str, ...]], ...]

    @property
    def cited_ids(self) -> frozenset[str]:
        return frozenset(id for _, _, ids in self.cited for id in ids)

    @property
    def name_ids(self) -> frozenset[str]:
        return frozenset(id for one in self.names for id in one.ids)


@dataclass(frozen=True)
class Claims:
    """A final answer in parts, with the ids that it cites."""

    answer: str
    because: str
    runner_up: str = ""
    cited: tuple[str, ...] = ()


def find_objections(
    claims: Claims,
    records: Mapping[str, Record],
    question: str = "",
    ranked: Observation | None = None,
    known: str = "",
) -> tuple[Objection, ...]:
    """Check a final answer against the records that were shown.

    Args:
        ranked: the observation whose ranking the answer should follow.
        known: text beside the records that the model was given: notes of observations, its own queries.

    >>> rows = {f"o1.r{at}": Record(f"o1.r{at}", {"supplier": name, "returned": number})
    ...         for at, (name, number) in enumerate([("Borealis", 5495), ("Aurora", 6120)], 1)}
    >>> find_objections(Claims("Borealis", "Borealis has 5494 [o1.r1].", "", ("o1.r1",)), rows)[0].text
    'You wrote 5494 for Borealis; row o1.r1 says 5495 (returned).'
    """
    check = Check(claims, Ground(records), question, ranked, known)
    found = dict.fromkeys(check.objections())
    return tuple(found)[:MOST]


@dataclass(frozen=True)
class Check:
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
        return quantities(f"{self.question}\n{self.known}")

    @cached_property
    def subject(self) -> Mention | None:
        """The rows of the answer."""
        names = self.ground.mentions(self.claims.answer)
        return names[0] if len(names) == 1 else None

    def clauses(self, text: str) -> Iterator[Clause]:
        names = self.ground.mentions(text)
        cites = [match for match in CITATION.finditer(text)]
        masked = text
        for one in names:
            masked = masked[: one.start] + "X" * (one.end - one.start) + masked[one.end :]
        for match in cites:
            masked = masked[: match.start()] + " " * len(match.group()) + masked[match.end() :]
        start = 0
        for end, after in [*((match.start(), match.end()) for match in BREAK.finditer(masked)), (len(text), len(text))]:
            piece = masked[start:end]
            if text[start:end].strip():
                times = tuple(periods(piece))
                for one in times:
                    piece = piece[: one.start] + "Y" * len(one.text) + piece[one.end :]
                inside = [one for one in names if start <= one.start < end]
                yield Clause(
                    text[start:end], piece,
                    tuple(Mention(one.name, one.start - start, one.end - start, one.ids) for one in inside),
                    tuple(one for one in quantities(piece) if is_claim(one, piece)), times,
                    tuple((match.start() - start, match.end() - start, citations(match.group(), self.ground.records))
                          for match in cites if start <= match.start() < end),
                )  # fmt: skip
            start = after

    def objections(self) -> Iterator[Objection]:
        yield from self.of_name()
        memory: list[Mention] = [self.subject] if self.subject else []
        for clause in [*self.reasons, *self.runner_up]:
            if not self.has_texts:
                yield from self.of_rows(clause)
            yield from self.of_figures(clause, memory)
            yield from self.of_header(clause)
            yield from self.of_periods(clause, memory)
            yield from self.of_ranks(clause, memory)
            yield from self.of_direction(clause, memory)
            if clause.names:
                memory = [*memory, *clause.names][-4:] if len(clause.names) == 1 else list(clause.names)
        yield from self.of_order()

    @cached_property
    def has_texts(self) -> bool:
        """Whether passages were shown: what they say of whom is not read."""
        return any(record.text for record in self.ground.records.values())

    # Names.

    def of_name(self) -> Iterator[Objection]:
        answer, ground = self.claims.answer.strip(), self.ground
        best = self.options[0].lower() if self.options else ""
        if best and best not in self.claims.because.lower() and (text := departure(answer, self.ranked)):
            yield Objection("ranking", text)
        if len(answer) >= (LEAST if self.has_texts else 1) and (
            places := uncited(answer, self.claims.cited, ground.records)
        ):
            yield Objection("row", UNCITED.format(name=answer, id=places[0]))
            return
        words = re.findall(r"[^\W\d_]{3,}", answer)
        if not words or len(words) > 5 or self.has_texts or not ground.names or any(char.isdigit() for char in answer):
            return
        said = "\n".join([*ground.ids_of_text, *ground.tables_words, self.question, self.known]).lower()
        if any(name.lower() in answer.lower() for name in self.options):
            return
        if not any(word.lower() in said for word in words) and not NOT_A_NAME.fullmatch(answer):
            yield Objection("candidate", f"{answer} stands in no row that you were shown.")

    # Rows that are cited.

    def of_rows(self, clause: Clause) -> Iterator[Objection]:
        for at, (start, end, ids) in enumerate(clause.cited):
            ground, id = self.ground, next((id for id in ids if id not in clause.name_ids), ids[0])
            if id not in ground.name_of:
                continue
            if len(ids) > 1:
                rivals = [one for one in clause.names if any(table_of(other) == table_of(id) for other in one.ids)]
                missing = [one for one in rivals if not one.ids & clause.cited_ids]
                if missing and len(ids) == len({one.name for one in rivals}):
                    yield Objection("row", f"You cite {ground.label(id)}, and no row of {missing[0].name}.")
                continue
            before = clause.cited[at - 1][1] if at else 0
            after = clause.cited[at + 1][0] if at + 1 < len(clause.cited) else len(clause.text)
            near = [one for one in clause.names if before <= one.start < after]
            rivals = [one for one in near if any(table_of(other) == table_of(id) for other in one.ids)]
            if not rivals or any(id in one.ids for one in near) or any(id in one.ids for one in clause.names):
                continue
            figures = [one for one in clause.figures if before <= one.start < after]
            if any(cell.id == id for one in figures if one.digits > 2 for cell in ground.cells_with(one)):
                continue
            right = min((other for other in rivals[-1].ids if table_of(other) == table_of(id)), key=len)
            yield Objection("row", f"You cite {ground.label(id)} for {rivals[-1].name}, which stands in {right}.")

    # Figures.

    def of_figures(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        figures = [one for one in clause.figures if self.is_looked_at(one, clause)]
        if not figures:
            return
        tried = [self.misses(figures, rows_of, clause, memory) for rows_of in self.readings(clause, memory, figures)]
        best = min(tried, key=len)
        for figure, rows in best.items():
            if objection := self.objection(figure, rows, clause):
                yield objection
        if not best:
            return

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
        found: dict[Quantity, frozenset[str]] = {}
        for figure in figures:
            rows = rows_of(figure) or frozenset()
            if not self.is_held(figure, rows, clause) and not self.is_explained(figure, clause, memory, rows):
                found[figure] = rows
        return found

    def cells(self, figure: Quantity, clause: Clause) -> list[Cell]:
        before = clause.masked[: figure.start]
        found = self.ground.cells_with(figure)
        if ABOUT.search(before):
            value = abs(figure.meanings[0].value)
            room = min(max(rounded_to(value) / 2, value / 100), value / 20)
            return [*found, *self.ground.between(value - room, value + room)]
        if not found and (bound := BOUND.search(before)):
            value = abs(figure.meanings[0].value)
            is_low = re.match(r"over|above|more|at least|exceed", bound.group(), re.I)
            return list(self.ground.between(value, value * 1.5) if is_low else self.ground.between(value / 1.5, value))
        return found

    def is_held(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> bool:
        """Whether a row of these, or the one row cited for the figure, holds it."""
        cited = cited_for(figure, clause)
        rivals = {table_of(id) for id in clause.name_ids}
        if cited and (cited in clause.name_ids or table_of(cited) not in rivals or not clause.names):
            cells = self.cells(figure, clause)
            if any(cell.id == cited for cell in cells) or cited in clause.name_ids or not clause.names:
                rows = frozenset([cited])
        wanted = noun_columns(figure, clause, [self.ground.records[id] for id in rows if id in self.ground.records])
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
        rows = list(self.ground.records.values())
        if noun_columns(figure, clause, rows) or self.counts_rows(figure, clause):
            return True
        if re.match(r"(?:\s+\w+){0,2}\s+(?:lie|are|is|lies) (?:above|below)", clause.masked[figure.end :]):
            return True
        if figure.is_word:
            return False
        if figure.digits > 1 or figure.unit:
            return True
        before = clause.masked[: figure.start].rstrip()
        return clause.masked.lstrip().startswith("|") or (before.endswith("X (") or before.endswith("X:"))

    def is_explained(self, figure: Quantity, clause: Clause, memory: Sequence[Mention], rows: frozenset[str]) -> bool:
        """Whether the question, a count of rows, or a calculation from the rows gives the figure."""
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
        if noun_columns(figure, clause, list(self.ground.records.values())):
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
        if not noun or noun_columns(figure, clause, list(self.ground.records.values())):
            return False
        asked = re.match(r"\s*(?:which|what|who)\s+(\w+)", self.question, re.I)
        return stem(noun[1]) in ({stem(asked[1].lower())} if asked else set()) | {"row", "candidate", "record"}

    @cached_property
    def counts_by_mean(self) -> set[int]:
        counts = set()
        for _, _, numbers in self.columns:
            mean = math.fsum(numbers) / len(numbers)
            counts |= {sum(one > mean for one in numbers), sum(one < mean for one in numbers)}
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

    @cached_property
    def columns(self) -> list[tuple[str, str, list[float]]]:
        found = []
        for table, rows in self.ground.tables.items():
            for column in rows[0].fields:
                if not is_key(column) and (numbers := list(self.ground.column(table, column).values())):
                    found.append((table, column, numbers))
        return found

    def is_written_out(self, figure: Quantity, clause: Clause) -> bool:
        """Whether a calculation in the text gives it, or starts from it where a cited row holds it."""
        held = any(cell.id in self.claims.cited for cell in self.ground.cells_with(figure))
        for one in written_calculations(re.sub(r"[$€£*](?=\s*\d)", "", clause.text)):
            if fits(figure, one.value) or (held and figure.text in one.operands):
                return True
        return False

    def is_computed(self, figure: Quantity, clause: Clause, memory: Sequence[Mention], rows: frozenset[str]) -> bool:
        """Whether a whole column, one column of two named candidates, or two figures of one row give it."""
        text, ground = clause.masked, self.ground
        names = [*clause.names, *([] if len(clause.names) > 1 else memory)]
        ids = {id for one in names for id in one.ids} | rows | clause.cited_ids
        ids |= self.subject.ids if self.subject else set()
        wanted = noun_columns(figure, clause, list(ground.records.values()))
        words = Words(
            bool(GAP.search(text)), bool(RATIO.search(text)), bool(TOTAL.search(text)), bool(MEAN.search(text))
        )
        for table, column, numbers in self.columns:
            if wanted and column not in wanted:
                continue
            unit, by_id = unit_of_column(column), ground.column(table, column)
            is_amount = figure.unit == unit or not (figure.unit and unit)
            own = [by_id[id] for id in sorted(ids) if id in by_id][:12]
            total, mean = math.fsum(numbers), math.fsum(numbers) / len(numbers)
            best = sorted(numbers, reverse=True)[:5]
            sums = [total, *(math.fsum(some[:n]) for some in (own, best) for n in range(2, len(some) + 1))]
            if is_amount and len(numbers) > 1:
                means = [mean, *([math.fsum(own) / len(own)] if own else [])]
                if fits_any(figure, [*(sums if words.total else []), *(means if words.mean else [])]):
                    return True
            if figure.unit == "%" and total and unit != "%":
                if fits_any(figure, (100 * one / total for one in [*own, *sums])):
                    return True
            extra = [best[0], min(numbers), mean] if OTHERS.search(text) or words.mean else []
            if any(is_result(figure, a, b, words, is_amount) for a in own for b in [*own, *extra]):
                return True
        return not wanted and any(self.from_one_row(figure, id, words) for id in ids if id in ground.records)

    def from_one_row(self, figure: Quantity, id: str, words: Words) -> bool:
        """Whether two figures of a row give it: a rate, a product, a difference."""
        found = [(name, value) for name, value in numbers_of_fields(self.ground.records[id]) if not is_key(name)]
        numbers = [value for _, value in found if math.isfinite(value)]
        if figure.digits < 3 and (not words.ratio or figure.unit == "%"):
            return False
        for a in numbers:
            for b in numbers:
                if a is b or fits(figure, a) or fits(figure, b):
                    continue
                if (
                    b
                    and (words.ratio or figure.unit == "%")
                    and fits_any(figure, [a / b, 100 * a / b] if figure.unit == "%" else [a / b])
                ):
                    return True
                if figure.digits > 2 and (
                    (words.gap and fits(figure, a - b))
                    or ((words.total or words.ratio) and fits_any(figure, [a + b, a * b]))
                ):
                    return True
        return False

    def objection(self, figure: Quantity, rows: frozenset[str], clause: Clause) -> Objection | None:
        """What is said of a figure that nothing supports."""
        ground, cells = self.ground, self.cells(figure, clause)
        named = next((one.name for one in reversed(clause.names) if one.ids & rows), "")
        whom = f" for {named}" if named else ""
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
        records = [self.ground.records[id] for id in rows if id in self.ground.records]
        wanted = noun_columns(figure, clause, records)
        cells = [cell for cell in self.ground.cells if cell.id in rows and cell.value and cell.column]
        if wanted:
            cells = [cell for cell in cells if cell.column in wanted]
        if not cells or not value:
            return None
        scaled = [cell for cell in cells if is_scaled(figure, cell.value)]
        best = scaled[0] if scaled else min(cells, key=lambda cell: abs(math.log(cell.value / value)))
        return best if scaled or wanted or abs(math.log(best.value / value)) < 1 else None

    # Ranks, directions, periods.

    @cached_property
    def deciding(self) -> tuple[str, str] | None:
        """The table and column that most figures of the answer are from."""
        counts: Counter[tuple[str, str]] = Counter()
        for clause in self.reasons:
            rows = clause.name_ids | clause.cited_ids
            for figure in clause.figures:
                if figure.digits > 2 or figure.unit:
                    found = {(table_of(cell.id), cell.column) for cell in self.cells(figure, clause)
                             if cell.id in rows and self.ground.fits_unit(figure, cell)}  # fmt: skip
                    counts.update(sorted(found))
        places = [place for place, _ in counts.most_common() if place[1] and self.is_ranked(*place)]
        asked = [place for place in places if self.is_asked(place[1])]
        if not places:
            asked = [(table, column) for table, column, _ in self.columns if self.is_asked(column) and self.is_ranked(table, column)]
            return asked[0] if len(asked) == 1 else None
        return (
            asked[0]
            if asked
            else places[0]
            if places and (len(places) == 1 or counts[places[0]] > counts[places[1]])
            else None
        )

    def is_asked(self, column: str) -> bool:
        """Whether the question names the column, or its unit."""
        words = re.findall(r"[a-z]+", self.question.lower().replace("kilowatt hours", "kwh"))
        units = {UNIT_OF[word] for word in words if len(word) > 1 and word in UNIT_OF}
        return unit_of_column(column) in units or bool({*map(stem, words)} & {*map(stem, words_of_name(column))})

    @cached_property
    def _named_tables(self) -> set[str]:
        """Those with one row for each name."""
        name_of = self.ground.name_of
        return {table for table, rows in self.ground.tables.items()
                if len(rows) > 1 and len({name_of.get(row.id, "") for row in rows}) == len(rows)}  # fmt: skip

    def is_ranked(self, table: str, column: str) -> bool:
        """Whether the table has one row for each candidate, and this number of it."""
        return table in self._named_tables and len(self.ground.column(table, column)) > 1

    @cached_property
    def goal(self) -> str:
        """max or min, where the question asks for one extreme and restricts nothing; else ''."""
        text = self.question
        found = {"max" if match["max"] else "min" for match in SUPERLATIVE.finditer(text)}
        return found.pop() if len(found) == 1 and not RULED.search(text) else ""

    def ranks(self, id: str, place: tuple[str, str]) -> tuple[range, range] | None:
        """From the largest and from the smallest, equal ones in any order; None where the row is not among them."""
        numbers = self.ground.column(*place)
        if id not in numbers or not self.is_ranked(*place):
            return None
        own, room = numbers[id], 1e-9 * abs(numbers[id])
        above = sum(one > own + room for one in numbers.values())
        below = sum(one < own - room for one in numbers.values())
        return range(above + 1, len(numbers) - below + 1), range(below + 1, len(numbers) - above + 1)

    def place_of(self, id: str, figures: Sequence[Quantity]) -> tuple[str, str] | None:
        """The column that the figures beside a claim are from, else the deciding one."""
        found = {
            cell.column for one in figures if one.digits > 1 for cell in self.ground.cells_with(one) if cell.id == id
        }
        if len(found) == 1 and self.is_ranked(table_of(id), place := found.pop()):
            return table_of(id), place
        return self.deciding if self.deciding and self.deciding[0] == table_of(id) else None

    def ranked_row(self, names: Iterable[Mention], place: tuple[str, str] | None = None) -> tuple[str, str] | None:
        """The first name that has one row in the table, with its id."""
        place = place or self.deciding
        for one in names:
            ids = [id for id in one.ids if place and table_of(id) == place[0]]
            if len(ids) == 1:
                return one.name, ids[0]
        return None

    def of_ranks(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        if self.has_texts or not self.deciding:
            return
        text = clause.masked
        for match in SUPERLATIVE.finditer(text):
            around = text[max(0, match.start() - 45) : match.end() + 45]
            if LIMITED.search(around) or re.search(rf"{ORDINAL}[ -]$", text[: match.start()], re.I):
                continue
            before = [one for one in clause.names if one.end <= match.start()]
            after = [one for one in clause.names if one.start >= match.end()]
            cited = [
                self.mention(ids[0]) for _, end, ids in clause.cited if len(ids) == 1 and 0 < match.start() - end < 8
            ]
            found = self.ranked_row(
                [*cited, *reversed(before), *after, *(reversed(memory) if not clause.names else ())]
            )
            if not found:
                continue
            own = [one for one in clause.figures if abs(one.start - match.end()) < 60]
            if re.search(r"\b(?:its|their|his|her)\s+$", text[: match.start()], re.I):
                continue
            place = self.place_of(found[1], own)
            if place is None or not self.speaks_of(place, text[match.start() : match.end() + 40], own):
                continue
            ranks = self.ranks(found[1], place)
            rank = ranks and ranks[0 if match["max"] else 1]
            if rank and rank[0] > 1:
                yield Objection("rank", f"You wrote that {found[0]} has the {match.group()} {place[1]}; among the rows of "
                                f"{place[0]} it is number {rank[0]}.")  # fmt: skip
        for match in RANK.finditer(text):
            said = match["word"] or match["ahead"] or match["sign"]
            number = ORDINALS.get(said.lower()) or int(re.sub(r"\D", "", said))
            before = [one for one in clause.names if one.end <= match.end()]
            after = [one for one in clause.names if one.start >= match.end()]
            order = [*after, *reversed(before)] if match["ahead"] else [*reversed(before), *after]
            found = self.ranked_row([*order, *(reversed(memory) if not clause.names else ())])
            if not found or LIMITED.search(text[max(0, match.start() - 25) : match.end() + 25]):
                continue
            ranks = self.ranks(found[1], self.deciding)
            allowed = ranks and ({*ranks[0 if self.goal == "max" else 1]} if self.goal else {*ranks[0], *ranks[1]})
            if allowed and number not in allowed:
                yield Objection("rank", f"You wrote {said} of {found[0]}; by {self.deciding[1]} it is number "
                                f"{min(allowed)} of the rows of {self.deciding[0]}.")  # fmt: skip

    def speaks_of(self, place: tuple[str, str], text: str, figures: Sequence[Quantity]) -> bool:
        """Whether the words after a superlative are those of the column, or no other column's."""
        words = {stem(word) for word in re.findall(r"[a-z]+", text.lower())}
        rows = self.ground.tables[place[0]]
        others = {stem(word) for name in rows[0].fields if name != place[1] for word in words_of_name(name)}
        own = {stem(word) for word in words_of_name(place[1])}
        return bool(words & own) or not words & (others - own)

    def mention(self, id: str) -> Mention:
        return Mention(self.ground.name_of.get(id, id), 0, 0, frozenset([id]))

    def of_direction(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text = clause.masked
        pair = [figure for word in ("from", "to") for figure in clause.figures
                if re.search(rf"\b{word}\s+[*]*$", text[: figure.start], re.I)]  # fmt: skip
        trend = list(TREND.finditer(text))
        if len(pair) == 2 and len(trend) == 1 and not LIMITED.search(text[: trend[0].start()][-15:]):
            change = pair[1].meanings[0].value - pair[0].meanings[0].value
            if change and (change > 0) != bool(trend[0]["up"]):
                yield Objection("direction", f"You wrote {trend[0].group()}, from {pair[0].text} to {pair[1].text}.")
        if self.has_texts or not self.deciding:
            return
        for match in re.finditer(
            r"\b(?:(?P<up>above|over)|(?P<down>below|under))\b(?= (?:it|the (?:mean|average)))", text
        ):
            yield from self.against_mean(match, clause, memory)
        for match in MORE_THAN.finditer(text):
            if re.search(r"\b(?:not|no|never|rather|any|much)\s+$", text[: match.start()], re.I):
                continue
            after = [one for one in clause.names if one.start >= match.end()]
            before = [one for one in clause.names if one.end <= match.start()]
            own = self.ranked_row([*reversed(before), *(reversed(memory) if not before else ())])
            if not own:
                continue
            place = self.place_of(own[1], clause.figures) or self.deciding
            if not self.speaks_of(place, text[match.end() : match.end() + 15], ()):
                continue
            numbers = self.ground.column(*place)
            tail = text[match.end() :]
            if re.match(r"[\w ]{0,20}\bthan (?:any|all|every)", tail):
                rest = [value for id, value in numbers.items() if id != own[1]]
                other = ("all others", max(rest) if match["up"] else min(rest)) if rest else None
            else:
                rival = self.ranked_row(
                    [one for one in [*after, *reversed(memory), *before] if own[1] not in one.ids], place
                )
                is_plain = re.match(r"\s*(?:(?:\w+ ){0,2}than\b(?!\s*[\d$€£])|[.,\[]|$)", tail)
                other = (rival[0], numbers[rival[1]]) if rival and is_plain and rival[1] in numbers else None
            if other is None or own[1] not in numbers:
                continue
            change = numbers[own[1]] - other[1]
            if abs(change) > 1e-9 * abs(other[1]) and (change > 0) != bool(match["up"]):
                yield Objection("direction", f"You wrote that {own[0]} is {match.group()} than {other[0]}; {place[1]} says "
                                f"{numbers[own[1]]:,.10g} against {other[1]:,.10g}.")  # fmt: skip

    def against_mean(self, match: re.Match[str], clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        before = [one for one in clause.names if one.end <= match.start()]
        found = self.ranked_row([*reversed(before), *(reversed(memory) if not before else ())])
        if found and self.deciding and MEAN.search(self.claims.because):
            numbers = self.ground.column(*self.deciding)
            mean = math.fsum(numbers.values()) / len(numbers)
            if found[1] in numbers and (numbers[found[1]] > mean) != bool(match["up"]):
                yield Objection("direction", f"You wrote that {found[0]} is {match.group()} the mean of {self.deciding[1]}, "
                                f"which is {mean:,.10g}; row {found[1]} says {numbers[found[1]]:,.10g}.")  # fmt: skip

    def of_header(self, clause: Clause) -> Iterator[Objection]:
        """The unit in the head of a table."""
        unit = unit_of_column(self.deciding[1]) if self.deciding else ""
        if not unit or clause.figures or not clause.masked.lstrip().startswith("|"):
            return
        known = {unit_of_column(column) for column in self.ground.tables_words}
        for word in re.findall(r"\((\S+?)\)", clause.masked):
            if (there := UNIT_OF.get(word.lower(), "")) and there not in known:
                yield Objection("unit", f"You wrote {word}; {self.deciding[1]} is in {unit}.")

    def of_periods(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        if self.has_texts or not clause.periods:
            return
        asked = list(periods(f"{self.question}\n{self.known}"))
        rows = clause.name_ids | clause.cited_ids or frozenset(id for one in memory for id in one.ids)
        held: list[set[str]] = []
        for figure in clause.figures:
            cited = cited_for(figure, clause)
            ids = {cell.id for cell in self.ground.cells_with(figure)} & (rows or set(self.ground.records))
            if ids:
                held.append({cited} if cited in ids else ids)
        for at, one in enumerate(clause.periods):
            holders = held[at] if len(held) == len(clause.periods) else set().union(*held)
            if any(one.holds(other) for other in asked):
                continue
            own = rows_before(clause.names, one.start) if one.day else frozenset()
            near = [id for id in sorted(own or holders or rows or self.ground.records) if id in self.ground.records]
            parts = [part for id in near for part in self.ground.periods_of(id)]
            exact = [part for part in parts if (part.day if one.day else part.months)] if one.months else []
            if any(part.holds(one) or one.holds(part) for part in exact or parts):
                continue
            if not one.months and any(
                fits(figure, cell.value)
                for figure in quantities(one.text)
                for id in near
                for cell in self.ground.cells
                if cell.id == id
            ):
                continue
            if not any(self.ground.periods_of(id) for id in near) and one.months == ():
                if any(one.holds(part) for id in self.ground.records for part in self.ground.periods_of(id)):
                    continue
            says = next((part.text for id in near for part in self.ground.periods_of(id)), "")
            yield Objection(
                "period",
                f"You wrote {one.text}; "
                + (f"row {near[0]} says {says}." if says and near else "no row that you cite says so."),
            )

    def of_order(self) -> Iterator[Objection]:
        """Whether the answer is first and the runner-up second, where the question asks for an extreme."""
        place, runner = self.deciding, self.ground.mentions(self.claims.runner_up)[:1]
        if not place or not self.goal or not self.is_asked(place[1]) or self.has_texts or not self.subject or self.ranking:
            return
        best = self.ranked_row([self.subject])
        at = 0 if self.goal == "max" else 1
        ranks = self.ranks(best[1], place) if best else None
        if ranks is None or best is None:
            return
        if ranks[at][0] > 1:
            numbers = self.ground.column(*place)
            first = (max if self.goal == "max" else min)(numbers, key=lambda id: numbers[id])
            yield Objection(
                "candidate",
                f"{best[0]} is number {ranks[at][0]} by {place[1]}; {self.ground.label(first)} is the first.",
            )
            return
        second = self.ranked_row(runner)
        ranks = self.ranks(second[1], place) if second else None
        if second and ranks and ranks[at][0] > 2:
            yield Objection(
                "runner_up", f"{second[0]} is number {ranks[at][0]} by {place[1]}, not the next after {best[0]}."
            )


NOT_A_NAME = re.compile(r"(?:yes|no|true|false|none|both|neither|all|table\b.*|the (?:first|second|last)\b.*)", re.I)


@dataclass(frozen=True, slots=True)
class Words:
    """Whether a clause speaks of a difference, a ratio, a sum, a mean."""

    gap: bool
    ratio: bool
    total: bool
    mean: bool


def is_result(figure: Quantity, a: float, b: float, words: Words, is_amount: bool) -> bool:
    """Whether two numbers of a column give the figure."""
    few = figure.digits < 3
    if figure.unit == "%" and b:
        return (words.gap and fits(figure, 100 * (a / b - 1))) or (
            a < b and (words.total or words.ratio) and fits(figure, 100 * a / b)
        )
    if is_amount and (words.gap or not few) and not fits(figure, a) and fits(figure, a - b):
        return True
    if is_amount and words.total and a != b and fits(figure, a + b):
        return True
    if b and words.ratio and not figure.unit:
        return fits(figure, a / b) or (figure.is_word and abs(a / b - figure.meanings[0].value) < 0.5)
    return False


def fits_any(figure: Quantity, values: Iterable[float]) -> bool:
    return any(fits(figure, value) for value in values)


def is_claim(figure: Quantity, text: str) -> bool:
    """Whether a figure is more than the number of a list item, a rank or a label."""
    before, after = text[: figure.start], text[figure.end :]
    if figure.digits < 3 and (LABELLED.search(before) or (not before.strip(" -*(|") and re.match(r"[.)]\s", after))):
        return False
    value = figure.meanings[0].value
    if figure.text.lower() in ("zero", "one", "half") or value == 0 or (value == 100 and figure.unit == "%"):
        return False
    return not (figure.is_word and not re.match(r"\s+[a-z]", after))


def rows_before(names: Sequence[Mention], at: int) -> frozenset[str]:
    """The rows of the name before a place, narrowed by the names before that."""
    rows: frozenset[str] = frozenset()
    for one in reversed([one for one in names if one.end <= at]):
        if rows and not rows & one.ids:
            break
        rows = rows & one.ids if rows else one.ids
    return rows


def rows_after(names: Sequence[Mention], at: int) -> frozenset[str]:
    return next((one.ids for one in names if one.start >= at), frozenset())


def cited_for(figure: Quantity, clause: Clause) -> str:
    """The one row that is cited right after a figure; '' where there is none."""
    is_first = clause.cited and not any(one.start < clause.cited[0][0] for one in (*clause.figures, *clause.names))
    for start, _, ids in clause.cited if not is_first else ():
        if start >= figure.end:
            is_near = re.fullmatch(
                r"[^A-Za-z]*(?:(?!and\b)[A-Za-z]+[^A-Za-z]*){0,2}", clause.masked[figure.end : start]
            )
            is_near = is_near and not any(figure.end <= one.start < start for one in (*clause.figures, *clause.names))
            return ids[0] if len(ids) == 1 and is_near else ""
    return ""


def noun_columns(figure: Quantity, clause: Clause, rows: Sequence[Record]) -> set[str]:
    """The columns that the word after a figure names: "34 orders"."""
    match = re.match(r"[*]*\s+(?:of the |of )?([A-Za-z]{3,})", clause.masked[figure.end :])
    if not match or figure.unit:
        return set()
    noun = stem(match[1].lower())
    if noun in ("time", "than", "more", "less"):
        return set()
    return {
        name for row in rows[:3] for name, value in row.fields.items()
        if not is_key(name) and isinstance(value, int | float) and words_of_name(name)
        and noun == stem(words_of_name(name)[0]) and (len(words_of_name(name)) == 1 or not unit_of_column(name))
    }  # fmt: skip


def content_words(text: str, start: int, end: int) -> set[str]:
    around = (
        re.findall(r"[A-Za-z]{3,}", text[max(0, start - 25) : start])[-3:]
        + re.findall(r"[A-Za-z]{3,}", text[end : end + 25])[:2]
    )
    return {stem(word.lower()) for word in around} - SMALL_WORDS


SMALL_WORDS = {
    "the",
    "and",
    "with",
    "has",
    "have",
    "for",
    "are",
    "was",
    "which",
    "that",
    "than",
    "from",
    "all",
    "most",
    "least",
}


def stem(word: str) -> str:
    """
    >>> stem("countries"), stem("orders"), stem("boxes"), stem("cost")
    ('countr', 'order', 'box', 'cost')
    """
    return (
        re.sub(r"(?:ies|y)$", "", word) if re.search(r"(?:ies|y)$", word) else re.sub(r"(?:(?<=[sx])es|s)$", "", word)
    )


def rounded_to(value: float) -> float:
    """The place of the last digit that is not zero.

    >>> rounded_to(1300.0), rounded_to(2.0)
    (100.0, 1.0)
    """
    size = 1.0
    while value and value % (size * 10) == 0:
        size *= 10
    return size


def fits(figure: Quantity, value: float) -> bool:
    """Whether the figure rounds the value, whatever the sign."""
    return any(
        abs(abs(value) - abs(one.value)) <= one.room * (1 + 1e-6) + 1e-9 * abs(one.value) for one in figure.meanings
    )


def is_scaled(figure: Quantity, value: float) -> bool:
    """Whether only the place of the decimal point differs."""
    return any(fits(figure, value * size) for size in (1e-9, 1e-6, 1e-3, 0.01, 0.1, 10, 100, 1e3, 1e6, 1e9))
