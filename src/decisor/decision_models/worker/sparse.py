"""Sums over a large table of which a candidate changes few rows, by difference.

The shared sum over the table as it was, less the rows that the candidate changes, plus their new values: so 1,000
candidates that change 100 rows each read 200,000 rows, not 100 million. This is only for a measure made of sums and
counts over the table, joined with data that is the same for all; any other one is computed as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from sqlglot import exp

from decisor.decision_models.worker.inputs import Floats
from decisor.decision_models.worker.lift import own_aggregates, parse
from decisor.decision_models.worker.program import Statement
from decisor.decision_models.worker.worlds import Version, Worlds
from decisor.system.text import quote_identifier

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
