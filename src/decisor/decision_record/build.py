"""A record of a decision from the trace of its run. Tokens of masked columns stay tokens, whoever may see values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from decisor.decision_record.digests import digest_of, part_digests, row_digest, rows_digest
from decisor.decision_record.format import (
    FORMAT,
    Conclusion,
    Content,
    Data,
    DecisionRecord,
    DefinitionUse,
    Grounds,
    Means,
    Query,
    Request,
    Row,
)
from decisor.decision_record.open_points import assumptions_of, open_points_of, warnings_of
from decisor.decision_record.steps import cited_rows, number_of, ranking_step, steps_behind, steps_of
from decisor.definitions.tool import NAME as DEFINITIONS
from decisor.encoding import finite
from decisor.history.past_run import Approval
from decisor.lms.spec import lm_without_password
from decisor.secrets import redacted, without_password
from decisor.trace import events
from decisor.trace.events import Entry, LMCall, MeaningChoice, RunStart, RunUsage, TechniqueChoice, events_of
from decisor.trace.provenance import UsedFile
from decisor.types import Decision, Question, Ranking, Record, RuleTest, Step, Usage

YOU = "you"
"""Who asks, as a reading that they chose names them."""
NO_DECISION = Decision("", stopped="failed")


def record_of(
    entries: Sequence[Entry], run: int = 0, approvals: Sequence[Approval] = (), by: str = ""
) -> DecisionRecord:
    """``by``: who asked, where the trace does not say it."""
    return sealed_record(content_of(entries, by), run, approvals)


def sealed_record(content: Content, run: int = 0, approvals: Sequence[Approval] = ()) -> DecisionRecord:
    """With the digests of a content."""
    plain = finite(content)
    # Approvals name the digest of the content alone, so the number of the run has a digest of its own.
    digest = digest_of(plain)
    return DecisionRecord(FORMAT, content, part_digests(plain), digest, run, tuple(approvals), digest_of([digest, run]))


def content_of(entries: Sequence[Entry], by: str = "") -> Content:
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    decisions = [one.event.decision for one in entries if isinstance(one.event, events.Conclusion) and not one.span]
    decision = decisions[-1] if decisions else NO_DECISION
    steps = steps_of(entries)
    behind = steps_behind(steps, decision)
    origin, request = start.provenance, request_of(start, by)
    content = Content(
        request=request,
        decision=Conclusion(decision.answer, decision.stopped, decision.reasons, decision.runner_up, decision.plan,
                            decision.replans),
        definitions=tuple(definition_of(record, origin.definitions) for step in behind
                          if step.action.tool == DEFINITIONS for record in cited_rows(step, decision.evidence.ids)),
        readings=tuple(replace(one, by=(request.by or "who asked") if one.by == YOU else one.by)
                       for one in events_of(entries, MeaningChoice)),
        alternatives=alternatives_of(decision, steps),
        rules=rules_of(steps, decision),
        evidence=grounds_of(decision, behind, own_ranking(steps, decision)),
        model=origin.model,
        means=means_of(entries, start),
        data=Data(origin.sources, origin.tables, origin.deny_tables),
        usage=next(iter([one.usage for one in events_of(entries, RunUsage)][-1:]), Usage()),
    )  # fmt: skip
    content = replace(content, assumptions=assumptions_of(content, decision), warnings=warnings_of(content, entries))
    return without_secrets(replace(content, open_points=open_points_of(content)))


def request_of(start: RunStart, by: str) -> Request:
    question = start.question
    earlier = question.earlier
    before = (*earlier.before, f"{earlier.question}: {earlier.answer or 'not decided'}") if earlier else ()
    return Request(question.text, question.rules, question.goal, before, start.provenance.by or by,
                   moment(start.provenance.at))  # fmt: skip


def moment(at: float) -> str:
    """
    >>> moment(1.7e9), moment(0.0), moment(1e300)
    ('2023-11-14T22:13:20+00:00', '', '')
    """
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else ""
    except (ValueError, OverflowError, OSError):  # a stranger's trace
        return ""


def definition_of(record: Record, files: Sequence[UsedFile]) -> DefinitionUse:
    name, says, by, on, path = (str(record.fields.get(key) or "")
                                for key in ("definition", "says", "by", "on", "file"))  # fmt: skip
    named = [one for one in files if one.path == path] or [one for one in files if one.path == Path(path).name]
    file = named[0] if len(named) == 1 else UsedFile(path)
    return DefinitionUse(record.id, name, says, by, on, file.path, file.digest)


def alternatives_of(decision: Decision, steps: Sequence[Step]) -> Ranking | None:
    """Without outcomes that are no numbers."""
    ranking = decision.ranking or next((one.observation.ranking for one in own_ranking(steps, decision)), None)
    if ranking is None:
        return None
    options = tuple(one for one in ranking.options if math.isfinite(one.outcome))
    return replace(ranking, options=options, margin=finite(ranking.margin), lead=finite(ranking.lead))


def own_ranking(steps: Sequence[Step], decision: Decision) -> list[Step]:
    return [steps[at] for at in ranking_step(steps, decision.ranking)]


def rules_of(steps: Sequence[Step], decision: Decision) -> tuple[RuleTest, ...]:
    """As they were tested on the best of the ranking."""
    return tuple(rule for step in own_ranking(steps, decision) for rule in step.observation.rules)


def grounds_of(decision: Decision, behind: Sequence[Step], ranking: Sequence[Step]) -> Grounds:
    queries = tuple(replace(query_of(step, decision.evidence.ids), ranks=step in ranking) for step in behind)
    there = {row.id for query in queries for row in query.rows}
    missing = tuple(name for name in decision.evidence.ids if name not in there)
    evidence = decision.evidence
    return Grounds(queries, evidence.figures, evidence.pitfalls, missing, evidence.objections)


def query_of(step: Step, cited: Sequence[str]) -> Query:
    observation = step.observation
    number, count = number_of(step), len(observation.records)
    rows = tuple(Row(one.id, dict(one.fields), one.text, one.source, row_digest(one.fields, one.text))
                 for one in cited_rows(step, cited))  # fmt: skip
    cut = observation.truncated or (observation.total or 0) > count
    digest = "" if cut else rows_digest(observation.records)
    return Query(f"o{number}" if number else "", step.action.tool, step.action.input, rows, count, observation.total,
                 cut, digest)  # fmt: skip


def means_of(entries: Sequence[Entry], start: RunStart) -> Means:
    names = dict.fromkeys(call.model for call in events_of(entries, LMCall) if call.model)
    chosen = next((one.technique for one in events_of(entries, TechniqueChoice)), "")
    settings = {name: (lm_without_password if name.endswith("_lm") else without_password)(str(value))
                for name, value in start.settings.items()}  # fmt: skip
    return Means(lm_without_password(start.lm), tuple(map(without_password, names)), start.technique, chosen, settings,
                 start.provenance.version)  # fmt: skip


def without_secrets(content: Content) -> Content:
    """Rows stay as they are: they are the evidence."""
    queries = tuple(replace(one, input=redacted(one.input)) for one in content.evidence.queries)
    rest = redacted(replace(content, evidence=replace(content.evidence, queries=())))
    return replace(rest, evidence=replace(rest.evidence, queries=queries))
