"""``decisor history`` and ``trace``: saved runs listed, marked, shown, continued, approved, verified and backed up.

``resume`` goes on from a run that was interrupted or failed. ``decisor trace FILE --edit AT`` changes one
thing in a recorded run and shows both runs side by side. A person approves a decision, refuses it, or takes that back.
``verify`` computes old decisions again without an LLM, for a scheduler; its exit code is the verdict.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.ask import RECORD, ask_and_print, report_saved_run, reuse_request
from decisor.cli.output import Exit, exit_of, output_console, print_folder_file, print_json
from decisor.cli.request_options import DATA, takes_request
from decisor.decision_record.record import Act, ApprovalChange, make_approval_change
from decisor.errors import SetupError
from decisor.history.recorder import Keeping, format_question_line, iterate_marked_questions
from decisor.history.store import UNFINISHED, VERDICTS, History, PastRun, RunMark
from decisor.session.config import resolve_config
from decisor.session.request import REUSE, AskRequest, Attachments, read_kept_request, spell_option
from decisor.session.rerun import rerun_on_sources
from decisor.system.serialization import json_value
from decisor.system.storage import lock_folder
from decisor.system.text import clean_for_terminal, clean_one_line
from decisor.system.wording import format_count
from decisor.trace.events import ActionResult, LLMCall, RunStart, TraceEntry, events_of
from decisor.trace.file import format_trace_array, read_trace
from decisor.types import Decision, Usage
from decisor.views.transcript import describe_end, show_dim, tell_story

if TYPE_CHECKING:
    from decisor.decision_record.page import RecordFile
    from decisor.history.place import FolderPlace
    from decisor.history.postgres import PostgresPlace
    from decisor.session.sources import Sources
    from decisor.session.verify import Verification
    from decisor.techniques.replay.rerun import Rerun
    from decisor.trace.events import DataSource


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


app = typer.Typer(help="List, show, resume, approve, verify, mark, back up or delete saved runs.")
app.command("approve")(approve_command)
app.command("verify")(verify_command)
app.command("record")(record_command)
STATES = {"answered": "", "budget": "limit reached", "steps": "out of steps", "no_answer": "no decision"}
NumberOf = Annotated[int, typer.Argument(metavar="N", min=1, help="The number of a run.")]


@app.callback(invoke_without_command=True)
def history_command(
    context: typer.Context,
    search: Annotated[str, typer.Option("--search", "-s", metavar="WORDS", help="Only runs with these words.")] = "",
    most: Annotated[int, typer.Option("--most", "-n", min=1, help="Maximum number of runs, newest first.")] = 20,
    delete: Annotated[
        list[str] | None, typer.Option("--delete", metavar="N|all", help="Delete run N, or all. Repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on standard output.")] = False,
) -> None:
    """List saved runs, the newest first. See one: decisor history show N."""
    # typer calls this callback before each subcommand too.
    if context.invoked_subcommand:
        return
    history = History()
    if delete:
        if "all" not in delete and (wrong := [text for text in delete if not text.isdecimal()]):
            raise SetupError(f"--delete takes the number of a run, or all, not {wrong[0]!r}.")
        count = history.delete(None if "all" in delete else list(map(int, delete)))
        print(f"{format_count(count, 'run')} deleted", file=sys.stderr)
        return
    runs = history.list(words=search, most=most)
    if as_json:
        from decisor.system.serialization import finite_json_value

        print_json(finite_json_value(runs))
        return
    print_run_list(runs)
    if not runs:
        what = f" with {search!r}" if search else ""
        print(f"No saved runs{what} in {history.place.name}. Each decisor ask adds one.", file=sys.stderr)


@app.command("mark")
def mark_command(
    number: NumberOf,
    verdict: Annotated[str, typer.Argument(metavar="right|wrong|none", help="Verdict; none removes the mark.")],
    came_of: Annotated[str, typer.Argument(metavar="WORDS", help="The outcome, in words.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="The right answer, if the verdict is wrong.")] = "",
) -> None:
    """Mark a decision as right or wrong, and note the consequences."""
    if verdict not in (*VERDICTS, "none"):
        raise SetupError(f"A decision is marked right, wrong or none, not {verdict!r}.")
    if answer and verdict != "wrong":
        raise SetupError("--answer needs the verdict wrong.")
    history = History()
    run = history.read(number)
    if verdict == "right" and not run.answer:
        raise SetupError(f"Run {number} has no answer, so it cannot be right.")
    mark = None if verdict == "none" else RunMark("right" if verdict == "right" else "wrong", came_of, answer)
    history.mark(number, mark)
    print(f"Run {number} is marked {verdict}." if mark else f"Run {number} is not marked.", file=sys.stderr)


@app.command("export")
def export_command() -> None:
    """Print marked runs as questions, one JSON object a line.

    Evaluate them: decisor history export > mine.jsonl, then decisor eval --questions mine.jsonl --db URL
    """
    count = 0
    for count, question in enumerate(iterate_marked_questions(History()), 1):  # noqa: B007
        print(format_question_line(question), end="")
    if not count:
        raise SetupError('No run is marked. Mark one: decisor history mark 12 right "OUTCOME"')


BackupOf = Annotated[Path, typer.Argument(metavar="FILE", help="ZIP file of runs and uploaded files.")]
StoreOf = Annotated[str, typer.Option("--store", metavar="URL", help="PostgreSQL of decisor serve --store.")]


@app.command("backup")
def backup_command(file: BackupOf, store: StoreOf = "") -> None:
    """Write all saved runs and uploaded files to a new file; servers may go on."""
    from decisor.history.backup import write_backup

    place = place_of(store)
    print(f"{format_count(write_backup(place, file), 'run')} of {place.name} in {file}", file=sys.stderr)


@app.command("restore")
def restore_command(
    file: BackupOf,
    store: StoreOf = "",
    replace: Annotated[bool, typer.Option("--replace", help="Delete the runs that are there.")] = False,
) -> None:
    """Restore a backup, where no server runs."""
    from decisor.history.backup import restore_backup

    place = place_of(store)
    print(f"{format_count(restore_backup(place, file, replace), 'run')} in {place.name}", file=sys.stderr)


def place_of(store: str) -> FolderPlace | PostgresPlace:
    from decisor.history.place import FolderPlace
    from decisor.history.postgres import PostgresPlace

    return PostgresPlace(store) if store else FolderPlace()


def print_run_list(runs: tuple[PastRun, ...]) -> None:
    """Print a line for each run: number, time, question, answer and mark."""
    from time import localtime, strftime

    from rich.table import Table
    from rich.text import Text

    if not runs:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name, ratio in (("", None), ("when", None), ("question", 3), ("decision", 2), ("mark", None)):
        table.add_column(name, ratio=ratio, overflow="fold" if ratio else "ignore")
    for run in runs:
        state = STATES.get(run.state, run.state)
        answer = " · ".join(part for part in (clean_one_line(run.answer, 80), state) if part)
        follows = f" (after {run.before})" if run.before else ""
        mark = run.mark.verdict if run.mark else ""
        table.add_row(
            str(run.number),
            strftime("%Y-%m-%d %H:%M", localtime(run.began)),
            Text(clean_one_line(run.question.text, 160) + follows),
            Text(answer),
            Text(mark),
        )
    output_console(WIDTH).print(table)


WIDTH = 140
"""Width of a list in a pipe, where columns stay columns."""


AGAIN = "Instead of the run's: "


@app.command("resume")
@takes_request("db", "graph", "docs", "llm", "limits", note=AGAIN, leave_out=["actions"])
def resume_command(
    request: AskRequest,
    which: Annotated[str, typer.Argument(metavar="N|last", help="The number of a run, or last.")] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Resume an unfinished run: interrupted, failed or ended by a limit. Its LLM calls are reused.

    It uses the run's data and LLM. Give addresses with passwords again: they are not saved.
    """
    history, config = History(), resolve_config()
    run = find_named_run(history, which)
    if run.state == "running":
        raise SetupError(f"Run {run.number} is still running. Stop it first, or wait for it.")
    if run.state not in UNFINISHED:
        raise SetupError(f'Run {run.number} is finished. To follow up: decisor ask --continue-from {run.number} "..."')
    from decisor.session.open_sources import complete_request
    from decisor.session.result import build_past_result

    request = complete_request(reuse_request(run, request), config)
    result = build_past_result(history, run)
    entries, question = result.trace, result.question
    keeping = Keeping(before=run.number)
    print_folder_file(config)
    calls, results = ([*events_of(entries, kind)] for kind in (LLMCall, ActionResult))
    reused = f"{format_count(len(calls), 'LLM call')} and {format_count(len(results), 'observation')}"
    print(f"decisor: run {run.number} is resumed with {reused} from before", file=sys.stderr)
    with report_saved_run(keeping):
        result = ask_and_print(request, config, question, Attachments(keeping=keeping), as_json, entries)
    raise typer.Exit(exit_of(result.decision) if not result.trace_fault else Exit.FAILED)


PLAN = "With --edit: one step of the new plan. Give every step; --edit 0 changes the first plan."


@takes_request(
    *(*DATA, "technique", "settings", "llm", "limits"),
    note="With --edit: ",
    leave_out=["definitions", "row_values", "max_scan", "actions"],
)
def trace_command(
    request: AskRequest,
    file: Annotated[Path, typer.Argument(help="Trace file of decisor ask --trace FILE.")],
    full: Annotated[bool, typer.Option("--full", help="Include the LLM's prompts and replies.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The events as one JSON array.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as an HTML page.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    edit: Annotated[str, typer.Option("--edit", metavar="AT", help="Node or step to change and rerun from.")] = "",
    answer: Annotated[str | None, typer.Option("--answer", help="New answer of the node.")] = None,
    ask: Annotated[str | None, typer.Option("--ask", help="New question of the node.")] = None,
    context: Annotated[str, typer.Option("--context", help="Context to add to the node's question.")] = "",
    thought: Annotated[str, typer.Option("--thought", help="New thought of the step.")] = "",
    action: Annotated[str | None, typer.Option("--action", help="New action input of the step.")] = None,
    observation: Annotated[str | None, typer.Option("--observation", help="New observation of the step.")] = None,
    plan: Annotated[list[str] | None, typer.Option("--plan", metavar="STEP", help=PLAN)] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --edit: trace file of the new run.")] = None,
) -> None:
    """Show a trace file, or rerun it from a changed step."""
    entries = read_trace(file)
    if not entries:
        raise SetupError(f"{file} holds no events. Make one with: decisor ask ... --trace FILE")
    changes = {
        "answer": answer,
        "ask": ask,
        "context": context,
        "thought": thought,
        "action": action,
        "observation": observation,
    }
    # Go on from the run with one change.
    if edit or plan or any(changes.values()):
        request = request.model_copy(update={"trace": str(out or "")})
        raise typer.Exit(rerun_edited_run(entries, edit, changes, plan or (), request, as_json))
    # Without --edit these options have no effect: say so, and do not ignore them.
    limits = [name for name, value in asdict(request.limits).items() if value is not None]
    unused = [spell_option(name) for name in [*request.given, *limits] if name != "limits"]
    if unused or out:
        raise SetupError(f"{[*unused, '--out'][0]} needs --edit with a node or step, such as --edit Q2.1.")
    # Write the files that are wished; without any, tell the story.
    if record is not None:
        from decisor.decision_record.build import build_record
        from decisor.decision_record.page import write_record

        write_record(build_record(entries), record)
    if html is not None:
        from decisor.session.result import write_result_file
        from decisor.views.page import html_document, recorded_html

        question = next((start.question.text for start in events_of(entries, RunStart)), str(file))
        write_result_file(html, html_document(question, recorded_html(entries, is_page=True)))
    if as_json:
        print(format_trace_array(entries))
    elif html is None and record is None:
        from decisor.views.transcript import tell_story

        tell_story(entries, output_console(), full)


PIPE_COLUMNS = 120
"""Width of two runs side by side in a pipe or file, where they are wrapped too."""


def rerun_edited_run(
    entries: Sequence[TraceEntry],
    at: str,
    changes: Mapping[str, str | None],
    plan: Sequence[str],
    request: AskRequest,
    as_json: bool,
) -> int:
    """Run a trace again with one edit, print both runs, and return the new exit code.

    Args:
        changes: Fields of an Edit by name, as ``plan`` is.
        request: The data, the LLM, the file for the new trace, and whatever else the old one may not name.

    Raises:
        SetupError: no node or step is named, or it does not fit.
    """
    from decisor.session.access import check_masks
    from decisor.session.open_sources import sources_of_request
    from decisor.techniques.replay.rerun import Edit

    sources = sources_of_request(request, resolve_config())
    # Without the masks of then, an LLM would be sent the values that were kept from it.
    check_masks(entries, sources)
    if not at:
        raise SetupError("No node or step given. Name one with --edit, such as --edit Q2.1 or --edit 3.")
    edit = Edit(at, plan=tuple(plan), **{name: value for name, value in changes.items() if value})
    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # a person's own tools may print
        comparison = rerun_on_sources(sources, entries, edit, request, Attachments())
    report = comparison.rerun
    if as_json:
        both = {"changes": report.changes, "before": report.before, "after": report.after, "usage": comparison.usage}
        print_json(json_value(both))
    else:
        print_rerun(report, comparison.usage)
    return int(exit_of(report.after))


def print_rerun(report: Rerun, usage: Usage) -> None:
    from rich.table import Table
    from rich.text import Text

    out = output_console(PIPE_COLUMNS)
    table = Table(box=None, padding=(0, 2, 1, 0), header_style="bold")
    for name, ratio in (("", None), ("before", 1), ("after", 1)):
        table.add_column(name, ratio=ratio, overflow="fold")
    styles = {"edited": "bold yellow", "again": "bold", "reused": "dim"}
    for change in report.changes:
        before, after = (clean_one_line(text, 400) for text in (change.before, change.after))
        after = "(as before)" if before == after else after or "(not done)"
        table.add_row(f"{change.at}\n{change.how}", Text(before), Text(after), style=styles.get(change.how, ""))
    table.add_row("decision", Text(format_answer(report.before)), Text(format_answer(report.after)))
    out.print(table)
    if why := describe_end(report.after):
        out.print(Text(why, style="yellow"))
    for reason in report.after.reasons[:1]:
        out.print(Text(clean_for_terminal(reason)))
    calls, actions = usage.calls, usage.actions
    out.print(Text(f"{format_count(calls, 'LLM call')}, {format_count(actions, 'action')}", style="dim"))


def format_answer(decision: Decision) -> str:
    return clean_one_line(decision.answer, 200) or f"none ({decision.stopped})"


@app.command("show")
def show_command(
    which: Annotated[str, typer.Argument(metavar="N|last", help="The number of a run, or last.")] = "last",
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as an HTML page.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write the run's trace to this file.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    full: Annotated[bool, typer.Option("--full", help="Include the LLM's prompts and replies.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, as for decisor ask --json.")] = False,
) -> None:
    """Show a saved run: its events, the decision, the evidence and the cost."""
    from decisor.session.result import build_past_result

    history = History()
    run = find_named_run(history, which)
    result = build_past_result(history, run)
    for path, write in ((html, result.html), (trace, result.save), (record, result.save_record)):
        if path is not None:
            write(path)
            print(f"{path} is written.", file=sys.stderr)
    if as_json:
        print_json(result.to_dict())
    elif html is None and trace is None and record is None:
        out = output_console()
        tell_story(result.trace, out, full)
        for line in format_run_state(run):
            show_dim(line, out)


def format_run_state(run: PastRun) -> Iterator[str]:
    """Yield a line for the state of a run, its mark, each approval and its number."""
    if run.state in ("interrupted", "failed"):
        why = run.why or "It was interrupted."
        yield f"{why} Resume it: decisor history resume {run.number}"
    if run.mark:
        right = f"; right would be {run.mark.answer}" if run.mark.answer else ""
        yield f"Marked {run.mark.verdict}{right}{': ' if run.mark.came_of else ''}{run.mark.came_of}"
    for one in run.approvals:
        back = f", withdrawn {one.withdrawn[:10]}" if one.withdrawn else ""
        done = "Refused" if one.refuses else "Approved"
        yield f"{done} by {one.by}, {one.at[:10]}{back}{': ' if one.note else ''}{one.note}"
    yield f"Run {run.number}{f', after run {run.before}' if run.before else ''}"
