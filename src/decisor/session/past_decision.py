"""An old decision with what it rests on, from its trace or from its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.decision_record.digests import rows_digest
from decisor.decision_record.format import DecisionRecord
from decisor.decision_record.restored import PastStep, decision_of, question_of
from decisor.decision_record.restored import steps_of as recorded_steps
from decisor.decision_record.steps import number_of, ranking_step, steps_behind, steps_of
from decisor.errors import SetupError
from decisor.trace.events import Conclusion, Entry, RunStart, events_of
from decisor.trace.provenance import DataSource
from decisor.types import Decision, Observation, Question


@dataclass(frozen=True)
class PastDecision:
    """A decision with what it rests on, from a trace or from its record. ``model``: the decision model, as text, where
    that is known. ``seeds``: of the tokens of its masked sources."""

    question: Question
    decision: Decision
    steps: Sequence[PastStep]
    model: str = ""
    seeds: frozenset[str] = frozenset()


def seeds_of(sources: Sequence[DataSource]) -> frozenset[str]:
    return frozenset(one.seed for one in sources if one.mask)


def past_of(entries: Sequence[Entry]) -> PastDecision:
    """Raises SetupError where the trace holds no decision."""
    decision = last_decision(entries)
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    every = steps_of(entries)
    ranking = [every[at] for at in ranking_step(every, decision.ranking)]
    steps = [PastStep(step, number_of(step), all_rows(step.observation), step in ranking)
             for step in steps_behind(every, decision)]  # fmt: skip
    model = start.provenance.model
    return PastDecision(
        start.question, decision, steps, model.text if model else "", seeds_of(start.provenance.sources)
    )


def past_of_record(record: DecisionRecord) -> PastDecision:
    """Raises SetupError where it holds no decision."""
    content = record.content
    if not content.decision.answer:
        raise SetupError("There is no decision in this record, so there is nothing to verify.")
    model = content.model.text if content.model else ""
    seeds = seeds_of(content.data.sources)
    return PastDecision(question_of(content), decision_of(content), recorded_steps(content), model, seeds)


def last_decision(entries: Sequence[Entry]) -> Decision:
    decision = None
    for conclusion in events_of(entries, Conclusion):
        decision = conclusion.decision
    if decision is None or not decision.answer:
        raise SetupError("There is no decision in this trace, so there is nothing to verify.")
    return decision


def all_rows(observation: Observation) -> str:
    """The digest of what a query brought, '' where it was cut."""
    cut = observation.truncated or (observation.total or 0) > len(observation.records)
    return "" if cut else rows_digest(observation.records)
