"""Objections to a final answer: figures, units, names, ranks, periods and counts that do not stand on its rows.

A figure is held against the row of the candidate that it speaks of: the name before it, else the row cited for it. An
objection that is false costs a call and trust, so where it is not clear of whom a figure speaks, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.parsing.attribution import iterate_scalars
from decisor.parsing.figures import UNIT_OF, find_quantities, iterate_periods, unit_of_column
from decisor.system.wording import format_amount
from decisor.techniques.shared.objections.figures import FigureCheck
from decisor.techniques.shared.objections.order import BACK, COMPARATIVE, OrderCheck
from decisor.techniques.shared.objections.reading import Claims, Clause, Ground, Mention, fits, table_of
from decisor.types import Objection, Observation, Record

MOST = 8
LEAST = 4
"""Letters of an answer that is looked for in passages: yes and no stand anywhere."""
UNCITED = "{name} stands in {id}, which you do not cite, and in no record that you do."
CHOOSES = re.compile(
    r"(?:\b(?:recommend|choose|pick|go with|that leaves|makes|I'd say)\s"
    r"|^\W*(?:the )?(?:best|winner|verdict|decision|result)(?: \w+)?\s*[:=])"
    r"[\s*\"'`]*$",
    re.I,
)
THUS = re.compile(r"\W*(?:hence|therefore|thus|so)[:,]? \W*X[X ]*\W*", re.I)
ALONE = re.compile(r"\W*(?:(?!X|(?i:about|forget|consider|against)\b)[^\W\d]+\W+){0,2}X[X ]*[*\"'`]*[.!]\W*")
IS_CHOSEN = re.compile(
    r"[*\"'`]*\s+(?:is (?:the answer|my choice|the winner)|it is[!.]|the one to (?:pick|choose))\b", re.I
)
COMPARED = re.compile(
    rf"\b(?:than|ahead|behind|before|over|against|beats?|beating|leads?|leading|unlike)\b|{COMPARATIVE.pattern}", re.I
)
IF = re.compile(
    r"\b(?:if|unless|were|without|second|next|otherwise|alternatively?|fallback|not|never|nor|than|for|runner)\b", re.I
)
NOT_A_NAME = re.compile(r"(?:yes|no|true|false|none|both|neither|all|table\b.*|the (?:first|second|last)\b.*)", re.I)


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
    check = AnswerCheck(claims, Ground(records), question, ranked, known)
    return tuple(dict.fromkeys(check.objections()))[:MOST]


@dataclass(frozen=True)
class AnswerCheck(FigureCheck, OrderCheck):
    """All checks of one answer."""

    def objections(self) -> Iterator[Objection]:
        yield from self.check_name()
        memory: list[Mention] = [self.subject] if self.subject else []
        for clause in [*self.reasons, *self.runner_up]:
            # Passages tell of several things at once, so which name a citation is for is not known.
            if not self.has_texts:
                yield from self.check_citations(clause, memory)
            yield from self.check_figures_of(clause, memory)
            yield from self.check_unit_heads(clause)
            yield from self.check_periods(clause, memory)
            yield from self.check_order_words(clause, memory)
            yield from self.check_verdict(clause)
            if clause.names:
                # Later clauses without a name speak of names before: single ones add up, a list starts anew.
                memory = [*memory, *clause.names][-4:] if len(clause.names) == 1 else list(clause.names)
        yield from self.check_numbers_of_lines()
        yield from self.check_extreme()
        yield from self.check_pairing()

    def check_name(self) -> Iterator[Objection]:
        answer, ground = self.claims.answer.strip(), self.ground
        options = [option.name for option in self.ranking.options] if self.ranking else []
        best = options[0].lower() if options else ""
        # An answer that names the best in its reasons departs from it knowingly.
        if best and best not in self.claims.because.lower() and (text := describe_departure(answer, self.ranked)):
            yield Objection("ranking", text)
        is_sought = len(answer) >= (LEAST if self.has_texts else 1)
        if is_sought and (holders := find_uncited_holders(answer, self.claims.cited, ground.records)):
            yield Objection("row", UNCITED.format(name=answer, id=holders[0]))
            return
        parts = re.findall(r"[^\W\d_]{3,}", answer)
        if not parts or len(parts) > 5 or self.has_texts or not ground.names or any(char.isdigit() for char in answer):
            return
        shown_text = "\n".join([*ground.ids_of_text, *ground.column_names, self.question, self.known]).lower()
        if any(name.lower() in answer.lower() for name in options):
            return
        if not any(word.lower() in shown_text for word in parts) and not NOT_A_NAME.fullmatch(answer):
            yield Objection("candidate", f"{answer} stands in no row that you were shown.")

    def check_citations(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        """Yield objections to a row that is cited for the name of another."""
        ground = self.ground
        for at, (start, end, ids) in enumerate(clause.cited):
            id = ids[0]
            if len(ids) > 1 or id not in ground.name_of:
                continue
            before = clause.cited[at - 1][1] if at else 0
            after = clause.cited[at + 1][0] if at + 1 < len(clause.cited) else len(clause.text)
            is_ahead = not clause.masked[before:start].strip(" ,;([")  # "[o1.r1] shows Rock at 770"
            near = [name for name in clause.names if before <= name.start < (after if is_ahead else start)]
            # A name is a rival if it might stand in the place of the name of this row: a table holds both.
            tables = {table_of(row) for row in ground.ids_of_text.get(ground.name_of[id].lower(), ())}
            rivals = [name for name in near if tables & {table_of(row) for row in name.ids}]
            if not rivals or any(id in name.ids for name in near):
                continue
            figures = [figure for figure in clause.figures if before <= figure.start < after and figure.digits > 2]
            holders = {cell.id for figure in figures for cell in ground.cells_with(figure)}
            is_held = id in holders
            # Citations ahead of what they are for, and lists of them, say nothing of one name.
            is_clear = clause.masked[: clause.cited[0][0]].strip(" ,;([*-|•")
            if id in clause.name_ids and (is_held or not (is_clear and holders & rivals[-1].ids)):
                continue
            is_compared = BACK.match(clause.masked) or COMPARED.search(clause.masked[: near[0].start])
            is_recent = any(id in name.ids for name in self.recent(memory))
            following = {id for place, _, ids in clause.cited if place == after for id in ids}
            is_run = following & rivals[-1].ids and not clause.masked[end:after].strip(" ,;")
            if is_recent and ((is_held and is_compared) or is_run):
                continue  # "It beats Elm with 5,495 [o1.r1]", "It is 5 % above Elm [o1.r1, o1.r2]"
            right = min((row for row in rivals[-1].ids if table_of(row) == table_of(id)), key=len, default="others")
            yield Objection("row", f"You cite {ground.label(id)} for {rivals[-1].name}, which stands in {right}.")

    def check_pairing(self) -> Iterator[Objection]:
        """Yield the objection to the one row that is cited for none of the names, if one name has no row of its own."""
        clauses, ground = [*self.reasons, *self.runner_up], self.ground
        names = {name.name: name.ids for clause in clauses for name in clause.names}
        for table in {column.table for column in ground.ranked_columns}:
            cited = {id for clause in clauses for id in clause.cited_ids if table_of(id) == table}
            strange = [id for id in cited if not any(id in ids for ids in names.values())]
            # "It has 5,495 [o1.r1], less than Elm" cites the row of the answer.
            if self.subject and self.subject.ids & {*strange}:
                continue
            missing = [(name, own) for name, ids in names.items() for own in ids if table_of(own) == table]
            missing = [(name, own) for name, own in missing if own not in cited]
            if len(strange) == 1 and missing and len(cited) == len(names):
                (name, own), *_ = missing
                yield Objection("row", f"You cite {ground.label(strange[0])}, and not {own} for {name}.")

    def check_verdict(self, clause: Clause) -> Iterator[Objection]:
        """Yield objections to reasons that choose another name than the answer."""
        subject = self.subject
        first = next((other for other in self.reasons if other.names), None)
        is_first = (
            clause is first
            and len(clause.names) == 1
            and not IF.search(self.claims.because[: self.claims.because.index(clause.text)])
        )
        for name in clause.names if subject else ():
            before, after = clause.masked[: name.start], clause.masked[name.end :]
            is_alone = THUS.fullmatch(clause.masked) or (is_first and ALONE.fullmatch(clause.masked))
            is_chosen = CHOOSES.search(before) or IS_CHOSEN.match(after) or is_alone
            is_same = subject is None or name.name in self.claims.answer or name.ids & subject.ids
            if is_chosen and not is_same and not IF.search(f"{before[-40:]} {after[:40]}"):
                answer = self.claims.answer.strip()
                yield Objection("candidate", f"You answer {answer}, and your reasons choose {name.name}.")

    def check_unit_heads(self, clause: Clause) -> Iterator[Objection]:
        """Yield objections to a unit apart from its figure: in the head of a table, or behind the word unit."""
        column = self.deciding
        known = {unit_of_column(name) for name in self.ground.column_names}
        is_head = clause.heads and not clause.figures
        pattern = r"\((\S+?)\)" if is_head else r"\bunits?[\"'*]*\s*[:=][\s\"'*]*([^\s\"',;*]+)"
        for word in re.findall(pattern, clause.masked) if column and column.unit else ():
            if column and (unit := UNIT_OF.get(word.lower(), "")) and unit not in known:
                yield Objection("unit", f"You wrote {word}; {column.name} is in {column.unit}.")

    def check_periods(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        if self.has_texts or not clause.periods:
            return
        ground = self.ground
        asked = list(iterate_periods(f"{self.question}\n{self.known}"))
        rows = clause.name_ids | clause.cited_ids or frozenset(id for name in memory for id in name.ids)
        row_sets: list[set[str]] = []
        for figure in clause.figures:
            cited = clause.cited_for(figure)
            if ids := {cell.id for cell in ground.cells_with(figure)} & (rows or set(ground.records)):
                row_sets.append({cited} if cited in ids else ids)
        for at, period in enumerate(clause.periods):
            holders = row_sets[at] if len(row_sets) == len(clause.periods) else set().union(*row_sets)
            # A date ahead of all else is that of a note.
            if any(period.holds(part) for part in asked) or not clause.masked[: period.start].strip(" *|>-"):
                continue
            # "1,515 units in 1998 [o2.r3]"
            beside = (ids for start, _, ids in clause.cited if 0 <= start - period.end < 3 and len(ids) == 1)
            # A day may stand before or behind the name that it is of.
            own = clause.name_ids if period.day else frozenset(next(beside, ()))
            # Of rows that are cited without a figure of theirs it may be a period of each.
            holders = holders and holders | (clause.cited_ids - set().union(*row_sets))
            near = [id for id in sorted(own or holders or rows or ground.records) if id in ground.records]
            parts = [part for id in near for part in ground.periods_of(id)]
            exact = [part for part in parts if (part.day if period.day else part.months)] if period.months else []
            if any(part.holds(period) or period.holds(part) for part in exact or parts):
                continue
            # A year may be a number: 2,024 returns.
            numbers = [cell.value for cell in ground.cells if cell.id in near] if not period.months else []
            if any(fits(figure, *numbers) for figure in find_quantities(period.text)):
                continue
            shown = (part for id in ground.records for part in ground.periods_of(id))
            if not period.months and not parts and any(period.holds(part) for part in shown):
                continue
            says = f"row {near[0]} says {parts[0].text}." if parts else "no row that you cite says so."
            yield Objection("period", f"You wrote {period.text}; {says}")

    def check_extreme(self) -> Iterator[Objection]:
        """Check that the answer is first and the runner-up second, if the question asks for an extreme."""
        column = self.deciding
        if not column or not self.goal or not self.subject or self.has_texts or self.ranking:
            return
        at = 0 if self.goal == "max" else 1
        best = column.row_of(self.subject)
        ranks = column.ranks(best)
        if not self.is_asked(column.name) or ranks is None or best is None:
            return
        if ranks[at][0] > 1:
            first = (max if self.goal == "max" else min)(column.by_id, key=lambda id: column.by_id[id])
            place = f"{self.name(best)} is number {ranks[at][0]} by {column.name}"
            yield Objection("candidate", f"{place}; {self.ground.label(first)} is the first.")
            return
        runners = [name for name in self.ground.mentions(self.claims.runner_up) if not name.ids & self.subject.ids]
        second = column.row_of(runners[0]) if runners else None
        ranks = column.ranks(second)
        if second and ranks and ranks[at][0] > 2:
            place = f"{self.name(second)} is number {ranks[at][0]} by {column.name}"
            yield Objection("runner_up", f"{place}, not the next after {self.name(best)}.")


def find_uncited_holders(name: str, cited_ids: Sequence[str], records: Mapping[str, Record]) -> list[str]:
    """Return the records of the cited observations that hold a name; empty if a cited record holds it in any way.

    >>> rows = {id: Record(id, {"name": name}) for id, name in (("o1.r1", "Elm"), ("o1.r2", "Oak"))}
    >>> [find_uncited_holders(name, [id], rows) for name, id in (("elm", "o1.r2"), ("elm", "o1.r1"), ("ash", "o1.r2"))]
    [['o1.r1'], [], []]
    """
    name = name.strip().casefold()
    cited = [records[id] for id in cited_ids if id in records]
    words = [" ".join([row.text, *map(str, iterate_scalars(row.fields.values()))]).casefold() for row in cited]
    if not name or not cited or any(name in text for text in words):
        return []
    tables = {table_of(id) for id in cited_ids}
    return [id for id, record in records.items() if table_of(id) in tables and holds_name(record, name)]


def holds_name(record: Record, name: str) -> bool:
    """Return whether a record holds a name (in small letters), as a value or as words of its text."""
    if record.text:
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", record.text.casefold()) is not None
    return any(name == str(value).strip().casefold() for value in iterate_scalars(record.fields.values()))


def find_fullest_ranking(observations: Sequence[Observation]) -> Observation | None:
    """Return the observation whose ranking compared the most candidates, the last of equals.

    An empty ranking is used only if there is no other; None without any.
    """
    ranked = [(seen.ranking.count, at) for at, seen in enumerate(observations) if seen.ranking and seen.ranking.options]
    if ranked:
        return observations[max(ranked)[1]]
    return next((observation for observation in reversed(observations) if observation.ranking), None)


def describe_departure(answer: str, observation: Observation | None) -> str:
    """Describe how an answer departs from the computed ranking.

    Empty if it names the best or an equally good candidate, or nothing was computed.

    >>> from decisor.types import Option, Ranking
    >>> ranking = Ranking("cost", "min", (Option("Basel", 2.0), Option("Lyon", 3.0)), ties=("Basel",), unit="EUR")
    >>> describe_departure("Lyon", Observation((Record("o1.r1"),), ranking=ranking))
    'This departs from the computed ranking: Basel has the smallest cost (2 EUR) [o1.r1]; Lyon is number 2 (3 EUR).'
    """
    ranking = observation.ranking if observation else None
    if observation is None or ranking is None or not ranking.options or not answer.strip():
        return ""
    best = ranking.options[0]
    if any(is_candidate_name(answer, name) for name in (best.name, *ranking.ties)):
        return ""
    record = f" [{observation.records[0].id}]" if observation.records else ""
    extreme = "largest" if ranking.goal == "max" else "smallest"
    head = f"{best.name} has the {extreme} {ranking.measure} ({format_amount(best.outcome, ranking.unit)}){record}"
    places = [
        f"{option.name} is number {place} ({format_amount(option.outcome, ranking.unit)})"
        for place, option in enumerate(ranking.options, 1)
        if is_candidate_name(answer, option.name)
    ]
    places += [
        f"{candidate.name} is ruled out by {' and '.join(candidate.rules) or 'its outcome'}: {candidate.why}"
        for candidate in ranking.excluded
        if is_candidate_name(answer, candidate.name)
    ]
    place = places[0] if places else f"{answer.strip()} was not compared"
    return f"This departs from the computed ranking: {head}; {place}."


def is_candidate_name(answer: str, candidate: str) -> bool:
    """Return whether an answer is a candidate, in any case and any order of its parts.

    >>> (is_candidate_name("lyon + Basel", "Basel + Lyon"), is_candidate_name("Baselland", "Basel"),
    ...     is_candidate_name('"Basel".', "Basel"))
    (True, False, True)
    """
    pieces = (re.split(r"\s*[,+]\s*|\s+and\s+", name.strip("\"'`*. \t\r\n").lower()) for name in (answer, candidate))
    parts = [{part.strip("\"'`*. ") for part in names} - {""} for names in pieces]
    return parts[0] == parts[1]
