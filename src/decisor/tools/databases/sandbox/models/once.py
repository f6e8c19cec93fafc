"""Queries inside an UPDATE or DELETE that are the same for all rows, computed once for each candidate.

DuckDB computes a derived table or WITH that reads a candidate's rows anew for each row that is changed. Whether one of
them uses the row is not worked out here: it is run by itself, and where that does not bind it stays where it is.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.versions import EACH, K, Version, Versions, in_place_of, own_names

if TYPE_CHECKING:
    from collections.abc import Iterator


def once(versions: Versions, statement: exp.Expr) -> exp.Expr:
    """A copy of the statement, which reads such queries as tables; ``versions.now`` knows them. Raises Unfit."""
    tree, numbers = statement.copy(), count()
    own_names(tree, versions.tables)
    tried: set[int] = set()
    while (block := next((one for one in blocks(tree) if id(one) not in tried), None)) is not None:
        tried.add(id(block))
        name = f"__own{next(numbers)}"
        version = by_itself(versions, block, name)
        if version is None:
            continue
        versions.now[name] = version
        if isinstance(block, exp.CTE):
            put_for_cte(block, name)
        else:
            in_place_of(block, renamed(name, block.alias))
    return tree


def blocks(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Derived tables and parts of a WITH, the outer ones first."""
    for one in tree.find_all(exp.CTE, exp.Subquery):
        if isinstance(one, exp.CTE):
            recursive = one.parent is None or one.parent.args.get("recursive")
            names = [other.alias.lower() for other in tree.find_all(exp.CTE)]
            if not recursive and names.count(one.alias.lower()) == 1:
                yield one
        elif isinstance(one.parent, exp.From | exp.Join) and one.alias:
            yield one


def by_itself(versions: Versions, block: exp.Expr, name: str) -> Version | None:
    """Its rows, of each candidate where they may differ; None where it needs the row that is changed."""
    import duckdb

    reads = {table.name.lower() for table in block.find_all(exp.Table)}
    depends = any(versions.now[one].key for one in reads & set(versions.now)) or block.find(exp.Placeholder)
    alias = block.args["alias"]
    columns = ", ".join(quoted(one.name) for one in alias.columns)
    named = f"({versions.sql(block.this)}) AS __q{f'({columns})' if columns else ''}"
    sql = f"SELECT * FROM {named}"
    if depends:
        sql = f"SELECT __q.*, {K}.{versions.key} FROM {EACH[versions.key]} AS {K}, LATERAL {named}"
    try:
        return versions.keep(name, sql, versions.key if depends else "")
    except duckdb.Error:
        return None


def put_for_cte(cte: exp.Expr, name: str) -> None:
    """The table in the place of each mention, and the WITH without it."""
    clause = cte.parent
    query = clause.parent if clause is not None else None
    if clause is None or query is None:
        return
    cte.pop()
    for table in list(query.find_all(exp.Table)):
        if table.name.lower() == cte.alias.lower() and not table.db:
            in_place_of(table, renamed(name, table.alias or cte.alias))
    if not clause.expressions:
        clause.pop()


def renamed(name: str, alias: str) -> exp.Expr:
    return exp.alias_(exp.to_table(name), alias, table=True, quoted=True)
