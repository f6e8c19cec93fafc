"""``decisor report``: what a finished or unfinished run shows, as a table, a page, Markdown, CSV or JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, TypeVar

import typer

from decisor.cli.console import clean_console
from decisor.errors import SetupError
from decisor.plurals import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from decisor.evaluation.failure_judge import Agreement
    from decisor.evaluation.preference_ranks import Ranks
    from decisor.evaluation.store.protocol import Key, Store
    from decisor.evaluation.win_rates import WinRate
    from decisor.outcome import Outcome
    from decisor.report.document import Benchmark, Report
    from decisor.types import LM

T = TypeVar("T")


def command(
    run: Annotated[str, typer.Argument(help="The store of a run, as decisor eval keeps it (RUN.db).")],
    against: Annotated[str | None, typer.Option(help="An earlier run to compare with.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page that works offline.")] = None,
    judge: Annotated[str | None, typer.Option(help="MODEL or MODEL@URL: a second opinion on failures.")] = None,
    ranks: Annotated[str | None, typer.Option(help="MODEL or MODEL@URL: ranks techniques by preference.")] = None,
    wins: Annotated[str | None, typer.Option(help="MODEL or MODEL@URL: judges win rates, with --over.")] = None,
    over: Annotated[str | None, typer.Option(help="The technique that the others are to win over.")] = None,
    judge_cases: Annotated[int, typer.Option(min=1, help="On so many failures, or cases, at most.")] = 100,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables as Markdown.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="One line for each outcome.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Report a run: results with intervals, comparisons, failures, and each case's story."""
    from decisor.evaluation.store.open import open_store
    from decisor.report.document import make

    if markdown + csv + as_json > 1:
        raise SetupError("Give one of --markdown, --csv and --json.")
    if (wins is None) != (over is None):
        raise SetupError("--wins MODEL and --over TECHNIQUE go together.")
    store = open_store(run, create=False)
    try:
        outcomes = store.outcomes()
        if not outcomes:
            raise SetupError(f"{run} holds no finished case yet.")
        before = None if against is None else read(against)
        second = opinion(store, judge, judge_cases) if judge else None
        order = ranked(store, ranks, judge_cases) if ranks else ()
        report = make(outcomes, store.about(), before, second, order, won(store, wins, over, judge_cases))
        if html:
            states: dict[Key, str] | None = None if before is None else {one.key: one.state for one in before}
            write_html(report, store, html, states, sys.stderr if markdown or csv or as_json else sys.stdout)
    finally:
        store.close()
    if markdown or csv or as_json:
        print(text_of(report, markdown, csv), end="")
    elif not html:
        show(report)


def opinion(store: Store, judge: str, most: int) -> Agreement:
    """How far the judge agrees with the rules; its replies are kept in the store, so they are bought once."""
    from decisor.evaluation.failure_judge import agreement, second_opinion

    return agreement(with_judge(judge, lambda lm: second_opinion(store, lm, most)), judge.partition("@")[0])


def ranked(store: Store, judge: str, most: int) -> list[Ranks]:
    """The techniques' mean ranks by preference; the judge's replies are kept too."""
    from decisor.evaluation.preference_ranks import preference_ranks

    return with_judge(judge, lambda lm: preference_ranks(store, lm, judge.partition("@")[0], most))


def won(store: Store, judge: str | None, over: str | None, most: int) -> list[WinRate]:
    """How often each technique wins over the one that is named; none where nobody is to judge."""
    from decisor.evaluation.win_rates import win_rates

    if judge is None or over is None:
        return []
    return with_judge(judge, lambda lm: win_rates(store, lm, judge.partition("@")[0], over, most))


def with_judge(judge: str, ask: Callable[[LM], Awaitable[T]]) -> T:
    """What ``ask`` gives with the LM that is named, which is closed after it."""
    from decisor.lms.choose import lm

    judging = lm(judge, os.environ)
    if judging is None:
        raise SetupError(f"{judge!r} names no LM: give MODEL or MODEL@URL.")

    async def run() -> T:
        try:
            return await ask(judging)
        finally:
            if (end := getattr(judging, "close", None)) is not None:
                await end()

    return asyncio.run(run())


def read(path: str) -> list[Outcome]:
    from decisor.evaluation.store.open import open_store

    store = open_store(path, create=False)
    try:
        return store.outcomes()
    finally:
        store.close()


def text_of(report: Report, markdown: bool, csv: bool) -> str:
    from decisor.report.document import as_json
    from decisor.report.markdown_csv import as_csv
    from decisor.report.markdown_csv import markdown as as_markdown

    if markdown or csv:
        return as_markdown(report) if markdown else as_csv(report)
    from decisor.encoding import finite

    return json.dumps(finite(as_json(report)), allow_nan=False) + "\n"


def write_html(report: Report, store: Store, path: Path, before: dict[Key, str] | None, notice: TextIO) -> None:
    """Beside the file first: a reader never sees half a page. ``notice``: where a line says what was written."""
    from decisor.report.page import write_page

    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with half.open("w", encoding="utf-8", newline="\n") as out:
            write_page(report, lambda one: store.trace(one.key), out, before)
        half.replace(path)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        half.unlink(missing_ok=True)
    print(f"{path}: {counted(len(report.outcomes), 'outcome')}, {path.stat().st_size / 1e6:.1f} MB", file=notice)


def show(report: Report) -> None:
    """One table for each benchmark, then what is clear between techniques."""
    from decisor.render.text import one_line
    from decisor.report.formatting import won_over

    console = clean_console(sys.stdout, None if sys.stdout.isatty() else 140)
    for one in report.benchmarks:
        console.print(table(one, report, narrow=console.width < 110))
        for line in remarks(one, report):
            console.print(line, markup=False)
    for ranks in report.ranks:
        order = ", ".join(f"{name} {rank:.2f}" for name, rank in sorted(ranks.ranks.items(), key=lambda item: item[1]))
        line = f"Mean preference ranks on {ranks.benchmark} ({counted(ranks.cases, 'case')}): {order}"
        console.print(one_line(line, 400), markup=False)
    for rate in report.wins:
        console.print(one_line(won_over(rate), 400), markup=False)
    if report.opinion:
        from decisor.report.formatting import agreed

        console.print(one_line(agreed(report.opinion), 300), markup=False)
    if report.diff:
        show_diff(report, console)


def table(one: Benchmark, report: Report, narrow: bool) -> Table:
    """``narrow`` leaves out tokens and seconds, and says the rarer outcomes in one column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from decisor.render.text import one_line
    from decisor.report.formatting import money, percent, short, spoken
    from decisor.statistics.compare import Side
    from decisor.statistics.summary import STATES

    grid = Table(title=f"{one_line(one.name)}, {counted(one.cases, 'case')}", title_justify="left", box=SIMPLE_HEAD)
    rows = [row for row in one.rows if not row.group]
    states = [state for state in STATES if state in ("right", "wrong") or any(row.states[state] for row in rows)]
    grid.add_column("technique", overflow="fold", min_width=12)
    outcomes = [spoken(state) for state in states]
    costs: tuple[str, ...] = ("calls", "tokens", "cost", "seconds")
    if narrow:
        outcomes, costs = ["right", "wrong", *(["other"] if len(states) > 2 else [])], ("calls", "cost")
    for name in ("accuracy", "95 %", *outcomes, *costs):
        grid.add_column(name, justify="right")
    for row in rows:
        within = f"{100 * row.interval.low:.1f}-{100 * row.interval.high:.1f}" if row.interval else ""
        dollars = None if row.usage.dollars is None else row.usage.dollars / row.outcomes
        figures = {"calls": short(row.usage.calls / row.outcomes), "tokens": short(row.usage.tokens / row.outcomes),
                   "cost": money(dollars), "seconds": f"{row.seconds:.3g}"}  # fmt: skip
        counts = [str(row.states[state]) for state in states]
        if narrow:
            rare = [f"{row.states[state]} {spoken(state)}" for state in states[2:] if row.states[state]]
            counts = [*counts[:2], *([", ".join(rare)] if len(states) > 2 else [])]
        accuracy = "" if row.accuracy is None else percent(row.accuracy, 1)
        who = Text(one_line(report.label(Side(row.technique, row.model)), 60))
        grid.add_row(who, accuracy, within, *counts, *(figures[what] for what in costs))
    return grid


def remarks(one: Benchmark, report: Report) -> list[str]:
    """Clear differences, failures, and where published figures are."""
    from decisor.render.text import one_line
    from decisor.report.formatting import points, probability
    from decisor.report.markdown_csv import asides
    from decisor.statistics.compare import Side

    lines = []
    for pair in one.comparisons:
        if pair.p_holm < 0.05:
            within = f"{points(pair.interval.low)} to {points(pair.interval.high)}"
            lines.append(f"{report.label(pair.one)} is better than {report.label(pair.other)} by "
                         f"{points(pair.difference)} points ({within}), p {probability(pair.p_holm)} after Holm, "
                         f"{pair.pairs} pairs.")  # fmt: skip
    if one.comparisons and not lines:
        lines.append("No two techniques differ clearly (p < 0.05 after Holm).")
    lines += asides([row for row in one.rows if not row.group], report)
    for row in one.rows:
        if not row.group and row.failures:
            classes = ", ".join(f"{name} {many}" for name, many in row.failures.items())
            lines.append(f"Failures of {report.label(Side(row.technique, row.model))}: {classes}")
    crashes = [case.reasons[-1] for case in report.outcomes
               if case.state == "crashed" and case.benchmark == one.name and case.reasons]  # fmt: skip
    if crashes:
        why = max(crashes, key=crashes.count)
        lines.append(f"Crashed {len(crashes)}, most of all: {why} (decisor eval --again crashed runs them again)")
    if one.published:
        lines.append(f"{len(one.published)} published figures beside these: --html, --markdown or --json.")
    if one.tables:
        lines.append(f"{counted(len(one.tables), 'table')} of its papers: --html, --markdown or --json.")
    return [one_line(line, 400) for line in lines]


def show_diff(report: Report, console: Console) -> None:
    from decisor.render.text import one_line
    from decisor.report.formatting import points, probability

    assert report.diff is not None
    changed = report.diff.changed
    gained, lost = sum(one.after == "right" for one in changed), sum(one.before == "right" for one in changed)
    console.print(f"Against the earlier run: {counted(gained, 'case')} gained, {lost} lost.", markup=False)
    for one in report.diff.comparisons:
        within = f"{points(one.interval.low)} to {points(one.interval.high)}"
        line = (f"  {one.benchmark}, {report.label(one.one)}: {points(one.difference)} points ({within}), "
                f"p {probability(one.p_holm)}, {one.pairs} pairs")  # fmt: skip
        console.print(one_line(line, 300), markup=False)
    for name in (*report.diff.only_here, *report.diff.only_there):
        where = "this run" if name in report.diff.only_here else "the earlier run"
        console.print(one_line(f"  only in {where}: {name}", 300), markup=False)
