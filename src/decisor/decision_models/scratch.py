"""A decision model in SQL on a scratch copy: each candidate's changes run, are measured, and are rolled back."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError
from decisor.types import Goal, Table, Value, WhatIf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CLOSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}


def quoted(name: str) -> str:
    """A name of a table or column in SQL.

    >>> quoted('od"d')
    '"od""d"'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Scratch:
    """Satisfies ``types.WhatIf``. ``candidates_query``, ``change`` and ``outcome`` see the parameter :candidate."""

    measure: str
    goal: Goal
    candidates_query: str
    change: tuple[str, ...]
    outcome: str
    vary: tuple[str, ...] = ()
    seconds: float = 20.0
    database: sqlite3.Connection = field(
        default_factory=lambda: sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    )
    lock: threading.RLock = field(default_factory=threading.RLock)

    def fill(self, tables: Mapping[str, Table]) -> None:
        """Copy the tables, then close the copy to everything outside it."""
        with self.lock:
            for name, table in tables.items():
                columns = ", ".join(map(quoted, table.columns))
                self.database.execute(f"CREATE TABLE {quoted(name)} ({columns})")
                marks = ", ".join("?" * len(table.columns))
                rows = ([_plain(value) for value in row] for row in table.rows)
                self.database.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", rows)
            self._close_off()

    def _close_off(self) -> None:
        self.database.set_authorizer(lambda what, *_: sqlite3.SQLITE_DENY if what in CLOSED else sqlite3.SQLITE_OK)

    def candidates(self) -> tuple[str, ...]:
        """Raises SetupError where the query fails, gives none, or gives one twice."""
        return tuple(self._values())

    def _values(self) -> dict[str, Value]:
        rows = self._run("candidates", self.candidates_query, {})
        values = {str(row[0]): row[0] for row in rows}
        if not values:
            raise SetupError("The query of candidates gives no row.")
        if len(values) < len(rows):
            raise SetupError("The query of candidates gives a candidate twice; add DISTINCT.")
        return values

    def outcomes(self, candidates: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(candidates),); nan where the outcome is NULL."""
        import numpy as np

        with self.lock:
            values = self._values()
            return np.array([self._outcome(values[name]) for name in candidates], dtype=np.float64)

    def _outcome(self, candidate: Value) -> float:
        with self._undone():
            for statement in self.change:
                self._run("change", statement, {"candidate": candidate})
            rows = self._run("outcome", self.outcome, {"candidate": candidate})
        if len(rows) != 1 or len(rows[0]) != 1:
            raise SetupError(f"The query of outcome must give one number; for {candidate} it gives {len(rows)} rows.")
        value = rows[0][0]
        if value is None:
            return float("nan")
        if not isinstance(value, int | float):
            raise SetupError(f"The query of outcome must give a number; for {candidate} it gives {value!r}.")
        return float(value)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        self.database.execute("SAVEPOINT choice")
        try:
            yield
        finally:
            self.database.execute("ROLLBACK TO choice")
            self.database.execute("RELEASE choice")

    def _run(self, part: str, statement: str, parameters: Mapping[str, Value]) -> list[tuple[Any, ...]]:
        until = time.monotonic() + self.seconds
        with self.lock:
            self.database.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            try:
                return self.database.execute(statement, parameters).fetchall()
            except (sqlite3.Error, sqlite3.Warning) as error:
                why = f"it takes over {self.seconds:g} s" if "interrupted" in str(error) else str(error)
                raise SetupError(f"The decision model's {part} fails: {why}. Statement: {statement}") from error

    def varied(self, percent: float, rng: np.random.Generator) -> WhatIf:
        """A copy with each varied number multiplied by 1 + U(-percent, percent)/100."""
        other = replace(self, database=sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False),
                        lock=threading.RLock())  # fmt: skip
        with self.lock:
            columns = self._varied_columns()
            self.database.backup(other.database)
        other.database.create_function("varied_by", 0, lambda: 1 + rng.uniform(-percent, percent) / 100)
        for table, column in columns:
            other._run("vary", f"UPDATE {table} SET {column} = {column} * varied_by() WHERE {column} IS NOT NULL", {})
        other._close_off()
        return other

    def _varied_columns(self) -> list[tuple[str, str]]:
        """Quoted (table, column) pairs: those named in ``vary``, else every column that holds decimal numbers."""
        if self.vary:
            pairs = [name.partition(".") for name in self.vary]
            return [(quoted(table), quoted(column)) for table, _, column in pairs]
        found = []
        for (table,) in self._run("vary", "SELECT name FROM sqlite_master WHERE type = 'table'", {}):
            named = self.database.execute(f"SELECT * FROM {quoted(table)} LIMIT 0").description
            for column in (quoted(about[0]) for about in named):
                real = f"SELECT 1 FROM {quoted(table)} WHERE typeof({column}) = 'real' LIMIT 1"
                if self._run("vary", real, {}):
                    found.append((quoted(table), column))
        return found


def _plain(value: Value) -> Value:
    """Lists and maps as JSON text, which SQLite's json functions read."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)
