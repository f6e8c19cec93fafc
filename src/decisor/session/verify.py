"""An old decision computed again on the data of today, without an LM: which records changed, whether it still holds,
what wins now. No place that a trace names is opened, so the data are named again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from decisor.decision_models.model_tool import ModelTool
from decisor.decision_models.parse import parse
from decisor.decision_models.rule_tests import rule_tests
from decisor.decision_record.digests import row_digest, rows_digest
from decisor.decision_record.read import RecordFile
from decisor.decision_record.steps import cited_rows
from decisor.definitions.tool import NAME as DEFINITIONS
from decisor.errors import ModelMistake, SetupError
from decisor.rankings import amount
from decisor.session.data import Data
from decisor.session.modelling import ModellingTool
from decisor.session.past_decision import PastDecision, past_of, past_of_record
from decisor.session.verify_tools import again, tools_of
from decisor.session.whatif import InTurn
from decisor.techniques.shared.departure import names
from decisor.tools.databases.sandbox.policy import TOKEN
from decisor.trace.events import Entry
from decisor.types import Decision, Observation, Ranking, Record, RuleTest, Tool

MOST_OUTCOMES = 20
State = Literal["holds", "does not hold", "cannot be said"]


@dataclass(frozen=True)
class RecordChange:
    """A record that the decision cites. ``after`` is '' where it is gone, ``before`` and ``after`` what differs."""

    id: str
    before: str
    after: str


@dataclass(frozen=True)
class Verification:
    """``records``: how many were looked at again. ``best``: what wins now, '' where nothing ranks. ``rules``: tested on
    the old answer, where there is a decision model. ``others``: queries that bring other rows beside those that are
    cited, which are as they were. ``outcomes``: candidates whose outcome is another, by name. ``faults``: of a record,
    what in it is not as it was made."""

    answer: str
    state: State
    why: str
    records: int = 0
    changes: Sequence[RecordChange] = ()
    best: str = ""
    rules: Sequence[RuleTest] = ()
    others: Sequence[str] = ()
    outcomes: Sequence[RecordChange] = ()
    faults: Sequence[str] = ()


async def verify(entries: Sequence[Entry], data: Data) -> Verification:
    """Runs the queries again whose records are cited, and the ranking.

    Raises:
        SetupError: the trace holds no decision, or names a tool that is not here.
    """
    return await verified(past_of(entries), data)


async def verify_record(document: RecordFile, data: Data) -> Verification:
    """As ``verify``; a record that is not as it was made does not hold.

    Raises:
        SetupError: it holds no decision, or names a tool that is not here.
    """
    verdict = await verified(past_of_record(document.record), data)
    if not document.faults:
        return verdict
    return replace(verdict, state="does not hold", faults=document.faults,
                   why=f"The record is not as it was made. Of the data: {verdict.why}")  # fmt: skip


async def verified(past: PastDecision, data: Data) -> Verification:
    has_same_tokens = "" not in past.seeds and past.seeds >= {one.policy.seed for one in data.sources.places
                                                              if one.policy.mask}  # fmt: skip
    async with AsyncExitStack() as stack:
        tools = await tools_of(data, past, stack)
        changes: list[RecordChange] = []
        outcomes: list[RecordChange] = []
        others: list[str] = []
        count, is_computed = 0, False
        now: Ranking | None = None
        rules: Sequence[RuleTest] = ()
        for one in past.steps:
            action, before = one.step.action, one.step.observation
            if action.tool == DEFINITIONS and action.tool not in tools:
                continue
            after = await again(one, tools)
            cited = cited_rows(one.step, past.decision.evidence.ids)
            count += len(cited)
            new = list(differences(cited, after, has_same_tokens))
            changes += new
            if not new and one.digest and one.digest != rows_digest(after.records):
                others.append(f"{action.tool}: {action.input}")
            if one.ranks and before.ranking is not None and before.ranking.options:
                is_computed, now = True, after.ranking
                outcomes += outcome_changes(before.ranking, now) if now else []
                rules = await tested(tools[action.tool], action.input, past.decision.answer)
    verdict = judged(past.decision, [*changes, *others], now, is_computed, rules, has_same_tokens)
    if not has_same_tokens and (unseen := masked_columns(past)):
        note = f"Masked values ({', '.join(unseen)}) were not compared: the key of their tokens is not on this machine."
        verdict = replace(verdict, why=f"{verdict.why} {note}")
        if verdict.state == "holds" and now is None:
            verdict = replace(verdict, state="cannot be said")
    return replace(verdict, records=count, changes=changes, others=others, outcomes=outcomes, rules=rules)


def masked_columns(past: PastDecision) -> list[str]:
    """Return the columns of cited rows in which only tokens were seen."""
    rows = (row.fields for one in past.steps for row in cited_rows(one.step, past.decision.evidence.ids))
    return sorted({str(name) for fields in rows for name, value in fields.items() if TOKEN.search(str(value))})


async def tested(tool: Tool, text: str, answer: str) -> Sequence[RuleTest]:
    """The rules of the model on the old answer; none where it is no candidate today."""
    try:
        if isinstance(tool, ModellingTool):
            async with tool.opened(parse(text.partition("\n")[2])) as machine:
                return await asyncio.to_thread(rule_tests, machine, answer)
        if isinstance(tool, InTurn) and isinstance(tool.tool, ModelTool):
            return await asyncio.to_thread(rule_tests, tool.tool.model, answer)
    except (ModelMistake, SetupError):
        pass
    return ()


def differences(cited: Sequence[Record], after: Observation, has_same_tokens: bool = False) -> Iterator[RecordChange]:
    """Records that are not there today as they were. One with the same first cell is the same record, changed."""
    here = {row_digest(record.fields, record.text, has_same_tokens) for record in after.records}
    for record in cited:
        fields = dict(record.fields)
        if row_digest(fields, record.text, has_same_tokens) in here:
            continue
        key = next(iter(fields.values()), None)
        same = next(
            (one.fields for one in after.records if fields and next(iter(one.fields.values()), None) == key), None
        )
        if same is None:
            yield RecordChange(record.id, record.text[:200] or in_words(fields), "")
            continue
        names_ = [name for name in fields if fields[name] != same.get(name)]
        yield RecordChange(record.id, in_words({name: fields[name] for name in names_}),
                     in_words({name: same.get(name) for name in names_}))  # fmt: skip


def outcome_changes(before: Ranking, now: Ranking) -> Iterator[RecordChange]:
    """Candidates whose outcome is another today, the first ones."""
    here = {one.name: one.outcome for one in now.options}
    every = (RecordChange(one.name, amount(one.outcome, before.unit), amount(here[one.name], now.unit))
             if one.name in here else RecordChange(one.name, amount(one.outcome, before.unit), "")
             for one in before.options
             if not math.isclose(one.outcome, here.get(one.name, math.nan), rel_tol=1e-9))  # fmt: skip
    yield from islice(every, MOST_OUTCOMES)


def in_words(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def judged(
    decision: Decision, changes: Sequence[object], now: Ranking | None, computed: bool, rules: Sequence[RuleTest],
    has_same_tokens: bool,
) -> Verification:  # fmt: skip
    answer = decision.answer
    if not has_same_tokens and TOKEN.search(answer):
        return Verification(answer, "cannot be said", "It names a masked value, whose token is made with another key.")
    if computed and now is None:
        return Verification(answer, "cannot be said", "The decision model does not run on the data of today.")
    if now is not None:
        if not now.options:
            return Verification(answer, "does not hold", "No candidate is allowed any more.")
        best = now.options[0]
        here = next((one for one in now.options if names(answer, one.name)), None)
        if any(names(answer, one) for one in (best.name, *now.ties)):
            words = f"It still has the {'largest' if now.goal == 'max' else 'smallest'} {now.measure}"
            return Verification(answer, "holds", f"{words}: {amount(best.outcome, now.unit)}.", best=best.name)
        stands = f"it has {amount(here.outcome, now.unit)}" if here else "it is ruled out"
        if broken := [f"{one.name} ({one.why})" for one in rules if one.state == "broken"]:
            stands += f"; it breaks {', '.join(broken)}"
        why = f"{best.name} wins with {now.measure} {amount(best.outcome, now.unit)}; of {answer}: {stands}."
        return Verification(answer, "does not hold", why, best=best.name)
    if not decision.evidence.ids:
        return Verification(answer, "cannot be said", "It cites no record.")
    if changes:
        return Verification(answer, "cannot be said", "Rows of the queries that it cites changed, and no decision "
                            "model ranks: ask again.")  # fmt: skip
    return Verification(answer, "holds", "Every record that it cites is as it was.")
