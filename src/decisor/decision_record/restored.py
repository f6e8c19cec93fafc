"""A record of a decision as the nouns that it was made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.decision_record.format import Content, Query
from decisor.types import Action, Decision, Evidence, Observation, Question, Ranking, Record, Step

NAME = re.compile(r"o[0-9]{1,9}")


@dataclass(frozen=True)
class PastStep:
    """A query of the past with the rows that are known of it. ``number``: of its observation, 0 where that had no rows.
    ``digest``: of all rows that it brought, '' where that is not known. ``ranks``: it computed the alternatives."""

    step: Step
    number: int = 0
    digest: str = ""
    ranks: bool = False


def question_of(content: Content) -> Question:
    return Question(content.request.question, content.request.rules, content.request.goal)


def decision_of(content: Content) -> Decision:
    decision, grounds = content.decision, content.evidence
    ids = tuple(row.id for query in grounds.queries for row in query.rows)
    evidence = Evidence((*ids, *grounds.missing), grounds.figures, grounds.pitfalls, grounds.objections)
    return Decision(
        decision.answer, evidence, content.alternatives,
        decision.plan, decision.replans, decision.reasons, decision.stopped, content.assumptions, decision.runner_up,
    )  # fmt: skip


def records_of(query: Query) -> tuple[Record, ...]:
    """The rows of a query that are cited."""
    return tuple(Record(row.id, row.fields, row.text, row.source) for row in query.rows)  # type: ignore[arg-type]


def steps_of(content: Content) -> list[PastStep]:
    """The queries that the decision rests on; the one that ranks with what it computed."""
    return [step_of(query, content.alternatives) for query in content.evidence.queries]


def step_of(query: Query, alternatives: Ranking | None) -> PastStep:
    observation = Observation(records_of(query), ranking=alternatives if query.ranks else None)
    number = int(query.name[1:]) if NAME.fullmatch(query.name) else 0
    return PastStep(Step(Action(query.tool, query.input), observation), number, query.digest, query.ranks)
