"""``decisor ask``: a question, data, and a decision with its evidence.

The inputs of an earlier run can be used again; inputs that a person names now replace them. The person at the terminal
is asked which reading is meant; the answer is proposed for the definitions.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from decisor.cli.definitions import login_name
from decisor.cli.output import Exit, exit_of, output_console, print_folder_file, print_json, progress_console
from decisor.errors import SetupError
from decisor.history.recorder import Keeping
from decisor.history.store import History, Inputs, PastRun
from decisor.runtime.budget import Limits
from decisor.semantics.readings import Interpreter, OpenReading
from decisor.session.config import FILES, Config, default_places, resolve_config
from decisor.session.request import Options
from decisor.session.user_tools import (
    AUDIT,
    AUTH,
    DENY,
    MASK,
    METHODS,
    ROW_VALUES,
    ROWS,
    SCAN,
    TABLES,
    split_all_at_commas,
    split_at_commas,
)
from decisor.system.storage import check_writable
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.lab.examples import WorldExample
    from decisor.semantics.readings import Readings
    from decisor.session.request import Sources
    from decisor.session.result import Result
    from decisor.tools.row_values import RowValuePolicy
    from decisor.trace.events import TraceEntry


RECORD = "Write the decision record: as JSON, or as one page if the name ends with .html."

KINDS = ("db", "graph", "docs", "tools")
OTHERS = (
    "base_url",
    "model",
    "technique",
    "lm",
    "methods",
    "auth",
    "tables",
    "deny_tables",
    "definitions",
    "rows",
    "mask",
    "audit",
    "max_scan",
    "row_values",
)


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run to go on from; ``run`` is None if there is none."""

    history: History = field(default_factory=History)
    run: PastRun | None = None

    @property
    def inputs(self) -> Inputs:
        return self.run.inputs if self.run else Inputs()

    @property
    def number(self) -> int:
        return self.run.number if self.run else 0

    def result(self) -> Result:
        """Return the result of the run; raise SetupError if its trace is gone."""
        from decisor.session.result import build_past_result

        assert self.run is not None
        return build_past_result(self.history, self.run)


def find_earlier_run(last: bool, number: int | None) -> EarlierRun:
    """Return the run to go on from; raise SetupError if there is no such run.

    The value is empty if neither the last run nor a number is asked for.
    """
    if not (last or number):
        return EarlierRun()
    history = History()
    return EarlierRun(history, history.read(number or 0))


def reuse_inputs(past: EarlierRun, own: Inputs) -> Inputs:
    """Return the inputs of an earlier run; the inputs named in ``own`` replace them.

    Raises:
        SetupError: something that it used is not kept, or is relative to another folder, and is not named again.
    """
    old = past.inputs
    texts = [name for name in (*KINDS, *OTHERS) if getattr(own, name)]
    if past.run and old.left_out and not any(name in texts for name in (*KINDS, "lm")):
        raise SetupError(
            f"Run {past.number} used {', '.join(old.left_out)}, which is not kept: name it again, with "
            "--db, --graph, --docs, --tools or --lm."
        )
    elsewhere = [place for name in (*KINDS, "definitions") if name not in texts for place in getattr(old, name)]
    if past.run and old.folder != str(Path.cwd()) and (here := [one for one in elsewhere if is_relative(one)]):
        raise SetupError(
            f"Run {past.number} was asked in {old.folder}, and {here[0]} is relative to it: go there, or "
            "name the data again with --db."
        )
    chosen = replace(old, **{name: getattr(own, name) for name in texts})
    if own.tools and old.row_values == "allow":  # which was said of other tools
        chosen = replace(chosen, row_values=own.row_values)
    limits = merge_limits(own.limits, old.limits)
    return replace(chosen, settings={**old.settings, **own.settings}, limits=limits)


def merge_limits(own: Limits, old: Limits) -> Limits:
    values = {one.name: getattr(own, one.name) for one in fields(Limits) if getattr(own, one.name) is not None}
    return replace(old, **values)


def is_relative(place: str) -> bool:
    """Return whether a place is a path relative to the current folder.

    >>> is_relative("sites=sqlite:///sites.db"), is_relative("/home/sites.db"), is_relative("bolt://host")
    (True, False, False)
    """
    name, equals, rest = place.partition("=")
    path = rest if equals and name.isidentifier() else place
    head = next((scheme for scheme in FILES if path.startswith(scheme)), "")
    return ("://" not in path or bool(head)) and not path.removeprefix(head).startswith(("/", "~"))


def tuple_of_option(texts: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(texts or ())


def with_defaults(inputs: Inputs, config: Config) -> Inputs:
    """Return the inputs with configured data, technique and limits for those not named."""
    db = inputs.db
    if not any((inputs.db, inputs.graph, inputs.docs, inputs.tools)):
        db = default_places(config)
    technique = inputs.technique or config.text("technique")
    return replace(inputs, db=db, technique=technique, limits=config.limits(inputs.limits))


def sources_from_inputs(inputs: Inputs, config: Config, reveal: bool = False) -> Sources:
    """Return the named data as the person who names them may see them.

    Raises:
        SetupError: something that was named cannot be data, or a table or column is of none.
    """
    from decisor.session.access import parse_row_conditions, restrict_sources
    from decisor.session.open_sources import limit_source_scans
    from decisor.session.request import build_sources
    from decisor.session.user_tools import ToolSpecs

    policy = cast("RowValuePolicy", inputs.row_values or "ask")
    specs = ToolSpecs(inputs.tools, inputs.methods, inputs.base_url, inputs.auth, policy)
    sources = build_sources(
        config.places(inputs.db),
        config.places(inputs.graph),
        config.places(inputs.docs),
        specs,
        inputs.model or None,
        inputs.tables,
        inputs.deny_tables,
        inputs.definitions,
    )
    seen = restrict_sources(sources, parse_row_conditions(inputs.rows), inputs.mask, reveal, inputs.audit or None)
    return limit_source_scans(seen, inputs.max_scan)


def options_from_inputs(inputs: Inputs, config: Config) -> Options:
    """Return the named options of a question: technique, settings, LLM and limits."""
    return {
        "technique": inputs.technique,
        "settings": inputs.settings,
        "lm": config.lm(inputs.lm or None),
        "limits": inputs.limits,
    }


def terminal_reader(files: Sequence[str]) -> Interpreter:
    """Return a function that asks the person at the terminal for a reading. files: definitions of the run, as they were
    named. If nobody is at the terminal, it answers '' at once.
    """

    async def ask(one: OpenReading) -> str:
        from decisor.tools.toolbox import ask_on_terminal, is_person_present

        if not is_person_present():
            return ""
        print(file=sys.stderr)
        how = "number, or Enter for the first" if one.asks else "number, your own words, or Enter for both"
        words = f"{one.line()} ({how}) "
        choice = one.choice(await asyncio.to_thread(ask_on_terminal, words))
        if choice and len(files) == 1 and not one.asks:
            print(propose_reading(strip_source_name(files[0]), one, choice), file=sys.stderr)
        return choice

    return ask


def strip_source_name(text: str) -> Path:
    """Return the file of ``NAME=FILE``."""
    return Path(text if Path(text).exists() else text.partition("=")[2] or text)


def propose_reading(file: Path, one: OpenReading, choice: str) -> str:
    """Propose a reading; return the line that says how to approve it, or the error."""
    from decisor.semantics.definitions import Reading, section_title
    from decisor.semantics.draft import propose_definition

    try:
        whole = propose_definition(file, Reading(one.words, [one.words], choice), login_name())
    except SetupError as error:
        return f"decisor: {error}"
    return f"decisor: to have it so from now on: decisor definitions approve {file} {section_title(whole)}"


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
            check_writable(path, f"Name another {option} file.")
    world = find_example_world(example, text)
    if world is not None:
        if form == "sql":
            db = db or [world.database_url]
        else:
            graph = graph or [world.graph_url]
    config, past = resolve_config(), find_earlier_run(go_on, go_on_from)
    keeping = None if no_history or world or not config.keeps_history else Keeping(before=past.number)
    own = Inputs(
        tuple_of_option(db),
        tuple_of_option(graph),
        tuple_of_option(docs),
        tuple_of_option(tools),
        tuple(split_at_commas(allow_methods)),
        base_url,
        tuple_of_option(auth),
        str(model or ""),
        tuple(split_all_at_commas(tables)),
        tuple(split_all_at_commas(deny_tables)),
        tuple_of_option(definitions),
        tuple_of_option(rows),
        tuple(split_all_at_commas(mask)),
        str(audit or ""),
        max_scan,
        technique,
        parse_setting_options(settings or []),
        lm or "",
        Limits(calls, tokens, dollars, seconds, actions),
        row_values=row_values,
    )
    inputs = with_defaults(reuse_inputs(past, own), config)
    question = world.question if world else Question(read_question_text(text), read_rules(rules), goal)
    if past.run:
        from decisor.session.result import build_following_question

        question = build_following_question(past.result(), question)
    options: Options = {
        **options_from_inputs(inputs, config),
        "trace": trace,
        "history": keeping or False,
        "readings": cast("Readings", readings),
        "reader": None if as_json else terminal_reader(inputs.definitions),
    }
    print_folder_file(config)
    with report_saved_run(keeping):
        result = ask_and_print(sources_from_inputs(inputs, config, reveal), question, options, as_json)
    if html is not None:
        result.html(html)
    if record is not None:
        result.save_record(record)
    raise typer.Exit(Exit.FAILED if result.trace_fault else exit_of(result.decision))


@contextmanager
def report_saved_run(keeping: Keeping | None) -> Iterator[None]:
    """Print the run that an error or interrupt ended, and why a run could not be saved."""
    try:
        yield
    except BaseException:
        if keeping and keeping.number:
            number = keeping.number
            print(
                f"decisor: what it had is run {number}: decisor show {number}; decisor resume {number} goes on",
                file=sys.stderr,
            )
        raise
    finally:
        if keeping and keeping.fault:
            print(f"decisor: {keeping.fault}", file=sys.stderr)


def ask_and_print(
    sources: Sources, question: Question, options: Options, as_json: bool = False, past: Sequence[TraceEntry] = ()
) -> Result:
    """Ask a question and print progress and result, or one JSON object.

    Progress is live on a terminal and line by line elsewhere. past: trace entries of a run to go on from.
    """
    from decisor.session.data import ask_once
    from decisor.system.tasks import run_in_thread
    from decisor.views.terminal import LiveView

    if as_json:
        with redirect_stdout(sys.stderr):  # a person's own tools may print
            result = run_in_thread(ask_once(sources, question, options, past))
        print_object(result)
        return result
    out = output_console()
    with LiveView(progress_console(out)) as view:
        options = {**options, "on_event": view.hear}
        if view.console.is_terminal:
            options["on_text"] = view.hear_text
        result = run_in_thread(ask_once(sources, question, options, past))
    result.show(out)
    return result


def print_object(result: Result) -> None:
    print_json(result.as_object())


def find_example_world(name: str, question: str) -> WorldExample | None:
    if not name:
        return None
    if question:
        raise SetupError("An example brings its own question: leave out yours, or name your data with --db.")
    from decisor.lab.examples import make_example

    return make_example(name)


def read_question_text(question: str) -> str:
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
        raise SetupError(
            f"The rules in {path} are not UTF-8 (line {line}). Save them so, or write: "
            f"iconv -f LATIN1 -t UTF-8 {path} > rules-utf8.txt"
        ) from error
    if "\0" in text:
        raise SetupError(no_text)
    return text


def parse_setting_options(texts: list[str]) -> dict[str, str]:
    """Parse settings given as NAME=VALUE; raise SetupError for any other text.

    >>> parse_setting_options(["max_steps=20", "order=paor"])
    {'max_steps': '20', 'order': 'paor'}
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, equals, _ in pairs if not equals]:
        raise SetupError(f"-o takes name=value, not {wrong[0]!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}
