"""What a trace shows of any run, whatever the benchmark: marks to count by.

    unread_reply   a reply could not be read and went back to the model
    unknown_tool   a reply or an action named a tool that does not exist
    failed_action  an action was refused or failed
    cut_off        an action was under way when a limit ended the run

A benchmark's own failure classes stand beside these. How many runs with a mark came out right is its fix ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.trace.events import ActionResult, ActionStart, Entry, UnreadableReply, events_of

NO_TOOL = ("There is no tool", "There is no function")


def marks(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Each mark once, in the order above."""
    names = set(_met(entries))
    return tuple(name for name in ("unread_reply", "unknown_tool", "failed_action", "cut_off") if name in names)


def _met(entries: Sequence[Entry]) -> Iterator[str]:
    complete = {result.action for result in events_of(entries, ActionResult)}
    for entry in entries:
        match entry.event:
            case UnreadableReply(reason=reason):
                yield "unread_reply"
                if reason == "unknown_tool":
                    yield "unknown_tool"
            case ActionStart() if entry.id not in complete:
                yield "cut_off"
            case ActionResult(observation=observation) if observation.error:
                yield "unknown_tool" if observation.note.startswith(NO_TOOL) else "failed_action"
