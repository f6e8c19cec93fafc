"""The record of a run, and the approvals that are kept with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.decision_record.approving import ApprovalChange
from decisor.decision_record.build import record_of
from decisor.decision_record.format import DecisionRecord
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.store import History
from decisor.trace.events import Entry


def record_of_run(run: PastRun, entries: Sequence[Entry]) -> DecisionRecord:
    """``entries``: its trace."""
    return record_of(entries, run.number, run.approvals, run.owner)


def change_approvals(history: History, number: int, owner: str, change: ApprovalChange) -> DecisionRecord:
    """The record with its approvals as they are after that.

    Raises:
        SetupError: it holds no decision, or nobody may change them so.
    """
    record = record_of_run(history.read(number, owner), history.entries(number, owner))
    if not record.content.decision.answer:
        raise SetupError(f"Run {number} has no answer that could be approved.")

    def change_run(run: PastRun) -> PastRun:
        return replace(run, approvals=change(run.approvals, record.digest))

    return replace(record, approvals=history.change(number, owner, change_run).approvals)
