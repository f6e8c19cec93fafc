"""The run store: finished cases with their traces, who works on which case, and every reply that was bought.

A store is synchronous and belongs to one thread at a time; ``writer.Writer`` puts one behind an event loop. What a
method has returned from is on disk: it survives kill -9 and power loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any, Protocol, get_args

from decisor.errors import SetupError
from decisor.outcome import Outcome, State
from decisor.trace.events import Entry
from decisor.types import Completion, Token, Usage, Value

Key = tuple[str, str, str, str, int]
"""Benchmark, case, technique, model, repeat: see ``Outcome.key``."""


class StoreError(SetupError):
    """The store cannot be read or written. Nothing that it acknowledged is lost."""


@dataclass(frozen=True, slots=True)
class Task:
    """A case that is to be run. ``content``: a hash of question and gold, so that changed data are noticed."""

    key: Key
    content: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A case that this process works on. Its outcome is accepted only while ``fence`` is the current one."""

    key: Key
    fence: int


class Store(Protocol):
    """Where a run is kept. Order is by sequence number or by key, never by time."""

    def about(self) -> Mapping[str, Value]:
        """The settings of the suite; empty before the first run."""
        ...

    def begin(self, about: Mapping[str, Value]) -> None:
        """Keep the settings. Raises SetupError where the store was begun with others."""
        ...

    def plan(self, tasks: Sequence[Task]) -> None:
        """Add what is not there yet; ``claim`` and ``left`` are about what this process planned.

        Raises:
            SetupError: the content of a case changed.
        """
        ...

    def claim(self) -> Claim | None:
        """The next case that is neither finished nor held by a living process; None where there is none."""
        ...

    def left(self) -> int:
        """How many of the planned cases are not finished, those that others work on too."""
        ...

    def leave_out(self, benchmark: str, technique: str) -> int:
        """Take what is not finished of these out of what this process planned; how many cases."""
        ...

    def release(self) -> None:
        """Give back every case that this process holds."""
        ...

    def finish(self, outcome: Outcome, entries: Sequence[Entry], fence: int | None = None) -> bool:
        """Keep an outcome with its trace, in one transaction. False, keeping nothing, where it is finished already or
        ``fence`` is no longer current: another process took the case over."""
        ...

    def reopen(self, states: Sequence[str]) -> int:
        """Forget the outcomes in these states, so that they are run again; how many."""
        ...

    def outcomes(self) -> list[Outcome]:
        """Every finished case, by its key."""
        ...

    def each_outcome(self) -> Iterator[Outcome]:
        """The same without holding them all."""
        ...

    def trace(self, key: Key) -> list[Entry]:
        """The entries of a finished case; empty where it is not finished."""
        ...

    def reply(self, key: str) -> Completion | None:
        """The first reply kept for a request that can be used again."""
        ...

    def keys_since(self, seq: int) -> tuple[int, list[str]] | None:
        """The keys of usable replies that were kept after number ``seq`` (0: all), and the number of the latest reply.
        None where one with a lower number may still come to light."""
        ...

    def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        """Book a bought reply. Returns the one that counts: an earlier usable one, where there is one."""
        ...

    def spent(self) -> Usage:
        """What all bought replies cost together."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """What is done inside is kept together or not at all."""
        ...

    def interrupt(self) -> None:
        """End, from any thread, what waits for a server that gives no sign: it and all that follows is a StoreError."""
        ...

    def close(self) -> None: ...


def outcome_of(text: str) -> Outcome:
    """Raises ValueError, TypeError or LookupError where that is none.

    >>> from decisor.encoding import json_text
    >>> outcome_of(json_text(Outcome("dqa", "c1", "exact", "", 0, "right", snapshots={30: True}))).snapshots
    {30: True}
    """
    row = json.loads(text)
    names = {field.name for field in fields(Outcome)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name in names
    }
    values["usage"] = usage_of(row["usage"])
    values["beside"] = {name: usage_of(usage) for name, usage in row.get("beside", {}).items()}
    values["snapshots"] = {int(calls): right for calls, right in row["snapshots"].items()}
    outcome = Outcome(**values)
    check(outcome)
    return outcome


def usage_of(row: Mapping[str, float | None]) -> Usage:
    """Raises ValueError where that is none."""
    if not all(is_number(value) or (name == "dollars" and value is None) for name, value in row.items()):
        raise ValueError("a usage holds no numbers")
    return Usage(**row)  # type: ignore[arg-type]


def check(outcome: Outcome) -> None:
    """Raises ValueError where a value is of no kind that it can be."""
    if outcome.state not in get_args(State):
        raise ValueError(f"{outcome.state!r} is no state of an outcome")
    texts = [getattr(outcome, name) for name in TEXTS]
    lists = [value for name in LISTS for value in getattr(outcome, name)]
    numbers = [*outcome.metrics.values(), *outcome.counts.values(), outcome.seconds, outcome.critical, outcome.repeat]
    if not all(isinstance(value, str) for value in (*texts, *lists)) or not all(map(is_number, numbers)):
        raise ValueError("an outcome holds what it cannot")
    if not all(isinstance(right, bool) for right in outcome.snapshots.values()):
        raise ValueError("a snapshot is neither right nor wrong")


TEXTS = ("benchmark", "case", "technique", "model", "group", "answer", "text", "stopped", "failure")
LISTS = ("gold", "reasons", "tags")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def completion_of(text: str) -> Completion:
    row = json.loads(text)
    logprobs = tuple(tuple(Token(**token) for token in tokens) for tokens in row.get("logprobs", ()))
    return Completion(tuple(row["texts"]), Usage(**row["usage"]), row["finish"], row["model"], logprobs=logprobs)
