"""How long a case has to take however much runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decisor.trace.events import Event
from decisor.types import Usage


def critical(events: Sequence[Event]) -> float:
    """Seconds along the longest chain of calls and actions that waited for each other.

    A call may have waited for everything that had ended when it began; that is read from the order of events, not
    from the clock, so a replayed run gives the same.
    """
    longest = [0.0]  # until the event of each id
    began: dict[int, float] = {}
    for event in events:
        until = longest[-1]
        if event.kind == "action":
            began[event.id] = until
        elif event.kind == "observation":
            until = max(until, began.get(event.data.get("action", 0), 0.0) + float(event.data.get("seconds", 0.0)))
        elif event.kind == "lm":
            since = min(int(event.data.get("since", event.id - 1)), len(longest) - 1)
            until = max(until, longest[since] + seconds_of(event.data["usage"]))
        longest.append(until)
    return longest[-1]


def seconds_of(usage: Usage | Mapping[str, float]) -> float:
    """Of an event as it happened, or as it was read back."""
    return usage.seconds if isinstance(usage, Usage) else float(usage["seconds"])
