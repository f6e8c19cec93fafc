"""A record of a decision from the trace of its run, with its assumptions, open points and warnings.

A decision rests on the queries with a row that it cites, the queries that ranked, and the queries that those combined.
Tokens of masked columns stay tokens, whoever may see values. A record can be turned back into the question, decision
and steps that it was made of, to compute them again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from decisor.databases.combine import NAME as COMBINE
from decisor.databases.combine import REFERENCE
from decisor.decision_models.file import parse_model
from decisor.decision_models.schema import DecisionModel
from decisor.decision_record.record import (
    FORMAT,
    ApprovalChange,
    Conclusion,
    Content,
    Data,
    DecisionRecord,
    DefinitionUse,
    Grounds,
    Means,
    OpenPoint,
    Query,
    Request,
    Row,
    digest_of_json,
    part_digests,
    row_digest,
    rows_digest,
)
from decisor.errors import ModelMistake, SetupError
from decisor.history.store import Approval, History, PastRun
from decisor.llms.providers import hide_llm_password
from decisor.sandbox.engine import TOKEN
from decisor.semantics.relevant import NAME as DEFINITIONS
from decisor.system.secrets import hide_password, redact_event
from decisor.system.serialization import finite_json_value
from decisor.system.wording import format_count, format_held_plan, format_share, reading_lines
from decisor.trace import events
from decisor.trace.events import (
    OTHER_READING,
    ActionResult,
    ActionStart,
    LLMCall,
    MeaningChoice,
    NodeSpan,
    Note,
    RunStart,
    RunUsage,
    ShortenedPrompt,
    Span,
    TechniqueChoice,
    TraceEntry,
    UsedFile,
    events_of,
)
from decisor.types import Action, Decision, Evidence, Observation, Question, Ranking, Record, Step, Usage

SURE = 0.95
"""The share of trials in which the best stays in front, below which that is an open point."""
MOST = 12
ENDS = {
    "budget": ("A limit ended the run.", "Go on with more: decisor history resume"),
    "steps": ("The technique's step limit ended the run.", "Allow it more steps, or ask a narrower question."),
    "no_answer": ("The data do not decide it.", "Data that say what is missing, or a rule for this case."),
    "failed": ("The run failed.", "Ask again when the cause is mended."),
}


def assumptions_of(content: Content, decision: Decision) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            [
                *decision.assumptions,
                *list_unvaried_inputs(content),
                *list_parameter_sources(content),
                *list_unread_data(content),
            ]
        )
    )


def list_unvaried_inputs(content: Content) -> Iterator[str]:
    """Yield a sentence about inputs of the decision model that nothing varied."""
    ranking = content.alternatives
    if ranking is None or ranking.varied_percent:
        return
    model = parse_recorded_model(content.model.text if content.model else "")
    spread = [one.name for one in model.varied] if model else []
    if ranking.robustness is None or not (spread or ranking.varied):
        yield "All that the decision model reads is as the data say: nothing was varied."
    elif spread:
        yield f"All that the decision model reads is as the data say but {', '.join(spread)}: nothing else was varied."


def parse_recorded_model(text: str) -> DecisionModel | None:
    """Parse the text of a recorded decision model; None if it is of an earlier form, no TOML, or not there."""
    try:
        return parse_model(text) if text else None
    except (SetupError, ModelMistake):
        return None


def list_parameter_sources(content: Content) -> Iterator[str]:
    """Yield the parameters of the decision model that the data do not hold, with their sources."""
    model = parse_recorded_model(content.model.text if content.model else "")
    if model is None:
        return
    for name, source in model.sources.items():
        value = f"{model.parameters[name]} {model.units.get(name, '')}".strip()
        yield f"{name} is {value}: {source.rstrip('.')}."


def list_unread_data(content: Content) -> Iterator[str]:
    """Yield the assumptions that unread rows and tables, and decisions before, change nothing.

    Rows may be unread because they are not for who asked.
    """
    for source in content.data.sources:
        for row in source.rows:
            which = f" that fulfil {row.condition}" if row.condition else " that are for who asked"
            yield f"Of {source.name}, {row.table}: only the rows{which} were read; the others would not change it."
    if content.data.tables:
        yield f"Only these tables might be read: {', '.join(content.data.tables)}."
    if content.request.before:
        yield "What was decided before it holds."


def open_points_of(content: Content) -> tuple[OpenPoint, ...]:
    points = [
        *points_of_end(content),
        *points_of_readings(content),
        *points_of_rules(content),
        *points_of_alternatives(content),
        *points_of_evidence(content),
        *points_of_origin(content),
    ]
    return tuple(dict.fromkeys(points))


def points_of_end(content: Content) -> Iterator[OpenPoint]:
    if content.decision.stopped in ENDS:
        yield OpenPoint(*ENDS[content.decision.stopped])


def points_of_readings(content: Content) -> Iterator[OpenPoint]:
    settles = "Say which is meant, once, in the definitions of these data: decisor definitions propose"
    for one in content.readings:
        if one.by or not one.other:
            continue
        begin = f'Nobody said whether "{one.words}" means {one.means} or {one.other}'
        if not one.gives:
            yield OpenPoint(f"{begin}; what the other would give was not computed.", settles)
        elif one.gives.casefold() != content.decision.answer.casefold():
            yield OpenPoint(f"{begin}: the other would give {one.gives}.", settles)


def points_of_rules(content: Content) -> Iterator[OpenPoint]:
    answer = content.decision.answer.casefold()
    for one in content.rules:
        if one.state == "not testable":
            yield OpenPoint(f'No data can test "{one.text or one.name}".', "A person who vouches for it.")
        elif one.candidate and one.candidate.casefold() not in answer and answer not in one.candidate.casefold():
            yield OpenPoint(
                f"{one.name} was tested on {one.candidate}, not on what was decided.",
                "Test it on the decision: decisor history verify",
            )
    if content.request.rules.strip() and not content.rules:
        yield OpenPoint(
            "The rules were read as words, and none was executed.",
            "A decision model with a query for each rule: decisor model draft",
        )


def points_of_alternatives(content: Content) -> Iterator[OpenPoint]:
    ranking = content.alternatives
    if ranking is None:
        yield OpenPoint(
            "No outcome of any alternative was computed: the answer was read from the cited rows.",
            "A decision model: decisor model draft, then decisor ask --model",
        )
        return
    if ranking.is_read_off:
        yield OpenPoint(
            "The alternatives are in the order of a query, and no decision model computed them.",
            "A decision model: decisor model draft, then decisor ask --model",
        )
    yield from points_of_trials(ranking)
    yield from (
        OpenPoint(line, "A sentence in the rules, or an adopted correction.") for line in reading_lines(ranking)
    )
    if ranking.candidates is not None and ranking.count < ranking.candidates and not ranking.method:
        left = ranking.candidates - ranking.count
        yield OpenPoint(
            f"{format_count(left, 'candidate')} of {ranking.candidates:,} were not computed.",
            "More time, or a model for the solver.",
        )
    if len(ranking.ties) > 1:
        others = ", ".join(ranking.ties[:MOST])
        yield OpenPoint(
            f"Equally good by {ranking.measure}: {others}.", "A second measure, or a rule that tells them apart."
        )


def points_of_trials(ranking: Ranking) -> Iterator[OpenPoint]:
    if ranking.robustness is None:
        if ranking.options:
            yield OpenPoint(
                "How robust the choice is was not measured.", "Spreads for the inputs of the model, and trials."
            )
    elif ranking.held:
        # Another plan soon wins, though by little: how often one does says less than what it costs to hold to this one.
        if ranking.robustness < SURE:
            yield OpenPoint(format_held_plan(ranking), "Slack in the rules that it breaks; a new plan for new figures.")
    elif ranking.robustness < SURE:
        others = ", ".join(
            f"{one.name} in {format_share(one.share)}" for one in ranking.winners if one.name not in ranking.ties
        )
        yield OpenPoint(
            f"Within the spread of its inputs the choice stays best in {format_share(ranking.robustness)} of the "
            f"trials; else wins {others or 'another'}.",
            "Better figures for the inputs that move it most: decisor model whatif MODEL sensitivity",
        )


def points_of_evidence(content: Content) -> Iterator[OpenPoint]:
    evidence = content.evidence
    for objection in evidence.objections[:MOST]:
        yield OpenPoint(objection.text, "An answer whose claims stand on its rows.")
    if evidence.missing:
        yield OpenPoint(f"Cited, but not among what was brought: {', '.join(evidence.missing[:MOST])}.", "Ask again.")
    if content.decision.answer and not any(one.rows for one in evidence.queries):
        yield OpenPoint("The decision cites no record.", "Ask again, of data that hold the answer.")
    for one in evidence.queries:
        if one.cut and one.rows and content.alternatives is None:
            of = f" of {one.total:,}" if one.total else ""
            yield OpenPoint(
                f"{one.name} brought only the first {one.brought:,}{of} rows, and it is cited.",
                "A query that sums or sorts in the database.",
            )


def points_of_origin(content: Content) -> Iterator[OpenPoint]:
    if not content.means.version:
        yield OpenPoint(
            "When, by whom and on which data it was asked is not in the trace.",
            "Ask again with this version of Decisor.",
        )


def warnings_of(content: Content, entries: Sequence[TraceEntry]) -> tuple[str, ...]:
    lines = [f"{', '.join(one.records)}: {one.text}" for one in content.evidence.pitfalls]
    lines += [
        f"{name} is broken: {one.why}"
        for one in content.rules
        if one.state == "broken"
        for name in [one.text or one.name]
    ]
    lines += [one.text for one in events_of(entries, ShortenedPrompt)]
    lines += list_data_notes(entries)
    if TOKEN.search(repr((content.decision, content.evidence, content.alternatives))):
        lines.append("Values of masked columns stand as tokens, which another session makes anew.")
    if content.usage.dollars is None and content.usage.calls:
        lines.append("What it cost is not known: the LLM has no price.")
    return tuple(dict.fromkeys(lines))


def list_data_notes(entries: Sequence[TraceEntry]) -> Iterator[str]:
    """Yield the notes on the data from before the first LLM call or action."""
    for entry in entries:
        match entry.event:
            case LLMCall() | ActionStart():
                return
            case Note(text=text, passing=False) if text and not entry.span:
                yield text


NUMBER = re.compile(r"o(\d+)\.")


def collect_steps(entries: Sequence[TraceEntry]) -> list[Step]:
    """Return the actions of a trace with their observations.

    The steps of the decision that it goes on from come first. Failed actions, and actions for another reading of the
    question, are left out.
    """
    start = next(events_of(entries, RunStart), None)
    steps = list(start.question.earlier.all_steps) if start and start.question.earlier else []
    starts = {entry.id: entry.event for entry in entries if isinstance(entry.event, ActionStart)}
    own: dict[int, Step] = {}
    aside: set[int] = set()
    for entry in entries:
        match entry.event:
            # Actions for another reading of the question are no grounds of the decision; spans inside such a span go
            # with it.
            case Span(name=name) if entry.span in aside or name.startswith(OTHER_READING):
                aside.add(entry.id)
            case NodeSpan() if entry.span in aside:
                aside.add(entry.id)
            case ActionResult(action=at, observation=observation) if entry.span not in aside and not observation.error:
                if (action := starts.get(at)) is not None:
                    own[at] = Step(Action(action.tool, action.input), observation)
    # In the order in which they began: queries of one reply may have ended in another.
    return [*steps, *(own[at] for at in sorted(own))]


def find_supporting_steps(steps: Sequence[Step], decision: Decision) -> list[Step]:
    """Return the steps that a decision rests on, in their order."""
    needed = {at for at, step in enumerate(steps) if cited_rows(step, decision.evidence.ids)} | find_ranking_step(
        steps, decision.ranking
    )
    # Backwards, as a combining query may read another combining query before it.
    for at in reversed(range(len(steps))):
        if at in needed and steps[at].action.tool == COMBINE:
            names = {int(number) for number in REFERENCE.findall(steps[at].action.input)}
            needed |= {other for other, step in enumerate(steps[:at]) if number_of_observation(step) in names}
    return [steps[at] for at in sorted(needed)]


def find_ranking_step(steps: Sequence[Step], ranking: Ranking | None) -> set[int]:
    """Return the position of the step that computed the ranking, as a set.

    If no step computed it, it is the last step with a ranking; the set is empty if none has one.
    """
    places = [at for at, step in enumerate(steps) if step.observation.ranking and step.observation.ranking.options]
    # Several steps may have ranked; what counts is the ranking that the decision holds.
    own = [at for at in places if steps[at].observation.ranking == ranking]
    return set((own or places)[-1:])


def cited_rows(step: Step, cited: Collection[str]) -> list[Record]:
    """Return the records of a step that the decision cites."""
    return [record for record in step.observation.records if record.id in cited]


def number_of_observation(step: Step) -> int:
    """Return the number of a step's observation, 0 if it has no rows.

    >>> from decisor.types import Observation
    >>> number_of_observation(Step(Action("sql", "SELECT 1"), Observation((Record("o3.r1"),))))
    3
    """
    ids = [record.id for record in step.observation.records]
    match = NUMBER.match(ids[0]) if ids else None
    return int(match[1]) if match else 0


YOU = "you"
"""Who asks, as a reading that they chose names them."""
NO_DECISION = Decision("", stopped="failed")


def build_record(
    entries: Sequence[TraceEntry], run: int = 0, approvals: Sequence[Approval] = (), by: str = ""
) -> DecisionRecord:
    """Build the record of a decision from its trace. by: who asked, if the trace does not say it."""
    return seal_record(content_of(entries, by), run, approvals)


def seal_record(content: Content, run: int = 0, approvals: Sequence[Approval] = ()) -> DecisionRecord:
    """Build a record from a content, with its digests."""
    # JSON has no infinity or NaN, and a digest must be the same for every reader.
    plain = finite_json_value(content)
    # Approvals name the digest of the content alone, so the number of the run has a digest of its own.
    digest = digest_of_json(plain)
    return DecisionRecord(
        FORMAT, content, part_digests(plain), digest, run, tuple(approvals), digest_of_json([digest, run])
    )


def content_of(entries: Sequence[TraceEntry], by: str = "") -> Content:
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    # Techniques nest: only a conclusion outside of every span is the run's own, and of several the last.
    decisions = [one.event.decision for one in entries if isinstance(one.event, events.Conclusion) and not one.span]
    decision = decisions[-1] if decisions else NO_DECISION
    steps = collect_steps(entries)
    behind = find_supporting_steps(steps, decision)
    ranking_steps = steps_of_ranking(steps, decision)
    origin, request = start.provenance, request_of(start, by)
    content = Content(
        request=request,
        decision=Conclusion(
            decision.answer, decision.stopped, decision.reasons, decision.runner_up, decision.plan, decision.replans
        ),
        definitions=tuple(
            definition_of(record, origin.definitions)
            for step in behind
            if step.action.tool == DEFINITIONS
            for record in cited_rows(step, decision.evidence.ids)
        ),
        readings=tuple(
            replace(one, by=(request.by or "who asked") if one.by == YOU else one.by)
            for one in events_of(entries, MeaningChoice)
        ),
        alternatives=find_alternatives(decision, steps),
        rules=tuple(rule for step in ranking_steps for rule in step.observation.rules),
        evidence=grounds_of(decision, behind, ranking_steps),
        model=origin.model,
        means=means_of(entries, start),
        data=Data(origin.sources, origin.tables, origin.deny_tables),
        usage=next(iter([one.usage for one in events_of(entries, RunUsage)][-1:]), Usage()),
    )
    content = replace(content, assumptions=assumptions_of(content, decision), warnings=warnings_of(content, entries))
    content = replace(content, open_points=open_points_of(content))
    # Without secrets. Rows stay as they are: redacting one would change its digest, and the evidence with it.
    queries = tuple(replace(one, input=redact_event(one.input)) for one in content.evidence.queries)
    rest = redact_event(replace(content, evidence=replace(content.evidence, queries=())))
    return replace(rest, evidence=replace(rest.evidence, queries=queries))


def request_of(start: RunStart, by: str) -> Request:
    question = start.question
    earlier = question.earlier
    before = (*earlier.before, f"{earlier.question}: {earlier.answer or 'not decided'}") if earlier else ()
    return Request(
        question.text,
        question.rules,
        question.goal,
        before,
        start.provenance.by or by,
        format_utc_time(start.provenance.at),
    )


def format_utc_time(at: float) -> str:
    """Format seconds since 1970 as ISO 8601 in UTC; '' if the time is 0 or out of range.

    >>> format_utc_time(1.7e9), format_utc_time(0.0), format_utc_time(1e300)
    ('2023-11-14T22:13:20+00:00', '', '')
    """
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else ""
    except (ValueError, OverflowError, OSError):  # a stranger's trace
        return ""


def definition_of(record: Record, files: Sequence[UsedFile]) -> DefinitionUse:
    name, says, by, on, path = (str(record.fields.get(key) or "") for key in ("definition", "says", "by", "on", "file"))
    named = [one for one in files if one.path == path] or [one for one in files if one.path == Path(path).name]
    file = named[0] if len(named) == 1 else UsedFile(path)
    return DefinitionUse(record.id, name, says, by, on, file.path, file.digest)


def find_alternatives(decision: Decision, steps: Sequence[Step]) -> Ranking | None:
    """Return the ranking behind a decision, without outcomes that are no numbers; None if there is none."""
    ranking = decision.ranking or next((one.observation.ranking for one in steps_of_ranking(steps, decision)), None)
    if ranking is None:
        return None
    options = tuple(one for one in ranking.options if math.isfinite(one.outcome))
    return replace(
        ranking, options=options, margin=finite_json_value(ranking.margin), lead=finite_json_value(ranking.lead)
    )


def steps_of_ranking(steps: Sequence[Step], decision: Decision) -> list[Step]:
    return [steps[at] for at in find_ranking_step(steps, decision.ranking)]


def grounds_of(decision: Decision, behind: Sequence[Step], ranking: Sequence[Step]) -> Grounds:
    queries = tuple(replace(query_of_step(step, decision.evidence.ids), ranks=step in ranking) for step in behind)
    # An id that no query brought was made up, or its record was lost: the record says so.
    there = {row.id for query in queries for row in query.rows}
    missing = tuple(name for name in decision.evidence.ids if name not in there)
    evidence = decision.evidence
    return Grounds(queries, evidence.figures, evidence.pitfalls, missing, evidence.objections)


def query_of_step(step: Step, cited: Sequence[str]) -> Query:
    observation = step.observation
    number, count = number_of_observation(step), len(observation.records)
    rows = tuple(
        Row(one.id, dict(one.fields), one.text, one.source, row_digest(one.fields, one.text))
        for one in cited_rows(step, cited)
    )
    cut = observation.truncated or (observation.total or 0) > count
    # Rows that were cut off are not known, so a digest of all of them would claim too much.
    digest = "" if cut else rows_digest(observation.records)
    return Query(
        f"o{number}" if number else "", step.action.tool, step.action.input, rows, count, observation.total, cut, digest
    )


def means_of(entries: Sequence[TraceEntry], start: RunStart) -> Means:
    names = dict.fromkeys(call.model for call in events_of(entries, LLMCall) if call.model)
    chosen = next((one.technique for one in events_of(entries, TechniqueChoice)), "")
    settings = {
        # Settings may hold addresses with passwords.
        name: (hide_llm_password if name.endswith("_llm") else hide_password)(str(value))
        for name, value in start.settings.items()
    }
    return Means(
        hide_llm_password(start.llm),
        tuple(map(hide_password, names)),
        start.technique,
        chosen,
        settings,
        start.provenance.version,
    )


def record_of_run(run: PastRun, entries: Sequence[TraceEntry]) -> DecisionRecord:
    """Build the record of a saved run. entries: its trace."""
    return build_record(entries, run.number, run.approvals, run.owner)


def change_approvals(history: History, number: int, owner: str, change: ApprovalChange) -> DecisionRecord:
    """Change the approvals of a saved run; return its record with the new approvals.

    Raises:
        SetupError: it holds no decision, or nobody may change them so.
    """
    record = record_of_run(history.read(number, owner), history.entries(number, owner))
    if not record.content.decision.answer:
        raise SetupError(f"Run {number} has no answer that could be approved.")

    def change_run(run: PastRun) -> PastRun:
        return replace(run, approvals=change(run.approvals, record.digest))

    return replace(record, approvals=history.change(number, owner, change_run).approvals)


NAME = re.compile(r"o[0-9]{1,9}")


@dataclass(frozen=True)
class PastStep:
    """A query of an old record, with the rows that are known."""

    step: Step
    number: int = 0
    """Number of its observation, 0 if it had no rows."""
    digest: str = ""
    """Digest of all rows that it brought, '' if not known."""
    ranks: bool = False
    """Whether it computed the alternatives."""


def decision_of(content: Content) -> Decision:
    decision, grounds = content.decision, content.evidence
    ids = tuple(row.id for query in grounds.queries for row in query.rows)
    evidence = Evidence((*ids, *grounds.missing), grounds.figures, grounds.pitfalls, grounds.objections)
    return Decision(
        decision.answer,
        evidence,
        content.alternatives,
        decision.plan,
        decision.replans,
        decision.reasons,
        decision.stopped,
        content.assumptions,
        decision.runner_up,
    )


def restore_records(query: Query) -> tuple[Record, ...]:
    """Return the cited rows of a query as records."""
    return tuple(Record(row.id, row.fields, row.text, row.source) for row in query.rows)  # type: ignore[arg-type]


def restore_steps(content: Content) -> list[PastStep]:
    """Return the queries that a decision rests on. The ranking query has the alternatives that it computed."""
    return [step_of(query, content.alternatives) for query in content.evidence.queries]


def step_of(query: Query, alternatives: Ranking | None) -> PastStep:
    observation = Observation(restore_records(query), ranking=alternatives if query.ranks else None)
    number = int(query.name[1:]) if NAME.fullmatch(query.name) else 0
    return PastStep(Step(Action(query.tool, query.input), observation), number, query.digest, query.ranks)
