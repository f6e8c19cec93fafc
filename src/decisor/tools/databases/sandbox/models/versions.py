"""Statements for one candidate, rewritten for all candidates at once.

A table that a statement changes has a current version: a relation of its own, which has a column ``__c`` (the
candidate) where the change depends on the candidate. A query that reads such a table reads the rows of its candidate
only, written as a correlated subquery, which DuckDB turns into joins. Nothing is guessed: what cannot be rewritten
raises Unfit, and the caller runs one candidate after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.statements import Statement

if TYPE_CHECKING:
    import duckdb

K = "__k"
"""The candidate, or the trial, that a query is about, as the rewritten queries call it."""
CANDIDATES = "__candidate"
TRIALS = "__trial"
EACH = {"__c": CANDIDATES, "__t": TRIALS}
"""What a version has rows for, and the table of them. Every candidate belongs to a trial, and knows it."""


class Unfit(Exception):
    """This statement cannot be run for all candidates at once."""


@dataclass(frozen=True)
class Version:
    """``key``: the column that tells whose a row is, ``__c`` (a candidate) or ``__t`` (a trial); '' where it is one
    for all."""

    relation: str
    key: str = ""


@dataclass
class Versions:
    """``tables``: lower case -> columns. ``names``: parameters of a candidate. ``now``: the versions of changed tables,
    by lower-case name. ``key``: what statements are run for at present. ``relations``: to be dropped in the end.
    ``dense``: tables of which candidates change many rows."""

    db: duckdb.DuckDBPyConnection
    tables: dict[str, tuple[str, ...]]
    names: Collection[str]
    now: dict[str, Version] = field(default_factory=dict)
    key: str = "__c"
    relations: list[tuple[str, str]] = field(default_factory=list)
    dense: set[str] = field(default_factory=set)

    def depends(self, statement: Statement) -> bool:
        """Whether its result may differ between candidates."""
        of_each = {name for name, version in self.now.items() if version.key}
        return bool(statement.names & set(self.names) or statement.reads & of_each)

    def inside(self, tree: exp.Expr) -> exp.Expr:
        """A copy that reads the versions of its candidate."""
        tree = tree.copy()
        for place in list(tree.find_all(exp.Placeholder)):
            if place.name not in self.names:
                raise Unfit(f"there is no parameter ${place.name}")
            place.replace(column("__p_" + place.name, K))
        own_names(tree, self.now)
        if tree.find(exp.Pivot):
            raise Unfit("PIVOT, whose columns are those of one candidate")
        every = [(table, self.now[name]) for table in tree.find_all(exp.Table)
                 if (name := table.name.lower()) in self.now]  # fmt: skip
        outer = {id(join.parent) for table, version in every if version.key for join in outer_joins(table)}
        for table, version in every:
            place_version(table, version, id(table.find_ancestor(exp.Select)) in outer)
        return tree

    def base(self, name: str, depends: bool, alias: str = "") -> tuple[str, str]:
        """A FROM clause with the present rows of a table, and the columns of a next version."""
        version, own = self.now.get(name), quoted(alias or name)
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        relation = f"{quoted(version.relation if version else name)} AS {own}"
        if version is not None and version.key:
            joined = f"{relation} JOIN {EACH[self.key]} AS {K} ON {K}.{version.key} = {own}.{version.key}"
            if version.key == self.key:
                return joined, f"{own}.*"
            return joined, f"{own}.* EXCLUDE ({version.key}), {K}.{self.key}"
        if depends:
            return f"{relation} CROSS JOIN {EACH[self.key]} AS {K}", f"{own}.*, {K}.{self.key}"
        return relation, f"{own}.*"

    def put(self, name: str, sql: str, key: str, keep: bool) -> None:
        """A next version; ``keep``: its rows are computed once, not wherever they are read."""
        relation, kind = f"__{len(self.relations)}_{name}", "TABLE" if keep else "VIEW"
        self.db.execute(f"CREATE TEMP {kind} {quoted(relation)} AS {sql}")
        self.relations.append((kind, relation))
        self.now[name] = Version(relation, key)

    def keep(self, name: str, sql: str, key: str) -> Version:
        """A relation that is no version yet."""
        last = self.now.get(name)
        self.put(name, sql, key, keep=True)
        version = self.now[name]
        self.restore(name, last)
        return version

    def restore(self, name: str, version: Version | None) -> None:
        """The table is this version; None: as it was loaded."""
        if version is None:
            self.now.pop(name, None)
        else:
            self.now[name] = version

    def value(self, statement: Statement) -> str:
        """SQL of one number for each candidate: __c, value."""
        inner = self.sql(statement.tree)
        return f'SELECT {K}."__c" AS c, CAST(({inner}) AS DOUBLE) AS v FROM {CANDIDATES} AS {K} ORDER BY 1'

    def rows(self, name: str) -> int:
        """Of a table of the copy, as it was loaded."""
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        return self.count(quoted(name))

    def count(self, from_clause: str) -> int:
        return int(self.db.execute(f"SELECT count(*) FROM {from_clause}").fetchall()[0][0])

    def rows_of(self, statement: Statement) -> str:
        """SQL of the rows for each candidate: __c, then the columns."""
        inner = self.sql(statement.tree)
        return f'SELECT {K}."__c" AS "__c", __q.* FROM {CANDIDATES} AS {K}, LATERAL ({inner}) AS __q'

    def sql(self, tree: exp.Expr) -> str:
        return self.inside(tree).sql("duckdb")

    def drop(self) -> None:
        for kind, relation in reversed(self.relations):
            self.db.execute(f"DROP {kind} IF EXISTS {quoted(relation)}")
        self.relations.clear()
        self.now.clear()


def place_version(table: exp.Expr, version: Version, apart: bool) -> None:
    """Puts a version in the place of a table, in place, under the name that the query has for it. ``apart``: an outer
    join of the same query joins a version too; with a condition beside its own, DuckDB 1.5 fails."""
    alias = table.alias or table.name
    named = exp.alias_(exp.to_table(quoted(version.relation), dialect="duckdb"), alias, table=True, quoted=True)
    if not version.key:
        in_place_of(table, named)
        return
    here = column(version.key, alias).eq(column(version.key, K))
    select, up = table.find_ancestor(exp.Select), table.parent
    if not apart and select is not None and isinstance(up, exp.From | exp.Join) and beside(select, up):
        in_place_of(table, named)  # DuckDB then joins once, on all conditions
        select.where(here, append=True, copy=False)
        return
    same = f"__v.{version.key} = {K}.{version.key}"
    text = f"SELECT * EXCLUDE ({version.key}) FROM {quoted(version.relation)} AS __v WHERE {same}"
    rows = sqlglot.parse_one(text, read="duckdb")
    in_place_of(table, exp.alias_(exp.Subquery(this=rows), alias, table=True, quoted=True))


def own_names(tree: exp.Expr, tables: Collection[str]) -> None:
    """Raises Unfit where a WITH has the name of one of these tables: which of the two a name is, is not worked out."""
    if names := {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)} & set(tables):
        raise Unfit(f"WITH {min(names)}, the name of a table")


def in_place_of(node: exp.Expr, other: exp.Expr) -> None:
    """With what stands around a table or a derived table, such as its joins. Raises Unfit where that is not known."""
    for key, value in node.args.items():
        if value and key in ("joins", "laterals"):
            other.set(key, value)
        elif value and key not in ("this", "alias", "db", "catalog"):
            raise Unfit(f"a table with {key}")
    node.replace(other)


def outer_joins(table: exp.Expr) -> Iterator[exp.Expr]:
    """Those that the table stands on the joined side of, at whatever depth."""
    up = table.parent
    while up is not None:
        if isinstance(up, exp.Join) and up.side:
            yield up
        up = up.parent


def beside(select: exp.Expr, up: exp.Expr) -> bool:
    """Whether the condition on the candidate may stand beside the others of the query: no star would show ``__c``, no
    join by names would use it, and no outer join would turn it round."""
    joins = select.args.get("joins") or []
    stars = any(one.is_star for one in select.expressions) or any(
        join.args.get("using") or join.method for join in joins
    )
    turned = any(join.side in ("RIGHT", "FULL") or join.kind in ("SEMI", "ANTI") for join in joins)
    own = up is select.args.get("from_") or up is select.args.get("from") or any(up is join for join in joins)
    return own and not stars and not turned and not (isinstance(up, exp.Join) and up.side)


def column(name: str, table: str) -> exp.Expr:
    return exp.column(name, table=table, quoted=True)
