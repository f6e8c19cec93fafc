"""The record of a run of the history, and the approvals that are kept with it."""

from __future__ import annotations

from dataclasses import replace

from decisor.decision_record.approving import Change
from decisor.decision_record.build import record_of
from decisor.decision_record.format import DecisionRecord
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.store import History


def record_of_run(history: History, run: PastRun) -> DecisionRecord:
    return record_of(history.entries(run.number, run.owner), run.number, run.approvals, run.owner)


def change_approvals(history: History, number: int, owner: str, change: Change) -> DecisionRecord:
    """The record with its approvals as they are after that.

    Raises:
        SetupError: it holds no decision, or nobody may change them so.
    """
    run = history.read(number, owner)
    record = record_of_run(history, run)
    if not record.content.decision.answer:
        raise SetupError(f"Run {number} has no answer that could be approved.")
    changed = history.approve(number, lambda approvals: change(approvals, record.digest), owner)
    return replace(record, approvals=changed.approvals)
