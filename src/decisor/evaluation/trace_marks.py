"""What a trace shows of any run, whatever the benchmark: marks to count by.

    unread_reply   a reply could not be read and went back to the model
    unknown_tool   a reply or an action named a tool that does not exist
    failed_action  an action was refused or failed
    cut_off        an action was under way when a limit ended the run

A benchmark's own failure classes stand beside these. How many runs with a mark came out right is its fix ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from decisor.trace.events import Event

NO_TOOL = ("There is no tool", "There is no function")


def marks(events: Sequence[Event]) -> tuple[str, ...]:
    """Each mark once, in the order above."""
    names = set(_met(events))
    return tuple(name for name in ("unread_reply", "unknown_tool", "failed_action", "cut_off") if name in names)


def _met(events: Sequence[Event]) -> Iterator[str]:
    observed_actions = {event.data.get("action") for event in events if event.kind == "observation"}
    for event in events:
        if event.kind == "note" and event.data.get("problem") == "reply":
            yield "unread_reply"
            if event.data.get("reason") == "unknown_tool":
                yield "unknown_tool"
        elif event.kind == "action" and event.id not in observed_actions:
            yield "cut_off"
        elif event.kind == "observation":
            error, note = _ended(event.data.get("observation"))
            if error:
                yield "unknown_tool" if note.startswith(NO_TOOL) else "failed_action"


def _ended(observation: Any) -> tuple[bool, str]:
    """Whether it failed, and its note; of an observation or of what a store kept of it."""
    if isinstance(observation, dict):
        return bool(observation.get("error")), str(observation.get("note", ""))
    return bool(getattr(observation, "error", False)), str(getattr(observation, "note", ""))
