"""``decisor approve``: a person stands behind a decision, refuses it, or takes that back."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from decisor.decision_record.approving import ApprovalChange, change_of
from decisor.errors import SetupError
from decisor.private_file import changing


def command(
    which: Annotated[str, typer.Argument(metavar="N|last|RECORD.json", help="A run of the history, or a record.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who approves.")] = "",
    note: Annotated[
        str, typer.Option("--note", metavar="WORDS", help="On what condition; of --refuse and --withdraw, why.")
    ] = "",
    refuse: Annotated[
        bool, typer.Option("--refuse", help="Say that this person does not approve, and with --note why.")
    ] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the approval of this person back.")] = False,
) -> None:
    """Approve a decision: the approval is of its record as it is, and stands in it with its date."""
    if not by.strip():
        raise SetupError("Who approves? Name a person: --by NAME")
    if refuse and withdraw:
        raise SetupError("Is it refused, or is something taken back? Name one of --refuse and --withdraw.")
    path, change = Path(which), change_of(by, note, withdraw, refuse)
    what = in_file(path, change) if path.is_file() else in_history(which, change)
    done = "withdrawn" if withdraw else "refused" if refuse else "approved"
    print(f"{what} is {done} by {by.strip()}.", file=sys.stderr)


def in_history(which: str, change: ApprovalChange) -> str:
    from decisor.cli.history import run_named
    from decisor.decision_record.of_run import change_approvals
    from decisor.history.store import History

    history = History()
    run = run_named(history, which)
    record = change_approvals(history, run.number, run.owner, change)
    return f"Run {run.number} ({record.digest[:12]}…)"


def in_file(path: Path, change: ApprovalChange) -> str:
    from decisor.decision_record.read import read_record, save

    with changing(path):
        document = read_record(path)
        if document.faults:
            raise SetupError(f"{path} is not as it was made: {document.faults[0]}")
        record = document.record
        save(replace(record, approvals=change(record.approvals, record.digest)), path)
    return f"{path} ({record.digest[:12]}…)"
