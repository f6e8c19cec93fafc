"""All candidates of a request at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from decisor.errors import ToolError
from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.choosing import ROWS, Anew, read_anew
from decisor.tools.databases.sandbox.models.few_rows import few_rows
from decisor.tools.databases.sandbox.models.few_rows import numbers as sums
from decisor.tools.databases.sandbox.models.new_rows import run
from decisor.tools.databases.sandbox.models.parts import Parts
from decisor.tools.databases.sandbox.models.program import Limit, Program
from decisor.tools.databases.sandbox.models.results import Broken, Floats, Results
from decisor.tools.databases.sandbox.models.spread import DRAWS, register_draws, replaced, tables_of
from decisor.tools.databases.sandbox.models.statements import FACTOR, Statement
from decisor.tools.databases.sandbox.models.versions import CANDIDATES, TRIALS, K, Version, Versions

if TYPE_CHECKING:
    import duckdb

CHOSEN = "__choice"
SETTLED = 1e-9
MAX_ROUNDS = 1000
MOST_CELLS = 5_000_000
"""Rows x candidates that are computed once where several statements read them."""


def prepare(
    db: duckdb.DuckDBPyConnection, program: Program, versions: Versions, before: Sequence[Statement],
    seeds: Sequence[int], factors: Sequence[float] = (),
) -> None:  # fmt: skip
    """The inputs varied, in one trial or several, and the changes that hold for all candidates, in each trial with its
    factor. Raises Unfit."""
    if len(seeds) > 1:
        versions.key = "__t"
        hold(db, versions, TRIALS, {"__t": np.arange(len(seeds))})
    for name, spreads in tables_of(program.spreads if seeds else ()).items():
        columns = ", ".join(f"{value} AS {place}" for place, value in replaced(name, spreads))
        more = ", __d.t AS __t" if len(seeds) > 1 else ""
        register_draws(db, name, spreads, seeds)
        # By position, the rows of one trial cost no join.
        joined = f"JOIN {DRAWS} AS __d ON __d.r = {quoted(name)}.rowid" if more else f"POSITIONAL JOIN {DRAWS} AS __d"
        sql = f"SELECT {quoted(name)}.* REPLACE ({columns}){more} FROM {quoted(name)} {joined}"
        versions.put(name, sql, "__t" if more else "", keep=True)
        db.unregister(DRAWS)
    names = versions.names
    if factors:
        versions.key, versions.names = "__t", (FACTOR,)
        hold(db, versions, TRIALS, {"__t": np.arange(len(factors)), f"__p_{FACTOR}": np.array(factors)})
    for statement in before:
        run(versions, statement, keep=True)
    versions.key, versions.names = "__c", names


def hold(db: duckdb.DuckDBPyConnection, versions: Versions, name: str, cells: dict[str, object]) -> None:
    """A table of these columns, for as long as the versions are."""
    db.register("__cells", cells)
    db.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM __cells")
    db.unregister("__cells")
    versions.relations.append(("TABLE", name))


def evaluate(
    db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, versions: Versions, places: Sequence[Sequence[int]],
    columns: Sequence[str], most: int, trials: int = 1, changed: Anew | None = None,
) -> Results:  # fmt: skip
    """``places``: for each candidate the rows of ``__rows`` that it consists of. ``versions``: as ``prepare`` left
    them. ``most``: rows that break a rule, for each candidate. Of several trials, those of the first come first.

    Raises:
        Unfit: a statement cannot be rewritten.
    """
    rows, note = anew(db, parts, versions, columns, changed)
    candidates(db, versions, [*places] * trials, columns, program.single, len(places), rows)
    few = None
    if trials == 1 and len(parts.change) == 1 and not parts.recompute:
        few = few_rows(db, versions, parts.change[0], len(places))
    for at, statement in enumerate(parts.change):
        cells = versions.rows(statement.target) * len(places) * trials
        run(versions, statement, keep=bool(parts.recompute) or (not few and cells <= MOST_CELLS and parts.keeps(at)))
    if parts.recompute:
        settle(db, program, parts, versions)
    results = Results.empty([*parts.measures], [*parts.rules, *parts.bounds], len(places) * trials)
    results.note = note
    for name, statement in parts.measures.items():
        quick = sums(db, versions, statement, few) if few else None
        results.values[name] = numbers(db, versions, statement) if quick is None else quick
    for name, statement in parts.rules.items():
        breaking(db, versions, statement, results.broken[name], most)
    for name, statement in parts.bounds.items():
        beyond(name, program.limits[name], results, numbers(db, versions, statement))
    return results


def anew(
    db: duckdb.DuckDBPyConnection, parts: Parts, versions: Versions, columns: Sequence[str], changed: Anew | None
) -> tuple[str, str]:
    """The table of the rows that may be chosen, and what is to be said of it."""
    if changed is None or parts.choice is None:
        return ROWS, ""
    of_trials = any(versions.now[name].key for name in parts.choice.reads & set(versions.now))
    query = versions.inside(parts.choice.tree).sql("duckdb")
    if of_trials:
        query = f"SELECT __q.*, {K}.__t FROM {TRIALS} AS {K}, LATERAL ({query}) AS __q"
    rows, note = read_anew(db, changed, columns, query, TRIALS if of_trials else "")
    if rows != ROWS:
        versions.relations.append(("TABLE", rows))
    return rows, note


def candidates(
    db: duckdb.DuckDBPyConnection, versions: Versions, places: Sequence[Sequence[int]], columns: Sequence[str],
    single: bool, count: int, table: str = ROWS,
) -> None:  # fmt: skip
    """The table of candidates, ``count`` in a trial, with parameters where one row is chosen, and the rows of each."""
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
    named = "".join(f", {quoted(name)} AS {quoted('__p_' + name)}" for name in columns)
    trial = f"// {max(1, count)} AS __t"
    one = f"SELECT __c, __c {trial}{named} FROM {CHOSEN} ORDER BY 1"
    every = f"SELECT range AS __c, range {trial} FROM range({len(places)})"
    db.execute(f"CREATE TEMP TABLE {CANDIDATES} AS {one if single else every}")
    versions.relations.append(("TABLE", CANDIDATES))


def settle(db: duckdb.DuckDBPyConnection, program: Program, parts: Parts, versions: Versions) -> None:
    """Recomputes, as often as the file says or until nothing moves. Raises ToolError where it does not settle."""
    last = None
    for _ in range(program.times or MAX_ROUNDS):
        for statement in parts.recompute:
            run(versions, statement, keep=True)
        prune(db, versions)
        if parts.until is not None:
            here = numbers(db, versions, parts.until)
            if last is not None and settled(here, last):
                return
            last = here
    if parts.until is not None:
        raise ToolError(f"recompute.until has not settled after {program.times or MAX_ROUNDS} rounds.")


def settled(here: ArrayLike, last: ArrayLike) -> bool:
    return bool(np.allclose(here, last, rtol=SETTLED, atol=0, equal_nan=True))


def prune(db: duckdb.DuckDBPyConnection, versions: Versions) -> None:
    """Drops the tables that no later statement reads; views are as they are only where a table is computed once."""
    if any(kind == "VIEW" for kind, _ in versions.relations):
        return
    used = {version.relation for version in versions.now.values()} | {CHOSEN, CANDIDATES, TRIALS}
    for kind, relation in versions.relations:
        if relation not in used:
            db.execute(f"DROP {kind} IF EXISTS {quoted(relation)}")
    # the list keeps its length: names of relations are numbered by it


def numbers(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement) -> Floats:
    cells = db.execute(versions.value(statement)).fetchnumpy()["v"]
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values


def breaking(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, broken: Broken, most: int
) -> None:
    """The first rows that break a rule, for each candidate, in an order that does not change from run to run."""
    ranked = (
        f'SELECT *, count(*) OVER (PARTITION BY "__c") AS "__n" FROM ({versions.rows_of(statement)}) AS __b '
        f'QUALIFY row_number() OVER (PARTITION BY "__c" ORDER BY __b) <= {max(1, most)} ORDER BY "__c", __b'
    )
    cursor = db.execute(ranked)
    names = [name for name, *_ in cursor.description or ()]
    for row in cursor.fetchall():
        cells = dict(zip(names[1:-1], row[1:-1], strict=True))
        broken.add(row[0], row[-1], cells if most else None)


def beyond(name: str, limit: Limit, results: Results, bounds: Floats) -> None:
    """A rule on a measure, whose bound is there. A measure that gives no number is not within it.

    Raises:
        ToolError: the bound of a candidate is no number.
    """
    values, broken = results.values[limit.measure], results.broken[name]
    if count := int(np.isnan(bounds).sum()):
        raise ToolError(f"rule.{name}: its limit is NULL for {count:,} of {len(bounds):,} candidates, so nothing can "
                        "be held against it; write coalesce, or mend the data.")  # fmt: skip
    for at, (value, bound) in enumerate(zip(values.tolist(), bounds.tolist(), strict=True)):
        near = np.isfinite(value) and abs(value - bound) <= SETTLED * max(abs(bound), abs(value))
        if value != value or (limit.side * value > limit.side * bound and not near):
            broken.add(at, 1, {limit.measure: None if value != value else value, "limit": bound})
