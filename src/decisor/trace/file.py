"""Read and write trace files.

The first line is ``{"decisor_trace": 2}``; each line after it is one entry: ``id``, ``span``, ``at`` (seconds since the
run began), ``event`` (the name of its class) and ``data`` (its fields). The messages of an LMCall are a list, or an
object that says what they add to those of an earlier entry.
A torn last line (power loss, kill -9) is skipped by the reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, get_args

from decisor.errors import SetupError
from decisor.system.serialization import build_decoder, dataclass_values, json_text
from decisor.trace.events import Event, LMCall, TraceEntry
from decisor.trace.prompts import TracePrompt, read_prompt_messages
from decisor.types import Message

VERSION = 2
MARK = "decisor_trace"
HEADER = json.dumps({MARK: VERSION}) + "\n"
CLASSES: Mapping[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
TraceLine = Mapping[str, Any]


def build_trace_row(entry: TraceEntry, whole: bool = False) -> TraceLine:
    """Build the row of an entry. whole: the prompt of a call is whole too, not an addition to an earlier one."""
    event = entry.event
    data = dataclass_values(event)
    if isinstance(event, LMCall) and isinstance(event.messages, TracePrompt):
        data["messages"] = list(event.messages) if whole else event.messages.as_addition()
    return {"id": entry.id, "span": entry.span, "at": entry.at, "event": type(event).__name__, "data": data}


def format_trace_line(entry: TraceEntry) -> str:
    return json_text(build_trace_row(entry)) + "\n"


def format_trace_file(entries: Iterable[TraceEntry]) -> str:
    """Format a whole trace file."""
    return HEADER + "".join(map(format_trace_line, entries))


def format_trace_array(entries: Sequence[TraceEntry]) -> str:
    """Format all entries as one JSON array, every prompt whole."""
    return json_text([build_trace_row(entry, whole=True) for entry in entries])


class TraceFile:
    """A file that gets each entry as it happens, flushed.

    Give ``write`` to a trace as a listener. Of several entries the last is flushed.

    ``fault``: why the file ends early, as on a disk that is full; the run goes on, for it may be paid for.
    """

    def __init__(self, file: TextIO) -> None:
        """Write the first line; raise OSError if nothing can be written from the start."""
        self.file, self.fault = file, ""
        self.file.write(HEADER)
        self.file.flush()

    def write(self, *entries: TraceEntry) -> None:
        if self.fault:
            return
        try:
            self.file.write("".join(map(format_trace_line, entries)))
            self.file.flush()
        except OSError as error:
            self.fault = error.strerror or str(error)


def read_entries(rows: Iterable[Any]) -> Iterator[TraceEntry]:
    """Read entries from the parsed lines of one trace, with every prompt whole. Rows of a run store have no first line.

    Raises:
        SetupError: if the trace is of another version.
        ValueError, LookupError, TypeError: if a row is no entry, or builds on one that is not there.
    """
    prompts: dict[int, tuple[Message, ...]] = {}
    for at, row in enumerate(rows):
        if not at and MARK in row:
            if row[MARK] != VERSION:
                raise SetupError(f"The trace has format {row[MARK]}; this Decisor reads format {VERSION}.")
            continue
        data = row["data"]
        if row["event"] == LMCall.__name__:
            whole = prompts[row["id"]] = read_prompt_messages(data["messages"], prompts)
            data = {**data, "messages": [{"role": one.role, "content": one.content} for one in whole]}
        yield build_trace_entry(row, build_decoder(CLASSES[row["event"]])(data))


def build_trace_entry(row: TraceLine, event: Event) -> TraceEntry:
    id, span, at = row["id"], row["span"], row["at"]
    if type(id) is not int or type(span) is not int or type(at) not in (int, float):
        raise TypeError("an entry has whole numbers for id and span, and a number for at")
    return TraceEntry(id, span, float(at), event)


def read_trace_text(text: str) -> list[TraceEntry]:
    """Read the text of a whole trace file. Raises the errors of ``read_entries``."""
    return list(read_entries(json.loads(line) for line in text.split("\n") if line))


def read_trace(path: Path) -> list[TraceEntry]:
    """Read the entries of a trace file.

    Raises:
        SetupError: the file cannot be read or is not a trace.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SetupError(
            f"Cannot read the trace {path}: {error.strerror or error}. Make one with: decisor ask ... --trace FILE"
        ) from error
    number, entries = 0, []

    def rows() -> Iterator[Any]:
        nonlocal number
        for number, line in enumerate(lines, 1):  # noqa: B007 - for the complaint
            if line.strip():
                yield json.loads(line)

    try:
        for entry in read_entries(rows()):
            entries.append(entry)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if lines[0].startswith(b"SQLite format 3"):
            raise SetupError(f"{path} is a database, not a trace. Is it a run store? decisor report {path}") from error
        if number < len(lines):  # without a newline it was torn by a crash while it was written
            raise SetupError(f"{path}, line {number}, is not a trace event. Is this a file of --trace?") from error
    return entries
