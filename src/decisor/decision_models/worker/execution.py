"""Evaluates the candidates of a request: all by one statement, or one after the other.

All at once, the statements are rewritten (``worlds``, ``lift``). If that is not possible, the statements run as they
stand in the file for one candidate after the other, in a transaction that is rolled back.

Sums over a large table of which a candidate changes few rows are computed by difference: the shared sum over the table
as it was, less the rows that the candidate changes, plus their new values. So 1,000 candidates that change 100 rows
each read 200,000 rows, not 100 million. The measure must be made of sums and counts over the table, joined with data
that is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sqlglot import exp

from decisor.decision_models.schema import DecisionModel, Input
from decisor.decision_models.worker.inputs import (
    DRAWS,
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
from decisor.decision_models.worker.lift import DIMS, WORLDS, own_aggregates, parse
from decisor.decision_models.worker.program import FACTOR, ModelStatements, Statement, fill_factor
from decisor.decision_models.worker.worlds import MOST_CELLS, QueryCache, Version, Worlds
from decisor.errors import ToolError
from decisor.system.text import quote_identifier
from decisor.types import Value

if TYPE_CHECKING:
    import duckdb


LEAST_CELLS = 200_000
"""Rows x candidates below which nothing is to be gained."""
MOST_SHARE = 0.1
"""Of the cells, that may change."""
LOSS = 1e-4
"""A sum that is so much smaller than what it is the difference of has lost digits, and is computed as ever."""
SUMS = "__sums"


@dataclass(frozen=True)
class SparseChanges:
    """The rows of a table that candidates change, where these are few."""

    table: str
    shared: Version | None
    """The table as all candidates have it; None if it is as it was loaded."""
    was: Version
    """The changed rows before the change, with their candidate."""
    become: Version | None
    """The changed rows after the change; None for a DELETE."""


def find_sparse_changes(worlds: Worlds, statement: Statement, dense: set[str]) -> SparseChanges | None:
    """Return the rows that a statement would change, None if they are not sparse.

    None also for a statement that is no UPDATE or DELETE with a condition on a table that all candidates share. Raises
    Unfit. dense: tables of which candidates change many rows.
    """
    tree, name = statement.tree, statement.target
    shared = worlds.now.get(name)
    parts = {part for part, value in tree.args.items() if value} - {"this", "expressions"}
    if not isinstance(tree, exp.Update | exp.Delete) or parts != {"where"} or tree.this.alias or name in dense:
        return None
    times = sum(one.name.lower() == name for one in tree.find_all(exp.Table))
    cells = worlds.rows(name) * worlds.shape[0]
    if times != 1 or (shared and shared.dims) or cells < LEAST_CELLS:
        return None
    most = int(cells * MOST_SHARE)
    columns = [exp.column(one, table=tree.this.name, quoted=True) for one in worlds.cache.columns[name]]
    changed = exp.select(*columns).from_(tree.this.copy()).where(tree.args["where"].this.copy())
    query = worlds.rewrite(changed, f"changed: {statement.text}", statement.reads | {name})
    if query.dims != ("__c",):
        return None
    # One row more than allowed tells that the changes are many.
    was = worlds.put(name, f"SELECT * FROM ({worlds.fill(query.sql)}) AS q LIMIT {most + 1}", query.dims)
    worlds.set_version(name, shared)
    if worlds.count(quote_identifier(was.relation)) > most:
        dense.add(name)
        return None
    become = None
    if isinstance(tree, exp.Update):
        # The rows are those that meet the condition, so it is left out.
        bare = tree.copy()
        bare.set("where", None)
        worlds.set_version(name, was)
        after = worlds.rows_after(Statement(statement.part, bare, name, statement.reads, statement.names))
        query = worlds.rewrite(after, f"become: {statement.text}", statement.reads | {name})
        become = worlds.put(name, worlds.fill(query.sql), query.dims)
        worlds.set_version(name, shared)
    return SparseChanges(name, shared, was, become)


def measure_by_difference(worlds: Worlds, statement: Statement, sparse: SparseChanges) -> Floats | None:
    """Return a measure for each candidate from the changed rows alone, (candidates, 1).

    None if it is not made of sums, or if the sums would lose digits.
    """
    if not is_made_of_sums(worlds, statement, sparse.table):
        return None
    last = worlds.now[sparse.table]
    try:
        shared = sums_of_version(worlds, statement, sparse.table, sparse.shared)
        less = sums_of_version(worlds, statement, sparse.table, sparse.was)
        plus = np.zeros_like(less)
        if sparse.become:
            plus = sums_of_version(worlds, statement, sparse.table, sparse.become)
    finally:
        worlds.set_version(sparse.table, last)
    whole = shared - less + plus
    scale = np.abs(shared) + np.abs(less) + np.abs(plus)
    # Even columns are sums, odd ones the number of values in them.
    lost = (np.abs(whole) < LOSS * scale)[:, ::2] & (whole[:, 1::2] > 0)
    if not np.isfinite(whole).all() or lost.any():
        return None
    return finish_measure(worlds, statement, whole)


def is_made_of_sums(worlds: Worlds, statement: Statement, table: str) -> bool:
    """Return whether a measure takes only sums and counts, and only rows of this table vary between candidates."""
    tree = statement.tree
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or statement.names:
        return False
    more = {name for name, value in tree.args.items() if value} - {"expressions", "from_", "joins", "where"}
    of_each = {name for name, version in worlds.now.items() if version.dims}
    reads = worlds.parts.reads(statement)
    if more or reads & of_each != {table} or reads & set(worlds.parts.tables):
        return False
    joins = tree.args.get("joins") or []
    sources = [tree.args.get("from_"), *joins]
    places = [one for one in tree.find_all(exp.Table) if one.name.lower() == table]
    if len(places) != 1 or not any(places[0].parent is one for one in sources):
        return False
    if any(one.side or one.method or one.kind not in ("", "INNER", "CROSS") for one in joins):
        return False
    sums, columns = own_aggregates(tree), tree.expressions[0].find_all(exp.Column)
    fit = all(
        type(one) in (exp.Sum, exp.Count)
        and not isinstance(one.this, exp.Distinct)
        and not isinstance(one.parent, exp.Filter | exp.Window)
        for one in sums
    )
    return bool(sums) and fit and all(one.find_ancestor(exp.AggFunc, exp.Select) is not tree for one in columns)


def sums_of_version(worlds: Worlds, statement: Statement, table: str, version: Version | None) -> Floats:
    """Return each sum of a measure and the number of values in it, for a version of the table.

    The shape is (candidates, or 1 if the version is one for all; 2 x sums).
    """
    tree = statement.tree.copy()
    pairs = [(one.copy(), exp.Count(this=one.this.copy())) for one in own_aggregates(tree)]
    tree.set("expressions", [exp.alias_(one, f"a{at}") for at, one in enumerate(chain.from_iterable(pairs))])
    worlds.set_version(table, version)
    query = worlds.rewrite(tree, f"sums: {statement.text}", statement.reads)
    names = ", ".join(f"coalesce(CAST(a{at} AS DOUBLE), 0) AS a{at}" for at in range(2 * len(pairs)))
    dims = ', "__c"' if query.dims else ""
    cells = worlds.db.execute(f"SELECT {names}{dims} FROM ({worlds.fill(query.sql)}) AS q").fetchnumpy()
    sums = np.stack([np.asarray(cells[f"a{at}"], dtype=np.float64) for at in range(2 * len(pairs))], axis=1)
    if not query.dims:
        return sums
    full = np.zeros((worlds.shape[0], 2 * len(pairs)))
    full[np.asarray(cells["__c"], dtype=np.int64)] = sums
    return full


def finish_measure(worlds: Worlds, statement: Statement, whole: Floats) -> Floats:
    """Compute the expression around the sums, for each candidate."""
    tree = statement.tree.copy()
    for at, one in enumerate(own_aggregates(tree)):
        # SUM over no value is NULL and not 0.
        sum_of = f"(CASE WHEN __s.n{at} > 0 THEN __s.s{at} END)"
        one.replace(parse(sum_of if isinstance(one, exp.Sum) else f"__s.s{at}"))
    columns = {f"{'sn'[at % 2]}{at // 2}": np.ascontiguousarray(whole[:, at]) for at in range(whole.shape[1])}
    worlds.hold(f"{SUMS}_{len(worlds.relations)}", {"__c": np.arange(len(whole)), **columns})
    worlds.now[SUMS] = Version(worlds.relations[-1][1], ("__c",))
    worlds.cache.add_columns(SUMS, tuple(columns))
    query = parse(f"SELECT 1 FROM {SUMS} AS __s")
    query.set("expressions", [exp.alias_(tree.expressions[0].unalias(), "value")])
    found = worlds.rewrite(query, f"finish: {statement.text}", statement.reads | {SUMS})
    cells = worlds.db.execute(
        f'SELECT CAST("{found.first}" AS DOUBLE) AS v FROM ({worlds.fill(found.sql)}) AS q ORDER BY "__c"'
    ).fetchnumpy()["v"]
    worlds.now.pop(SUMS)
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values[:, None]


CHOSEN = "__choice"
SETTLED = 1e-9
MAX_ROUNDS = 1000


@dataclass(frozen=True)
class Evaluation:
    """A request for the outcomes of candidates, with the model and its scratch copy."""

    db: duckdb.DuckDBPyConnection
    model: DecisionModel
    parts: ModelStatements
    columns: Sequence[str]
    """Columns of the choice."""
    rows: str
    """Table of the rows of the choice, with their number ``__r``."""
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
    def draws(self) -> int:
        return max(1, len(self.seeds), len(self.factors))

    @property
    def varied(self) -> Sequence[Input]:
        return self.model.varied if self.seeds else ()

    @cached_property
    def reread_keys(self) -> tuple[str, ...] | None:
        return find_choice_reread(self.parts, self.columns, self.before, self.varied)

    @property
    def amount(self) -> str:
        """The column ``amount`` of the chosen rows, if a statement names it and the choice has none of its own."""
        own = "amount" in map(str.lower, self.columns)
        return "" if own or "amount" not in self.model.statement_words() else ', CAST(1 AS DOUBLE) AS "amount"'


def evaluate_batched(task: Evaluation, cache: QueryCache, dense: set[str]) -> Results:
    """Evaluate all candidates at once. Of several trials, the outcomes of the first come first.

    Raises:
        Unfit: a statement cannot be rewritten.
    """
    worlds = Worlds(task.db, task.parts, cache, (len(task.candidates), task.draws))
    try:
        # The data of each draw, then the candidates with their chosen rows.
        vary_tables(task, worlds)
        note = create_candidates(task, worlds)
        # The change, by its changed rows alone if these are few.
        parts, sparse = task.parts, None
        if task.draws == 1 and len(parts.change) == 1 and not parts.recompute:
            sparse = find_sparse_changes(worlds, parts.change[0], dense)
        for at, statement in enumerate(parts.change):
            is_small = worlds.count_cells(statement.target, DIMS) <= MOST_CELLS
            keep = bool(parts.recompute) or (not sparse and is_small and parts.keeps(at))
            worlds.change(statement, keep=keep)
        repeat_until_settled(task.model, lambda: recompute_batched(task, worlds))
        # The measures, then the rules.
        results = Results.empty(parts, len(task.candidates) * task.draws, batched=True)
        results.note = note
        for name, queries in parts.measures.items():
            for part, statement in queries.items():
                quick = measure_by_difference(worlds, statement, sparse) if sparse else None
                values = worlds.numbers(statement) if quick is None else quick
                results.parts[name][part] = values.T.ravel()
        for name, statement in parts.rules.items():
            read_broken_rows(task, worlds, statement, name in parts.exists, results.broken[name])
        return results
    finally:
        worlds.drop()


def vary_tables(task: Evaluation, worlds: Worlds) -> None:
    """Vary the inputs, in one trial or several, and run the changes that hold for all candidates."""
    for name, count in zip(DIMS, worlds.shape, strict=True):
        worlds.hold(WORLDS[name], {name: np.arange(count)})
    for name, spreads in spreads_by_table(task.varied).items():
        columns = ", ".join(
            f"{value} AS {place}" for place, value in varied_columns(name, spreads, task.parts.conditions)
        )
        table = quote_identifier(name)
        register_draws(task.db, name, spreads, task.seeds)
        if len(task.seeds) > 1:
            joined = f'{table}.* REPLACE ({columns}), __d.t AS "__d" FROM {table} JOIN {DRAWS} AS __d'
            worlds.put(name, f"SELECT {joined} ON __d.r = {table}.rowid", ("__d",))
        else:  # by position, the rows of one trial cost no join
            worlds.put(name, f"SELECT {table}.* REPLACE ({columns}) FROM {table} POSITIONAL JOIN {DRAWS} AS __d", ())
        task.db.unregister(DRAWS)
    # The factors of a turning point are trials with a parameter instead of draws.
    if task.factors:
        worlds.hold("__factors", {"__d": np.arange(len(task.factors)), "value": np.array(task.factors, dtype=float)})
        worlds.now[FACTOR] = Version("__factors", ("__d",))
        worlds.cache.add_columns(FACTOR, ("value",))
    for statement in task.before:
        worlds.change(statement, keep=True)


def create_candidates(task: Evaluation, worlds: Worlds) -> str:
    """Create the table of the chosen rows of each candidate, and return a note on them."""
    db, choice, note, rows, of_draws = task.db, task.parts.choice, "", task.rows, False
    if task.reread_keys is not None and choice is not None:
        query = worlds.rewrite_statement(choice)
        of_draws = query.dims == ("__d",)
        rows, note = reread_choice(db, task.rows, task.reread_keys, task.columns, worlds.fill(query.sql), of_draws)
        of_draws = of_draws and rows != task.rows
        if rows != task.rows:
            worlds.relations.append(("TABLE", rows))
    sizes = [len(places) for places in task.candidates]
    pairs = {
        "c": np.repeat(np.arange(len(sizes)), sizes),
        "r": np.fromiter(chain.from_iterable(task.candidates), np.int64),
    }
    db.register("__pairs", pairs)
    chosen = f'SELECT t.* EXCLUDE ("__r"), c AS "__c"{task.amount} FROM __pairs JOIN {rows} AS t ON r = "__r"'
    db.execute(f"CREATE TEMP TABLE {CHOSEN} AS {chosen}")
    db.unregister("__pairs")
    worlds.relations.append(("TABLE", CHOSEN))
    table = task.parts.table
    worlds.now[table] = Version(CHOSEN, DIMS if of_draws else ("__c",))
    columns = (*task.columns, "amount") if task.amount else tuple(task.columns)
    worlds.cache.add_columns(table, tuple(name.lower() for name in columns))
    return note


def recompute_batched(task: Evaluation, worlds: Worlds) -> ArrayLike:
    for statement in task.parts.recompute:
        worlds.change(statement, keep=True)
    worlds.drop_unused()
    return worlds.numbers(task.parts.until) if task.parts.until else ()


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


def read_broken_rows(task: Evaluation, worlds: Worlds, statement: Statement, exists: bool, broken: BrokenRule) -> None:
    """Read which candidates break a rule, and the first rows that do if nothing varies."""
    count = len(task.candidates)
    if exists or not task.most or task.draws > 1:
        counts = worlds.counts(statement).T.ravel()
        places = np.flatnonzero((counts > 0) != exists)
        broken.places, broken.rows = places.tolist(), [[] for _ in places]
        broken.counts = [1] * len(places) if exists else counts[places].tolist()
        return
    for candidate, number, row in worlds.first_rows(statement, task.most):
        # A rule that reads nothing of the choice is broken by all candidates.
        for place in range(count) if candidate is None else (candidate,):
            broken.add(place, number, row)


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
    db, parts = task.db, task.parts
    results = Results.empty(parts, len(task.candidates), batched=False)
    for at, rows in enumerate(task.candidates):
        with changed_inputs(db, task.model, parts, before, seed):
            results.note = create_choice(task, rows)
            create_named_tables(db, parts)
            for statement in parts.change:
                execute_statement(db, statement)
            recompute_until_settled(db, task.model, parts)
            for name, queries in parts.measures.items():
                for part, statement in queries.items():
                    results.parts[name][part][at] = query_number(db, statement)
            for name, statement in parts.rules.items():
                found = first_broken_rows(db, statement, task.most)
                if name in parts.exists:
                    found = [] if found else [(1, None)]
                for row in found:
                    results.broken[name].add(at, *row)
    return results


def create_named_tables(db: duckdb.DuckDBPyConnection, parts: ModelStatements, names: Collection[str] = ()) -> None:
    """Create the named tables as views, which go with the transaction. names: those to leave out."""
    for name, statement in parts.tables.items():
        if name not in names:
            view = statement.tree.copy()
            execute_statement(db, statement, f"CREATE TEMP VIEW {quote_identifier(name)} AS {view.sql('duckdb')}")


def measure_present(task: Evaluation, seed: int | None) -> Iterator[tuple[str, str, float | None]]:
    """Yield each measure with nothing chosen, part by part; one None if it reads the choice, and the file does not say
    that none is.
    """
    parts, choice = task.parts, task.model.choice

    def reads_choice(statements: Iterable[Statement]) -> bool:
        return (choice is None or choice.now is None) and any(parts.table in parts.reads(one) for one in statements)

    with changed_inputs(task.db, task.model, parts, task.before, seed):
        create_choice(replace(task, parts=replace(parts, choice=None)), ())
        create_named_tables(task.db, parts)
        recompute_until_settled(task.db, task.model, parts)
        for name, queries in parts.measures.items():
            if reads_choice(queries.values()):
                yield name, "", None
            else:
                yield from ((name, part, none_if_nan(query_number(task.db, one))) for part, one in queries.items())


@contextmanager
def changed_inputs(
    db: duckdb.DuckDBPyConnection,
    model: DecisionModel,
    parts: ModelStatements,
    before: Sequence[Statement],
    seed: int | None,
) -> Iterator[None]:
    """Open a transaction with the inputs varied and ``before`` applied; it is rolled back at the end."""
    db.execute("BEGIN")
    try:
        for name, spreads in spreads_by_table(() if seed is None else model.varied).items():
            sets = ", ".join(f"{place} = {value}" for place, value in varied_columns(name, spreads, parts.conditions))
            register_draws(db, name, spreads, [] if seed is None else [seed])
            table = quote_identifier(name)
            db.execute(f"UPDATE {table} SET {sets} FROM {DRAWS} AS __d WHERE __d.r = {table}.rowid")
            db.unregister(DRAWS)
        for statement in before:
            execute_statement(db, statement)
        yield
    finally:
        db.execute("ROLLBACK")


def create_choice(task: Evaluation, rows: Sequence[int]) -> str:
    """Create the table of the chosen rows, read again if the data were changed, and return a note on them.

    The table goes with the transaction.
    """
    table, note = task.rows, ""
    if task.reread_keys is not None and task.parts.choice is not None:
        read = {name for name in task.parts.tables if task.parts.table not in task.parts.reads(task.parts.tables[name])}
        query = task.parts.choice.text
        if task.parts.reads(task.parts.choice) & read:
            # The named tables that the choice reads; all are created again, once the choice is there.
            create_named_tables(task.db, task.parts, set(task.parts.tables) - read)
        table, note = reread_choice(task.db, task.rows, task.reread_keys, task.columns, query)
        if task.parts.reads(task.parts.choice) & read:
            for name in reversed([*task.parts.tables]):
                if name in read:
                    task.db.execute(f"DROP VIEW {quote_identifier(name)}")
    # IN () is no SQL; IN (NULL) finds no row.
    numbers = ", ".join(map(str, rows)) or "NULL"
    name = quote_identifier(task.parts.table)
    query = f'SELECT * EXCLUDE ("__r"){task.amount} FROM {table} WHERE "__r" IN ({numbers}) ORDER BY "__r"'
    task.db.execute(f"CREATE TEMP TABLE {name} AS {query}")
    return note


def execute_statement(db: duckdb.DuckDBPyConnection, statement: Statement, sql: str = "") -> duckdb.DuckDBPyConnection:
    """Run a statement of the model. Raises ToolError with the part of the file, and DuckDB's complaint."""
    import duckdb

    if statement.names:
        name = min(statement.names)
        raise ToolError(
            f"{statement.part}: there is no parameter ${name}. What is chosen is a table: read its columns with JOIN."
        )
    try:
        return db.execute(sql or statement.text)
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


def recompute_until_settled(db: duckdb.DuckDBPyConnection, model: DecisionModel, parts: ModelStatements) -> None:
    def step() -> ArrayLike:
        for statement in parts.recompute:
            execute_statement(db, statement)
        return query_number(db, parts.until) if parts.until else ()

    repeat_until_settled(model, step)


def query_number(db: duckdb.DuckDBPyConnection, statement: Statement) -> float:
    """Return the number that a query gives, nan if there is none. Raises ToolError for any other result."""
    # A second row suffices to tell that there are several.
    rows = execute_statement(db, statement).fetchmany(2)
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
    db: duckdb.DuckDBPyConnection, statement: Statement, most: int
) -> list[tuple[int, dict[str, Value] | None]]:
    """Return the first rows of a query, each with the count of all rows."""
    cursor = execute_statement(db, statement)
    names = column_names(cursor)
    # Sorted, for DuckDB promises no order of rows; by text, for cells of a column may be NULL.
    rows = sorted(cursor.fetchall(), key=str)
    return [(len(rows), dict(zip(names, row, strict=True)) if most else None) for row in rows[: max(1, most)]]
