"""``decisor approve``: a person stands behind a decision, or takes that back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from decisor.decision_record.approving import approved, withdrawn
from decisor.errors import SetupError
from decisor.history.past_run import Approval

Change: TypeAlias = Callable[[Sequence[Approval], str], tuple[Approval, ...]]


def command(
    which: Annotated[str, typer.Argument(metavar="N|last|RECORD.json", help="A run of the history, or a record.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who approves.")] = "",
    note: Annotated[str, typer.Option("--note", metavar="WORDS", help="On what condition; of --withdraw, why.")] = "",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the approval of this person back.")] = False,
) -> None:
    """Approve a decision: the approval is of its record as it is, and stands in it with its date."""

    def change(approvals: Sequence[Approval], content: str) -> tuple[Approval, ...]:
        return withdrawn(approvals, by, note) if withdraw else approved(approvals, content, by, note)

    path = Path(which)
    what = in_file(path, change) if path.is_file() else in_history(which, change)
    done = "no longer approved" if withdraw else "approved"
    print(f"{what} is {done} by {by.strip()}.", file=sys.stderr)


def in_history(which: str, change: Change) -> str:
    from decisor.cli.history import run_named
    from decisor.history.store import History
    from decisor.session.past import past_result

    history = History()
    run = run_named(history, which)
    if not run.answer:
        raise SetupError(f"Run {run.number} has no answer that could be approved.")
    record = past_result(history, run).record()
    history.approve(run.number, change(run.approvals, record.digest))
    return f"Run {run.number} ({record.digest[:12]}…)"


def in_file(path: Path, change: Change) -> str:
    from decisor.decision_record.read import read_record

    document = read_record(path)
    if document.faults:
        raise SetupError(f"{path} is not as it was made: {document.faults[0]}")
    record = document.record
    replace(record, approvals=change(record.approvals, record.digest)).save(path)
    return f"{path} ({record.digest[:12]}…)"
