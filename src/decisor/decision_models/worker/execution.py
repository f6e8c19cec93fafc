"""Evaluates the candidates of a request: all by one statement, or one after the other.

All at once, the statements are rewritten (``set_based``). If that is not possible, the statements run as they stand in
the file for one candidate after the other, in a transaction that is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sqlglot import exp, parse_one

from decisor.decision_models.file import DecisionModel, Input, Rule
from decisor.decision_models.worker.inputs import (
    DRAWS,
    ROWS,
    BrokenRule,
    Floats,
    Results,
    find_choice_reread,
    join_trials,
    none_if_nan,
    register_draws,
    reread_choice,
    spreads_by_table,
    varied_columns,
)
from decisor.decision_models.worker.program import FACTOR, ModelStatements, Statement, fill_factor
from decisor.decision_models.worker.set_based import (
    CANDIDATES,
    TRIALS,
    K,
    Version,
    Versions,
    find_sparse_changes,
    measure_by_difference,
    run_for_all_candidates,
)
from decisor.errors import ToolError
from decisor.system.text import quote_identifier
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb


CHOSEN = "__choice"
SETTLED = 1e-9
MAX_ROUNDS = 1000
MOST_CELLS = 5_000_000
"""Rows x candidates that are computed once where several statements read them."""


@dataclass(frozen=True)
class Evaluation:
    """A request for the outcomes of candidates, with the model and its scratch copy."""

    db: duckdb.DuckDBPyConnection
    model: DecisionModel
    parts: ModelStatements
    columns: Sequence[str]
    """Columns of the choice."""
    candidates: Sequence[Sequence[int]]
    """Rows of the choice that each candidate consists of."""
    before: Sequence[Statement] = ()
    """Statements that hold for all candidates: a scenario, changed inputs."""
    seeds: Sequence[int] = ()
    """Seed of each trial."""
    factors: Sequence[float] = ()
    """Value of ``$__factor`` in each trial without a seed."""
    most: int = 3
    """Number of rows that break a rule, for each candidate."""

    @property
    def trials(self) -> int:
        return max(1, len(self.seeds), len(self.factors))

    @property
    def varied(self) -> Sequence[Input]:
        return self.model.varied if self.seeds else ()

    @cached_property
    def reread_keys(self) -> tuple[str, ...] | None:
        return find_choice_reread(self.parts.choice, self.columns, self.before, self.varied)


def evaluate_batched(task: Evaluation, versions: Versions) -> Results:
    """Evaluate all candidates at once. Of several trials, the outcomes of the first come first.

    Raises:
        Unfit: a statement cannot be rewritten.
    """
    db, parts, count = task.db, task.parts, len(task.candidates)
    # The data of each trial, then the candidates with their chosen rows.
    prepare_versions(task, versions)
    rows, note = rows_to_choose_from(task, versions)
    create_candidates(task, versions, rows)
    # The change, by its changed rows alone if these are few.
    sparse = None
    if task.trials == 1 and len(parts.change) == 1 and not parts.recompute:
        sparse = find_sparse_changes(db, versions, parts.change[0], count)
    for at, statement in enumerate(parts.change):
        is_small = versions.rows(statement.target) * count * task.trials <= MOST_CELLS
        keep = bool(parts.recompute) or (not sparse and is_small and parts.keeps(at))
        run_for_all_candidates(versions, statement, keep=keep)
    if parts.recompute:
        recompute_batched(task, versions)
    # The measures, then the rules.
    results = Results.empty(parts, count * task.trials, batched=True)
    results.note = note
    for name, statement in parts.measures.items():
        quick = measure_by_difference(db, versions, statement, sparse) if sparse else None
        results.values[name] = query_numbers(db, versions, statement) if quick is None else quick
    for name, statement in parts.rules.items():
        read_broken_rows(db, versions, statement, results.broken[name], task.most)
    for name, statement in parts.bounds.items():
        check_limit_rule(task.model.rule(name), results, query_numbers(db, versions, statement))
    return results


def prepare_versions(task: Evaluation, versions: Versions) -> None:
    """Vary the inputs, in one trial or several, and run the changes that hold for all candidates."""
    db, several = task.db, len(task.seeds) > 1
    if several:
        versions.key = "__t"
        hold_table(db, versions, TRIALS, {"__t": np.arange(len(task.seeds))})
    for name, spreads in spreads_by_table(task.varied).items():
        columns = ", ".join(f"{value} AS {place}" for place, value in varied_columns(name, spreads))
        table = quote_identifier(name)
        register_draws(db, name, spreads, task.seeds)
        # By position, the rows of one trial cost no join.
        joined = f"JOIN {DRAWS} AS __d ON __d.r = {table}.rowid" if several else f"POSITIONAL JOIN {DRAWS} AS __d"
        trial = ", __d.t AS __t" if several else ""
        sql = f"SELECT {table}.* REPLACE ({columns}){trial} FROM {table} {joined}"
        versions.put(name, sql, "__t" if several else "", keep=True)
        db.unregister(DRAWS)
    names = versions.names
    # The factors of a turning point are trials with a parameter instead of draws.
    if task.factors:
        versions.key, versions.names = "__t", (FACTOR,)
        cells = {"__t": np.arange(len(task.factors)), f"__p_{FACTOR}": np.array(task.factors)}
        hold_table(db, versions, TRIALS, cells)
    for statement in task.before:
        run_for_all_candidates(versions, statement, keep=True)
    # From here on, statements run for candidates and no longer for trials.
    versions.key, versions.names = "__c", names


def hold_table(db: duckdb.DuckDBPyConnection, versions: Versions, name: str, cells: dict[str, Any]) -> None:
    """Create a table of these columns that lives as long as the versions."""
    db.register("__cells", cells)
    db.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM __cells")
    db.unregister("__cells")
    versions.relations.append(("TABLE", name))


def rows_to_choose_from(task: Evaluation, versions: Versions) -> tuple[str, str]:
    """Return the table of the rows that may be chosen, and a note on it."""
    choice = task.parts.choice
    if task.reread_keys is None or choice is None:
        return ROWS, ""
    of_trials = any(versions.now[name].key for name in choice.reads & set(versions.now))
    query = versions.sql(choice.tree)
    if of_trials:
        query = f"SELECT __q.*, {K}.__t FROM {TRIALS} AS {K}, LATERAL ({query}) AS __q"
    rows, note = reread_choice(task.db, task.reread_keys, task.columns, query, TRIALS if of_trials else "")
    if rows != ROWS:
        versions.relations.append(("TABLE", rows))
    return rows, note


def create_candidates(task: Evaluation, versions: Versions, table: str) -> None:
    """Create the table of candidates, and the table of the rows of each.

    If a candidate is one row, its columns are parameters.
    """
    db, count = task.db, len(task.candidates)
    places = [*task.candidates] * task.trials
    sizes = [len(rows) for rows in places]
    cells = {"c": np.repeat(np.arange(len(places)), sizes), "r": np.fromiter(chain.from_iterable(places), np.int64)}
    db.register("__pairs", cells)
    of_trials = any(name == "__t" for name, *_ in db.execute(f"DESCRIBE {table}").fetchall())
    # Candidates are numbered through all trials, so c // count is the trial.
    less, same = ('("__r", "__t")', f" AND __t = c // {max(1, count)}") if of_trials else ('("__r")', "")
    chosen = f'SELECT t.* EXCLUDE {less}, c AS "__c" FROM __pairs JOIN {table} AS t ON r = "__r"{same}'
    db.execute(f"CREATE TEMP TABLE {CHOSEN} AS {chosen}")
    db.unregister("__pairs")
    versions.relations.append(("TABLE", CHOSEN))
    versions.now["choice"] = Version(CHOSEN, "__c")
    versions.tables["choice"] = tuple(task.columns)
    trial = f"// {max(1, count)} AS __t"
    query = f"SELECT range AS __c, range {trial} FROM range({len(places)})"
    if task.model.take.single:
        named = "".join(f", {quote_identifier(name)} AS {quote_identifier('__p_' + name)}" for name in task.columns)
        query = f"SELECT __c, __c {trial}{named} FROM {CHOSEN} ORDER BY 1"
    db.execute(f"CREATE TEMP TABLE {CANDIDATES} AS {query}")
    versions.relations.append(("TABLE", CANDIDATES))


def recompute_batched(task: Evaluation, versions: Versions) -> None:
    def step() -> ArrayLike:
        for statement in task.parts.recompute:
            run_for_all_candidates(versions, statement, keep=True)
        drop_unused_versions(task.db, versions)
        return query_numbers(task.db, versions, task.parts.until) if task.parts.until else ()

    repeat_until_settled(task.model, step)


def repeat_until_settled(model: DecisionModel, step: Callable[[], ArrayLike]) -> None:
    """Repeat a step as often as the file says, or until the numbers that it returns settle.

    Raises ToolError if they do not settle.
    """
    if (recompute := model.recompute) is None:
        return
    last, rounds = None, recompute.times or MAX_ROUNDS
    for _ in range(rounds):
        now = step()
        if recompute.until and last is not None and np.allclose(now, last, rtol=SETTLED, atol=0, equal_nan=True):
            return
        last = now
    if recompute.until:
        raise ToolError(f"recompute.until has not settled after {rounds} rounds.")


def drop_unused_versions(db: duckdb.DuckDBPyConnection, versions: Versions) -> None:
    """Drop the tables that no later statement reads, unless views need them."""
    if any(kind == "VIEW" for kind, _ in versions.relations):
        # A view reads the tables below it.
        return
    used = {version.relation for version in versions.now.values()} | {CHOSEN, CANDIDATES, TRIALS}
    for kind, relation in versions.relations:
        if relation not in used:
            db.execute(f"DROP {kind} IF EXISTS {quote_identifier(relation)}")
    # The list keeps its length: names of relations are numbered by it.


def query_numbers(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement) -> Floats:
    cells = db.execute(versions.value(statement)).fetchnumpy()["v"]
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values


def read_broken_rows(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, broken: BrokenRule, most: int
) -> None:
    """Read the first rows that break a rule, for each candidate, in a stable order."""
    # Ordered by the whole row, for DuckDB promises no order of rows.
    ranked = (
        f'SELECT *, count(*) OVER (PARTITION BY "__c") AS "__n" FROM ({versions.rows_of(statement)}) AS __b '
        f'QUALIFY row_number() OVER (PARTITION BY "__c" ORDER BY __b) <= {max(1, most)} ORDER BY "__c", __b'
    )
    cursor = db.execute(ranked)
    names = column_names(cursor)
    for row in cursor.fetchall():
        cells = dict(zip(names[1:-1], row[1:-1], strict=True))
        broken.add(row[0], row[-1], cells if most else None)


def check_limit_rule(rule: Rule, results: Results, bounds: Floats) -> None:
    """Check a rule on a measure against its bounds. A measure without a number breaks the rule.

    Raises:
        ToolError: the bound of a candidate is no number.
    """
    if count := int(np.isnan(bounds).sum()):
        raise ToolError(
            f"rule.{rule.name}: its limit is NULL for {count:,} of {len(bounds):,} candidates, so nothing can "
            "be held against it; write coalesce, or mend the data."
        )
    values, side = results.values[rule.measure], 1 if rule.at_most is not None else -1
    with np.errstate(invalid="ignore"):
        distance, scale = np.abs(values - bounds), np.maximum(np.abs(bounds), np.abs(values))
    # A sum may differ from its limit in the last digit, by the order of adding.
    near = np.isfinite(values) & (distance <= SETTLED * scale)
    for at in np.flatnonzero(np.isnan(values) | ((side * values > side * bounds) & ~near)).tolist():
        row = {rule.measure: none_if_nan(float(values[at])), "limit": float(bounds[at])}
        results.broken[rule.name].add(at, 1, row)


def evaluate_one_by_one(task: Evaluation) -> Results:
    """Evaluate the candidates one after the other. Raises ToolError with the statement that fails."""
    befores = [[fill_factor(one, factor) for one in task.before] for factor in task.factors] or [list(task.before)]
    trials = [
        evaluate_trial_one_by_one(task, before, seed)
        for before in befores
        for seed in (list[int | None](task.seeds) or [None])
    ]
    return join_trials(trials, len(task.candidates))


def evaluate_trial_one_by_one(task: Evaluation, before: Sequence[Statement], seed: int | None) -> Results:
    db, parts, count = task.db, task.parts, len(task.candidates)
    results = Results.empty(parts, count, batched=False)
    bounds = {name: np.full(count, np.nan) for name in parts.bounds}
    for at, rows in enumerate(task.candidates):
        with changed_inputs(db, task.model, before, seed):
            results.note = create_choice(task, rows)
            values = chosen_row_values(task.columns, rows) if task.model.take.single else {}
            for statement in parts.change:
                execute_statement(db, statement, values)
            recompute_until_settled(db, task.model, parts, values)
            for name, statement in parts.measures.items():
                results.values[name][at] = query_number(db, statement, values)
            for name, statement in parts.rules.items():
                for row in first_broken_rows(db, statement, values, task.most):
                    results.broken[name].add(at, *row)
            for name, statement in parts.bounds.items():
                bounds[name][at] = query_number(db, statement, values)
    for name, bound in bounds.items():
        check_limit_rule(task.model.rule(name), results, bound)
    return results


def measure_present(task: Evaluation, seed: int | None) -> dict[str, float | None]:
    """Return each measure with nothing chosen; None if the measure reads the choice."""
    with changed_inputs(task.db, task.model, task.before, seed):
        create_choice(replace(task, parts=replace(task.parts, choice=None)), ())
        recompute_until_settled(task.db, task.model, task.parts, {})
        return {
            name: None
            if statement.names or "choice" in statement.reads
            else none_if_nan(query_number(task.db, statement, {}))
            for name, statement in task.parts.measures.items()
        }


@contextmanager
def changed_inputs(
    db: duckdb.DuckDBPyConnection, model: DecisionModel, before: Sequence[Statement], seed: int | None
) -> Iterator[None]:
    """Open a transaction with the inputs varied and ``before`` applied; it is rolled back at the end."""
    db.execute("BEGIN")
    try:
        for name, spreads in spreads_by_table(() if seed is None else model.varied).items():
            sets = ", ".join(f"{place} = {value}" for place, value in varied_columns(name, spreads))
            register_draws(db, name, spreads, [] if seed is None else [seed])
            table = quote_identifier(name)
            db.execute(f"UPDATE {table} SET {sets} FROM {DRAWS} AS __d WHERE __d.r = {table}.rowid")
            db.unregister(DRAWS)
        for statement in before:
            execute_statement(db, statement, {})
        yield
    finally:
        db.execute("ROLLBACK")


def create_choice(task: Evaluation, rows: Sequence[int]) -> str:
    """Create the table ``choice`` with these rows, read again if the data were changed, and return a note on them.

    The table goes with the transaction.
    """
    table, note = ROWS, ""
    if task.reread_keys is not None and task.parts.choice is not None:
        query = task.parts.choice.tree.sql("duckdb")
        table, note = reread_choice(task.db, task.reread_keys, task.columns, query)
    # IN () is no SQL; IN (NULL) finds no row.
    numbers = ", ".join(map(str, rows)) or "NULL"
    query = f'SELECT * EXCLUDE ("__r") FROM {table} WHERE "__r" IN ({numbers}) ORDER BY "__r"'
    task.db.execute(f"CREATE TEMP TABLE choice AS {query}")
    return note


def chosen_row_values(columns: Sequence[str], rows: Sequence[int]) -> dict[str, str]:
    """Return the columns of the only chosen row by their names as parameters; nothing for several rows."""
    return {name: f"(SELECT {quote_identifier(name)} FROM choice)" for name in columns} if len(rows) == 1 else {}


def execute_statement(
    db: duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, str]
) -> duckdb.DuckDBPyConnection:
    """Run a statement of the model. Raises ToolError with the part of the file, and DuckDB's complaint."""
    import duckdb

    tree = statement.tree
    if statement.names:
        tree = tree.copy()
        for place in list(tree.find_all(exp.Placeholder)):
            if place.name not in values:
                raise ToolError(
                    f"{statement.part}: there is no parameter ${place.name}; there is "
                    f"{', '.join('$' + name for name in values) or 'none'}."
                )
            place.replace(parse_one(values[place.name], read="duckdb"))
    try:
        return db.execute(tree.sql("duckdb"))
    except duckdb.Error as error:
        raise ToolError(f"{statement.part}: {duckdb_complaint(error)}") from error


def column_names(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for name, *_ in cursor.description or ()]


def duckdb_complaint(error: Exception) -> str:
    """Return DuckDB's complaint on one line, without the place in the statement.

    >>> duckdb_complaint(ValueError("Binder Error: no x!\\n\\nLINE 1: SELECT x"))
    'Binder Error: no x!'
    """
    return " ".join(str(error).split("\n\nLINE ")[0].split())[:400]


def recompute_until_settled(
    db: duckdb.DuckDBPyConnection, model: DecisionModel, parts: ModelStatements, values: Mapping[str, str]
) -> None:
    def step() -> ArrayLike:
        for statement in parts.recompute:
            execute_statement(db, statement, values)
        return query_number(db, parts.until, values) if parts.until else ()

    repeat_until_settled(model, step)


def query_number(db: duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, str]) -> float:
    """Return the number that a query gives, nan if there is none. Raises ToolError for any other result."""
    # A second row suffices to tell that there are several.
    rows = execute_statement(db, statement, values).fetchmany(2)
    if len(rows) > 1 or (rows and len(rows[0]) != 1):
        raise ToolError(
            f"{statement.part} must give one number; it gives {'several rows' if len(rows) > 1 else ''}"
            f"{f'{len(rows[0])} columns' if len(rows[0]) > 1 else ''}."
        )
    value = rows[0][0] if rows else None
    try:
        return float("nan") if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{statement.part} must give a number; it gives {str(value)[:80]!r}.") from error


def first_broken_rows(
    db: duckdb.DuckDBPyConnection, statement: Statement, values: Mapping[str, str], most: int
) -> list[tuple[int, dict[str, Value] | None]]:
    """Return the first rows of a query, each with the count of all rows."""
    cursor = execute_statement(db, statement, values)
    names = column_names(cursor)
    # Sorted, for DuckDB promises no order of rows; by text, for cells of a column may be NULL.
    rows = sorted(cursor.fetchall(), key=str)
    return [(len(rows), dict(zip(names, row, strict=True)) if most else None) for row in rows[: max(1, most)]]
