"""decisor bench: get, make, annotate and run the questions of a benchmark."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from decisor.cli.bench_show import Ran
    from decisor.evaluation.runner import Suite
    from decisor.outcome import Outcome
    from decisor.trace.events import Entry

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
dqa = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Decision QA: where to trade, what to build.")
app.add_typer(dqa, name="dqa")


@app.callback()
def benchmarks() -> None:
    """Benchmarks: get, make, annotate and run their questions."""


@app.command("list")
def list_command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the benchmarks that decisor eval runs, and their settings."""
    from decisor.benchmarks.protocol import BENCHES, kind_of
    from decisor.cli.techniques import print_rows, row_of

    print_rows([row_of(name, kind_of(name)) for name in BENCHES], as_json, "-b")


@dqa.command("run")
def run_command(
    data: Annotated[Path, typer.Option("--data", help="Folder in the released layout.")],
    technique: Annotated[str, typer.Option("--technique", "-t")] = "plan_rag",
    scenario: Annotated[str, typer.Option(help="locating, building or both.")] = "both",
    form: Annotated[str, typer.Option(help="sql or graph.")] = "sql",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions of each scenario.")] = None,
    lm: Annotated[str | None, typer.Option("--lm", help="MODEL or MODEL@BASE_URL.")] = None,
    settings: Annotated[list[str] | None, typer.Option("-o", help="A setting of the technique: key=value.")] = None,
    db: Annotated[str | None, typer.Option("--db", help="A loaded database to ask, instead of loading one.")] = None,
    at_once: Annotated[int, typer.Option(min=1, max=1000, help="Questions at a time.")] = 8,
    max_calls: Annotated[int | None, typer.Option(min=1, help="LM calls for one question.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0.0, help="Seconds for one question.")] = None,
    traces: Annotated[Path | None, typer.Option(help="A folder for the trace of each question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """Run questions through a technique and score its answers, beside the published figures."""
    from shlex import quote

    from decisor.budget import Limits
    from decisor.cli.bench_show import Setup, document, show
    from decisor.evaluation.suite import Wanted, read_settings, suite_of

    asked = {"data": str(data), "scenario": scenario, "form": form, "limit": limit, "db": db}
    told = [f"{name}={quote(str(value))}" for name, value in asked.items() if value is not None]
    chosen = read_settings(settings or [])
    wanted = Wanted(
        benches=(" ".join(["dqa", *told]),),
        techniques=(" ".join([technique, *(f"{name}={quote(value)}" for name, value in chosen.items())]),),
        models=(lm,) if lm else (),
        limits=Limits(calls=max_calls, seconds=max_seconds),
        cases_at_once=at_once,
        calls_at_once=max(32, at_once),
    )
    if traces:
        traces.mkdir(parents=True, exist_ok=True)
    suite = suite_of(wanted, os.environ)
    ran = asyncio.run(run_all(suite, traces, form, bar=sys.stderr.isatty() and not as_json))
    setup = Setup(technique, form, chosen, next(iter(suite.models), "none"))
    if as_json:
        print(json.dumps(document(ran, setup), ensure_ascii=False))
    else:
        show(ran, setup)


async def run_all(suite: Suite, traces: Path | None, form: str, bar: bool) -> Ran:
    """The answers, in the order of the questions, and the seconds that reading and answering took."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from decisor.benchmarks.dqa.summary import answered
    from decisor.cli.bench_show import Ran
    from decisor.evaluation.runner import Tally, evaluate
    from decisor.evaluation.store.open import open_store
    from decisor.trace.file import file_text

    began = time.monotonic()
    loaded: list[float] = []
    outcomes: list[Outcome] = []
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())

    def finished(outcome: Outcome, events: Sequence[Entry]) -> None:
        outcomes.append(outcome)
        if traces:
            (traces / f"{outcome.case}-{form}.jsonl").write_text(file_text(events), "utf-8")

    with (
        TemporaryDirectory(prefix="decisor-run-") as folder,
        Progress(*columns, console=Console(stderr=True), disable=not bar, transient=True) as progress,
    ):
        task = progress.add_task(next(iter(suite.techniques)))

        def hear(tally: Tally) -> None:
            loaded.append(time.monotonic() - began)
            progress.update(task, total=tally.total, completed=tally.done)

        store = open_store(Path(folder) / "run.db")
        try:
            await evaluate(suite, store, hear=hear, finished=finished)
        finally:
            store.close()
    rows = sorted(map(answered, outcomes), key=lambda row: (row.scenario != "locating", row.question_num))
    return Ran(tuple(rows), time.monotonic() - began - loaded[0], loaded[0])


@dqa.command("generate")
def generate_command(
    scenario: Annotated[str, typer.Option(help="locating or building.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    size: Annotated[str, typer.Option(help="tiny, small, medium, large, huge, or NODESxEDGES.")] = "small",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
) -> None:
    """Make a new world with questions that have one best decision, in the released layout."""
    from decisor.benchmarks.dqa.generator.generate import generate

    if scenario not in ("locating", "building"):
        raise SetupError(f"--scenario is locating or building, not {scenario!r}.")
    made = generate("locating" if scenario == "locating" else "building", size, seed, out, questions)
    print(f"{made.folder}: {made.questions} questions on {made.nodes:,} nodes and {made.edges:,} edges")


@dqa.command("import")
def import_command(
    path: Annotated[Path, typer.Argument(help="A dump: .sql or .cql.")],
    db: Annotated[str, typer.Option("--db", help="Where to, such as sqlite:///trade.db or postgresql://...")],
) -> None:
    """Load one database of the benchmark into a store, in file order, to the last digit."""
    from decisor.benchmarks.dqa.load import load_database

    began = time.monotonic()
    asyncio.run(load_database(path, db))
    print(f"{path.name} loaded in {time.monotonic() - began:.2f} s. Try: decisor bench dqa run --data DIR --db URL")


@dqa.command("extract")
def extract_command(
    save: Annotated[Path, typer.Argument(help="A savegame as Clausewitz text.")],
    definitions: Annotated[Path, typer.Option(help="The game's map file of trading nodes, or its file of goods.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 200,
) -> None:
    """Read a world from a savegame, simulate it, and write questions in the released layout."""
    from decisor.benchmarks.dqa.savegames.extract import extract

    made = extract(save, out, definitions, questions)
    print(f"{made.folder}: {made.questions} questions on {made.nodes:,} nodes and {made.edges:,} edges")
