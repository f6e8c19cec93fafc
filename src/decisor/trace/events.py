"""What happened: append-only events with a parent. The file, the story, the page and the report all read these.

A trace file holds one JSON object a line: id, parent, kind, at (seconds since the run began), and the event's data.
The messages of a prompt are a list, or an object that says what they add to the prompt of an earlier event.
A torn last line (power loss, kill -9) is skipped by the reader.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from decisor.errors import SetupError
from decisor.trace.prompts import Prompt, Talk, retold
from decisor.types import Decision, Evidence, Figure, Message, Observation, Option, Ranking, Record, Replan

Kind = Literal["run", "span", "plan", "replan", "lm", "action", "observation", "decision", "note"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. ``parent`` is the id of the span it happened in; 0 is the run itself."""

    id: int
    parent: int
    kind: Kind
    at: float
    data: Mapping[str, Any]


def plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as what JSON can hold."""
    if isinstance(value, Prompt):
        return [{"role": message.role, "content": message.content} for message in value]
    if names := names_of(type(value)):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


NAMES: dict[type, tuple[str, ...]] = {}


def names_of(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; none of anything else."""
    if kind not in NAMES:
        names = tuple(one.name for one in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        NAMES[kind] = names
    return NAMES[kind]


def unfolded(value: Any) -> Any:
    """One level of ``plain``, for the encoder, which is fast at the rest; what else JSON cannot hold, as text."""
    if isinstance(value, Prompt):
        return list(value)
    if names := names_of(type(value)):
        return {name: getattr(value, name) for name in names}
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else str(value)


ENCODER = json.JSONEncoder(ensure_ascii=False, default=unfolded)


def to_json(value: Any) -> str:
    """As ``plain``, in one line. Text that is no valid Unicode is replaced: it could not be stored."""
    try:
        text = ENCODER.encode(value)
    except TypeError:  # a key that is no text
        text = ENCODER.encode(plain(value))
    return text.encode("utf-8", "replace").decode()


def events_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """From what the lines of one trace hold, with every prompt whole. Raises KeyError, TypeError or IndexError where
    one is no event, or builds on one that is not there."""
    prompts: dict[int, tuple[Message, ...]] = {}
    for row in rows:
        data = row["data"]
        if row["kind"] == "lm" and "messages" in data:
            whole = prompts[row["id"]] = retold(data["messages"], prompts)
            data = {**data, "messages": [{"role": one.role, "content": one.content} for one in whole]}
        yield Event(row["id"], row["parent"], row["kind"], row["at"], data)


def line_of(event: Event) -> str:
    messages = event.data.get("messages")
    data = {**event.data, "messages": messages.told()} if isinstance(messages, Prompt) else event.data
    row = {"id": event.id, "parent": event.parent, "kind": event.kind, "at": event.at, "data": data}
    return to_json(row) + "\n"


@dataclass(slots=True)
class Trace:
    """Events of one run. ``listeners`` are called with each new one; ``file`` gets a line each, flushed."""

    events: list[Event] = field(default_factory=list)
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    file: TextIO | None = None
    began: float = field(default_factory=time.monotonic)
    talk: Talk = field(default_factory=Talk)

    def add(self, kind: Kind, parent: int = 0, **data: Any) -> int:
        """Append and return the event's id (1, 2, ...)."""
        number = len(self.events) + 1
        if "messages" in data:
            data["messages"] = self.talk.prompt(data["messages"], parent, number)
        event = Event(number, parent, kind, round(time.monotonic() - self.began, 6), data)
        self.events.append(event)
        if self.file is not None:
            self.file.write(line_of(event))
            self.file.flush()
        for listener in self.listeners:
            listener(event)
        return event.id


def read_trace(path: Path) -> list[Event]:
    """The events of a trace file.

    Raises:
        SetupError: the file cannot be read or is not a trace.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SetupError(
            f"Cannot read the trace {path}: {error}. Make one with: decisor ask ... --trace FILE"
        ) from error
    number, events = 0, []

    def rows() -> Iterator[Any]:
        nonlocal number
        for number, line in enumerate(lines, 1):  # noqa: B007 - for the complaint
            if line.strip():
                yield json.loads(line)

    try:
        for event in events_of(rows()):
            events.append(event)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if lines[0].startswith(b"SQLite format 3"):
            raise SetupError(f"{path} is a database, not a trace. Is it a run store? decisor report {path}") from error
        if number < len(lines):  # without a newline it was torn by a crash while it was written
            raise SetupError(f"{path}, line {number}, is not a trace event. Is this a file of --trace?") from error
    return events


def decision_of(data: Mapping[str, Any]) -> Decision:
    """A decision as a trace holds it."""
    evidence = data["evidence"]
    figures = tuple(Figure(**figure) for figure in evidence["figures"])
    replans = tuple(Replan(**{**change, "plan": tuple(change["plan"])}) for change in data.get("replans", ()))
    return Decision(
        data["answer"],
        Evidence(tuple(evidence["ids"]), figures),
        ranking_of(data["ranking"]),
        plan=tuple(data["plan"]),
        replans=replans,
        reasons=tuple(data["reasons"]),
        stopped=data["stopped"],
    )


def observation_of(data: Mapping[str, Any]) -> Observation:
    """An observation as a trace holds it."""
    records = tuple(Record(**record) for record in data["records"])
    return Observation(**{**data, "records": records, "ranking": ranking_of(data["ranking"])})


def ranking_of(data: Mapping[str, Any] | None) -> Ranking | None:
    if data is None:
        return None
    options = tuple(Option(option["name"], option["outcome"]) for option in data["options"])
    return Ranking(**{**data, "options": options, "ties": tuple(data["ties"])})
