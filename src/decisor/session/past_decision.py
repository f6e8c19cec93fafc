"""An old decision with what it rests on, from its trace or from its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.decision_record.digests import rows_digest
from decisor.decision_record.format import DecisionRecord
from decisor.decision_record.restored import PastStep, decision_of, question_of
from decisor.decision_record.restored import steps_of as recorded_steps
from decisor.decision_record.steps import number_of, steps_behind, steps_of
from decisor.errors import SetupError
from decisor.session.readers import for_reader
from decisor.session.sources import Sources
from decisor.trace.events import Conclusion, Entry, RunStart, events_of
from decisor.trace.provenance import DataSource
from decisor.types import Decision, Observation, Question


@dataclass(frozen=True)
class Past:
    """A decision with what it rests on, from a trace or from its record. ``model``: the decision model, as text, where
    that is known."""

    question: Question
    decision: Decision
    steps: Sequence[PastStep]
    model: str = ""


def past_of(entries: Sequence[Entry]) -> Past:
    """Raises SetupError where the trace holds no decision."""
    decision = last_decision(entries)
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    steps = [PastStep(step, number_of(step), all_rows(step.observation))
             for step in steps_behind(steps_of(entries), decision)]  # fmt: skip
    model = start.provenance.model
    return Past(start.question, decision, steps, model.text if model else "")


def past_of_record(record: DecisionRecord) -> Past:
    """Raises SetupError where it holds no decision."""
    content = record.content
    if not content.decision.answer:
        raise SetupError("There is no decision in this record, so there is nothing to verify.")
    model = content.model.text if content.model else ""
    return Past(question_of(content), decision_of(content), recorded_steps(content), model)


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


def as_it_was(sources: Sources, origin: Sequence[DataSource]) -> Sources:
    """With the rows and masks that held when the decision was made. A condition whose values are not known holds
    nothing back: then other rows come, and that is said."""
    heads = [one.name for one in sources.databases]
    alone = len(heads) == 1 and len([one for one in origin if one.form == "sql"]) == 1
    rows: dict[str, str] = {}
    mask: list[str] = []
    for one in origin:
        if one.form != "sql" or not (alone or one.name in heads):
            continue
        head = "" if alone else f"{one.name}."
        rows |= {f"{head}{row.table}": row.condition for row in one.rows if row.condition and "?" not in row.condition}
        mask += [f"{head}{column}" for column in one.mask]
    return for_reader(sources, rows, mask) if rows or mask else sources
