"""The engine of a decision model's scratch copy: DuckDB in memory, in a worker, which no URL names.

It opens on JSON in the place of a URL (``copies``). A statement is a job of the parent, such as ``choice``,
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

from decisor.decision_models.copies import model_adapter, parse_machine_content
from decisor.decision_models.schema import DecisionModel
from decisor.decision_models.worker.execution import (
    Evaluation,
    changed_inputs,
    column_names,
    create_choice,
    create_named_tables,
    duckdb_complaint,
    evaluate_batched,
    evaluate_one_by_one,
    execute_statement,
    measure_present,
)
from decisor.decision_models.worker.inputs import Results
from decisor.decision_models.worker.lift import Unfit
from decisor.decision_models.worker.program import (
    NAN,
    NEAR,
    ModelStatements,
    Statement,
    apply_corrections,
    assigned_columns,
    load_model_tables,
    parse_change_statements,
    parse_label,
    parse_query,
    query_of_rows,
)
from decisor.decision_models.worker.worlds import QueryCache
from decisor.errors import SetupError, ToolError
from decisor.sandbox.dialect import sql_refusal
from decisor.sandbox.engine import Caps, Engine
from decisor.sandbox.engines.duckdb import duckdb_connection_settings
from decisor.sandbox.wire import cell_as_plain_value
from decisor.system.text import quote_identifier
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb


MAX_CHOICE = 200_000
CELL_CHARS = 1000
SAMPLE_CELL_CHARS = 60
FEW_ROWS = 10_000
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
Side = tuple[str, str]
"""A table and a column."""


@dataclass(eq=False)
class Machine:
    """The scratch copy of a decision model, which runs the jobs of its parent."""

    db: duckdb.DuckDBPyConnection
    model: DecisionModel
    parts: ModelStatements
    tables: dict[str, tuple[str, ...]]
    """Columns of the copied tables, by the table's name in lower case."""
    columns: tuple[str, ...] = ()
    """Columns of the query of choice; none before it was run."""
    unfit: str = ""
    """Why the statements cannot be batched; '' as long as they were."""
    dense: set[str] = field(default_factory=set)
    """Tables of which a candidate changes many rows."""
    caches: dict[str, QueryCache] = field(default_factory=dict)
    """What requests leave for later ones, by scenario."""
    rows: str = "__rows"
    """Table of the rows that may be chosen."""
    variant: tuple[str, Machine] | None = None
    """The last changed model on the same tables, as it was written, and its machine."""

    def check(self, statement: str) -> str:
        raise sql_refusal("a decision model takes only the jobs of its parent.")

    def run(self, statement: str, parameters: Mapping[str, Any], caps: Caps) -> Table:
        """Run a job. Raises ToolError with the part of the model that fails, and the reason."""
        if text := parameters.get("variant"):
            rest = {name: value for name, value in parameters.items() if name != "variant"}
            return self.lay_over(text).run(statement, rest, caps)
        match statement:
            case "choice":
                return self.choice()
            case "outcomes":
                # CPU time, for the wall time of a busy machine does not tell how much there was to do.
                began = time.process_time()
                results = self.outcomes(**parameters)
                results.cpu = time.process_time() - began
                return results.table()
            case "present":
                return self.present(**parameters)
            case "solve":
                from decisor.decision_models.worker.plan import propose_plan

                before = self.before(parameters["scenario"], parameters["changes"])
                model, parts = self.statements_in(parameters["scenario"])
                return propose_plan(self.db, model, parts, before, {**parameters, "columns": self.tables})
            case "reverse":  # a second time restores the order
                for name in map(quote_identifier, self.tables):
                    self.db.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} ORDER BY rowid DESC")
                return Table((), ())
            case "effects":
                return self.change_effects(**parameters)
            case "touched":
                return self.count_updated_rows(**parameters)
            case "counts":
                return Table(("change", "recompute"), ((len(self.parts.change), len(self.parts.recompute)),))
            case "arguments":
                return self.list_arguments()
            case "joins":
                return find_suspicious_joins(self.db, self.parts, self.tables)
            case _:
                raise ToolError(f"a decision model has no job {statement!r}.")

    def close(self) -> None:
        self.db.close()

    def lay_over(self, text: str) -> Machine:
        """Return the machine of a changed model on the same tables."""
        if self.variant is None or self.variant[0] != text:
            self.db.execute("DROP TABLE IF EXISTS __rows_variant")
            model = model_adapter().validate_json(text)
            machine = Machine(self.db, model, ModelStatements.of(model), self.tables, rows="__rows_variant")
            machine.widen_changed_columns()
            self.variant = text, machine
        return self.variant[1]

    def choice(self) -> Table:
        """Return the rows that may be chosen, and keep them under numbers from 0 in ``rows``.

        The last column is the name of a row, None if the file has no label.
        """
        statement, choice = self.parts.choice, self.model.choice
        if statement is None or choice is None:
            raise ToolError("the model has no choice.")
        if not self.columns:
            named = [name for name in self.parts.tables if name in self.parts.reads(statement)]
            create_named_tables(self.db, self.parts, set(self.parts.tables) - set(named))
            columns = tuple(column_names(execute_statement(self.db, statement)))
            if len({name.lower() for name in columns}) < len(columns):
                raise ToolError("choice: two columns have one name; give them names (AS).")
            # One row more than allowed tells that there are too many.
            numbered = f"SELECT *, row_number() OVER () - 1 AS __r FROM ({statement.text}) LIMIT {MAX_CHOICE + 1}"
            self.db.execute(f"CREATE TABLE {self.rows} AS {numbered}")
            for name in reversed(named):
                self.db.execute(f"DROP VIEW {quote_identifier(name)}")
            for name, kind, *_ in self.db.execute(f"DESCRIBE {self.rows}").fetchall():
                if kind.startswith("DECIMAL"):  # as DOUBLE, 12.25 of both kinds is one candidate
                    exact = "HUGEINT" if kind.endswith(",0)") else "DOUBLE"
                    self.db.execute(f"ALTER TABLE {self.rows} ALTER {quote_identifier(name)} TYPE {exact}")
            self.columns = columns
        label = parse_label(choice, self.model.parameters)
        name = f"CAST({label.sql('duckdb')} AS VARCHAR)" if label is not None else "NULL"
        listed = f'SELECT r.* EXCLUDE ("__r"), {name} FROM {self.rows} AS r ORDER BY "__r"'
        rows = self.db.execute(listed).fetchall()
        if len(rows) > MAX_CHOICE:
            raise ToolError(f"choice gives more than {MAX_CHOICE:,} rows.")
        cells = tuple(tuple(cell_as_plain_value(cell, CELL_CHARS) for cell in row) for row in rows)
        return Table((*self.columns, "__label"), cells)

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
        unjudged: bool = False,
    ) -> Results:
        """Return the outcomes of candidates, in each of the trials that ``seeds`` or ``factors`` names.

        Those of the first trial come first.

        Args:
            candidates: rows of the choice that each consists of.
            single: evaluate one by one.
            skip: number of a statement of change and recompute to leave out, from 0.
            varies: inputs (table.column) that alone vary. None means all.
            factors: value of ``$__factor`` in the changes, in each trial.
            unjudged: find the rows for which the condition of a rule is NULL, in place of those that break it.
        """
        import duckdb

        if not self.columns:
            self.choice()
        model = self.model
        if varies is not None:
            model = replace(model, inputs=tuple(column for column in model.inputs if column.name in varies))
        before = self.before(scenario, changes)
        parts = self.statements_in(scenario)[1].without(skip)
        parts = parts.judging_nothing(model) if unjudged else parts
        task = Evaluation(self.db, model, parts, self.columns, self.rows, candidates, before, seeds, factors, most)
        reason = self.unfit
        if not single and not self.unfit:
            try:
                return evaluate_batched(task, self.cache_of(scenario), self.dense)
            except (Unfit, duckdb.Error) as error:
                # What cannot be rewritten, or fails when rewritten, runs as the file has it.
                reason = duckdb_complaint(error)
        results = evaluate_one_by_one(task)
        # Only now: a statement that fails one by one too is at fault itself, not the rewriting.
        self.unfit = results.reason = reason
        return results

    def present(self, scenario: str = "", changes: str = "", seed: int | None = None) -> Table:
        """Return each measure with nothing chosen, part by part."""
        self.choice()
        before = self.before(scenario, changes)
        parts = self.statements_in(scenario)[1]
        task = Evaluation(self.db, self.model, parts, self.columns, self.rows, (), before)
        return Table(("measure", "part", "value"), tuple(measure_present(task, seed)))

    def statements_in(self, scenario: str) -> tuple[DecisionModel, ModelStatements]:
        """Return the model and its statements, with the parameters of a scenario."""
        found = next((one for one in self.model.scenarios if one.name == scenario), None)
        if found is None or not found.parameter:
            return self.model, self.parts
        model = replace(self.model, parameters={**self.model.parameters, **found.parameter})
        return model, ModelStatements.of(model)

    def cache_of(self, scenario: str) -> QueryCache:
        if scenario not in self.caches:
            columns = {name: tuple(map(str.lower, names)) for name, names in self.tables.items()}
            self.caches[scenario] = QueryCache(columns)
        return self.caches[scenario]

    def before(self, scenario: str, text: str) -> list[Statement]:
        """Return the statements that hold for all candidates: a scenario, and further changes."""
        if scenario and scenario not in self.parts.scenarios:
            raise ToolError(f"there is no scenario {scenario}; there is {', '.join(self.parts.scenarios) or 'none'}.")
        changes = parse_change_statements("what-if", text, self.model.parameters)
        for statement in changes:
            self.widen(statement)
        return [*(self.parts.scenarios[scenario] if scenario else ()), *changes]

    def widen_changed_columns(self) -> None:
        for statement in self.parts.every():
            if statement.target:
                self.widen(statement)

    def widen(self, statement: Statement) -> None:
        """Convert columns of whole numbers that a statement sets to DOUBLE: the values would be rounded."""
        if statement.target not in self.tables:
            raise ToolError(
                f"{statement.part}: there is no table {statement.target} to change; there is "
                f"{', '.join(self.tables) or 'none of those that it names'}."
            )
        table = quote_identifier(statement.target)
        kinds = {row[0].lower(): row[:2] for row in self.db.execute(f"DESCRIBE {table}").fetchall()}
        for name in assigned_columns(statement):
            column, kind = kinds.get(name.lower(), ("", ""))
            if kind in WHOLE:
                self.db.execute(f"ALTER TABLE {table} ALTER {quote_identifier(column)} TYPE DOUBLE")

    def change_effects(self, candidate: Sequence[int]) -> Table:
        """Return the effect of each statement of the change for one candidate.

        Each row has the statement, its table, the rows before, and the count and first of the rows that go and come.
        """
        self.choice()
        rows: list[tuple[Value, ...]] = []
        # In a transaction that is rolled back, so that nothing of it stays.
        with changed_inputs(self.db, self.model, self.parts, (), None):
            create_choice(Evaluation(self.db, self.model, self.parts, self.columns, self.rows, ()), candidate)
            create_named_tables(self.db, self.parts)
            for at, statement in enumerate(self.parts.change):
                old, table = f"__old_{at}", quote_identifier(statement.target)
                self.db.execute(f"CREATE TEMP TABLE {old} AS SELECT * FROM {table}")
                execute_statement(self.db, statement)
                gone, come = self.difference(old, table), self.difference(table, old)
                rows.append((statement.tree.sql("duckdb"), statement.target, self.count(old), *gone, *come))
        return Table(("statement", "table", "rows", "gone", "first_gone", "come", "first_come"), tuple(rows))

    def difference(self, table: str, without: str) -> tuple[Value, Value]:
        """Return how many rows one table has and the other lacks, and the first of them as a mapping."""
        # ALL, for of two equal rows one may go.
        query = f"SELECT * FROM {table} EXCEPT ALL SELECT * FROM {without}"
        cursor = self.db.execute(f"SELECT * FROM ({query}) ORDER BY ALL LIMIT 1")
        names, rows = column_names(cursor), cursor.fetchall()
        plain = [[cell_as_plain_value(cell, SAMPLE_CELL_CHARS) for cell in row] for row in rows]
        return self.count(f"({query})"), dict(zip(names, plain[0], strict=True)) if plain else None

    def count_updated_rows(self, text: str) -> Table:
        """Count the rows that each UPDATE of one column would change now, and all rows of the table."""
        rows = []
        for statement in self.before("", text):
            # FROM and the like would read other rows.
            clauses = {name for name, value in statement.tree.args.items() if value}
            columns = assigned_columns(statement)
            if len(columns) != 1 or len(statement.tree.expressions) != 1 or clauses - {"this", "expressions", "where"}:
                place = ".".join([statement.target, *columns[:1]])
                raise ToolError(f"Only {place} may be changed here, by one expression and one condition.")
            where = statement.tree.args.get("where")
            query = exp.select("count(*)").from_(statement.tree.this.copy())
            query = query.where(where.this.copy()) if where is not None else query
            count = execute_statement(self.db, replace(statement, tree=query)).fetchall()[0][0]
            rows.append((count, self.count(quote_identifier(statement.target))))
        return Table(("rows", "whole"), tuple(rows))

    def list_arguments(self) -> Table:
        """Return the rows that each function is to be called for, as the data are."""
        found: list[tuple[Value, ...]] = []
        for one in self.model.functions:
            query = parse_query(f"function.{one.name}.rows", query_of_rows(one.rows), self.model.parameters)
            cursor = execute_statement(self.db, query)
            names = column_names(cursor)
            for row in cursor.fetchall():
                cells = [cell_as_plain_value(cell, CELL_CHARS) for cell in row]
                found.append((one.name, dict(zip(names, cells, strict=True))))
        return Table(("function", "arguments"), tuple(found))

    def count(self, relation: str) -> int:
        return int(self.db.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])


def find_suspicious_joins(
    db: duckdb.DuckDBPyConnection, parts: ModelStatements, tables: Mapping[str, tuple[str, ...]]
) -> Table:
    """Find joins of measures and rules that count rows several times or lose rows.

    They repeat rows if their columns tell the rows of neither table apart. Each result has the part, both columns, the
    fault and the number of rows.
    """
    rows: list[tuple[Value, ...]] = []
    for statement in (*parts.tables.values(), *parts.parts, *parts.rules.values()):
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
            table.alias_or_name.lower(): table.name.lower()
            for table in [source.this, *(join.this for join in select.args.get("joins") or [])]
            if isinstance(table, exp.Table) and table.name.lower() in tables
        }
        for join in select.args.get("joins") or []:
            on = join.args.get("on")
            # Left rows without a partner are no loss to an outer join.
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


def connect_machine(url: str, caps: Caps) -> Machine:
    """Open the scratch copy. Raises SetupError if the tables do not fit, or a statement is refused."""
    import duckdb

    model, tables = parse_machine_content(url)
    try:
        parts = ModelStatements.of(model)
    except ToolError as error:
        raise SetupError(str(error)) from error
    rows = sum(len(columns[0].values) for columns in tables.values() if columns)
    threads = "1" if rows <= FEW_ROWS else "2"  # a second one costs more than it gives where statements take ms
    db = duckdb.connect(config={**duckdb_connection_settings(caps.memory_mb), "threads": threads})
    load_model_tables(db, tables, [column.name for column in model.inputs])
    db.execute(NEAR)
    db.execute(NAN)
    apply_corrections(db, model.corrections)
    # Otherwise DuckDB takes the name of an unknown table for a variable of Python.
    db.execute("SET python_enable_replacements = false")
    # Last, for no setting can be changed after it.
    db.execute("SET lock_configuration = true")
    names = {name.lower(): tuple(column.name for column in columns) for name, columns in tables.items()}
    machine = Machine(db, model, parts, names)
    try:
        machine.widen_changed_columns()
    except ToolError as error:
        raise SetupError(str(error)) from error
    return machine


ENGINE = Engine(name="model", title="decision model", schemes=(), form="jobs", connect=connect_machine)
