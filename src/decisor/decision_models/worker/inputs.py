"""The inputs of a trial and the rows of the choice, and the results that candidates have.

Inputs are varied, the same way for the same seed. Each input has a stream of its own in each trial (numpy's Philox,
whose key is made of the seed and the name of the input by SeedSequence), and each row or group its place in that
stream. So no two draws are bound to each other, and an input varies in the same way whether it varies alone or with
others.

The rows that may be chosen are read again if a trial, a scenario or a what-if changes data that they read. A candidate
stays the same row: it is known again by the columns of ``choice`` that nothing changes, and takes the others as they
then are. A row that is missing then keeps its values, and the result says so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from decisor.decision_models.schema import Input
from decisor.decision_models.worker.lift import WORLDS
from decisor.decision_models.worker.program import ModelStatements, Statement, assigned_columns
from decisor.sandbox.wire import cell_as_plain_value
from decisor.system.text import quote_identifier
from decisor.types import Table, Value

if TYPE_CHECKING:
    import duckdb


REREAD = "__rows_now"


def find_choice_reread(
    parts: ModelStatements, columns: Sequence[str], before: Iterable[Statement], spreads: Iterable[Input]
) -> tuple[str, ...] | None:
    """Return the columns of the choice that nothing changes, by which its rows are found again on changed data.

    None if the choice does not read the changed data.
    """
    choice = parts.choice
    if choice is None:
        return None
    reads = parts.reads(choice)
    before = [one for one in before if one.target in reads]
    changed = {name.lower() for one in before for name in assigned_columns(one)}
    changed |= {one.column.lower() for one in spreads if one.table.lower() in reads}
    whole = any(not isinstance(one.tree, exp.Update) for one in before)
    names = {one.name.lower() for one in choice.tree.find_all(exp.Column)}
    through = bool(reads & set(parts.tables))
    if not whole and not changed & names and not (changed and (through or choice.tree.find(exp.Star))):
        return None
    return tuple(unchanged_columns(choice.tree, columns, changed))


def unchanged_columns(tree: exp.Expr, columns: Sequence[str], changed: set[str]) -> Iterable[str]:
    """Yield the columns of a query that are columns of its tables, and not changed."""
    if not isinstance(tree, exp.Select) or tree.find(exp.AggFunc):
        return
    if any(one.is_star for one in tree.expressions):
        yield from (name for name in columns if name.lower() not in changed)
        return
    for name, one in zip(columns, tree.expressions, strict=False):
        plain = one.unalias()
        if isinstance(plain, exp.Column) and plain.name.lower() not in changed:
            yield name


def reread_choice(
    db: duckdb.DuckDBPyConnection,
    table: str,
    keys: Sequence[str],
    columns: Sequence[str],
    query: str,
    of_draws: bool = False,
) -> tuple[str, str]:
    """Read the choice again on the changed data; return its table, and a note.

    The table has ``__r`` and, of draws, ``__d``. table: the rows as they were read first. query: the choice on the
    changed data, of each draw with its ``__d``.
    """
    count = db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    named = ", ".join(map(quote_identifier, keys))
    single = keys and db.execute(f"SELECT count(*) FROM (SELECT DISTINCT {named} FROM {table})").fetchall()[0][0]
    if single != count:
        return table, "choice keeps the values that it read before: nothing that stays tells its rows apart"
    # Here NULL is a value like any other.
    same = " AND ".join(f"n.{quote_identifier(one)} IS NOT DISTINCT FROM o.{quote_identifier(one)}" for one in keys)
    cells = ", ".join(
        f"CASE WHEN n.__hit THEN n.{quote_identifier(one)} ELSE o.{quote_identifier(one)} END AS "
        f"{quote_identifier(one)}"
        for one in columns
    )
    draws = WORLDS["__d"]
    each, more, join = (f" CROSS JOIN {draws} AS t", ", t.__d", " AND n.__d = t.__d") if of_draws else ("", "", "")
    db.execute(
        f'CREATE OR REPLACE TEMP TABLE {REREAD} AS SELECT {cells}, n.__hit, o."__r"{more} FROM {table} AS o{each} '
        f"LEFT JOIN (SELECT *, TRUE AS __hit FROM ({query})) AS n ON {same}{join}"
    )
    times = db.execute(f"SELECT count(*) FROM {draws}").fetchall()[0][0] if of_draws else 1
    rows, hits = db.execute(f"SELECT count(*), count(__hit) FROM {REREAD}").fetchall()[0]
    db.execute(f"ALTER TABLE {REREAD} DROP COLUMN __hit")
    if rows != count * times:
        return table, "choice keeps the values that it read before: it has a row twice on the changed data"
    if hits < rows:
        return REREAD, "rows that choice no longer gives on the changed data keep the values of before"
    return REREAD, ""


CELL_CHARS = 200

Floats = NDArray[np.float64]


@dataclass
class BrokenRule:
    """The candidates that break a rule, by place in the request: all of the first draw, then of the next."""

    places: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """Number of rows that break it, at each place."""
    rows: list[list[dict[str, Value]]] = field(default_factory=list)
    """The first of these rows, at each place."""

    def add(self, place: int, count: int, row: Mapping[str, object] | None) -> None:
        """Add a row; several rows of a place come one after the other."""
        if not self.places or self.places[-1] != place:
            self.places.append(place)
            self.counts.append(count)
            self.rows.append([])
        if row is not None:
            cells = {name: cell_as_plain_value(cell, CELL_CHARS) for name, cell in row.items()}
            self.rows[-1].append(cells)


@dataclass
class Results:
    """The outcomes of candidates, as the worker computes them."""

    parts: dict[str, dict[str, Floats]]
    """Numbers of each part of each measure, one for each candidate and draw; nan if it has none."""
    broken: dict[str, BrokenRule]
    batched: bool = True
    """True if one statement computed all candidates, False if they were computed one by one."""
    reason: str = ""
    """Why the statements could not be batched."""
    note: str = ""
    cpu: float = 0.0
    """Seconds of computation."""

    @classmethod
    def empty(cls, statements: ModelStatements, count: int, batched: bool) -> Results:
        parts = {
            name: {part: np.full(count, np.nan) for part in queries} for name, queries in statements.measures.items()
        }
        return cls(parts, {name: BrokenRule() for name in statements.rules}, batched)

    def table(self) -> Table:
        rows: list[tuple[Value, ...]] = [("execution", self.reason, self.note, self.cpu, self.batched)]
        for name, parts in self.parts.items():
            for part, values in parts.items():
                rows.append(("part", name, [none_if_nan(value) for value in values.tolist()], part, None))
        for name, broken in self.broken.items():
            rows.append(("rule", name, broken.places, broken.counts, broken.rows))
        return Table(("kind", "name", "value", "more", "rows"), tuple(rows))


def none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def join_trials(trials: Sequence[Results], count: int) -> Results:
    """Join the results of several trials with ``count`` candidates each."""
    joined = trials[0]
    joined.parts = {
        name: {part: np.concatenate([results.parts[name][part] for results in trials]) for part in parts}
        for name, parts in joined.parts.items()
    }
    for trial, results in enumerate(trials[1:], 1):
        for name, broken in results.broken.items():
            whole = joined.broken[name]
            whole.places += [at + trial * count for at in broken.places]
            whole.counts += broken.counts
            whole.rows += broken.rows
    joined.note = next((results.note for results in trials if results.note), "")
    return joined


DRAWS = "__draws"


def draw_factors(spread: Input, seed: int, count: int) -> Floats:
    """Draw the factors of one input in one trial: 1 + U(-share, share) for ``count`` rows or groups."""
    name = hashlib.sha256(f"{spread.table}.{spread.column}".lower().encode()).digest()
    # Little-endian by name, so that every machine draws the same.
    words = np.frombuffer(name[:16], dtype="<u4").tolist()
    stream = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words])))
    return np.asarray(1 + spread.share * (2 * stream.random(count) - 1))


def spreads_by_table(spreads: Sequence[Input]) -> dict[str, list[Input]]:
    """Return the varied inputs of each varied table (lower case)."""
    by_table: dict[str, list[Input]] = {}
    for spread in spreads:
        by_table.setdefault(spread.table.lower(), []).append(spread)
    return by_table


def register_draws(db: duckdb.DuckDBPyConnection, table: str, spreads: Sequence[Input], seeds: Sequence[int]) -> None:
    """Register the view ``__draws`` with the factors of the inputs for each row and trial.

    ``r`` is the row's rowid, ``t`` the trial, and ``f0``, ``f1`` ... are the factors of the inputs; it is ordered by
    trial and row. Unregister it when it is read.
    """
    # Rowids count from 0: a copy is loaded by one statement, and what deletes a row of it is rolled back.
    ((rows,),) = db.execute(f"SELECT count(*) FROM {quote_identifier(table)}").fetchall()
    cells: dict[str, NDArray[np.generic]] = {
        "t": np.repeat(np.arange(len(seeds)), rows),
        "r": np.tile(np.arange(rows), len(seeds)),
    }
    for at, spread in enumerate(spreads):
        places = draw_of_each_row(db, table, spread, rows)
        count = int(places.max()) + 1 if rows else 0
        cells[f"f{at}"] = np.concatenate([draw_factors(spread, seed, count)[places] for seed in seeds])
    db.register(DRAWS, cells)


def draw_of_each_row(db: duckdb.DuckDBPyConnection, table: str, spread: Input, count: int) -> NDArray[np.int64]:
    """Return the number of the draw for each row, in the order of rowid.

    A row has its own draw, the only one, or that of its value.
    """
    if spread.how in ("each", "together"):
        return np.arange(count) if spread.how == "each" else np.zeros(count, dtype=np.int64)
    place = quote_identifier(spread.how)
    query = f"SELECT dense_rank() OVER (ORDER BY {place}) - 1 AS g FROM {quote_identifier(table)} ORDER BY rowid"
    return np.asarray(db.execute(query).fetchnumpy()["g"], dtype=np.int64)


def varied_columns(table: str, spreads: Sequence[Input], conditions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each varied column, quoted, and its new value if ``__draws`` is joined as ``__d``.

    conditions: SQL of the rows that vary, by input.
    """
    pairs = []
    for at, spread in enumerate(spreads):
        place = quote_identifier(spread.column)
        old = f"{quote_identifier(table)}.{place}"
        value = f"{old} * __d.f{at}"
        if condition := conditions.get(spread.name):
            value = f"CASE WHEN {condition} THEN {value} ELSE {old} END"
        pairs.append((place, value))
    return pairs
