"""Rewrites statements for one candidate so that they run for all candidates at once.

A table that a statement changes has a present version: a relation of its own, which has a column ``__c`` (the
candidate) if the change depends on the candidate. A query that reads such a table reads the rows of its candidate
only, written as a correlated subquery, which DuckDB turns into joins. Nothing is guessed: a statement that cannot be
rewritten raises Unfit, and the caller runs one candidate after the other.

Queries inside an UPDATE or DELETE that are the same for all rows are computed once for each candidate, since DuckDB
computes a derived table or WITH that reads a candidate's rows again for each changed row. Whether one of them uses the
row is not worked out: it is run by itself, and if that does not bind it stays in its place.

Sums over a large table of which a candidate changes few rows are computed by difference: the shared sum over the table
as it was, less the rows that the candidate changes, plus their new values. So 1,000 candidates that change 100 rows
each read 200,000 rows, not 100 million. This is only for a measure made of sums and counts over the table, joined with
data that is the same for all; any other one is computed as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TYPE_CHECKING

import numpy as np
import sqlglot
from sqlglot import exp

from decisor.decision_models.worker.inputs import Floats
from decisor.decision_models.worker.program import Statement
from decisor.system.text import quote_identifier

if TYPE_CHECKING:
    import duckdb


K = "__k"
"""The candidate, or the trial, that a query is about, as the rewritten queries call it."""
CANDIDATES = "__candidate"
TRIALS = "__trial"
EACH = {"__c": CANDIDATES, "__t": TRIALS}
"""What a version has rows for, and the table of them. Every candidate belongs to a trial, and knows it."""


class Unfit(Exception):
    """A statement that cannot be run for all candidates at once."""


@dataclass(frozen=True)
class Version:
    """A relation that holds the present rows of a table."""

    relation: str
    key: str = ""
    """Column of the owner of a row, ``__c`` (candidate) or ``__t`` (trial); '' if all share the rows."""


@dataclass
class Versions:
    """The present versions of the tables, for all candidates."""

    db: duckdb.DuckDBPyConnection
    tables: dict[str, tuple[str, ...]]
    """Columns of each table, by its name in lower case."""
    names: Collection[str]
    """Parameters of a candidate."""
    now: dict[str, Version] = field(default_factory=dict)
    """Versions of changed tables, by their names in lower case."""
    key: str = "__c"
    """``__c`` while statements run for candidates, ``__t`` while they run for trials."""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """Kind and name of each relation to drop at the end."""
    dense: set[str] = field(default_factory=set)
    """Tables of which candidates change many rows."""

    def depends(self, statement: Statement) -> bool:
        """Return whether the result of a statement may differ between candidates."""
        of_each = {name for name, version in self.now.items() if version.key}
        return bool(statement.names & set(self.names) or statement.reads & of_each)

    def inside(self, tree: exp.Expr) -> exp.Expr:
        """Return a copy of a query that reads the versions of its candidate. Raises Unfit."""
        tree = tree.copy()
        for place in list(tree.find_all(exp.Placeholder)):
            if place.name not in self.names:
                raise Unfit(f"there is no parameter ${place.name}")
            place.replace(column("__p_" + place.name, K))
        check_with_names(tree, self.now)
        if tree.find(exp.Pivot):
            raise Unfit("PIVOT, whose columns are those of one candidate")
        every = [
            (table, self.now[name]) for table in tree.find_all(exp.Table) if (name := table.name.lower()) in self.now
        ]
        outer = {id(join.parent) for table, version in every if version.key for join in enclosing_outer_joins(table)}
        for table, version in every:
            place_version(table, version, id(table.find_ancestor(exp.Select)) in outer)
        return tree

    def base(self, name: str, depends: bool, alias: str = "") -> tuple[str, str]:
        """Return a FROM clause with the present rows of a table, and the columns of its next version."""
        version, own = self.now.get(name), quote_identifier(alias or name)
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        relation = f"{quote_identifier(version.relation if version else name)} AS {own}"
        if version is not None and version.key:
            joined = f"{relation} JOIN {EACH[self.key]} AS {K} ON {K}.{version.key} = {own}.{version.key}"
            if version.key == self.key:
                return joined, f"{own}.*"
            return joined, f"{own}.* EXCLUDE ({version.key}), {K}.{self.key}"
        if depends:
            return f"{relation} CROSS JOIN {EACH[self.key]} AS {K}", f"{own}.*, {K}.{self.key}"
        return relation, f"{own}.*"

    def put(self, name: str, sql: str, key: str, keep: bool) -> None:
        """Store the next version of a table. keep: compute its rows once, not wherever they are read."""
        relation, kind = f"__{len(self.relations)}_{name}", "TABLE" if keep else "VIEW"
        self.db.execute(f"CREATE TEMP {kind} {quote_identifier(relation)} AS {sql}")
        self.relations.append((kind, relation))
        self.now[name] = Version(relation, key)

    def keep(self, name: str, sql: str, key: str) -> Version:
        """Store the rows of a query as a relation, without a new version of the table."""
        last = self.now.get(name)
        self.put(name, sql, key, keep=True)
        version = self.now[name]
        self.restore(name, last)
        return version

    def restore(self, name: str, version: Version | None) -> None:
        """Set the present version of a table; None means the table as it was loaded."""
        if version is None:
            self.now.pop(name, None)
        else:
            self.now[name] = version

    def value(self, statement: Statement) -> str:
        """Return SQL of one number for each candidate: c (the candidate) and v (the number)."""
        inner = self.sql(statement.tree)
        return f'SELECT {K}."__c" AS c, CAST(({inner}) AS DOUBLE) AS v FROM {CANDIDATES} AS {K} ORDER BY 1'

    def rows(self, name: str) -> int:
        """Count the rows of a table of the copy, as it was loaded."""
        if name not in self.tables:
            raise Unfit(f"there is no table {name}")
        return self.count(quote_identifier(name))

    def count(self, from_clause: str) -> int:
        return int(self.db.execute(f"SELECT count(*) FROM {from_clause}").fetchall()[0][0])

    def rows_of(self, statement: Statement) -> str:
        """Return SQL of the rows for each candidate: __c, then the columns."""
        inner = self.sql(statement.tree)
        return f'SELECT {K}."__c" AS "__c", __q.* FROM {CANDIDATES} AS {K}, LATERAL ({inner}) AS __q'

    def sql(self, tree: exp.Expr) -> str:
        return self.inside(tree).sql("duckdb")

    def drop(self) -> None:
        for kind, relation in reversed(self.relations):
            self.db.execute(f"DROP {kind} IF EXISTS {quote_identifier(relation)}")
        self.relations.clear()
        self.now.clear()


def place_version(table: exp.Expr, version: Version, apart: bool) -> None:
    """Replace a table by its version, in place, under the name that the query has for it.

    Args:
        apart: an outer join of the same query joins a version too. With a condition beside its own, DuckDB 1.5 fails.
    """
    alias = table.alias or table.name
    named = exp.alias_(
        exp.to_table(quote_identifier(version.relation), dialect="duckdb"), alias, table=True, quoted=True
    )
    if not version.key:
        replace_with_joins(table, named)
        return
    here = column(version.key, alias).eq(column(version.key, K))
    select, up = table.find_ancestor(exp.Select), table.parent
    if not apart and select is not None and isinstance(up, exp.From | exp.Join) and may_add_condition(select, up):
        replace_with_joins(table, named)  # DuckDB then joins once, on all conditions
        select.where(here, append=True, copy=False)
        return
    same = f"__v.{version.key} = {K}.{version.key}"
    text = f"SELECT * EXCLUDE ({version.key}) FROM {quote_identifier(version.relation)} AS __v WHERE {same}"
    rows = sqlglot.parse_one(text, read="duckdb")
    replace_with_joins(table, exp.alias_(exp.Subquery(this=rows), alias, table=True, quoted=True))


def check_with_names(tree: exp.Expr, tables: Collection[str]) -> None:
    """Raise Unfit if a WITH has the name of one of these tables, for the name could mean either."""
    if names := {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)} & set(tables):
        raise Unfit(f"WITH {min(names)}, the name of a table")


def replace_with_joins(node: exp.Expr, other: exp.Expr) -> None:
    """Replace a table or derived table by another node, and keep its joins.

    Raises Unfit if it has any other surroundings.
    """
    for key, value in node.args.items():
        if value and key in ("joins", "laterals"):
            other.set(key, value)
        elif value and key not in ("this", "alias", "db", "catalog"):
            raise Unfit(f"a table with {key}")
    node.replace(other)


def enclosing_outer_joins(table: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outer joins that have the table on their joined side, at any depth."""
    up = table.parent
    while up is not None:
        if isinstance(up, exp.Join) and up.side:
            yield up
        up = up.parent


def may_add_condition(select: exp.Expr, up: exp.Expr) -> bool:
    """Return whether the condition on the candidate may join the other conditions of the query.

    That needs that no star shows ``__c``, no join by names uses it, and no outer join turns it round.
    """
    joins = select.args.get("joins") or []
    stars = any(one.is_star for one in select.expressions) or any(
        join.args.get("using") or join.method for join in joins
    )
    turned = any(join.side in ("RIGHT", "FULL") or join.kind in ("SEMI", "ANTI") for join in joins)
    own = up is select.args.get("from_") or up is select.args.get("from") or any(up is join for join in joins)
    return own and not stars and not turned and not (isinstance(up, exp.Join) and up.side)


def column(name: str, table: str) -> exp.Expr:
    return exp.column(name, table=table, quoted=True)


def compute_inner_queries_once(versions: Versions, statement: exp.Expr) -> exp.Expr:
    """Return a copy of the statement that reads its inner queries as tables.

    ``versions.now`` gets these tables. Raises Unfit.
    """
    tree, numbers = statement.copy(), count()
    check_with_names(tree, versions.tables)
    tried: set[int] = set()
    while (block := next((one for one in find_inner_queries(tree) if id(one) not in tried), None)) is not None:
        tried.add(id(block))
        name = f"__own{next(numbers)}"
        version = version_of_query(versions, block, name)
        if version is None:
            continue
        versions.now[name] = version
        if isinstance(block, exp.CTE):
            replace_cte(block, name)
        else:
            replace_with_joins(block, renamed(name, block.alias))
    return tree


def find_inner_queries(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield derived tables and parts of a WITH, outer ones first."""
    for one in tree.find_all(exp.CTE, exp.Subquery):
        if isinstance(one, exp.CTE):
            recursive = one.parent is None or one.parent.args.get("recursive")
            names = [other.alias.lower() for other in tree.find_all(exp.CTE)]
            if not recursive and names.count(one.alias.lower()) == 1:
                yield one
        elif isinstance(one.parent, exp.From | exp.Join) and one.alias:
            yield one


def version_of_query(versions: Versions, block: exp.Expr, name: str) -> Version | None:
    """Return the rows of an inner query as a version, None if it needs the row that is changed.

    The version has rows for each candidate if they may differ.
    """
    import duckdb

    reads = {table.name.lower() for table in block.find_all(exp.Table)}
    depends = any(versions.now[one].key for one in reads & set(versions.now)) or block.find(exp.Placeholder)
    alias = block.args["alias"]
    columns = ", ".join(quote_identifier(one.name) for one in alias.columns)
    named = f"({versions.sql(block.this)}) AS __q{f'({columns})' if columns else ''}"
    sql = f"SELECT * FROM {named}"
    if depends:
        sql = f"SELECT __q.*, {K}.{versions.key} FROM {EACH[versions.key]} AS {K}, LATERAL {named}"
    try:
        return versions.keep(name, sql, versions.key if depends else "")
    # It does not bind by itself, for it uses the row that is changed.
    except duckdb.Error:
        return None


def replace_cte(cte: exp.Expr, name: str) -> None:
    """Replace each mention of a CTE by its table, and remove the CTE from the WITH."""
    clause = cte.parent
    query = clause.parent if clause is not None else None
    if clause is None or query is None:
        return
    cte.pop()
    for table in list(query.find_all(exp.Table)):
        if table.name.lower() == cte.alias.lower() and not table.db:
            replace_with_joins(table, renamed(name, table.alias or cte.alias))
    if not clause.expressions:
        clause.pop()


def renamed(name: str, alias: str) -> exp.Expr:
    return exp.alias_(exp.to_table(name), alias, table=True, quoted=True)


def run_for_all_candidates(versions: Versions, statement: Statement, keep: bool) -> None:
    """Run a statement as the next version of its table, for all candidates. Raises Unfit.

    Args:
        keep: compute its rows once, not wherever they are read.
    """
    name, tree = statement.target, statement.tree
    version = versions.now.get(name)
    depends = versions.depends(statement) or bool(version and version.key)
    key, keep, before = versions.key if depends else "", keep or not depends, dict(versions.now)
    if isinstance(tree, exp.Insert):
        versions.put(name, inserted(versions, tree, name, *versions.base(name, depends), depends), key, keep)
        return
    tree = compute_inner_queries_once(versions, tree)
    alias = tree.this.alias or name
    base = versions.base(name, depends, alias)
    if isinstance(tree, exp.Update) and (source := only_source_table(tree)) is not None:
        versions.put(name, update_as_join(versions, tree, source, quote_identifier(alias), *base), key, keep)
        # With equal counts no row has matched twice, so the join is the UPDATE.
        if versions.count(quote_identifier(versions.now[name].relation)) == versions.count(base[0]):
            versions.now = {**before, name: versions.now[name]}
            return
        # Several rows match: only the slower query tells whether their values agree.
        versions.restore(name, version)
    sql = (update_as_query if isinstance(tree, exp.Update) else deleted)(versions, tree, quote_identifier(alias), *base)
    versions.now = before
    versions.put(name, sql, key, keep)


def only_source_table(tree: exp.Expr) -> exp.Table | None:
    """Return the only source of an UPDATE ... FROM if it is a table and the condition has no query."""
    source, where = tree.args.get("from_"), tree.args.get("where")
    if source is None or source.this.args.get("joins") or (where is not None and where.find(exp.Query)):
        return None
    return source.this if isinstance(source.this, exp.Table) else None


def update_as_join(
    versions: Versions, tree: exp.Expr, source: exp.Table, own: str, from_clause: str, columns: str
) -> str:
    """Write an UPDATE with FROM as a join.

    It is right if every row matches at most one row, so that it keeps their count.
    """
    refuse_more(tree, {"this", "expressions", "where", "from_"})
    where = tree.args.get("where")
    version, other = versions.now.get(source.name.lower()), quote_identifier(source.alias or source.name)
    relation = quote_identifier(version.relation if version else source.name)
    on = [versions.sql(where.this)] if where is not None else []
    on += [f"{other}.{version.key} = {K}.{version.key}"] if version and version.key else []
    from_clause += f" LEFT JOIN (SELECT *, TRUE AS __hit FROM {relation}) AS {other} ON {' AND '.join(on) or 'TRUE'}"
    pairs = [(name, versions.sql(value)) for one in tree.expressions for name, value in assignments(one)]
    return select_with_new_values(pairs, f"{other}.__hit", own, from_clause, columns)


def update_as_query(versions: Versions, tree: exp.Expr, own: str, from_clause: str, columns: str) -> str:
    """Write an UPDATE as a query of the new rows. own: the statement's name for its table, in quotes.

    If several rows of FROM match, their values must be equal; else the query fails when it runs, where DuckDB alone
    would take one of them for each candidate.
    """
    refuse_more(tree, {"this", "expressions", "where", "from_"})
    where, source = tree.args.get("where"), tree.args.get("from_")
    pairs = [pair for one in tree.expressions for pair in assignments(one)]
    if source is None:
        condition = versions.sql(where.this) if where is not None else ""
        texts = [(name, versions.sql(value)) for name, value in pairs]
        return select_with_new_values(texts, condition, own, from_clause, columns)
    match = query_of_matches(
        [exp.alias_(value.copy(), f"__s{at}") for at, (_, value) in enumerate(pairs)], source.this, where
    )
    first = "".join(
        f", CASE WHEN min(__s{at}) IS DISTINCT FROM max(__s{at}) OR count(__s{at}) NOT IN (0, count(*)) "
        f"THEN error('several rows of FROM match') ELSE first(__s{at}) END AS __s{at}"
        for at in range(len(pairs))
    )
    from_clause += f" CROSS JOIN LATERAL (SELECT count(*) AS __n{first} FROM ({versions.sql(match)})) AS __m"
    texts = [(name, f"__m.__s{at}") for at, (name, _) in enumerate(pairs)]
    return select_with_new_values(texts, "__m.__n > 0", own, from_clause, columns)


def query_of_matches(columns: Sequence[str | exp.Expr], source: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    """Build a query of the rows that match in an UPDATE's FROM or a DELETE's USING.

    Their joins are parsed as a part of the first table.
    """
    first = source.copy()
    joins = first.args.pop("joins", None) or []
    query = exp.select(*columns).from_(first)
    query.set("joins", joins)
    query.set("where", where.copy() if where is not None else None)
    return query


def select_with_new_values(
    pairs: list[tuple[str, str]], condition: str, own: str, from_clause: str, columns: str
) -> str:
    """Write a SELECT with new values for some columns in the rows that meet the condition."""
    parts = [
        f"CASE WHEN {condition} THEN {value} ELSE {own}.{quote_identifier(name)} END AS {quote_identifier(name)}"
        if condition
        else f"{value} AS {quote_identifier(name)}"
        for name, value in pairs
    ]
    star, comma, more = columns.partition(", ")
    return f"SELECT {star} REPLACE ({', '.join(parts)}){comma}{more} FROM {from_clause}"


def assignments(one: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Return each column of ``a = 1`` or ``(a, b) = (1, 2)`` with its new value. Raises Unfit for a query."""
    left, right = one.this, one.expression
    if isinstance(left, exp.Column):
        return [(left.name, right)]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and len(left.expressions) == len(right.expressions):
        return [(name.name, value) for name, value in zip(left.expressions, right.expressions, strict=True)]
    raise Unfit("SET of several columns by one query")


def deleted(versions: Versions, tree: exp.Expr, own: str, from_clause: str, columns: str) -> str:
    refuse_more(tree, {"this", "where", "using"})
    where, sources = tree.args.get("where"), tree.args.get("using")
    gone = "TRUE"
    if sources:
        if len(sources) > 1:
            raise Unfit("DELETE with several USING")
        gone = f"EXISTS ({versions.sql(query_of_matches(['1'], sources[0], where))})"
    elif where is not None:
        gone = versions.sql(where.this)
    # A condition that is NULL deletes nothing.
    return f"SELECT {columns} FROM {from_clause} WHERE NOT coalesce({gone}, FALSE)"


def inserted(versions: Versions, tree: exp.Expr, name: str, from_clause: str, columns: str, depends: bool) -> str:
    refuse_more(tree, {"this", "expression"})
    listed = [one.name for one in tree.this.expressions] if isinstance(tree.this, exp.Schema) else versions.tables[name]
    names = ", ".join(map(quote_identifier, listed))
    rows = versions.sql(tree.expression)
    rows = rows if isinstance(tree.expression, exp.Query) else f"SELECT * FROM ({rows})"
    fresh = f"SELECT __q.* FROM ({rows}) AS __q({names})"
    if depends:
        each = f"{EACH[versions.key]} AS {K}"
        fresh = f"SELECT __q.*, {K}.{versions.key} FROM {each}, LATERAL ({rows}) AS __q({names})"
    return f"(SELECT {columns} FROM {from_clause}) UNION ALL BY NAME ({fresh})"


def refuse_more(tree: exp.Expr, known: Collection[str]) -> None:
    if more := {name for name, value in tree.args.items() if value} - set(known):
        raise Unfit(f"{type(tree).__name__.upper()} with {', '.join(sorted(more))}")


LEAST_CELLS = 200_000
"""Rows x candidates below which nothing is to be gained."""
MOST_SHARE = 0.1
"""Of the cells, that may change."""
LOSS = 1e-4
"""A sum that is so much smaller than what it is the difference of has lost digits, and is computed as ever."""


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


def find_sparse_changes(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, candidates: int
) -> SparseChanges | None:
    """Return the rows that a statement would change, None if they are not sparse.

    None also for a statement that is no UPDATE or DELETE with a condition on a table that all candidates share. Raises
    Unfit.
    """
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
    relation = quote_identifier(shared.relation if shared else name)
    # One row more than allowed tells that the changes are many.
    was = versions.keep(
        name,
        f"SELECT {quote_identifier(name)}.*, {K}.__c FROM {relation} AS {quote_identifier(name)} "
        f"CROSS JOIN {CANDIDATES} AS {K} WHERE {where} LIMIT {most + 1}",
        "__c",
    )
    if db.execute(f"SELECT count(*) FROM {quote_identifier(was.relation)}").fetchall()[0][0] > most:
        versions.dense.add(name)
        return None
    become = None
    if isinstance(tree, exp.Update):
        # The rows are those that meet the condition, so it is left out.
        bare = tree.copy()
        bare.set("where", None)
        versions.now[name] = was
        try:
            become = versions.keep(
                name, update_as_query(versions, bare, quote_identifier(name), *versions.base(name, True)), "__c"
            )
        finally:
            versions.restore(name, shared)
    return SparseChanges(name, shared, was, become)


def measure_by_difference(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, sparse: SparseChanges
) -> Floats | None:
    """Return a measure for each candidate from the changed rows alone.

    None if it is not made of sums, or if the sums would lose digits.
    """
    if not is_made_of_sums(statement, versions, sparse.table):
        return None
    last = versions.now[sparse.table]
    try:
        shared = sums_of_version(db, versions, statement, sparse.table, sparse.shared)
        less = sums_of_version(db, versions, statement, sparse.table, sparse.was)
        plus = (
            sums_of_version(db, versions, statement, sparse.table, sparse.become)
            if sparse.become
            else np.zeros_like(less)
        )
    finally:
        versions.restore(sparse.table, last)
    whole = shared - less + plus
    scale = np.abs(shared) + np.abs(less) + np.abs(plus)
    # Even columns are sums, odd ones the number of values in them.
    lost = (np.abs(whole) < LOSS * scale)[:, ::2] & (whole[:, 1::2] > 0)
    if not np.isfinite(whole).all() or lost.any():
        return None
    return finish_measure(db, versions, statement, whole)


def is_made_of_sums(statement: Statement, versions: Versions, table: str) -> bool:
    """Return whether a measure takes only sums and counts, and only rows of this table vary.

    They vary between candidates.
    """
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
    sums, columns = aggregates_of_measure(tree), tree.expressions[0].find_all(exp.Column)
    fit = all(
        type(one) in (exp.Sum, exp.Count)
        and not isinstance(one.this, exp.Distinct)
        and not isinstance(one.parent, exp.Filter | exp.Window)
        for one in sums
    )
    return bool(sums) and fit and all(one.find_ancestor(exp.AggFunc, exp.Select) is not tree for one in columns)


def aggregates_of_measure(tree: exp.Expr) -> list[exp.Expr]:
    """Return the aggregates of the one expression that a query selects, without those of inner queries."""
    return [one for one in tree.expressions[0].find_all(exp.AggFunc) if one.find_ancestor(exp.Select) is tree]


def sums_of_version(
    db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, table: str, version: Version | None
) -> Floats:
    """Return each sum of a measure and the number of values in it, for a version of the table.

    The shape is (candidates, or 1 if the version is one for all; 2 x sums).
    """
    query = statement.tree.copy()
    pairs = [(one.copy(), exp.Count(this=one.this.copy())) for one in aggregates_of_measure(query)]
    query.set("expressions", [exp.alias_(one, f"a{at}") for at, one in enumerate(chain.from_iterable(pairs))])
    versions.restore(table, version)
    inner = versions.inside(query).sql("duckdb")
    if version is not None and version.key:
        inner = f"SELECT __q.* FROM {CANDIDATES} AS {K}, LATERAL ({inner}) AS __q ORDER BY {K}.__c"
    return np.array([[0.0 if cell is None else float(cell) for cell in row] for row in db.execute(inner).fetchall()])


def finish_measure(db: duckdb.DuckDBPyConnection, versions: Versions, statement: Statement, whole: Floats) -> Floats:
    """Compute the expression around the sums, for each candidate."""
    tree = statement.tree.copy()
    for at, one in enumerate(aggregates_of_measure(tree)):
        # SUM over no value is NULL and not 0.
        sum_of = f"(CASE WHEN __s.n{at} > 0 THEN __s.s{at} END)"
        one.replace(exp.maybe_parse(sum_of if isinstance(one, exp.Sum) else f"__s.s{at}", dialect="duckdb"))
    columns = {
        f"{'ns'[even]}{at // 2}": np.ascontiguousarray(whole[:, at])
        for at in range(whole.shape[1])
        for even in [at % 2 == 0]
    }
    db.register("__sums", {"c": np.arange(len(whole)), **columns})
    try:
        value = versions.inside(tree.expressions[0].unalias()).sql("duckdb")
        cells = db.execute(f"SELECT CAST({value} AS DOUBLE) AS v FROM __sums AS __s ORDER BY c").fetchnumpy()["v"]
    finally:
        db.unregister("__sums")
    values: Floats = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    return values
