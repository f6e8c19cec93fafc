"""The command line. A subcommand's module is imported when it is the one that was asked for, so help stays fast.

Exit codes, the same for every subcommand: see docs/command.md.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    import typer

# name -> (module, what the list of commands says). A module holds ``command``, a function, or ``app``, with its own.
COMMANDS = {
    "demo": ("decisor.cli.demo", "See what it does, on a made-up shop, without a model."),
    "ask": ("decisor.cli.ask", "Answer a decision question from your data."),
    "history": ("decisor.cli.history", "Runs that were kept: list, search, mark, delete them."),
    "show": ("decisor.cli.show", "Show a run that was kept again."),
    "resume": ("decisor.cli.resume", "Go on from a run that did not end."),
    "trace": ("decisor.cli.trace", "Show a trace file as a story, or go on from a step of it."),
    "record": ("decisor.cli.record", "The record of a decision: as a page, or its schema."),
    "approve": ("decisor.cli.approve", "Approve a decision as a person, or take that back."),
    "verify": ("decisor.cli.verify", "Compute old decisions again: do they still hold?"),
    "doctor": ("decisor.cli.doctor", "Say what is here (LMs, drivers), and test it."),
    "config": ("decisor.cli.config", "Say which settings and connections hold here."),
    "index": ("decisor.cli.index", "Index documents, so that questions can be asked of them."),
    "graph": ("decisor.cli.graph", "Load a graph from files or from a relational database."),
    "model": ("decisor.cli.model", "Decision models: draft, check, show, rank, what if."),
    "definitions": ("decisor.cli.definitions", "What words mean in your data: check, draft, propose."),
    "serve": ("decisor.cli.serve", "Serve a page to ask from, and an API."),
    "mcp": ("decisor.cli.mcp", "Serve these tools to a coding agent or chat client (MCP)."),
    "techniques": ("decisor.cli.techniques", "List the techniques and their settings."),
    "prompts": ("decisor.cli.prompts", "Print the prompts of a technique, to change them."),
    "eval": ("decisor.cli.eval", "Run techniques on benchmarks; what stops goes on later."),
    "report": ("decisor.cli.report", "Report an evaluation: tables, comparisons, one page."),
    "bench": ("decisor.cli.bench", "Benchmarks: list them; run, make and load questions of Decision QA."),
    "train": ("decisor.cli.train", "Train what techniques learn from data."),
}

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A full disk, by any of its names."""
CLOSED = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""A place of a file that cannot be used."""

HELP = """Decisor answers decision questions from data: it plans, queries, replans, decides, and shows the evidence.

Try it without data or a model: decisor demo"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process with the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.excepthook, sys.unraisablehook = tell_bug, interrupt_again
    from decisor.cli.console import clean_output

    clean_output()
    try:
        code = run(words)
    except KeyboardInterrupt:  # while modules are imported
        code = 130
        print("decisor: interrupted", file=sys.stderr)
    sys.exit(code)


def tell_bug(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """A traceback, as Python prints it, without keys and passwords."""
    import traceback

    from decisor.secrets import redact

    print(redact("".join(traceback.format_exception(kind, error, frames))), end="", file=sys.stderr)


def interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Python drops an interrupt that comes while it cleans something up, as it does all along while it imports."""
    if dropped.exc_type is KeyboardInterrupt:
        again = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def run(words: Sequence[str]) -> int:
    """The exit code of a command line. Errors that a person can mend are one line on standard error, or with
    --json one object on standard output."""
    from decisor.errors import Error

    try:
        return called(words)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except Error as error:
        from decisor.cli.exits import exit_of_error, say_error

        say_error(error, words)
        return int(exit_of_error(error))
    except KeyboardInterrupt:
        print("decisor: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output left (decisor ... | head): that is not an error of ours.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0
    except OSError as error:
        if error.errno in FULL:
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
            what = f"cannot write: {error.strerror}. Make room, and run the same command again."
        elif error.errno in CLOSED and error.filename is not None:
            what = f"{error.filename}: {error.strerror}. Name a place that is there, and that you may write."
        else:
            raise
        print(f"decisor: {what}", file=sys.stderr)
        return 1


def called(words: Sequence[str]) -> int:
    """The exit code of the command that ``words`` name.

    Raises:
        Error: what the command raises; a SetupError where the words themselves are wrong.
    """
    import typer

    from decisor.cli.help import dress
    from decisor.errors import SetupError

    wrong_usage: type[Any] = typer.BadParameter.__bases__[0]
    is_completing = "_DECISOR_COMPLETE" in os.environ
    words = list(words) or ([] if is_completing else ["--help"])
    command: Any = typer.main.get_command(build(words_so_far() if is_completing else words))
    dress(command)
    check_repeats(command, words)
    hear_interrupts()
    try:
        code = command(args=words, prog_name="decisor", standalone_mode=False)
    except wrong_usage as error:
        message, help = in_our_words(error.format_message().rstrip(".")), error.ctx.get_help() if error.ctx else ""
        if message in ("", help.rstrip(".")):  # a group without a command
            print(help, file=sys.stderr)
            return 2
        where = error.ctx.command_path if error.ctx else " ".join(["decisor", *innermost(command, words)[0]])
        if where == "decisor ask" and "unexpected extra argument" in message:
            raise SetupError('Put the question in quotes: decisor ask "WHICH ...?" --db URL') from error
        raise SetupError(f"{message}{'' if message.endswith('?') else '.'} See: {where} --help") from error
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def hear_interrupts() -> None:
    """From here on there may be something to end well."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def in_our_words(message: str) -> str:
    """
    >>> in_our_words("Invalid value for '--calls': Input should be a valid integer, unable to parse string")
    '--calls should be a valid integer'
    """
    return re.sub(
        r"^Invalid value for '([^']+)'(?: / '[^']+')*: Input (should be [^,]+)(, unable .*)?$", r"\1 \2", message
    )


def words_so_far() -> list[str]:
    """What is typed where a shell asks how it goes on."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:]


def check_repeats(command: Any, words: Sequence[str]) -> None:
    """Raises SetupError where an option that holds one value comes twice: the first would be ignored in silence."""
    from decisor.errors import SetupError

    options = [word.partition("=")[0] for word in words[: [*words, "--"].index("--")]]
    for parameter in innermost(command, words)[1].params:
        names = {name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")}
        if names and not (parameter.multiple or parameter.is_flag) and sum(name in names for name in options) > 1:
            raise SetupError(f"{parameter.opts[0]} is there twice, and it takes one value: leave out one.")


def innermost(command: Any, words: Sequence[str]) -> tuple[list[str], Any]:
    """The names in ``words`` of commands below ``command``, and the last of these commands."""
    names = []
    for word in words:
        if word in getattr(command, "commands", {}):
            names.append(word)
            command = command.commands[word]
    return names, command


def build(words: Sequence[str]) -> typer.Typer:
    """The Typer app, with only the subcommand that ``words`` name imported."""
    import typer

    app = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
        if version:
            from decisor.version import __version__

            print(f"decisor {__version__}")
            raise typer.Exit

    command = next((word for word in words if not word.startswith("-")), "")
    for name, (module, summary) in COMMANDS.items():
        if name != command:
            app.command(name, help=summary)(_elsewhere)
            continue
        room = importlib.import_module(module)
        if hasattr(room, "app"):
            app.add_typer(room.app, name=name, help=summary)
        else:
            function: Callable[..., object] = room.command
            app.command(name)(function)
    return app


def _elsewhere() -> None:
    """Stands in for a subcommand that was not asked for."""
