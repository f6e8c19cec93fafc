"""A trace file that a crash cut off, at any byte."""

import sqlite3
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.trace.events import ActionResult, LLMCall, Trace
from decisor.trace.file import format_trace_file, read_trace
from decisor.types import Message, Observation, Record


def test_a_trace_cut_at_any_byte_gives_the_events_that_were_whole(tmp_path: Path) -> None:
    trace = Trace()
    trace.add(LLMCall("m", [Message("user", 'ends in braces {"a": {}}')], ("größer ≥ 5 🏛",)))
    trace.add(ActionResult(1, Observation((Record("o1.r1", {"a": {"b": {}}}),))))
    data = format_trace_file(trace.entries).encode()
    ends = [at - 1 for at in accumulate(len(line) + 1 for line in data.split(b"\n")[:-1])]
    path = tmp_path / "trace.jsonl"
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        assert [entry.id for entry in read_trace(path)] == [1, 2][: sum(cut >= end for end in ends[1:])], cut


def test_a_broken_line_that_is_not_the_last_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"id": 1, "pare\n{}\n')
    with pytest.raises(SetupError, match="line 1"):
        read_trace(path)


def test_a_run_store_in_the_place_of_a_trace_is_told_apart(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        database.execute("CREATE TABLE outcome (id)")
    with pytest.raises(SetupError, match="decisor report"):
        read_trace(tmp_path / "run.db")
