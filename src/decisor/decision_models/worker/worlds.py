"""The present versions of the tables, for all candidates and all draws.

A table that varies, or that a statement changes, has a version: a relation with the dimensions that it depends on. A
change is the query of the rows after it. Named tables are computed where they are read, and again once something that
they read has changed. The rewritten text of a query depends on the dimensions of what it reads alone, so it is kept
for later rounds and requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.schema import MappingSchema

from decisor.decision_models.worker.inputs import Floats
from decisor.decision_models.worker.lift import (
    AT,
    DIMS,
    WORLDS,
    Dims,
    Lift,
    Lifted,
    QuerySource,
    Unfit,
    correlate,
    parse,
    qualify_query,
)
from decisor.decision_models.worker.program import FACTOR, ModelStatements, Statement, assigned_columns
from decisor.system.text import quote_identifier

if TYPE_CHECKING:
    import duckdb


PLACE = re.compile(f'"{AT}([^"]+)"')
ROW_NUMBER = re.compile(r"__rowid_(\w+)\(\)", re.I)
MOST_CELLS = 5_000_000
"""Rows x worlds that are computed once where several statements read them."""


@dataclass(frozen=True)
class Version:
    """A relation that holds the present rows of a table."""

    relation: str
    dims: Dims


@dataclass(frozen=True)
class RewrittenQuery:
    """A query for all worlds, with places for the names of versions."""

    sql: str
    dims: Dims
    empty: str
    """SQL of the first column in a world without a row."""
    first: str
    """Name of the first column."""
    columns: int


@dataclass
class QueryCache:
    """What outlives a request: columns and numbers of rows of tables, and rewritten queries."""

    columns: dict[str, tuple[str, ...]]
    """By table, in lower case."""
    queries: dict[object, RewrittenQuery | str] = field(default_factory=dict)
    """A rewritten query, or why there is none."""
    rows: dict[str, int] = field(default_factory=dict)
    """Number of rows by table."""
    built: MappingSchema | None = None

    @property
    def schema(self) -> MappingSchema:
        if self.built is None:
            tables: dict[str, object] = {
                name: dict.fromkeys(columns, "DOUBLE") for name, columns in self.columns.items()
            }
            self.built = MappingSchema(tables, dialect="duckdb")
        return self.built

    def add_columns(self, name: str, columns: tuple[str, ...]) -> None:
        if self.columns.get(name) != columns:
            self.columns[name], self.built = columns, None


@dataclass
class Worlds:
    """The versions of the tables in one request."""

    db: duckdb.DuckDBPyConnection
    parts: ModelStatements
    cache: QueryCache
    shape: tuple[int, int]
    """Number of candidates, and of draws."""
    now: dict[str, Version] = field(default_factory=dict)
    """By table, in lower case."""
    stamps: dict[str, Counter[str]] = field(default_factory=dict)
    """By table, how often each column was changed; under '' the whole rows."""
    made: dict[str, dict[str, int]] = field(default_factory=dict)
    """Stamps of what a named table read when it was computed."""
    relations: list[tuple[str, str]] = field(default_factory=list)
    """Kind and name of each relation to drop at the end; of a dropped one the kind is ''."""

    def drop(self) -> None:
        for kind, relation in reversed(self.relations):
            if kind:
                self.db.execute(f"DROP {kind} IF EXISTS {quote_identifier(relation)}")
        self.relations.clear()
        self.now.clear()

    def hold(self, name: str, cells: Mapping[str, NDArray[Any]]) -> None:
        """Create a table of these columns that lives as long as the request."""
        self.db.register("__cells", dict(cells))
        self.db.execute(f"CREATE TEMP TABLE {quote_identifier(name)} AS SELECT * FROM __cells")
        self.db.unregister("__cells")
        self.relations.append(("TABLE", name))

    def put(self, name: str, sql: str, dims: Dims, keep: bool = True, columns: Iterable[str] = ("",)) -> Version:
        """Store the next version of a table.

        keep: compute its rows once, not wherever they are read. columns: those that it changes, '' for whole rows.
        """
        relation, kind = f"__{len(self.relations)}_{name}", "TABLE" if keep else "VIEW"
        self.db.execute(f"CREATE TEMP {kind} {quote_identifier(relation)} AS {sql}")
        self.relations.append((kind, relation))
        self.now[name] = Version(relation, dims)
        self.stamps.setdefault(name, Counter()).update(columns)
        return self.now[name]

    def set_version(self, name: str, version: Version | None) -> None:
        """Set the present version of a table; None means the table as it was loaded."""
        if version is None:
            self.now.pop(name, None)
        else:
            self.now[name] = version

    def drop_unused(self) -> None:
        """Drop the tables that no later statement reads, unless views need them."""
        if any(kind == "VIEW" for kind, _ in self.relations):
            # A view reads the tables below it.
            return
        used = {version.relation for version in self.now.values()} | set(WORLDS.values())
        # The list keeps its length: names of relations are numbered by it.
        for at, (kind, relation) in enumerate(self.relations):
            if kind and relation not in used:
                self.db.execute(f"DROP {kind} {quote_identifier(relation)}")
                self.relations[at] = ("", relation)

    def count_cells(self, name: str, dims: Dims) -> int:
        """Return an upper estimate of the rows of a table with these dimensions."""
        worlds = [count for one, count in zip(DIMS, self.shape, strict=True) if one in dims]
        return self.rows(name) * int(np.prod(worlds or [1]))

    def rows(self, name: str) -> int:
        """Count the rows of a table of the copy, as it was loaded; of any other table, of the largest that it reads."""
        if name in self.parts.tables:
            reads = self.parts.reads(self.parts.tables[name]) - set(self.parts.tables)
            return max([1, *(self.rows(one) for one in reads if one in self.cache.columns)])
        if name not in self.cache.columns or name == self.parts.table:
            return 1
        if name not in self.cache.rows:
            self.cache.rows[name] = self.count(quote_identifier(name))
        return self.cache.rows[name]

    def count(self, from_clause: str) -> int:
        return int(self.db.execute(f"SELECT count(*) FROM {from_clause}").fetchall()[0][0])

    # Reading

    def rewrite(
        self, tree: exp.Expr, text: str, reads: frozenset[str] | set[str], is_table: bool = False
    ) -> RewrittenQuery:
        """Rewrite a query for all worlds; a table has its one row of an aggregate also where that has no rows.

        Raises Unfit.
        """
        self.define_named_tables(reads)
        key = (text, is_table, tuple(sorted((name, self.now[name].dims) for name in reads if name in self.now)))
        if key not in self.cache.queries:
            try:
                self.cache.queries[key] = self._rewrite(tree, is_table)
            except Unfit as error:
                self.cache.queries[key] = str(error)
        found = self.cache.queries[key]
        if isinstance(found, str):
            raise Unfit(found)
        return found

    def _rewrite(self, tree: exp.Expr, is_table: bool) -> RewrittenQuery:
        sources = {name: QuerySource(AT + name, version.dims) for name, version in self.now.items()}
        single = {FACTOR, *([self.parts.table] if self.parts.single else [])}
        tree = with_factor_query(tree)
        try:
            lift = Lift(sources, frozenset(single & set(sources)))
            lifted = lift.query(qualify_query(tree, self.cache.schema), sources)
            lifted = lift.as_table(lifted) if is_table else lifted
        except Unfit as error:
            if tree.find(exp.Pivot):
                raise
            lifted = self.correlated(tree, sources, error)
        names = [one for one in lifted.tree.named_selects if one not in DIMS]
        empty = lifted.empty[0] if lifted.empty else "NULL"
        sql = ROW_NUMBER.sub(r'"\1".rowid', lifted.tree.sql("duckdb"))
        return RewrittenQuery(sql, lifted.dims, empty, names[0] if names else "", len(names))

    def correlated(self, tree: exp.Expr, sources: Mapping[str, QuerySource], why: Unfit) -> Lifted:
        """Rewrite a query so that each world is asked by itself, if DuckDB can run that; else raise Unfit."""
        import duckdb

        lifted = correlate(tree, sources)
        try:
            self.db.execute(f"EXPLAIN {self.fill(lifted.tree.sql('duckdb'))}")
        except duckdb.Error as error:
            raise Unfit(f"{why}") from error
        return lifted

    def fill(self, sql: str) -> str:
        """Write the names of the present versions into a rewritten query."""
        return PLACE.sub(lambda match: quote_identifier(self.now[match[1]].relation), sql)

    def rewrite_statement(self, statement: Statement, is_table: bool = True) -> RewrittenQuery:
        return self.rewrite(statement.tree, statement.text, statement.reads | self.factor_reads(statement), is_table)

    def factor_reads(self, statement: Statement) -> set[str]:
        return {FACTOR} if FACTOR in statement.names else set()

    def define_named_tables(self, reads: frozenset[str] | set[str]) -> None:
        """Compute the named tables that are read, where they are not up to date."""
        for name, statement in self.parts.tables.items():
            if name not in reads:
                continue
            self.define_named_tables(statement.reads)
            # A recompute changes one column, and most named tables read the others.
            stamps = {one: self.count_changes(one, statement) for one in statement.reads}
            if self.made.get(name) == stamps:
                continue
            query = self.rewrite_statement(statement)
            sql = self.fill(query.sql)
            self.put(name, sql, query.dims, keep=self.count_cells(name, query.dims) <= MOST_CELLS)
            described = self.db.execute(f"DESCRIBE {quote_identifier(self.now[name].relation)}").fetchall()
            self.cache.add_columns(name, tuple(row[0].lower() for row in described if row[0] not in DIMS))
            self.made[name] = stamps

    def count_changes(self, table: str, statement: Statement) -> int:
        """Count the changes of what a statement reads of a table."""
        read = statement.words
        changes: Mapping[str, int] = self.stamps.get(table, {})
        return sum(count for column, count in changes.items() if not column or read is None or column in read)

    def numbers(self, statement: Statement) -> Floats:
        """Return the number that a query gives in each world, (candidates, draws); nan where it gives none."""
        query = self.rewrite_statement(statement, is_table=False)
        if query.columns != 1:
            raise Unfit("a number of several columns")
        dims = "".join(f', "{one}"' for one in query.dims)
        value = f'CAST("{query.first}" AS DOUBLE) AS v'
        cells = self.db.execute(f"SELECT {value}{dims} FROM ({self.fill(query.sql)}) AS q").fetchnumpy()
        values = np.ma.filled(np.ma.asarray(cells["v"], dtype=np.float64), np.nan)
        places = tuple(np.asarray(cells[one], dtype=np.int64) for one in query.dims)
        distinct = len(np.unique(np.ravel_multi_index(places, self.sizes(query.dims)))) if places else 1
        if distinct < len(values):
            raise Unfit("several rows")
        empty = None
        if query.empty != "NULL":
            empty = self.db.execute(f"SELECT CAST({query.empty} AS DOUBLE)").fetchall()[0][0]
        numbers: Floats = self.fill_worlds(query.dims, places, values, np.nan if empty is None else empty)
        return numbers

    def fill_worlds(self, dims: Dims, places: tuple[NDArray[np.int64], ...], values: NDArray[Any], empty: float) -> Any:
        """Return values that are known at some places of their dimensions for all worlds, (candidates, draws)."""
        found = np.full(self.sizes(dims), empty, dtype=values.dtype)
        if len(values):
            found[places] = values if places else values[0]
        shape = [count if one in dims else 1 for one, count in zip(DIMS, self.shape, strict=True)]
        return np.broadcast_to(found.reshape(shape), self.shape)

    def sizes(self, dims: Dims) -> tuple[int, ...]:
        return tuple(count for one, count in zip(DIMS, self.shape, strict=True) if one in dims)

    def counts(self, statement: Statement) -> NDArray[np.int64]:
        """Return how many rows a query gives in each world, (candidates, draws)."""
        query = self.rewrite_statement(statement)
        dims = ", ".join(f'"{one}"' for one in query.dims)
        group = f" GROUP BY {dims}" if dims else ""
        head = f"{dims}, count(*) AS n" if dims else "count(*) AS n"
        cells = self.db.execute(f"SELECT {head} FROM ({self.fill(query.sql)}) AS q{group}").fetchnumpy()
        places = tuple(np.asarray(cells[one], dtype=np.int64) for one in query.dims)
        counts: NDArray[np.int64] = self.fill_worlds(query.dims, places, np.asarray(cells["n"], dtype=np.int64), 0)
        return counts

    def first_rows(self, statement: Statement, most: int) -> Iterator[tuple[int | None, int, dict[str, Any]]]:
        """Yield the first rows of a query in a stable order: candidate (None for each), count of all, and the row.

        Only with a single draw.
        """
        query = self.rewrite_statement(statement)
        dims = ", ".join(f'"{one}"' for one in query.dims)
        part = f"PARTITION BY {dims}" if dims else ""
        order = f"{dims}, __b" if dims else "__b"
        # Ordered by the whole row, for DuckDB promises no order of rows.
        ranked = (
            f'SELECT *, count(*) OVER ({part}) AS "__n" FROM ({self.fill(query.sql)}) AS __b '
            f"QUALIFY row_number() OVER ({part} ORDER BY __b) <= {max(1, most)} ORDER BY {order}"
        )
        cursor = self.db.execute(ranked)
        names = [name for name, *_ in cursor.description or ()]
        for row in cursor.fetchall():
            cells = dict(zip(names, row, strict=True))
            candidate, count = cells.pop("__c", None), cells.pop("__n")
            cells.pop("__d", None)
            yield candidate, count, cells

    # Changing

    def change(self, statement: Statement, keep: bool) -> None:
        """Run a statement as the next version of its table. Raises Unfit.

        keep: compute its rows once, not wherever they are read.
        """
        name, tree = statement.target, statement.tree
        if name not in self.cache.columns or name in self.parts.tables:
            raise Unfit(f"there is no table {name}")
        before = self.now.get(name)
        reads = statement.reads | self.factor_reads(statement) | {name}
        joined = is_single_source(tree)
        query = self.rewrite(self.rows_after(statement), f"change: {statement.text}", reads)
        columns = [column.lower() for column in assigned_columns(statement)] or [""]
        version = self.put(name, self.fill(query.sql), query.dims, keep or joined, columns)
        if joined:
            # With equal counts no row has matched twice, so the join is the UPDATE.
            old = self.count(quote_identifier(before.relation if before else name))
            more = tuple(one for one in query.dims if before is None or one not in before.dims)
            if self.count(quote_identifier(version.relation)) != old * int(np.prod(self.sizes(more) or [1])):
                raise Unfit("several rows of FROM match")

    def rows_after(self, statement: Statement) -> Any:
        """Return the query of the rows of a table after a statement. Raises Unfit."""
        tree, columns = statement.tree.copy(), self.cache.columns[statement.target]
        mark_row_numbers(tree)
        if isinstance(tree, exp.Insert):
            return inserted(tree, statement.target, columns)
        own = tree.this.alias or tree.this.name
        query = exp.select().from_(tree.this.copy())
        if tree.args.get("with_"):
            query.set("with_", tree.args["with_"])
        where = tree.args.get("where")
        if isinstance(tree, exp.Delete):
            refuse_more(tree, {"this", "where", "using", "with_"})
            gone = where.this.copy() if where is not None else exp.true()
            if using := tree.args.get("using"):
                gone = exp.Exists(this=exp.select("1").from_(using[0]).where(gone))
                if len(using) > 1:
                    raise Unfit("DELETE with several USING")
                move_joins(gone.this)
            # A condition that is NULL deletes nothing.
            query = query.where(exp.not_(exp.func("coalesce", exp.paren(gone), exp.false())))
            return query.select(*[exp.column(one, table=own, quoted=True) for one in columns])
        refuse_more(tree, {"this", "expressions", "where", "from_", "with_"})
        hit = where.this if where is not None else None
        values = dict(pair for one in tree.expressions for pair in assignments(one))
        if odd := set(values) - {one.lower() for one in columns}:
            raise Unfit(f"{statement.target} has no column {min(odd)}")
        if is_single_source(tree):
            query, hit = join_source(query, tree)
        elif tree.args.get("from_"):
            hit = exp.Exists(this=match_rows(tree, exp.Literal.number(1)))
            values = {one: exp.Subquery(this=match_rows(tree, value)) for one, value in values.items()}
        for one in columns:
            old: exp.Expr = exp.column(one, table=own, quoted=True)
            new = values.get(one.lower())
            if new is not None and hit is not None:
                new = exp.Case(ifs=[exp.If(this=hit.copy(), true=new.copy())], default=old)
            query = query.select(exp.alias_(new if new is not None else old, one, quoted=True))
        return query


def mark_row_numbers(tree: exp.Expr) -> None:
    """Write the number of a row as a function, for it is no column that a schema has."""
    own = tree.this.alias or tree.this.name if isinstance(tree.this, exp.Table) else ""
    for one in [one for one in tree.find_all(exp.Column) if one.name.lower() == "rowid" and own]:
        one.replace(exp.Anonymous(this=f"__rowid_{one.table or own}"))


def with_factor_query(tree: exp.Expr) -> exp.Expr:
    """Return a copy of a query that reads the parameter of a trial from a table. Raises Unfit for any other."""
    tree = tree.copy()
    for place in list(tree.find_all(exp.Placeholder)):
        if place.name != FACTOR:
            raise Unfit(f"there is no parameter ${place.name}")
        place.replace(exp.Subquery(this=parse(f'SELECT "value" FROM "{FACTOR}"')))
    return tree


def is_single_source(tree: exp.Expr) -> bool:
    """Return whether the FROM of an UPDATE is one table or derived table, and its condition has no query."""
    source, where = tree.args.get("from_"), tree.args.get("where")
    if source is None or source.this.args.get("joins") or (where is not None and where.find(exp.Query)):
        return False
    return isinstance(source.this, exp.Table | exp.Subquery) and bool(source.this.alias_or_name)


def join_source(query: exp.Select, tree: exp.Expr) -> tuple[exp.Select, exp.Expr]:
    """Join the only source of an UPDATE; return whether a row was hit, too."""
    source, where = tree.args["from_"].this, tree.args.get("where")
    alias, bare = source.alias_or_name, source.copy()
    bare.set("alias", exp.TableAlias(this=exp.to_identifier("__f")))
    inner = exp.select("*", "TRUE AS __hit").from_(bare).subquery(alias)
    on = where.this.copy() if where is not None else exp.true()
    return query.join(inner, on=on, join_type="left"), exp.column("__hit", table=alias, quoted=True)


def match_rows(tree: exp.Expr, value: exp.Expr) -> exp.Select:
    """Return the query of a value in the rows of FROM that match a row of an UPDATE."""
    query = exp.select(value.copy()).from_(tree.args["from_"].this.copy())
    move_joins(query)
    where = tree.args.get("where")
    return query.where(where.this.copy()) if where is not None else query


def move_joins(query: exp.Select) -> None:
    """Give a block the joins that were parsed as a part of its first table."""
    first = query.args["from_"].this
    if joins := first.args.pop("joins", None):
        query.set("joins", [*joins, *(query.args.get("joins") or [])])


def assignments(one: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Return each column of ``a = 1`` or ``(a, b) = (1, 2)`` with its new value. Raises Unfit for a query."""
    left, right = one.this, one.expression
    if isinstance(left, exp.Column):
        return [(left.name.lower(), right)]
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and len(left.expressions) == len(right.expressions):
        return [(name.name.lower(), value) for name, value in zip(left.expressions, right.expressions, strict=True)]
    raise Unfit("SET of several columns by one query")


def inserted(tree: exp.Expr, name: str, columns: tuple[str, ...]) -> Any:
    """Return the query of a table's rows with those of an INSERT."""
    refuse_more(tree, {"this", "expression", "with_"})
    listed = [one.name for one in tree.this.expressions] if isinstance(tree.this, exp.Schema) else [*columns]
    rows = tree.expression
    if not isinstance(rows, exp.Query | exp.Values):
        raise Unfit(f"INSERT of {rows.key}")
    given = {one.lower(): f'q."{one}"' for one in listed}
    cells = ", ".join(f'{given.get(one.lower(), "NULL")} AS "{one}"' for one in columns)
    mine = ", ".join(f't."{one}"' for one in columns)
    fresh = f"SELECT {cells} FROM ({rows.sql('duckdb')}) AS q({', '.join(map(quote_identifier, listed))})"
    union = parse(f"SELECT {mine} FROM {quote_identifier(name)} AS t UNION ALL {fresh}")
    if tree.args.get("with_"):
        union.set("with_", tree.args["with_"])
    return union


def refuse_more(tree: exp.Expr, known: set[str]) -> None:
    if more := {name for name, value in tree.args.items() if value} - known:
        raise Unfit(f"{type(tree).__name__.upper()} with {', '.join(sorted(more))}")
