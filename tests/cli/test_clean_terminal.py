"""What a row, a model file or a settings file holds steers no terminal, whichever command prints it; JSON is JSON."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

pty = pytest.importorskip("pty")
ATTACKS = {
    "the clipboard (OSC 52)": "\x1b]52;c;cm0gLXJm\x07",
    "a link (OSC 8)": "\x1b]8;;http://evil.example\x1b\\north\x1b]8;;\x1b\\",
    "clear screen": "\x1b[2J\x1b[H",
    "a colour": "\x1b[32mDecision: north (verified)",
    "the line again": "\rDecision: north (verified)",
    "C1": "\x9b2J\x9d52;c;cm0=\x9c",
    "bidi": "\u202enorth\u2066",
}
STYLES = re.compile(rb"\x1b\[[0-9;]*m|\r+[0-9,]+ of [0-9,]+|\r\n")
"""Of ours: colours, the line that tells how far a computation is, and a terminal's line end."""
COMMANDS = {
    "show": ["model", "show", "FILE", "--db", "DB"],
    "rank": ["model", "rank", "FILE", "--db", "DB"],
    "whatif": ["model", "whatif", "FILE", "why NAME", "--db", "DB"],
    "turning points": ["model", "whatif", "FILE", "turning points", "--db", "DB"],
    "check": ["model", "check", "FILE", "--db", "DB"],
    "an error": ["model", "whatif", "FILE", "why NAMEx", "--db", "DB"],
    "config": ["config"],
    "doctor": ["doctor", "--db", "DB", "--lm", "none"],
    "techniques": ["techniques"],
    "history": ["history"],
}


SAYS = {
    "show": "elm", "rank": "elm", "whatif": "elm", "turning points": "elm", "check": "site.toml:",
    "an error": "is no candidate", "config": "shop", "doctor": "site", "techniques": "plan_rag", "history": "decisor",
}  # fmt: skip
"""What stands there where the command got as far as what it is to print."""


def escaped(text: str) -> str:
    return json.dumps(text)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    attack = ATTACKS[request.param]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL, safe REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?, ?)", [(f"elm{attack}", 3.5, 1), (f"{attack}oak", 4.5, 0)])
    (tmp_path / "site.toml").write_text(
        f"""decide = {escaped("a site" + attack)}
choice = "SELECT name FROM site"
[measure.cost]
goal = "min"
unit = {escaped("EUR" + attack)}
sql = "SELECT s.cost FROM site s JOIN choice c ON c.name = s.name"
[rule.safe]
text = {escaped("it is safe" + attack)}
broken = "SELECT s.name FROM site s JOIN choice c ON c.name = s.name WHERE s.safe < 1"
[input]
"site.cost" = {{ spread = "20 % each" }}
""",
        encoding="utf-8",
    )
    (tmp_path / "decisor.toml").write_text(
        f"[connections.shop]\nurl = {escaped('sqlite:///shop' + attack)}\n", encoding="utf-8"
    )
    return {"FILE": str(tmp_path / "site.toml"), "DB": f"sqlite:///{tmp_path}/shop.db", "NAME": f"elm{attack}"}


def printed(words: list[str], folder: Path) -> bytes:
    """What stands on a terminal of its own after the command."""
    process, terminal = pty.fork()
    if process == 0:
        start(words, folder)
    read = bytearray()
    try:
        while some := os.read(terminal, 65536):
            read += some
    except OSError:  # Linux says so that nobody writes any more
        pass
    os.close(terminal)
    os.waitpid(process, 0)
    return bytes(read)


def start(words: list[str], folder: Path) -> NoReturn:
    os.chdir(folder)
    environment = {**os.environ, "TERM": "xterm-256color"}
    del environment["NO_COLOR"]
    os.execve(sys.executable, [sys.executable, "-m", "decisor", *words], environment)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("world", ATTACKS, indirect=True)
def test_nothing_of_a_row_or_a_file_reaches_the_terminal_as_a_control(
    command: str, world: dict[str, str], tmp_path: Path
) -> None:
    words = [world.get(word, word.replace("NAME", world["NAME"])) for word in COMMANDS[command]]
    shown = STYLES.sub(b"", printed(words, tmp_path)).decode("utf-8")
    assert (SAYS.get(command) or command) in shown, shown
    assert not [char for char in shown if not char.isprintable() and char not in "\n\t"]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["bidi"], indirect=True)
def test_json_keeps_what_a_terminal_must_not_see_and_is_printable(world: dict[str, str], tmp_path: Path) -> None:
    words = ["model", "rank", world["FILE"], "--db", world["DB"], "--json"]
    done = subprocess.run([sys.executable, "-m", "decisor", *words], cwd=tmp_path, capture_output=True)
    text = done.stdout.decode("utf-8")
    assert text.rstrip("\n").isprintable() and "\u202e" in json.loads(text, parse_constant=refuse)["options"][0]["name"]


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.slow
def test_an_infinite_outcome_is_json_too(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("elm", 3.5), ("oak", float("inf"))])
    (tmp_path / "site.toml").write_text(
        'decide = "a site"\nchoice = "SELECT name FROM site"\n[measure.cost]\ngoal = "max"\n'
        'sql = "SELECT s.cost FROM site s JOIN choice c ON c.name = s.name"\n'
    )
    for words in (["rank"], ["whatif"]):
        tail = ["why elm"] if words == ["whatif"] else []
        command = [sys.executable, "-m", "decisor", "model", *words, str(tmp_path / "site.toml"), *tail,
                   "--db", f"sqlite:///{tmp_path}/shop.db", "--json"]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True)
        json.loads(done.stdout, parse_constant=refuse)
