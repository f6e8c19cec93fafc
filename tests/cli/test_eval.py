"""decisor eval: flags, suites in TOML, and what it says where something is wrong."""

import json
import re
import socket
import sys
from pathlib import Path

import pytest

from decisor.cli import run_command_line
from decisor.lab.benchmark import Outcome, State
from decisor.lab.cli import evaluate
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.suite import format_suite_table
from decisor.types import Usage
from evaluation.small import model
from servers.openai_server import serve_threaded


def test_flags_run_and_the_same_command_has_nothing_left_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []
    with serve_threaded(lambda request: asked.append(1) or model(request)) as url:  # type: ignore[func-returns-value]
        words = [
            "eval",
            "-b",
            "small",
            "-t",
            "plan_rag",
            "-t",
            "plan_rag replan=no max_steps=15",
            "--repeats",
            "2",
            "--llm",
            f"m@{url} price=1,2",
            "--store",
            str(tmp_path / "run.db"),
            "--limit-cases",
            "3",
        ]
        assert run_command_line(words) == 0
        first, calls = capsys.readouterr(), len(asked)
        assert run_command_line(words) == 0
        assert capsys.readouterr().out == first.out and len(asked) == calls
    lines = first.out.splitlines()
    assert [line.split()[:7] for line in lines[1:]] == [
        ["small", "plan_rag", "m", "3", "4", "2", "0"],
        ["small", "plan_rag", "replan=no", "m", "3", "4", "2"],
    ]
    assert "12 of 12 cases" in first.err


def test_a_suite_in_toml_is_run_and_flags_go_before_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve_threaded(model) as url:
        (tmp_path / "suite.toml").write_text(
            f'store = "kept.db"\nbenches = ["small"]\ntechniques = ["iter_rag max_steps=3"]\nmodels = ["m@{url}"]\n'
            "cases_at_once = 2\nrepeats = 2\n\n[limits]\ncalls = 9\n"
        )
        assert run_command_line(["eval", str(tmp_path / "suite.toml"), "--repeats", "1", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["case"], row["technique"], row["state"]) for row in rows] == [
        ("c0", "iter_rag max_steps=3", "right"),
        ("c1", "iter_rag max_steps=3", "right"),
        ("c2", "iter_rag max_steps=3", "wrong"),
        ("c3", "iter_rag max_steps=3", "right"),
    ]
    assert (tmp_path / "kept.db").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-t", "exact"], "Name a benchmark"),
        (["-b", "chess", "-t", "exact"], "There is no benchmark 'chess'; there is"),
        (["-b", "small many=no", "-t", "exact"], "many is a number"),
        (
            ["-b", "small", "-t", "exact", "--again", "bad"],
            "--again is one of right, wrong, over_budget, unscored, crashed",
        ),
        (["-b", "small", "-t", "plan_rag steps=3"], "plan_rag has no steps"),
        (["-b", "small", "-t", "plan_rag", "--llm", "none"], "No LLM for plan_rag"),
        (["-b", "small 'many"], "no name with settings"),
        (["missing.toml"], "missing.toml cannot be read: No such file"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["eval", *words]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bench = []", "line 1: bench is not known here; there is store, benches"),
        ("[limits]\ncall = 3", "line 2: limits.call is not known here; there is calls"),
        ("repeats = -1", "line 1: repeats is to be at least 0, not -1"),
        ("seed = true", "line 1: seed is to be a whole number, not true"),
        ("limits = 3", "line 1: limits is to be a table, not 3"),
        ("[limits]\ncalls = -1", "line 2: limits.calls is to be at least 0, not -1"),
        ("store = [", "line 1: this is not TOML"),
    ],
)
def test_a_suite_with_a_mistake_is_told_where_it_is(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text)
    assert run_command_line(["eval", str(path)]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_a_dead_endpoint_is_told_of_and_stops_the_run_after_the_patience(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # nobody listens there afterwards
        port = taken.getsockname()[1]
    words = [
        "eval",
        "-b",
        "small many=500",
        "-t",
        "plan_rag",
        "--llm",
        f"m@http://127.0.0.1:{port}/v1",
        "--store",
        str(tmp_path / "run.db"),
        "--patience",
        "2",
    ]
    assert run_command_line(words) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"decisor: m does not answer; the run waits for it, 2 s at most: 127.0.0.1:{port}")
    assert "m has not answered for 2 s, so the run stops" in lines[-1] and "--again crashed" in lines[-1]


@pytest.mark.parametrize("state", ["right", "wrong", "unscored", "over_budget", "crashed"])
def test_outcomes_of_every_state_can_be_run_again(
    state: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.db"
    with serve_threaded(model) as url:
        words = ["eval", "-b", "small many=1", "-t", "plan_rag", "--llm", f"m@{url}", "--store", str(path)]
        store = open_store(path)
        store.finish(Outcome("small many=1", "c0", "plan_rag", "m", 0, state, text="as it was"), [])
        store.close()
        for again, text in ([], "as it was"), (["--again", state], "bel"):
            assert run_command_line([*words, *again, "--json"]) == 0
            (row,) = map(json.loads, capsys.readouterr().out.splitlines())
            assert row["text"] == text


def test_benchmarks_are_listed_with_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["bench", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    settings = {one["name"]: one["default"] for one in rows["dqa"]["settings"]}
    assert settings == {
        "data": "...",
        "scenario": "both",
        "form": "sql",
        "limit": None,
        "db": "",
        "tools": "database",
        "schema": "described",
        "fresh": False,
    }


def test_a_report_of_crashed_cases_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome("b", "1", "rag", "m", 0, "crashed", reasons=("The endpoint cannot be reached.",))
    store = open_store(tmp_path / "run.db")
    store.begin({"suite": "s"})
    store.finish(outcome, [])
    store.close()
    assert run_command_line(["report", str(tmp_path / "run.db")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "The endpoint cannot be reached." in told and "--again crashed" in told


def test_the_table_and_the_report_say_the_same_of_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three tries at each of 20 cases are no 60 cases: the interval is over cases in both."""
    path = str(tmp_path / "new" / "folder" / "run.db")
    store = open_store(path)
    for case in range(20):
        for repeat in range(3):
            state: State = "right" if case < 8 or (case < 12 and repeat) else "wrong"
            store.finish(Outcome("b", f"c{case:02}", "rag", "m", repeat, state, usage=Usage(calls=2)), [])
    told = format_suite_table(store.outcomes()).splitlines()[1].split()
    store.close()
    assert run_command_line(["report", path, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["benchmarks"][0]["rows"]
    within = row["interval"]
    assert told[3:6] == ["20", "32", "28"] and row["cases"] == 20
    assert told[9] == f"{100 * row['accuracy']:.1f}" == "53.3"
    assert told[10] == f"{100 * within['low']:.1f}-{100 * within['high']:.1f}"
    assert within["high"] - within["low"] > 0.38, "60 independent answers would give 0.25"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run_command_line(["eval", "-b", "small", "-t", "exact", "--store", str(tmp_path / "file" / "run.db")]) == 2
    assert "The folder of the run store" in capsys.readouterr().err


def test_a_terminal_shows_a_row_for_each_technique_with_its_cost_and_elsewhere_there_are_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_threaded(model) as url:
        words = ["eval", "-b", "small", "-t", "plan_rag", "-t", "iter_rag max_steps=3", "--llm", f"m@{url} price=1,2"]
        monkeypatch.setattr(evaluate, "LINE_SECONDS", 0.0)
        assert run_command_line([*words, "--store", str(tmp_path / "lines.db")]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert re.fullmatch(r"decisor: 8 of 8 cases, 75\.0 % right, \$0\.\d\d", lines[-2])
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.delenv("NO_COLOR")
        assert run_command_line([*words, "--store", str(tmp_path / "table.db")]) == 0
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
    for row in ("small, plan_rag, m", "small, iter_rag max_steps=3, m", "all"):
        assert re.search(rf"{re.escape(row)} .*4/4 75\.0 % right, \$0\.\d\d|all .*8/8 75\.0 % right", shown), row
