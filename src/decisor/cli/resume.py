"""``decisor resume``: a run that was interrupted or failed goes on from what it had."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from decisor.budget import Limits
from decisor.cli.again import PastNamed, each, inputs_again, options_named, sources_named, with_defaults
from decisor.cli.ask import LM, ask_and_print, noted
from decisor.cli.exits import Exit, exit_of
from decisor.cli.history import run_named
from decisor.cli.settings import tell_folder_file
from decisor.config.current import current
from decisor.errors import SetupError
from decisor.history.past_run import UNFINISHED, Inputs
from decisor.history.recording import Keeping
from decisor.history.store import History
from decisor.plurals import counted
from decisor.session.options import Options
from decisor.trace.events import ActionResult, Entry, LMCall, events_of

AGAIN = "In the place of what the run used; needed where its address holds a password."


def command(
    which: Annotated[str, typer.Argument(metavar="N|last", help="The number of a run, or last.")] = "last",
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=AGAIN)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help=AGAIN)] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help=AGAIN)] = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help=LM)] = None,
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls more.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens more.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="At most so many dollars more.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="At most so long.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Go on from a run that was interrupted, failed or reached a limit. What it bought is not bought again."""
    history, config = History(), current()
    run = run_named(history, which)
    if run.state == "running":
        raise SetupError(f"Run {run.number} is under way. Stop it first, or wait for it.")
    if run.state not in UNFINISHED:
        raise SetupError(f'Run {run.number} came to its end. To ask on: decisor ask --continue-from {run.number} "..."')
    past = PastNamed(history, run)
    own = Inputs(each(db), each(graph), each(docs), lm=lm or "", limits=Limits(calls, tokens, dollars, seconds))
    inputs = with_defaults(inputs_again(past, own), config)
    entries = history.entries(run.number)
    question = past.result().question
    keeping = Keeping(before=run.number)
    options: Options = {**options_named(inputs, config), "history": keeping}
    tell_folder_file(config)
    print(f"decisor: run {run.number} had {had(entries)}", file=sys.stderr)
    with noted(keeping):
        result = ask_and_print(sources_named(inputs, config), question, options, as_json, entries)
    raise typer.Exit(exit_of(result.decision) if not result.trace_fault else Exit.FAILED)


def had(entries: tuple[Entry, ...]) -> str:
    """What need not be bought or queried again."""
    replies, results = events_of(entries, LMCall), events_of(entries, ActionResult)
    count, actions = sum(1 for _ in replies), sum(1 for _ in results)
    return f"{counted(count, 'LM call')} and {counted(actions, 'observation')}: they are used again"
