"""Verify a past decision on the data of today, without an LLM.

The cited queries and the ranking are computed again: which records changed, whether the decision still holds, which
candidate wins now. No place that a trace names is opened, so the data are named again. The decision comes from a trace
or a record, which may be a stranger's. A recorded condition becomes a part of each statement that runs: so it may only
compare columns with values.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from decisor.databases.combine import NAME as COMBINE
from decisor.databases.combine import CombineTool
from decisor.decision_models.client import ArgumentChange, OpenModel, find_changed_arguments, run_rule_tests
from decisor.decision_models.file import parse_model
from decisor.decision_models.tool import ModelTool
from decisor.decision_record.build import (
    PastStep,
    cited_rows,
    collect_steps,
    decision_of,
    find_ranking_step,
    find_supporting_steps,
    number_of_observation,
)
from decisor.decision_record.build import restore_steps as recorded_steps
from decisor.decision_record.page import RecordFile
from decisor.decision_record.record import DecisionRecord, normalize_digits, row_digest, rows_digest
from decisor.errors import ModelMistake, SetupError, ToolError
from decisor.parsing.attribution import says_word_for_word, split_answer_sentences
from decisor.parsing.toml_reply import format_toml
from decisor.sandbox.engine import TOKEN
from decisor.sandbox.process import set_asker
from decisor.semantics.relevant import NAME as DEFINITIONS
from decisor.semantics.relevant import DefinitionsTool
from decisor.session.access import Reader, restrict_sources
from decisor.session.data import Data
from decisor.session.model_tools import ModellingTool, SerializedTool, find_whatif_of_question, open_whatif_of_model
from decisor.session.sources import Sources
from decisor.system.structured_files import TomlFile
from decisor.system.text import clean_one_line
from decisor.system.wording import format_amount, format_count
from decisor.techniques.shared.objections import is_candidate_name
from decisor.tools.calculator import CalculatorTool
from decisor.trace.events import Conclusion, DataSource, RunStart, TraceEntry, events_of
from decisor.types import Decision, Observation, Question, Ranking, Record, RuleTest, Tool


@dataclass(frozen=True)
class PastDecision:
    """A past decision with the steps that it rests on, from a trace or from its record."""

    question: Question
    decision: Decision
    steps: Sequence[PastStep]
    model: str = ""
    """Decision model as text, '' if unknown."""
    seeds: frozenset[str] = frozenset()
    """Seeds of the tokens of its masked sources."""


def seeds_of(sources: Sequence[DataSource]) -> frozenset[str]:
    return frozenset(one.seed for one in sources if one.mask)


def past_decision_of_trace(entries: Sequence[TraceEntry]) -> PastDecision:
    """Return the decision of a trace with its steps; raise SetupError if there is none."""
    decisions = [conclusion.decision for conclusion in events_of(entries, Conclusion)]
    if not decisions or not decisions[-1].answer:
        raise SetupError("There is no decision in this trace, so there is nothing to verify.")
    decision = decisions[-1]
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    every = collect_steps(entries)
    ranking = [every[at] for at in find_ranking_step(every, decision.ranking)]
    steps = [
        PastStep(step, number_of_observation(step), digest_of_all_rows(step.observation), step in ranking)
        for step in find_supporting_steps(every, decision)
    ]
    model = start.provenance.model
    return PastDecision(
        start.question, decision, steps, model.text if model else "", seeds_of(start.provenance.sources)
    )


def past_decision_of_record(record: DecisionRecord) -> PastDecision:
    """Return the decision of a record with its steps; raise SetupError if there is none."""
    content = record.content
    if not content.decision.answer:
        raise SetupError("There is no decision in this record, so there is nothing to verify.")
    model = content.model.text if content.model else ""
    seeds = seeds_of(content.data.sources)
    question = Question(content.request.question, content.request.rules, content.request.goal)
    return PastDecision(question, decision_of(content), recorded_steps(content), model, seeds)


def digest_of_all_rows(observation: Observation) -> str:
    """Return the digest of a query's rows, '' if rows were cut off."""
    cut = observation.truncated or (observation.total or 0) > len(observation.records)
    return "" if cut else rows_digest(observation.records)


MODELLING, WHATIF = "decision_model", "whatif"


async def tools_of_past_decision(data: Data, past: PastDecision, stack: AsyncExitStack) -> Mapping[str, Tool]:
    """Return the tools of today, and the decision models that the decision names.

    ``stack`` closes the tools that are opened here.

    Raises:
        SetupError: a tool that it rests on is not here.
    """
    tools = {tool.name: tool for tool in (*data.tools, CalculatorTool(), CombineTool())}
    # Thoughts and a person's words are not computed again; definitions are compared only if they are named.
    needed = {one.step.action.tool for one in past.steps} - {"think", "person", DEFINITIONS}
    if MODELLING in needed and data.databases:
        # No trials: the ranking alone is compared.
        tools[MODELLING] = ModellingTool(data.databases[0], trials=0)
        stack.push_async_callback(tools[MODELLING].close)
    if WHATIF in needed and WHATIF not in tools:
        # The decision model as it was, else the one that the question is about.
        tool = await (
            open_whatif_of_model(parse_model(past.model), data.databases[0], stack, data.definitions)
            if past.model and data.databases
            else find_whatif_of_question(past.question, data.databases, data.recognisers)
        )
        tools |= {WHATIF: tool} if tool else {}
    if data.definitions:
        files = tuple(data.definitions.values())
        tools[DEFINITIONS] = DefinitionsTool([one for file in files for one in file], files)
    if missing := sorted(needed - tools.keys()):
        flags = "--db, --graph, --docs or --model"
        raise SetupError(f"The decision rests on {', '.join(missing)}: name the same data again with {flags}.")
    return tools


async def repeat_past_step(past: PastStep, tools: Mapping[str, Tool]) -> Observation:
    """Run the action of a past step on the data of today. The observation is an error if it fails."""
    action = past.step.action
    if action.tool not in tools:
        return Observation(error=True)
    try:
        with set_asker("decisor"):
            observation = await tools[action.tool].call(action.input)
    except ToolError as error:
        return Observation(note=str(error), error=True)
    # combine reads earlier observations by their number.
    combine = tools[COMBINE]
    if isinstance(combine, CombineTool) and past.number:
        combine.remember(past.number, action, observation, tools[action.tool])
    return observation


MOST_OUTCOMES, MOST_CHARS = 20, 200
State = Literal["holds", "does not hold", "cannot be said"]


@dataclass(frozen=True)
class RecordChange:
    """A change in a cited record."""

    id: str
    before: str
    """Values that differ, as they were."""
    after: str
    """Values that differ, as they are; '' if the record is gone."""


@dataclass(frozen=True)
class Verification:
    """The outcome of computing a past decision on the data of today."""

    answer: str
    state: State
    why: str
    records: int = 0
    """Number of cited records that were read again."""
    changes: Sequence[RecordChange] = ()
    best: str = ""
    """Best candidate of today, '' if nothing ranks."""
    rules: Sequence[RuleTest] = ()
    """Tests of the rules on the old answer, if there is a decision model."""
    others: Sequence[str] = ()
    """Queries that return other rows beside the cited ones, which are unchanged."""
    outcomes: Sequence[RecordChange] = ()
    """Candidates whose outcome changed, by name."""
    faults: Sequence[str] = ()
    """Parts of a record that are not as it was made."""


async def verify_trace(entries: Sequence[TraceEntry], data: Data) -> Verification:
    """Verify the decision of a trace: run its cited queries and its ranking again.

    Raises:
        SetupError: the trace holds no decision, or names a tool that is not here.
    """
    return await verify_past_decision(past_decision_of_trace(entries), data)


async def verify_record(document: RecordFile, data: Data) -> Verification:
    """Verify the decision of a record. A record that is not as it was made does not hold.

    Raises:
        SetupError: it holds no decision, or names a tool that is not here.
    """
    verdict = await verify_past_decision(past_decision_of_record(document.record), data)
    if not document.faults:
        return verdict
    return replace(
        verdict,
        state="does not hold",
        faults=document.faults,
        why=f"The record is not as it was made. Of the data: {verdict.why}",
    )


async def verify_past_decision(past: PastDecision, data: Data) -> Verification:
    # Masked values can be compared only if every masked source has the key of then.
    has_same_tokens = "" not in past.seeds and past.seeds >= {
        one.policy.seed for one in data.sources.places if one.policy.mask
    }
    past, changes, note = await withdraw_corrections(past, data.documents)
    async with AsyncExitStack() as stack:
        tools = await tools_of_past_decision(data, past, stack)
        outcomes: list[RecordChange] = []
        others: list[str] = []
        count, is_computed = 0, False
        now: Ranking | None = None
        failure = ""
        rules: Sequence[RuleTest] = ()
        arguments: Sequence[ArgumentChange] = ()
        # Run each step again, and compare it.
        for one in past.steps:
            action, before = one.step.action, one.step.observation
            if action.tool == DEFINITIONS and action.tool not in tools:
                continue
            after = await repeat_past_step(one, tools)
            cited = cited_rows(one.step, past.decision.evidence.ids)
            count += len(cited)
            new = list(find_record_changes(cited, after, has_same_tokens))
            changes += new
            # The cited rows stayed, and the query brings other rows beside them.
            if not new and one.digest and one.digest != rows_digest(after.records):
                others.append(f"{action.tool}: {action.input}")
            # Only the step that brought the ranking says which candidate wins now.
            if one.ranks and before.ranking is not None and before.ranking.options:
                is_computed, now, failure = True, after.ranking, after.note if after.error else ""
                outcomes += find_outcome_changes(before.ranking, now) if now else []
                rules, arguments = await check_model_on_answer(tools[action.tool], action.input, past.decision.answer)
    # Judge the decision by its ranking, else by its records.
    verdict = judge_past_decision(past.decision, [*changes, *others], now, is_computed, rules, has_same_tokens)
    verdict = replace(verdict, why=" ".join(filter(None, [verdict.why, failure, note])))
    if arguments:
        changes += [RecordChange(f"function.{one.function}", one.before, one.after) for one in arguments]
        words = f"What functions gave is for other rows than those of today: {'; '.join(map(str, arguments[:3]))}."
        state: State = "cannot be said" if verdict.state == "holds" else verdict.state
        verdict = replace(verdict, state=state, why=f"{verdict.why} {words}")
    if not has_same_tokens and (unseen := find_masked_columns(past)):
        note = f"Masked values ({', '.join(unseen)}) were not compared: the key of their tokens is not on this machine."
        verdict = replace(verdict, why=f"{verdict.why} {note}")
        # Rows that were compared in part cannot show that a decision holds.
        if verdict.state == "holds" and now is None:
            verdict = replace(verdict, state="cannot be said")
    return replace(verdict, records=count, changes=changes, others=others, outcomes=outcomes, rules=rules)


async def withdraw_corrections(
    past: PastDecision, documents: Sequence[Tool]
) -> tuple[PastDecision, list[RecordChange], str]:
    """Withdraw the adopted corrections of a decision model whose words no document says any more.

    Return the decision with the rest of its model, each withdrawn correction, and a sentence on them. Without
    documents, all stay.
    """
    lost: dict[str, RecordChange] = {}
    quoted: set[str] = set()

    async def withdraw(text: str) -> str:
        try:
            file, corrections = TomlFile(text), parse_model(text).corrections
        except ModelMistake:
            return text  # its own step says why it does not run
        for one in corrections:
            words = one.source.passage if one.source.document else ""
            if not words:
                continue
            quoted.add(words)
            if documents and not await is_quoted(words, documents):
                lost[words] = RecordChange(f"correction of {one.table}.{one.column}", str(one.source), "")
        for table in file.content.get("correction", ()):
            table["adopted"] = table.get("adopted", False) and table["source"].get("passage") not in lost
        return format_toml(file.content) if lost else text

    async def renew(one: PastStep) -> PastStep:
        verb, _, text = (action := one.step.action).input.partition("\n")
        if not one.ranks or action.tool != MODELLING:
            return one
        return replace(one, step=replace(one.step, action=replace(action, input=f"{verb}\n{await withdraw(text)}")))

    steps = [await renew(one) for one in past.steps]
    past = replace(past, steps=steps, model=await withdraw(past.model) if past.model else "")
    changes, note = [*lost.values()], ""
    if changes:
        names = " and the ".join(change.id for change in changes)
        note = f"No document says any more what the {names} quotes: computed without it."
    elif quoted and not documents:
        note = "What its corrections quote was not read again: name the documents with --docs."
    return past, changes, note


async def is_quoted(words: str, documents: Sequence[Tool]) -> bool:
    """Return whether the passages that a search for these words finds hold them."""
    try:
        found = [record.text for tool in documents for record in (await tool.call(words)).records]
    except ToolError as error:
        raise SetupError(f"The documents cannot be searched: {error}") from error
    return says_word_for_word(" ".join(found), words)


def find_masked_columns(past: PastDecision) -> list[str]:
    """Return the columns of cited rows in which only tokens were seen."""
    rows = (row.fields for one in past.steps for row in cited_rows(one.step, past.decision.evidence.ids))
    return sorted({str(name) for fields in rows for name, value in fields.items() if TOKEN.search(str(value))})


async def check_model_on_answer(
    tool: Tool, text: str, answer: str
) -> tuple[Sequence[RuleTest], Sequence[ArgumentChange]]:
    """Test the rules of the decision model on the old answer, and hold the arguments of functions against the rows.

    No rules if the answer is no candidate today.
    """

    def check(model: OpenModel) -> tuple[Sequence[RuleTest], Sequence[ArgumentChange]]:
        rules: Sequence[RuleTest] = ()
        with suppress(ModelMistake):
            rules = run_rule_tests(model, answer)
        return rules, [*find_changed_arguments(model)]

    with suppress(ModelMistake, SetupError):
        if isinstance(tool, ModellingTool):
            async with tool.opened(parse_model(text.partition("\n")[2])) as machine:
                return await asyncio.to_thread(check, machine)
        if isinstance(tool, SerializedTool) and isinstance(tool.tool, ModelTool):
            return await asyncio.to_thread(check, tool.tool.model)
    return (), ()


def find_record_changes(
    cited: Sequence[Record], after: Observation, has_same_tokens: bool = False
) -> Iterator[RecordChange]:
    """Yield the cited records that are changed or gone today."""
    here = {row_digest(record.fields, record.text, has_same_tokens) for record in after.records}
    for record in cited:
        if row_digest(record.fields, record.text, has_same_tokens) in here:
            continue
        same = next((one for one in after.records if is_same_record(record, one)), None)
        if same is None:
            yield RecordChange(record.id, record.text[:MOST_CHARS] or format_changed_fields(record.fields), "")
        elif record.text:
            was, now = split_answer_sentences(record.text), split_answer_sentences(same.text)
            lost, new = [one for one in was if one not in now], [one for one in now if one not in was]
            yield RecordChange(record.id, " ".join(lost)[:MOST_CHARS], " ".join(new)[:MOST_CHARS])
        else:
            cells = {
                name: (normalize_digits(cell), normalize_digits(same.fields.get(name)))
                for name, cell in record.fields.items()
            }
            apart = [(name, *both) for name, both in cells.items() if both[0] != both[1]]
            yield RecordChange(
                record.id,
                format_changed_fields({name: cell for name, cell, _ in apart}),
                format_changed_fields({name: cell for name, _, cell in apart}),
            )


def is_same_record(before: Record, after: Record) -> bool:
    """Return whether a record is an earlier one, changed: a passage at the same place, or a row with its first cell."""
    if before.text:
        return (before.source, before.fields) == (after.source, after.fields)
    return bool(before.fields) and next(iter(before.fields.values())) == next(iter(after.fields.values()), None)


def find_outcome_changes(before: Ranking, now: Ranking) -> Iterator[RecordChange]:
    """Yield the candidates whose outcome changed, at most ``MOST_OUTCOMES``."""
    # NaN for a candidate that is gone: it is close to no number.
    here = {one.name: one.outcome for one in now.options}
    every = (
        RecordChange(one.name, format_amount(one.outcome, before.unit), format_amount(here[one.name], now.unit))
        if one.name in here
        else RecordChange(one.name, format_amount(one.outcome, before.unit), "")
        for one in before.options
        if not math.isclose(one.outcome, here.get(one.name, math.nan), rel_tol=1e-9)
    )
    yield from islice(every, MOST_OUTCOMES)


def format_changed_fields(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {normalize_digits(value)}" for name, value in fields.items())


def judge_past_decision(
    decision: Decision,
    changes: Sequence[object],
    now: Ranking | None,
    computed: bool,
    rules: Sequence[RuleTest],
    has_same_tokens: bool,
) -> Verification:
    answer = decision.answer
    if not has_same_tokens and TOKEN.search(answer):
        return Verification(answer, "cannot be said", "It names a masked value, whose token is made with another key.")
    if computed and now is None:
        return Verification(answer, "cannot be said", "The decision model does not run on the data of today.")
    # With a ranking, the candidate that wins today decides.
    if now is not None:
        if not now.options:
            return Verification(answer, "does not hold", "No candidate is allowed any more.")
        best = now.options[0]
        here = next((one for one in now.options if is_candidate_name(answer, one.name)), None)
        if any(is_candidate_name(answer, one) for one in (best.name, *now.ties)):
            words = f"It still has the {'largest' if now.goal == 'max' else 'smallest'} {now.measure}"
            return Verification(answer, "holds", f"{words}: {format_amount(best.outcome, now.unit)}.", best=best.name)
        stands = f"it has {format_amount(here.outcome, now.unit)}" if here else "it is ruled out"
        if broken := [f"{one.name} ({one.why})" for one in rules if one.state == "broken"]:
            stands += f"; it breaks {', '.join(broken)}"
        why = f"{best.name} wins with {now.measure} {format_amount(best.outcome, now.unit)}; of {answer}: {stands}."
        return Verification(answer, "does not hold", why, best=best.name)
    # Without one, the cited records decide.
    if not decision.evidence.ids:
        return Verification(answer, "cannot be said", "It cites no record.")
    if changes:
        return Verification(
            answer,
            "cannot be said",
            "Rows of the queries that it cites changed, and no decision model ranks: ask again.",
        )
    return Verification(answer, "holds", "Every record that it cites is as it was.")


def verification_lines(one: Verification) -> Iterator[str]:
    """Yield the verdict and its reason, and below them, indented, the changes."""
    yield f"{one.answer}: {one.state}. {one.why}"
    yield f"  {format_count(one.records, 'cited record')} read again, {format_count(len(one.changes), 'change')}."
    for change in one.changes:
        yield f"  [{change.id}] {change.before or 'nothing'} -> {change.after or 'not there'}"
    for outcome in one.outcomes:
        yield f"  {outcome.id}: {outcome.before} -> {outcome.after or 'no candidate that may be chosen'}"
    for query in one.others:
        yield f"  Beside those that it cites, other rows: {clean_one_line(query, 200)}"
    for fault in one.faults:
        yield f"  {fault}"
    for rule in one.rules:
        yield f"  rule {rule.name}: {rule.state}: {rule.why}"


NAME_THEM = "name the rows with --rows TABLE=CONDITION, and the masks with --mask TABLE.COLUMN"


def apply_recorded_policy(sources: Sources, origin: Sequence[DataSource]) -> Sources:
    """Return the sources with the rows and masks that held when a decision was made.

    Two sources that are the only ones of their form match by whatever name. Rules of the config file hold anyway.

    Args:
        origin: Data as the decision names them.

    Raises:
        SetupError: which rows they were is not known, or not for a file to say.
    """
    # A condition that is the config file's own holds anyway, and need not be checked.
    holds = {text for one in sources.places if one.connection for text in one.connection.rows.values()}
    rows: dict[str, str] = {}
    mask: list[str] = []
    for recorded in origin:
        name = match_source_name(recorded, origin, sources)
        if not name:
            continue
        for row in recorded.rows:
            if row.condition in holds:
                continue
            # A forged record would otherwise put SQL of its own into every statement that runs.
            if not is_plain_comparison(row.condition):
                raise SetupError(
                    f"Which rows of {row.table} were for who asked cannot be taken from this file: {NAME_THEM}."
                )
            # A table may have several conditions, and all of them hold.
            table = f"{name}.{row.table}"
            rows[table] = " AND ".join([*([rows[table]] if table in rows else []), f"({row.condition})"])
        mask += [f"{name}.{column}" for column in recorded.mask]
    reader = Reader(rows=tuple(rows.items()), mask=tuple(mask))
    return restrict_sources(sources, reader) if rows or mask else sources


def match_source_name(one: DataSource, origin: Sequence[DataSource], sources: Sources) -> str:
    """Return the name that a recorded source has among these sources, '' if it is not there."""
    was = [other for other in origin if other.form == one.form]
    here = [place.name for place in sources.places if place.form == one.form]
    return here[0] if len(was) == len(here) == 1 else one.name if one.name in here else ""


def is_plain_comparison(condition: str) -> bool:
    """Return whether a condition compares columns with values, and does nothing else.

    >>> (is_plain_comparison("region = 'EU' AND total >= 5"),
    ...     is_plain_comparison("id IN (1, 2)"), is_plain_comparison("email <> ?"))
    (True, True, False)
    >>> (is_plain_comparison("pg_read_file('x') = 'y'"), is_plain_comparison("id IN (SELECT id FROM other)"),
    ...     is_plain_comparison("a = '\\\\'"))
    (False, False, False)
    """
    import sqlglot
    from sqlglot import exp

    # An allow list: calls, subqueries, casts and whatever else sqlglot reads are refused.
    plain = (
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Neg,
        exp.Paren,
        exp.And,
        exp.Or,
        exp.Not,
        exp.EQ,
        exp.NEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.In,
        exp.Between,
        exp.Like,
        exp.Is,
    )
    if any(sign in condition for sign in ("\\", "--", "/*", "#", "$", ";")):  # what engines read in several ways
        return False
    try:
        tree = sqlglot.parse_one(condition)
    except sqlglot.errors.SqlglotError:
        return False
    # type(), not isinstance(): a subclass of these nodes may do more.
    return all(type(node) in plain for node in tree.walk())
