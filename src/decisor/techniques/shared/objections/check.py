"""Objections to a final answer: figures, units, names, ranks, periods and counts that do not stand on its rows.

A figure is held against the row of the candidate that it speaks of: the name before it, else the row cited for it. An
objection that is false costs a call and trust, so where it is not clear of whom a figure speaks, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.parsing.quantities import UNIT_OF, find_quantities, iterate_periods, unit_of_column
from decisor.techniques.shared.objections import words
from decisor.techniques.shared.objections.claims import LEAST, MOST, Claims, Clause, cited_for, fits_any, rows_before
from decisor.techniques.shared.objections.departure import describe_departure
from decisor.techniques.shared.objections.figures import FigureCheck
from decisor.techniques.shared.objections.ground import Ground, Mention, table_of
from decisor.techniques.shared.objections.order import OrderCheck
from decisor.techniques.shared.objections.uncited import UNCITED, uncited
from decisor.types import Objection, Observation, Record


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
    hits = dict.fromkeys(check.objections())
    return tuple(hits)[:MOST]


@dataclass(frozen=True)
class Check(FigureCheck, OrderCheck):
    """One answer and its ground."""

    def objections(self) -> Iterator[Objection]:
        yield from self.of_name()
        memory: list[Mention] = [self.subject] if self.subject else []
        for clause in [*self.reasons, *self.runner_up]:
            if not self.has_texts:
                yield from self.of_rows(clause, memory)
            yield from self.of_figures(clause, memory)
            yield from self.of_header(clause)
            yield from self.of_periods(clause, memory)
            yield from self.of_order_words(clause, memory)
            if clause.names:
                memory = [*memory, *clause.names][-4:] if len(clause.names) == 1 else list(clause.names)
        yield from self.of_order()

    # Names.

    def of_name(self) -> Iterator[Objection]:
        answer, ground = self.claims.answer.strip(), self.ground
        best = self.options[0].lower() if self.options else ""
        if best and best not in self.claims.because.lower() and (text := describe_departure(answer, self.ranked)):
            yield Objection("ranking", text)
        is_sought = len(answer) >= (LEAST if self.has_texts else 1)
        if is_sought and (places := uncited(answer, self.claims.cited, ground.records)):
            yield Objection("row", UNCITED.format(name=answer, id=places[0]))
            return
        parts = re.findall(r"[^\W\d_]{3,}", answer)
        if not parts or len(parts) > 5 or self.has_texts or not ground.names or any(char.isdigit() for char in answer):
            return
        shown_text = "\n".join([*ground.ids_of_text, *ground.tables_words, self.question, self.known]).lower()
        if any(name.lower() in answer.lower() for name in self.options):
            return
        if not any(word.lower() in shown_text for word in parts) and not words.NOT_A_NAME.fullmatch(answer):
            yield Objection("candidate", f"{answer} stands in no row that you were shown.")

    # Rows that are cited.

    def of_rows(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
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
            rivals = [name for name in near if self.is_beside(name, id)]
            figures = [one for one in clause.figures if before <= one.start < after]
            stated = [({cell.id for cell in ground.cells_with(one)}, one.start) for one in figures if one.digits > 2]
            is_false = clause.masked[: clause.cited[0][0]].strip(" ,;([*-|•") and any(
                at < start and rivals and id not in held_by and held_by & rivals[-1].ids for held_by, at in stated
            )
            if not rivals or any(id in name.ids for name in near) or (clause.name_ids & {id} and not is_false):
                continue
            is_held = any(id in held_by for held_by, _ in stated)
            is_first = re.search(r"(?:^|[,;:.(|])[\s*•-]*$", clause.masked[: near[0].start])
            if is_held and not is_first and any(id in name.ids for name in self.recent(memory)):
                continue  # "It beats Elm with 5,495 [o1.r1]"
            right = min((row for row in rivals[-1].ids if table_of(row) == table_of(id)), key=len, default="others")
            yield Objection("row", f"You cite {ground.label(id)} for {rivals[-1].name}, which stands in {right}.")

    def is_beside(self, name: Mention, id: str) -> bool:
        """Whether the name might stand in the place of the one that this row has: a table holds both."""
        owner_ids = self.ground.ids_of_text.get(self.ground.name_of[id].lower(), set())
        return not {table_of(id) for id in name.ids}.isdisjoint(table_of(id) for id in owner_ids)

    def of_header(self, clause: Clause) -> Iterator[Objection]:
        """Yield objections to a unit apart from its figure: in the head of a table, or behind the word unit."""
        column = self.deciding[1] if self.deciding else ""
        unit = unit_of_column(column)
        known = {unit_of_column(column) for column in self.ground.tables_words}
        is_head = clause.is_line and not clause.figures
        pattern = r"\((\S+?)\)" if is_head else r"\bunits?[\"'*]*\s*[:=][\s\"'*]*([^\s\"',;*]+)"
        for word in re.findall(pattern, clause.masked) if unit else ():
            if (there := UNIT_OF.get(word.lower(), "")) and there not in known:
                yield Objection("unit", f"You wrote {word}; {column} is in {unit}.")

    def of_periods(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        if self.has_texts or not clause.periods:
            return
        wording = list(iterate_periods(f"{self.question}\n{self.known}"))
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
            if [rows_before(clause.names, time.start) for time in clause.periods].count(own) > 1:
                own = clause.name_ids  # "Elm is later than Oak (3 May 2024 against 1 May 2024)"
            near = [id for id in sorted(own or holders or rows or self.ground.records) if id in self.ground.records]
            parts = [part for id in near for part in self.ground.periods_of(id)]
            exact = [part for part in parts if (part.day if one.day else part.months)] if one.months else []
            if any(part.holds(one) or one.holds(part) for part in exact or parts):
                continue
            numbers = [cell.value for cell in self.ground.cells if cell.id in near] if not one.months else []
            if any(fits_any(figure, numbers) for figure in find_quantities(one.text)):
                continue
            is_bare = not one.months and not parts
            if is_bare and any(one.holds(part) for id in self.ground.records for part in self.ground.periods_of(id)):
                continue
            says = next((part.text for id in near for part in self.ground.periods_of(id)), "")
            says = f"row {near[0]} says {says}." if says and near else "no row that you cite says so."
            yield Objection("period", f"You wrote {one.text}; {says}")

    def of_order(self) -> Iterator[Objection]:
        """Whether the answer is first and the runner-up second, where the question asks for an extreme."""
        place = self.deciding
        if (
            not place
            or not self.goal
            or not self.subject
            or self.has_texts
            or self.ranking
            or not self.is_asked(place[1])
        ):
            return
        at = 0 if self.goal == "max" else 1
        best = self.row_of(self.subject, place)
        ranks = self.ranks(best, place) if best else None
        if ranks is None or best is None:
            return
        if ranks[at][0] > 1:
            numbers = self.ground.column(*place)
            first = (max if self.goal == "max" else min)(numbers, key=lambda id: numbers[id])
            text = f"{self.name(best)} is number {ranks[at][0]} by {place[1]}; {self.ground.label(first)} is the first."
            yield Objection("candidate", text)
            return
        runner = [name for name in self.ground.mentions(self.claims.runner_up) if not name.ids & self.subject.ids][:1]
        second = self.row_of(runner[0], place) if runner else None
        ranks = self.ranks(second, place) if second else None
        if second and ranks and ranks[at][0] > 2:
            text = f"{self.name(second)} is number {ranks[at][0]} by {place[1]}, not the next after {self.name(best)}."
            yield Objection("runner_up", text)
