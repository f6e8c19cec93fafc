"""Which queries a decision rests on: those with a row that it cites, those that ranked, and what those combined."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from decisor.tools.databases.combine import NAME as COMBINE
from decisor.tools.databases.combine import REFERENCE
from decisor.trace.events import OTHER_READING, ActionResult, ActionStart, Entry, RunStart, Span, events_of
from decisor.trace.graph_events import NodeSpan
from decisor.types import Action, Decision, Ranking, Record, Step

NUMBER = re.compile(r"o(\d+)\.")


def steps_of(entries: Sequence[Entry]) -> list[Step]:
    """What was done and what came of it, those of the decision that it goes on from first; without what failed, and
    what was done for another reading of the question."""
    start = next(events_of(entries, RunStart), None)
    steps = list(start.question.earlier.steps) if start and start.question.earlier else []
    starts = {entry.id: entry.event for entry in entries if isinstance(entry.event, ActionStart)}
    aside: set[int] = set()
    for entry in entries:
        match entry.event:
            case Span(name=name) if entry.span in aside or name.startswith(OTHER_READING):
                aside.add(entry.id)
            case NodeSpan() if entry.span in aside:
                aside.add(entry.id)
            case ActionResult(action=at, observation=observation) if entry.span not in aside and not observation.error:
                if (action := starts.get(at)) is not None:
                    steps.append(Step(Action(action.tool, action.input), observation))
    return steps


def steps_behind(steps: Sequence[Step], decision: Decision) -> list[Step]:
    """In their order."""
    needed = {at for at, step in enumerate(steps) if cited_rows(step, decision.evidence.ids)} | ranking_step(
        steps, decision.ranking
    )
    for at in reversed(range(len(steps))):
        if at in needed and steps[at].action.tool == COMBINE:
            names = {int(number) for number in REFERENCE.findall(steps[at].action.input)}
            needed |= {other for other, step in enumerate(steps[:at]) if number_of(step) in names}
    return [steps[at] for at in sorted(needed)]


def ranking_step(steps: Sequence[Step], ranking: Ranking | None) -> set[int]:
    """The place of the one that computed the ranking; of the last that ranked, where it is of none."""
    places = [at for at, step in enumerate(steps) if step.observation.ranking and step.observation.ranking.options]
    own = [at for at in places if steps[at].observation.ranking == ranking]
    return set((own or places)[-1:])


def cited_rows(step: Step, cited: Collection[str]) -> list[Record]:
    return [record for record in step.observation.records if record.id in cited]


def number_of(step: Step) -> int:
    """Of its observation, 0 where it has no rows.

    >>> from decisor.types import Observation
    >>> number_of(Step(Action("sql", "SELECT 1"), Observation((Record("o3.r1"),))))
    3
    """
    ids = [record.id for record in step.observation.records]
    match = NUMBER.match(ids[0]) if ids else None
    return int(match[1]) if match else 0
