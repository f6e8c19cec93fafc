"""The picture and the output on the README are those of the demo, run again."""

import re
import runpy
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.demo.demo import replay_recorded_run, write_shop

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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DECISOR_LLM", "none")
    write_shop(Path("shop.db"))
    printed = str(replay_recorded_run(Path("shop.db"))).splitlines()
    assert shown("decisor demo") and not [line for line in shown("decisor demo") if line not in printed]
    with as_file(files("decisor.demo") / "shop.toml") as model:
        Path("shop.toml").write_text(model.read_text())

    def lacking(command: str, *words: str) -> list[str]:
        capsys.readouterr()
        assert run_command_line(words) in (0, 1)
        out = capsys.readouterr().out
        return [line for line in shown(command) if line not in out.splitlines()]

    for wish in ("why Norrik", "turning points"):
        words = ("model", "whatif", "shop.toml", wish, "--db", "shop.db")
        assert not lacking(f'decisor model whatif shop.toml "{wish}" --db shop.db', *words)
    assert not lacking("", "ask", "Which supplier should we drop?", "--db", "shop.db", "--model", "shop.toml")
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("UPDATE offer SET unit_cost = unit_cost * 0.7 WHERE supplier = 4")
    assert not lacking("decisor history verify 1", "history", "verify", "1")
