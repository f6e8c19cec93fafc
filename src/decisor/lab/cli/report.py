"""``decisor report``: what a finished or unfinished run shows, as a table, a page, Markdown, CSV or JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, TypeVar

import typer

from decisor.cli.output import clean_console
from decisor.errors import SetupError
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from decisor.lab.evaluation.store import Key, RunStore
    from decisor.lab.report.document import BenchmarkReport, Report
    from decisor.types import LLM

T = TypeVar("T")


def command(
    run: Annotated[str, typer.Argument(help="The run store that decisor eval wrote (RUN.db).")],
    against: Annotated[str | None, typer.Option(help="An earlier run to compare with.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page that works offline.")] = None,
    judge: Annotated[str | None, typer.Option(help="MODEL or MODEL@URL: a second opinion on failures.")] = None,
    judge_cases: Annotated[int, typer.Option(min=1, help="Maximum number of failures judged.")] = 100,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables as Markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="One line for each outcome.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Report a run: results with intervals, comparisons, failures, and each case's story."""
    from decisor.lab.evaluation.comparisons import collect_opinions, measure_agreement
    from decisor.lab.evaluation.postgres_store import open_store
    from decisor.lab.report.document import make_report

    if markdown + csv + as_json > 1:
        raise SetupError("Give one of --markdown, --csv and --json.")
    with closing(open_store(run, create=False)) as store:
        outcomes = store.outcomes()
        if not outcomes:
            raise SetupError(f"{run} holds no finished case yet.")
        before, second = None, None
        if against is not None:
            with closing(open_store(against, create=False)) as earlier:
                before = earlier.outcomes()
        # The replies of judges are kept in the store, so they are bought once.
        if judge:
            found = ask_with_judge(judge, lambda llm: collect_opinions(store, llm, judge_cases))
            second = measure_agreement(found, judge.partition("@")[0])
        report = make_report(outcomes, store.about(), before, second)
        if html:
            states: dict[Key, str] | None = None if before is None else {one.key: one.state for one in before}
            # A machine reads standard output then, so the notice goes to standard error.
            write_report_page(report, store, html, states, sys.stderr if markdown or csv or as_json else sys.stdout)
    if markdown or csv or as_json:
        print(format_report_text(report, markdown, csv), end="")
    elif not html:
        print_report(report)


def ask_with_judge(judge: str, ask: Callable[[LLM], Awaitable[T]]) -> T:
    """Call ``ask`` with the named LLM, close the LLM, and return the answer."""
    from decisor.llms.choose import choose_llm

    judging = choose_llm(judge, os.environ)
    if judging is None:
        raise SetupError(f"{judge!r} names no LLM: give MODEL or MODEL@URL.")

    async def run() -> T:
        try:
            return await ask(judging)
        finally:
            if (end := getattr(judging, "close", None)) is not None:
                await end()

    return asyncio.run(run())


def format_report_text(report: Report, markdown: bool, csv: bool) -> str:
    from decisor.lab.report.document import report_as_json
    from decisor.lab.report.tables import report_as_csv
    from decisor.lab.report.tables import report_as_markdown as as_markdown

    if markdown or csv:
        return as_markdown(report) if markdown else report_as_csv(report)
    from decisor.system.serialization import finite_json_value

    return json.dumps(finite_json_value(report_as_json(report)), allow_nan=False) + "\n"


def write_report_page(
    report: Report, store: RunStore, path: Path, before: dict[Key, str] | None, notice: TextIO
) -> None:
    """Write a report as one page.

    It is written to a file beside first, so a reader never sees half a page. notice: stream for the line that names the
    written file.
    """
    from decisor.lab.report.page import write_page

    # Beside its place, as a rename works within one file system only.
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with half.open("w", encoding="utf-8", newline="\n") as out:
            write_page(report, lambda one: store.trace(one.key), out, before)
        half.replace(path)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        half.unlink(missing_ok=True)
    print(f"{path}: {format_count(len(report.outcomes), 'outcome')}, {path.stat().st_size / 1e6:.1f} MB", file=notice)


def print_report(report: Report) -> None:
    """Print a table for each benchmark, then the clear differences between techniques."""
    from decisor.system.text import clean_one_line

    console = clean_console(sys.stdout, None if sys.stdout.isatty() else 140)
    for one in report.benchmarks:
        console.print(build_benchmark_table(one, report, narrow=console.width < 110))
        for line in list_remarks(one, report):
            console.print(line, markup=False)
    if report.opinion:
        from decisor.lab.report.charts import describe_agreement

        console.print(clean_one_line(describe_agreement(report.opinion), 300), markup=False)
    if report.diff:
        show_diff(report, console)


def build_benchmark_table(one: BenchmarkReport, report: Report, narrow: bool) -> Table:
    """Build the table of one benchmark. narrow: leave out tokens and seconds, and show the rarer outcomes in one
    column.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from decisor.lab.report.charts import format_money, format_percent, format_short_number, spell_out_name
    from decisor.lab.statistics import STATES, ComparedSide
    from decisor.system.text import clean_one_line

    grid = Table(
        title=f"{clean_one_line(one.name)}, {format_count(one.cases, 'case')}", title_justify="left", box=SIMPLE_HEAD
    )
    rows = [row for row in one.rows if not row.group]
    states = [state for state in STATES if state in ("right", "wrong") or any(row.states[state] for row in rows)]
    grid.add_column("technique", overflow="fold", min_width=12)
    outcomes = [spell_out_name(state) for state in states]
    costs: tuple[str, ...] = ("calls", "tokens", "cost", "seconds")
    if narrow:
        outcomes, costs = ["right", "wrong", *(["other"] if len(states) > 2 else [])], ("calls", "cost")
    for name in ("accuracy", "95 %", *outcomes, *costs):
        grid.add_column(name, justify="right")
    for row in rows:
        within = f"{100 * row.interval.low:.1f}-{100 * row.interval.high:.1f}" if row.interval else ""
        dollars = None if row.usage.dollars is None else row.usage.dollars / row.outcomes
        figures = {
            "calls": format_short_number(row.usage.calls / row.outcomes),
            "tokens": format_short_number(row.usage.tokens / row.outcomes),
            "cost": format_money(dollars),
            "seconds": f"{row.seconds:.3g}",
        }
        counts = [str(row.states[state]) for state in states]
        if narrow:
            # A narrow terminal has one column for all states but right and wrong.
            rare = [f"{row.states[state]} {spell_out_name(state)}" for state in states[2:] if row.states[state]]
            counts = [*counts[:2], *([", ".join(rare)] if len(states) > 2 else [])]
        accuracy = "" if row.accuracy is None else format_percent(row.accuracy, 1)
        who = Text(clean_one_line(report.label(ComparedSide(row.technique, row.model)), 60))
        grid.add_row(who, accuracy, within, *counts, *(figures[what] for what in costs))
    return grid


def list_remarks(one: BenchmarkReport, report: Report) -> list[str]:
    """Return a benchmark's clear differences, failures and crashes."""
    from decisor.lab.report.charts import format_points, format_probability
    from decisor.lab.report.tables import list_result_notes
    from decisor.lab.statistics import ComparedSide
    from decisor.system.text import clean_one_line

    lines = []
    for pair in one.comparisons:
        if pair.p_holm < 0.05:
            within = f"{format_points(pair.interval.low)} to {format_points(pair.interval.high)}"
            lines.append(
                f"{report.label(pair.one)} is better than {report.label(pair.other)} by "
                f"{format_points(pair.difference)} points ({within}), p {format_probability(pair.p_holm)} after Holm, "
                f"{pair.pairs} pairs."
            )
    if one.comparisons and not lines:
        lines.append("No two techniques differ clearly (p < 0.05 after Holm).")
    lines += list_result_notes([row for row in one.rows if not row.group], report)
    for row in one.rows:
        if not row.group and row.failures:
            classes = ", ".join(f"{name} {many}" for name, many in row.failures.items())
            lines.append(f"Failures of {report.label(ComparedSide(row.technique, row.model))}: {classes}")
    crashes = [
        case.reasons[-1]
        for case in report.outcomes
        if case.state == "crashed" and case.benchmark == one.name and case.reasons
    ]
    if crashes:
        # A crash mostly has one cause for all cases, so the commonest reason is shown.
        why = max(crashes, key=crashes.count)
        lines.append(f"Crashed {len(crashes)}, most of all: {why} (decisor eval --again crashed runs them again)")
    return [clean_one_line(line, 400) for line in lines]


def show_diff(report: Report, console: Console) -> None:
    from decisor.lab.report.charts import format_points, format_probability
    from decisor.system.text import clean_one_line

    assert report.diff is not None
    changed = report.diff.changed
    gained, lost = sum(one.after == "right" for one in changed), sum(one.before == "right" for one in changed)
    console.print(f"Against the earlier run: {format_count(gained, 'case')} gained, {lost} lost.", markup=False)
    for one in report.diff.comparisons:
        within = f"{format_points(one.interval.low)} to {format_points(one.interval.high)}"
        line = (
            f"  {one.benchmark}, {report.label(one.one)}: {format_points(one.difference)} points ({within}), "
            f"p {format_probability(one.p_holm)}, {one.pairs} pairs"
        )
        console.print(clean_one_line(line, 300), markup=False)
    for name in (*report.diff.only_here, *report.diff.only_there):
        where = "this run" if name in report.diff.only_here else "the earlier run"
        console.print(clean_one_line(f"  only in {where}: {name}", 300), markup=False)
