"""What a row, an LLM or a file holds steers no terminal, whichever command prints it; JSON is JSON."""

import ast
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

import decisor
from local_llm import PLAN, QUERY
from servers.openai_server import serve_threaded

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
STYLES = re.compile(rb"\x1b\[[0-9;]*m|\r+[0-9,]+ of [0-9,]+|\r\n|\r(?:\x1b\[1A|\x1b\[2K)+|\x1b\[\?25[lh]")
"""Of ours: colours, the line that tells how far a computation is, a terminal's line end, a line written over."""
COMMANDS = {
    "ask": (
        [
            "ask",
            "Which site?ATTACK",
            "--db",
            "DB",
            "--llm",
            "LLM",
            "-t",
            "plan_rag",
            "--trace",
            "run.jsonl",
            "--record",
            "record.json",
        ],
        "elm",
    ),
    "history": (["history"], "Which site"),
    "history --search": (["history", "--search", "site"], "Which site"),
    "history mark": (["history", "mark", "1", "wrong", "--answer", "oakATTACK"], "marked wrong"),
    "approve": (["history", "approve", "1", "--by", "AdaATTACK", "--note", "XATTACK"], "is approved"),
    "show": (["history", "show", "1", "--full"], "Marked wrong"),
    "trace": (["trace", "run.jsonl"], "elm"),
    "verify a trace": (["history", "verify", "run.jsonl", "--db", "DB"], "run.jsonl"),
    "verify a record": (["history", "verify", "record.json", "--db", "DB"], "record.json"),
    "resume": (["history", "resume", "1"], "decisor:"),
    "model show": (["model", "show", "site.toml", "--db", "DB"], "elm"),
    "model rank": (["model", "rank", "site.toml", "--db", "DB"], "elm"),
    "model whatif": (["model", "whatif", "site.toml", "why NAME", "--db", "DB"], "elm"),
    "turning points": (["model", "whatif", "site.toml", "turning points", "--db", "DB"], "elm"),
    "model check": (["model", "check", "site.toml", "--db", "DB"], "site.toml:"),
    "an error": (["model", "whatif", "site.toml", "why NAMEx", "--db", "DB"], "is no candidate"),
    "a wrong option": (["ask", "--wrongATTACK"], "decisor:"),
    "definitions list": (["definitions", "list", "words.toml"], "dear"),
    "definitions check": (["definitions", "check", "words.toml", "--db", "DB"], "words.toml:"),
    "definitions draft": (["definitions", "draft", "--db", "DB", "--llm", "none"], "site"),
    "index": (["index", "notes", "--out", "ix"], "passage"),
    "graph load": (["graph", "load", "CSV", "--id", "a", "--out", "g.kgl"], "g.kgl"),
    "doctor": (["doctor", "--db", "DB", "--llm", "none"], "site"),
    "doctor --statements": (["doctor", "--db", "DB", "--statements", "odd.jsonl"], "of 1 allowed"),
    "config": (["config"], "shop"),
    "techniques": (["techniques"], "plan_rag"),
}
"""And what stands there where the command got as far as what it is to print. They run in this order, in one folder."""
ATTACK = " ".join(ATTACKS.values())


def escaped(text: str) -> str:
    return json.dumps(text)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A folder whose rows, files and LLM attack whoever prints them."""
    folder = tmp_path_factory.mktemp("attacks")
    write_shop(folder)
    (folder / "decisor.toml").write_text(f"[connections.shop]\nurl = {escaped('sqlite:///shop' + ATTACK)}\n", "utf-8")
    (folder / "words.toml").write_text(
        f"[metric.dear]\nsql = {escaped('SUM(cost) ' + ATTACK)}\nfrom = {escaped('site' + ATTACK)}\n"
        f"synonyms = [{escaped('x' + ATTACK)}]\n",
        "utf-8",
    )
    (folder / "odd.jsonl").write_text(json.dumps({"statement": f"DROP TABLE {ATTACK}"}) + "\n")
    (folder / "notes").mkdir()
    (folder / "notes" / f"n{ATTACKS['bidi']}{ATTACKS['a colour']}.md").write_text(f"# A{ATTACK}\n\nThe elm{ATTACK}.\n")
    csv = f"elm{ATTACK}.csv".replace("/", "")
    (folder / csv).write_text(f"a,b\nelm{ATTACKS['C1']},oak\n")

    def reply(body: dict[str, object]) -> str:
        messages = str(body["messages"])
        if "o1.r1" in messages.partition("# So far")[2]:
            return f"Final answer: elm{ATTACKS['C1']}\nBecause: it costs 3.5 [o1.r1]{ATTACK}"
        return PLAN.replace(QUERY, "SELECT name, cost FROM site ORDER BY cost").replace("there", ATTACK)

    with serve_threaded(reply) as url:
        yield {"FOLDER": str(folder), "DB": f"sqlite:///{folder}/shop.db", "LLM": f"test-model@{url}", "CSV": csv}


def write_shop(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL, safe REAL)")
        for attack in ATTACKS.values():
            db.executemany("INSERT INTO site VALUES (?, ?, ?)", [(f"elm{attack}", 3.5, 1), (f"{attack}oak", 4.5, 0)])
    (folder / "site.toml").write_text(
        f"""format = 3
decide = {escaped("a site" + ATTACK)}
choice.pick.rows = "SELECT name FROM site"
[measure.cost]
goal = "min"
unit = {escaped("EUR" + ATTACK)}
sql = "SELECT s.cost FROM site s JOIN pick c ON c.name = s.name"
[rule.safe]
text = {escaped("it is safe" + ATTACK)}
absent = "SELECT s.name FROM site s JOIN pick c ON c.name = s.name WHERE s.safe < 1"
[input]
"site.cost" = {{ spread = "20 % each" }}
""",
        encoding="utf-8",
    )


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
    own = {name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    environment = {**os.environ, **own, "TERM": "xterm-256color", "COLUMNS": "300"}
    del environment["NO_COLOR"]
    os.execve(sys.executable, [sys.executable, "-m", "decisor", *words], environment)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_a_row_a_file_or_an_llm_reaches_the_terminal_as_a_control(
    command: str, world: dict[str, str]
) -> None:
    words, says = COMMANDS[command]
    words = [world.get(word, word) for word in words]
    words = [word.replace("ATTACK", ATTACK).replace("NAME", f"elm{ATTACKS['clear screen']}") for word in words]
    shown = STYLES.sub(b"", printed(words, Path(world["FOLDER"]))).decode("utf-8")
    assert says in shown, shown
    assert not [char for char in shown if not char.isprintable() and char not in "\n\t"]


def test_no_code_of_the_command_writes_past_the_streams_that_clean() -> None:
    """``print`` writes to them. What opens a stream of its own, or asks for the one below, would not."""
    package = Path(decisor.__file__).parent
    past = [
        f"{path.name}:{node.lineno}"
        for room in ("cli", "views", "lab")
        for path in (package / room).rglob("*.py")
        for statement in ast.parse(path.read_text("utf-8")).body
        if (path.name, getattr(statement, "name", "")) not in CLEANERS
        for node in ast.walk(statement)
        if isinstance(node, ast.expr) and writes_past(node)
    ]
    assert not past


CLEANERS = (
    ("output.py", "CleanOutput"),
    ("output.py", "unwrap_stream"),
    ("notebook.py", "NotebookView"),
    ("transcript.py", "format_story"),  # into a text, not to a terminal
)


def writes_past(node: ast.expr) -> bool:
    """Whether it names a stream below ours, a terminal, or a console that does not clean."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("buffer", "__stdout__", "__stderr__", "styled") or (
            node.attr,
            ast.unparse(node.value),
        ) in (("write", "os"), ("write", "sys.stdout"), ("write", "sys.stderr"), ("echo", "typer"), ("secho", "typer"))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).split(".")[-1] in ("Console", "styled", "input", "getpass")
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and ("\x1b" in node.value or node.value == "/dev/tty")
    )


@pytest.mark.slow
def test_json_keeps_what_a_terminal_must_not_see_and_is_printable(tmp_path: Path) -> None:
    write_shop(tmp_path)
    words = ["model", "rank", "site.toml", "--db", f"sqlite:///{tmp_path}/shop.db", "--json"]
    done = subprocess.run([sys.executable, "-m", "decisor", *words], cwd=tmp_path, capture_output=True)
    text = done.stdout.decode("utf-8")
    names = [option["name"] for option in json.loads(text, parse_constant=refuse)["options"]]
    assert text.rstrip("\n").isprintable() and f"elm{ATTACKS['bidi']}" in names


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("end", ["\r\n", "\u2028"])
def test_a_name_of_several_lines_prints_no_line_that_looks_like_ours(tmp_path: Path, end: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [(f"elm{end}Decision: oak", 3.5), ("oak", 4)])
    (tmp_path / "site.toml").write_text(
        f'format = 3\ndecide = {escaped(f"a site{end}Decision: oak")}\nchoice.pick.rows = "SELECT name FROM site"\n'
        '[measure.cost]\ngoal = "min"\nsql = "SELECT cost FROM site WHERE name = (SELECT name FROM pick)"\n'
    )
    for words in (["rank"], ["show"], ["whatif", "why elm Decision: oak"]):
        command = [sys.executable, "-m", "decisor", "model", words[0], "site.toml", *words[1:], "--db", "shop.db"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert "elm Decision: oak" in done.stdout
        assert not [line for line in done.stdout.splitlines() if line.lstrip().startswith("Decision")], done.stdout


@pytest.mark.slow
def test_a_line_of_standard_error_reaches_a_pipe_before_the_command_ends() -> None:
    code = "import sys; from decisor.cli.output import clean_output; clean_output(); print(1, file=sys.stderr); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "1\n"
        process.communicate("\n", timeout=30)


def test_an_infinite_outcome_is_json_too(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, cost REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("elm", 3.5), ("oak", float("inf"))])
    (tmp_path / "site.toml").write_text(
        'format = 3\ndecide = "a site"\nchoice.pick.rows = "SELECT name FROM site"\n[measure.cost]\ngoal = "max"\n'
        'sql = "SELECT s.cost FROM site s JOIN pick c ON c.name = s.name"\n'
    )
    for words in (["rank"], ["whatif"]):
        tail = ["why elm"] if words == ["whatif"] else []
        command = [
            sys.executable,
            "-m",
            "decisor",
            "model",
            *words,
            str(tmp_path / "site.toml"),
            *tail,
            "--db",
            f"sqlite:///{tmp_path}/shop.db",
            "--json",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True)
        json.loads(done.stdout, parse_constant=refuse)
