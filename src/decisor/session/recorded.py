"""A result from the entries of a run that is over, whoever kept them; or from a run of the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.recording import Keeping
from decisor.history.store import History
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


def past_result(history: History, run: PastRun) -> Result:
    """Of a run that came to no decision: one without an answer, that says why.

    Raises:
        SetupError: its trace is gone or cannot be read.
    """
    entries = history.entries(run.number, run.owner)
    if next(events_of(entries, RunStart), None) is None:
        raise SetupError(f"The trace of run {run.number} is empty. Take it out: decisor history --delete {run.number}")
    none = Decision("", reasons=(why_of(run),), stopped="failed")
    keeping = Keeping(history, run.owner, run.inputs, run.before, run.number)
    return replace(recorded_result(entries, none, run.usage), keeping=keeping)


def why_of(run: PastRun) -> str:
    return run.why or {"running": "It runs.", "interrupted": "It was interrupted."}.get(run.state, "It failed.")
