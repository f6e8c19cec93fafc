"""Runs as a client reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from decisor.history.past_run import PastRun
from decisor.plurals import counted
from decisor.server.live import LiveRun, state_of
from decisor.server.responses import ChangeReply, Mark, RunLine, RunReply, Waiting, WaitingWords
from decisor.session.recorded import recorded_result
from decisor.trace.events import ActionResult, ActionStart, Entry, Plan, PlanChange, events_of
from decisor.trace.graph_events import GraphPlan
from decisor.types import Observation

Step = tuple[str, str]


def fields_of(past: PastRun) -> dict[str, Any]:
    state, before = state_of(past), str(past.before or "")
    mark = past.mark
    return {
        "id": str(past.number), "owner": past.owner, "state": state, "question": past.question.text,
        "rules": past.question.rules, "goal": past.question.goal, "technique": past.technique, "lm": past.lm,
        "began": datetime.fromtimestamp(past.began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "seconds": past.seconds,
        "entries": past.entries, "usage": past.usage, "answer": past.answer,
        "stopped": "" if state in ("running", "stopped") else past.state,
        "error": past.why if state in ("failed", "stopped") else "",
        "follows": "" if past.edit else before, "changed_from": before if past.edit else "", "edit": dict(past.edit),
        "mark": Mark(mark=mark.verdict, answer=mark.answer, note=mark.came_of) if mark else None,
    }  # fmt: skip


def line_of_past(past: PastRun) -> RunLine:
    return RunLine(**fields_of(past))


def live_fields(live: LiveRun) -> dict[str, Any]:
    own = {"id": live.id, "state": live.state, "connections": live.connections, "entries": len(live.entries)}
    if not live.is_over:
        own |= {"seconds": round(live.seconds, 3), "usage": live.spent, "stopped": ""}
    return {**fields_of(live.past), **own}


def line_of(live: LiveRun) -> RunLine:
    return RunLine(**live_fields(live))


def reply_of(live: LiveRun, with_result: bool = True) -> RunReply:
    approvals = tuple(Waiting(number=one.number, tool=one.action.tool, input=one.action.input) for one in live.waiting)
    readings = tuple(WaitingWords(number=one.number, words=one.reading.words, choices=tuple(one.reading.choices),
                                  asks=one.reading.asks)
                     for one in live.readings.values() if not one.reply.done())  # fmt: skip
    has_result = with_result and live.is_over and live.past.state not in ("interrupted", "running") and live.entries
    result = recorded_result(live.entries).as_object() if has_result else None
    return RunReply(**live_fields(live), approvals=approvals, readings=readings, result=result)


def changes_of(before: Sequence[Entry], after: Sequence[Entry]) -> tuple[ChangeReply, ...]:
    """What was done and what came back, in both, side by side."""
    olds, news = list(steps_of(before)), list(steps_of(after))
    match = difflib.SequenceMatcher(a=[one[0] for one in olds], b=[one[0] for one in news], autojunk=False)
    changes = plan_changes(before, after)
    many = len(changes)
    for kind, start, end, new_start, new_end in match.get_opcodes():
        for at in range(max(end - start, new_end - new_start)):
            old = olds[start + at] if start + at < end else None
            new = news[new_start + at] if new_start + at < new_end else None
            changes.append(change_of(len(changes) - many + 1, old, new, kind == "equal"))
    return tuple(changes)


def plan_changes(before: Sequence[Entry], after: Sequence[Entry]) -> list[ChangeReply]:
    """Of the plans that differ, by the step after which they were made."""
    olds, news = plans_of(before), plans_of(after)
    names = [name for name in {**olds, **news} if olds.get(name) != news.get(name)]
    how = {name: "added" if name not in olds else "removed" if name not in news else "changed" for name in names}
    return [ChangeReply.model_validate({"at": name, "before": olds.get(name, ""), "after": news.get(name, ""),
                                        "how": how[name]}) for name in names]  # fmt: skip


def plans_of(entries: Sequence[Entry]) -> dict[str, str]:
    """What each plan is called -> its steps, on lines of their own."""
    plans: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case Plan(steps=steps) | GraphPlan(steps=steps):
                plans["plan"] = "\n".join(steps)
            case PlanChange(after_step=after, steps=steps):
                plans[f"plan after step {after}"] = "\n".join(steps)
            case _:
                pass
    return plans


def change_of(at: int, old: Step | None, new: Step | None, same_action: bool) -> ChangeReply:
    before, after = ("\n-> ".join(one) if one else "" for one in (old, new))
    how = "added" if old is None else "removed" if new is None else "same" if same_action and old == new else "changed"
    return ChangeReply.model_validate({"at": str(at), "before": before, "after": after, "how": how})


def steps_of(entries: Sequence[Entry]) -> Iterator[Step]:
    """Each action, and what came of it in a few words."""
    results = {result.action: result.observation for result in events_of(entries, ActionResult)}
    for entry in entries:
        if isinstance(entry.event, ActionStart):
            came = results.get(entry.id)
            yield f"{entry.event.tool}: {entry.event.input}", "" if came is None else came_of(came)


def came_of(observation: Observation) -> str:
    if observation.records and not observation.error:
        return counted(len(observation.records), "record")
    return observation.note
