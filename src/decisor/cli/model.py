"""``decisor model``: a decision model checked, shown, ranked; and the schema of its file."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from decisor.cli.console import console, print_json, rewrite_line
from decisor.cli.draft import command as draft_command
from decisor.cli.exits import Exit
from decisor.cli.findings import print_findings
from decisor.cli.settings import place_named
from decisor.errors import SetupError, ToolError

if TYPE_CHECKING:
    from decisor.decision_models.machine import OpenModel
    from decisor.finding import Finding
    from decisor.types import Observation, Ranking

T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="Decision models: check, show, rank, ask what if.")
FileOf = Annotated[Path, typer.Argument(metavar="FILE", help="A decision model (TOML).")]
INPUTS = "'why NAME', 'turning points', 'TABLE.COLUMN × 1.1'"
DbOf = Annotated[str, typer.Option("--db", metavar="URL", help="The database it is about: a URL or a file.")]
GraphOf = Annotated[str, typer.Option("--graph", metavar="URL", help="Or a graph; then the file has [copy].")]
DefinitionsOf = Annotated[
    Path | None, typer.Option("--definitions", metavar="FILE", help="Where measures name metrics: their definitions.")
]
SetOf = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the file.")]
SecondsOf = Annotated[float, typer.Option("--seconds", min=0.1, help="Ends it with what is known.")]
HOUR = 3600.0
JsonOf = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


app.command("draft")(draft_command)


@app.command("check")
def check_command(
    file: FileOf, db: DbOf = "", graph: GraphOf = "",
    second: Annotated[Path | None, typer.Option("--second", help="Another model of the same question.")] = None,
    definitions: DefinitionsOf = None, values: SetOf = None, as_json: JsonOf = False, seconds: SecondsOf = HOUR,
) -> None:  # fmt: skip
    """Check a model on its real rows; every fault has its line. The exit code is 1 where there is one."""
    from decisor.decision_models.checks.run import check

    async def run() -> list[Finding]:
        async with AsyncExitStack() as stack:
            until = time.monotonic() + seconds
            model = await opened(stack, file, db, graph, values, definitions, until)
            other = await opened(stack, second, db, graph, values, definitions, until) if second else None
            return await asyncio.to_thread(lambda: list(check(model, other, until - time.monotonic())))

    findings = result_of(run)
    print_findings(file, findings, as_json)


@app.command("show")
def show_command(
    file: FileOf, db: DbOf = "", graph: GraphOf = "", definitions: DefinitionsOf = None, values: SetOf = None,
    seconds: SecondsOf = HOUR,
) -> None:  # fmt: skip
    """Say a model in plain words, with real rows."""
    from decisor.decision_models.show import show

    async def run() -> None:
        async with AsyncExitStack() as stack:
            model = await opened(stack, file, db, graph, values, definitions, time.monotonic() + seconds)
            await asyncio.to_thread(lambda: [print(line) for line in show(model)])

    result_of(run)


@app.command("rank")
def rank_command(
    file: FileOf, db: DbOf = "", graph: GraphOf = "",
    scenario: Annotated[str, typer.Option("--scenario", help="One of the file.")] = "",
    change: Annotated[str, typer.Option("--change", metavar="SQL", help="UPDATEs before the choice.")] = "",
    trials: Annotated[int, typer.Option("--trials", min=0, help="How often inputs are varied.")] = 200,
    seconds: SecondsOf = HOUR,
    definitions: DefinitionsOf = None, values: SetOf = None, as_json: JsonOf = False,
) -> None:  # fmt: skip
    """Rank all candidates, without an LM."""
    from decisor.decision_models.solver import decide
    from decisor.rankings import lines

    async def run() -> Ranking:
        async with AsyncExitStack() as stack:
            until = time.monotonic() + seconds
            model = await opened(stack, file, db, graph, values, definitions, until)
            left = until - time.monotonic()
            return await asyncio.to_thread(
                lambda: decide(model, trials=trials, seconds=left, scenario=scenario, changes=change, progress=bar())
            )

    ranking = result_of(run)
    if as_json:
        print_json(ranking)
    else:
        print("\n".join(lines(ranking)))
    if not ranking.options:
        raise typer.Exit(Exit.FAILED)


@app.command("whatif")
def whatif_command(
    file: FileOf,
    wish: Annotated[str, typer.Argument(metavar="INPUT", help=f"Such as {INPUTS}.")],
    db: DbOf = "", graph: GraphOf = "", definitions: DefinitionsOf = None, values: SetOf = None,
    as_json: JsonOf = False, seconds: SecondsOf = HOUR,
) -> None:  # fmt: skip
    """Ask a model what if, without an LM: docs/what-if.md has every input."""
    from decisor.decision_models.model_tool import ModelTool
    from decisor.story.decision import show_studies

    async def run() -> Observation:
        async with AsyncExitStack() as stack:
            until = time.monotonic() + seconds
            tool = ModelTool(await opened(stack, file, db, graph, values, definitions, until))
            tool.seconds = until - time.monotonic()
            try:
                return await tool.call(wish)
            except ToolError as error:
                raise SetupError(f"{error} Inputs are such as {INPUTS}.") from error

    observation = result_of(run)
    if as_json:
        print_json(observation)
        return
    print(observation.note)
    if observation.study and not observation.study.turns:  # these are in the note
        show_studies([observation.study], console())


@app.command("schema")
def schema_command() -> None:
    """The JSON Schema of a model file."""
    from decisor.decision_models.schema import MODEL

    print(json.dumps(MODEL, indent=2))


def bar() -> Callable[[int, int], None] | None:
    """A line on standard error that is written over, where that is a terminal."""
    import sys

    if not sys.stderr.isatty():
        return None

    def hear(done: int, total: int) -> None:
        rewrite_line(f"{done:,} of {total:,}", done == total)

    return hear


async def opened(
    stack: AsyncExitStack,
    file: Path,
    db: str,
    graph: str,
    values: Sequence[str] | None,
    definitions: Path | None,
    until: float,
) -> OpenModel:
    """Everything ends at ``until`` (``time.monotonic``), opening and copying too."""
    from decisor.definitions.parse import read
    from decisor.session.models import opened_model

    words = read(definitions) if definitions else None
    data = opened_model(file, place_named(db), place_named(graph), words, **parameters(values or ()))
    try:
        async with asyncio.timeout(until - time.monotonic()):
            model = await stack.enter_async_context(data)
    except TimeoutError as error:
        raise SetupError(
            "The limit of seconds is reached while the data are opened and copied. Give it more."
        ) from error
    model.deadline = until
    return model


def result_of(run: Callable[[], Awaitable[T]]) -> T:
    """What a model does wrong is for the person here."""

    async def whole() -> T:
        return await run()

    try:
        return asyncio.run(whole())
    except ToolError as error:
        raise SetupError(str(error)) from error


def parameters(values: Sequence[str]) -> dict[str, str | float]:
    """
    >>> parameters(["goods=bread", "rate=0.5"])
    {'goods': 'bread', 'rate': 0.5}
    """
    pairs = [value.partition("=") for value in values]
    if wrong := [name for name, mark, _ in pairs if not mark]:
        raise SetupError(f"--set takes NAME=VALUE, not {wrong[0]}.")
    return {name: number(text) for name, _, text in pairs}


def number(text: str) -> str | float:
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text
