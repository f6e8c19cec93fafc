"""``--help``: every example can be typed, every value has a word, and no summary is cut."""

import re
import shlex
from typing import Any

import pytest
import typer

from decisor.cli import COMMANDS, MORE, build_app, run_command_line
from decisor.cli.output import EXAMPLES, GROUPS, improve_help


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The innermost command that the words name, and the words after its name."""
    command: Any = typer.main.get_command(build_app(words))
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_can_be_typed(line: str) -> None:
    name, *words = shlex.split(line.partition(" > ")[0])
    command, rest = command_of(words)
    assert name == "decisor"
    assert command.make_context(line, rest).command is command


@pytest.mark.parametrize("name", [*COMMANDS, *MORE])
def test_no_value_is_called_after_a_type_of_python(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([name, "--help"]) == 0
    out = capsys.readouterr().out
    options = out.partition("Options:")[2]
    assert not [word for word in ("<str>", "<path>", "range>", "list[") if word in options]
    assert ("Examples:" in out) == (name in EXAMPLES)


@pytest.mark.parametrize(
    "words",
    [
        [],
        *([name] for name in ("graph", "model", "definitions", "history", "config")),
        ["bench"],
        ["bench", "dqa"],
        ["train"],
    ],
    ids=" ".join,
)
def test_a_list_of_commands_cuts_no_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*words, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


def test_eleven_commands_are_listed_and_the_others_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    listed, _, more = capsys.readouterr().out.partition("Commands:")[2].partition("More:")
    names = ["demo", "ask", "serve", "mcp", "model", "history", "index", "doctor", "config", "eval", "report"]
    assert re.findall(r"^  (\w+) ", listed, re.MULTILINE) == list(COMMANDS) == names
    assert re.findall(r"^    (\w+) ", more, re.MULTILINE) == list(MORE)
    below, _ = command_of(["history"])
    below_history = {"show", "resume", "approve", "verify", "record", "mark", "export", "backup", "restore"}
    assert below_history == below.commands.keys()
    assert run_command_line(["verify", "last"]) == 2 and "No such command" in capsys.readouterr().err


def test_the_help_of_ask_has_its_options_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "--help"]) == 0
    heads = re.findall(r"^(\w+):$", capsys.readouterr().out, re.MULTILINE)
    assert heads == ["Arguments", "Data", "Access", "Model", "Limits", "Output", "Options"]
    command, _ = command_of(["ask"])
    grouped = {name for names in GROUPS.values() for name in names.split()}
    assert {one.name for one in command.params} - grouped == {"text"}


def test_an_argument_stands_there_by_its_word_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["history", "show", "--help"]) == 0
    out = capsys.readouterr().out
    assert "show [OPTIONS] [N|last]\n" in out and "\n  N|last  The number" in out
    assert run_command_line(["trace", "--help"]) == 0
    assert "trace [OPTIONS] FILE\n" in capsys.readouterr().out


def test_every_option_of_a_command_says_what_it_is_for() -> None:
    for name in (*COMMANDS, *MORE):
        command, _ = command_of([name])
        improve_help(command)
        silent = [p.opts[0] for one in innermost(command) for p in one.params if not p.help and p.name != "help"]
        assert not silent, (name, silent)


def innermost(command: Any) -> list[Any]:
    below = getattr(command, "commands", {}).values()
    return [one for child in below for one in innermost(child)] if below else [command]
