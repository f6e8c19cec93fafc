"""``decisor history record``, ``approve`` and ``verify``: the record of a decision, its approvals, and old decisions
computed again.

A person approves a decision, refuses it, or takes that back. ``verify`` computes old decisions again without an LLM,
for a scheduler; its exit code is the verdict.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.output import Exit, print_json
from decisor.cli.request_options import takes_request
from decisor.decision_record.approvals import Act, ApprovalChange, make_approval_change
from decisor.errors import SetupError
from decisor.history.store import History, PastRun
from decisor.session.request import REUSE, AskRequest, read_kept_request
from decisor.system.storage import lock_folder

if TYPE_CHECKING:
    from decisor.decision_record.page import RecordFile
    from decisor.session.sources import Sources
    from decisor.session.verify import Verification
    from decisor.trace.events import DataSource, TraceEntry


def record_command(
    file: Annotated[Path | None, typer.Argument(metavar="RECORD.json", help="Decision record.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the record as an HTML page.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of records.")] = False,
) -> None:
    """Write a decision record as a page, or print the JSON Schema of records.

    To make a record, add --record FILE to decisor ask, decisor history show N or decisor trace FILE.
    """
    if schema:
        from decisor.decision_record.record import published_schema

        print(published_schema(), end="")
        return
    if file is None or html is None:
        raise SetupError(
            "Write: decisor history record RECORD.json --html PAGE.html, or decisor history record --schema"
        )
    from decisor.decision_record.page import read_record, write_record

    document = read_record(file)
    for fault in document.faults:
        print(f"decisor: {fault}", file=sys.stderr)
    write_record(document.record, html)


def approve_command(
    which: Annotated[str, typer.Argument(metavar="N|last|RECORD.json", help="Saved run, or record file.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Name of the approver.")] = "",
    note: Annotated[
        str, typer.Option("--note", metavar="WORDS", help="Condition, or reason of --refuse or --withdraw.")
    ] = "",
    refuse: Annotated[bool, typer.Option("--refuse", help="Record a refusal instead.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw the approval of this person.")] = False,
    review: Annotated[str, typer.Option("--review", metavar="DATE", help="Day to look at it again.")] = "",
) -> None:
    """Approve a decision. The approval is saved in its record, with the date."""
    if not by.strip():
        raise SetupError("No approver given. Name one: --by NAME")
    if refuse and withdraw:
        raise SetupError("Give only one of --refuse and --withdraw.")
    act: Act = "withdraw" if withdraw else "refuse" if refuse else "approve"
    path, change = Path(which), make_approval_change(by, note, act, review=review)
    what = approve_in_file(path, change) if path.is_file() else approve_in_history(which, change)
    done = "withdrawn" if withdraw else "refused" if refuse else "approved"
    print(f"{what} is {done} by {by.strip()}.", file=sys.stderr)


def find_named_run(history: History, text: str) -> PastRun:
    """Return the run with a number, or the one named ``last``; raise SetupError if there is none."""
    if text != "last" and not (text.isdecimal() and int(text)):
        raise SetupError(f"A run is named by its number, or last, not {text!r}. See: decisor history")
    return history.read(0 if text == "last" else int(text))


def approve_in_history(which: str, change: ApprovalChange) -> str:
    from decisor.decision_record.build import change_approvals

    history = History()
    run = find_named_run(history, which)
    record = change_approvals(history, run.number, run.owner, change)
    return f"Run {run.number} ({record.digest[:12]}…)"


def approve_in_file(path: Path, change: ApprovalChange) -> str:
    from decisor.decision_record.page import read_record, write_record

    # Of two processes that approve at once, one would otherwise write over the other's approval.
    with lock_folder(path):
        document = read_record(path)
        if document.faults:
            raise SetupError(f"{path} was changed after it was made: {document.faults[0]}")
        record = document.record
        write_record(replace(record, approvals=change(record.approvals, record.digest)), path)
    return f"{path} ({record.digest[:12]}…)"


SQLITE = b"SQLite format 3\0"
CODES = {"holds": Exit.ANSWERED, "does not hold": Exit.FAILED, "cannot be said": Exit.NO_ANSWER}


@takes_request(*(name for name, reuse in REUSE.items() if reuse.verified))
def verify_command(
    request: AskRequest,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE|RECORD|N|last|STORE...",
            help="Traces, records of decisions, folders of them, "
            "runs of the history by number, or run stores of an evaluation.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Compute old decisions again without an LLM: changed records, verdict, and the best candidate now.

    The data of a saved run are known. The exit code is 0 if all hold, 1 if one does not, 4 if it cannot be said.
    """
    from decisor.sandbox.wire import number_repeated_names
    from decisor.session.config import resolve_config
    from decisor.session.open_sources import sources_of_request
    from decisor.system.serialization import json_value

    sources = sources_of_request(request, resolve_config()) if request.names_data or request.model else None
    verdicts = asyncio.run(verify_runs([one for place in runs for one in find_old_runs(place)], sources))
    if as_json:
        names = number_repeated_names(name for name, _ in verdicts)
        print_json({name: json_value(one) for name, (_, one) in zip(names, verdicts, strict=True)})
    for name, one in [] if as_json else verdicts:
        print_verification(name, one)
    states = [CODES[one.state] for _, one in verdicts]
    # The worst verdict is the exit code.
    raise typer.Exit(next((code for code in (Exit.FAILED, Exit.NO_ANSWER) if code in states), Exit.ANSWERED))


@dataclass(frozen=True)
class OldRun:
    """An old run to verify, from a trace or a decision record."""

    name: str
    entries: Sequence[TraceEntry] = ()
    sources: Sources | None = None
    """Data that the run named, None if not known."""
    document: RecordFile | None = None

    @property
    def origin(self) -> Sequence[DataSource]:
        """Data sources that the run read."""
        from decisor.trace.events import RunStart, events_of

        if self.document:
            return self.document.record.content.data.sources
        return next((one.provenance.sources for one in events_of(self.entries, RunStart)), ())


async def verify_runs(runs: Sequence[OldRun], sources: Sources | None) -> list[tuple[str, Verification]]:
    """Verify runs; return the name and the verdict of each. sources: data that a person names for all runs.

    The data are opened once for runs of the same data.
    """
    from decisor.session.access import apply_seed
    from decisor.session.data import open_data
    from decisor.session.sources import build_sources
    from decisor.session.verify import apply_recorded_policy, verify_record, verify_trace

    def sources_for(run: OldRun) -> Sources:
        named = sources or run.sources or build_sources()
        # Rows and masks that are named now, or that the run's own data have, go before those of the record.
        has_policy = any(place.policy for place in named.places)
        seen = named if has_policy or named is run.sources else apply_recorded_policy(named, run.origin)
        return apply_seed(seen, next((one.seed for one in run.origin if one.mask), ""))

    verdicts = []
    # groupby joins neighbours alone, so the verdicts keep the order in which the runs were named.
    for own, group in groupby(runs, sources_for):
        async with open_data(own) as data:
            verdicts += [
                (
                    run.name,
                    await verify_record(run.document, data) if run.document else await verify_trace(run.entries, data),
                )
                for run in group
            ]
    return verdicts


def find_old_runs(place: str) -> Iterator[OldRun]:
    """Yield the runs of a place: a run number, a folder, a run store or a file. Raise SetupError if there are none."""
    from decisor.decision_record.page import is_record_file

    path = Path(place)
    # A file named 12 goes before run 12.
    if place == "last" or (place.isdecimal() and not path.exists()):
        yield read_history_run(place)
    elif path.is_dir():
        files = sorted(file for file in path.glob("*.json*") if file.suffix == ".jsonl" or is_record_file(file))
        if not files:
            raise SetupError(
                "There is no trace (*.jsonl) or record (*.json) there; decisor ask --trace FILE or "
                "--record FILE writes one."
            )
        yield from map(read_run_file, files)
    elif is_run_store(place):
        yield from read_store_runs(place)
    else:
        yield read_run_file(path)


def read_run_file(path: Path) -> OldRun:
    """Read a run from a trace or a record."""
    from decisor.decision_record.page import is_record_file, read_record
    from decisor.trace.file import read_trace

    if is_record_file(path):
        return OldRun(str(path), document=read_record(path))
    return OldRun(str(path), read_trace(path))


def read_history_run(place: str) -> OldRun:
    from decisor.session.config import resolve_config
    from decisor.session.open_sources import sources_of_request

    history = History()
    run = find_named_run(history, place)
    # A person's own tools may do more than read, so verification opens none.
    named = read_kept_request(run.inputs).without_tools()
    # Relative places mean the same data only in the folder of then.
    is_same = (named.names_data or named.model) and not named.left_out and Path(named.folder or ".") == Path.cwd()
    own = sources_of_request(named, resolve_config()) if is_same else None
    return OldRun(f"run {run.number}", history.entries(run.number), own)


def is_run_store(place: str) -> bool:
    if place.startswith(("postgresql://", "postgres://")):
        return True
    # The first 16 bytes of every SQLite file, whatever its name is.
    with suppress(OSError), Path(place).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE
    return False


def read_store_runs(place: str) -> Iterator[OldRun]:
    """Yield the answered cases of a run store."""
    from decisor.system.extras import import_lab

    open_store = import_lab("evaluation.store", "Verifying an evaluation").open_store
    with closing(open_store(place, create=False)) as store:
        for outcome in store.each_outcome():
            if outcome.answer:
                yield OldRun(" ".join(map(str, outcome.key)), store.trace(outcome.key))


def print_verification(name: str, one: Verification) -> None:
    from decisor.session.verify import verification_lines

    first, *rest = verification_lines(one)
    print(f"{name}: {first}", *rest, sep="\n")
