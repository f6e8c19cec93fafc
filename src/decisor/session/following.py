"""A question that goes on from a decision: with what was decided, and what that rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from decisor.techniques.replay.recorded_run import number_of
from decisor.trace.events import ActionResult, ActionStart, Entry
from decisor.types import Action, Decision, Earlier, Question, Step

FIRST_ROWS = 20
"""Of an observation that a decision rests on, beside those that it cites."""


class EndedRun(Protocol):
    """A run that has come to its end."""

    @property
    def question(self) -> Question: ...

    @property
    def decision(self) -> Decision: ...

    @property
    def trace(self) -> Sequence[Entry]: ...


def following(result: EndedRun, question: str | Question) -> Question:
    """With the rules of the question before it, where it has none of its own."""
    if isinstance(question, str):
        question = Question(question)
    if question.earlier is not None:
        return question
    return replace(question, rules=question.rules or result.question.rules, earlier=earlier_of(result))


def earlier_of(result: EndedRun) -> Earlier:
    """Ids stay what they are: an observation of the new run has a higher number than each of those before."""
    past, decision = result.question.earlier, result.decision
    cited = frozenset(decision.evidence.ids)
    own = tuple(steps_behind(result.trace, cited))
    older = tuple(with_records(step, cited, 0) for step in past.steps if is_cited(step, cited)) if past else ()
    numbers = [number_of(record.id) for entry in result.trace if isinstance(entry.event, ActionResult)
               for record in entry.event.observation.records]  # fmt: skip
    before = (*past.before, f"{past.question}: {past.answer or 'not decided'}") if past else ()
    return Earlier(
        result.question.text, decision.answer, decision.reasons, decision.assumptions, before, (*older, *own),
        max([*numbers, past.last if past else 0]),
    )  # fmt: skip


def steps_behind(entries: Sequence[Entry], cited: Collection[str]) -> Iterator[Step]:
    """Those with a record that is cited."""
    starts = {entry.id: entry.event for entry in entries if isinstance(entry.event, ActionStart)}
    for entry in entries:
        if isinstance(entry.event, ActionResult) and (start := starts.get(entry.event.action)):
            step = Step(Action(start.tool, start.input), entry.event.observation)
            if is_cited(step, cited):
                yield with_records(step, cited, FIRST_ROWS)


def is_cited(step: Step, cited: Collection[str]) -> bool:
    return any(record.id in cited for record in step.observation.records)


def with_records(step: Step, cited: Collection[str], most: int) -> Step:
    """With those that are cited, and the first ``most``."""
    observation = step.observation
    records = tuple(one for at, one in enumerate(observation.records) if at < most or one.id in cited)
    if len(records) == len(observation.records):
        return step
    total = observation.total if observation.total is not None or observation.truncated else len(observation.records)
    return replace(step, observation=replace(observation, records=records, truncated=True, total=total))
