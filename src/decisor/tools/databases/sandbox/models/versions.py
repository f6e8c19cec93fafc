"""Statements for one candidate, rewritten for all candidates at once.

A table that a statement changes has a current version: a relation of its own, which has a column ``__c`` (the
candidate) where the change depends on the candidate. A query that reads such a table reads the rows of its candidate
only, written as a correlated subquery, which DuckDB turns into joins. Nothing is guessed: what cannot be rewritten
raises Unfit, and the caller runs one candidate after the other.
"""

from __future__ import annotations

from collections.abc import Collection
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
        own = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            version = self.now.get(table.name.lower())
            if version is not None and table.name.lower() not in own:
                place_version(table, version)
        return tree

    def base(self, name: str, depends: bool) -> tuple[str, str]:
        """A FROM clause with the present rows of a table, and the columns of a next version."""
        version, own = self.now.get(name), quoted(name)
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        relation = f"{quoted(version.relation) if version else own} AS {own}"
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

    def run(self, statement: Statement, keep: bool) -> None:
        """An UPDATE, DELETE or INSERT makes a next version of its table."""
        name = statement.target
        version = self.now.get(name)
        depends = self.depends(statement) or bool(version and version.key)
        from_clause, columns = self.base(name, depends)
        tree = statement.tree
        match tree:
            case exp.Update():
                sql = self.updated(tree, name, from_clause, columns)
            case exp.Delete():
                sql = self._deleted(tree, from_clause, columns)
            case _:
                sql = self._inserted(tree, name, from_clause, columns, depends)
        self.put(name, sql, self.key if depends else "", keep or not depends)

    def updated(self, tree: exp.Expr, name: str, from_clause: str, columns: str) -> str:
        refuse_more(tree, {"this", "expressions", "where"})
        where, parts = tree.args.get("where"), []
        alias_as(tree.this, name)
        for one in tree.expressions:
            if not isinstance(one, exp.EQ) or not isinstance(one.this, exp.Column):
                raise Unfit("SET of several columns at once")
            value, place = self._sql(one.expression), quoted(one.this.name)
            if where is not None:
                value = f"CASE WHEN {self._sql(where.this)} THEN {value} ELSE {quoted(name)}.{place} END"
            parts.append(f"{value} AS {place}")
        star, comma, more = columns.partition(", ")
        return f"SELECT {star} REPLACE ({', '.join(parts)}){comma}{more} FROM {from_clause}"

    def _deleted(self, tree: exp.Expr, from_clause: str, columns: str) -> str:
        refuse_more(tree, {"this", "where"})
        alias_as(tree.this, tree.this.name.lower())
        where = tree.args.get("where")
        gone = self._sql(where.this) if where is not None else "TRUE"
        return f"SELECT {columns} FROM {from_clause} WHERE NOT coalesce({gone}, FALSE)"

    def _inserted(self, tree: exp.Expr, name: str, from_clause: str, columns: str, depends: bool) -> str:
        refuse_more(tree, {"this", "expression"})
        listed = [one.name for one in tree.this.expressions] if isinstance(tree.this, exp.Schema) else self.tables[name]
        names = ", ".join(map(quoted, listed))
        rows = self._sql(tree.expression)
        rows = rows if isinstance(tree.expression, exp.Query) else f"SELECT * FROM ({rows})"
        fresh = f"SELECT __q.* FROM ({rows}) AS __q({names})"
        if depends:
            fresh = f"SELECT __q.*, {K}.{self.key} FROM {EACH[self.key]} AS {K}, LATERAL ({rows}) AS __q({names})"
        return f"(SELECT {columns} FROM {from_clause}) UNION ALL BY NAME ({fresh})"

    def value(self, statement: Statement) -> str:
        """SQL of one number for each candidate: __c, value."""
        inner = self._sql(statement.tree)
        return f'SELECT {K}."__c" AS c, CAST(({inner}) AS DOUBLE) AS v FROM {CANDIDATES} AS {K} ORDER BY 1'

    def rows(self, name: str) -> int:
        """Of a table of the copy, as it was loaded."""
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        count = self.db.execute(f"SELECT count(*) FROM {quoted(name)}").fetchall()[0][0]
        return int(count)

    def rows_of(self, statement: Statement) -> str:
        """SQL of the rows for each candidate: __c, then the columns."""
        inner = self._sql(statement.tree)
        return f'SELECT {K}."__c" AS "__c", __q.* FROM {CANDIDATES} AS {K}, LATERAL ({inner}) AS __q'

    def _sql(self, tree: exp.Expr) -> str:
        return self.inside(tree).sql("duckdb")

    def drop(self) -> None:
        for kind, relation in reversed(self.relations):
            self.db.execute(f"DROP {kind} IF EXISTS {quoted(relation)}")
        self.relations.clear()
        self.now.clear()


def place_version(table: exp.Expr, version: Version) -> None:
    """Puts a version in the place of a table, in place, under the name that the query has for it."""
    alias = table.alias or table.name
    named = exp.alias_(exp.to_table(quoted(version.relation), dialect="duckdb"), alias, table=True, quoted=True)
    if not version.key:
        table.replace(named)
        return
    here = column(version.key, alias).eq(column(version.key, K))
    select, up = table.find_ancestor(exp.Select), table.parent
    if select is not None and isinstance(up, exp.From | exp.Join) and beside(select, up):
        table.replace(named)  # DuckDB then joins once, on all conditions
        select.where(here, append=True, copy=False)
        return
    same = f"__v.{version.key} = {K}.{version.key}"
    text = f"SELECT * EXCLUDE ({version.key}) FROM {quoted(version.relation)} AS __v WHERE {same}"
    rows = sqlglot.parse_one(text, read="duckdb")
    table.replace(exp.alias_(exp.Subquery(this=rows), alias, table=True, quoted=True))


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


def alias_as(table: exp.Expr, name: str) -> None:
    """An UPDATE or DELETE that gives its table another name."""
    if table.alias and table.alias.lower() != name:
        raise Unfit("the changed table has a second name")


def refuse_more(tree: exp.Expr, known: Collection[str]) -> None:
    if more := {name for name, value in tree.args.items() if value} - set(known):
        raise Unfit(f"{type(tree).__name__.upper()} with {', '.join(sorted(more))}")


def column(name: str, table: str) -> exp.Expr:
    return exp.column(name, table=table, quoted=True)
