"""A run of the history, as the result that it was."""

from __future__ import annotations

from dataclasses import replace

from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.recording import Keeping
from decisor.history.store import History
from decisor.session.recorded import recorded_result
from decisor.session.result import Result
from decisor.trace.events import RunStart, events_of
from decisor.types import Decision


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
