"""What a person reads who typed something that cannot work: one line, with what to do."""

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.store_file import open_read_only_store
from local_llm import LocalLLM

MODEL = """
format = 3
decide = "the shop"
choice.pick.rows = "SELECT name FROM shop"
change = "UPDATE shop SET is_open = 1 WHERE name = (SELECT name FROM pick)"
[measure.monthly_cost]
goal = "min"
sql = "SELECT sum(rent) FROM shop WHERE is_open = 1"
"""
RENTS = """
format = 3
decide = "the shop"
choice.pick.rows = "SELECT name, rent FROM shop"
measure.rent = { goal = "min", sql = "SELECT (SELECT rent FROM pick)" }
"""
EXAMPLE = ["ask", "--example", "trade", "--llm", "none"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.db").touch()
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00r\x00")
    (tmp_path / "nul.txt").write_bytes(b"GIF89a\0\1")
    (tmp_path / "latin.txt").write_bytes("Größe\n".encode("latin-1"))
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE shop (name TEXT, rent REAL, is_open INTEGER)")
        database.executemany("INSERT INTO shop VALUES (?, ?, 0)", [("ash", 900.0), ("oak", 700.0)])
    (tmp_path / "model.toml").write_text(MODEL)
    (tmp_path / "rents.toml").write_text(RENTS)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["ask", "which", "plant"], 'in quotes: decisor ask "WHICH'),
        (["ask", "x", "--db", "sqlite://shop.db"], "three slashes: sqlite:///shop.db"),
        (["ask", "x", "--db", "empty.db"], "an empty file"),
        (["ask", "x", "--db", "sqlite:///prices.csv"], "no database of SQLite"),
        (["ask", "x", "--db", "duckdb:///shop.db"], "database of SQLite: write sqlite:///"),
        (["ask", "x", "--db", "shop.db", "-t", "plan_rga"], "Did you mean plan_rag? See: decisor techniques"),
        (["ask", "x", "--db", "shop.db", "-t", "zzz"], "There is agent, plan_rag, "),
        (["ask", "x", "--db", "shop.db", "--rules", "latin.txt"], "iconv -f LATIN1 -t UTF-8 latin.txt"),
        (["ask", "x", "--db", "shop.db", "--rules", "binary.txt"], "is not a text file"),
        (["ask", "x", "--llm", "none", "--llm=none"], "--llm is given twice"),
        (["eval", "--store", "a.db", "--store", "b.db"], "--store is given twice"),
        (["ask", "x", "--db", "duckdb:///prices.csv"], "--db prices.csv"),
        (["ask", "x", "--db", "prices.csv", "--llm", "m@ftp://x"], "takes MODEL or MODEL@BASE_URL"),
        (["ask", "x", "--db", "prices.csv", "--llm", "qwen3:8b@llm.example:8000"], "begins with http:// or https://"),
        (["ask", "x", "--db", "shop.db", "--rules", "nul.txt"], "is not a text file"),
        (["ask", "x", "--db", "shop.db", "--rules", "Rents count."], "--rules takes a text file"),
        (["serve", "--db", "nowhere.csv", "--no-browser"], "There is no file nowhere.csv"),
        (["serve", "--db", "sqlite:///nowhere.db", "--no-browser"], "There is no file"),
        (["ask", "x", "--db", "prices.csv", "--docs", "https://example.org/a.html"], "Download it, and give the file"),
        (["ask", "x", "--db", "prices.csv", "--llm", "qwen3:8b"], "start Ollama"),
        (["trace", "nowhere.jsonl"], "nowhere.jsonl: No such file or directory. Make one with"),
        (["doctor", "--tools", "prices.csv"], "is no OpenAPI document"),
        (["report", "prices.csv"], "decisor eval --store FILE makes one"),
        (["report", "shop.db"], "is no run store of decisor: decisor eval --store FILE makes one"),
        (
            ["ask", "x", "--db", "shop.db", "--calls", "few"],
            "--calls should be a valid integer. See: decisor ask --help",
        ),
        (["ask", "x", "--db", "shop.db", "--calls", "0"], "--calls should be greater than or equal to 1"),
        (
            ["ask", "x", "--db", "shop.db", "--html", "none/run.html"],
            "there is no folder none. Name another --html file",
        ),
        (["ask", "x", "--db", "shop.db", "--record", "."], "it is a folder. Name another --record file"),
        (["demo", "--folder", "shop.db"], "Cannot use shop.db: File exists."),
        (["mcp"], "No data source given. Use --db, --graph, --docs or --tools, or try: decisor mcp --demo"),
        (["mcp", "--db", "nowhere.db"], "There is no file nowhere.db. Check the path."),
        (["ask", "x", "--db", "nowhere/", "--llm", "none"], "There is nothing at nowhere/. Check the path"),
        (["ask", "x", "--goal"], "'--goal' requires an argument. See: decisor ask --help"),
        (["history", "--most", "0"], "--most should be greater than or equal to 1. See: decisor history --help"),
        (["history", "mark", "x", "right"], "See: decisor history mark --help"),
        (["mcp", "--db", "shop.db", "-t", "plan_rga"], "Did you mean plan_rag? See: decisor techniques"),
        (["model", "whatif", "rents.toml", "make coffee", "--db", "shop.db"], "Inputs are such as 'why NAME'"),
        (["definitions", "approve", "none.toml", "reading.x"], "See: decisor definitions propose --help"),
        (["eval", "-b", "dqa dat=x", "-t", "exact", "--store", "run.db"], "dqa has no dat; it has data"),
        (["eval", "none.toml"], "none.toml cannot be read: No such file or directory."),
        (["history", "show"], "decisor ask keeps one of each question of your own"),
        (["graph", "load", "none.csv", "--out", "x.kgl"], "There is no file none.csv. Check the path."),
        (["aks", "x"], "Did you mean 'ask'? See: decisor --help"),
    ],
)
def test_a_mistake_gets_one_line_that_says_what_to_do(
    words: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    line = capsys.readouterr().err
    assert advice in line and line.count("\n") == 1


def test_a_place_that_cannot_be_written_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_command_line(
            ["bench", "dqa", "generate", "--scenario", "locating", "--size", "tiny", "--out", "/proc/none"]
        )
        == 1
    )
    assert capsys.readouterr().err == (
        "decisor: /proc/none: No such file or directory. Check the path and its permissions.\n"
    )


def test_without_words_there_is_help_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([]) == 0
    out, err = capsys.readouterr()
    assert "Usage: decisor" in out and "  ask " in out and not err


def test_a_question_may_hold_an_option_twice_after_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "--llm", "none", "--", "--llm"]) == 2
    assert "No data source given" in capsys.readouterr().err


def test_a_trace_that_is_there_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*EXAMPLE, "--trace", "run.jsonl"]) == 0
    before = (folder / "run.jsonl").read_bytes()
    assert run_command_line([*EXAMPLE, "--trace", "run.jsonl"]) == 2
    assert "Name another --trace" in capsys.readouterr().err
    assert (folder / "run.jsonl").read_bytes() == before


def on_a_small_disk(words: list[str]) -> subprocess.CompletedProcess[str]:
    """No file may grow beyond 20,000 bytes. The first run, without that, compiles every module."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "decisor", *words]
    assert subprocess.run([*command[:-1], "elsewhere"], capture_output=True, check=False).returncode == 0
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)


@pytest.mark.slow
def test_a_run_whose_trace_fills_the_disk_still_shows_its_decision() -> None:
    Path("rules.txt").write_text("Rents count. " * 4_000)
    words = ["ask", "Which?", "--db", "shop.db", "--model", "model.toml", "--llm", "none", "--rules", "rules.txt"]
    ended = on_a_small_disk([*words, "--trace", "run.jsonl"])
    assert ended.returncode == 1
    assert "Decision: oak" in ended.stdout and "run.jsonl is not whole: File too large" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_an_index_that_fills_the_disk_ends_in_a_line(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "words.txt").write_text(" ".join(f"word{number}" for number in range(40_000)))
    ended = on_a_small_disk(["index", "docs", "--out", "index"])
    assert ended.returncode == 1
    # The second where a thread of the index's library ended before it said why.
    assert re.search(r"cannot write: (File too large|Input/output error)\. Free some space", ended.stderr)
    assert "Traceback" not in ended.stderr


def test_a_terminal_without_our_characters_gets_others() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    words = [sys.executable, "-B", "-m", "decisor", *EXAMPLE]
    ended = subprocess.run(words, capture_output=True, env=environment, check=False)
    assert ended.returncode == 0 and b"Decision: " in ended.stdout and b"Traceback" not in ended.stderr


def test_files_say_how_many_rows_they_have(capsys: pytest.CaptureFixture[str], local_llm: LocalLLM) -> None:
    assert run_command_line(["ask", "Which?", "--db", "prices.csv", "--llm", local_llm.name, "--calls", "1"]) == 3
    assert "prices: 1 row from prices.csv." in capsys.readouterr().err


def test_one_call_is_said_to_be_the_limit(capsys: pytest.CaptureFixture[str], local_llm: LocalLLM) -> None:
    local_llm.replies = ["Hello there."]
    words = ["ask", "Which?", "--db", "shop.db", "--llm", local_llm.name]
    assert run_command_line([*words, "--calls", "1"]) == 3
    assert "No last answer was given. The limit of 1 call is reached." in capsys.readouterr().out


@pytest.mark.parametrize("folder_of", ["XDG_DATA_HOME", "XDG_CACHE_HOME"])
def test_a_folder_of_ours_that_cannot_be_made_is_named_with_its_variable(
    folder_of: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(folder_of, "prices.csv/below")
    words = ["history"] if folder_of == "XDG_DATA_HOME" else ["ask", "x", "--db", "prices.csv", "--llm", "none"]
    assert run_command_line(words) == 2
    assert f"Set {folder_of} to a folder that can be written." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("status", "advice"), [(401, "Check the key"), (404, "Is the LLM's name right")])
def test_an_endpoint_that_refuses_is_told_once_with_its_reason(
    status: int, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with refusing(status) as url:
        assert run_command_line(["ask", "--example", "trade", "--llm", f"m@{url}"]) == 1
    out, err = capsys.readouterr()
    assert f"answered {status}: No such thing." in err.splitlines()[-1] and advice in err
    assert err.count("No such thing.") == 1 and "No such thing." not in out and "0 tokens" not in err


@contextmanager
def refusing(status: int) -> Iterator[str]:
    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"error": {"message": "No such thing"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_the_store_of_a_run_in_a_folder_that_cannot_be_written_is_read(folder: Path) -> None:
    open_store(folder / "run.db").close()
    connection = open_read_only_store(folder / "run.db")
    assert len(connection.execute("SELECT name FROM sqlite_master").fetchall()) > 3
    connection.close()
