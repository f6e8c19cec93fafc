"""A result from the entries of a run that is over, whoever kept them."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.session.result import Result
from decisor.trace.events import Conclusion, Entry, RunStart, RunUsage, events_of, records_of
from decisor.types import Decision, Question, Usage

NO_DECISION, NOTHING = Decision("", stopped="failed"), Usage()


def recorded_result(entries: Sequence[Entry], otherwise: Decision = NO_DECISION, cost: Usage = NOTHING) -> Result:
    """``otherwise``: where it came to no decision; ``cost``: where it does not say what it cost."""
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    decisions = [one.event.decision for one in entries if isinstance(one.event, Conclusion) and not one.span]
    decision = decisions[-1] if decisions else otherwise
    usages = list(events_of(entries, RunUsage))
    usage = usages[-1].usage if usages else cost
    return Result(start.question, decision, start.technique, start.lm, usage, records_of(decision, entries),
                  start.settings, tuple(entries))  # fmt: skip
