"""``decisor show``: a run of the history again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from decisor.cli.console import console, print_json
from decisor.history.past_run import PastRun

RECORD = "Write the record of the decision: as JSON, or as one page where the name ends with .html."


def command(
    which: Annotated[str, typer.Argument(metavar="N|last", help="The number of a run, or last.")] = "last",
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as one page.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write its trace to this file.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    full: Annotated[bool, typer.Option("--full", help="Also what the LM was sent and what it wrote.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, as of decisor ask --json.")] = False,
) -> None:
    """Show a run that was kept: what happened, the decision, its evidence, and what it cost."""
    from decisor.cli.history import run_named
    from decisor.history.store import History
    from decisor.session.recorded import past_result
    from decisor.story.decision import show_dim
    from decisor.story.telling import tell_story

    history = History()
    run = run_named(history, which)
    result = past_result(history, run)
    for path, write in ((html, result.html), (trace, result.save), (record, result.save_record)):
        if path is not None:
            write(path)
            print(f"{path} is written.", file=sys.stderr)
    if as_json:
        print_json(result.as_object())
    elif html is None and trace is None and record is None:
        out = console()
        tell_story(result.trace, out, full)
        for line in lines_of(run):
            show_dim(line, out)


def lines_of(run: PastRun) -> Iterator[str]:
    """Where it stands, and what is said of it."""
    if run.state in ("interrupted", "failed"):
        why = run.why or "It was interrupted."
        yield f"{why} What it had is above; decisor resume {run.number} goes on from there."
    if run.mark:
        right = f"; right would be {run.mark.answer}" if run.mark.answer else ""
        yield f"Marked {run.mark.verdict}{right}{': ' if run.mark.came_of else ''}{run.mark.came_of}"
    for one in run.approvals:
        back = f", withdrawn {one.withdrawn[:10]}" if one.withdrawn else ""
        done = "Refused" if one.refuses else "Approved"
        yield f"{done} by {one.by}, {one.at[:10]}{back}{': ' if one.note else ''}{one.note}"
    yield f"Run {run.number}{f', after run {run.before}' if run.before else ''}"
