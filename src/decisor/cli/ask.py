"""``decisor ask``: a question, databases, and a decision with what it rests on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from decisor.budget import Limits
from decisor.cli.again import each, inputs_again, options_named, past_named, sources_named, with_defaults
from decisor.cli.console import console, print_json, progress
from decisor.cli.exits import Exit, exit_of
from decisor.cli.reader import terminal_reader
from decisor.cli.settings import tell_folder_file
from decisor.cli.show import RECORD
from decisor.config.current import current
from decisor.errors import SetupError
from decisor.history.past_run import Inputs
from decisor.history.recording import Keeping
from decisor.private_file import check_place
from decisor.session.tools import AUDIT, AUTH, DENY, MASK, METHODS, ROW_VALUES, ROWS, SCAN, TABLES, split, split_all
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.benchmarks.examples import Example
    from decisor.definitions.readings.open import Readings
    from decisor.session.options import Options
    from decisor.session.result import Result
    from decisor.session.sources import Sources
    from decisor.trace.events import Entry

GRAPH = "A graph, such as bolt://localhost. Several times; NAME=URL gives it a name."
DOCS = (
    "Documents: an index (decisor index), a folder, postgresql://HOST/DATABASE/TABLE, or your own retriever as "
    "module:Class. Several times; NAME=PLACE gives them a name."
)
DB = (
    "A database (sqlite:///shop.db), files (sales.csv, 'data/*.parquet'), or a name of decisor.toml. Several times; "
    "NAME=URL names it."
)
TOOLS = "module:function, an OpenAPI document as FILE or FILE#OPERATION, or mcp:COMMAND or mcp:URL. Several times."
LM = (
    'The LM, or none. With settings, in quotes: "MODEL@URL timeout=900 context=8192 max_tokens=800 '
    'temperature=0.1 price=0.4,1.6". @URL is the only model there.'
)
DEFINITIONS = "What words mean in these data: see decisor definitions. NAME= says of which database."
READINGS = "When an LM judges whether the question can be read in two ways: where rules suspect it, always, never."
SETTING = "A setting of the technique, as name=value. May be given several times."


def command(
    text: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What is to be decided. - reads it from standard input.")
    ] = "",
    db: Annotated[list[str] | None, typer.Option("--db", metavar="URL", help=DB)] = None,
    graph: Annotated[list[str] | None, typer.Option("--graph", metavar="URL", help=GRAPH)] = None,
    docs: Annotated[list[str] | None, typer.Option("--docs", metavar="INDEX|FOLDER", help=DOCS)] = None,
    rules: Annotated[Path | None, typer.Option("--rules", help="A text file with the rules to decide by.")] = None,
    goal: Annotated[str, typer.Option("--goal", help="What is to be reached, in words.")] = "",
    model: Annotated[
        Path | None, typer.Option("--model", help="A decision model: a TOML file, or module:function.")
    ] = None,
    definitions: Annotated[
        list[str] | None, typer.Option("--definitions", metavar="[NAME=]FILE", help=DEFINITIONS)
    ] = None,
    tables: Annotated[list[str] | None, typer.Option("--tables", metavar="NAME,...", help=TABLES)] = None,
    deny_tables: Annotated[list[str] | None, typer.Option("--deny-tables", metavar="NAME,...", help=DENY)] = None,
    rows: Annotated[list[str] | None, typer.Option("--rows", metavar="TABLE=CONDITION", help=ROWS)] = None,
    mask: Annotated[list[str] | None, typer.Option("--mask", metavar="TABLE.COLUMN,...", help=MASK)] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show the values of masked columns in the result.")] = False,
    audit: Annotated[Path | None, typer.Option("--audit", metavar="FILE", help=AUDIT)] = None,
    tools: Annotated[list[str] | None, typer.Option("--tools", metavar="SPEC", help=TOOLS)] = None,
    allow_methods: Annotated[str, typer.Option("--allow-methods", help=METHODS)] = "",
    base_url: Annotated[str, typer.Option("--base-url", metavar="URL", help="Call the APIs of --tools here.")] = "",
    auth: Annotated[list[str] | None, typer.Option("--auth", metavar="[SCHEME=]VARIABLE", help=AUTH)] = None,
    row_values: Annotated[str, typer.Option("--row-values", metavar="ask|allow|refuse", help=ROW_VALUES)] = "",
    technique: Annotated[
        str,
        typer.Option(
            "--technique",
            "-t",
            metavar="NAME",
            help="The reasoning loop (plan_rag; exact without an LM): see decisor techniques.",
        ),
    ] = "",
    settings: Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help=SETTING)] = None,
    lm: Annotated[str | None, typer.Option("--lm", metavar="MODEL[@URL]", help=LM)] = None,
    example: Annotated[
        str, typer.Option("--example", metavar="supply|trade", help="A question on a world made here.")
    ] = "",
    form: Annotated[str, typer.Option("--form", metavar="sql|graph", help="What the example is kept in.")] = "sql",
    calls: Annotated[int | None, typer.Option("--calls", min=1, help="At most so many LM calls.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", min=1, help="At most so many tokens.")] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", min=0, help="At most so many dollars.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="At most so long.")] = None,
    actions: Annotated[int | None, typer.Option("--actions", min=1, help="At most so many actions.")] = None,
    max_scan: Annotated[str, typer.Option("--max-scan", metavar="ROWS|BYTES", help=SCAN)] = "",
    trace: Annotated[Path | None, typer.Option("--trace", help="Write what happens to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as one page.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Go on from the last run: its data, LM and decision.")
    ] = False,
    go_on_from: Annotated[
        int | None, typer.Option("--continue-from", metavar="N", min=1, help="Or from run N.")
    ] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Do not keep this run.")] = False,
    readings: Annotated[str, typer.Option("--readings", metavar="auto|always|off", help=READINGS)] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Answer a decision question from databases, documents and tools."""
    if form not in ("sql", "graph"):
        raise SetupError(f"--form is sql or graph, not {form!r}.")
    if trace is not None and trace.is_file() and trace.stat().st_size:
        raise SetupError(f"{trace} is there already, and a run may have been paid for: name another --trace file.")
    for option, path in (("--html", html), ("--record", record)):
        if path is not None:
            check_place(path, f"Name another {option} file.")
    world = example_of(example, text)
    if world is not None:
        if form == "sql":
            db = db or [world.database_url]
        else:
            graph = graph or [world.graph_url]
    config, past = current(), past_named(go_on, go_on_from)
    keeping = None if no_history or world or not config.keeps_history else Keeping(before=past.number)
    own = Inputs(
        each(db), each(graph), each(docs), each(tools), tuple(split(allow_methods)), base_url, each(auth),
        str(model or ""), tuple(split_all(tables)), tuple(split_all(deny_tables)), each(definitions), each(rows),
        tuple(split_all(mask)), str(audit or ""), max_scan, technique,
        read_settings(settings or []), lm or "", Limits(calls, tokens, dollars, seconds, actions),
        row_values=row_values,
    )  # fmt: skip
    inputs = with_defaults(inputs_again(past, own), config)
    question = world.question if world else Question(question_text(text), read_rules(rules), goal)
    if past.run:
        from decisor.session.following import following

        question = following(past.result(), question)
    options: Options = {
        **options_named(inputs, config), "trace": trace, "history": keeping or False,
        "readings": cast("Readings", readings), "reader": None if as_json else terminal_reader(inputs.definitions),
    }  # fmt: skip
    tell_folder_file(config)
    with noted(keeping):
        result = ask_and_print(sources_named(inputs, config, reveal), question, options, as_json)
    if html is not None:
        result.html(html)
    if record is not None:
        result.save_record(record)
    raise typer.Exit(Exit.FAILED if result.trace_fault else exit_of(result.decision))


@contextmanager
def noted(keeping: Keeping | None) -> Iterator[None]:
    """Says which run it is that an error or an interrupt ended, and why one was not kept."""
    try:
        yield
    except BaseException:
        if keeping and keeping.number:
            number = keeping.number
            print(f"decisor: what it had is run {number}: decisor show {number}; decisor resume {number} goes on",
                  file=sys.stderr)  # fmt: skip
        raise
    finally:
        if keeping and keeping.fault:
            print(f"decisor: {keeping.fault}", file=sys.stderr)


def ask_and_print(
    sources: Sources, question: Question, options: Options, as_json: bool = False, past: Sequence[Entry] = ()
) -> Result:
    """How it goes on, live on a terminal and line by line elsewhere, then the result; or one JSON object. ``past``: a
    run to go on from."""
    from decisor.session.data import ask_once
    from decisor.session.sync import in_thread
    from decisor.story.live import LiveView

    if as_json:
        with redirect_stdout(sys.stderr):  # a person's own tools may print
            result = in_thread(ask_once(sources, question, options, past))
        print_object(result)
        return result
    out = console()
    with LiveView(progress(out)) as view:
        options = {**options, "on_event": view.hear}
        if view.console.is_terminal:
            options["on_text"] = view.hear_text
        result = in_thread(ask_once(sources, question, options, past))
    result.show(out)
    return result


def print_object(result: Result) -> None:
    print_json(result.as_object())


def example_of(name: str, question: str) -> Example | None:
    if not name:
        return None
    if question:
        raise SetupError("An example brings its own question: leave out yours, or name your data with --db.")
    from decisor.benchmarks.examples import example

    return example(name)


def question_text(question: str) -> str:
    if question == "-":
        try:
            question = sys.stdin.read()
        except UnicodeDecodeError as error:
            how = "iconv -f LATIN1 -t UTF-8 FILE | decisor ask -"
            raise SetupError(f"Standard input is not UTF-8. Write: {how}") from error
    if not question.strip():
        raise SetupError('What is to be decided? Write: decisor ask "QUESTION" --db URL, or try --example trade.')
    return question.strip()


def read_rules(path: Path | None) -> str:
    if path is None:
        return ""
    no_text = f"{path} is no text: --rules takes a text file with the rules to decide by."
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise SetupError(f"There is no file {path}. --rules takes a text file with the rules to decide by.") from error
    except OSError as error:
        raise SetupError(f"Cannot read the rules in {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        if b"\0" in error.object:
            raise SetupError(no_text) from error
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SetupError(f"The rules in {path} are not UTF-8 (line {line}). Save them so, or write: "
                         f"iconv -f LATIN1 -t UTF-8 {path} > rules-utf8.txt") from error  # fmt: skip
    if "\0" in text:
        raise SetupError(no_text)
    return text


def read_settings(texts: list[str]) -> dict[str, str]:
    """
    >>> read_settings(["max_steps=20", "order=paor"])
    {'max_steps': '20', 'order': 'paor'}
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, equals, _ in pairs if not equals]:
        raise SetupError(f"-o takes name=value, not {wrong[0]!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}
