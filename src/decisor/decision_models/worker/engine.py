"""The engine of a decision model's scratch copy:

DuckDB in memory, in a worker, which no URL names.

It opens on JSON in the place of a URL (``program``). A statement is a job of the parent, such as ``choice``,
``outcomes``, ``present`` or ``solve``; other jobs, for people and checks, show what the statements do to real rows,
find joins that count rows twice, and reverse rows. The model's own statements are checked on their trees; the database
has no way to files, extensions or settings; the parent watches time and memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from decisor.decision_models.worker import execution as alone
from decisor.decision_models.worker import execution as together
from decisor.decision_models.worker.execution import changed_inputs, choice_table, chosen_row_values, execute_statement
from decisor.decision_models.worker.inputs import Results, find_choice_reread, join_trials
from decisor.decision_models.worker.program import (
    NEAR,
    ModelStatements,
    Program,
    Statement,
    TableColumn,
    assigned_columns,
    fill_factor,
    load_model_tables,
    parse_change_statements,
    parse_program,
)
from decisor.decision_models.worker.set_based import Unfit, Versions
from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import sql_refusal
from decisor.sandbox.engine import Caps, Engine, EngineDatabase
from decisor.sandbox.engines.duckdb import duckdb_connection_settings
from decisor.sandbox.wire import cell_as_plain_value
from decisor.system.text import quote_identifier
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb


def connect_model(url: str, caps: Caps) -> EngineDatabase:
    """Open the scratch copy of a decision model.

    Raises SetupError if the tables do not fit, or a statement of the model is refused.
    """
    pass

    return connect_machine(url, caps)


ENGINE = Engine(name="model", title="decision model", schemes=(), form="jobs", connect=connect_model)


SAMPLE_CELL_CHARS = 60
Side = tuple[str, str]
"""A table and a column."""


def reverse_rows(db: duckdb.DuckDBPyConnection, tables: Mapping[str, tuple[str, ...]]) -> Table:
    """Reverse the order of the rows of every table; a second call restores it."""
    for name in tables:
        db.execute(
            f"CREATE OR REPLACE TABLE {quote_identifier(name)} AS SELECT * FROM {quote_identifier(name)} "
            "ORDER BY rowid DESC"
        )
    return Table((), ())


def read_change_effects(
    db: duckdb.DuckDBPyConnection,
    program: Program,
    parts: ModelStatements,
    columns: Sequence[str],
    candidate: Sequence[int],
) -> Table:
    """Return the effect of each statement of the change for one candidate.

    Each row has the statement, its table, the rows before, and the count and first of the rows that go and that come.
    """
    rows: list[tuple[Value, ...]] = []
    with changed_inputs(db, program, (), None), choice_table(db, candidate):
        values = chosen_row_values(db, columns, candidate) if program.single else {}
        for at, statement in enumerate(parts.change):
            old = f"__old_{at}"
            db.execute(f"CREATE TEMP TABLE {old} AS SELECT * FROM {quote_identifier(statement.target)}")
            execute_statement(db, statement, values)
            gone = table_difference(db, old, statement.target)
            come = table_difference(db, statement.target, old)
            count = db.execute(f"SELECT count(*) FROM {old}").fetchall()[0][0]
            rows.append((statement.tree.sql("duckdb"), statement.target, count, *gone, *come))
    return Table(("statement", "table", "rows", "gone", "first_gone", "come", "first_come"), tuple(rows))


def count_updated_rows(db: duckdb.DuckDBPyConnection, updates: Sequence[Statement]) -> Table:
    """Count the rows that each UPDATE would change in the present tables, and all rows of the table."""
    rows = []
    for statement in updates:
        where = statement.tree.args.get("where")
        here = exp.select("count(*)").from_(statement.tree.this.copy())
        query = here.where(where.this.copy()) if where is not None else here
        count = execute_statement(db, replace(statement, tree=query), {}).fetchall()[0][0]
        rows.append((count, db.execute(f"SELECT count(*) FROM {quote_identifier(statement.target)}").fetchall()[0][0]))
    return Table(("rows", "whole"), tuple(rows))


def table_difference(db: duckdb.DuckDBPyConnection, one: str, other: str) -> tuple[Value, Value]:
    """Return how many rows one table has and the other lacks, and the first of them as a mapping."""
    query = f"SELECT * FROM {quote_identifier(one)} EXCEPT ALL SELECT * FROM {quote_identifier(other)}"
    count = db.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0]
    cursor = db.execute(f"SELECT * FROM ({query}) ORDER BY ALL LIMIT 1")
    names = [name for name, *_ in cursor.description or ()]
    first = cursor.fetchall()
    return count, {
        name: cell_as_plain_value(cell, SAMPLE_CELL_CHARS) for name, cell in zip(names, first[0], strict=True)
    } if first else None


def find_suspicious_joins(
    db: duckdb.DuckDBPyConnection, parts: ModelStatements, tables: Mapping[str, tuple[str, ...]]
) -> Table:
    """Find joins of measures and rules that count rows several times or lose rows.

    They repeat rows if their columns tell the rows of neither table apart. Each result has the part, both columns, the
    fault and the number of rows.
    """
    rows: list[tuple[Value, ...]] = []
    for statement in (*parts.measures.values(), *parts.rules.values()):
        for left, right in set(joined_column_pairs(statement, tables)):
            counts = [count(db, *side) for side in (left, right)]
            names = [".".join(side) for side in (left, right)]
            if all(every > distinct for every, distinct in counts):
                rows.append((statement.part, *names, "twice", counts[0][0]))
            for (table, column), other in ((left, right), (right, left)):
                lost = db.execute(
                    f"SELECT count(*) FROM {quote_identifier(table)} WHERE {quote_identifier(column)} NOT IN (SELECT "
                    f"{quote_identifier(other[1])} "
                    f"FROM {quote_identifier(other[0])} WHERE {quote_identifier(other[1])} IS NOT NULL) "
                    f"OR {quote_identifier(column)} IS NULL"
                ).fetchall()[0][0]
                if lost and count(db, *other)[0]:
                    rows.append((statement.part, f"{table}.{column}", ".".join(other), "lost", lost))
    return Table(("part", "left", "right", "what", "rows"), tuple(sorted(rows, key=str)))


def count(db: duckdb.DuckDBPyConnection, table: str, column: str) -> tuple[int, int]:
    every, distinct = db.execute(
        f"SELECT count(*), count(DISTINCT {quote_identifier(column)}) FROM {quote_identifier(table)}"
    ).fetchall()[0]
    return every, distinct


def joined_column_pairs(statement: Statement, tables: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Side, Side]]:
    """Yield pairs of columns of two tables that an inner join with one condition holds equal."""
    for select in statement.tree.find_all(exp.Select):
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            continue
        named = {
            one.alias_or_name.lower(): one.name.lower()
            for one in [source.this, *(join.this for join in select.args.get("joins") or [])]
            if isinstance(one, exp.Table) and one.name.lower() in tables
        }
        for join in select.args.get("joins") or []:
            on = join.args.get("on")
            if join.side or not isinstance(on, exp.EQ):
                continue
            sides = [side_of(one, named, tables) for one in (on.this, on.expression)]
            if sides[0] and sides[1] and sides[0][0] != sides[1][0]:
                yield sides[0], sides[1]


def side_of(tree: exp.Expr, named: Mapping[str, str], tables: Mapping[str, tuple[str, ...]]) -> Side | None:
    if not isinstance(tree, exp.Column):
        return None
    if tree.table:
        table = named.get(tree.table.lower())
        return (table, tree.name) if table else None
    owners = [table for table in set(named.values()) if tree.name.lower() in map(str.lower, tables[table])]
    return (owners[0], tree.name) if len(owners) == 1 else None


MAX_CHOICE = 200_000
CELL_CHARS = 1000
FEW_ROWS = 10_000
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


@dataclass(eq=False)
class Machine:
    """The scratch copy of a decision model, which runs the jobs of its parent. tables: the columns of the copied
    tables, by lower-case name. columns: of the query of choice. dense: tables of which a candidate changes many
    rows.
    """

    db: duckdb.DuckDBPyConnection
    program: Program
    parts: ModelStatements
    tables: dict[str, tuple[str, ...]]
    columns: tuple[str, ...] = ()
    unfit: str = ""
    dense: set[str] = field(default_factory=set)

    def check(self, statement: str) -> str:
        raise sql_refusal("a decision model takes only the jobs of its parent.")

    def run(self, statement: str, parameters: Mapping[str, Any], caps: Caps) -> Table:
        """Run a job. Raises ToolError with the part of the model that fails, and the reason."""
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
                return reverse_rows(self.db, self.tables)
            case "effects":
                self.choice()
                return read_change_effects(self.db, self.program, self.parts, self.columns, **parameters)
            case "touched":
                return count_updated_rows(self.db, self.before("", **parameters))
            case "counts":
                return Table(("change", "recompute"), ((len(self.parts.change), len(self.parts.recompute)),))
            case "joins":
                return find_suspicious_joins(self.db, self.parts, self.tables)
            case _:
                raise ToolError(f"a decision model has no job {statement!r}.")

    def close(self) -> None:
        self.db.close()

    def choice(self) -> Table:
        """Return the rows that may be chosen, and keep them under numbers from 0 in ``__rows``."""
        if self.parts.choice is None:
            raise ToolError("the model has no choice.")
        if not self.columns:
            cursor = alone.execute_statement(self.db, self.parts.choice, {})
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
        return Table(self.columns, tuple(tuple(cell_as_plain_value(cell, CELL_CHARS) for cell in row) for row in rows))

    def _decimals(self) -> None:
        """Convert DECIMAL columns of the choice to DOUBLE, so that 12.25 of both kinds is one candidate.

        DECIMALs without digits behind the point stay exact.
        """
        for name, kind, *_ in self.db.execute("DESCRIBE __rows").fetchall():
            if kind.startswith("DECIMAL"):
                exact = "HUGEINT" if kind.endswith(",0)") else "DOUBLE"
                self.db.execute(f"ALTER TABLE __rows ALTER {quote_identifier(name)} TYPE {exact}")

    def outcomes(
        self,
        candidates: Sequence[Sequence[int]],
        scenario: str = "",
        changes: str = "",
        seeds: Sequence[int] = (),
        most: int = 3,
        single: bool = False,
        skip: int | None = None,
        varies: Sequence[str] | None = None,
        factors: Sequence[float] = (),
    ) -> Results:
        """Return the outcomes of candidates, in each of the trials that ``seeds`` names.

        Those of the first trial come first. candidates: the rows that each consists of. single: evaluate one by one.
        skip: the number of a statement of change and recompute to leave out, from 0. varies: the only inputs that vary
        (table.column), None for all. factors: each is a trial without seeds, and the value of ``$__factor`` in the
        changes.
        """
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
                why = alone.duckdb_complaint(error)
            results = self._alone(parts, before, seeds, factors, candidates, most)
            self.unfit = why
        else:
            results = self._alone(parts, before, seeds, factors, candidates, most)
        results.how = f"one by one: {self.unfit}" if self.unfit else "one by one"
        return results

    def present(self, scenario: str = "", changes: str = "", seed: int | None = None) -> Table:
        """Return each measure with nothing chosen."""
        self.choice()
        numbers = alone.measure_present(self.db, self.program, self.parts, self.before(scenario, changes), seed)
        values = ((name, None if value is None or value != value else value) for name, value in numbers.items())
        return Table(("measure", "value"), tuple(values))

    def solve(
        self,
        seconds: float,
        scenario: str = "",
        changes: str = "",
        forced: Sequence[tuple[str, int, float]] = (),
        excluded: Sequence[Sequence[int]] = (),
        seed: int | None = None,
    ) -> Table:
        """Return the solver's proposal, measured by the model's SQL."""
        from decisor.decision_models.worker.solver import propose_choice

        before = self.before(scenario, changes)
        return propose_choice(self.db, self.program, self.parts, before, seconds, forced, excluded, seed)

    def before(self, scenario: str, text: str) -> list[Statement]:
        """Return the statements that hold for all candidates: a scenario, and further changes."""
        if scenario and scenario not in self.parts.scenarios:
            raise ToolError(f"there is no scenario {scenario}; there is {', '.join(self.parts.scenarios) or 'none'}.")
        more = parse_change_statements("what-if", text, self.program.parameters)
        for statement in more:
            self.widen(statement)
        return [*(self.parts.scenarios[scenario] if scenario else ()), *more]

    def widen(self, statement: Statement) -> None:
        """Convert columns of whole numbers that a statement sets to DOUBLE: the values would be rounded."""
        if statement.target not in self.tables:
            raise ToolError(
                f"{statement.part}: there is no table {statement.target} to change; there is "
                f"{', '.join(self.tables) or 'none of those that it names'}."
            )
        kinds = dict(row[:2] for row in self.db.execute(f"DESCRIBE {quote_identifier(statement.target)}").fetchall())
        lower = {name.lower(): name for name in kinds}
        for name in assigned_columns(statement):
            column = lower.get(name.lower(), "")
            if column and kinds[column] in WHOLE:
                self.db.execute(
                    f"ALTER TABLE {quote_identifier(statement.target)} ALTER {quote_identifier(column)} TYPE DOUBLE"
                )

    def _together(
        self,
        parts: ModelStatements,
        before: Sequence[Statement],
        seeds: Sequence[int],
        factors: Sequence[float],
        places: Sequence[Sequence[int]],
        most: int,
    ) -> Results:
        db, program = self.db, self.program
        names = self.columns if program.single else ()
        versions = Versions(db, dict(self.tables), names, dense=self.dense)
        try:
            together.prepare_versions(db, program, versions, before, seeds, factors)
            trials = max(1, len(seeds), len(factors))
            anew = find_choice_reread(parts.choice, self.columns, before, program.spreads if seeds else ())
            return together.evaluate_together(db, program, parts, versions, places, self.columns, most, trials, anew)
        finally:
            versions.drop()

    def _alone(
        self,
        parts: ModelStatements,
        before: Sequence[Statement],
        seeds: Sequence[int],
        factors: Sequence[float],
        places: Sequence[Sequence[int]],
        most: int,
    ) -> Results:
        befores = [[fill_factor(one, factor) for one in before] for factor in factors] or [list(before)]
        anew = find_choice_reread(parts.choice, self.columns, before, self.program.spreads if seeds else ())
        every = [
            alone.evaluate_one_by_one(self.db, self.program, parts, here, seed, places, self.columns, most, anew)
            for here in befores
            for seed in (list[int | None](seeds) or [None])
        ]
        return join_trials(every, len(places))


def thread_count(tables: Mapping[str, Sequence[TableColumn]]) -> int:
    """Return the number of DuckDB's threads.

    A second thread costs more than it gives if statements take milliseconds.
    """
    return 1 if sum(len(columns[0].values) for columns in tables.values() if columns) <= FEW_ROWS else 2


def connect_machine(url: str, caps: Caps) -> Machine:
    """Open the scratch copy. Raises SetupError if the tables do not fit, or a statement is refused."""
    import duckdb

    program, tables = parse_program(url)
    try:
        parts = ModelStatements.of(program)
    except ToolError as error:
        raise SetupError(str(error)) from error
    db = duckdb.connect(config={**duckdb_connection_settings(caps.memory_mb), "threads": str(thread_count(tables))})
    load_model_tables(db, tables, program.doubles)
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
