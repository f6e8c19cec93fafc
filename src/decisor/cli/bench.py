"""decisor bench: get, make, annotate and run the questions of a benchmark."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.errors import SetupError

if TYPE_CHECKING:
    from decisor.cli.bench_run import Ran, Setup

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
dqa = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Decision QA: where to trade, what to build.")
app.add_typer(dqa, name="dqa")


@app.callback()
def benchmarks() -> None:
    """Benchmarks: get, make, annotate and run their questions."""


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
    from decisor.budget import Limits
    from decisor.cli.bench_run import Setup
    from decisor.cli.bench_show import document, show

    if traces:
        traces.mkdir(parents=True, exist_ok=True)
    setup = Setup(
        technique, form, read_settings(settings or []), url=db, at_once=at_once,
        limits=Limits(calls=max_calls, seconds=max_seconds), traces=traces,
    )  # fmt: skip
    setup.made()  # a bad technique or setting is told before an LM is looked for
    setup = replace(setup, lm=lm_for(technique, lm))
    ran, loaded = run_all(setup, data, scenario, limit, bar=sys.stderr.isatty() and not as_json)
    if as_json:
        print(json.dumps(document(ran, setup, loaded), ensure_ascii=False))
    else:
        show(ran, setup, loaded)


def run_all(setup: Setup, data: Path, scenario: str, limit: int | None, bar: bool) -> tuple[Ran, float]:
    """The answers, and the seconds that reading the data took."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from decisor.cli.bench_cases import FORMS, SCENARIOS, read_cases
    from decisor.cli.bench_run import run

    if scenario not in (*SCENARIOS, "both"):
        raise SetupError(f"--scenario is locating, building or both, not {scenario!r}.")
    if setup.form not in FORMS:
        raise SetupError(f"--form is sql or graph, not {setup.form!r}.")
    began = time.monotonic()
    there = [name for name in SCENARIOS if (data / name / "questions").is_dir()]
    wanted = (there or list(SCENARIOS)) if scenario == "both" else [scenario]
    cases = [case for name in wanted for case in read_cases(data, name, setup.form, limit)]
    loaded = time.monotonic() - began
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not bar, transient=True) as progress:
        task = progress.add_task(setup.label, total=len(cases))
        return asyncio.run(run(cases, setup, lambda row: progress.advance(task))), loaded


def read_settings(words: list[str]) -> dict[str, str]:
    """
    >>> read_settings(["replan=no", "max_steps=20"])
    {'replan': 'no', 'max_steps': '20'}
    """
    pairs = [word.partition("=") for word in words]
    if wrong := [key for key, equals, _ in pairs if not (key and equals)]:
        raise SetupError(f"-o takes key=value, not {wrong[0]!r}.")
    return {key: value for key, _, value in pairs}


def lm_for(technique: str, spec: str | None) -> Any:
    """The LM that was named or found; a stand-in where the technique asks none."""
    from decisor.cli.bench_run import WITHOUT_LM, NoLM

    if technique in WITHOUT_LM:
        return NoLM()
    from decisor.lms.choose import lm

    found = lm(spec, os.environ)
    if found is None:
        raise SetupError(f"{technique} needs an LM: --lm MODEL or MODEL@BASE_URL. Without one: --technique exact.")
    return found


@dqa.command("generate")
def generate_command(
    scenario: Annotated[str, typer.Option(help="locating or building.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    size: Annotated[str, typer.Option(help="tiny, small, medium, large, huge, or NODESxEDGES.")] = "small",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    questions: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
) -> None:
    """Make a new world with questions that have one best decision, in the released layout."""
    from decisor.benchmarks.dqa.generate import generate

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
    from decisor.benchmarks.dqa.extract import extract

    made = extract(save, out, definitions, questions)
    print(f"{made.folder}: {made.questions} questions on {made.nodes:,} nodes and {made.edges:,} edges")
