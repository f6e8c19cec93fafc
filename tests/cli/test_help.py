"""``--help``: every example can be typed, every value has a word, and no summary is cut."""

import shlex
from typing import Any

import pytest
import typer

from decisor.cli import COMMANDS, build_app, run_command_line
from decisor.cli.output import EXAMPLES, improve_help


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


@pytest.mark.parametrize("name", COMMANDS)
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


def test_an_argument_stands_there_by_its_word_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["show", "--help"]) == 0
    out = capsys.readouterr().out
    assert "show [OPTIONS] [N|last]\n" in out and "\n  N|last  The number" in out
    assert run_command_line(["trace", "--help"]) == 0
    assert "trace [OPTIONS] FILE\n" in capsys.readouterr().out


def test_every_option_of_a_command_says_what_it_is_for() -> None:
    for name in COMMANDS:
        command, _ = command_of([name])
        improve_help(command)
        silent = [p.opts[0] for one in innermost(command) for p in one.params if not p.help and p.name != "help"]
        assert not silent, (name, silent)


def innermost(command: Any) -> list[Any]:
    below = getattr(command, "commands", {}).values()
    return [one for child in below for one in innermost(child)] if below else [command]
