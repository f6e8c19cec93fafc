"""decisor bench dqa: on worlds made here, and on the released data where they are at hand."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line

RELEASED = Path(os.environ.get("DECISOR_DATA", Path(__file__).parents[3] / "shared" / "data")) / "dqa"
released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released questions are not here (set DECISOR_DATA)")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world of each scenario with a few questions."""
    folder = tmp_path_factory.mktemp("dqa")
    for scenario in ("locating", "building"):
        words = ["--scenario", scenario, "--size", "small", "--seed", "3", "--questions", "4", "--out", str(folder)]
        assert run_command_line(["bench", "dqa", "generate", *words]) == 0
    return folder


def ran(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    """What ``bench dqa run --json`` printed: one object, and nothing else."""
    capsys.readouterr()
    assert run_command_line(["bench", "dqa", "run", "--json", *map(str, words)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def complaint(capsys: pytest.CaptureFixture[str], words: Sequence[str | Path]) -> str:
    capsys.readouterr()
    assert run_command_line(["bench", "dqa", "run", *map(str, words)]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("form", ["sql", "graph"])
def test_exact_answers_every_made_question_by_its_printed_rules(
    made: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran(capsys, "--data", made, "--technique", "exact", "-o", "semantics=paper", "--form", form)
    assert (found["accuracy"], found["tie_accuracy"], found["asked"]) == (1.0, 1.0, 8)
    first = found["questions"][0]
    assert first["scenario"] == "locating" and first["question_num"] == 1
    assert first["answer"] == first["gold"] and first["right"] and first["tie_right"] and first["stopped"] == "answered"
    assert found["seconds"] > 0


def test_the_heuristic_runs_as_a_technique_on_a_database(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "--data", made, "--technique", "heuristic", "--at-once", "3")
    assert [row["stopped"] for row in found["questions"]].count("failed") == 0
    assert all(row["retrieved"] == "once" for row in found["questions"])
    assert all(row["failure"] for row in found["questions"] if not row["tie_right"])


def test_the_table_stands_beside_the_published_figures(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", str(made), "-t", "exact", "--scenario", "building", "--limit", "2"]
    assert run_command_line(["bench", "dqa", "run", *words]) == 0
    shown = capsys.readouterr().out
    assert "published" in shown and "PlanRAG paper (NAACL 2024), GPT-4" in shown and "40.6" in shown
    assert "locating" not in shown


def test_the_statistics_count_rows_beside_the_papers(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["bench", "dqa", "statistics", "--data", str(made)]) == 0
    shown = capsys.readouterr().out
    assert "| locating | 4 | 1 |" in shown and "2038.8" in shown and "| building, supply |" in shown


def test_a_trace_of_each_question_is_kept_where_asked(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, "--data", made, "-t", "exact", "--limit", "1", "--traces", tmp_path / "traces")
    names = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert names == ["building-1-sql.jsonl", "locating-1-sql.jsonl"]
    assert '"event": "Conclusion"' in (tmp_path / "traces" / names[0]).read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--technique", "exact", "--form", "paper"], "form is one of sql, graph"),
        (["--technique", "exact", "--scenario", "war"], "scenario is one of locating, building, both"),
        (["--technique", "exact", "-o", "semantics"], "A setting is name=value"),
        (["--technique", "exact", "-o", "semantics=mine"], "semantics is one of"),
        (["--technique", "guess"], "There is no technique 'guess'"),
        (["--technique", "exact", "--db", "bolt://localhost"], "not sql"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_there(
    made: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = complaint(capsys, ["--data", made, *words])
    assert told in error and error.count("\n") == 1


def test_a_folder_without_questions_says_how_to_make_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "bench dqa generate" in complaint(capsys, ["--data", tmp_path, "-t", "exact"])


@pytest.mark.slow
@released
@pytest.mark.parametrize("form", ["sql", "graph"])
def test_exact_agrees_with_every_released_answer(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "--data", RELEASED, "-t", "exact", "-o", "semantics=released", "--form", form)
    wrong = [(row["scenario"], row["question_num"]) for row in found["questions"] if not row["right"]]
    assert not wrong
    assert found["asked"] > 100
