"""Runs as a client reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from decisor.server.live import LiveRun
from decisor.server.responses import ChangeReply, RunLine, RunReply, UsageReply, Waiting
from decisor.session.recorded import recorded_result
from decisor.trace.events import ActionResult, ActionStart, Entry, RunStart, RunUsage, events_of
from decisor.types import Usage

Step = tuple[str, str]


def usage_reply(usage: Usage) -> UsageReply:
    return UsageReply(**asdict(usage))


def line_fields(live: LiveRun) -> dict[str, Any]:
    about, start = live.about, next(events_of(live.entries, RunStart), None)
    conclusion = live.conclusion
    usages = list(events_of(live.entries, RunUsage))
    return {
        "id": about.id, "state": live.state, "question": about.question, "rules": about.rules, "goal": about.goal,
        "connections": about.connections, "technique": start.technique if start else about.technique,
        "lm": start.lm if start else about.lm, "began": about.began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": round(live.took, 3), "entries": len(live.entries),
        "usage": usage_reply(usages[-1].usage if usages else live.spent),
        "answer": conclusion.decision.answer if conclusion else "",
        "stopped": conclusion.decision.stopped if conclusion else "", "error": live.error, "follows": about.follows,
        "changed_from": about.changed_from, "edit": about.edit,
    }  # fmt: skip


def line_of(live: LiveRun) -> RunLine:
    return RunLine(**line_fields(live))


def reply_of(live: LiveRun, with_result: bool = True) -> RunReply:
    approvals = tuple(Waiting(number=one.number, tool=one.action.tool, input=one.action.input) for one in live.waiting)
    result = recorded_result(live.entries).as_object() if with_result and live.is_over and live.conclusion else None
    return RunReply(**line_fields(live), approvals=approvals, result=result)


def changes_of(before: Sequence[Entry], after: Sequence[Entry]) -> tuple[ChangeReply, ...]:
    """What was done and what came back, in both, side by side."""
    olds, news = list(steps_of(before)), list(steps_of(after))
    match = difflib.SequenceMatcher(a=[one[0] for one in olds], b=[one[0] for one in news], autojunk=False)
    changes: list[ChangeReply] = []
    for kind, start, end, new_start, new_end in match.get_opcodes():
        rows = max(end - start, new_end - new_start)
        for at in range(rows):
            old = olds[start + at] if start + at < end else None
            new = news[new_start + at] if new_start + at < new_end else None
            changes.append(change_of(len(changes) + 1, old, new, kind == "equal"))
    return tuple(changes)


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


def came_of(observation: Any) -> str:
    from decisor.plurals import counted

    if observation.records and not observation.error:
        return counted(len(observation.records), "record")
    return str(observation.note)
