"""``decisor trace FILE --edit AT``: one thing in a recorded run is changed, and both runs are shown side by side."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from decisor.budget import Budget
from decisor.cli.exits import exit_of
from decisor.errors import SetupError
from decisor.lms.closing import close_lm
from decisor.plurals import counted
from decisor.render.text import clean, one_line
from decisor.run import Run
from decisor.session.composition import Asked, NoLM, opened, technique_of, tracing
from decisor.trace.events import Event, plain
from decisor.types import Decision, Usage

if TYPE_CHECKING:
    from decisor.techniques.replay.rerun import Edit, Rerun


def go_on(
    events: Sequence[Event],
    at: str,
    changes: Mapping[str, str | None],
    asked: Asked,
    as_json: bool,
) -> int:
    """The exit code of the new decision. ``changes``: what is given of an Edit, by the name of its field. ``asked``
    names the LM, the data, the file for the new trace, and what else the old one may not name.

    Raises:
        SetupError: no node or step is named, or it does not fit.
    """
    from decisor.techniques.replay.rerun import Edit

    if not at:
        raise SetupError("Which node or step is changed? Name it with --edit, such as --edit Q2.1 or --edit 3.")
    edit = Edit(at, **{name: value for name, value in changes.items() if value})
    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # a person's own tools may print
        found, spent = asyncio.run(run_again(events, edit, asked))
    if as_json:
        told = {"changes": found.changes, "before": found.before, "after": found.after, "usage": spent}
        print(json.dumps(plain(told), ensure_ascii=False))
    else:
        show(found, spent)
    return int(exit_of(found.after))


async def run_again(events: Sequence[Event], edit: Edit, asked: Asked) -> tuple[Rerun, Usage]:
    from decisor.lms.choose import lm
    from decisor.techniques.replay.recorded_run import how_of, read_past
    from decisor.techniques.replay.rerun import rerun
    from decisor.tools.toolbox import Toolbox

    past = read_past(events)
    named = past.technique or asked.technique
    name, settings = how_of(past, asked.technique, asked.settings) if named else ("", {})
    how, others = technique_of(name, settings) if named else (None, [])
    model = lm(asked.lm, os.environ)
    head = next((event.data for event in events if event.kind == "run"), None)
    async with opened(asked, exact=False) as tools:
        with tracing(asked.trace_file, lambda event: None) as trace:
            run = Run(model or NoLM(), Toolbox(tools), Budget(), trace)
            if head is not None:
                kept = {key: head[key] for key in ("question", "tools") if key in head}
                trace.add("run", **kept, technique=name, settings=settings, lm=run.lm.name, edited=edit)
            try:
                found = await rerun(events, [edit], run, how)
            finally:
                for one in (model, *others):
                    await close_lm(one)
            spent = replace(run.budget.spent, actions=run.budget.spent.actions - found.replayed)
            trace.add("note", text="usage", usage=spent)
    return found, spent


def show(found: Rerun, spent: Usage) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 1, 0), header_style="bold")
    for name, ratio in (("", None), ("before", 1), ("after", 1)):
        table.add_column(name, ratio=ratio, overflow="fold")
    styles = {"edited": "bold yellow", "again": "bold", "reused": "dim"}
    for change in found.changes:
        before, after = (one_line(text, 400) for text in (change.before, change.after))
        after = "(as before)" if before == after else after or "(not done)"
        table.add_row(f"{change.at}\n{change.how}", Text(before), Text(after), style=styles.get(change.how, ""))
    table.add_row("decision", Text(answer_of(found.before)), Text(answer_of(found.after)))
    console.print(table)
    for reason in found.after.reasons[:1]:
        console.print(Text(clean(reason)))
    calls, actions = spent.calls, spent.actions
    console.print(Text(f"{counted(calls, 'LM call')}, {counted(actions, 'action')}", style="dim"))


def answer_of(decision: Decision) -> str:
    return one_line(decision.answer, 200) or f"none ({decision.stopped})"
