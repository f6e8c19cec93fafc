"""Evaluates the candidates of a request: all at once, or one after the other.

All at once, the statements are rewritten (``set_based``). If that is not possible, the statements run as they stand in
the file for one candidate after the other, in a transaction that is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from decisor.decision_models.worker.inputs import (
    DRAWS,
    ROWS,
    BrokenRule,
    ChoiceReread,
    Floats,
    Results,
    register_draws,
    reread_choice,
    spreads_by_table,
    varied_columns,
)
from decisor.decision_models.worker.program import FACTOR, Limit, ModelStatements, Program, Statement
from decisor.decision_models.worker.set_based import (
    CANDIDATES,
    TRIALS,
    K,
    Version,
    Versions,
    find_few_rows,
    run_for_all_candidates,
)
from decisor.decision_models.worker.set_based import measure_by_difference as sums
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


def prepare_versions(
    db: duckdb.DuckDBPyConnection,
    program: Program,
    versions: Versions,
    before: Sequence[Statement],
    seeds: Sequence[int],
    factors: Sequence[float] = (),
) -> None:
    """Vary the inputs, in one trial or several, and run the changes that hold for all candidates.

    In each trial they have its factor. Raises Unfit.
    """
    if len(seeds) > 1:
        versions.key = "__t"
        hold_table(db, versions, TRIALS, {"__t": np.arange(len(seeds))})
    for name, spreads in spreads_by_table(program.spreads if seeds else ()).items():
        columns = ", ".join(f"{value} AS {place}" for place, value in varied_columns(name, spreads))
        more = ", __d.t AS __t" if len(seeds) > 1 else ""
        register_draws(db, name, spreads, seeds)
        # By position, the rows of one trial cost no join.
        joined = (
            f"JOIN {DRAWS} AS __d ON __d.r = {quote_identifier(name)}.rowid"
            if more
            else f"POSITIONAL JOIN {DRAWS} AS __d"
        )
        sql = f"SELECT {quote_identifier(name)}.* REPLACE ({columns}){more} FROM {quote_identifier(name)} {joined}"
        versions.put(name, sql, "__t" if more else "", keep=True)
        db.unregister(DRAWS)
    names = versions.names
    if factors:
        versions.key, versions.names = "__t", (FACTOR,)
        hold_table(db, versions, TRIALS, {"__t": np.arange(len(factors)), f"__p_{FACTOR}": np.array(factors)})
    for statement in before:
        run_for_all_candidates(versions, statement, keep=True)
    versions.key, versions.names = "__c", names


def hold_table(db: duckdb.DuckDBPyConnection, versions: Versions, name: str, cells: dict[str, object]) -> None:
    """Create a table of these columns that lives as long as the versions."""
    db.register("__cells", cells)
    db.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM __cells")
    db.unregister("__cells")
    versions.relations.append(("TABLE", name))


def evaluate_together(
    db: duckdb.DuckDBPyConnection,
    program: Program,
    parts: ModelStatements,
    versions: Versions,
    places: Sequence[Sequence[int]],
    columns: Sequence[str],
    most: int,
    trials: int = 1,
    changed: ChoiceReread | None = None,
) -> Results:
    """Evaluate all candidates of a request at once. places: for each candidate its rows of ``__rows``. versions: as
    ``prepare_versions`` left them. most: rows that break a rule, for each candidate. Of several trials, the outcomes
    of the first come first.

    Raises:
        Unfit: a statement cannot be rewritten.
    """
    rows, note = rows_to_choose_from(db, parts, versions, columns, changed)
    create_candidates(db, versions, [*places] * trials, columns, program.single, len(places), rows)
    few = None
    if trials == 1 and len(parts.change) == 1 and not parts.recompute:
        few = find_few_rows(db, versions, parts.change[0], len(places))
    for at, statement in enumerate(parts.change):
        cells = versions.rows(statement.target) * len(places) * trials
        run_for_all_candidates(
            versions, statement, keep=bool(parts.recompute) or (not few and cells <= MOST_CELLS and parts.keeps(at))
        )
    if parts.recompute:
        recompute_together(db, program, parts, versions)
    results = Results.empty([*parts.measures], [*parts.rules, *parts.bounds], len(places) * trials)
    results.note = note
    for name, statement in parts.measures.items():
        quick = sums(db, versions, statement, few) if few else None
        results.values[name] = query_numbers(db, versions, statement) if quick is None else quick
    for name, statement in parts.rules.items():
        read_broken_rows(db, versions, statement, results.broken[name], most)
    for name, statement in parts.bounds.items():
        check_limit_rule(name, program.limits[name], results, query_numbers(db, versions, statement))
    return results


def rows_to_choose_from(
    db: duckdb.DuckDBPyConnection,
    parts: ModelStatements,
    versions: Versions,
    columns: Sequence[str],
    changed: ChoiceReread | None,
) -> tuple[str, str]:
    """Return the table of the rows that may be chosen, and a note on it."""
    if changed is None or parts.choice is None:
        return ROWS, ""
    of_trials = any(versions.now[name].key for name in parts.choice.reads & set(versions.now))
    query = versions.inside(parts.choice.tree).sql("duckdb")
    if of_trials:
        query = f"SELECT __q.*, {K}.__t FROM {TRIALS} AS {K}, LATERAL ({query}) AS __q"
    rows, note = reread_choice(db, changed, columns, query, TRIALS if of_trials else "")
    if rows != ROWS:
        versions.relations.append(("TABLE", rows))
    return rows, note


def create_candidates(
    db: duckdb.DuckDBPyConnection,
    versions: Versions,
    places: Sequence[Sequence[int]],
    columns: Sequence[str],
    single: bool,
    count: int,
    table: str = ROWS,
) -> None:
    """Create the table of candidates, ``count`` in a trial, and the table of the rows of each.

    If a candidate is one row, its columns are parameters.
    """
    sizes = [len(rows) for rows in places]
    cells = {"c": np.repeat(np.arange(len(places)), sizes), "r": np.fromiter(chain.from_iterable(places), np.int64)}
    db.register("__pairs", cells)
    of_trials = any(name == "__t" for name, *_ in db.execute(f"DESCRIBE {table}").fetchall())
    less, same = ('("__r", "__t")', f" AND __t = c // {max(1, count)}") if of_trials else ('("__r")', "")
    chosen = f'SELECT t.* EXCLUDE {less}, c AS "__c" FROM __pairs JOIN {table} AS t ON r = "__r"{same}'
    db.execute(f"CREATE TEMP TABLE {CHOSEN} AS {chosen}")
    db.unregister("__pairs")
    versions.relations.append(("TABLE", CHOSEN))
    versions.now["choice"] = Version(CHOSEN, "__c")
    versions.tables["choice"] = tuple(columns)
    named = "".join(f", {quote_identifier(name)} AS {quote_identifier('__p_' + name)}" for name in columns)
    trial = f"// {max(1, count)} AS __t"
    one = f"SELECT __c, __c {trial}{named} FROM {CHOSEN} ORDER BY 1"
    every = f"SELECT range AS __c, range {trial} FROM range({len(places)})"
    db.execute(f"CREATE TEMP TABLE {CANDIDATES} AS {one if single else every}")
    versions.relations.append(("TABLE", CANDIDATES))


def recompute_together(
    db: duckdb.DuckDBPyConnection, program: Program, parts: ModelStatements, versions: Versions
) -> None:
    """Run the statements of recompute, as often as the file says or until the numbers settle.

    Raises ToolError if they do not settle.
    """
    last = None
    for _ in range(program.times or MAX_ROUNDS):
        for statement in parts.recompute:
            run_for_all_candidates(versions, statement, keep=True)
        drop_unused_versions(db, versions)
        if parts.until is not None:
            here = query_numbers(db, versions, parts.until)
            if last is not None and has_settled(here, last):
                return
            last = here
    if parts.until is not None:
        raise ToolError(f"recompute.until has not settled after {program.times or MAX_ROUNDS} rounds.")


def has_settled(here: ArrayLike, last: ArrayLike) -> bool:
    return bool(np.allclose(here, last, rtol=SETTLED, atol=0, equal_nan=True))


def drop_unused_versions(db: duckdb.DuckDBPyConnection, versions: Versions) -> None:
    """Drop the tables that no later statement reads, unless views need them."""
    if any(kind == "VIEW" for kind, _ in versions.relations):
        return
    used = {version.relation for version in versions.now.values()} | {CHOSEN, CANDIDATES, TRIALS}
    for kind, relation in versions.relations:
        if relation not in used:
            db.execute(f"DROP {kind} IF EXISTS {quote_identifier(relation)}")
    # the list keeps its length: names of relations are numbered by it


def query_numbers(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement) -> Floats:
    cells = db.execute(versions.value(statement)).fetchnumpy()["v"]
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values


def read_broken_rows(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, broken: BrokenRule, most: int
) -> None:
    """Read the first rows that break a rule, for each candidate, in a stable order."""
    ranked = (
        f'SELECT *, count(*) OVER (PARTITION BY "__c") AS "__n" FROM ({versions.rows_of(statement)}) AS __b '
        f'QUALIFY row_number() OVER (PARTITION BY "__c" ORDER BY __b) <= {max(1, most)} ORDER BY "__c", __b'
    )
    cursor = db.execute(ranked)
    names = [name for name, *_ in cursor.description or ()]
    for row in cursor.fetchall():
        cells = dict(zip(names[1:-1], row[1:-1], strict=True))
        broken.add(row[0], row[-1], cells if most else None)


def check_limit_rule(name: str, limit: Limit, results: Results, bounds: Floats) -> None:
    """Check a rule on a measure against its bounds. A measure without a number breaks the rule.

    Raises:
        ToolError: the bound of a candidate is no number.
    """
    values, broken = results.values[limit.measure], results.broken[name]
    if count := int(np.isnan(bounds).sum()):
        raise ToolError(
            f"rule.{name}: its limit is NULL for {count:,} of {len(bounds):,} candidates, so nothing can "
            "be held against it; write coalesce, or mend the data."
        )
    for at, (value, bound) in enumerate(zip(values.tolist(), bounds.tolist(), strict=True)):
        near = np.isfinite(value) and abs(value - bound) <= SETTLED * max(abs(bound), abs(value))
        if value != value or (limit.side * value > limit.side * bound and not near):
            broken.add(at, 1, {limit.measure: None if value != value else value, "limit": bound})


def evaluate_one_by_one(
    db: duckdb.DuckDBPyConnection,
    program: Program,
    parts: ModelStatements,
    before: Sequence[Statement],
    seed: int | None,
    places: Sequence[Sequence[int]],
    columns: Sequence[str],
    most: int,
    anew: ChoiceReread | None = None,
) -> Results:
    """Evaluate the candidates one after the other. before: statements that hold for all candidates.

    Raises ToolError with the statement that fails.
    """
    results = Results.empty([*parts.measures], [*parts.rules, *parts.bounds], len(places))
    results.how = "one by one"
    bounds = {name: np.full(len(places), np.nan) for name in parts.bounds}
    for at, rows in enumerate(places):
        with changed_inputs(db, program, before, seed), choice_table(db, rows, parts.choice, anew, columns) as note:
            results.note = note
            values = chosen_row_values(db, columns, rows) if program.single else {}
            for statement in parts.change:
                execute_statement(db, statement, values)
            recompute_until_settled(db, program, parts, values)
            for name, statement in parts.measures.items():
                results.values[name][at] = query_number(db, statement, values)
            for name, statement in parts.rules.items():
                for row in first_broken_rows(db, statement, values, most):
                    results.broken[name].add(at, *row)
            for name, statement in parts.bounds.items():
                bounds[name][at] = query_number(db, statement, values)
    for name, bound in bounds.items():
        check_limit_rule(name, program.limits[name], results, bound)
    return results


def measure_present(
    db: duckdb.DuckDBPyConnection,
    program: Program,
    parts: ModelStatements,
    before: Sequence[Statement],
    seed: int | None,
) -> dict[str, float | None]:
    """Return each measure with nothing chosen; None if the measure reads the choice."""
    with changed_inputs(db, program, before, seed), choice_table(db, ()):
        recompute_until_settled(db, program, parts, {})
        return {
            name: None if statement.names or "choice" in statement.reads else query_number(db, statement, {})
            for name, statement in parts.measures.items()
        }


@contextmanager
def changed_inputs(
    db: duckdb.DuckDBPyConnection, program: Program, before: Iterable[Statement], seed: int | None
) -> Iterator[None]:
    """Open a transaction with the inputs varied and ``before`` applied; it is rolled back at the end."""
    seeds = [] if seed is None else [seed]
    db.execute("BEGIN")
    try:
        for name, spreads in spreads_by_table(program.spreads if seeds else ()).items():
            sets = ", ".join(f"{place} = {value}" for place, value in varied_columns(name, spreads))
            register_draws(db, name, spreads, seeds)
            db.execute(
                f"UPDATE {quote_identifier(name)} SET {sets} FROM {DRAWS} AS __d "
                f"WHERE __d.r = {quote_identifier(name)}.rowid"
            )
            db.unregister(DRAWS)
        for statement in before:
            execute_statement(db, statement, {})
        yield
    finally:
        db.execute("ROLLBACK")


@contextmanager
def choice_table(
    db: duckdb.DuckDBPyConnection,
    rows: Sequence[int],
    choice: Statement | None = None,
    anew: ChoiceReread | None = None,
    columns: Sequence[str] = (),
) -> Iterator[str]:
    """Build the table ``choice`` with these rows, and yield a note.

    The table goes with the transaction. anew: if given, the rows are read again on the changed data; the note says how
    that went.
    """
    table, note = ROWS, ""
    if anew is not None and choice is not None:
        table, note = reread_choice(db, anew, columns, choice.tree.sql("duckdb"))
    numbers = ", ".join(map(str, rows)) or "NULL"
    query = f'SELECT * EXCLUDE ("__r") FROM {table} WHERE "__r" IN ({numbers}) ORDER BY "__r"'
    db.execute(f"CREATE TEMP TABLE choice AS {query}")
    yield note


def chosen_row_values(db: duckdb.DuckDBPyConnection, columns: Sequence[str], rows: Sequence[int]) -> dict[str, object]:
    """Return the columns of the only chosen row by their names as parameters; nothing for several rows."""
    return {name: f"(SELECT {quote_identifier(name)} FROM choice)" for name in columns} if len(rows) == 1 else {}


def execute_statement(
    db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, Any]
) -> duckdb.DuckDBPyConnection:
    """Run a statement of the model. Raises ToolError with the part of the file, and DuckDB's complaint."""
    import duckdb
    from sqlglot import exp, parse_one

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


def duckdb_complaint(error: Exception) -> str:
    """Return DuckDB's complaint on one line, without the place in the statement.

    >>> duckdb_complaint(ValueError("Binder Error: no x!\\n\\nLINE 1: SELECT x"))
    'Binder Error: no x!'
    """
    return " ".join(str(error).split("\n\nLINE ")[0].split())[:400]


def recompute_until_settled(
    db: duckdb.DuckDBPyConnection, program: Program, parts: ModelStatements, values: dict[str, object]
) -> None:
    """Run the statements of recompute, as often as the file says or until the number settles.

    Raises ToolError if it does not settle.
    """
    last = None
    for _ in range(program.times or MAX_ROUNDS) if parts.recompute else ():
        for statement in parts.recompute:
            execute_statement(db, statement, values)
        if parts.until is not None:
            here = query_number(db, parts.until, values)
            if last is not None and has_settled(here, last):
                return
            last = here
    if parts.until is not None:
        raise ToolError(f"recompute.until has not settled after {program.times or MAX_ROUNDS} rounds.")


def query_number(db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, object]) -> float:
    """Return the number that a query gives, nan if there is none. Raises ToolError for any other result."""
    rows = execute_statement(db, statement, values).fetchmany(2)
    if len(rows) > 1 or (rows and len(rows[0]) != 1):
        raise ToolError(
            f"{statement.part} must give one number; it gives {'several rows' if len(rows) > 1 else ''}"
            f"{f'{len(rows[0])} columns' if len(rows[0]) > 1 else ''}."
        )
    value = rows[0][0] if rows else None
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ToolError(f"{statement.part} must give a number; it gives {str(value)[:80]!r}.") from error


def first_broken_rows(
    db: duckdb.DuckDBPyConnection, statement: Statement, values: dict[str, Any], most: int
) -> list[tuple[int, dict[str, Value] | None]]:
    """Return the first rows of a query, each with the count of all rows."""
    cursor = execute_statement(db, statement, values)
    names = [name for name, *_ in cursor.description or ()]
    rows = sorted(cursor.fetchall(), key=str)
    shown_rows = [dict(zip(names, row, strict=True)) if most else None for row in rows[: max(1, most)]]
    return [(len(rows), row) for row in shown_rows]
