"""``decisor trace FILE --edit AT``: one thing in a recorded run is changed, and both runs are shown side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from decisor.cli.console import console, print_json
from decisor.cli.exits import exit_of
from decisor.encoding import json_value
from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.render.text import clean, one_line
from decisor.session.options import Options
from decisor.session.rerun import rerun_once
from decisor.session.sources import Sources
from decisor.story.decision import ended
from decisor.trace.events import Entry
from decisor.types import Decision, Usage

if TYPE_CHECKING:
    from decisor.techniques.replay.edits import Rerun

PIPE_COLUMNS = 120
"""Two runs side by side are wrapped in a file too."""


def go_on(
    entries: Sequence[Entry], at: str, changes: Mapping[str, str | None], plan: Sequence[str],
    sources: Sources, options: Options, as_json: bool,
) -> int:  # fmt: skip
    """The exit code of the new decision. ``changes``, ``plan``: the fields of an Edit that are named. ``sources`` and
    ``options``: the data, the LM, the file for the new trace, and what else the old one may not name.

    Raises:
        SetupError: no node or step is named, or it does not fit.
    """
    from decisor.techniques.replay.edits import Edit

    if not at:
        raise SetupError("Which node or step is changed? Name it with --edit, such as --edit Q2.1 or --edit 3.")
    edit = Edit(at, plan=tuple(plan), **{name: value for name, value in changes.items() if value})
    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # a person's own tools may print
        comparison = rerun_once(sources, entries, edit, options)
    report = comparison.rerun
    if as_json:
        both = {"changes": report.changes, "before": report.before, "after": report.after, "usage": comparison.usage}
        print_json(json_value(both))
    else:
        show(report, comparison.usage)
    return int(exit_of(report.after))


def show(report: Rerun, usage: Usage) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console(PIPE_COLUMNS)
    table = Table(box=None, padding=(0, 2, 1, 0), header_style="bold")
    for name, ratio in (("", None), ("before", 1), ("after", 1)):
        table.add_column(name, ratio=ratio, overflow="fold")
    styles = {"edited": "bold yellow", "again": "bold", "reused": "dim"}
    for change in report.changes:
        before, after = (one_line(text, 400) for text in (change.before, change.after))
        after = "(as before)" if before == after else after or "(not done)"
        table.add_row(f"{change.at}\n{change.how}", Text(before), Text(after), style=styles.get(change.how, ""))
    table.add_row("decision", Text(answer_of(report.before)), Text(answer_of(report.after)))
    out.print(table)
    if why := ended(report.after):
        out.print(Text(why, style="yellow"))
    for reason in report.after.reasons[:1]:
        out.print(Text(clean(reason)))
    calls, actions = usage.calls, usage.actions
    out.print(Text(f"{counted(calls, 'LM call')}, {counted(actions, 'action')}", style="dim"))


def answer_of(decision: Decision) -> str:
    return one_line(decision.answer, 200) or f"none ({decision.stopped})"
