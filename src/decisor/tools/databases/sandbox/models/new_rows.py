"""What an UPDATE, DELETE or INSERT makes of a table, as a query for all candidates at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.once import once
from decisor.tools.databases.sandbox.models.statements import Statement
from decisor.tools.databases.sandbox.models.versions import EACH, K, Unfit, Versions


def run(versions: Versions, statement: Statement, keep: bool) -> None:
    """The statement makes a next version of its table; ``keep``: its rows are computed once, not wherever they are
    read. Raises Unfit."""
    name, tree = statement.target, statement.tree
    version = versions.now.get(name)
    depends = versions.depends(statement) or bool(version and version.key)
    key, keep, before = versions.key if depends else "", keep or not depends, dict(versions.now)
    if isinstance(tree, exp.Insert):
        versions.put(name, inserted(versions, tree, name, *versions.base(name, depends), depends), key, keep)
        return
    tree = once(versions, tree)
    alias = tree.this.alias or name
    base = versions.base(name, depends, alias)
    if isinstance(tree, exp.Update) and (source := single(tree)) is not None:
        versions.put(name, joined(versions, tree, source, quoted(alias), *base), key, keep)
        if versions.count(quoted(versions.now[name].relation)) == versions.count(base[0]):
            versions.now = {**before, name: versions.now[name]}
            return
        versions.restore(name, version)
    sql = (updated if isinstance(tree, exp.Update) else deleted)(versions, tree, quoted(alias), *base)
    versions.now = before
    versions.put(name, sql, key, keep)


def single(tree: exp.Expr) -> exp.Table | None:
    """The only source of an UPDATE ... FROM, a table, where the condition has no query."""
    source, where = tree.args.get("from_"), tree.args.get("where")
    if source is None or source.this.args.get("joins") or (where is not None and where.find(exp.Query)):
        return None
    return source.this if isinstance(source.this, exp.Table) else None


def joined(versions: Versions, tree: exp.Expr, source: exp.Table, own: str, from_clause: str, columns: str) -> str:
    """An UPDATE ... FROM a table, as a join: right where every row matches at most one, so it keeps their count."""
    refuse_more(tree, {"this", "expressions", "where", "from_"})
    where = tree.args.get("where")
    version, other = versions.now.get(source.name.lower()), quoted(source.alias or source.name)
    relation = quoted(version.relation if version else source.name)
    on = [versions.sql(where.this)] if where is not None else []
    on += [f"{other}.{version.key} = {K}.{version.key}"] if version and version.key else []
    from_clause += f" LEFT JOIN (SELECT *, TRUE AS __hit FROM {relation}) AS {other} ON {' AND '.join(on) or 'TRUE'}"
    pairs = [(name, versions.sql(value)) for one in tree.expressions for name, value in assignments(one)]
    return replacing(pairs, f"{other}.__hit", own, from_clause, columns)


def updated(versions: Versions, tree: exp.Expr, own: str, from_clause: str, columns: str) -> str:
    """``own``: what the statement calls its table, in quotes. Where several rows of FROM match, their values are the
    same; else it fails when it runs, and DuckDB takes one of them for each candidate by itself."""
    refuse_more(tree, {"this", "expressions", "where", "from_"})
    where, source = tree.args.get("where"), tree.args.get("from_")
    pairs = [pair for one in tree.expressions for pair in assignments(one)]
    if source is None:
        condition = versions.sql(where.this) if where is not None else ""
        texts = [(name, versions.sql(value)) for name, value in pairs]
        return replacing(texts, condition, own, from_clause, columns)
    match = matching([exp.alias_(value.copy(), f"__s{at}") for at, (_, value) in enumerate(pairs)], source.this, where)
    first = "".join(f", CASE WHEN min(__s{at}) IS DISTINCT FROM max(__s{at}) OR count(__s{at}) NOT IN (0, count(*)) "
                    f"THEN error('several rows of FROM match') ELSE first(__s{at}) END AS __s{at}"
                    for at in range(len(pairs)))  # fmt: skip
    from_clause += f" CROSS JOIN LATERAL (SELECT count(*) AS __n{first} FROM ({versions.sql(match)})) AS __m"
    texts = [(name, f"__m.__s{at}") for at, (name, _) in enumerate(pairs)]
    return replacing(texts, "__m.__n > 0", own, from_clause, columns)


def matching(columns: Sequence[str | exp.Expr], source: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    """A query of the rows that an UPDATE has in its FROM, or a DELETE in its USING. Their joins are parsed as a part of
    the first table."""
    first = source.copy()
    joins = first.args.pop("joins", None) or []
    query = exp.select(*columns).from_(first)
    query.set("joins", joins)
    query.set("where", where.copy() if where is not None else None)
    return query


def replacing(pairs: list[tuple[str, str]], condition: str, own: str, from_clause: str, columns: str) -> str:
    """Columns with what they become, where the condition holds."""
    parts = [
        f"CASE WHEN {condition} THEN {value} ELSE {own}.{quoted(name)} END AS {quoted(name)}"
        if condition else f"{value} AS {quoted(name)}" for name, value in pairs
    ]  # fmt: skip
    star, comma, more = columns.partition(", ")
    return f"SELECT {star} REPLACE ({', '.join(parts)}){comma}{more} FROM {from_clause}"


def assignments(one: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Each column of ``a = 1`` or ``(a, b) = (1, 2)``, and what it becomes."""
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
        gone = f"EXISTS ({versions.sql(matching(['1'], sources[0], where))})"
    elif where is not None:
        gone = versions.sql(where.this)
    return f"SELECT {columns} FROM {from_clause} WHERE NOT coalesce({gone}, FALSE)"


def inserted(versions: Versions, tree: exp.Expr, name: str, from_clause: str, columns: str, depends: bool) -> str:
    refuse_more(tree, {"this", "expression"})
    listed = [one.name for one in tree.this.expressions] if isinstance(tree.this, exp.Schema) else versions.tables[name]
    names = ", ".join(map(quoted, listed))
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
