"""``decisor ask``: a question, databases, and a decision with what it rests on."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decisor.budget import Limits
from decisor.cli.exits import exit_of
from decisor.errors import SetupError
from decisor.session.composition import Asked, decide
from decisor.session.tools import AUTH, METHODS, ToolSpecs, split
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.benchmarks.examples import Example

TOOLS = "A Python function, as module:function, or an OpenAPI document, as FILE or FILE#OPERATION. Several times."
SETTING = "A setting of the technique, as name=value. May be given several times."


def command(
    question: Annotated[str, typer.Argument(help="What is to be decided. - reads it from standard input.")] = "",
    db: Annotated[str, typer.Option("--db", metavar="URL", help="A database, such as sqlite:///shop.db.")] = "",
    graph: Annotated[str, typer.Option("--graph", metavar="URL", help="A graph, such as bolt://localhost.")] = "",
    docs: Annotated[str, typer.Option("--docs", metavar="INDEX|FOLDER", help="Documents: see decisor index.")] = "",
    rules: Annotated[Path | None, typer.Option("--rules", help="A text file with the rules to decide by.")] = None,
    goal: Annotated[str, typer.Option("--goal", help="What is to be reached, in words.")] = "",
    model: Annotated[Path | None, typer.Option("--model", help="A decision model, in TOML.")] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help=TOOLS)] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    technique: Annotated[str, typer.Option("--technique", "-t", help="See decisor techniques.")] = "",
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help="The LM, or none.")] = None,
    example: Annotated[str, typer.Option("--example", help="supply or trade: made here, no data needed.")] = "",
    form: Annotated[str, typer.Option("--form", help="The example as sql or as graph.")] = "sql",
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="At most so much money.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="At most so long.")] = None,
    actions: Annotated[int | None, typer.Option("--actions", min=1, help="At most so many actions.")] = None,
    trace: Annotated[Path | None, typer.Option("--trace", help="Write what happens to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Answer a decision question from databases, documents and tools."""
    chosen = example_of(example, question)
    asked = Asked(
        chosen.question if chosen else Question(question_text(question), read_rules(rules), goal),
        database=db or (chosen.database_url if chosen and form == "sql" else ""),
        graph=graph or (chosen.graph_url if chosen and form == "graph" else ""),
        docs=docs, model_file=model, technique=technique, settings=read_settings(settings or []), lm=lm,
        limits=Limits(calls, tokens, dollars, seconds, actions), trace_file=trace,
        subject=chosen.subject if chosen else "",
        tools=ToolSpecs(tools or (), split(allow_methods), base_url, auth or ()),
    )  # fmt: skip
    if form not in ("sql", "graph"):
        raise SetupError(f"--form is sql or graph, not {form!r}.")
    if not (asked.database or asked.graph or asked.docs or asked.tools.specs):
        raise SetupError("Which data? Name them with --db, --graph, --docs or --tools, or try --example trade.")
    raise typer.Exit(quiet(asked) if as_json else shown(asked))


def quiet(asked: Asked) -> int:
    """One JSON object, nothing else."""
    from decisor.cli.telling import as_object

    with redirect_stdout(sys.stderr):  # a person's own tools may print
        told = asyncio.run(decide(asked, lambda event: None))
    print(json.dumps(as_object(told), ensure_ascii=False, allow_nan=False))
    return int(exit_of(told.decision))


def shown(asked: Asked) -> int:
    """Live on a terminal; line by line elsewhere."""
    from rich.console import Console

    from decisor.cli.telling import tell
    from decisor.story.live import LiveView

    console = Console(highlight=False)
    with LiveView(console, asked.question) as view:
        told = asyncio.run(decide(asked, view.hear))
    tell(told, console)
    return int(exit_of(told.decision))


def example_of(name: str, question: str) -> Example | None:
    if not name:
        return None
    if question:
        raise SetupError("An example brings its own question: leave out yours, or name your data with --db.")
    from decisor.benchmarks.examples import example

    return example(name)


def question_text(given: str) -> str:
    text = sys.stdin.read() if given == "-" else given
    if not text.strip():
        raise SetupError('What is to be decided? Write: decisor ask "QUESTION" --db URL, or try --example trade.')
    return text.strip()


def read_rules(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"Cannot read the rules in {path}: {getattr(error, 'strerror', '') or error}.") from error


def read_settings(given: list[str]) -> dict[str, str]:
    """
    >>> read_settings(["max_steps=20", "order=paor"])
    {'max_steps': '20', 'order': 'paor'}
    """
    pairs = [text.partition("=") for text in given]
    if wrong := [text for text, equals, _ in pairs if not equals]:
        raise SetupError(f"-o takes name=value, not {wrong[0]!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}
