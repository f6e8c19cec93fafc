"""The command, as a person types it: what it prints, and its exit codes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from servers.openai_server import serve_threaded

MODEL = """
format = 3
decide = "the site"
choice.pick.rows = "SELECT name FROM site WHERE is_open = 0"
change = "UPDATE site SET is_open = 1 WHERE name = (SELECT name FROM pick)"
[measure.monthly_cost]
goal = "min"
sql = "SELECT sum(rent) FROM site WHERE is_open = 1"
"""


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    path = tmp_path / "sites.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site (name TEXT, rent REAL, is_open INTEGER)")
        rows = [("ash", 900.0, 1), ("oak", 700.0, 0), ("elm\x1b[31m[bold]", 400.0, 0)]
        database.executemany("INSERT INTO site VALUES (?, ?, ?)", rows)
    return path


@pytest.mark.parametrize("name", ["supply", "trade"])
@pytest.mark.parametrize("form", ["sql", "graph"])
def test_an_example_is_decided_without_data_or_a_model(
    name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["ask", "--example", name, "--form", form, "--llm", "none"]) == 0
    said, how = capsys.readouterr()
    assert how.startswith("Question:") and "Question:" not in said
    for part in ("Decision:", "Ranking:", "Evidence", "•", "No LLM planned this", "--llm MODEL"):
        assert part in said


def test_json_is_one_object_with_the_ranking_the_records_and_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "--example", "trade", "--llm", "none", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == told["ranking"]["options"][0]["name"]
    assert told["evidence"]["records"][0]["id"] == told["evidence"]["ids"][0]
    assert (told["technique"], told["llm"], told["stopped"], told["usage"]["calls"]) == ("exact", None, "answered", 0)


def test_a_model_file_decides_on_a_persons_own_data_and_nothing_steers_the_terminal(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "sites.toml"
    model.write_text(MODEL)
    assert run_command_line(["ask", "Which site?", "--db", str(sites), "--model", str(model), "--llm", "none"]) == 0
    said = capsys.readouterr().out
    assert "Decision: elm[31m[bold]" in said
    assert "\x1b" not in said
    assert "1,300" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["ask", "Which?"], "Use --db, --graph"),
        (["ask", "--example", "moon"], "supply, trade"),
        (["ask", "x", "--docs", "sqlite:///x.db", "--llm", "toy@http://127.0.0.1:9/v1"], "decisor index"),
        (["ask", "Which?", "--db", "sqlite:////nowhere/x.db", "--llm", "none"], "nowhere"),
        (["ask", "--example", "trade", "-t", "exact", "-o", "speed=1"], "exact has no speed"),
        (["ask", "--example", "trade", "-t", "plan_rag", "--llm", "none"], "asks an LLM"),
        (["ask", "--example", "trade", "--llm", "nosuch"], "nosuch"),
        (["ask", "--example", "trade", "--trace", "/nowhere/x.jsonl", "--llm", "none"], "Cannot write the trace"),
        (["trace", "/nowhere/x.jsonl"], "Cannot read the trace"),
        (["doctor", "--statements", "x.jsonl"], "--db URL"),
    ],
)
def test_what_cannot_be_used_is_one_line_with_what_to_do(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["nosuch"],
        ["ask", "--nosuch"],
        ["ask", "x", "--calls", "many"],
        ["index", "here"],
        ["trace", "nosuch"],
        ["report", "nosuch.db"],
        ["eval", "-b", "nosuch"],
        ["doctor", "--statements", "x.jsonl"],
        ["bench", "nosuch"],
    ],
)
def test_an_error_with_json_is_one_object_whatever_the_command(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(words) == 2
    line = capsys.readouterr().err
    assert line.startswith("decisor: ") and line.count("\n") == 1
    assert run_command_line([*words, "--json"]) == 2
    told, err = capsys.readouterr()
    assert json.loads(told)["exit"] == 2 and not err


def test_exact_without_a_decision_model_says_so_even_where_there_is_an_llm(
    sites: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_command_line(["ask", "Which?", "--db", str(sites), "-t", "exact", "--llm", "toy@http://127.0.0.1:9/v1"])
        == 2
    )
    said = capsys.readouterr().err
    assert "There is no LLM" not in said and "--model FILE.toml" in said


def test_a_step_done_again_without_an_llm_says_how_to_name_one(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    with serve_threaded(replies) as url:
        run_command_line(["ask", "Which site?", "--db", str(sites), "--llm", f"toy@{url}", "--trace", str(trace)])
    assert run_command_line(["trace", str(trace), "--edit", "1", "--db", str(sites), "--llm", "none"]) == 2
    assert "name one with --llm" in capsys.readouterr().err


def test_data_without_a_decision_model_and_no_llm_say_how_to_name_one(
    sites: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["ask", "Which site?", "--db", str(sites), "--llm", "none", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert "--llm MODEL" in told["error"] and "--model FILE.toml" in told["error"] and told["exit"] == 2


def replies(request: dict[str, Any]) -> str:
    if len(request["messages"]) and "oak" in request["messages"][-1]["content"]:
        return "Final answer: oak\nBecause: its rent is 700 [o1.r1]"
    query = "Action: sql\nAction input: SELECT * FROM site WHERE is_open = 0 AND rent > 500"
    return f"Plan: [Step 1: look at the rents, Step 2: take the lowest]\nCurrent step: Step 1\nThought: rents\n{query}"


def test_an_llm_plans_and_the_trace_tells_the_story(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "run.jsonl"
    with serve_threaded(replies) as url:
        code = run_command_line(
            ["ask", "Which site?", "--db", str(sites), "--llm", f"toy@{url}", "--trace", str(trace)]
        )
    said, how = capsys.readouterr()
    assert code == 0, said
    for part in ("Plan", "1. look at the rents", "SELECT * FROM site", "1 row"):
        assert part in how and part not in said, "the decision alone goes into a file"
    assert "Decision: oak" in said and "2 LLM calls to toy" in said and "Decision: oak" not in how
    assert run_command_line(["trace", str(trace)]) == 0
    story = capsys.readouterr().out
    for part in ("Which site?", "1. look at the rents", "Decision: oak", "[o1.r1]", "$0.0000"):
        assert part in story


def test_several_databases_are_named_by_their_files_or_by_the_person(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def renamed(request: dict[str, Any]) -> str:
        return replies(request).replace("Action: sql", "Action: rents")

    with closing(sqlite3.connect(tmp_path / "prices.db")) as database, database:
        database.execute("CREATE TABLE price (goods TEXT, euros REAL)")
    words = ["--db", str(tmp_path / "prices.db"), "--db", f"rents={sites}"]
    with serve_threaded(renamed) as url:
        assert run_command_line(["ask", "Which site?", *words, "--llm", f"toy@{url}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == "oak" and told["evidence"]["records"][0]["source"] == "rents"
    assert run_command_line(["ask", "Which site?", "--db", str(sites), "--db", str(sites), "--llm", "none"]) == 2
    assert "Two tools are called sites" in capsys.readouterr().err


def test_a_limit_is_exit_code_3(sites: Path) -> None:
    def never(request: dict[str, Any]) -> str:
        return "Plan: [Step 1: look]\nThought: x\nAction: sql\nAction input: SELECT 1 AS one"

    with serve_threaded(never) as url:
        assert run_command_line(["ask", "Which?", "--db", str(sites), "--llm", f"toy@{url}", "--calls", "3"]) == 3


@pytest.mark.slow
def test_an_llm_that_is_not_there_is_exit_code_1(sites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ask", "Which?", "--db", str(sites), "--llm", "toy@http://127.0.0.1:9/v1", "--seconds", "20"]
    assert run_command_line(words) == 1
    assert "The LLM failed" in capsys.readouterr().err


def test_doctor_judges_statements_without_running_them(
    sites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "statements.jsonl"
    path.write_text('{"id": "a", "statement": "SELECT 1"}\n{"id": "b", "statement": "DROP TABLE site"}\n')
    assert run_command_line(["doctor", "--db", str(sites), "--statements", str(path), "--json"]) == 0
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first == {"id": "a", "statement": "SELECT 1", "allowed": True, "reason": ""}
    assert not second["allowed"] and second["reason"]


def test_doctor_tests_the_llm_and_the_database(sites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve_threaded(lambda request: "ready") as url:
        assert run_command_line(["doctor", "--llm", f"toy@{url}", "--db", str(sites), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["llm_test"]["text"] == "ready"
    assert told["database"]["ok"] and "rent" in told["database"]["schema"]


def test_doctor_says_which_ways_of_calling_an_endpoint_has(capsys: pytest.CaptureFixture[str]) -> None:
    def reply(request: dict[str, Any]) -> str:
        return '{"city": "Lyon"}' if "response_format" in request else "Lyon"

    with serve_threaded(reply) as url:
        assert run_command_line(["doctor", "--llm", f"toy@{url}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("It takes" in line and "JSON schemas (calling=json)" in line for line in lines)
    assert any("It refuses" in line and "calls of functions (calling=tools)" in line for line in lines)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert run_command_line(["ask", "--help"]) == 0
    assert "--example" in capsys.readouterr().out
    assert run_command_line(["techniques"]) == 0
    assert "plan_rag" in capsys.readouterr().out


def test_output_into_a_pipe_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "--example", "trade", "--llm", "none"]) == 0
    said, how = capsys.readouterr()
    lines, first = said.splitlines(), how.splitlines()[0]
    assert len(first) > 100 and first.startswith("Question:") and first.endswith("be placed?")
    assert lines[-1].startswith("No LLM planned this") and lines[-1].endswith("ANTHROPIC_API_KEY.")


def test_the_bare_command_shows_its_help_and_a_misspelt_one_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([]) == 0
    assert "\n  ask  " in capsys.readouterr().out
    assert run_command_line(["aks"]) == 2
    assert capsys.readouterr().err == "decisor: No such command 'aks'. Did you mean 'ask'? See: decisor --help\n"
