"""``decisor model``: a decision model drafted, checked, shown, ranked and asked what if.

An LLM drafts the file, the machine checks it, a person approves it. The other commands need no LLM.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from decisor.cli.ask import read_question_text, read_rules, report_saved_run
from decisor.cli.output import Exit, error_console, exit_of, find_place, output_console, print_findings, print_json
from decisor.cli.request_options import takes_request
from decisor.errors import SetupError, ToolError
from decisor.history.recorder import Keeping
from decisor.session.config import resolve_config
from decisor.session.request import AskRequest
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.decision_models.client import OpenModel
    from decisor.session.decision_models import DraftedModel
    from decisor.system.structured_files import Finding
    from decisor.types import Observation, Ranking


DB = "Database of the model: a URL or a file."
APPROVE = "Is this what you mean? [y = write it, n = do not, or say what is wrong] "


@takes_request(
    "docs",
    "tools",
    "row_values",
    "goal",
    "llm",
    "settings",
    "limits",
    "trace",
    leave_out=["dollars", "seconds", "actions"],
)
def draft_model_command(
    request: AskRequest,
    question: Annotated[str, typer.Argument(help="The question; - reads standard input.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File for the model.")],
    db: Annotated[str, typer.Option("--db", metavar="URL", help=DB)],
    rules: Annotated[Path | None, typer.Option("--rules", help="Text file with decision rules.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Adopt corrections from documents without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Draft a decision model for a question, check it on real rows, and write it.

    At a terminal it asks about gaps in the rules, corrections from documents, and approval. The draft is a saved run;
    approve it later with: decisor history approve N --by NAME. Exit code 4: two drafts differ, and both are written.
    """
    from decisor.session.decision_models import draft_model
    from decisor.session.user_tools import ToolSpecs
    from decisor.tools.toolbox import ask_on_terminal, is_person_present

    if out.exists():
        raise SetupError(f"{out} already exists. Name another --out file.")
    whole = Question(read_question_text(question), read_rules(rules), request.goal)
    keeping = Keeping() if resolve_config().keeps_history else None
    with redirect_stdout(sys.stderr) if as_json else nullcontext(), report_saved_run(keeping):  # tools may print
        drafts = draft_model(
            whole,
            db=find_place(db),
            docs=list(map(find_place, request.docs)),
            tools=ToolSpecs(request.tools, row_values=request.row_values),
            accept=accept,
            history=keeping or False,
            settings=request.settings,
            llm=request.llm,
            trace=request.trace,
            limits=request.limits,
        )
    if as_json:
        print_json(drafts.result.to_dict())
    else:
        drafts.result.show(output_console())
    for path, text in list_draft_files(drafts, out):
        # A person approves the draft before it is written; two that differ are written for comparison.
        if not drafts.models and is_person_present() and not as_json:
            print_model_draft(text, db)
            if (answer := ask_on_terminal(APPROVE).strip()).lower() not in ("y", "yes"):
                print(f"Not written. Add what is missing to the rules{f': {answer}' if len(answer) > 1 else ''}.")
                raise typer.Exit(Exit.NO_ANSWER)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise SetupError(f"Cannot write {path}: {error.strerror}.") from error
        print(f"Written: {path}. Run it again without an LLM: decisor model rank {path} --db URL", file=sys.stderr)
    raise typer.Exit(exit_of(drafts.result.decision))


def list_draft_files(draft: DraftedModel, out: Path) -> list[tuple[Path, str]]:
    """Return the file that was asked for, or FILE.first and FILE.second if two models differ."""
    if draft.models:
        return [
            (out.with_suffix(f".{name}{out.suffix}"), text)
            for name, text in zip(("first", "second"), draft.models, strict=True)
        ]
    return [(out, draft.model)] if draft.model else []


def print_model_draft(text: str, db: str) -> None:
    """Print a model in plain words with real rows, for a person to approve."""
    from decisor.decision_models.file import parse_model
    from decisor.decision_models.tool import explain_decision_model
    from decisor.session.decision_models import opened_model

    async def run() -> list[str]:
        async with opened_model(parse_model(text), find_place(db)) as model:
            return await asyncio.to_thread(lambda: list(explain_decision_model(model)))

    print("\n".join(asyncio.run(run())), file=sys.stderr)


T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="Draft, check, show and rank decision models; ask what-if.")
FileOf = Annotated[Path, typer.Argument(metavar="FILE", help="A decision model (TOML).")]
INPUTS = "'why NAME', 'turning points', 'TABLE.COLUMN × 1.1'"
DbOf = Annotated[str, typer.Option("--db", metavar="URL", help="Database of the model: a URL or a file.")]
GraphOf = Annotated[str, typer.Option("--graph", metavar="URL", help="Graph, for a model with [copy].")]
DefinitionsOf = Annotated[
    Path | None, typer.Option("--definitions", metavar="FILE", help="Definitions of the metrics that measures name.")
]
SetOf = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Value of a model parameter. Repeatable.")
]
SecondsOf = Annotated[float, typer.Option("--seconds", min=0.1, help="Maximum seconds; then partial results.")]
HOUR = 3600.0
JsonOf = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


app.command("draft")(draft_model_command)


@app.command("check")
def check_model_command(
    file: FileOf,
    db: DbOf = "",
    graph: GraphOf = "",
    second: Annotated[Path | None, typer.Option("--second", help="Second model of the question, to compare.")] = None,
    definitions: DefinitionsOf = None,
    values: SetOf = None,
    as_json: JsonOf = False,
    seconds: SecondsOf = HOUR,
) -> None:
    """Check a decision model on its real rows; print one line for each fault. The exit code is 1 if one is an error."""
    from decisor.decision_models.checks import check_model

    source = ModelSource(db, graph, definitions, values, time.monotonic() + seconds)

    async def check() -> list[Finding]:
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(source.open(file))
            other = await stack.enter_async_context(source.open(second)) if second else None
            return await asyncio.to_thread(lambda: list(check_model(model, other, source.seconds_left)))

    print_findings(file, run_model_command(check()), as_json)


@app.command("show")
def show_model_command(
    file: FileOf,
    db: DbOf = "",
    graph: GraphOf = "",
    definitions: DefinitionsOf = None,
    values: SetOf = None,
    seconds: SecondsOf = HOUR,
) -> None:
    """Print a decision model in plain words, with real rows."""
    from decisor.decision_models.tool import explain_decision_model

    async def show() -> None:
        async with ModelSource(db, graph, definitions, values, time.monotonic() + seconds).open(file) as model:
            await asyncio.to_thread(lambda: [print(line) for line in explain_decision_model(model)])

    run_model_command(show())


@app.command("rank")
def rank_model_command(
    file: FileOf,
    db: DbOf = "",
    graph: GraphOf = "",
    scenario: Annotated[str, typer.Option("--scenario", help="Scenario of the model.")] = "",
    change: Annotated[str, typer.Option("--change", metavar="SQL", help="SQL UPDATEs to apply first.")] = "",
    trials: Annotated[int, typer.Option("--trials", min=0, help="Number of trials with varied inputs.")] = 200,
    seconds: SecondsOf = HOUR,
    definitions: DefinitionsOf = None,
    values: SetOf = None,
    as_json: JsonOf = False,
) -> None:
    """Rank all candidates of a decision model, without an LLM."""
    from decisor.decision_models.optimize import rank_or_solve
    from decisor.system.tasks import COUNTER
    from decisor.system.wording import format_count, format_ranking

    source = ModelSource(db, graph, definitions, values, time.monotonic() + seconds)

    async def rank() -> Ranking:
        with error_console().status("") as status:
            COUNTER.set(lambda what, done, count: status.update(f"computed {done:,} of {format_count(count, what)}"))
            async with source.open(file) as model:
                return await asyncio.to_thread(
                    rank_or_solve, model, trials=trials, seconds=source.seconds_left, scenario=scenario, changes=change
                )

    ranking = run_model_command(rank())
    if as_json:
        print_json(ranking)
    else:
        print(format_ranking(ranking))
    if not ranking.options:
        raise typer.Exit(Exit.FAILED)


@app.command("whatif")
def whatif_command(
    file: FileOf,
    wish: Annotated[str, typer.Argument(metavar="INPUT", help=f"Such as {INPUTS}.")],
    db: DbOf = "",
    graph: GraphOf = "",
    definitions: DefinitionsOf = None,
    values: SetOf = None,
    as_json: JsonOf = False,
    seconds: SecondsOf = HOUR,
) -> None:
    """Ask a decision model a what-if question, without an LLM. All inputs: docs/decision-models.md"""
    from decisor.decision_models.tool import ModelTool
    from decisor.views.transcript import show_studies

    source = ModelSource(db, graph, definitions, values, time.monotonic() + seconds)

    async def ask() -> Observation:
        async with source.open(file) as model:
            tool = ModelTool(model)
            tool.seconds = source.seconds_left
            try:
                return await tool.call(wish)
            except ToolError as error:
                raise SetupError(f"{error} Inputs are such as {INPUTS}.") from error

    observation = run_model_command(ask())
    if as_json:
        print_json(observation)
        return
    print(observation.note)
    if observation.study and not observation.study.turns:  # these are in the note
        show_studies([observation.study], output_console())


@app.command("schema")
def print_model_schema() -> None:
    """Print the JSON Schema of a model file."""
    from decisor.decision_models.schema import MODEL_FILE

    print(json.dumps(MODEL_FILE.json_schema("Decisor's decision model"), indent=2))


@dataclass(frozen=True)
class ModelSource:
    """The data of decision models, with one deadline for all phases: opening, copying and computing."""

    db: str
    graph: str
    definitions: Path | None
    values: Sequence[str] | None
    until: float
    """End of everything, by ``time.monotonic``."""

    @property
    def seconds_left(self) -> float:
        return self.until - time.monotonic()

    @asynccontextmanager
    async def open(self, file: Path) -> AsyncIterator[OpenModel]:
        """Open a decision model until the block ends."""
        from decisor.semantics.definitions import read_definitions_file
        from decisor.session.decision_models import opened_model

        words = read_definitions_file(self.definitions) if self.definitions else None
        parameters = parse_parameters(self.values or ())
        async with AsyncExitStack() as stack:
            opening = opened_model(file, find_place(self.db), find_place(self.graph), words, **parameters)
            try:
                async with asyncio.timeout(self.seconds_left):
                    model = await stack.enter_async_context(opening)
            except TimeoutError as error:
                raise SetupError("The data were not opened and copied in time. Raise --seconds.") from error
            # The model keeps to the same deadline in everything that is computed of it.
            model.deadline = self.until
            yield model


def run_model_command(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine. Raise SetupError for a ToolError: a mistake in a model is for the person at the command line."""
    try:
        return asyncio.run(work)
    except ToolError as error:
        raise SetupError(str(error)) from error


def parse_parameters(values: Sequence[str]) -> dict[str, str | float]:
    """Parse parameters given as NAME=VALUE; raise SetupError for any other text.

    >>> parse_parameters(["goods=bread", "rate=0.5"])
    {'goods': 'bread', 'rate': 0.5}
    """
    pairs = [value.partition("=") for value in values]
    if wrong := [name for name, mark, _ in pairs if not mark]:
        raise SetupError(f"--set takes NAME=VALUE, not {wrong[0]}.")
    return {name: parse_parameter_value(text) for name, _, text in pairs}


def parse_parameter_value(text: str) -> str | float:
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text
