"""``decisor history``: the runs that were kept: list, search, mark, export, delete."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from decisor.cli.console import console, print_json
from decisor.errors import SetupError
from decisor.history.past_run import VERDICTS, Mark, PastRun
from decisor.history.store import History
from decisor.plurals import counted

app = typer.Typer(help="Runs that were kept: list them, search them, mark them, delete them.")
STATES = {"answered": "", "budget": "a limit ended it", "steps": "its steps ended", "no_answer": "not decided"}
NumberOf = Annotated[int, typer.Argument(metavar="N", min=1, help="The number of a run.")]


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    search: Annotated[str, typer.Option("--search", "-s", metavar="WORDS", help="Only those with these words.")] = "",
    most: Annotated[int, typer.Option("--most", "-n", min=1, help="So many at most, the newest.")] = 20,
    delete: Annotated[list[str] | None, typer.Option("--delete", metavar="N|all", help="Delete a run, or all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on standard output.")] = False,
) -> None:
    """List the runs that were kept, the newest first. See one: decisor show N."""
    if context.invoked_subcommand:
        return
    history = History()
    if delete:
        count = history.delete(None if "all" in delete else [number_of(text) for text in delete])
        print(f"{counted(count, 'run')} deleted", file=sys.stderr)
        return
    runs = history.list(words=search, most=most)
    if as_json:
        from decisor.encoding import finite

        print_json(finite(runs))
        return
    show_list(runs)
    if not runs:
        what = f" with {search!r}" if search else ""
        print(
            f"There is no run{what} in {history.folder}. decisor ask keeps one of each question of your own.",
            file=sys.stderr,
        )


@app.command("mark")
def mark_command(
    number: NumberOf,
    verdict: Annotated[str, typer.Argument(metavar="right|wrong|none", help="none takes a mark back.")],
    came_of: Annotated[str, typer.Argument(metavar="WORDS", help="What came of it.")] = "",
    answer: Annotated[str, typer.Option("--answer", help="Of a wrong one: what would have been right.")] = "",
) -> None:
    """Say of a decision whether it was right, and what came of it."""
    if verdict not in (*VERDICTS, "none"):
        raise SetupError(f"A decision is marked right, wrong or none, not {verdict!r}.")
    if answer and verdict != "wrong":
        raise SetupError("--answer goes with wrong: of a right one the decision itself is the answer.")
    history = History()
    run = history.read(number)
    if verdict == "right" and not run.answer:
        raise SetupError(f"Run {number} has no answer that could be right.")
    mark = None if verdict == "none" else Mark("right" if verdict == "right" else "wrong", came_of, answer)
    history.mark(number, mark)
    print(f"Run {number} is marked {verdict}." if mark else f"Run {number} has no mark.", file=sys.stderr)


@app.command("export")
def export_command() -> None:
    """Print the marked runs as questions, a JSON object a line: decisor history export > mine.jsonl, then
    decisor eval --questions mine.jsonl --db URL"""
    from decisor.history.questions import line_of, marked

    count = 0
    for count, question in enumerate(marked(History()), 1):  # noqa: B007
        print(line_of(question), end="")
    if not count:
        raise SetupError('No run is marked. Say how one came out: decisor history mark 12 right "WHAT CAME OF IT"')


def show_list(runs: tuple[PastRun, ...]) -> None:
    """A line a run: number, when, question, answer, and the mark."""
    from time import localtime, strftime

    from rich.table import Table
    from rich.text import Text

    from decisor.render.text import one_line

    if not runs:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name, ratio in (("", None), ("when", None), ("question", 3), ("decision", 2), ("mark", None)):
        table.add_column(name, ratio=ratio, overflow="fold" if ratio else "ignore")
    for run in runs:
        state = STATES.get(run.state, run.state)
        answer = " · ".join(part for part in (one_line(run.answer, 80), state) if part)
        follows = f" (after {run.before})" if run.before else ""
        mark = run.mark.verdict if run.mark else ""
        table.add_row(str(run.number), strftime("%Y-%m-%d %H:%M", localtime(run.began)),
                      Text(one_line(run.question.text, 160) + follows), Text(answer), Text(mark))  # fmt: skip
    console(WIDTH).print(table)


WIDTH = 140
"""Of a list in a pipe: columns stay columns."""


def number_of(text: str) -> int:
    if not text.isdecimal():
        raise SetupError(f"--delete takes the number of a run, or all, not {text!r}.")
    return int(text)


def run_named(history: History, text: str) -> PastRun:
    """Of its number, or ``last``. Raises SetupError where there is none."""
    if text != "last" and not (text.isdecimal() and int(text)):
        raise SetupError(f"A run is named by its number, or last, not {text!r}. See: decisor history")
    return history.read(0 if text == "last" else int(text))
