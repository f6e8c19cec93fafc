"""A trace file that a crash cut off, at any byte."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.trace.events import Trace, line_of, read_trace
from decisor.types import Message


def test_a_trace_cut_at_any_byte_gives_the_events_that_were_whole(tmp_path: Path) -> None:
    trace = Trace()
    trace.add("lm", messages=[Message("user", 'ends in braces {"a": {}}')], texts=["größer ≥ 5 🏛"])
    trace.add("note", text="}", nested={"a": {"b": {}}})
    lines = [line_of(event).encode() for event in trace.events]
    path = tmp_path / "trace.jsonl"
    for cut in range(len(b"".join(lines)) + 1):
        path.write_bytes(b"".join(lines)[:cut])
        whole = (cut >= len(lines[0]) - 1) + (cut >= len(b"".join(lines)) - 1)
        assert [event.id for event in read_trace(path)] == [1, 2][:whole], cut


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
