"""Read and write trace files.

The first line is ``{"decisor_trace": 2}``; each line after it is one entry: ``id``, ``span``, ``at`` (seconds since the
run began), ``event`` (the name of its class) and ``data`` (its fields). The messages of an LLMCall are a list, or an
object that says what they add to those of an earlier entry and its turn.
A torn last line (power loss, kill -9) is skipped by the reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TextIO, TypeVar, Union, get_args

from decisor.errors import SetupError
from decisor.system.serialization import DocumentFormat, dataclass_values, json_text
from decisor.trace.events import Event, LLMCall, TraceEntry
from decisor.trace.prompts import PromptAddition, TracePrompt, build_message_row, with_turn
from decisor.types import Message

VERSION = 2
MARK = "decisor_trace"
HEADER = json.dumps({MARK: VERSION}) + "\n"
CLASSES: Mapping[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
N = TypeVar("N")
E = TypeVar("E")


def build_trace_row(entry: TraceEntry, whole: bool = False) -> Mapping[str, Any]:
    """Build the row of an entry. whole: the prompt of a call is whole too, not an addition to an earlier one."""
    event = entry.event
    data = dataclass_values(event)
    if isinstance(event, LLMCall):
        if isinstance(event.messages, TracePrompt) and not whole:
            data["messages"] = event.messages.as_addition()
        else:
            data["messages"] = [*map(build_message_row, event.messages)]
        if event.turn is None:
            del data["turn"]
        else:
            data["turn"] = build_message_row(event.turn)
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

    Give ``write`` to a trace as a listener. Of several entries the last is flushed. ``fault`` tells why the file ends
    early, as on a disk that is full.
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
            # The run may be paid for, so a full disk must not end it; who opened the file reads the fault.
            self.fault = error.strerror or str(error)

    def close(self) -> None:
        with suppress(OSError):  # told by the last write
            self.file.close()


@dataclass(frozen=True, slots=True)
class TraceLine(Generic[N, E]):
    """A line of a trace file."""

    id: int
    span: int
    at: float
    event: N
    data: E


@cache
def trace_line_format() -> DocumentFormat[TraceLine[str, Event]]:
    from pydantic import Field

    lines = tuple(TraceLine[Literal[name], kind] for name, kind in CLASSES.items())  # type: ignore[valid-type]
    return DocumentFormat(Annotated[Union[lines], Field(discriminator="event")])  # type: ignore[arg-type]  # noqa: UP007


Prompts = dict[int, Sequence[Message]]
"""Prompts of a trace by the number of their entry, for later ones that say only what they add."""


def read_entries(lines: Iterable[str | bytes], before: Prompts | None = None) -> Iterator[TraceEntry]:
    """Read entries from the lines of one trace, with every prompt whole. Lines of a run store have no first line.

    before: prompts of earlier lines, for a trace that is read in parts; it gets those of these lines.

    Raises:
        SetupError: if the trace is of another version.
        ValueError, LookupError: if a line is no entry, or builds on one that is not there.
    """
    decode = trace_line_format().decode
    prompts = {} if before is None else before
    for at, text in enumerate(lines):
        if not at and isinstance(head := json.loads(text), dict) and MARK in head:
            if head[MARK] != VERSION:
                raise SetupError(f"The trace has format {head[MARK]}; this Decisor reads format {VERSION}.")
            continue
        line = decode(text)
        event = line.data
        if isinstance(event, LLMCall):
            if isinstance(event.messages, PromptAddition):
                event = replace(event, messages=event.messages.extend(prompts))
            # A later prompt may be an addition to this one, so whole prompts are kept while a trace is read.
            prompts[line.id] = with_turn(event.messages, event.turn)
        yield TraceEntry(line.id, line.span, line.at, event)


def read_trace_text(text: str) -> list[TraceEntry]:
    """Read the text of a whole trace file. Raises the errors of ``read_entries``."""
    # Not splitlines: of a str it also splits at marks such as U+2028, which JSON need not escape.
    return list(read_entries(line for line in text.split("\n") if line))


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

    def numbered() -> Iterator[bytes]:
        nonlocal number
        for number, line in enumerate(lines, 1):  # noqa: B007 - for the complaint
            if line.strip():
                yield line

    try:
        for entry in read_entries(numbered()):
            entries.append(entry)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if lines[0].startswith(b"SQLite format 3"):
            raise SetupError(f"{path} is a database, not a trace. Is it a run store? decisor report {path}") from error
        if number < len(lines):  # without a newline it was torn by a crash while it was written
            raise SetupError(f"{path}, line {number}, is not a trace event. Is this a file of --trace?") from error
    return entries
