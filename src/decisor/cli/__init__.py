"""The command line. A subcommand's module is imported when it is the one that was asked for, so help stays fast.

Exit codes, the same for every subcommand: see docs/start.md.
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

# name -> (module:function, or module:app with commands of its own; summary in the list of commands)
COMMANDS = {
    "demo": ("decisor.cli.demo:command", "Show a recorded run on sample data; needs no LLM."),
    "ask": ("decisor.cli.ask:command", "Answer a decision question from your data."),
    "serve": ("decisor.cli.serve:serve_command", "Start the web page and the HTTP API."),
    "mcp": ("decisor.cli.serve:mcp_command", "Start an MCP server for a coding agent or chat client."),
    "model": ("decisor.cli.model:app", "Draft, check, show and rank decision models; ask what-if."),
    "history": ("decisor.cli.history:app", "List, show, resume, approve, verify, mark or delete saved runs."),
    "index": ("decisor.cli.sources:index_command", "Index documents for questions."),
    "doctor": ("decisor.cli.doctor:command", "Check the LLM, drivers and databases."),
    "config": ("decisor.cli.config:app", "Show active settings and connections."),
    "eval": ("decisor.lab.cli.evaluate:eval_command", "Run techniques on benchmarks or your own questions."),
    "report": ("decisor.lab.cli.report:command", "Show results of an evaluation: tables, comparisons, page."),
}
MORE = {
    "worker": ("decisor.cli.serve:worker_command", "Do runs that servers put in line, without a web page."),
    "trace": ("decisor.cli.history:trace_command", "Show a trace file, or rerun it from a changed step."),
    "definitions": ("decisor.cli.definitions:app", "Define words of your data: draft, check, propose, approve."),
    "graph": ("decisor.cli.sources:app", "Load a graph from files or from a relational database."),
    "techniques": ("decisor.cli.config:techniques_command", "List the techniques and their settings."),
    "plugins": ("decisor.cli.config:plugins_command", "List plugins of other installed packages."),
    "prompts": ("decisor.cli.config:prompts_command", "Print a technique's prompts, to change them."),
    "bench": ("decisor.lab.cli.bench:app", "List benchmarks; generate and load questions of Decision QA."),
    "reproduce": (
        "decisor.lab.cli.reproduce:reproduce_command",
        "Reproduce a paper's table beside its published figures.",
    ),
    "train": ("decisor.lab.cli.evaluate:app", "Train the query scorer of furepa."),
}
"""Commands that the list has below the others."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk."""
CLOSED = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""Errors of a file that cannot be used at its place."""

HELP = """Decisor answers decision questions from data: it plans, queries, replans, decides, and shows the evidence.

Try it without data or an LLM: decisor demo"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.excepthook, sys.unraisablehook = print_crash, repeat_interrupt
    from decisor.cli.output import clean_output

    clean_output()
    try:
        code = run_command_line(words)
    except KeyboardInterrupt:  # while modules are imported
        code = 130
        print("decisor: interrupted", file=sys.stderr)
    sys.exit(code)


def print_crash(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """Print a traceback as Python does, without keys and passwords."""
    import traceback

    from decisor.system.secrets import redact

    print(redact("".join(traceback.format_exception(kind, error, frames))), end="", file=sys.stderr)


def repeat_interrupt(dropped: sys.UnraisableHookArgs) -> None:
    """Raise an interrupt again that Python dropped.

    Python drops an interrupt that comes while it cleans something up, as it does all along while it imports.
    """
    if dropped.exc_type is KeyboardInterrupt:
        if sys.platform == "win32":
            again = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        else:
            # To the main thread: a signal to the timer's thread would not wake a read that the main thread waits in.
            again = threading.Timer(0.05, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def run_command_line(words: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Errors that a person can mend are one line on standard error, or with --json one object on standard output.
    """
    from decisor.errors import Error

    try:
        return call_command(words)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except Error as error:
        from decisor.cli.output import exit_of_error, print_error

        print_error(error, words)
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
            # What is left in the buffer would fail once more when Python ends.
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
            what = f"cannot write: {error.strerror}. Free some space and run the same command again."
        elif error.errno in CLOSED and error.filename is not None:
            what = f"{error.filename}: {error.strerror}. Check the path and its permissions."
        else:
            raise
        print(f"decisor: {what}", file=sys.stderr)
        return 1


def call_command(words: Sequence[str]) -> int:
    """Call the command that ``words`` name and return its exit code.

    Raises:
        Error: what the command raises; a SetupError where the words themselves are wrong.
    """
    import typer

    from decisor.cli.output import improve_help
    from decisor.errors import SetupError

    # typer does not export click's UsageError, the base of BadParameter.
    wrong_usage: type[Any] = typer.BadParameter.__bases__[0]
    is_completing = "_DECISOR_COMPLETE" in os.environ
    words = list(words) or ([] if is_completing else ["--help"])
    # Scripts of earlier releases say --lm. Renamed before repeats are looked for, so that --lm beside --llm is one.
    end = [*words, "--"].index("--")
    words[:end] = [re.sub("^--lm(?==|$)", "--llm", word) for word in words[:end]]
    # Words to complete: bash sets COMP_WORDS, the other shells that typer knows set _TYPER_COMPLETE_ARGS.
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    command: Any = typer.main.get_command(build_app(typed.split()[1:] if is_completing else words))
    improve_help(command)
    check_repeats(command, words)
    # From here on an interrupt raises KeyboardInterrupt, as there may be something to end well.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = command(args=words, prog_name="decisor", standalone_mode=False)
    except wrong_usage as error:
        message, help = (
            shorten_usage_error(error.format_message().rstrip(".")),
            error.ctx.get_help() if error.ctx else "",
        )
        if message in ("", help.rstrip(".")):  # a group without a command
            print(help, file=sys.stderr)
            return 2
        where = error.ctx.command_path if error.ctx else " ".join(["decisor", *find_subcommand(command, words)[0]])
        if where == "decisor ask" and "unexpected extra argument" in message:
            raise SetupError('Put the question in quotes: decisor ask "WHICH ...?" --db URL') from error
        raise SetupError(f"{message}{'' if message.endswith('?') else '.'} See: {where} --help") from error
    # Flush while errors are still caught: a full disk or a closed pipe may show only here.
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def shorten_usage_error(message: str) -> str:
    """Shorten a usage error of typer to the option and the value that it takes.

    >>> shorten_usage_error("Invalid value for '--calls': Input should be a valid integer, unable to parse string")
    '--calls should be a valid integer'
    """
    return re.sub(
        r"^Invalid value for '([^']+)'(?: / '[^']+')*: Input (should be [^,]+)(, unable .*)?$", r"\1 \2", message
    )


def check_repeats(command: Any, words: Sequence[str]) -> None:
    """Raise SetupError if an option for one value is given twice. The first value would be ignored in silence."""
    from decisor.errors import SetupError

    # What follows -- is an argument, not an option.
    options = [word.partition("=")[0] for word in words[: [*words, "--"].index("--")]]
    for parameter in find_subcommand(command, words)[1].params:
        names = {name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")}
        if names and not (parameter.multiple or parameter.is_flag) and sum(name in names for name in options) > 1:
            raise SetupError(f"{parameter.opts[0]} is given twice. It takes one value.")


def find_subcommand(command: Any, words: Sequence[str]) -> tuple[list[str], Any]:
    """Return the names in ``words`` of commands below ``command``, and the last of these commands."""
    names = []
    for word in words:
        if word in getattr(command, "commands", {}):
            names.append(word)
            command = command.commands[word]
    return names, command


def build_app(words: Sequence[str]) -> typer.Typer:
    """Build the Typer app; import only the subcommand that ``words`` name."""
    import typer

    app = typer.Typer(
        help=HELP,
        # A backspace on a line of its own keeps click from wrapping the lines below.
        epilog="\b\nMore:\n" + "\n".join(f"  {name:<13}{summary}" for name, (_, summary) in MORE.items()),
        no_args_is_help=True,
        # Help without colours starts in half the time: docs/decisions/command-line.md.
        rich_markup_mode=None,
        # A traceback of typer's own can show local variables, keys among them.
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
    for name, (place, summary) in {**COMMANDS, **MORE}.items():
        is_listed = name in COMMANDS
        if name != command:
            app.command(name, help=summary, hidden=not is_listed)(lambda: None)
            continue
        module, _, attribute = place.partition(":")
        if module.startswith("decisor.lab."):
            from decisor.system.extras import import_lab

            home = import_lab(module.removeprefix("decisor.lab."), f"decisor {name}")
        else:
            home = importlib.import_module(module)
        found_command: Callable[..., object] | typer.Typer = getattr(home, attribute)
        if isinstance(found_command, typer.Typer):
            app.add_typer(found_command, name=name, help=summary)
        else:
            app.command(name)(found_command)
    return app
