"""decisor ask and decisor trace --edit with a reasoning DAG over a database, through the command."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from decisor.types import Message
from servers.openai_server import serve_threaded
from techniques.documents import Policy, part_of

PLAN = json.dumps(
    {
        "nodes": [
            {"id": "1.1", "ask": "Which site has the lowest rent?", "needs": [], "source": "sql"},
            {"id": "2.1", "ask": "What is the rent of <A1.1>?", "needs": ["1.1"], "source": "sql"},
        ]
    }
)
DAG = ("-t", "reasoning_dag", "-o", "calling=text")


def write(prompt: str) -> str:
    asked = part_of(prompt, "Question")
    if asked.startswith("Which"):
        return "Query: select name from site order by rent limit 1"
    return f"Query: select rent from site where name = '{asked.removeprefix('What is the rent of ').rstrip('?')}'"


def say(prompt: str) -> str:
    return f"Answer: {part_of(prompt, 'Documents').split()[-1]}\nQuote: none"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    database, trace = tmp_path / "sites.db", tmp_path / "run.jsonl"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("ash", 900.5), ("oak", 700.5), ("elm", 400.5)])
    with serve_threaded(play(Policy(PLAN, {"query writer": write, "generator": say}))) as url:
        words = ["ask", "What does the cheapest site cost?", "--db", str(database), *DAG]
        assert run_command_line([*words, "--llm", f"m@{url}", "--trace", str(trace), "--json"]) == 0
    return database, trace


def play(policy: Policy) -> Any:
    return lambda body: policy([Message(one["role"], one["content"]) for one in body["messages"]])


def test_a_story_shows_each_node_its_answer_and_where_it_stands(
    recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_command_line(["trace", str(recorded[1])]) == 0
    said = capsys.readouterr().out
    for part in (
        "Q2.1: What is the rent of <A1.1>?",
        " Q1.1     -> elm [o1.r1]",
        "“400.5”",
        "Decision: 400.5",
        "The answer stands in [o2.r1].",
    ):
        assert part in said
    assert "— query writer" not in said
    assert run_command_line(["trace", str(recorded[1]), "--full"]) == 0
    assert "— query writer" in capsys.readouterr().out


def test_an_edit_shows_both_runs_side_by_side_and_asks_only_what_it_must(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, trace = recorded
    policy = Policy(PLAN, {"query writer": write, "generator": say})
    capsys.readouterr()
    with serve_threaded(play(policy)) as url:
        words = ["trace", str(trace), "--edit", "1.1", "--answer", "oak", "--llm", f"m@{url}", "--db", str(database)]
        assert run_command_line([*words, "--out", str(tmp_path / "new.jsonl")]) == 0
        said = capsys.readouterr().out
        assert [role for role, _ in policy.prompts] == ["query writer", "generator"]
        assert run_command_line([*words, "--json"]) == 0
    for part in ("before", "after", "-> elm [o1.r1]", "-> oak (manual)", "400.5", "700.5", "2 LLM calls, 1 action"):
        assert part in said
    told = json.loads(capsys.readouterr().out)
    assert (told["before"]["answer"], told["after"]["answer"]) == ("400.5", "700.5")
    assert [change["how"] for change in told["changes"]] == ["edited", "again"]
    assert run_command_line(["trace", str(tmp_path / "new.jsonl")]) == 0
    assert "oak (manual)" in capsys.readouterr().out


def test_an_edit_has_limits_of_its_own(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, trace = recorded
    policy = Policy(PLAN, {"query writer": write, "generator": say})
    capsys.readouterr()
    with serve_threaded(play(policy)) as url:
        words = ["trace", str(trace), "--edit", "1.1", "--answer", "oak", "--llm", f"m@{url}", "--db", str(database)]
        run_command_line([*words, "--tokens", "20", "--json"])
        assert not policy.prompts
    assert "The limit of 20 tokens is reached" in capsys.readouterr().out
    assert run_command_line(["trace", str(trace), "--calls", "3"]) == 2


def test_what_an_edit_lacks_is_said_in_a_line(recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(recorded[1])
    capsys.readouterr()
    for words, complaint in (
        (["--answer", "x"], "--edit Q2.1"),
        (["--edit", "9", "--answer", "x", "--llm", "none"], "There is no node 9; there is Q1.1, Q2.1."),
        (["--edit", "1.1", "--db", str(recorded[0]), "--llm", "none"], "name one with --llm"),
        (["--out", "new.jsonl"], "--out needs --edit"),
        (["--edit", "1.1"], "the tool sql is needed: name its data again, with --db."),
    ):
        assert run_command_line(["trace", trace, *words]) != 0
        assert complaint.lower() in capsys.readouterr().err.lower()


def test_documents_and_a_database_serve_one_plan_from_the_command_and_again_after_an_edit(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, trace = tmp_path / "notes", tmp_path / "mixed.jsonl"
    folder.mkdir()
    (folder / "move.txt").write_text("The team of Ada moved to the site oak in May. The team of Bo moved to elm.")
    plan = json.dumps(
        {
            "nodes": [
                {"id": "1.1", "ask": "To which site did the team of Ada move?", "needs": [], "source": "passages"},
                {"id": "2.1", "ask": "What is the rent of <A1.1>?", "needs": ["1.1"], "source": "sql"},
            ]
        }
    )

    def moved(prompt: str) -> str:
        if "rent" in part_of(prompt, "Question"):
            return say(prompt)
        where = "oak" if "Ada" in part_of(prompt, "Question") else "elm"
        return f"Answer: {where if 'moved' in part_of(prompt, 'Documents') else 'unknown'}"

    policy = Policy(plan, {"query writer": write, "generator": moved, "relevance": lambda prompt: "[1]"})
    data = ["--db", str(recorded[0]), "--docs", str(folder)]
    with serve_threaded(play(policy)) as url:
        words = ["ask", "What does Ada's team pay?", *data, *DAG, "--llm", f"m@{url}"]
        assert run_command_line([*words, "--trace", str(trace)]) == 0
        assert "Decision: 700.5" in capsys.readouterr().out
        edit = ["--edit", "1.1", "--ask", "To which site did the team of Bo move?"]
        assert run_command_line(["trace", str(trace), *edit, "--llm", f"m@{url}", *data, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["before"]["answer"], told["after"]["answer"]) == ("700.5", "400.5")
    assert len([role for role, _ in policy.prompts if role == "planner"]) == 1


def test_where_nothing_changes_neither_data_nor_an_llm_are_needed(
    recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run_command_line(["trace", str(recorded[1]), "--edit", "Q1.1", "--answer", "Elm.", "--llm", "none"]) == 0
    assert "0 LLM calls, 0 actions" in capsys.readouterr().out


@pytest.mark.slow
def test_an_expert_has_an_llm_of_its_own_and_when_a_node_is_edited_only_where_it_is_named_again(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, trace = recorded[0], tmp_path / "other.jsonl"
    main, small = (Policy(PLAN, {"query writer": write, "generator": say}) for _ in range(2))
    ask = ["ask", "What does the cheapest site cost?", "--db", str(database), *DAG]
    with serve_threaded(play(main)) as url, serve_threaded(play(small)) as other:
        parts = ["-o", f"writer_llm=small@{other}", "-o", f"aggregator_llm=small@{other}", "-o", "aggregator=always"]
        assert run_command_line([*ask, *parts, "--llm", f"m@{url}", "--trace", str(trace)]) == 0
        assert [role for role, _ in small.prompts] == ["query writer", "query writer", "aggregator"]
        assert [role for role, _ in main.prompts] == ["planner", "generator", "generator"]
        capsys.readouterr()
        edit = ["--edit", "1.1", "--answer", "oak", "--db", str(database), "--llm", f"m@{url}"]
        assert run_command_line(["trace", str(trace), *edit]) == 2
        assert "names an LLM for the writer, small@http" in capsys.readouterr().err and len(small.prompts) == 3
        named = ["-o", f"writer_llm=small@{other}", "-o", f"aggregator_llm=small@{other}"]
        assert run_command_line(["trace", str(trace), *edit, *named]) == 0
        assert [role for role, _ in small.prompts[3:]] == ["query writer", "aggregator"]
    assert "3 LLM calls, 1 action" in capsys.readouterr().out
    for wrong, complaint in (
        ("writer_llm=none", "writer_llm takes MODEL or MODEL@URL"),
        ("judge_llm=x", "no judge_llm"),
    ):
        assert run_command_line([*ask, "-o", wrong, "--llm", "m@http://127.0.0.1:9/v1"]) == 2
        assert complaint in capsys.readouterr().err


def test_a_run_with_masked_columns_goes_on_only_where_columns_are_masked_again(
    recorded: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, trace = recorded[0], tmp_path / "masked.jsonl"
    with serve_threaded(play(Policy(PLAN, {"query writer": write, "generator": say}))) as url:
        words = ["ask", "What does the cheapest site cost?", "--db", str(database), *DAG, "--mask", "site.name"]
        run_command_line([*words, "--llm", f"m@{url}", "--trace", str(trace), "--json"])
        assert "elm" not in trace.read_text() and "masked_" in trace.read_text()
        again = ["trace", str(trace), "--edit", "Q1.1", "--answer", "elm", "--db", str(database), "--llm", f"m@{url}"]
        capsys.readouterr()
        assert run_command_line([*again, "-o", "calling=text"]) == 2
        assert "--mask TABLE.COLUMN" in capsys.readouterr().err
        run_command_line([*again, "-o", "calling=text", "--mask", "site.name"])
        assert "--mask TABLE.COLUMN" not in capsys.readouterr().err
