"""Rewrites a query for one candidate and one state of the data into a query for all of them.

A table may have dimensions: ``__c`` (the candidate) and ``__d`` (the draw, a state of the data). A query has the
dimensions of what it reads, and no others: what depends on neither is computed once, what depends on draws alone once a
draw. A block makes the dimensions of its sources equal, groups and numbers rows by them, and gives them on. Scalar
subqueries and EXISTS become LEFT JOINs on the dimensions and on the equalities with the query around them; where such
a join finds nothing, the value is what the subquery gives without rows (``count`` 0, ``coalesce(sum(x), 0)`` 0).

Nothing is guessed: a query that does not fit raises Unfit. ``correlate`` then asks it for each world by itself, within
one statement; where DuckDB cannot do that either, the worlds are computed one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

DIMS = ("__c", "__d")
WORLDS = {"__c": "__worlds_c", "__d": "__worlds_d"}
"""Table of all candidates, and of all draws."""
AT = "__at_"
"""Begins the name of a table that has a version; the name of the version takes its place when the query runs."""
STRICT = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, exp.Alias, exp.Literal)
"""Expressions that are NULL if one of their values is."""
Dims = tuple[str, ...]


class Unfit(Exception):
    """A query that cannot be computed for all worlds at once."""


@dataclass(frozen=True)
class QuerySource:
    """A table that a query may read: its name in the rewritten query, and its dimensions."""

    relation: str
    dims: Dims


@dataclass(frozen=True)
class Lifted:
    """A rewritten query."""

    tree: exp.Query
    dims: Dims
    empty: tuple[str, ...] | None = None
    """SQL of each column for a world without a row, if the query gives one row for any world; else None."""


@dataclass(frozen=True)
class Inner:
    """A subquery of a block, on its way into a join."""

    place: exp.Expr
    """Subquery, EXISTS, IN, ANY or ALL."""
    lifted: Lifted
    keys: tuple[tuple[exp.Expr, exp.Expr], ...] | None
    """Equal expressions inside and outside; None if it stays where it is."""
    single: bool
    """Whether it is one aggregated row for each key."""
    empty: str
    """SQL of its value without rows."""


def column(name: str, table: str) -> exp.Expr:
    return exp.column(name, table=table, quoted=True)


def ordered(dims: set[str]) -> Dims:
    return tuple(one for one in DIMS if one in dims)


def parse(sql: str) -> Any:
    """Parse a query or an expression of DuckDB."""
    return sqlglot.parse_one(sql, read="duckdb")


def qualify_query(tree: exp.Expr, schema: MappingSchema) -> Any:
    """Return a copy of a query whose columns name their tables, with stars and USING written out. Raises Unfit."""
    if tree.find(exp.Pivot):
        raise Unfit("PIVOT, whose columns are those of one candidate")
    tree = tree.copy()
    write_series_as_queries(tree)
    try:
        return qualify(tree, schema=schema, dialect="duckdb", quote_identifiers=True)
    # On trees that it does not know, sqlglot stumbles in other ways too.
    except (SqlglotError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unfit(" ".join(str(error).split())[:200]) from error


def write_series_as_queries(tree: exp.Expr) -> None:
    """Write each ``range(a, b)`` in FROM whose ends are queries as a query, which can be rewritten like any other."""
    for series in list(tree.find_all(exp.GenerateSeries)):
        table = series.parent
        if not isinstance(table, exp.Table) or not series.find(exp.Query):
            continue
        name = "range" if series.args.get("is_end_exclusive") else "generate_series"
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        column_name = alias.columns[0] if alias.columns else exp.to_identifier(name)
        rows = exp.select(exp.alias_(exp.Unnest(expressions=[series.copy()]), column_name.copy()))
        named = exp.TableAlias(this=alias.this.copy())
        table.replace(exp.Subquery(this=rows, alias=named, joins=table.args.get("joins")))


def own_aggregates(select: exp.Expr) -> list[exp.Expr]:
    """Return the aggregate functions of a block, without those of inner queries and windows."""
    tops = [*select.expressions, select.args.get("having"), select.args.get("qualify"), select.args.get("order")]
    return [
        one
        for top in tops
        if top is not None
        for one in top.find_all(exp.AggFunc)
        if one.parent_select is select and not is_window_function(one)
    ]


def is_window_function(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node


def block_sources(select: exp.Expr) -> list[exp.Expr]:
    first = select.args.get("from_")
    return [*([first.this] if first else []), *(join.this for join in select.args.get("joins") or [])]


def outside_columns(tree: exp.Expr) -> list[exp.Expr]:
    """Return the columns of a query that belong to a query around it."""
    own = {one.alias_or_name for select in tree.find_all(exp.Select) for one in block_sources(select)}
    return [one for one in tree.find_all(exp.Column) if one.table and one.table not in own]


@dataclass
class Lift:
    """The rewriting of one query."""

    sources: Mapping[str, QuerySource]
    """Tables that have a version, by name."""
    singles: frozenset[str] = frozenset()
    """Tables that have exactly one row in each world."""
    number: int = field(default=0)
    """Number of the last name that was made up."""

    def query(self, tree: exp.Expr, known: Mapping[str, QuerySource]) -> Lifted:
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, known)
        known = dict(known)
        if clause := tree.args.get("with_"):
            if clause.recursive:
                return self.recursive(tree, known)
            for cte in clause.expressions:
                if outside_columns(cte.this):
                    raise Unfit("a WITH that reads the query around it")
                inner = self.as_table(self.query(cte.this, known))
                cte.set("this", inner.tree)
                known[cte.alias] = QuerySource(cte.alias, inner.dims)
        if isinstance(tree, exp.SetOperation):
            return self.union(tree, known)
        if isinstance(tree, exp.Select):
            return self.select(tree, known)
        raise Unfit(f"{tree.key} in the place of a query")

    def recursive(self, tree: Any, known: Mapping[str, QuerySource]) -> Lifted:
        for table in list(tree.find_all(exp.Table)):
            if source := known.get(table.name):
                if source.dims:
                    raise Unfit("WITH RECURSIVE on what differs between candidates or draws")
                replace_table(table, source.relation)
        return Lifted(tree, ())

    def union(self, tree: exp.SetOperation, known: Mapping[str, QuerySource]) -> Lifted:
        sides = [self.as_table(self.query(side, known)) for side in (tree.this, tree.expression)]
        dims = ordered({one for side in sides for one in side.dims})
        if dims and (tree.args.get("limit") or tree.args.get("offset")):
            raise Unfit("LIMIT of a UNION")
        for key, side in zip(("this", "expression"), sides, strict=True):
            tree.set(key, widen_side(side, dims))
        return Lifted(tree, dims)

    def as_table(self, lifted: Lifted) -> Lifted:
        """Return a query with a row for each world, if without dimensions it has one for any data."""
        if lifted.empty is None or not lifted.dims:
            return lifted
        names = [one.alias_or_name for one in lifted.tree.selects if one.alias_or_name not in DIMS]
        cells = [
            f'CASE WHEN q.__hit THEN q."{name}" ELSE {empty} END AS "{name}"'
            for name, empty in zip(names, lifted.empty, strict=True)
        ]
        on = " AND ".join(f'q."{one}" = "w{one}"."{one}"' for one in lifted.dims)
        worlds = ", ".join(f'"{WORLDS[one]}" AS "w{one}"' for one in lifted.dims)
        given = [f'"w{one}"."{one}" AS "{one}"' for one in lifted.dims]
        inner = f"(SELECT *, TRUE AS __hit FROM ({lifted.tree.sql('duckdb')}) AS __i) AS q"
        worlds = worlds if len(lifted.dims) == 1 else worlds.replace(", ", " CROSS JOIN ")
        tree = parse(f"SELECT {', '.join([*cells, *given])} FROM {worlds} LEFT JOIN {inner} ON {on}")
        return Lifted(tree, lifted.dims)

    def select(self, tree: exp.Select, known: Mapping[str, QuerySource]) -> Lifted:
        refuse_block(tree)
        prepare_joins(tree)
        have = {node.alias_or_name: self.source(node, known) for node in block_sources(tree)}
        have |= self.inline_singles(tree, known)
        grouped, own = tree.args.get("group") is not None, own_aggregates(tree)
        scalar = bool(own) and not grouped
        empty = tuple(map(value_without_rows, tree.selects)) if scalar and not tree.args.get("having") else None
        inners = [self.inner(place, known) for place in find_subqueries(tree)]
        dims = ordered({one for some in have.values() for one in some} | {d for one in inners for d in one.lifted.dims})
        if scalar and dims and empty is None:
            raise Unfit("HAVING without GROUP BY")
        owner = place_dimensions(tree, have, dims)
        for inner in inners:
            self.join_inner(tree, inner, owner, grouped or scalar)
        if dims:
            part_by_dimensions(tree, [column(one, owner[one]) for one in dims], grouped or scalar)
            given = [exp.alias_(column(one, owner[one]), one, quoted=True) for one in dims]
            tree.select(*given, append=True, copy=False)
        return Lifted(tree, dims, empty)

    def source(self, node: exp.Expr, known: Mapping[str, QuerySource]) -> Dims:
        """Rewrite a source of a block, and return its dimensions."""
        if isinstance(node, exp.Table):
            source = known.get(node.name)
            if source is None or node.db:
                return ()
            replace_table(node, source.relation)
            return source.dims
        if isinstance(node, exp.Subquery):
            if not isinstance(node.this, exp.Query) or isinstance(node.this, exp.Subquery):
                raise Unfit("joins in brackets")
            inner = self.as_table(self.query(node.this, known))
            node.set("this", inner.tree)
            return inner.dims
        if isinstance(node, exp.Lateral) or node.find(exp.Query):
            raise Unfit(f"{node.key} in FROM")
        return ()

    def inline_singles(self, tree: exp.Select, known: Mapping[str, QuerySource]) -> dict[str, Dims]:
        """Join each table of one row that a subquery reads a value of; return their dimensions."""
        found: dict[str, Dims] = {}
        grouped = tree.args.get("group") is not None or bool(own_aggregates(tree))
        for place in find_subqueries(tree):
            query = place.this
            if (
                not isinstance(place, exp.Subquery)
                or not isinstance(query, exp.Select)
                or place.find_ancestor(exp.Join)
            ):
                continue
            sources = block_sources(query)
            plain = {key for key, value in query.args.items() if value} <= {"expressions", "from_"}
            table = sources[0] if len(sources) == 1 else None
            if not plain or not isinstance(table, exp.Table) or table.name not in self.singles or own_aggregates(query):
                continue
            if len(query.selects) != 1 or query.selects[0].find(exp.Select, exp.Window):
                continue
            alias, source = f"__one_{table.name}", known[table.name]
            value = query.selects[0].unalias().copy()
            value = exp.paren(value)
            for one in value.find_all(exp.Column):
                if one.table == table.alias_or_name:
                    one.set("table", exp.to_identifier(alias, quoted=True))
            if alias not in found:
                found[alias] = source.dims
                put_first(tree, source.relation, alias)
            replace_place(place, exp.AnyValue(this=value) if grouped and not is_aggregated(place, tree) else value)
        return found

    def inner(self, place: exp.Expr, known: Mapping[str, QuerySource]) -> Inner:
        """Rewrite a subquery of a block."""
        query = place.args["query"] if isinstance(place, exp.In) else place.this
        query = query.this if isinstance(query, exp.Subquery) else query
        is_join = isinstance(place, exp.Subquery | exp.Exists) and not isinstance(place.parent, exp.Any | exp.All)
        keys = cut_equalities(query) if is_join else None
        single = isinstance(query, exp.Select) and bool(own_aggregates(query)) and not query.args.get("group")
        if single and query.args.get("having"):
            raise Unfit("HAVING without GROUP BY")
        if isinstance(place, exp.Exists) and keys is not None and isinstance(query, exp.Select):
            if single:
                raise Unfit("EXISTS of an aggregate, which has a row always")
            query.set("order", None)
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "__one", quoted=True)])
        empty = value_without_rows(query.selects[0]) if single else "NULL"
        for at, (inside, _) in enumerate(keys or ()):
            query.select(exp.alias_(inside.copy(), f"__k{at}", quoted=True), append=True, copy=False)
            if single:
                query.group_by(inside.copy(), append=True, copy=False)
        return Inner(place, self.query(query, known), keys, single, empty)

    def join_inner(self, tree: exp.Select, inner: Inner, owner: Mapping[str, str], aggregated: bool) -> None:
        """Put a rewritten subquery into its block: as a join, or where it stood."""
        dims, keys, place = inner.lifted.dims, inner.keys, inner.place
        if keys is None or not (keys or dims):
            self.keep_inner(inner, owner)
            return
        join = place.find_ancestor(exp.Join)
        if join is not None and join.parent is tree:
            raise Unfit("a subquery in ON")
        own = {one.alias_or_name for one in block_sources(tree)}
        if any(one.table not in own for _, outer in keys for one in outer.find_all(exp.Column)):
            raise Unfit("a subquery that reads the query around the one around it")
        self.number += 1
        alias, query = f"__s{self.number}", inner.lifted.tree
        named = [f'"__k{at}"' for at in range(len(keys))] + [f'"{one}"' for one in dims]
        first = f'"{query.selects[0].alias_or_name}"'
        several = "error('a subquery gives more than one row')"
        value = first if inner.single else f"CASE WHEN count(*) > 1 THEN {several} ELSE first({first}) END"
        value = "1" if isinstance(place, exp.Exists) else value
        group = "" if inner.single and not isinstance(place, exp.Exists) else f" GROUP BY {', '.join(named)}"
        cells = ", ".join([f"{value} AS __v", "TRUE AS __hit", *named])
        table = parse(f"SELECT {cells} FROM ({query.sql('duckdb')}) AS q{group}")
        pairs = [exp.EQ(this=column(f"__k{at}", alias), expression=outer) for at, (_, outer) in enumerate(keys)]
        pairs += [column(one, alias).eq(column(one, owner[one])) for one in dims]
        joined = exp.alias_(exp.Subquery(this=table), alias, table=True)
        added = exp.Join(this=joined, side="LEFT", on=exp.and_(*pairs))
        tree.set("joins", [*(tree.args.get("joins") or []), added])
        hit = column("__hit", alias)
        result = column("__v", alias)
        if isinstance(place, exp.Exists):
            result = exp.func("coalesce", hit, exp.false())
        elif inner.empty != "NULL":
            result = exp.Case(ifs=[exp.If(this=hit.is_(exp.null()), true=parse(inner.empty))], default=result)
        if aggregated and not is_aggregated(place, tree):
            result = exp.AnyValue(this=result)
        replace_place(place, exp.paren(result))

    def keep_inner(self, inner: Inner, owner: Mapping[str, str]) -> None:
        """Leave a subquery where it stood, with a condition on its dimensions; DuckDB joins it."""
        dims, tree = inner.lifted.dims, inner.lifted.tree
        if dims:
            if inner.single:
                raise Unfit("an aggregate that reads the query around it by more than equality")
            names = ", ".join(f'"{one.alias_or_name}"' for one in tree.selects if one.alias_or_name not in DIMS)
            same = " AND ".join(f'__q."{one}" = "{owner[one]}"."{one}"' for one in dims)
            tree = parse(f"SELECT {names} FROM ({tree.sql('duckdb')}) AS __q WHERE {same}")
        if isinstance(inner.place, exp.In):
            inner.place.set("query", exp.Subquery(this=tree))
        else:
            inner.place.set("this", tree)


def refuse_block(tree: exp.Expr) -> None:
    """Raise Unfit for a block of a kind that is not rewritten."""
    for join in tree.args.get("joins") or []:
        if join.side in ("RIGHT", "FULL") or join.kind in ("SEMI", "ANTI") or join.method:
            raise Unfit(f"{join.side or join.kind or join.method} JOIN")
    group = tree.args.get("group")
    if group is not None and any(group.args.get(one) for one in ("rollup", "cube", "grouping_sets")):
        raise Unfit("GROUP BY of several groupings")
    if tree.args.get("windows") or tree.args.get("pivots") or tree.args.get("laterals") or tree.args.get("sample"):
        raise Unfit("WINDOW, PIVOT, LATERAL or SAMPLE")
    if any(
        node.args.get("pivots") or node.args.get("joins") or node.args.get("sample") for node in block_sources(tree)
    ):
        raise Unfit("a source with PIVOT or joins of its own")


def prepare_joins(tree: exp.Select) -> None:
    """Write comma joins as CROSS JOINs, and subqueries in the ON of an inner join as conditions of WHERE."""
    for join in tree.args.get("joins") or []:
        on = join.args.get("on")
        # A comma binds less than a LEFT JOIN that is put behind it.
        if on is None and not join.side and not join.kind:
            join.set("kind", "CROSS")
        if on is not None and on.find(exp.Select) and not join.side:
            pieces = list(on.flatten()) if isinstance(on, exp.And) else [on]
            rest = [one.copy() for one in pieces if not one.find(exp.Select)]
            join.set("on", exp.and_(*rest) if rest else exp.true())
            tree.where(*[one.copy() for one in pieces if one.find(exp.Select)], append=True, copy=False)


def find_subqueries(tree: exp.Expr) -> list[exp.Expr]:
    """Find the subqueries of a block, outside its FROM."""
    found: list[exp.Expr] = []
    for key, value in tree.args.items():
        if key in ("from_", "with_"):
            continue
        for node in value if isinstance(value, list) else [value]:
            part = node.args.get("on") if isinstance(node, exp.Join) else node
            if isinstance(part, exp.Expr):
                found += find_subqueries_in(part, tree)
    return found


def find_subqueries_in(part: exp.Expr, block: exp.Expr) -> Iterator[exp.Expr]:
    for query in part.find_all(exp.Query):
        odd = not isinstance(query, exp.Subquery) and not isinstance(query.parent, exp.Subquery | exp.Exists | exp.In)
        if odd and not isinstance(query.parent, exp.SetOperation | exp.CTE):
            raise Unfit(f"a query in {type(query.parent).__name__.upper()}")
    for place in part.find_all(exp.Subquery, exp.Exists, exp.In):
        if isinstance(place, exp.In) and place.args.get("query") is None:
            continue
        inside = isinstance(place, exp.Subquery) and isinstance(place.parent, exp.In | exp.Exists)
        if place.parent_select is block and not inside:
            yield place


def place_dimensions(tree: exp.Select, have: Mapping[str, Dims], dims: Dims) -> dict[str, str]:
    """Make the dimensions of the sources of a block equal; return the source that gives each."""
    owner: dict[str, str] = {}
    outer = any(join.side == "LEFT" for join in tree.args.get("joins") or [])
    sources = block_sources(tree)
    first = sources[0].alias_or_name if sources else ""
    for one in dims:
        giving = [alias for alias, some in have.items() if one in some]
        # Before a LEFT JOIN all worlds stand first, so that none is lost.
        if giving and (not outer or first in giving):
            owner[one] = first if outer else giving[0]
        else:
            owner[one] = f"__w{one}"
            put_first(tree, WORLDS[one], owner[one])
    joins = {join.this.alias_or_name: join for join in tree.args.get("joins") or []}
    for alias, some in have.items():
        for one in some:
            if owner[one] == alias:
                continue
            same, join = column(one, alias).eq(column(one, owner[one])), joins.get(alias)
            if join is not None and join.side == "LEFT":
                join.set("on", exp.and_(join.args["on"], same) if join.args.get("on") else same)
            else:
                tree.where(same, append=True, copy=False)
    return owner


def put_first(tree: exp.Expr, relation: str, alias: str) -> None:
    """Put a table before the other sources of a block."""
    table = exp.alias_(exp.to_table(f'"{relation}"', dialect="duckdb"), alias, table=True, quoted=True)
    if clause := tree.args.get("from_"):
        before = exp.Join(this=clause.this.copy(), kind="CROSS")
        tree.set("joins", [before, *(tree.args.get("joins") or [])])
        clause.set("this", table)
    else:
        tree.set("from_", exp.From(this=table))


def replace_table(node: exp.Expr, relation: str) -> None:
    table = exp.to_table(f'"{relation}"', dialect="duckdb")
    alias = node.args.get("alias")
    named = exp.alias_(table, node.alias_or_name, table=True, quoted=True)
    if alias is not None and alias.columns:
        raise Unfit("a table with names for its columns")
    node.replace(named)


def replace_place(place: exp.Expr, value: exp.Expr) -> None:
    """Replace a subquery by a value, under the name that it has."""
    place.replace(
        exp.alias_(value, place.alias, quoted=True) if isinstance(place, exp.Subquery) and place.alias else value
    )


def part_by_dimensions(tree: exp.Select, keys: list[exp.Expr], aggregated: bool) -> None:
    """Group, number and order the rows of a block within each world."""

    def copies() -> list[exp.Expr]:
        return [key.copy() for key in keys]

    for window in [one for one in tree.find_all(exp.Window) if one.parent_select is tree]:
        window.set("partition_by", [*(window.args.get("partition_by") or []), *copies()])
    group = tree.args.get("group")
    if aggregated and not (group is not None and group.args.get("all")):
        tree.group_by(*copies(), append=True, copy=False)
    if tree.args.get("limit") or tree.args.get("offset"):
        limit_by_world(tree, copies())
    distinct = tree.args.get("distinct")
    if distinct and distinct.args.get("on"):
        on = distinct.args["on"]
        on.set("expressions", [*on.expressions, *copies()])


def limit_by_world(tree: exp.Select, keys: list[exp.Expr]) -> None:
    if tree.args.get("distinct") or tree.args.get("qualify"):
        raise Unfit("LIMIT with DISTINCT or QUALIFY")
    limit, offset, order = (tree.args.get(one) for one in ("limit", "offset", "order"))
    parts = ", ".join(one.sql("duckdb") for one in keys)
    number = f"row_number() OVER (PARTITION BY {parts} {order.sql('duckdb') if order else ''})"
    skipped = offset.expression.sql("duckdb") if offset else "0"
    tests = [f"{number} > {skipped}"] if offset else []
    tests += [f"{number} <= {skipped} + {limit.expression.sql('duckdb')}"] if limit else []
    tree.set("qualify", parse(f"SELECT 1 QUALIFY {' AND '.join(tests)}").args["qualify"])
    for one in ("limit", "offset", "order"):
        tree.set(one, None)


def is_aggregated(place: exp.Expr, tree: exp.Expr) -> bool:
    """Return whether a place of an aggregated block is inside an aggregate, or before the grouping."""
    inside = place.find_ancestor(exp.AggFunc)
    if inside is not None and inside.parent_select is tree:
        return True
    up = place.find_ancestor(exp.Where, exp.Join)
    return up is not None and up.parent is tree


def cut_equalities(query: exp.Expr) -> tuple[tuple[exp.Expr, exp.Expr], ...] | None:
    """Take the equalities with the query around it out of a subquery: pairs of what is inside and outside.

    None if it reads the query around it in another way.
    """
    outside = {id(one) for one in outside_columns(query)}
    if not outside:
        return ()
    if not isinstance(query, exp.Select):
        return None

    def reads_outside(node: exp.Expr) -> bool:
        return any(id(one) in outside for one in node.find_all(exp.Column))

    where = query.args.get("where")
    refused = any(query.args.get(one) for one in ("limit", "offset", "with_", "group", "distinct"))
    if where is None or refused or sum(id(one) in outside for one in where.find_all(exp.Column)) != len(outside):
        return None
    pairs, rest = [], []
    for piece in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        if not reads_outside(piece):
            rest.append(piece.copy())
            continue
        if not isinstance(piece, exp.EQ) or piece.find(exp.Select):
            return None
        inside, other = (piece.this, piece.expression)
        if reads_outside(inside):
            inside, other = other, inside
        if reads_outside(inside) or not all(id(one) in outside for one in other.find_all(exp.Column)):
            return None
        pairs.append((inside.copy(), other.copy()))
    query.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return tuple(pairs)


def value_without_rows(cell: exp.Expr) -> str:
    """Return SQL of an aggregated expression for no row. Raises Unfit if that depends on other queries."""
    value = cell.unalias().copy()
    if value.find(exp.Query):
        ends = exp.AggFunc | exp.Query | exp.Filter
        nodes = list(value.walk(prune=lambda node: isinstance(node, ends)))
        strict = all(isinstance(one, STRICT) for one in nodes if not isinstance(one, ends | exp.DataType))
        if strict and any(isinstance(one, exp.AggFunc) and not isinstance(one, exp.Count) for one in nodes):
            return "NULL"
        raise Unfit("what a sum beside a subquery is without rows")

    def without_rows(node: exp.Expr) -> exp.Expr:
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.Count | exp.CountIf):
            return exp.Literal.number(0)
        return exp.paren(exp.null()) if isinstance(inner, exp.AggFunc) else node

    value = exp.paren(value).transform(without_rows)
    # A column that is grouped by nothing is DuckDB's complaint, not ours.
    if value.find(exp.Column):
        raise Unfit("a column beside an aggregate")
    return str(value.sql("duckdb"))


def widen_side(lifted: Lifted, dims: Dims) -> Any:
    """Return one side of a UNION with all dimensions, in one order."""
    if lifted.dims == dims:
        return lifted.tree
    names = [one.alias_or_name for one in lifted.tree.selects if one.alias_or_name not in DIMS]
    cells = [f'q."{name}"' for name in names]
    cells += [f'"{"q" if one in lifted.dims else f"w{one}"}"."{one}"' for one in dims]
    worlds = "".join(f', "{WORLDS[one]}" AS "w{one}"' for one in dims if one not in lifted.dims)
    return parse(f"SELECT {', '.join(cells)} FROM ({lifted.tree.sql('duckdb')}) AS q{worlds}")


def correlate(tree: Any, sources: Mapping[str, QuerySource]) -> Lifted:
    """Rewrite a query so that it is asked for each world by itself. Raises Unfit if a name could mean two tables."""
    tree = with_names(tree.copy())
    own = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    if clash := own & set(sources):
        raise Unfit(f"WITH {min(clash)}, the name of a table")
    tables = [table for table in tree.find_all(exp.Table) if table.name.lower() in sources and not table.db]
    dims = ordered({one for table in tables for one in sources[table.name.lower()].dims})
    for table in tables:
        source = sources[table.name.lower()]
        if not source.dims:
            replace_table(table, source.relation)
            continue
        if {key for key, value in table.args.items() if value} - {"this", "alias", "joins"}:
            raise Unfit("a table with more than a name")
        same = " AND ".join(f'__v."{one}" = __k."{one}"' for one in source.dims)
        less = ", ".join(f'"{one}"' for one in source.dims)
        rows = parse(f'SELECT * EXCLUDE ({less}) FROM "{source.relation}" AS __v WHERE {same}')
        named = exp.alias_(exp.Subquery(this=rows), table.alias_or_name, table=True, quoted=True)
        if joins := table.args.get("joins"):
            named.set("joins", joins)
        table.replace(named)
    if not dims:
        return Lifted(tree, ())
    worlds = ", ".join(f'"{WORLDS[one]}"' for one in dims)
    given = ", ".join(f'__k."{one}"' for one in dims)
    cells = ", ".join(f'__q."{name}"' for name in tree.named_selects if name != "*")
    cells = "__q.*" if "*" in tree.named_selects else cells
    text = f"SELECT {cells}, {given} FROM (SELECT * FROM {worlds}) AS __k, LATERAL ({tree.sql('duckdb')}) AS __q"
    return Lifted(parse(text), dims)


def with_names(tree: Any) -> Any:
    """Give each column of a query without a name one."""
    if isinstance(tree, exp.Select):
        for at, one in enumerate(list(tree.expressions)):
            if not one.alias_or_name and not one.is_star:
                one.replace(exp.alias_(one.copy(), f"col{at}", quoted=True))
    return tree
