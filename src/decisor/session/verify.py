"""An old decision computed again on the data of today, without an LM: which records changed, whether it still holds,
what wins now. A trace names no data, so they are named again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from decisor.decision_models.parse import parse
from decisor.decision_models.rule_tests import RuleTest, rule_tests
from decisor.definitions.tool import NAME as DEFINITIONS
from decisor.definitions.tool import Brought
from decisor.errors import ModelMistake, SetupError, ToolError
from decisor.rankings import amount
from decisor.session.data import Data
from decisor.session.modelling import ModellingTool
from decisor.session.whatif import from_question
from decisor.techniques.shared.departure import names
from decisor.trace.events import ActionResult, ActionStart, Conclusion, Entry, RunStart, events_of
from decisor.types import Decision, Observation, Question, Ranking, Record, Tool

MODELLING, WHATIF = "decision_model", "whatif"
State = Literal["holds", "does not hold", "cannot be said"]


@dataclass(frozen=True)
class Change:
    """A record that the decision cites. ``after`` is '' where it is gone, ``before`` and ``after`` what differs."""

    id: str
    before: str
    after: str


@dataclass(frozen=True)
class Verification:
    """``records``: how many were looked at again. ``best``: what wins now, '' where nothing ranks. ``rules``: tested on
    the old answer, where there is a decision model."""

    answer: str
    state: State
    why: str
    records: int = 0
    changes: Sequence[Change] = ()
    best: str = ""
    rules: Sequence[RuleTest] = ()


async def verify(entries: Sequence[Entry], data: Data) -> Verification:
    """Runs the queries again whose records are cited, and the last ranking.

    Raises:
        SetupError: the trace holds no decision, or names a tool that is not here.
    """
    decision = last_decision(entries)
    start = next(events_of(entries, RunStart), None)
    tools = await tools_of(data, entries, start.question if start else Question(""))
    changes: list[Change] = []
    ranking: tuple[Observation, Observation] | None = None
    rules: Sequence[RuleTest] = ()
    count = 0
    for action, before in steps(entries):
        cited = [record for record in before.records if record.id in decision.evidence.ids]
        if (not cited and before.ranking is None) or (action.tool == DEFINITIONS and action.tool not in tools):
            continue
        after = await again(action, tools)
        count += len(cited)
        changes += differences(cited, after)
        if before.ranking is not None and before.ranking.options:
            ranking = before, after
            if action.tool == MODELLING:
                rules = await tested(tools[MODELLING], action.input.partition("\n")[2], decision.answer)
    verdict = judged(decision, changes, ranking[1].ranking if ranking else None, ranking is not None, rules)
    return replace(verdict, records=count, changes=changes, rules=rules)


def last_decision(entries: Sequence[Entry]) -> Decision:
    decision = None
    for conclusion in events_of(entries, Conclusion):
        decision = conclusion.decision
    if decision is None or not decision.answer:
        raise SetupError("There is no decision in this trace, so there is nothing to verify.")
    return decision


def steps(entries: Sequence[Entry]) -> Iterator[tuple[ActionStart, Observation]]:
    """What was done, and what came of it."""
    starts = {entry.id: entry.event for entry in entries if isinstance(entry.event, ActionStart)}
    for result in events_of(entries, ActionResult):
        if (start := starts.get(result.action)) is not None and not result.observation.error:
            yield start, result.observation


async def tools_of(data: Data, entries: Sequence[Entry], question: Question) -> Mapping[str, Tool]:
    """Those at hand, and the decision models that the trace names.

    Raises:
        SetupError: a tool of the trace is not here.
    """
    tools = {tool.name: tool for tool in data.tools}
    needed = {action.tool for action, _ in steps(entries)} - {"think", "person", "calculator", DEFINITIONS}
    if MODELLING in needed and data.databases:
        tools[MODELLING] = ModellingTool(data.databases[0], trials=0)
    if WHATIF in needed and WHATIF not in tools and (tool := await from_question(question, data.databases)):
        tools[WHATIF] = tool
    if data.definitions:
        files = tuple(data.definitions.values())
        tools[DEFINITIONS] = Brought([one for file in files for one in file], files)
    if missing := sorted(needed - tools.keys()):
        flags = "--db, --graph, --docs or --model"
        raise SetupError(f"The decision rests on {', '.join(missing)}: name the same data again with {flags}.")
    return tools


async def again(action: ActionStart, tools: Mapping[str, Tool]) -> Observation:
    """What a query brings today; nothing where it fails."""
    if action.tool not in tools:
        return Observation(error=True)
    try:
        return await tools[action.tool].call(action.input)
    except ToolError as error:
        return Observation(note=str(error), error=True)


async def tested(tool: Tool, model: str, answer: str) -> Sequence[RuleTest]:
    """The rules of the model on the old answer; none where it is no candidate today."""
    assert isinstance(tool, ModellingTool)
    try:
        async with tool.opened(parse(model)) as machine:
            return await asyncio.to_thread(lambda: rule_tests(machine, answer))
    except (ModelMistake, SetupError):
        return ()


def differences(cited: Sequence[Record], after: Observation) -> Iterator[Change]:
    """Records that are not there today as they were. One with the same first cell is the same record, changed."""
    here = [content(record) for record in after.records]
    for record in cited:
        fields = dict(record.fields)
        if content(record) in here:
            continue
        key = next(iter(fields.values()), None)
        same = next(
            (one.fields for one in after.records if fields and next(iter(one.fields.values()), None) == key), None
        )
        if same is None:
            yield Change(record.id, record.text[:200] or in_words(fields), "")
            continue
        names_ = [name for name in fields if fields[name] != same.get(name)]
        yield Change(record.id, in_words({name: fields[name] for name in names_}),
                     in_words({name: same.get(name) for name in names_}))  # fmt: skip


def content(record: Record) -> tuple[object, ...]:
    return (tuple(record.fields.items()), record.text)


def in_words(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items())


def judged(
    decision: Decision, changes: Sequence[Change], now: Ranking | None, computed: bool, rules: Sequence[RuleTest]
) -> Verification:
    answer = decision.answer
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
        return Verification(answer, "cannot be said", "Records that it cites changed, and no decision model ranks: ask "
                            "again.")  # fmt: skip
    return Verification(answer, "holds", "Every record that it cites is as it was.")
