"""Sums over a large table of which a candidate changes few rows.

Every candidate shares the sum over the table as it was; its own is that, less the rows that it changes, plus what they
become. So 1,000 candidates that change 100 rows each read 200,000 rows, not 100 million. Only for a measure that is
made of sums and counts over the table, joined with what is the same for all; any other one is computed as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.new_rows import updated
from decisor.tools.databases.sandbox.models.results import Floats
from decisor.tools.databases.sandbox.models.statements import Statement
from decisor.tools.databases.sandbox.models.versions import CANDIDATES, K, Version, Versions

if TYPE_CHECKING:
    import duckdb

LEAST_CELLS = 200_000
"""Rows x candidates below which nothing is to be gained."""
MOST_SHARE = 0.1
"""Of the cells, that may change."""
LOSS = 1e-4
"""A sum that is so much smaller than what it is the difference of has lost digits, and is computed as ever."""


@dataclass(frozen=True)
class FewRows:
    """``shared``: the table as all have it, None where it is as it was loaded. ``was``, ``become``: the rows that
    change, with their candidate; none become anything where they are deleted."""

    table: str
    shared: Version | None
    was: Version
    become: Version | None


def few_rows(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, candidates: int
) -> FewRows | None:
    """What the statement changes, before it is run; None where that is not little, or not an UPDATE or DELETE with a
    condition of a table that all candidates share. Raises Unfit."""
    tree, name, shared = statement.tree, statement.target, versions.now.get(statement.target)
    parts = {part for part, value in tree.args.items() if value} - {"this", "expressions"}
    if not isinstance(tree, exp.Update | exp.Delete) or parts != {"where"} or tree.this.alias or name in versions.dense:
        return None
    times = sum(one.name.lower() == name for one in tree.find_all(exp.Table))
    cells = versions.rows(name) * candidates
    if times != 1 or (shared and shared.key) or cells < LEAST_CELLS or not versions.depends(statement):
        return None
    most = int(cells * MOST_SHARE)
    where = versions.inside(tree.args["where"].this).sql("duckdb")
    relation = quoted(shared.relation if shared else name)
    was = versions.keep(name, f"SELECT {quoted(name)}.*, {K}.__c FROM {relation} AS {quoted(name)} "
                              f"CROSS JOIN {CANDIDATES} AS {K} WHERE {where} LIMIT {most + 1}", "__c")  # fmt: skip
    if db.execute(f"SELECT count(*) FROM {quoted(was.relation)}").fetchall()[0][0] > most:
        versions.dense.add(name)
        return None
    become = None
    if isinstance(tree, exp.Update):
        bare = tree.copy()
        bare.set("where", None)
        versions.now[name] = was
        try:
            become = versions.keep(name, updated(versions, bare, quoted(name), *versions.base(name, True)), "__c")
        finally:
            versions.restore(name, shared)
    return FewRows(name, shared, was, become)


def numbers(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, few: FewRows) -> Floats | None:
    """The measure of each candidate; None where it is not made of sums, or they would lose digits."""
    if not made_of_sums(statement, versions, few.table):
        return None
    last = versions.now[few.table]
    try:
        shared = of_version(db, versions, statement, few.table, few.shared)
        less = of_version(db, versions, statement, few.table, few.was)
        plus = of_version(db, versions, statement, few.table, few.become) if few.become else np.zeros_like(less)
    finally:
        versions.restore(few.table, last)
    whole = shared - less + plus
    scale = np.abs(shared) + np.abs(less) + np.abs(plus)
    lost = (np.abs(whole) < LOSS * scale)[:, ::2] & (whole[:, 1::2] > 0)
    if not np.isfinite(whole).all() or lost.any():
        return None
    return finished(db, versions, statement, whole)


def made_of_sums(statement: Statement, versions: Versions, table: str) -> bool:
    """Whether nothing but rows of the table differs between candidates, and only sums and counts of them are taken."""
    tree = statement.tree
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or statement.names:
        return False
    more = {name for name, value in tree.args.items() if value} - {"expressions", "from", "from_", "joins", "where"}
    of_each = {name for name, version in versions.now.items() if version.key}
    if more or statement.reads & of_each != {table}:
        return False
    joins = tree.args.get("joins") or []
    sources = [tree.args.get("from_") or tree.args.get("from"), *joins]
    places = [one for one in tree.find_all(exp.Table) if one.name.lower() == table]
    if len(places) != 1 or not any(places[0].parent is one for one in sources):
        return False
    if any(one.side or one.method or one.kind not in ("", "INNER", "CROSS") for one in joins):
        return False
    sums, columns = aggregates(tree), tree.expressions[0].find_all(exp.Column)
    fit = all(type(one) in (exp.Sum, exp.Count) and not isinstance(one.this, exp.Distinct)
              and not isinstance(one.parent, exp.Filter | exp.Window) for one in sums)  # fmt: skip
    return bool(sums) and fit and all(one.find_ancestor(exp.AggFunc, exp.Select) is not tree for one in columns)


def aggregates(tree: exp.Expr) -> list[exp.Expr]:
    """Of the one expression that a query selects, in its order, but not of the queries in it."""
    return [one for one in tree.expressions[0].find_all(exp.AggFunc) if one.find_ancestor(exp.Select) is tree]


def of_version(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, table: str, version: Version | None
) -> Floats:
    """(candidates, or 1 where it is one for all; 2 x sums): each sum, and how many values it adds."""
    query = statement.tree.copy()
    pairs = [(one.copy(), exp.Count(this=one.this.copy())) for one in aggregates(query)]
    query.set("expressions", [exp.alias_(one, f"a{at}") for at, one in enumerate(chain.from_iterable(pairs))])
    versions.restore(table, version)
    inner = versions.inside(query).sql("duckdb")
    if version is not None and version.key:
        inner = f"SELECT __q.* FROM {CANDIDATES} AS {K}, LATERAL ({inner}) AS __q ORDER BY {K}.__c"
    return np.array([[0.0 if cell is None else float(cell) for cell in row] for row in db.execute(inner).fetchall()])


def finished(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, whole: Floats) -> Floats:
    """The expression around the sums, for each candidate."""
    tree = statement.tree.copy()
    for at, one in enumerate(aggregates(tree)):
        sum_of = f"(CASE WHEN __s.n{at} > 0 THEN __s.s{at} END)"
        one.replace(exp.maybe_parse(sum_of if isinstance(one, exp.Sum) else f"__s.s{at}", dialect="duckdb"))
    columns = {f"{'ns'[even]}{at // 2}": np.ascontiguousarray(whole[:, at])
               for at in range(whole.shape[1]) for even in [at % 2 == 0]}  # fmt: skip
    db.register("__sums", {"c": np.arange(len(whole)), **columns})
    try:
        value = versions.inside(tree.expressions[0].unalias()).sql("duckdb")
        cells = db.execute(f"SELECT CAST({value} AS DOUBLE) AS v FROM __sums AS __s ORDER BY c").fetchnumpy()["v"]
    finally:
        db.unregister("__sums")
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values
