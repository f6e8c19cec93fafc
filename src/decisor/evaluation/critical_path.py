"""How long a case has to take however much runs at once."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.trace.events import ActionResult, ActionStart, Entry, LMCall


def critical(entries: Sequence[Entry]) -> float:
    """Seconds along the longest chain of calls and actions that waited for each other.

    A call may have waited for everything that had ended when it began; that is read from the order of entries, not
    from the clock, so a replayed run gives the same.
    """
    longest = [0.0]  # until the entry of each id
    began: dict[int, float] = {}
    for entry in entries:
        until = longest[-1]
        match entry.event:
            case ActionStart():
                began[entry.id] = until
            case ActionResult(action=action, seconds=seconds):
                until = max(until, began.get(action, 0.0) + seconds)
            case LMCall(usage=usage, since=since):
                since = min(entry.id - 1 if since is None else since, len(longest) - 1)
                until = max(until, longest[since] + usage.seconds)
        longest.append(until)
    return longest[-1]
