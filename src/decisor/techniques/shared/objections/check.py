"""Objections to a final answer: figures, units, names, ranks, periods and counts that do not stand on its rows.

A figure is held against the row of the candidate that it speaks of: the name before it, else the row cited for it. An
objection that is false costs a call and trust, so where it is not clear of whom a figure speaks, nothing is said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from decisor.replies.quantities import ORDINALS, UNIT_OF, Quantity, periods, quantities, unit_of_column, words_of_name
from decisor.techniques.shared.departure import departure
from decisor.techniques.shared.objections.claims import (
    LEAST,
    LIMITED,
    MEAN,
    MORE_THAN,
    MOST,
    NOT_A_NAME,
    ORDINAL,
    PLACE,
    RANK,
    RULED,
    SUPERLATIVE,
    TREND,
    Claims,
    Clause,
    cited_for,
    fits,
    rows_before,
    stem,
)
from decisor.techniques.shared.objections.figures import FigureCheck
from decisor.techniques.shared.objections.ground import Ground, Mention, table_of
from decisor.techniques.shared.objections.uncited import UNCITED, uncited
from decisor.types import Objection, Observation, Record


def find_objections(
    claims: Claims,
    records: Mapping[str, Record],
    question: str = "",
    ranked: Observation | None = None,
    known: str = "",
) -> tuple[Objection, ...]:
    """Check a final answer against the records that were shown_text.

    Args:
        ranked: the observation whose ranking the answer should follow.
        known: text beside the records that the model was given: notes of observations, its own queries.

    >>> rows = {f"o1.r{at}": Record(f"o1.r{at}", {"supplier": name, "returned": number})
    ...         for at, (name, number) in enumerate([("Borealis", 5495), ("Aurora", 6120)], 1)}
    >>> find_objections(Claims("Borealis", "Borealis has 5494 [o1.r1].", "", ("o1.r1",)), rows)[0].text
    'You wrote 5494 for Borealis; row o1.r1 says 5495 (returned).'
    """
    check = Check(claims, Ground(records), question, ranked, known)
    hits = dict.fromkeys(check.objections())
    return tuple(hits)[:MOST]


@dataclass(frozen=True)
class Check(FigureCheck):
    """One answer and its ground."""

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
        shown_text = "\n".join([*ground.ids_of_text, *ground.tables_words, self.question, self.known]).lower()
        if any(name.lower() in answer.lower() for name in self.options):
            return
        if not any(word.lower() in shown_text for word in words) and not NOT_A_NAME.fullmatch(answer):
            yield Objection("candidate", f"{answer} stands in no row that you were shown_text.")

    # Rows that are cited.

    def of_rows(self, clause: Clause) -> Iterator[Objection]:
        for at, (_, _, ids) in enumerate(clause.cited):
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
            start = clause.cited[at][0]
            is_ahead = not clause.masked[before:start].strip(" ,;([")  # "[o1.r1] shows Rock at 770"
            near = [one for one in clause.names if before <= one.start < (after if is_ahead else start)]
            rivals = [one for one in near if any(table_of(other) == table_of(id) for other in one.ids)]
            if not rivals or any(id in one.ids for one in near) or any(id in one.ids for one in clause.names):
                continue
            figures = [one for one in clause.figures if before <= one.start < after]
            if any(cell.id == id for one in figures if one.digits > 2 for cell in ground.cells_with(one)):
                continue
            right = min((other for other in rivals[-1].ids if table_of(other) == table_of(id)), key=len)
            yield Objection("row", f"You cite {ground.label(id)} for {rivals[-1].name}, which stands in {right}.")

    # Ranks, directions, periods.

    @cached_property
    def deciding(self) -> tuple[str, str] | None:
        """The table and column that most figures of the answer are from."""
        counts: Counter[tuple[str, str]] = Counter()
        for clause in self.reasons:
            rows = clause.name_ids | clause.cited_ids
            for figure in clause.figures:
                if figure.digits > 2 or figure.unit:
                    hits = {(table_of(cell.id), cell.column) for cell in self.cells(figure, clause)
                             if cell.id in rows and self.ground.fits_unit(figure, cell)}  # fmt: skip
                    counts.update(sorted(hits))
        places = [place for place, _ in counts.most_common() if place[1] and self.is_ranked(*place)]
        wording = [place for place in places if self.is_asked(place[1])]
        if not places:
            wording = [
                (table, column)
                for table, column in ((one.table, one.name) for one in self.columns)
                if self.is_asked(column) and self.is_ranked(table, column)
            ]
            return wording[0] if len(wording) == 1 else None
        return (
            wording[0]
            if wording
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
        hits = {"max" if match["max"] else "min" for match in SUPERLATIVE.finditer(text)}
        return hits.pop() if len(hits) == 1 and not RULED.search(text) else ""

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
        hits = {
            cell.column for one in figures if one.digits > 1 for cell in self.ground.cells_with(one) if cell.id == id
        }
        if len(hits) == 1 and self.is_ranked(table_of(id), place := hits.pop()):
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
        yield from self.of_places(clause)
        text = clause.masked
        for match in SUPERLATIVE.finditer(text):
            around = text[max(0, match.start() - 45) : match.end() + 45]
            if LIMITED.search(around) or re.search(rf"{ORDINAL}[ -]$", text[: match.start()], re.I):
                continue
            before = [one for one in clause.names if one.end <= match.start()]
            after = [one for one in clause.names if one.start >= match.end()]
            if not self.is_said_of(match, before, after, clause):
                continue
            cited = [
                self.mention(ids[0]) for _, end, ids in clause.cited if len(ids) == 1 and 0 < match.start() - end < 8
            ]
            hits = self.ranked_row([*cited, *reversed(before), *after, *(reversed(memory) if not clause.names else ())])
            if not hits:
                continue
            own = [one for one in clause.figures if abs(one.start - match.end()) < 60]
            if re.search(r"\b(?:its|their|his|her)\s+$", text[: match.start()], re.I):
                continue
            place = self.place_of(hits[1], own)
            if place is None or not self.speaks_of(place, text[match.start() : match.end() + 40]):
                continue
            ranks = self.ranks(hits[1], place)
            rank = ranks and ranks[0 if match["max"] else 1]
            if rank and rank[0] > 1:
                claim = f"You wrote that {hits[0]} has the {match.group()} {place[1]}"
                yield Objection("rank", f"{claim}; among the rows of {place[0]} it is number {rank[0]}.")
        for match in RANK.finditer(text):
            rank_text = match["word"] or match["ahead"] or match["sign"]
            number = ORDINALS.get(rank_text.lower()) or int(re.sub(r"\D", "", rank_text))
            before = [one for one in clause.names if one.end <= match.end()]
            after = [one for one in clause.names if one.start >= match.end()]
            order = [*after, *reversed(before)] if match["ahead"] else [*reversed(before), *after]
            hits = self.ranked_row([*order, *(reversed(memory) if not clause.names else ())])
            if not hits or LIMITED.search(text[max(0, match.start() - 25) : match.end() + 25]):
                continue
            yield from self.of_place(rank_text, number, hits)

    def of_place(self, wording: str, number: int, row: tuple[str, str]) -> Iterator[Objection]:
        """A place in the order of the deciding column that the answer gives to a name with its row; 0 is none."""
        ranks = self.ranks(row[1], self.deciding) if self.deciding else None
        if ranks is None or self.deciding is None:
            return
        allowed = {*ranks[0 if self.goal == "max" else 1]} if self.goal else {*ranks[0], *ranks[1]}
        if number and number not in allowed:
            yield Objection("rank", f"You wrote {wording} of {row[0]}; by {self.deciding[1]} it is number "
                            f"{min(allowed)} of the rows of {self.deciding[0]}.")  # fmt: skip

    def of_places(self, clause: Clause) -> Iterator[Objection]:
        """Places that are said as such, of the names that they are given to."""
        for match in PLACE.finditer(clause.masked):
            joint = re.match(r"\s*(?::|is|to|goes to|went to|-|–)\s*[*]*(?=X)", clause.masked[match.end() :])
            after = [one for one in clause.names if joint and one.start == match.end() + joint.end()]
            before = [one for one in clause.names if 0 <= match.start() - one.end <= 25 and not joint][-1:]
            row = self.ranked_row([*after, *before])
            if not row or LIMITED.search(clause.masked[max(0, match.start() - 25) : match.end() + 25]):
                continue
            text = (match["after"] or match["before"]).lower()
            number = ORDINALS.get(text) or int(re.sub(r"\D", "", text) or 0)
            yield from self.of_place(match.group(), number, row)

    def is_said_of(
        self, match: re.Match[str], before: Sequence[Mention], after: Sequence[Mention], clause: Clause
    ) -> bool:
        """Whether it is plain that a superlative is said of the name before it: they stand close together, no other
        name follows it at once, and it is about no period and points back to nothing."""
        if any(one.start - match.end() < 25 for one in after):
            return False
        if before and not 0 <= match.start() - before[-1].end <= 45:
            return False
        between = clause.masked[before[-1].end if before else 0 : match.start()]
        near = any(abs(one.start - match.start()) < 40 for one in clause.periods)
        return not near and not re.search(r"\b(?:former|latter|this|that|it|ones?|two|both|which|so)\b", between, re.I)

    def speaks_of(self, place: tuple[str, str], text: str) -> bool:
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
        yield from self.of_two_figures(clause)
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
            own = self.ranked_row(list(reversed(before)))
            if not own:  # "23 % more than Oslo": who is more stands elsewhere
                continue
            place = self.place_of(own[1], clause.figures) or self.deciding
            if not self.speaks_of(place, text[match.end() : match.end() + 15]):
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
                is_plain = re.match(r"\s*(?:\w+ ){0,2}than\b(?!\s*[\d$€£])", tail)
                other = (rival[0], numbers[rival[1]]) if rival and is_plain and rival[1] in numbers else None
            if other is None or own[1] not in numbers:
                continue
            change = numbers[own[1]] - other[1]
            if abs(change) > 1e-9 * abs(other[1]) and (change > 0) != bool(match["up"]):
                claim = f"You wrote that {own[0]} is {match.group()} than {other[0]}"
                says = f"{place[1]} says {numbers[own[1]]:,.10g} against {other[1]:,.10g}"
                yield Objection("direction", f"{claim}; {says}.")

    def of_two_figures(self, clause: Clause) -> Iterator[Objection]:
        """Two figures that are set against each other in so many words: "36.6 h is larger than 44.5 h"."""
        for one, other in pairwise(clause.figures):
            match = MORE_THAN.search(clause.masked, one.end, other.start)
            plain = r"\s*(?:is|was|are|were)\s+(?P<word>\w+)\s+than\s*[$€£]?\s*"
            whole = re.fullmatch(plain, clause.masked[one.end : other.start])
            change = one.meanings[0].value - other.meanings[0].value
            if match and whole and one.unit == other.unit and change and (change > 0) != bool(match["up"]):
                yield Objection("direction", f"You wrote that {one.text} is {match.group()} than {other.text}.")

    def against_mean(self, match: re.Match[str], clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        before = [one for one in clause.names if one.end <= match.start()]
        hits = self.ranked_row([*reversed(before), *(reversed(memory) if not before else ())])
        if hits and self.deciding and MEAN.search(self.claims.because):
            numbers = self.ground.column(*self.deciding)
            mean = math.fsum(numbers.values()) / len(numbers)
            if hits[1] in numbers and (numbers[hits[1]] > mean) != bool(match["up"]):
                claim = f"You wrote that {hits[0]} is {match.group()} the mean of {self.deciding[1]}"
                yield Objection("direction", f"{claim}, {mean:,.10g}; row {hits[1]} says {numbers[hits[1]]:,.10g}.")

    def of_header(self, clause: Clause) -> Iterator[Objection]:
        """The unit in the head of a table."""
        column = self.deciding[1] if self.deciding else ""
        unit = unit_of_column(column)
        if not unit or clause.figures or not clause.masked.lstrip().startswith("|"):
            return
        known = {unit_of_column(column) for column in self.ground.tables_words}
        for word in re.findall(r"\((\S+?)\)", clause.masked):
            if (there := UNIT_OF.get(word.lower(), "")) and there not in known:
                yield Objection("unit", f"You wrote {word}; {column} is in {unit}.")

    def of_periods(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        if self.has_texts or not clause.periods:
            return
        wording = list(periods(f"{self.question}\n{self.known}"))
        rows = clause.name_ids | clause.cited_ids or frozenset(id for one in memory for id in one.ids)
        row_sets: list[set[str]] = []
        for figure in clause.figures:
            cited = cited_for(figure, clause)
            ids = {cell.id for cell in self.ground.cells_with(figure)} & (rows or set(self.ground.records))
            if ids:
                row_sets.append({cited} if cited in ids else ids)
        for at, one in enumerate(clause.periods):
            holders = row_sets[at] if len(row_sets) == len(clause.periods) else set().union(*row_sets)
            if any(one.holds(other) for other in wording):
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
            is_bare = not one.months and not parts
            if is_bare and any(one.holds(part) for id in self.ground.records for part in self.ground.periods_of(id)):
                continue
            says = next((part.text for id in near for part in self.ground.periods_of(id)), "")
            yield Objection(
                "period",
                f"You wrote {one.text}; "
                + (f"row {near[0]} says {says}." if says and near else "no row that you cite says so."),
            )

    def of_order(self) -> Iterator[Objection]:
        """Whether the answer is first and the runner-up second, where the question asks for an extreme."""
        own = self.subject.ids if self.subject else frozenset()
        place = self.deciding
        runner = [one for one in self.ground.mentions(self.claims.runner_up) if not one.ids & own][:1]
        if (
            not place
            or not self.goal
            or not self.is_asked(place[1])
            or self.has_texts
            or not self.subject
            or self.ranking
        ):
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
