"""``decisor ask``: a question, data, and a decision with its evidence.

A follow-up reuses the inputs of an earlier run; options given now override them. The person at the terminal
is asked which reading is meant; the answer is proposed for the definitions.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decisor.cli.definitions import login_name
from decisor.cli.output import UNWRAPPED, Exit, error_console, exit_of, output_console, print_folder_file, print_json
from decisor.cli.request_options import OPTIONS, takes_request
from decisor.errors import SetupError
from decisor.history.recorder import Keeping
from decisor.history.store import History, PastRun
from decisor.semantics.readings import Interpreter, OpenReading
from decisor.session.config import FILES, Config, resolve_config
from decisor.session.request import REUSE, AskRequest, Attachments, read_kept_request, read_request, spell_option
from decisor.session.sources import split_place_name
from decisor.system.storage import check_writable
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.session.result import Result
    from decisor.trace.events import TraceEntry


RECORD = "Write the decision record: JSON, or a page if the name ends with .html."


def reuse_request(past: PastRun, own: AskRequest) -> AskRequest:
    """Return the request of an earlier run; what is named in ``own`` replaces it.

    Raises:
        SetupError: something that it used is not kept, or is relative to another folder, and is not named again.
    """
    old = read_kept_request(past.inputs)
    if old.left_out and not (own.names_data or own.llm):
        raise SetupError(
            f"Run {past.number} used {', '.join(old.left_out)}, which is not saved. Give it again with "
            "--db, --graph, --docs, --tools or --llm."
        )
    if own.tools:
        # What was said of the tools of then is not said of these; a refusal holds on.
        old = old.without_tools(*(["row_values"] if old.row_values == "refuse" else []))
    again: dict[str, object] = {}
    for name in (name for name, reuse in REUSE.items() if reuse.continued):
        past_value, value = getattr(old, name), getattr(own, name)
        if name == "settings":
            again[name] = {**past_value, **value}
        elif name == "limits":
            again[name] = replace(past_value, **{key: most for key, most in asdict(value).items() if most is not None})
        elif name in own.given:
            again[name] = value
        else:
            again[name] = past_value
            places = [past_value] if isinstance(past_value, str) else past_value
            is_elsewhere = REUSE[name].is_place and old.folder != str(Path.cwd())
            if is_elsewhere and (relative := next(filter(is_relative, places), "")):
                raise SetupError(
                    f"Run {past.number} was asked in {old.folder}, and {relative} is relative to it. Go to that "
                    f"folder, or give {spell_option(name)} again."
                )
    return own.model_copy(update=again)


def is_relative(place: str) -> bool:
    """Return whether a place is a path relative to the current folder.

    >>> is_relative("sites=sqlite:///sites.db"), is_relative("/home/sites.db"), is_relative("bolt://host")
    (True, False, False)
    """
    name, equals, rest = place.partition("=")
    path = rest if equals and name.isidentifier() else place
    head = next((scheme for scheme in FILES if path.startswith(scheme)), "")
    return ("://" not in path or bool(head)) and not path.removeprefix(head).startswith(("/", "~"))


def terminal_reader(files: Sequence[str]) -> Interpreter:
    """Return a function that asks the person at the terminal for a reading. files: definitions of the run, as they were
    named. If nobody is at the terminal, it answers '' at once.
    """

    async def ask(one: OpenReading) -> str:
        from decisor.tools.toolbox import ask_on_terminal, is_person_present

        if not is_person_present():
            return ""
        # On standard error, so that standard output holds the result alone.
        print(file=sys.stderr)
        how = "number, or Enter for the first" if one.asks else "number, your own words, or Enter for both"
        words = f"{one.line()} ({how}) "
        choice = one.choice(await asyncio.to_thread(ask_on_terminal, words))
        if choice and len(files) == 1 and not one.asks:
            print(propose_reading(Path(split_place_name(files[0])[1]), one, choice), file=sys.stderr)
        return choice

    return ask


def propose_reading(file: Path, one: OpenReading, choice: str) -> str:
    """Propose a reading; return the line that says how to approve it, or the error."""
    from decisor.semantics.definitions import Reading, section_title
    from decisor.semantics.draft import propose_definition

    try:
        whole = propose_definition(file, Reading(one.words, [one.words], choice), login_name())
    except SetupError as error:
        return f"decisor: {error}"
    return f"decisor: to keep this reading: decisor definitions approve {file} {section_title(whole)}"


@takes_request(*OPTIONS)
def command(
    request: AskRequest,
    text: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads standard input.")] = "",
    rules: Annotated[Path | None, typer.Option("--rules", help="Text file with decision rules.")] = None,
    example: Annotated[
        str, typer.Option("--example", metavar="supply|trade", help="Built-in question with its data.")
    ] = "",
    form: Annotated[str, typer.Option("--form", metavar="sql|graph", help="Form of the example's data.")] = "sql",
    html: Annotated[Path | None, typer.Option("--html", help="Write the run as an HTML page.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help=RECORD)] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Follow up on the last run, with its data and LLM.")
    ] = False,
    go_on_from: Annotated[
        int | None, typer.Option("--continue-from", metavar="N", min=1, help="Follow up on run N.")
    ] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Do not save this run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Answer a decision question from databases, documents and tools."""
    if form not in ("sql", "graph"):
        raise SetupError(f"--form is sql or graph, not {form!r}.")
    # Refuse files that cannot be written before the run: its result would be lost after it was paid for.
    if request.trace and Path(request.trace).is_file() and Path(request.trace).stat().st_size:
        raise SetupError(f"{request.trace} already exists. Name another --trace file.")
    for option, path in (("--html", html), ("--record", record)):
        if path is not None:
            check_writable(path, f"Name another {option} file.")
    # An example brings its question and its data, and is not kept in the history.
    world = find_example_world(example, text)
    if world is not None and form == "sql":
        request = request.model_copy(update={"db": request.db or (world.database_url,)})
    elif world is not None:
        request = request.model_copy(update={"graph": request.graph or (world.graph_url,)})
    from decisor.session.open_sources import complete_request
    from decisor.session.result import build_following_question, build_past_result

    # Complete the request from an earlier run and from the config files.
    config, history = resolve_config(), History()
    past = history.read(go_on_from or 0) if go_on or go_on_from else None
    keeping = None if no_history or world or not config.keeps_history else Keeping(before=past.number if past else 0)
    request = complete_request(reuse_request(past, request) if past else request, config)
    question = world.question if world else Question(read_question_text(text), read_rules(rules), request.goal)
    if past:
        question = build_following_question(build_past_result(history, past), question)
    print_folder_file(config)
    # Ask, and write the files that are wished.
    with report_saved_run(keeping):
        reader = None if as_json else terminal_reader(request.definitions)
        attached = Attachments(keeping=keeping, reader=reader)
        result = ask_and_print(request, config, question, attached, as_json)
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
    # An interrupt too: what the run had is kept.
    except BaseException:
        if keeping and keeping.number:
            number = keeping.number
            print(
                f"decisor: saved as run {number}. Show it: decisor history show {number}. "
                f"Resume it: decisor history resume {number}",
                file=sys.stderr,
            )
        raise
    finally:
        if keeping and keeping.fault:
            print(f"decisor: {keeping.fault}", file=sys.stderr)


def ask_and_print(
    request: AskRequest,
    config: Config,
    question: Question,
    attached: Attachments,
    as_json: bool = False,
    past: Sequence[TraceEntry] = (),
) -> Result:
    """Ask a question and print progress and result, or one JSON object.

    Progress is live on a terminal and line by line elsewhere. past: trace entries of a run to go on from.
    """
    from decisor.session.data import ask_once
    from decisor.session.open_sources import sources_of_request
    from decisor.system.tasks import run_in_thread
    from decisor.views.terminal import LiveView

    sources = sources_of_request(request, config)
    words = {"question": question.text, "rules": question.rules, "goal": question.goal}
    # Each source has the limit on a query already: a second one would have its engine estimate each query twice.
    request = read_request({**request.given, **words, "max_scan": "", "history": attached.keeping is not None})
    attached = replace(attached, earlier=question.earlier)
    if as_json:
        with redirect_stdout(sys.stderr):  # a person's own tools may print
            result = run_in_thread(ask_once(sources, request, attached, past))
        print_json(result.to_dict())
        return result
    out = output_console()
    # A file or a pipe gets the result alone.
    with LiveView(out if out.is_terminal else error_console(UNWRAPPED)) as view:
        # A pipe gets whole lines, not texts that are still being written.
        hears_text = view.hear_text if view.console.is_terminal else None
        attached = replace(attached, on_event=view.hear, on_text=hears_text)
        result = run_in_thread(ask_once(sources, request, attached, past))
    result.show(out)
    return result


def find_example_world(name: str, question: str) -> Any:
    if not name:
        return None
    if question:
        raise SetupError("--example has its own question. Leave out yours, or name your data with --db.")
    # By name, as nothing imports the lab by a statement. The examples need no package of the extra ``lab``.
    return import_module("decisor.lab.dqa.generator").make_example(name)


def read_question_text(question: str) -> str:
    if question == "-":
        try:
            question = sys.stdin.read()
        except UnicodeDecodeError as error:
            how = "iconv -f LATIN1 -t UTF-8 FILE | decisor ask -"
            raise SetupError(f"Standard input is not UTF-8. Write: {how}") from error
    if not question.strip():
        raise SetupError('No question given. Write: decisor ask "QUESTION" --db URL, or try --example trade.')
    return question.strip()


def read_rules(path: Path | None) -> str:
    if path is None:
        return ""
    no_text = f"{path} is not a text file. --rules takes a text file."
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise SetupError(
            f"There is no file {path}. --rules takes a text file. Add rules in words to the question, or write: "
            'echo "RULES" > rules.txt, then --rules rules.txt'
        ) from error
    except OSError as error:
        raise SetupError(f"Cannot read the rules in {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        # A NUL byte tells a binary file from a text in another encoding.
        if b"\0" in error.object:
            raise SetupError(no_text) from error
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SetupError(
            f"The rules in {path} are not UTF-8 (line {line}). Save them as UTF-8, or write: "
            f"iconv -f LATIN1 -t UTF-8 {path} > rules-utf8.txt"
        ) from error
    if "\0" in text:
        raise SetupError(no_text)
    return text
