"""An open decision model: a worker process that is asked for candidates and outcomes.

The tables of ``[copy]``, and those that statements name, are read from the source once. Statements and tables go to
the worker as JSON, and all work is done there on its scratch copy, never on the source. A change that somebody asks
about becomes an UPDATE of one named column, which is checked here and again by the worker. ``run_rule_tests`` binds
each rule to the query that tests it, for one candidate.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

from decisor.decision_models.candidates import Candidates, explain_broken_rule, format_cells
from decisor.decision_models.copies import Copy, build_machine_content, read_copies, write_machine_model
from decisor.decision_models.outcomes import OutcomeCollector, Outcomes, Reason
from decisor.decision_models.schema import DecisionModel, FunctionTable
from decisor.errors import SetupError, ToolError
from decisor.parsing.whatif_request import DataChange
from decisor.system.tasks import counter_of
from decisor.system.text import quote_identifier
from decisor.system.wording import format_count
from decisor.types import BulkSource, RuleTest, Table, Value

FIRST = 16
SMALL = 200_000
"""So many rows x candidates x trials take little longer than one: a request has no fewer."""
CHUNK_SECONDS = 1.0
"""A request takes about so long of CPU, so that progress is seen and a limit ends the run with what is known. What it
takes on a busy machine says nothing of how much there was to do."""
TIME_OVER = "the limit of seconds is reached"
MORE_SECONDS = "The limit of seconds is reached before this is computed. Give it more seconds, or fewer candidates."
CELLS = 5_000_000
"""Rows x candidates, or rows x trials, that a request may hold."""
MOST_AT_ONCE = 20_000
FIRST_TRIALS = 8
LONGEST_CHUNK = 5.0
"""Seconds of CPU that a request of trials is to take at most."""
LONGEST = 3
"""A request may take so many times the seconds of a statement, and those of all its statements at least."""


class TimeOver(SetupError):
    """The deadline of an open model has come, and the request has no partial answer."""


class Jobs(Protocol):
    """A machine in a process of its own.

    ``run`` raises ToolError; its jobs are in ``worker.engine.Machine``.
    """

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table: ...

    def close(self) -> None: ...


StartMachine: TypeAlias = Callable[[str], Awaitable[Jobs]]


async def open_decision_model(model: DecisionModel, source: BulkSource, start: StartMachine) -> OpenModel:
    """Open a model on a copy of the source's tables, in a process that ``start`` starts.

    ``start`` is ``decisor.sandbox.process.start_machine``. Close the model after use.

    Raises:
        SetupError: the source cannot be read, or a statement is refused; the message has the line.
    """
    copies = await read_copies(model, source)
    try:
        return OpenModel(model, await start(build_machine_content(model, copies)), copies)
    except SetupError as error:
        raise SetupError(add_line_number(model, str(error))) from error


@dataclass(eq=False)
class OpenModel:
    """A decision model that is open in a worker process.

    Its methods block: call them from a thread if an event loop runs.
    """

    model: DecisionModel
    jobs: Jobs
    copies: Mapping[str, Copy]
    """The tables as they were read."""
    variant: str = ""
    """The model as JSON, if it is not the one that the worker was opened on."""
    size: int = FIRST
    """Number of candidates of the next request."""
    batched: bool = False
    """True if the last request computed all candidates by one statement."""
    deadline: float = float("inf")
    """Moment (``time.monotonic``) at which every request ends: with the results so far if its caller gave seconds,
    else with TimeOver."""
    rules: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = tuple(one.name for one in self.model.tested)

    def lay_over(self, model: DecisionModel) -> OpenModel:
        """Return a changed model on the same copy of the data, in the same worker. Close only this one.

        A statement that is refused raises ToolError where the variant is first computed.
        """
        return OpenModel(model, self.jobs, self.copies, write_machine_model(model), deadline=self.deadline)

    @cached_property
    def rows(self) -> int:
        """Number of rows of the largest table."""
        return max((copy.rows for copy in self.copies.values()), default=1)

    @cached_property
    def candidates(self) -> Candidates:
        """The candidates of the model. Raises ToolError if the query of choice fails or gives no row."""
        table = self.job("choice", {}, 2 * self.model.seconds)
        if not table.rows:
            raise ToolError(
                add_line_number(self.model, "choice: the query gives no row, so there is nothing to choose.")
            )
        return Candidates.of(table, self.model.choices[0].takes)

    def outcomes(
        self,
        candidates: Iterable[int] | None = None,
        *,
        scenario: str = "",
        changes: str = "",
        seed: int | None = None,
        seconds: float = float("inf"),
        most: int = 3,
        one_by_one: bool = False,
        skip: int | None = None,
    ) -> Outcomes:
        """Compute the outcomes of some candidates, or of all.

        Args:
            changes: UPDATE statements that run before the choice.
            seed: seed of one trial, in which the inputs vary.
            seconds: limit after which it ends with the results so far.
            most: number of rows that break a rule, for each candidate.
            skip: number of a statement of change and recompute to leave out.

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        chosen = list(range(len(self.candidates.places))) if candidates is None else [int(one) for one in candidates]
        gathered, progress = OutcomeCollector(chosen, self.model.measures, self.rules), counter_of("candidate")
        wish = {
            "scenario": scenario,
            "changes": changes,
            "seeds": [] if seed is None else [seed],
            "most": most,
            "single": one_by_one,
            "skip": skip,
        }
        began, at, stopped, seconds = time.monotonic(), 0, "", self._bounded(seconds)
        while at < len(chosen) and not stopped:
            part = chosen[at : at + (1 if one_by_one else self.size)]
            left = seconds - (time.monotonic() - began)
            stopped = self._part(gathered, wish, part, at, range(0), left)
            at += len(part)
            if progress is not None and not stopped:
                progress(at, len(chosen))
        return gathered.outcomes(stopped, time.monotonic() - began)

    def unjudged(self, candidate: int, scenario: str, changes: str, seconds: float) -> dict[str, Reason]:
        """Return the rows for which the condition of a rule is NULL, by rule, for one candidate."""
        if not any(rule.rows for rule in self.model.tested):
            return {}
        gathered = OutcomeCollector([candidate], (), self.rules)
        wish = {"scenario": scenario, "changes": changes, "most": 1, "single": True, "unjudged": True}
        self._part(gathered, wish, [candidate], 0, range(0), self._bounded(seconds))
        return {rule: reason for (_, rule), reason in gathered.reasons.items()}

    def trials(
        self,
        candidates: Iterable[int],
        count: int,
        *,
        first_seed: int = 0,
        scenario: str = "",
        changes: str = "",
        seconds: float = float("inf"),
        varies: Sequence[str] | None = None,
    ) -> Outcomes:
        """Compute the outcomes of candidates in ``count`` trials, in which the inputs vary.

        The same seed gives the same trial. varies: inputs (table.column) that alone vary; None means all as the file
        says.

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        wish = {"scenario": scenario, "changes": changes, **({} if varies is None else {"varies": list(varies)})}
        seeds = list(range(first_seed, first_seed + count))
        return self._trials([int(one) for one in candidates], wish, "seeds", seeds, seconds)

    def outcomes_at_factors(
        self, candidates: Iterable[int], changes: str, factors: Sequence[float], *, seconds: float = float("inf")
    ) -> Outcomes:
        """Compute the outcomes of candidates for each factor, as a trial. The factor is ``$__factor`` in the changes.

        Raises:
            ToolError: a statement fails; the message has its line.
        """
        return self._trials([int(one) for one in candidates], {"changes": changes}, "factors", factors, seconds)

    def _trials(
        self, chosen: list[int], wish: Mapping[str, object], what: str, each: Sequence[float], seconds: float
    ) -> Outcomes:
        """Compute trials of candidates. what: "seeds" or "factors", the kind of ``each``."""
        count, progress = len(each), counter_of("trial")
        gathered = OutcomeCollector(chosen, self.model.measures, self.rules, count)
        began, at, stopped, seconds = time.monotonic(), 0, "", self._bounded(seconds)
        # So many trials for one request that its tables fit into memory.
        tables = max(1, len(chosen)) if self.model.change or self.model.recompute else 1
        most = max(1, CELLS // max(1, self.rows * tables, len(chosen)))
        # One by one, even a few trials may take long: the first tells what the next cost.
        first = FIRST_TRIALS if what == "seeds" else count
        size, cheapest = min(first, most) if self.batched else 1, float("inf")
        while at < count and chosen and not stopped:
            some = range(at, min(at + size, count))
            here = {**wish, what: list(each[some.start : some.stop]), "most": 0, "single": False}
            try:
                stopped = self._part(gathered, here, chosen, 0, some, seconds - (time.monotonic() - began))
            except ToolError as error:
                # What is finished is kept. A smaller request may still pass, or tell which trial fails.
                if len(some) == 1 and not at:
                    raise
                size, stopped = max(1, len(some) // 2), str(error) if len(some) == 1 else ""
                continue
            at += len(some)
            # Larger requests, as long as a trial gets cheaper by them.
            cost = gathered.cpu / len(some)
            size = 4 * size if cost < 0.9 * cheapest else size // 4 if cost > 1.5 * cheapest else size
            cheapest = min(cheapest, cost)
            size = max(1, min(size, most, int(LONGEST_CHUNK / max(cost, 1e-6)))) if self.batched else 1
            if progress is not None and not stopped:
                progress(at, count)
        return gathered.outcomes(stopped, time.monotonic() - began)

    def present(
        self, scenario: str = "", changes: str = "", seconds: float = float("inf"), known: Outcomes | None = None
    ) -> dict[str, dict[str, float] | None]:
        """Return the parts of each measure of what is chosen today; if that is not known, of nothing.

        None for a measure that reads the choice then, or has no value. known: outcomes on the same data, which are not
        computed again.

        Raises:
            ToolError: a statement fails, or what is chosen today is no candidate.
        """
        rows: Iterable[tuple[Value, ...]]
        if (choice := self.model.choice) and choice.now:
            try:
                candidate = self.candidates.find(tuple(map(str, choice.now)))
            except ToolError as error:
                raise ToolError(add_line_number(self.model, f"choice.{choice.name}.now: {error}")) from error
            if known is None or candidate not in known.candidates:
                known = self.outcomes([candidate], scenario=scenario, changes=changes, seconds=seconds, most=0)
            at = known.candidates.tolist().index(candidate)
            rows = (
                (measure, part, float(values[at]) if values[at] == values[at] else None)
                for (measure, part), values in known.parts.items()
            )
        else:
            limit = min(self._longest(), self._bounded(seconds))
            rows = self.job("present", {"scenario": scenario, "changes": changes}, limit).rows
        found: dict[str, dict[str, float] | None] = {}
        for name, part, value in rows:
            parts = found.setdefault(str(name), {})
            if parts is None or not isinstance(value, float):
                found[str(name)] = None
            else:
                parts[str(part)] = value
        return found

    def count_updated_rows(self, changes: str) -> list[tuple[int, int]]:
        """Return how many rows each UPDATE changes, and how many its table has. Raises ToolError if one is refused."""
        rows = self.job("touched", {"text": changes}, self._longest()).rows
        return [(int(str(count)), int(str(whole))) for count, whole in rows]

    def statement_counts(self) -> tuple[int, int]:
        """Return how many statements change, and how many recompute."""
        ((change, recompute),) = self.job("counts", {}, 30).rows
        return int(str(change)), int(str(recompute))

    def close(self) -> None:
        self.jobs.close()

    def job(self, name: str, parameters: Mapping[str, Any], seconds: float) -> Table:
        """Run a job of the machine; raise TimeOver at the deadline."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeOver(MORE_SECONDS)
        if self.variant:
            parameters = {**parameters, "variant": self.variant}
        try:
            return self.jobs.run(name, parameters, min(seconds, left))
        except ToolError as error:
            # The deadline of the model ended the job, not the limit of the job itself.
            if left < seconds and time.monotonic() >= self.deadline:
                raise TimeOver(
                    add_line_number(self.model, f"choice: {MORE_SECONDS}") if name == "choice" else MORE_SECONDS
                ) from error
            raise ToolError(add_line_number(self.model, str(error)), error.refused, error.outage) from error

    def _bounded(self, seconds: float) -> float:
        """Return the seconds until the deadline if that is nearer. A caller without a limit is not bounded."""
        return seconds if seconds == float("inf") else min(seconds, self.deadline - time.monotonic())

    def _part(
        self,
        gathered: OutcomeCollector,
        wish: Mapping[str, object],
        part: list[int],
        at: int,
        trials: range,
        left: float,
    ) -> str:
        """Compute one request; return why the run ends here, '' if it goes on.

        The next request is sized by the time that this one took.
        """
        if left <= 0:
            return TIME_OVER
        places = self.candidates.places
        began, longest = time.monotonic(), self._longest()
        try:
            reply = self.job("outcomes", {"candidates": [places[one] for one in part], **wish}, min(longest, left))
        # The limit of the run ended the request, not that of its statements: what is known is kept.
        except (ToolError, TimeOver):
            if left < longest and time.monotonic() - began >= left:
                return TIME_OVER
            raise
        gathered.add(reply, at, len(part), trials)
        # A request for single candidates says nothing about batching.
        if not wish["single"]:
            self.batched = gathered.batched
        if not trials and not wish["single"]:
            self._resize(len(part), gathered.cpu)
        return ""

    def _resize(self, count: int, took: float) -> None:
        most = max(1, CELLS // max(self.rows, 1)) if self.model.recompute else MOST_AT_ONCE
        wanted = int(count * CHUNK_SECONDS / max(took, 1e-3)) + 1
        if self.batched:
            wanted = max(min(wanted, 4 * count), SMALL // max(self.rows, 1))
        self.size = max(1, min(wanted, most))

    def _longest(self) -> float:
        """Return the seconds that a request may take in all."""
        statements = len(self.model.statements()) + 3
        return self.model.seconds * max(LONGEST, statements)


def add_line_number(model: DecisionModel, complaint: str) -> str:
    """Put the line of the file before a complaint that begins with a part of the file.

    >>> add_line_number(DecisionModel("x", ()), "measure.cost.sql: no such column")
    'measure.cost.sql: no such column'
    """
    words = complaint.removeprefix("Refused: ")
    part = re.split(r"[: ]", words, maxsplit=1)[0]
    line = model.line(*part.split(".")) if part.split(".")[0] in HEADS else 0
    return f"line {line}: {complaint}" if line else complaint


HEADS = (
    "choice",
    "unknown",
    "function",
    "table",
    "change",
    "recompute",
    "measure",
    "rule",
    "scenario",
    "take",
    "input",
)


NEAR = 3


def build_updates(model: OpenModel, changes: Iterable[DataChange]) -> str:
    """Build the UPDATE statements of some changes, one column each. The worker checks that they are no more than that.

    Raises:
        ToolError: there is no such table or column, it is another statement, or it changes no row.
    """
    changes = tuple(changes)
    texts = [build_update(model.copies, one) for one in changes]
    text = ";\n".join(texts)
    for change, (rows, whole) in zip(changes, model.count_updated_rows(text), strict=True):
        if not rows:
            raise ToolError(
                f"No row of {change.table} ({format_count(whole, 'row')}) meets {change.where or 'it'}, so this "
                f"changes nothing.{list_sample_values(model.copies, change)}"
            )
    return text


def build_update(copies: Mapping[str, Copy], change: DataChange) -> str:
    """Build the UPDATE statement of one change.

    >>> from decisor.decision_models.copies import CopyColumn
    >>> lane = Copy("lane", (CopyColumn("cost", (1.0,)),), "")
    >>> build_update({"lane": lane}, DataChange("LANE", "Cost", "cost * 2", "cost > 1"))
    'UPDATE "lane" SET "cost" = cost * 2 WHERE cost > 1'
    """
    table = resolve_name(change.table, [*copies], "table")
    columns = [column.name for column in copies[table].columns]
    column = resolve_name(change.column, columns, f"column of {table}")
    where = f" WHERE {change.where}" if change.where else ""
    return f"UPDATE {quote_identifier(table)} SET {quote_identifier(column)} = {change.value}{where}"


def resolve_name(name: str, there: Sequence[str], kind: str) -> str:
    """Return a name as the model writes it, whatever its case; raise ToolError with the known names."""
    lower = {one.lower(): one for one in there}
    if name.lower() not in lower:
        near = difflib.get_close_matches(name.lower(), lower, NEAR)
        rest = f"close to it: {', '.join(lower[one] for one in near)}" if near else f"there is {', '.join(there[:20])}"
        raise ToolError(f"{name} is no {kind} of this model; {rest}.")
    return lower[name.lower()]


def list_sample_values(copies: Mapping[str, Copy], change: DataChange) -> str:
    """List some values of a column that a condition names, to help with a misspelt one."""
    table = resolve_name(change.table, [*copies], "table")
    for column in copies[table].columns:
        texts = [value for value in dict.fromkeys(column.values) if isinstance(value, str)][:5]
        if texts and column.name.lower() in change.where.lower():
            return f" {column.name} is one of {', '.join(texts)}, ..."
    return ""


@dataclass(frozen=True)
class ArgumentChange:
    """A row for which a function of the file was called, and that is another one today."""

    function: str
    before: str
    """The row as it was; '' for a new one."""
    after: str
    """The row as it is; '' if it is gone."""

    def __str__(self) -> str:
        if not self.before:
            return f"function.{self.function} was not called for {self.after}, a row of today"
        now = f"today that row is {self.after}" if self.after else "which is no row of today"
        return f"function.{self.function} was called for {self.before}, {now}"


def find_changed_arguments(model: OpenModel) -> Iterator[ArgumentChange]:
    """Find the rows for which each function was called and that the data of today do not hold, and new ones.

    A row that is gone and the new one with the most equal cells are one that was changed. Raises ToolError.
    """
    functions = {one.name: one for one in model.model.functions}
    today: dict[str, list[Mapping[str, Value]]] = {name: [] for name in functions}
    for name, row in model.job("arguments", {}, model.model.seconds).rows if functions else ():
        today[str(name)].append(plain_arguments(functions[str(name)], cast("Mapping[str, Value]", row)))
    for name, one in functions.items():
        recorded = [plain_arguments(one, row) for row in one.values]
        new = [row for row in today[name] if row not in recorded]
        for row in [row for row in recorded if row not in today[name]]:
            counts = [sum(key in other and other[key] == cell for key, cell in row.items()) for other in new]
            same = new[counts.index(max(counts))] if new else None
            if same is None or not (max(counts) or len(recorded) == len(today[name]) == 1):
                yield ArgumentChange(name, format_cells(row), "")
                continue
            new.remove(same)
            yield ArgumentChange(name, format_cells(row), format_cells(same))
        yield from (ArgumentChange(name, "", format_cells(row)) for row in new)


def plain_arguments(function: FunctionTable, row: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the arguments of a row, without what the function gave, and with numbers of 12 digits."""
    cells = {key: cell for key, cell in row.items() if key not in function.gives}
    return {key: float(f"{cell:.12g}") if isinstance(cell, float) else cell for key, cell in cells.items()}


def run_rule_tests(model: OpenModel, candidate: str) -> tuple[RuleTest, ...]:
    """Test the rules of a model on one candidate, in the order of the file. A rule without a query is not testable.

    Raises:
        ToolError: there is no such candidate, or a query fails.
    """
    file = model.model
    # Whatever the solver finds meets its requirements.
    if not file.choice:
        return tuple(
            RuleTest(one.name, one.text, "kept", "required of the solver", one.test, candidate=candidate)
            for one in file.rules
        )
    number = model.candidates.find(candidate)
    outcomes = model.outcomes([number])
    tests = []
    for rule in file.rules:
        test = RuleTest(rule.name, rule.text, "not testable", "nothing in the data says it", candidate=candidate)
        if rule.name in outcomes.rules:
            why = rule.holds or ("its query gives a row" if rule.exists else "its query gives no row")
            test = replace(test, state="kept", why=why, test=rule.test)
        if rule.name in outcomes.rules_broken(0):
            reason = outcomes.reasons.get((number, rule.name), Reason(0))
            why = explain_broken_rule(file, rule.name, reason)
            test = replace(test, state="broken", why=why, count=reason.count, rows=reason.rows)
        tests.append(test)
    return tuple(tests)
