"""decisor bench: the benchmarks that there are; questions of Decision QA run, made and loaded."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.cli.output import print_json
from decisor.errors import SetupError
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from decisor.lab.benchmark import Outcome
    from decisor.lab.dqa.generator import Dataset
    from decisor.lab.evaluation.runner import Suite
    from decisor.trace.events import TraceEntry

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
dqa = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Decision QA: where to trade, what to build.")
app.add_typer(dqa, name="dqa")


@app.callback()
def bench_root() -> None:
    """List benchmarks; run, generate and load questions of Decision QA."""


@app.command("list")
def list_benchmarks_command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the benchmarks that decisor eval runs, and their settings."""
    from decisor.cli.config import print_rows
    from decisor.lab.benchmark import BENCHES, SUMMARIES, find_bench_class
    from decisor.session.run_setup import build_technique_row

    print_rows(
        [build_technique_row(name, find_bench_class(name), SUMMARIES.get(name, "")) for name in BENCHES], as_json, "-b"
    )


@dqa.command("run")
def run_dqa_command(
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="A folder in the released layout.")],
    technique: Annotated[str, typer.Option("--technique", "-t", help="See decisor techniques.")] = "plan_rag",
    scenario: Annotated[str, typer.Option(help="locating, building or both.")] = "both",
    form: Annotated[str | None, typer.Option(help="sql or graph.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions of each scenario.")] = None,
    llm: Annotated[str | None, typer.Option("--llm", help="MODEL or MODEL@BASE_URL.")] = None,
    settings: Annotated[list[str] | None, typer.Option("-o", help="A setting of the technique: key=value.")] = None,
    db: Annotated[
        str | None,
        typer.Option("--db", help="mysql://HOST: a server for all worlds; or a database that holds the one."),
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="bolt://HOST, likewise; means --form graph.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Load worlds anew that the server has.")] = False,
    at_once: Annotated[int, typer.Option(min=1, max=1000, help="Questions at a time.")] = 8,
    max_calls: Annotated[int | None, typer.Option(min=1, help="LLM calls for one question.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds for one question.")] = None,
    traces: Annotated[Path | None, typer.Option(metavar="FOLDER", help="For the trace of each question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """Run questions of Decision QA through a technique and score its answers.

    It is decisor eval -b dqa in a run store of its own.
    """
    from decisor.lab.cli.report import print_report
    from decisor.lab.dqa.failures import build_summary_document, compare_with_paper
    from decisor.lab.evaluation.suite import SuiteRequest, open_suite
    from decisor.lab.report.document import make_report
    from decisor.runtime.budget import Limits
    from decisor.system.settings import parse_settings

    if db and graph:
        raise SetupError("Give --db or --graph: the questions are asked of one of them.")
    # The options are the settings of the benchmark, as text.
    form = form or ("graph" if graph else "sql")
    options = {
        "data": data,
        "scenario": scenario,
        "form": form,
        "limit": limit,
        "db": graph or db,
        "fresh": "yes" if fresh else None,
    }
    own_settings = parse_settings(settings or [])
    suite = open_suite(
        SuiteRequest(
            benches=(
                format_suite_entry("dqa", {name: str(value) for name, value in options.items() if value is not None}),
            ),
            techniques=(format_suite_entry(technique, own_settings),),
            models=(llm,) if llm else (),
            limits=Limits(calls=max_calls, seconds=max_seconds),
            cases_at_once=at_once,
            calls_at_once=max(32, at_once),
        ),
        os.environ,
    )
    # The store is a temporary one: this command shows one run and keeps none.
    outcomes, seconds, loading = run_suite(suite, traces, form)
    if as_json:
        setup = {
            "benchmark": "dqa",
            "technique": technique,
            "settings": own_settings,
            "form": form,
            "llm": next(iter(suite.models), "none"),
        }
        times = {"seconds": round(seconds + loading, 3), "seconds_loading": round(loading, 3)}
        print_json({**setup, **build_summary_document(outcomes, form), **times})
        return
    print_report(make_report(outcomes))
    print(*compare_with_paper(outcomes, form), sep="\n")
    print(f"{format_count(len(outcomes), 'question')} in {seconds:.2f} s, after {loading:.2f} s of reading the data.")


def format_suite_entry(name: str, settings: Mapping[str, str]) -> str:
    """Format a name and its settings as an entry of a suite.

    >>> format_suite_entry("dqa", {"data": "my data"})
    "dqa data='my data'"
    """
    return " ".join([name, *(f"{key}={quote(value)}" for key, value in settings.items())])


def run_suite(suite: Suite, traces: Path | None, form: str) -> tuple[list[Outcome], float, float]:
    """Run a suite; return its outcomes, the seconds of answering and the seconds of loading before."""
    from decisor.lab.cli.evaluate import Display
    from decisor.lab.evaluation.postgres_store import open_store
    from decisor.lab.evaluation.runner import Tally, evaluate_suite
    from decisor.system.storage import open_private
    from decisor.trace.file import format_trace_file

    if traces:
        traces.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    reports: list[float] = []

    def finished(outcome: Outcome, events: Sequence[TraceEntry]) -> None:
        if traces:
            with open_private(traces / f"{outcome.case}-{form}.jsonl") as file:
                file.write(format_trace_file(events))

    with TemporaryDirectory(prefix="decisor-run-") as folder, Display() as display:

        def hear(tally: Tally) -> None:
            # The first report comes when cases are planned, so the time until then is loading.
            reports.append(time.monotonic() - began)
            display.hear(tally)

        store = open_store(Path(folder) / "run.db")
        try:
            asyncio.run(evaluate_suite(suite, store, hear=hear, finished=finished))
            return store.outcomes(), time.monotonic() - began - reports[0], reports[0]
        finally:
            store.close()


@dqa.command("statistics")
def statistics_command(
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="A folder in the released layout.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array of tables.")] = False,
) -> None:
    """Count questions, databases, rows, nodes and edges, and print the figures of the paper beside them."""
    from decisor.lab.dqa.analysis import make_size_tables, measure_scenarios
    from decisor.lab.report.tables import format_markdown_paper_table
    from decisor.system.serialization import json_value

    counted = make_size_tables(measure_scenarios(data))
    if as_json:
        print_json(json_value(counted))
        return
    for table in counted:
        print(f"{table.title} ({table.source})", format_markdown_paper_table(table), table.note, sep="\n\n", end="\n\n")


@dqa.command("generate")
def generate_command(
    scenario: Annotated[str, typer.Option(help="locating or building.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    size: Annotated[str, typer.Option(help="tiny, small, medium, large, huge, or NODESxEDGES.")] = "small",
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same files.")] = 0,
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
) -> None:
    """Generate a new world with questions that have one best decision, in the released layout."""
    from decisor.lab.dqa.generator import generate_dataset

    if scenario not in ("locating", "building"):
        raise SetupError(f"--scenario is locating or building, not {scenario!r}.")
    world = generate_dataset("locating" if scenario == "locating" else "building", size, seed, out, questions)
    print(f"{world.folder}: {format_dataset_size(world)}")


@dqa.command("import")
def import_database_command(
    path: Annotated[Path, typer.Argument(help="A dump: .sql or .cql.")],
    db: Annotated[str, typer.Option("--db", help="Where to, such as sqlite:///trade.db or postgresql://...")],
) -> None:
    """Load one database of the benchmark into a store, in file order, to the last digit."""
    from decisor.lab.dqa.databases import load_database
    from decisor.system.secrets import hide_password

    began = time.monotonic()
    asyncio.run(load_database(path, db))
    seconds, place = time.monotonic() - began, quote(hide_password(db))
    print(f"{path.name} loaded in {seconds:.2f} s. Try: decisor ask QUESTION --db {place}")


@dqa.command("extract")
def extract_command(
    save: Annotated[Path, typer.Argument(help="A savegame as Clausewitz text.")],
    definitions: Annotated[Path, typer.Option(help="The game's map file of trading nodes, or its file of goods.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 200,
) -> None:
    """Read a world from a savegame, simulate it, and write questions in the released layout."""
    from decisor.lab.dqa.savegames import extract_worlds

    world = extract_worlds(save, out, definitions, questions)
    print(f"{world.folder}: {format_dataset_size(world)}")


def format_dataset_size(world: Dataset) -> str:
    nodes, edges = format_count(world.nodes, "node"), format_count(world.edges, "edge")
    return f"{format_count(world.questions, 'question')} on {nodes} and {edges}"
