"""A decision model's scratch copy: DuckDB in memory, in a worker. It opens on JSON in the place of a URL (``program``).

A statement is a job of the parent: ``choice``, ``outcomes``, ``present``, ``solve``. The model's own statements are
checked on their trees; the database has no way to files, extensions or settings; the parent watches time and memory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError, ToolError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.engines.duckdb import settings
from decisor.tools.databases.sandbox.models import alone, looking, together
from decisor.tools.databases.sandbox.models.choosing import moved
from decisor.tools.databases.sandbox.models.parts import Parts
from decisor.tools.databases.sandbox.models.program import Program, TableColumn, read
from decisor.tools.databases.sandbox.models.results import Results, joined
from decisor.tools.databases.sandbox.models.statements import NEAR, Statement, assigned, changes, with_factor
from decisor.tools.databases.sandbox.models.tables import load
from decisor.tools.databases.sandbox.models.versions import Unfit, Versions
from decisor.tools.databases.sandbox.statement_size import refuse
from decisor.tools.databases.sandbox.values import plain
from decisor.types import Table

if TYPE_CHECKING:
    import duckdb

MAX_CHOICE = 200_000
CELL_CHARS = 1000
FEW_ROWS = 10_000
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


@dataclass(eq=False)
class Machine:
    """``tables``: lower case -> columns, of the copied tables. ``columns``: of the query of choice.
    ``dense``: tables of which a candidate changes many rows."""

    db: duckdb.DuckDBPyConnection
    program: Program
    parts: Parts
    tables: dict[str, tuple[str, ...]]
    columns: tuple[str, ...] = ()
    unfit: str = ""
    dense: set[str] = field(default_factory=set)

    def check(self, statement: str) -> str:
        raise refuse("a decision model takes only the jobs of its parent.")

    def run(self, statement: str, parameters: Mapping[str, Any], caps: Caps) -> Table:
        """Raises ToolError saying which part of the model fails, and why."""
        match statement:
            case "choice":
                return self.choice()
            case "outcomes":
                began = time.process_time()
                results = self.outcomes(**parameters)
                results.cpu = time.process_time() - began
                return results.table()
            case "present":
                return self.present(**parameters)
            case "solve":
                return self.solve(**parameters)
            case "reverse":
                return looking.reverse(self.db, self.tables)
            case "effects":
                self.choice()
                return looking.effects(self.db, self.program, self.parts, self.columns, **parameters)
            case "touched":
                return looking.touched(self.db, self.before("", **parameters))
            case "counts":
                return Table(("change", "recompute"), ((len(self.parts.change), len(self.parts.recompute)),))
            case "joins":
                return looking.joins(self.db, self.parts, self.tables)
            case _:
                raise ToolError(f"a decision model has no job {statement!r}.")

    def close(self) -> None:
        self.db.close()

    def choice(self) -> Table:
        """The rows that may be chosen, kept under numbers from 0 in ``__rows``."""
        if self.parts.choice is None:
            raise ToolError("the model has no choice.")
        if not self.columns:
            cursor = alone.execute(self.db, self.parts.choice, {})
            columns = tuple(name for name, *_ in cursor.description or ())
            if len({name.lower() for name in columns}) < len(columns):
                raise ToolError("choice: two columns have one name; give them names (AS).")
            query = self.parts.choice.tree.sql("duckdb")
            numbered = f"SELECT *, row_number() OVER () - 1 AS __r FROM ({query}) LIMIT {MAX_CHOICE + 1}"
            self.db.execute(f"CREATE TABLE __rows AS {numbered}")
            self._decimals()
            self.columns = columns
        rows = self.db.execute('SELECT * EXCLUDE ("__r") FROM __rows ORDER BY "__r"').fetchall()
        if len(rows) > MAX_CHOICE:
            raise ToolError(f"choice gives more than {MAX_CHOICE:,} rows.")
        return Table(self.columns, tuple(tuple(plain(cell, CELL_CHARS) for cell in row) for row in rows))

    def _decimals(self) -> None:
        """DECIMALs of the choice as DOUBLE: an exact 12.25 and a 12.25 of the data are one candidate. Whole ones stay
        exact."""
        for name, kind, *_ in self.db.execute("DESCRIBE __rows").fetchall():
            if kind.startswith("DECIMAL"):
                exact = "HUGEINT" if kind.endswith(",0)") else "DOUBLE"
                self.db.execute(f"ALTER TABLE __rows ALTER {quoted(name)} TYPE {exact}")

    def outcomes(
        self, candidates: Sequence[Sequence[int]], scenario: str = "", changes: str = "",
        seeds: Sequence[int] = (), most: int = 3, single: bool = False,
        skip: int | None = None, varies: Sequence[str] | None = None, factors: Sequence[float] = (),
    ) -> Results:  # fmt: skip
        """Of candidates, by the rows they consist of; in each of the trials that ``seeds`` names, first those of the
        first. ``single``: one by one. ``skip``: without this statement of change and recompute, from 0. ``varies``:
        only these inputs vary (table.column), as their spreads say; None: all. ``factors``: each is a trial, without
        seeds, in which ``$__factor`` of the changes is it."""
        import duckdb

        if varies is not None:
            some = tuple(one for one in self.program.spreads if f"{one.table}.{one.column}" in varies)
            narrowed = replace(self, program=replace(self.program, spreads=some))
            results = narrowed.outcomes(candidates, scenario, changes, seeds, most, single, skip, None, factors)
            self.columns, self.unfit = narrowed.columns, narrowed.unfit
            return results

        if not self.columns:
            self.choice()
        before = self.before(scenario, changes)
        parts = self.parts.without(skip)
        if not single and not self.unfit:
            try:
                return self._together(parts, before, seeds, factors, candidates, most)
            except (Unfit, duckdb.Error) as error:
                why = alone.complaint(error)
            results = self._alone(parts, before, seeds, factors, candidates, most)
            self.unfit = why
        else:
            results = self._alone(parts, before, seeds, factors, candidates, most)
        results.how = f"one by one: {self.unfit}" if self.unfit else "one by one"
        return results

    def present(self, scenario: str = "", changes: str = "", seed: int | None = None) -> Table:
        """Measure and number, with nothing chosen."""
        self.choice()
        numbers = alone.present(self.db, self.program, self.parts, self.before(scenario, changes), seed)
        values = ((name, None if value is None or value != value else value) for name, value in numbers.items())
        return Table(("measure", "value"), tuple(values))

    def solve(
        self, seconds: float, scenario: str = "", changes: str = "", forced: Sequence[tuple[str, int, float]] = (),
        excluded: Sequence[Sequence[int]] = (), seed: int | None = None,
    ) -> Table:  # fmt: skip
        """What the solver proposes, measured by the model's SQL."""
        from decisor.tools.databases.sandbox.models.solving import propose

        before = self.before(scenario, changes)
        return propose(self.db, self.program, self.parts, before, seconds, forced, excluded, seed)

    def before(self, scenario: str, text: str) -> list[Statement]:
        """What holds for all candidates: a scenario, and more changes."""
        if scenario and scenario not in self.parts.scenarios:
            raise ToolError(f"there is no scenario {scenario}; there is {', '.join(self.parts.scenarios) or 'none'}.")
        more = changes("what-if", text, self.program.parameters)
        for statement in more:
            self.widen(statement)
        return [*(self.parts.scenarios[scenario] if scenario else ()), *more]

    def widen(self, statement: Statement) -> None:
        """Whole numbers that a statement sets are held as DOUBLE: they would be rounded."""
        if statement.target not in self.tables:
            raise ToolError(f"{statement.part}: there is no table {statement.target} to change; there is "
                            f"{', '.join(self.tables) or 'none of those that it names'}.")  # fmt: skip
        kinds = dict(row[:2] for row in self.db.execute(f"DESCRIBE {quoted(statement.target)}").fetchall())
        lower = {name.lower(): name for name in kinds}
        for name in assigned(statement):
            column = lower.get(name.lower(), "")
            if column and kinds[column] in WHOLE:
                self.db.execute(f"ALTER TABLE {quoted(statement.target)} ALTER {quoted(column)} TYPE DOUBLE")

    def _together(
        self, parts: Parts, before: Sequence[Statement], seeds: Sequence[int], factors: Sequence[float],
        places: Sequence[Sequence[int]], most: int,
    ) -> Results:  # fmt: skip
        db, program = self.db, self.program
        names = self.columns if program.single else ()
        versions = Versions(db, dict(self.tables), names, dense=self.dense)
        try:
            together.prepare(db, program, versions, before, seeds, factors)
            trials = max(1, len(seeds), len(factors))
            anew = moved(parts.choice, self.columns, before, program.spreads if seeds else ())
            return together.evaluate(db, program, parts, versions, places, self.columns, most, trials, anew)
        finally:
            versions.drop()

    def _alone(
        self, parts: Parts, before: Sequence[Statement], seeds: Sequence[int], factors: Sequence[float],
        places: Sequence[Sequence[int]], most: int,
    ) -> Results:  # fmt: skip
        befores = [[with_factor(one, factor) for one in before] for factor in factors] or [list(before)]
        anew = moved(parts.choice, self.columns, before, self.program.spreads if seeds else ())
        every = [
            alone.evaluate(self.db, self.program, parts, here, seed, places, self.columns, most, anew)
            for here in befores
            for seed in (list[int | None](seeds) or [None])
        ]
        return joined(every, len(places))


def threads(tables: Mapping[str, Sequence[TableColumn]]) -> int:
    """A second thread costs more than it gives where a statement takes milliseconds."""
    return 1 if sum(len(columns[0].values) for columns in tables.values() if columns) <= FEW_ROWS else 2


def connect(url: str, caps: Caps) -> Machine:
    """Raises SetupError where the tables do not fit, or a statement is refused."""
    import duckdb

    program, tables = read(url)
    try:
        parts = Parts.of(program)
    except ToolError as error:
        raise SetupError(str(error)) from error
    db = duckdb.connect(config={**settings(caps.memory_mb), "threads": str(threads(tables))})
    load(db, tables, program.doubles)
    db.execute(NEAR)
    db.execute("SET python_enable_replacements = false")
    db.execute("SET lock_configuration = true")
    names = {name.lower(): tuple(one.name for one in columns) for name, columns in tables.items()}
    machine = Machine(db, program, parts, names)
    try:
        for statement in parts.every():
            if statement.target:
                machine.widen(statement)
    except ToolError as error:
        raise SetupError(str(error)) from error
    return machine
