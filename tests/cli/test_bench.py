"""decisor eval -b dqa: on worlds made here, and on the released data where they are at hand."""

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


def ran(capsys: pytest.CaptureFixture[str], tmp_path: Path, bench: str, *words: str) -> list[dict[str, Any]]:
    """The outcomes that ``eval --json`` printed."""
    capsys.readouterr()
    assert run_command_line(["eval", "-b", bench, *words, "--json", "--store", str(tmp_path / "run.db")]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def complaint(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> str:
    capsys.readouterr()
    assert run_command_line(["eval", *words]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("form", ["sql", "graph"])
def test_exact_answers_every_made_question_by_its_printed_rules(
    made: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran(capsys, tmp_path, f"dqa data={made} form={form}", "-t", "exact semantics=paper")
    assert len(found) == 8 and {one["state"] for one in found} == {"right"}
    assert all(one["metrics"]["ties"] == 1.0 and one["answer"] == one["gold"][0] for one in found)


def test_the_heuristic_runs_as_a_technique_on_a_database(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran(capsys, tmp_path, f"dqa data={made}", "-t", "heuristic", "--cases-at-once", "3")
    assert "failed" not in [one["stopped"] for one in found]
    assert all(one["counts"]["retrievals"] == 1 for one in found)
    assert all(one["failure"] for one in found if one["metrics"]["ties"] != 1.0)


def test_named_cases_are_run_alone_and_a_name_of_no_case_is_said(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran(capsys, tmp_path, f"dqa data={made}", "-t", "exact", "--ids", "building-2,locating-1")
    assert sorted(one["case"] for one in found) == ["building-2", "locating-1"]
    words = ["-b", f"dqa data={made}", "-t", "exact", "--ids", "war-1", "--store", str(tmp_path / "other.db")]
    assert "There is no case 'war-1' among 8 cases" in complaint(capsys, words)


@pytest.mark.parametrize(
    ("bench", "technique", "told"),
    [
        ("form=paper", "exact", "form is one of sql, graph"),
        ("scenario=war", "exact", "scenario is one of locating, building, both"),
        ("form=sql", "exact semantics=mine", "semantics is one of"),
        ("form=sql", "guess", "There is no technique 'guess'"),
        ("db=bolt://localhost", "exact", "not sql"),
    ],
)
def test_bad_input_is_one_line_that_says_what_is_there(
    made: Path, bench: str, technique: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-b", f"dqa data={made} {bench}", "-t", technique, "--store", str(tmp_path / "run.db")]
    error = complaint(capsys, words)
    assert told in error and error.count("\n") == 1


def test_a_folder_without_questions_says_how_to_make_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-b", f"dqa data={tmp_path}", "-t", "exact", "--store", str(tmp_path / "run.db")]
    assert "bench dqa generate" in complaint(capsys, words)


@pytest.mark.slow
@released
@pytest.mark.parametrize("form", ["sql", "graph"])
def test_exact_agrees_with_every_released_answer(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, tmp_path, f"dqa data={RELEASED} form={form}", "-t", "exact semantics=released")
    assert [one["case"] for one in found if one["state"] != "right"] == [] and len(found) > 100
