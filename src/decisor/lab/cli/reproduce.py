"""``decisor reproduce``: a paper's table, run as the paper ran it and printed as the paper prints it, ours beside."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.output import clean_console, print_json
from decisor.errors import SetupError
from decisor.system.text import clean_one_line

if TYPE_CHECKING:
    from decisor.lab.evaluation.runner import Suite
    from decisor.lab.evaluation.store import RunStore
    from decisor.lab.evaluation.suite import SuiteRequest
    from decisor.lab.reproduction.papers import Paper, PaperTable
    from decisor.lab.reproduction.tables import FilledTable

ALL, NONE = "all", "none"
Names = list[str] | None


def reproduce_command(
    paper: Annotated[str, typer.Argument(help="planrag, planrag-early, radagent, furepa or plan-rag.")] = "",
    table: Annotated[str, typer.Argument(help='A number, a name ("figure 5"), or all.')] = "",
    models: Annotated[Names, typer.Option("--llm", help="MODEL or MODEL@URL; none: only cells without an LLM.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The released files ($DECISOR_DATA).")] = None,
    benches: Annotated[
        Names, typer.Option("-b", "--bench", help='Settings of a benchmark: "dqa db=mysql://HOST", "popqa corpus=WIKI"')
    ] = None,
    settings: Annotated[Names, typer.Option("-o", help="Setting of the techniques: planner_llm=gpt-4o")] = None,
    judge: Annotated[str, typer.Option(help="LLM that judges or ranks answers: MODEL@URL.")] = "",
    store: Annotated[str | None, typer.Option(help="The run store (PAPER.db).")] = None,
    share: Annotated[float, typer.Option(min=0.001, max=1.0, help="Share of the cases: 0.1 is a tenth.")] = 1.0,
    limit_calls: Annotated[int | None, typer.Option(min=1, help="LLM calls for one case.")] = None,
    cases_at_once: Annotated[int, typer.Option(min=1, max=10_000, help="Cases at a time.")] = 8,
    max_dollars: Annotated[float | None, typer.Option(min=0.0, help="Dollars for the whole run.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens for the whole run.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate the cost; run nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask above one dollar.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables as Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="The tables as LaTeX.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write the tables as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The tables as one JSON array.")] = False,
) -> None:
    """Reproduce a paper's table: run what it needs, print ours and the published figure in each cell.

    Without TABLE the paper's tables are listed. If it was stopped in any way, the same command goes on.
    """
    from decisor.lab.cli.evaluate import confirm_spending
    from decisor.lab.evaluation.suite import SuiteRequest
    from decisor.lab.reproduction.papers import read_paper
    from decisor.lab.reproduction.tables import estimate_suites, format_estimates, plan_suites
    from decisor.runtime.budget import Limits
    from decisor.system.settings import parse_settings

    if not paper or not table:
        print(format_contents(paper), end="")
        return
    if markdown + latex + as_json > 1:
        raise SetupError("Give one of --markdown, --latex and --json.")
    content = read_paper(paper)
    tables = list(content.tables) if table == ALL else [content.table(table)]
    more = parse_settings(settings or [])
    request = SuiteRequest(
        store=store or f"{paper}.db",
        benches=tuple(benches or ()),
        models=tuple(models or ()),
        share=share,
        limits=Limits(calls=limit_calls),
        cases_at_once=cases_at_once,
        calls_at_once=max(32, cases_at_once),
        max_dollars=max_dollars,
        max_tokens=max_tokens,
    )
    code = 0
    if models:
        if models == [NONE]:
            request = replace(request, models=())
        opened = open_planned_suites(plan_suites(tables, request, data, judge, more), dry_run)
        estimates = estimate_suites(opened, request.store)
        if dry_run:
            print(format_estimates(estimates), end="")
            return
        confirm_spending(estimates, yes, max_dollars)
        code = run_planned_suites(opened)
    elif dry_run:
        raise SetupError("--dry-run needs --llm: the price is the LLM's.")
    filled = fill_from_store(content, tables, request, Inputs(data, judge, more))
    print_tables(filled, markdown, latex, as_json, html)
    raise typer.Exit(code)


def format_contents(paper: str) -> str:
    """Format the list of papers, or of the tables of one."""
    from decisor.lab.reproduction.papers import PAPERS, list_published, read_paper

    lines = []
    for name in [paper] if paper else PAPERS:
        content = read_paper(name)
        lines.append(f"{name}: {content.title}")
        for table in content.tables:
            figures = len(list_published(table))
            printed = f"{figures} published figures" if figures else "no published figure"
            lines.append(f"  {table.name:<12} {table.title} ({printed})")
        if content.left_out:
            lines.append(f"  Not here: {content.left_out}")
    lines.append(f"Run one: decisor reproduce {paper or 'planrag'} TABLE --data DIR --llm MODEL. First: --dry-run")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Inputs:
    """What the tables are filled from, beside the store."""

    data: Path | None
    judge: str
    settings: Mapping[str, str]


def open_planned_suites(requests: Sequence[SuiteRequest], dry_run: bool) -> list[tuple[SuiteRequest, Suite]]:
    """Open the suites, a benchmark at a time; one that lacks its files is named and left out.

    Raises:
        SetupError: all of them lack something.
    """
    from decisor.lab.evaluation.suite import open_suite, open_suite_to_price, parse_suite_entry

    open_one = open_suite_to_price if dry_run else open_suite
    opened, faults = [], dict[str, str]()
    for request in requests:
        benches = []
        for bench in request.benches:
            try:
                for one in open_one(replace(request, benches=(bench,)), os.environ).benches.values():
                    one.cases()
                benches.append(bench)
            except SetupError as error:
                faults[parse_suite_entry(bench)[0]] = str(error)
        if benches:
            complete = replace(request, benches=tuple(benches))
            opened.append((complete, open_one(complete, os.environ)))
    if faults and not opened:
        raise SetupError(next(iter(faults.values())))
    for bench, why in faults.items():
        print(clean_one_line(f"decisor: {bench} is left out: {why}", 400), file=sys.stderr)
    return opened


def run_planned_suites(opened: Sequence[tuple[SuiteRequest, Suite]]) -> int:
    """Run suites on their store, within the bounds of the first for all of them; return the exit code."""
    from decisor.lab.cli.evaluate import run_suite_here
    from decisor.lab.evaluation.store import open_store
    from decisor.llms.shared import Spending
    from decisor.types import Usage

    spent, code = Usage(), 0
    for request, suite in opened:
        most = Spending(
            None if request.max_dollars is None else request.max_dollars - (spent.dollars or 0.0),
            None if request.max_tokens is None else request.max_tokens - spent.tokens,
        )
        with closing(open_store(request.store)) as store:
            code, usage = asyncio.run(run_suite_here(replace(suite, most=most), store, request))
        spent = spent + usage
        if code:
            return code
    return code


def fill_from_store(
    paper: Paper, tables: Sequence[PaperTable], request: SuiteRequest, inputs: Inputs
) -> list[FilledTable]:
    """Fill tables from what the store holds; nothing of ours if there is no store."""
    from decisor.lab.evaluation.store import open_store
    from decisor.lab.reproduction.tables import RunData, fill_table, find_dqa_folder

    folder = find_dqa_folder(inputs.data, request.benches)
    if not Path(request.store).exists():
        return [one for table in tables for one in fill_table(paper, table, RunData((), folder), [])]
    with closing(open_store(request.store, create=False)) as store:
        outcomes = store.outcomes()
        models = list(dict.fromkeys(one.model for one in outcomes if one.model != "none"))
        filled = []
        for table in tables:
            ranks = judge_ranks(store, table, inputs) if table.measure == "rank" else {}
            run = RunData(outcomes, folder, ranks, inputs.settings)
            filled += fill_table(paper, table, run, models)
        return filled


def judge_ranks(store: RunStore, table: PaperTable, inputs: Inputs) -> Mapping[str, float]:
    """Return the mean preference ranks of a table's techniques; empty without a judge or without answers of all."""
    from decisor.lab.cli.report import ask_with_judge
    from decisor.lab.evaluation.comparisons import rank_by_preference
    from decisor.lab.evaluation.suite import label_technique
    from decisor.lab.reproduction.tables import add_settings

    labels = [label_technique(add_settings(row.technique, inputs.settings)) for row in table.rows]
    if not inputs.judge:
        return {}
    return ask_with_judge(inputs.judge, lambda llm: rank_by_preference(store, llm, labels))


def print_tables(tables: Sequence[FilledTable], markdown: bool, latex: bool, as_json: bool, html: Path | None) -> None:
    """Print tables in the form that is asked for, and write the page."""
    from decisor.lab.reproduction.tables import format_html, format_latex, format_markdown

    if html is not None:
        try:
            html.write_text(format_html(tables), "utf-8")
        except OSError as error:
            raise SetupError(f"Cannot write {html}: {error.strerror}.") from error
    if as_json:
        from decisor.system.serialization import json_value

        print_json([json_value(table) for table in tables])
    elif markdown or latex:
        print("\n".join(format_markdown(table) if markdown else format_latex(table) for table in tables), end="")
    else:
        for table in tables:
            show_filled_table(table)


def show_filled_table(table: FilledTable) -> None:
    """Print a table on the terminal, the difference below the two figures."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from decisor.lab.reproduction.tables import describe_table

    console = clean_console(sys.stdout, None if sys.stdout.isatty() else 140)
    grid = Table(title=describe_table(table), title_justify="left", box=SIMPLE_HEAD)
    grid.add_column(table.heads[0], overflow="fold")
    for head in table.heads[1:]:
        grid.add_column(head, justify="right")
    for head, cells in table.rows:
        grid.add_row(clean_one_line(head, 80), *("\n".join(line for line in cell.lines() if line) for cell in cells))
    console.print(grid)
    for note in table.notes:
        console.print(" ".join(note.split()), markup=False)
    console.print()
