"""An open decision model: its candidates, and their outcomes, computed in a worker."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from decisor.counting import counter_of
from decisor.decision_models.candidates import Candidates
from decisor.decision_models.content import content
from decisor.decision_models.copying import Copy, copies_of
from decisor.decision_models.format import Model
from decisor.decision_models.outcomes import Gathered, Outcomes
from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Table, Value

FIRST = 16
SMALL = 200_000
"""So many rows x candidates x trials take little longer than one: a request has no fewer."""
CHUNK_SECONDS = 1.0
"""A request takes about so long of CPU, so that progress is seen and a limit ends the run with what is known. What it
takes on a busy machine says nothing of how much there was to do."""
TIME_OVER = "the limit of seconds is reached"
MORE_SECONDS = "The limit of seconds is reached before this is computed. Give it more seconds, or fewer candidates."
CELLS = 5_000_000
"""Rows x candidates that a request may hold."""
CELLS_AT_ONCE = 1_000_000
MOST_AT_ONCE = 20_000
LONGEST = 3
"""A request may take so many times the seconds of a statement, and those of all its statements at least."""
Progress: TypeAlias = Callable[[int, int], None]


class TimeOver(SetupError):
    """The deadline of an open model has come, and what was asked cannot be told in part."""


class Jobs(Protocol):
    """A machine in a process of its own. ``run`` raises ToolError; its jobs are in
    ``tools.databases.sandbox.models.machine``."""

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table: ...

    def close(self) -> None: ...


StartMachine: TypeAlias = Callable[[str], Awaitable[Jobs]]


async def open_model(model: Model, source: BulkSource, start: StartMachine) -> OpenModel:
    """The model on a copy of what it names of the source, in a process that ``start`` starts
    (``decisor.tools.databases.sandbox.blocking.start_machine``). Close it when it is done with.

    Raises:
        SetupError: the source cannot be read, or a statement is refused; the message has the line.
    """
    copies = await copies_of(model, source)
    try:
        return OpenModel(model, await start(content(model, copies)), copies)
    except SetupError as error:
        raise SetupError(placed(model, str(error))) from error


@dataclass(eq=False)
class OpenModel:
    """Blocking: call it from a thread where an event loop runs. ``copies``: the tables as they were read. ``size``: of
    the next request, in candidates. ``together``: the last one computed them all at once. ``deadline``: the moment
    (``time.monotonic``) at which every request ends: with what is known for who said how many seconds there are, with
    TimeOver for who did not."""

    model: Model
    jobs: Jobs
    copies: Mapping[str, Copy]
    size: int = FIRST
    together: bool = False
    deadline: float = float("inf")
    names: tuple[str, ...] = field(init=False)
    rules: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        broken = [one.name for one in self.model.rules if one.broken]
        self.names = tuple(one.name for one in self.model.measures)
        self.rules = (*broken, *(one.name for one in self.model.rules if one.measure))

    @cached_property
    def rows(self) -> int:
        """Of the largest table."""
        return max((copy.rows for copy in self.copies.values()), default=1)

    @cached_property
    def candidates(self) -> Candidates:
        """Raises ToolError where the query of choice fails, or gives no row."""
        table = self.job("choice", {}, 2 * self.model.seconds)
        if not table.rows:
            raise ToolError(placed(self.model, "choice: the query gives no row, so there is nothing to choose."))
        return Candidates(table, self.model.take)

    def outcomes(
        self, candidates: Iterable[int] | None = None, *, scenario: str = "", changes: str = "",
        seed: int | None = None, seconds: float = float("inf"), most: int = 3, alone: bool = False,
        skip: int | None = None, progress: Progress | None = None,
    ) -> Outcomes:  # fmt: skip
        """Of some candidates, or all. ``scenario``: the name of one; ``changes``: more UPDATE statements before the
        choice. ``seed``: of one trial, in which the inputs vary. After ``seconds`` it ends with what is known.
        ``most``: rows that break a rule, for each candidate. ``alone``: one candidate after the other. ``skip``:
        without this statement of change and recompute.

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        chosen = list(range(len(self.candidates.places))) if candidates is None else [int(one) for one in candidates]
        gathered, progress = Gathered(chosen, self.names, self.rules), progress or counter_of("candidate")
        wish = {"scenario": scenario, "changes": changes, "seeds": [] if seed is None else [seed], "most": most,
                "single": alone, "skip": skip}  # fmt: skip
        began, at, stopped, seconds = time.monotonic(), 0, "", self._bounded(seconds)
        while at < len(chosen) and not stopped:
            part = chosen[at : at + (1 if alone else self.size)]
            left = seconds - (time.monotonic() - began)
            stopped = self._part(gathered, wish, part, at, range(0), left)
            at += len(part)
            if progress is not None and not stopped:
                progress(at, len(chosen))
        return gathered.outcomes(stopped, time.monotonic() - began)

    def trials(
        self, candidates: Iterable[int], count: int, *, first_seed: int = 0, scenario: str = "", changes: str = "",
        seconds: float = float("inf"), progress: Progress | None = None, varies: Sequence[str] | None = None,
    ) -> Outcomes:  # fmt: skip
        """Of these candidates in ``count`` trials, whose inputs vary as the file says; the same seed gives the same.
        ``varies``: only these inputs do (table.column).

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        wish = {"scenario": scenario, "changes": changes, **({} if varies is None else {"varies": list(varies)})}
        seeds = list(range(first_seed, first_seed + count))
        return self._trials([int(one) for one in candidates], wish, "seeds", seeds, seconds, progress)

    def turned(
        self, candidates: Iterable[int], changes: str, factors: Sequence[float], *, seconds: float = float("inf")
    ) -> Outcomes:
        """Of these candidates, for each factor as a trial: ``$__factor`` of the changes is it.

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        return self._trials([int(one) for one in candidates], {"changes": changes}, "factors", factors, seconds, None)

    def _trials(
        self, chosen: list[int], wish: Mapping[str, object], what: str, each: Sequence[float], seconds: float,
        progress: Progress | None,
    ) -> Outcomes:  # fmt: skip
        """``what``: seeds or factors."""
        count, progress = len(each), progress or counter_of("trial")
        gathered = Gathered(chosen, self.names, self.rules, count)
        began, at, stopped, seconds = time.monotonic(), 0, "", self._bounded(seconds)
        size = self._trials_at_once(max(1, len(chosen)), 1 if what == "seeds" else count, CHUNK_SECONDS)
        while at < count and chosen and not stopped:
            some = range(at, min(at + size, count))
            here = {**wish, what: list(each[some.start : some.stop]), "most": 0, "single": False}
            stopped = self._part(gathered, here, chosen, 0, some, seconds - (time.monotonic() - began))
            at += len(some)
            size = self._trials_at_once(len(chosen), len(some), gathered.cpu)
            if progress is not None and not stopped:
                progress(at, count)
        return gathered.outcomes(stopped, time.monotonic() - began)

    def _trials_at_once(self, candidates: int, trials: int, took: float) -> int:
        """Small tables are varied many times in one request; large ones are quicker one after the other."""
        cells = max(1, self.rows * candidates)
        if cells >= CELLS_AT_ONCE or not self.together:
            return 1
        most = CELLS_AT_ONCE // max(1, cells if self.model.recompute else self.rows)
        wanted = min(8 * trials, int(trials * CHUNK_SECONDS / max(took, 1e-3)))
        return max(1, min(most, max(wanted, SMALL // cells), MOST_AT_ONCE // candidates))

    def present(self, scenario: str = "", changes: str = "") -> dict[str, float | None]:
        """Each measure with nothing chosen; None where it is made of the choice."""
        table = self.job("present", {"scenario": scenario, "changes": changes}, self._longest(1))
        return {str(name): value if isinstance(value, float) else None for name, value in table.rows}

    def touched(self, changes: str) -> list[tuple[int, int]]:
        """How many rows each UPDATE changes, and how many its table has. Raises ToolError where one is refused."""
        rows = self.job("touched", {"text": changes}, self._longest(1)).rows
        return [(int(str(count)), int(str(whole))) for count, whole in rows]

    def statement_counts(self) -> tuple[int, int]:
        """How many statements change, and how many recompute."""
        ((change, recompute),) = self.job("counts", {}, 30).rows
        return int(str(change)), int(str(recompute))

    def close(self) -> None:
        self.jobs.close()

    def job(self, name: str, parameters: Mapping[str, Any], seconds: float) -> Table:
        """Raises TimeOver at the deadline."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeOver(MORE_SECONDS)
        try:
            return self.jobs.run(name, parameters, min(seconds, left))
        except ToolError as error:
            if left < seconds and time.monotonic() >= self.deadline:
                raise TimeOver(
                    placed(self.model, f"choice: {MORE_SECONDS}") if name == "choice" else MORE_SECONDS
                ) from error
            raise ToolError(placed(self.model, str(error)), error.refused, error.outage) from error

    def _bounded(self, seconds: float) -> float:
        """Also by the deadline, where the caller takes what is known by then."""
        return seconds if seconds == float("inf") else min(seconds, self.deadline - time.monotonic())

    def _part(
        self, gathered: Gathered, wish: Mapping[str, object], part: list[int], at: int, trials: range, left: float
    ) -> str:
        """One request; why the run ends here, '' where it goes on. The next one is sized by how long it took."""
        if left <= 0:
            return TIME_OVER
        places = self.candidates.places
        began, longest = time.monotonic(), self._longest(len(part))
        try:
            reply = self.job("outcomes", {"candidates": [places[one] for one in part], **wish}, min(longest, left))
        except (ToolError, TimeOver):
            if left < longest and time.monotonic() - began >= left:
                return TIME_OVER
            raise
        gathered.add(reply, at, len(part), trials)
        if not wish["single"]:
            self.together = gathered.how == "together"
        if not trials and not wish["single"]:
            self._resize(len(part), gathered.cpu)
        return ""

    def _resize(self, count: int, took: float) -> None:
        most = max(1, CELLS // max(self.rows, 1)) if self.model.recompute else MOST_AT_ONCE
        wanted = int(count * CHUNK_SECONDS / max(took, 1e-3)) + 1
        if self.together:
            wanted = max(min(wanted, 4 * count), SMALL // max(self.rows, 1))
        self.size = max(1, min(wanted, most))

    def _longest(self, count: int) -> float:
        """Seconds that a request may take in all."""
        statements = len(self.model.statements()) + 3
        return self.model.seconds * max(LONGEST, statements)


def placed(model: Model, complaint: str) -> str:
    """With the line of the part of the file that the complaint begins with.

    >>> placed(Model("x", ()), "measure.cost.sql: no such column")
    'measure.cost.sql: no such column'
    """
    words = complaint.removeprefix("Refused: ")
    part = words.split(":")[0].split(" ")[0]
    line = model.line(*part.split(".")) if part.split(".")[0] in HEADS else 0
    return f"line {line}: {complaint}" if line else complaint


HEADS = ("choice", "change", "recompute", "measure", "rule", "scenario", "take", "variable", "require", "input")
