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
    from decisor.lab.evaluation.store import Key, RunStore
    from decisor.lab.report.document import BenchmarkReport, Report, ReportDiff
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
    from decisor.lab.evaluation.store import open_store
    from decisor.lab.report.document import make_report, report_as_csv, report_as_markdown
    from decisor.system.serialization import finite_json_value

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
        print(
            report_as_markdown(report)
            if markdown
            else report_as_csv(report)
            if csv
            else json.dumps(finite_json_value(report), allow_nan=False) + "\n",
            end="",
        )
    elif not html:
        print_report(report)


def ask_with_judge(judge: str, ask: Callable[[LLM], Awaitable[T]]) -> T:
    """Call ``ask`` with the named LLM, close the LLM, and return the answer."""
    from decisor.llms.choose import choose_llm
    from decisor.llms.shared import close_llm

    judging = choose_llm(judge, os.environ)
    if judging is None:
        raise SetupError(f"{judge!r} names no LLM: give MODEL or MODEL@URL.")

    async def run() -> T:
        try:
            return await ask(judging)
        finally:
            await close_llm(judging)

    return asyncio.run(run())


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
    """Print the table of ``decisor eval``, then what there is to say of each benchmark."""
    from decisor.lab.evaluation.suite import format_suite_table
    from decisor.lab.report.charts import describe_agreement
    from decisor.system.text import clean_one_line

    lines = [line for one in report.benchmarks for line in list_remarks(one, report)]
    lines += [describe_agreement(report.opinion)] if report.opinion else []
    lines += describe_run_diff(report.diff, report) if report.diff else []
    console = clean_console(sys.stdout, None)
    console.print(format_suite_table(report.outcomes), soft_wrap=True)
    for line in lines:
        console.print(clean_one_line(line, 400), soft_wrap=True)


def list_remarks(one: BenchmarkReport, report: Report) -> list[str]:
    """Return a benchmark's clear differences, failures and crashes."""
    from decisor.lab.report.charts import format_points, format_points_range, format_probability
    from decisor.lab.report.document import list_result_notes

    lines = []
    for pair in one.comparisons:
        if pair.p_holm < 0.05:
            points = f"{format_points(pair.difference)} points ({format_points_range(pair.interval)})"
            lines.append(
                f"{report.label(pair.one)} is better than {report.label(pair.other)} by {points}, "
                f"p {format_probability(pair.p_holm)} after Holm, {pair.pairs} pairs."
            )
    if one.comparisons and not lines:
        lines.append("No two techniques differ clearly (p < 0.05 after Holm).")
    lines += list_result_notes([row for row in one.rows if not row.group], report)
    for row in one.rows:
        if not row.group and row.failures:
            classes = ", ".join(f"{name} {many}" for name, many in row.failures.items())
            lines.append(f"Failures of {report.label_of_row(row)}: {classes}")
    crashes = [
        case.reasons[-1]
        for case in report.outcomes
        if case.state == "crashed" and case.benchmark == one.name and case.reasons
    ]
    if crashes:
        # A crash mostly has one cause for all cases, so the commonest reason is shown.
        why = max(crashes, key=crashes.count)
        lines.append(f"Crashed {len(crashes)}, most of all: {why} (decisor eval --again crashed runs them again)")
    return lines


def describe_run_diff(diff: ReportDiff, report: Report) -> list[str]:
    from decisor.lab.report.charts import format_points, format_points_range, format_probability

    gained, lost = diff.gained, diff.lost
    lines = [f"Against the earlier run: {format_count(gained, 'case')} gained, {lost} lost."]
    for one in diff.comparisons:
        points = f"{format_points(one.difference)} points ({format_points_range(one.interval)})"
        lines.append(
            f"  {one.benchmark}, {report.label(one.one)}: {points}, "
            f"p {format_probability(one.p_holm)}, {one.pairs} pairs"
        )
    for where, names in (("this run", diff.only_here), ("the earlier run", diff.only_there)):
        lines += [f"  only in {where}: {name}" for name in names]
    return lines
