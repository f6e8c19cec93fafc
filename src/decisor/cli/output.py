"""The output of every command: consoles, exit codes, error lines, findings and ``--help``.

All that a command prints goes through here and is cleaned: a row, a model file or an LLM must not steer a terminal.
``clean_output`` cleans whatever is written to standard output and standard error, ``output_console`` styled text,
whose styles are ours. Output is as wide as the terminal; into a file or a pipe it is not wrapped. ``--help`` gets
examples and a word for each kind of value. ``print_folder_file`` names a config file that is not the person's own.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, get_args

import typer

from decisor.errors import BudgetExceeded, Error, LLMError, SetupError
from decisor.session.config import Config, Connection, resolve_config
from decisor.system.secrets import find_url_secrets, redact
from decisor.system.serialization import finite_json_value, json_value
from decisor.system.text import clean_for_terminal, clean_one_line
from decisor.system.wording import format_count
from decisor.types import Decision

if TYPE_CHECKING:
    from rich.console import Console

    from decisor.system.structured_files import Finding


UNWRAPPED = 100_000


class CleanOutput(io.TextIOWrapper):
    """An output stream of the process that cleans all text written to it."""

    def __init__(self, stream: io.TextIOWrapper, errors: str) -> None:
        # write_through fills the buffer below, which only line_buffering empties: lines on a pipe came 8 KB at a time.
        lines = stream.line_buffering
        super().__init__(
            stream.buffer, encoding=stream.encoding, errors=errors, line_buffering=lines, write_through=True
        )
        stream.reconfigure(errors=errors)
        self.styled = stream
        """The stream below, for text that is clean except for our own styles."""

    def write(self, text: str) -> int:
        super().write(clean_for_terminal(text))
        return len(text)


def clean_output() -> None:
    """Clean everything printed from here on. Characters that a terminal or pipe cannot hold are replaced."""
    # A test or a notebook may have put a stream there that is no file.
    if isinstance(sys.stdout, io.TextIOWrapper) and not isinstance(sys.stdout, CleanOutput):
        sys.stdout = CleanOutput(sys.stdout, "replace")
    if isinstance(sys.stderr, io.TextIOWrapper) and not isinstance(sys.stderr, CleanOutput):
        sys.stderr = CleanOutput(sys.stderr, "backslashreplace")


def unwrap_stream(stream: TextIO) -> TextIO:
    """Return the stream below a cleaning stream, else the stream itself."""
    return stream.styled if isinstance(stream, CleanOutput) else stream


def print_json(value: object) -> None:
    """Print one line of JSON, without NaN and Infinity.

    Characters that could steer a terminal are escaped, so nothing is lost.
    """
    text = json.dumps(finite_json_value(value), ensure_ascii=False, allow_nan=False, default=str)
    print(
        text if clean_for_terminal(text) == text else json.dumps(finite_json_value(value), allow_nan=False, default=str)
    )


def output_console(columns: int = UNWRAPPED) -> Console:
    """Return a console for standard output. columns: width if standard output is no terminal."""
    return clean_console(sys.stdout, None if sys.stdout.isatty() else columns)


def error_console(columns: int | None = None) -> Console:
    """Return a console for standard error. columns: width if standard error is no terminal."""
    return clean_console(sys.stderr, None if sys.stderr.isatty() else columns)


def clean_console(stream: TextIO, width: int | None) -> Console:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class CleanConsole(Console):
        """A console that cleans all text; styles and movements of the cursor are our own."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=clean_for_terminal(segment.text))

    return CleanConsole(file=unwrap_stream(stream), highlight=False, markup=False, width=width)


class Exit(IntEnum):
    """An exit code: 0 answered, 1 failed, 2 bad input, 3 a limit ended the run, 4 no answer."""

    ANSWERED = 0
    FAILED = 1
    INPUT = 2
    LIMIT = 3
    NO_ANSWER = 4


def exit_of(decision: Decision) -> Exit:
    codes = {"answered": Exit.ANSWERED, "budget": Exit.LIMIT, "steps": Exit.LIMIT, "no_answer": Exit.NO_ANSWER}
    return codes.get(decision.stopped, Exit.FAILED)


def exit_of_error(error: Exception) -> Exit:
    """Return the exit code of an error.

    SetupError is input, BudgetExceeded is a limit; LLMError and faults that a technique could not mend are failed.
    """
    if isinstance(error, SetupError):
        return Exit.INPUT
    return Exit.LIMIT if isinstance(error, BudgetExceeded) else Exit.FAILED


def error_line(error: Exception, words: Sequence[str] = ()) -> str:
    """Format an error as one line, with a remedy if one is known.

    Keys, and passwords in ``words``, the arguments of the command line, are left out.
    """
    # The error may quote a word of the command line, with a password in it.
    passwords = [secret for word in words for secret in find_url_secrets(word)]
    line = redact(clean_for_terminal(str(error)).replace("\n", " ").strip(), passwords)
    if isinstance(error, LLMError):
        line = f"The LLM failed: {line}{'' if 'decisor doctor' in line else ' Test it: decisor doctor --llm MODEL@URL'}"
    return line


def print_error(error: Exception, words: Sequence[str] = ()) -> None:
    """Print an error: one line on standard error, or one JSON object if ``words`` ask for JSON.

    The object goes to standard output.
    """
    if "--json" in words:
        usage = {"usage": json_value(error.spent)} if isinstance(error, Error) and error.spent.calls else {}
        print_json({"error": error_line(error, words), "exit": int(exit_of_error(error)), **usage})
    else:
        print(f"decisor: {error_line(error, words)}{format_spent_cost(error)}", file=sys.stderr)


def format_spent_cost(error: Exception) -> str:
    """Return a sentence with the cost of the run that an error ended; '' if no token was spent."""
    if not isinstance(error, Error) or not error.spent.tokens:
        return ""
    from decisor.session.run_setup import cost_line

    return f" Before that: {cost_line(error.spent)}."


EXAMPLES = {
    "demo": ("decisor demo",),
    "ask": (
        "decisor ask --example trade",
        'decisor ask "Which supplier should we drop?" --db offers.csv --rules rules.txt --llm gpt-4.1-mini',
        'decisor ask "Which site?" --db sqlite:///sites.db --docs reports.index --llm qwen3:8b@localhost:11434',
        'decisor ask "Which site?" --db sqlite:///sites.db --model sites.toml --html decision.html',
        'decisor ask "And without oak?" --continue',
    ),
    "history": ("decisor history --search supplier", "decisor history mark 12 right"),
    "history show": ("decisor history show last", "decisor history show 12 --html decision.html"),
    "trace": ("decisor trace run.jsonl", 'decisor trace run.jsonl --edit 2 --thought "Prices first." --db offers.csv'),
    "history resume": ("decisor history resume last --calls 20",),
    "history record": (
        "decisor history show 12 --record decision.json",
        "decisor history record decision.json --html decision.html",
    ),
    "history approve": (
        'decisor history approve 12 --by "Ada Lovelace"',
        'decisor history approve decision.json --by Ada --note "Until May."',
    ),
    "history verify": ("decisor history verify last", "decisor history verify run.jsonl --db offers.csv"),
    "index": ("decisor index reports/ --out reports.index",),
    "graph": ("decisor graph load plants.csv roads.csv --source from --target to --out roads.kgl",),
    "serve": ("decisor serve --db sqlite:///sites.db --llm qwen3:8b@localhost:11434",),
    "mcp": ("decisor mcp --demo", "decisor mcp --db sales.db --llm gpt-4.1-mini"),
    "doctor": (
        "decisor doctor",
        "decisor doctor --llm qwen3:8b@localhost:11434",
        "decisor doctor --db offers.csv --llm none",
    ),
    "model": (
        'decisor model draft "Which office?" --rules rules.txt --db offices/ --out office.toml --llm gpt-4.1-mini',
        "decisor model check office.toml --db offices/",
        'decisor model whatif office.toml "turning points" --db offices/',
    ),
    "model whatif": (
        'decisor model whatif office.toml "why oak" --db offices/',
        'decisor model whatif office.toml "turning points" --db offices/',
        'decisor model whatif office.toml "team.people × 1.2" --db offices/',
    ),
    "definitions": ("decisor definitions draft --db sales.db --llm none --out words.toml",),
    "eval": ("decisor eval -b dqa -t plan_rag -t iter_rag --llm gpt-4.1-mini --store run.db",),
    "config": ("decisor config", "decisor config trust"),
    "train": ("decisor train query-scorer --corpus corpus.jsonl --questions questions.jsonl --out scorer",),
    "bench": ("decisor bench list", "decisor bench dqa generate --scenario building --seed 1 --out DIR"),
    "reproduce": (
        "decisor reproduce planrag",
        "decisor reproduce planrag 4 --data DIR --llm gpt-4 --share 0.1 --dry-run",
        "decisor reproduce radagent 1 --data DIR --llm gpt-4o-mini --markdown",
    ),
    "report": ("decisor report run.db --html report.html", "decisor report run.db --against before.db"),
    "prompts": ("decisor prompts plan_rag > mine.toml",),
}
KINDS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}


def improve_help(command: Any, words: tuple[str, ...] = ()) -> None:
    """Add plain words for values, and examples at the end, to the help of a command. Its subcommands are done too."""
    write_option_groups(command)
    if lines := EXAMPLES.get(" ".join(words)):
        # A backspace on a line of its own keeps click from wrapping the lines below.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shorten_argument_help(parameter)
        elif parameter.metavar is None and not getattr(parameter, "is_flag", False):
            # typer's options know their annotation, None if typer does not say their type.
            annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            value = next(iter(get_args(annotation)), annotation)
            parameter.metavar = KINDS.get(value) if isinstance(value, type) else None
    for name, one in getattr(command, "commands", {}).items():
        one.short_help = one.short_help or (one.help or "").partition("\n\n")[0].replace("\n", " ")
        improve_help(one, (*words, name))


GROUPS = {
    "Data": "db graph docs tools model definitions rules goal example form go_on go_on_from",
    "Access": "tables deny_tables rows mask reveal audit methods base_url auth row_values max_scan",
    "Model": "llm technique settings readings",
    "Limits": "calls tokens dollars seconds actions",
    "Output": "trace html record no_history as_json",
}
"""Parameters by the group that the help shows them in."""


def write_option_groups(command: Any) -> None:
    """Have the help of a command with many options show them in groups."""
    group_of = {name: group for group, names in GROUPS.items() for name in names.split()}
    if len({group_of.get(parameter.name) for parameter in command.params}) < 4:
        return

    def write(context: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{group: [] for group in GROUPS}, "Options": []}
        for parameter in command.get_params(context):
            group = "Arguments" if parameter.param_type_name == "argument" else group_of.get(parameter.name, "Options")
            if line := parameter.get_help_record(context):
                groups[group].append(line)
        for name, lines in groups.items():
            if lines:
                with formatter.section(name):
                    formatter.write_dl(lines)
        if rare := [one.opts[0] for one in command.get_params(context) if getattr(one, "hidden", False)]:
            formatter.write_paragraph()
            formatter.write_text(f"Rarely needed, also keys of decisor.toml (docs/start.md): {', '.join(rare)}.")

    command.format_options = write


def shorten_argument_help(argument: Any) -> None:
    """Show an argument by its word alone, in brackets if it is optional. click's own line names a type of Python."""
    word = argument.metavar = argument.metavar or argument.name.upper()
    record = argument.get_help_record
    argument.get_usage_pieces = lambda context: [word if argument.required else f"[{word}]"]
    argument.get_help_record = lambda context: (word, record(context)[1])


def print_findings(file: Path, findings: Sequence[Finding], as_json: bool) -> None:
    """Print the findings of a check; raise typer.Exit with 1 if one is an error."""
    if as_json:
        plain = [
            {key: value for key, value in asdict(one).items() if (key, value) != ("number", 0)} for one in findings
        ]
        print_json({"file": str(file), "findings": plain})
    else:
        for one in findings:
            print(one)
        print(f"{file}: {format_count(len(findings), 'finding') if findings else 'no faults found'}")
    if any(one.kind == "error" for one in findings):
        raise typer.Exit(Exit.FAILED)


def print_folder_file(config: Config) -> None:
    """Print one line on standard error if the folder has a decisor.toml. It may be someone else's."""
    for file in config.files:
        if file.origin != "folder":
            continue
        says = [*file.settings, *(f"connections.{name}" for name in file.connections)]
        line = f"decisor: {file.path.name} of this folder is used for {', '.join(says) or 'nothing'}"
        if file.left_out:
            line += f"; it is not trusted, so {', '.join(file.left_out)} is ignored (see: decisor config)"
        print(clean_one_line(line, 400), file=sys.stderr)


def find_place(name: str) -> str | Connection:
    """Return the connection of a name, else the name itself as a place.

    Raise SetupError if a config file cannot be used.
    """
    config = resolve_config()
    place = config.places([name])[0]
    if isinstance(place, Connection):
        print_folder_file(config)
    return place
