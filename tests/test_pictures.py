"""The picture and the output on the README are those of the demo, run again."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from decisor.cli import run_command_line

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
SVG = (FOLDER / "demo.svg").read_text("utf-8")


def shown(begin: str) -> list[str]:
    """The lines of output on the README below a command."""
    text = (ROOT / "README.md").read_text("utf-8").partition(f"$ {begin}\n")[2]
    return [line for line in re.split(r"```|\n\$ ", text)[0].splitlines() if line]


def test_the_picture_is_that_of_the_demo(tmp_path: Path) -> None:
    make: Callable[[Path], str] = runpy.run_path(str(FOLDER / "make.py"))["make"]
    assert make(tmp_path) == SVG


def test_the_picture_fetches_nothing_and_a_phone_can_show_it() -> None:
    assert "@font-face" not in SVG and "url(" not in SVG and "<image" not in SVG and "<script" not in SVG
    assert 'width="390"' in SVG and min(map(int, re.findall(r"(\d+)px (?:Inter|ui-monospace)", SVG))) >= 16
    assert min(map(int, re.findall(r"font-size:(\d+)px", SVG))) >= 16


@pytest.mark.slow
def test_the_outputs_on_the_readme_are_those_of_the_shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DECISOR_LLM", "none")

    def lacking(command: str, *words: str) -> list[str]:
        capsys.readouterr()
        assert run_command_line(words) in (0, 1)
        assert shown(command)
        # Where lines break depends on the width of the terminal.
        out = " ".join(capsys.readouterr().out.split())
        return [line for line in shown(command) if " ".join(line.split()) not in out]

    assert not lacking("decisor demo --folder shop && cd shop", "demo", "--folder", "shop")
    monkeypatch.chdir("shop")
    for wish in ("why Norrik", "turning points"):
        words = ("model", "whatif", "shop.toml", wish, "--db", "shop.db")
        assert not lacking(f'decisor model whatif shop.toml "{wish}" --db shop.db', *words)
    verify = ("history", "verify", "run.jsonl", "--db", "next-month.db")
    assert not lacking(" ".join(("decisor", *verify)), *verify)
    assert run_command_line(["demo", "--folder", "."]) == 2 and "has files" in capsys.readouterr().err
