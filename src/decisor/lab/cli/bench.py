"""decisor bench: the benchmarks that there are; questions of Decision QA made and loaded."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.errors import SetupError
from decisor.system.wording import format_count

if TYPE_CHECKING:
    from decisor.lab.dqa.generator import Dataset

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
dqa = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Generate and load questions of Decision QA.")
app.add_typer(dqa, name="dqa")


@app.callback()
def bench_root() -> None:
    """List benchmarks; generate and load questions of Decision QA."""


@app.command("list")
def list_benchmarks_command(as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False) -> None:
    """List the benchmarks of decisor eval, with settings."""
    from decisor.cli.config import print_rows
    from decisor.lab.benchmark import BENCHES, SUMMARIES, find_bench_class
    from decisor.session.run_setup import build_technique_row

    print_rows(
        [build_technique_row(name, find_bench_class(name), SUMMARIES.get(name, "")) for name in BENCHES], as_json, "-b"
    )


@dqa.command("generate")
def generate_command(
    scenario: Annotated[str, typer.Option(help="locating or building.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    size: Annotated[str, typer.Option(help="tiny, small, medium, large, huge, or NODESxEDGES.")] = "small",
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same files.")] = 0,
    questions: Annotated[int, typer.Option(min=1, help="Maximum number of questions.")] = 20,
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
    db: Annotated[str, typer.Option("--db", help="Target, such as sqlite:///trade.db or postgresql://...")],
) -> None:
    """Load a database of the benchmark, in file order and full precision."""
    from decisor.lab.dqa.databases import load_database
    from decisor.system.secrets import hide_password

    began = time.monotonic()
    asyncio.run(load_database(path, db))
    seconds, place = time.monotonic() - began, quote(hide_password(db))
    print(f"{path.name} loaded in {seconds:.2f} s. Try: decisor ask QUESTION --db {place}")


@dqa.command("extract")
def extract_command(
    save: Annotated[Path, typer.Argument(help="Savegame in Clausewitz text.")],
    definitions: Annotated[Path, typer.Option(help="The game's file of trading nodes or of goods.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.")],
    questions: Annotated[int, typer.Option(min=1, help="Maximum number of questions.")] = 200,
) -> None:
    """Read a world from a savegame, simulate it, and write questions in the released layout."""
    from decisor.lab.dqa.savegames import extract_worlds

    world = extract_worlds(save, out, definitions, questions)
    print(f"{world.folder}: {format_dataset_size(world)}")


def format_dataset_size(world: Dataset) -> str:
    nodes, edges = format_count(world.nodes, "node"), format_count(world.edges, "edge")
    return f"{format_count(world.questions, 'question')} on {nodes} and {edges}"
