"""``--seconds`` ends every command on a model file, whichever part of it takes so long; the clock is outside."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

SECONDS, MORE = 6.0, 3.0
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 - 1 FROM n) SELECT {0} FROM n"
CROSS = "SELECT count(*) FROM big a, big b, big c, big d WHERE a.i + b.i + c.i + d.i < 0"
MEASURE = '[measure.{0}]\ngoal = "min"\nsql = """{1}"""\n'
COST = MEASURE.format("cost", "SELECT cost FROM site WHERE name = (SELECT name FROM pick)")
CHOICE = 'format = 3\ndecide = "a site"\nchoice.pick.rows = """{0}"""\n'
SITES = CHOICE.format("SELECT name FROM site")
INPUT = '[input]\n"site.cost" = { spread = "20 % each" }\n'
MODELS = {
    "an endless choice": CHOICE.format(ENDLESS.format("'x' || count(*) AS name")) + COST,
    "an endless measure": SITES + MEASURE.format("cost", ENDLESS.format("count(*) + length((SELECT name FROM pick))")),
    "an endless rule": SITES
    + COST
    + f'[rule.safe]\ntext = "x"\nabsent = """{ENDLESS.format("count(*), (SELECT name FROM pick)")}"""\n',
    "a cross join in a rule": SITES
    + COST
    + '[rule.safe]\ntext = "x"\nabsent = """SELECT (SELECT name FROM pick) FROM big a, big b, '
    'big c, big d WHERE a.i + b.i + c.i + d.i < 0"""\n',
    "a nested repeat": SITES
    + MEASURE.format(
        "cost", "SELECT sum(length(replace(repeat(repeat(name, 1000), 1000), 'e', i::VARCHAR))) FROM site, big"
    ),
    "an until that never settles": SITES + '[recompute]\nuntil = "SELECT sum(cost) FROM site"\ntimes = 10000\n'
    'sql = "UPDATE site SET cost = (SELECT sum(a.i + b.i + c.i) FROM big a, big b, big c) - cost"\n' + COST,
    "3,000 measures": SITES
    + "".join(
        MEASURE.format(f"cost{at}", f"SELECT cost + {at} FROM site WHERE name = (SELECT name FROM pick)")
        for at in range(3000)
    ),
    "an input that takes long": SITES
    + MEASURE.format(
        "cost", f"SELECT cost + ({CROSS.replace('a.i', 'a.i % 2')}) * 0 FROM site WHERE name = (SELECT name FROM pick)"
    )
    + INPUT,
    "a program without an end": 'format = 3\ndecide = "sites"\n[unknown.open]\nkind = "binary"\n'
    'per = "SELECT name, cost FROM site"\n'
    '[measure.cost]\ngoal = "min"\nsql = "SELECT sum(cost * amount) FROM open"\n'
    + MEASURE.format("slow", f"SELECT sum(cost) + ({CROSS}) FROM open"),
}
OVER = ("limit of seconds", "s were over", "not opened and copied in time")
ENDS = {"3,000 measures": "Best for", "a nested repeat": "Out of Memory"}
"""What may come before the time is over, and how it ends then."""
COMMANDS = {"rank": [], "check": [], "show": [], "whatif": ["turning points"]}
CASES = [
    *((case, "rank") for case in MODELS),
    ("an endless choice", "check"),
    ("an endless rule", "check"),
    ("a program without an end", "check"),
    ("an endless choice", "show"),
    ("an endless measure", "show"),
    ("an endless measure", "whatif"),
    ("an input that takes long", "whatif"),
]


@pytest.fixture(scope="module")
def start_seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a command takes that does nothing."""
    began = time.monotonic()
    run(tmp_path_factory.getbasetemp(), "model", "schema")
    return time.monotonic() - began


def printed(folder: Path, command: str, model: str) -> tuple[float, str]:
    """Seconds that the command took, and what it said."""
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("elm", 3.5), ("oak", 4.5), ("ash", 5.5)])
        db.execute("CREATE TABLE big (i INTEGER)")
        db.executemany("INSERT INTO big VALUES (?)", [(at,) for at in range(2000)])
    (folder / "site.toml").write_text(model)
    words = ["model", command, str(folder / "site.toml"), *COMMANDS[command], "--db", f"sqlite:///{folder}/shop.db"]
    began = time.monotonic()
    done = run(folder, *words, "--seconds", str(SECONDS))
    return time.monotonic() - began, done.stdout + done.stderr


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "decisor", *words], cwd=folder, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
@pytest.mark.parametrize(("case", "command"), CASES)
def test_a_command_on_a_model_ends_at_its_seconds_and_says_so(
    case: str, command: str, start_seconds: float, tmp_path: Path
) -> None:
    took, said = printed(tmp_path, command, MODELS[case])
    assert took - start_seconds < SECONDS + MORE, f"{took:.1f} s"
    assert any(words in said for words in (*OVER, ENDS.get(case, OVER[0]))), said
    assert "Traceback" not in said
