"""The scratch copy of a decision model: SQLite in memory, on which statements run that somebody wrote in a file.

It opens on JSON in the place of a URL: ``tables`` (name -> columns, rows), and ``candidates``, ``change``, ``outcome``,
``vary`` and ``seconds`` of the model. A statement is a job: ``candidates``, or ``outcomes`` of the parameter ``names``,
with ``percent`` and ``seed`` where the inputs vary. An authorizer that denies by default bounds what the model's
statements do, limits bound what they hold, and the parent's clock and watch on memory do the rest.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import apsw

from decisor.errors import SetupError, ToolError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.engines.sqlite import FUNCTIONS, STEPS_BETWEEN_CHECKS, limits, message
from decisor.tools.databases.sandbox.names import words
from decisor.tools.databases.sandbox.statement_size import refuse
from decisor.tools.databases.sandbox.values import plain
from decisor.types import Table, Value

Cell = int | float | str | bytes | None
BATCH_SECONDS = 1.0
"""A job ends after the candidate that passes this, so that its parent's clock stays short; it is asked for the rest."""
GRACE_SECONDS = 1.0
MAX_VALUE_BYTES = 10_000_000
MAX_CANDIDATES = 200_000
SHOWN = 300
ALLOWED = {
    apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE, apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE,
    apsw.SQLITE_CREATE_TABLE, apsw.SQLITE_CREATE_TEMP_TABLE, apsw.SQLITE_DROP_TABLE, apsw.SQLITE_DROP_TEMP_TABLE,
    apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_CREATE_TEMP_INDEX, apsw.SQLITE_DROP_INDEX, apsw.SQLITE_DROP_TEMP_INDEX,
    apsw.SQLITE_CREATE_VIEW, apsw.SQLITE_CREATE_TEMP_VIEW, apsw.SQLITE_DROP_VIEW, apsw.SQLITE_DROP_TEMP_VIEW,
    apsw.SQLITE_REINDEX,
}  # fmt: skip
"""What a model's statement may do. CREATE INDEX asks for REINDEX too."""
READABLE_MODULES = {"json_each", "json_tree", "generate_series"}
CALLABLE = FUNCTIONS | words(
    """-> ->> acos asin atan atan2 avg ceil ceiling coalesce cos cosh count current_date current_time
    current_timestamp exp floor if lag lead length ln log lower pow replace round sin sinh sqrt sum tan tanh trim
    upper"""
)


@dataclass(eq=False)
class ScratchCopy:
    """``own``: the statement being prepared is ours. ``closed``: virtual tables that may not be read."""

    db: apsw.Connection
    model: Mapping[str, Any]
    closed: frozenset[str]
    own: bool = False
    deadline: float = float("inf")
    luck: random.Random = field(default_factory=random.Random)
    percent: float = 0.0
    values: dict[str, Cell] | None = None
    inputs: list[tuple[str, str]] | None = None

    def check(self, statement: str) -> str:
        raise refuse("a scratch copy takes only the jobs of its model.")

    def run(self, statement: str, parameters: Mapping[str, Any], caps: Caps) -> Table:
        """Raises ToolError saying which part of the model fails, and why."""
        if statement == "candidates":
            return Table(("candidate",), tuple((name,) for name in self._values()))
        if statement == "outcomes":
            return Table(("outcome",), tuple((value,) for value in self._outcomes(**parameters)))
        raise ToolError(f"a scratch copy has no job {statement!r}.")

    def close(self) -> None:
        self.db.close(True)

    def authorize(self, what: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        match what:
            case _ if self.own or what in ALLOWED:
                allowed = True
            case apsw.SQLITE_READ:
                name = (one or "").lower()
                allowed = name not in self.closed and not name.startswith("pragma_")
            case apsw.SQLITE_FUNCTION:
                allowed = (two or "").lower() in CALLABLE
            case _:
                allowed = False
        return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY

    def _values(self) -> dict[str, Cell]:
        """Each candidate's name and value, read once, before anything changes or varies."""
        if self.values is None:
            with self._undone():
                rows = self._run("candidates", self.model["candidates"], {}, MAX_CANDIDATES)
            values = {str(plain(row[0], SHOWN)): row[0] for row in rows}
            if not values:
                raise ToolError("the query of candidates gives no row.")
            if len(rows) > MAX_CANDIDATES:
                raise ToolError(f"the query of candidates gives more than {MAX_CANDIDATES:,} rows.")
            if len(values) < len(rows):
                raise ToolError("the query of candidates gives a candidate twice; add DISTINCT.")
            self.values = values
        return self.values

    def _outcomes(self, names: list[str], percent: float | None = None, seed: int = 0) -> list[Value]:
        """Of the first names, at least one; None where the outcome is NULL."""
        values, outcomes, until = self._values(), [], time.monotonic() + BATCH_SECONDS
        with self._undone():
            if percent is not None:
                self._vary(percent, seed)
            for name in names:
                if name not in values:
                    raise ToolError(f"{name!r} is no candidate.")
                outcomes.append(self._outcome(name, values[name]))
                if time.monotonic() > until:
                    break
        return outcomes

    def _outcome(self, name: str, candidate: Cell) -> Value:
        with self._undone():
            for statement in self.model["change"]:
                self._run("change", statement, {"candidate": candidate})
            rows = self._run("outcome", self.model["outcome"], {"candidate": candidate})
        if len(rows) != 1 or len(rows[0]) != 1:
            raise ToolError(f"the query of outcome must give one number; for {name} it gives {len(rows)} rows "
                            f"of {len(rows[0]) if rows else 0} columns.")  # fmt: skip
        value = rows[0][0]
        if value is not None and not isinstance(value, int | float):
            raise ToolError(f"the query of outcome must give a number; for {name} it gives {plain(value, SHOWN)!r}.")
        return value

    def _vary(self, percent: float, seed: int) -> None:
        self.luck, self.percent = random.Random(seed), percent
        if self.inputs is None:
            self.inputs = self._inputs()
        for table, column in self.inputs:
            text = f"UPDATE {table} SET {column} = {column} * varied_by() WHERE {column} IS NOT NULL"
            self._run("vary", text, {}, own=True)

    def factor(self, *_: object) -> float:
        return 1 + self.luck.uniform(-self.percent, self.percent) / 100

    def _inputs(self) -> list[tuple[str, str]]:
        """Quoted (table, column) pairs: those named in ``vary``, else every column that holds decimal numbers."""
        if self.model["vary"]:
            names = [name.partition(".") for name in self.model["vary"]]
            return [(quoted(table), quoted(column)) for table, _, column in names]
        pairs = ((quoted(name), quoted(column)) for name, columns in self.model["tables"].items() for column in columns)
        real = "SELECT 1 FROM {0} WHERE typeof({1}) = 'real' LIMIT 1"
        decimals = [pair for pair in pairs if self._run("vary", real.format(*pair), {}, own=True)]
        return [pair for pair in decimals if not self._names_candidates(*pair)]

    def _names_candidates(self, table: str, column: str) -> bool:
        """Whether a column holds the candidates themselves: varied, none of them would be there."""
        values = list(self._values().values())
        if not all(isinstance(value, float) for value in values):
            return False
        query = f"SELECT 1 FROM {table} WHERE {column} = :value LIMIT 1"
        return all(self._run("vary", query, {"value": value}, own=True) for value in values)

    def _run(
        self, part: str, statement: str, parameters: Mapping[str, object], rows: int = 1000, own: bool = False
    ) -> list[tuple[Cell, ...]]:
        """The first rows, and one more where there are more."""
        seconds, cursor, begun = self.model["seconds"], self.db.cursor(), 0

        def one_alone(*_: object) -> bool:
            nonlocal begun
            begun += 1
            if begun > 1:
                raise ToolError("one statement at a time, please")
            return True

        cursor.exec_trace = one_alone
        self.own, self.deadline = own, time.monotonic() + seconds
        if hasattr(signal, "setitimer"):  # ends this process where one step of SQLite's takes too long
            signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_SECONDS)
        try:
            return list(islice(cursor.execute(statement, dict(parameters), can_cache=not own), rows + 1))
        except apsw.InterruptError as error:
            raise ToolError(f"{part} fails: it takes over {seconds:g} s. {clipped(statement)}") from error
        except (apsw.Error, ToolError, KeyError, ValueError, OverflowError, TypeError) as error:
            raise ToolError(f"{part} fails: {message(error)}. {clipped(statement)}") from error
        finally:
            cursor.close(True)
            self.own, self.deadline = False, float("inf")

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """A failing statement may have rolled back everything by itself."""
        self._run("change", "SAVEPOINT choice", {}, own=True)
        try:
            yield
        finally:
            if not self.db.get_autocommit():
                self._run("change", "ROLLBACK TO choice", {}, own=True)
                self._run("change", "RELEASE choice", {}, own=True)


def connect(url: str, caps: Caps) -> ScratchCopy:
    """Raises SetupError where the tables do not fit into SQLite."""
    content = json.loads(url)
    db = apsw.Connection(":memory:")
    db.execute("PRAGMA temp_store=MEMORY")
    tables = content.pop("tables")
    for name, table in tables.items():
        try:
            kinds = table.get("types") or [""] * len(table["columns"])
            columns = ", ".join(f"{quoted(one)} {kind}" for one, kind in zip(table["columns"], kinds, strict=True))
            db.execute(f"CREATE TABLE {quoted(name)} ({columns})")
            marks = ", ".join("?" * len(table["columns"]))
            rows = (tuple(map(cell, row)) for row in table["rows"])
            with db:
                db.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
        except (apsw.Error, OverflowError, ValueError) as error:
            raise SetupError(f"{name} cannot be copied: {message(error)}.") from error
    model = {**content, "tables": {name: table["columns"] for name, table in tables.items()}}
    modules = {name.lower() for (name,) in db.execute("PRAGMA module_list")}
    engine = ScratchCopy(db, model, frozenset(modules - READABLE_MODULES))
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    for limit, value in {**limits(), apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES}.items():
        db.limit(limit, value)
    db.create_scalar_function("varied_by", engine.factor, 0)
    db.authorizer = engine.authorize
    db.set_progress_handler(lambda: time.monotonic() > engine.deadline, STEPS_BETWEEN_CHECKS)
    return engine


def cell(value: Any) -> int | float | str | None:
    """Lists and maps as JSON text, which SQLite's json functions read; integers beyond its own as decimals."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    plain_value: int | float | str | None = value
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else plain_value


def clipped(statement: str) -> str:
    return f"Statement: {' '.join(statement.split())[:SHOWN]}"
