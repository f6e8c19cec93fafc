"""The rows that may be chosen, read anew where what a trial, a scenario or a what-if changes stands in them.

A candidate stays the row that it is: it is known again by the columns of ``choice`` that nothing changes, and takes the
others as they then are. A row that is not there then keeps its values, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.program import Spread
from decisor.tools.databases.sandbox.models.statements import Statement, assigned

if TYPE_CHECKING:
    import duckdb

ROWS = "__rows"
ANEW = "__rows_now"


@dataclass(frozen=True)
class Anew:
    """``keys``: columns of the choice that nothing changes."""

    keys: tuple[str, ...]


def moved(
    choice: Statement | None, columns: Sequence[str], before: Iterable[Statement], spreads: Iterable[Spread]
) -> Anew | None:
    """None where the choice does not read what is changed."""
    if choice is None:
        return None
    before = [one for one in before if one.target in choice.reads]
    changed = {name.lower() for one in before for name in assigned(one)}
    changed |= {one.column.lower() for one in spreads if one.table.lower() in choice.reads}
    whole = any(not isinstance(one.tree, exp.Update) for one in before)
    names = {one.name.lower() for one in choice.tree.find_all(exp.Column)}
    if not whole and not changed & names and not (changed and choice.tree.find(exp.Star)):
        return None
    return Anew(tuple(keys(choice.tree, columns, changed)))


def keys(tree: exp.Expr, columns: Sequence[str], changed: set[str]) -> Iterable[str]:
    """The columns of a query that are columns of its tables, and not changed."""
    if not isinstance(tree, exp.Select) or tree.find(exp.AggFunc):
        return
    if any(one.is_star for one in tree.expressions):
        yield from (name for name in columns if name.lower() not in changed)
        return
    for name, one in zip(columns, tree.expressions, strict=False):
        plain = one.unalias()
        if isinstance(plain, exp.Column) and plain.name.lower() not in changed:
            yield name


def read_anew(
    db: duckdb.DuckDBPyConnection, anew: Anew, columns: Sequence[str], query: str, trials: str = ""
) -> tuple[str, str]:
    """The table of the rows, with ``__r`` and, of ``trials`` (the name of their table), ``__t``; and what is to be said
    of it. ``query``: the choice on the changed data, of each trial with its ``__t``."""
    count = db.execute(f"SELECT count(*) FROM {ROWS}").fetchall()[0][0]
    named = ", ".join(map(quoted, anew.keys))
    single = anew.keys and db.execute(f"SELECT count(*) FROM (SELECT DISTINCT {named} FROM {ROWS})").fetchall()[0][0]
    if single != count:
        return ROWS, "choice keeps the values that it read before: nothing that stays tells its rows apart"
    same = " AND ".join(f"n.{quoted(one)} IS NOT DISTINCT FROM o.{quoted(one)}" for one in anew.keys)
    cells = ", ".join(
        f"CASE WHEN n.__hit THEN n.{quoted(one)} ELSE o.{quoted(one)} END AS {quoted(one)}" for one in columns
    )
    each, more, join = (f" CROSS JOIN {trials} AS t", ", t.__t", " AND n.__t = t.__t") if trials else ("", "", "")
    db.execute(
        f'CREATE OR REPLACE TEMP TABLE {ANEW} AS SELECT {cells}, n.__hit, o."__r"{more} FROM {ROWS} AS o{each} '
        f"LEFT JOIN (SELECT *, TRUE AS __hit FROM ({query})) AS n ON {same}{join}"
    )
    times = db.execute(f"SELECT count(*) FROM {trials}").fetchall()[0][0] if trials else 1
    rows, hits = db.execute(f"SELECT count(*), count(__hit) FROM {ANEW}").fetchall()[0]
    db.execute(f"ALTER TABLE {ANEW} DROP COLUMN __hit")
    if rows != count * times:
        return ROWS, "choice keeps the values that it read before: it has a row twice on the changed data"
    if hits < rows:
        return ANEW, "rows that choice no longer gives on the changed data keep the values of before"
    return ANEW, ""
