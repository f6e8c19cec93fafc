"""Saved traces, of six kinds of run: they open, tell the story beside them, and can be gone on from."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from decisor.errors import SetupError
from decisor.lab.evaluation.case_run import critical_seconds, find_trace_marks
from decisor.techniques.replay.recorded_run import read_recorded_run
from decisor.trace.events import LLMCall, Note, RunStart, events_of
from decisor.trace.file import HEADER, format_trace_file, read_trace, read_trace_text
from decisor.views.transcript import tell_story

DATA = Path(__file__).parent / "data"
TRACES = sorted(DATA.glob("*.jsonl"))


def test_the_saved_traces_are_all_here() -> None:
    names = [path.stem for path in TRACES]
    assert names == ["exact", "plan_rag", "problems", "reasoning_dag", "rerun", "search"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_saved_trace_tells_the_story_that_it_told(path: Path) -> None:
    screen = io.StringIO()
    tell_story(read_trace(path), Console(file=screen, width=160, highlight=False))
    assert screen.getvalue() == path.with_suffix(".txt").read_text()


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_saved_trace_is_the_same_written_anew(path: Path) -> None:
    entries = read_trace(path)
    text = format_trace_file(entries)
    assert text.startswith(HEADER) and read_trace_text(text) == entries
    assert not [*events_of(entries, Note)], "each note of then has a class"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_saved_trace_has_every_prompt_whole(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [*events_of(read_trace(path), LLMCall)]
    assert len(calls) == sum(line.get("event") == "LMCall" for line in lines)
    assert all(call.messages and call.messages[-1].role == "user" for call in calls)


def test_a_saved_run_can_be_gone_on_from() -> None:
    past = read_recorded_run(read_trace(DATA / "reasoning_dag.jsonl"))
    assert past.plan is not None and len(past.plan.parts) == len(past.answers) == 5
    assert past.decision is not None and past.decision.answer == "0.002643"
    steps = read_recorded_run(read_trace(DATA / "plan_rag.jsonl"))
    assert (steps.technique, len(steps.steps), len(steps.calls)) == ("plan_rag", 2, 4)


def test_what_an_evaluation_reads_of_a_saved_trace_is_what_it_read() -> None:
    entries = read_trace(DATA / "problems.jsonl")
    assert find_trace_marks(entries) == ("unread_reply",)
    assert critical_seconds(entries) > 0
    (start,) = events_of(entries, RunStart)
    assert (start.benchmark, start.case) == ("small many=4", "c1")


def test_a_trace_of_a_later_format_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"decisor_trace": 3}\n{"id": 1}\n')
    with pytest.raises(SetupError, match="format 3"):
        read_trace(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1, "span": 0, "event": "Poem", "at": 0, "data": {}}',
        "[]",
        "7",
        '{"id": 1}',
        "null",
        '{"id": 1, "span": 0, "event": "ActionStart", "at": 0, "data": {"tool": {"a": 1}, "input": ""}}',
        '{"id": "1", "span": 0, "event": "ActionStart", "at": 0, "data": {"tool": "sql", "input": ""}}',
        '{"id": 1, "span": 0, "event": "Note", "at": 0, "data": {"text": 3}}',
        '{"id": 1, "span": 0, "event": "RunStart", "at": 0, "data": {"question": {"text": "x"}, "settings": 3}}',
        '{"id": 1, "parent": 0, "kind": "action", "at": 0, "data": {"tool": "sql", "input": ""}}',
    ],
)
def test_a_line_that_is_no_entry_is_refused_in_a_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(f"{line}\n\n")
    with pytest.raises(SetupError, match="line 1, is not a trace event"):
        read_trace(path)
