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

from decisor.cli.console import print_json
from decisor.errors import SetupError
from decisor.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from decisor.benchmarks.dqa.generator.generate import Dataset
    from decisor.evaluation.runner import Suite
    from decisor.outcome import Outcome
    from decisor.trace.events import Entry

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
dqa = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Decision QA: where to trade, what to build.")
app.add_typer(dqa, name="dqa")


@app.callback()
def benchmarks() -> None:
    """Benchmarks: list them; run, make and load questions of Decision QA."""


@app.command("list")
def list_command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the benchmarks that decisor eval runs, and their settings."""
    from decisor.benchmarks.protocol import BENCHES, kind_of
    from decisor.cli.techniques import print_rows
    from decisor.session.catalogue import row_of

    print_rows([row_of(name, kind_of(name)) for name in BENCHES], as_json, "-b")


@dqa.command("run")
def run_command(
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="A folder in the released layout.")],
    technique: Annotated[str, typer.Option("--technique", "-t", help="See decisor techniques.")] = "plan_rag",
    scenario: Annotated[str, typer.Option(help="locating, building or both.")] = "both",
    form: Annotated[str | None, typer.Option(help="sql or graph.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions of each scenario.")] = None,
    lm: Annotated[str | None, typer.Option("--lm", help="MODEL or MODEL@BASE_URL.")] = None,
    settings: Annotated[list[str] | None, typer.Option("-o", help="A setting of the technique: key=value.")] = None,
    db: Annotated[
        str | None,
        typer.Option("--db", help="mysql://HOST: a server for all worlds; or a database that holds the one."),
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="bolt://HOST, likewise; means --form graph.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Load worlds anew that the server has.")] = False,
    at_once: Annotated[int, typer.Option(min=1, max=1000, help="Questions at a time.")] = 8,
    max_calls: Annotated[int | None, typer.Option(min=1, help="LM calls for one question.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds for one question.")] = None,
    traces: Annotated[Path | None, typer.Option(metavar="FOLDER", help="For the trace of each question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """Run questions through a technique and score its answers: decisor eval -b dqa, in a run store of its own."""
    from decisor.benchmarks.dqa.summary import beside_the_paper, document
    from decisor.budget import Limits
    from decisor.cli.report import show
    from decisor.evaluation.suite import SuiteRequest, read_settings, suite_of
    from decisor.report.document import make

    if db and graph:
        raise SetupError("Give --db or --graph: the questions are asked of one of them.")
    form = form or ("graph" if graph else "sql")
    options = {"data": data, "scenario": scenario, "form": form, "limit": limit, "db": graph or db,
               "fresh": "yes" if fresh else None}  # fmt: skip
    own_settings = read_settings(settings or [])
    suite = suite_of(
        SuiteRequest(
            benches=(entry("dqa", {name: str(value) for name, value in options.items() if value is not None}),),
            techniques=(entry(technique, own_settings),),
            models=(lm,) if lm else (),
            limits=Limits(calls=max_calls, seconds=max_seconds),
            cases_at_once=at_once,
            calls_at_once=max(32, at_once),
        ),
        os.environ,
    )
    outcomes, seconds, loading = run_suite(suite, traces, form)
    if as_json:
        setup = {"benchmark": "dqa", "technique": technique, "settings": own_settings, "form": form,
                 "lm": next(iter(suite.models), "none")}  # fmt: skip
        times = {"seconds": round(seconds + loading, 3), "seconds_loading": round(loading, 3)}
        print_json({**setup, **document(outcomes, form), **times})
        return
    show(make(outcomes))
    print(*beside_the_paper(outcomes, form), sep="\n")
    print(f"{counted(len(outcomes), 'question')} in {seconds:.2f} s, after {loading:.2f} s of reading the data.")


def entry(name: str, settings: Mapping[str, str]) -> str:
    """As a suite names it.

    >>> entry("dqa", {"data": "my data"})
    "dqa data='my data'"
    """
    return " ".join([name, *(f"{key}={quote(value)}" for key, value in settings.items())])


def run_suite(suite: Suite, traces: Path | None, form: str) -> tuple[list[Outcome], float, float]:
    """The outcomes, the seconds that answering took, and those of reading the data before."""
    from decisor.cli.eval import Display
    from decisor.evaluation.runner import Tally, evaluate
    from decisor.evaluation.store.open import open_store
    from decisor.private_file import open_private
    from decisor.trace.file import file_text

    if traces:
        traces.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    reports: list[float] = []

    def finished(outcome: Outcome, events: Sequence[Entry]) -> None:
        if traces:
            with open_private(traces / f"{outcome.case}-{form}.jsonl") as file:
                file.write(file_text(events))

    with TemporaryDirectory(prefix="decisor-run-") as folder, Display() as display:

        def hear(tally: Tally) -> None:
            reports.append(time.monotonic() - began)
            display.hear(tally)

        store = open_store(Path(folder) / "run.db")
        try:
            asyncio.run(evaluate(suite, store, hear=hear, finished=finished))
            return store.outcomes(), time.monotonic() - began - reports[0], reports[0]
        finally:
            store.close()


@dqa.command("statistics")
def statistics_command(
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="A folder in the released layout.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array of tables.")] = False,
) -> None:
    """Count questions, databases, rows, nodes and edges, beside what the paper prints of its own."""
    from decisor.benchmarks.dqa.statistics import sizes, tables
    from decisor.encoding import json_value
    from decisor.report.markdown_csv import paper_table

    counted = tables(sizes(data))
    if as_json:
        print_json(json_value(counted))
        return
    for table in counted:
        print(f"{table.title} ({table.source})", paper_table(table), table.note, sep="\n\n", end="\n\n")


@dqa.command("generate")
def generate_command(
    scenario: Annotated[str, typer.Option(help="locating or building.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    size: Annotated[str, typer.Option(help="tiny, small, medium, large, huge, or NODESxEDGES.")] = "small",
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same files.")] = 0,
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
) -> None:
    """Make a new world with questions that have one best decision, in the released layout."""
    from decisor.benchmarks.dqa.generator.generate import generate

    if scenario not in ("locating", "building"):
        raise SetupError(f"--scenario is locating or building, not {scenario!r}.")
    world = generate("locating" if scenario == "locating" else "building", size, seed, out, questions)
    print(f"{world.folder}: {size_of(world)}")


@dqa.command("import")
def import_command(
    path: Annotated[Path, typer.Argument(help="A dump: .sql or .cql.")],
    db: Annotated[str, typer.Option("--db", help="Where to, such as sqlite:///trade.db or postgresql://...")],
) -> None:
    """Load one database of the benchmark into a store, in file order, to the last digit."""
    from decisor.benchmarks.dqa.load import load_database
    from decisor.secrets import without_password

    began = time.monotonic()
    asyncio.run(load_database(path, db))
    seconds, place = time.monotonic() - began, quote(without_password(db))
    print(f"{path.name} loaded in {seconds:.2f} s. Try: decisor ask QUESTION --db {place}")


@dqa.command("extract")
def extract_command(
    save: Annotated[Path, typer.Argument(help="A savegame as Clausewitz text.")],
    definitions: Annotated[Path, typer.Option(help="The game's map file of trading nodes, or its file of goods.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 200,
) -> None:
    """Read a world from a savegame, simulate it, and write questions in the released layout."""
    from decisor.benchmarks.dqa.savegames.extract import extract

    world = extract(save, out, definitions, questions)
    print(f"{world.folder}: {size_of(world)}")


def size_of(world: Dataset) -> str:
    nodes, edges = counted(world.nodes, "node"), counted(world.edges, "edge")
    return f"{counted(world.questions, 'question')} on {nodes} and {edges}"
