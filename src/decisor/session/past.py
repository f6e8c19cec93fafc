"""A run of the history, as the result that it was."""

from __future__ import annotations

from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.recording import Keeping
from decisor.history.store import History
from decisor.session.data import records_of
from decisor.session.result import Result
from decisor.trace.events import Conclusion, RunStart, RunUsage, events_of
from decisor.types import Decision


def past_result(history: History, run: PastRun) -> Result:
    """Of a run that came to no decision: one without an answer, that says why.

    Raises:
        SetupError: its trace is gone or cannot be read.
    """
    entries = history.entries(run.number, run.owner)
    start = next(events_of(entries, RunStart), None)
    if start is None:
        raise SetupError(f"The trace of run {run.number} is empty. Take it out: decisor history --delete {run.number}")
    decisions = [one.event.decision for one in entries if isinstance(one.event, Conclusion) and not one.span]
    decision = decisions[-1] if decisions else Decision("", reasons=(why_of(run),), stopped="failed")
    usage = next((one.usage for one in events_of(entries, RunUsage)), run.usage)
    return Result(
        question=start.question, decision=decision, technique=start.technique, lm=start.lm, usage=usage,
        records=records_of(decision, entries), settings=start.settings, trace=entries,
        keeping=Keeping(history, run.owner, run.inputs, run.before, run.number),
    )  # fmt: skip


def why_of(run: PastRun) -> str:
    return run.why or {"running": "It runs.", "interrupted": "It was interrupted."}.get(run.state, "It failed.")
