"""What a query computes: its numbers in normal form, with the filters of their rows, through CTEs and subqueries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from decisor.definitions.expressions import Terms, terms, text
from decisor.definitions.relations import Relation

if TYPE_CHECKING:
    from sqlglot import Expr, exp

MIRROR = {"GT": "LT", "GTE": "LTE"}


@dataclass(frozen=True)
class Computation:
    """``name``: what the query calls it, '' where it does not. ``columns``: what it is made of. ``filters``: of its
    rows, in normal form; ``conditions``: all of the statement. ``written``: as it stands in the query."""

    name: str
    terms: Terms
    columns: frozenset[str]
    filters: frozenset[str]
    written: str
    aggregates: bool = True
    conditions: frozenset[str] = frozenset()


@dataclass
class Scope:
    """The names of one SELECT: tables by alias, and what subqueries compute. ``filters``: of the rows below it;
    ``joined``: by what they are joined."""

    tables: dict[str, str] = field(default_factory=dict)
    below: dict[str, dict[str, Terms]] = field(default_factory=dict)
    filters: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)
    known: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def find(self, column: Expr) -> Terms | str:
        """A column by its full name; one of a subquery as what it is there."""
        name, table = column.name.lower(), str(getattr(column, "table", "")).lower()
        places = [table] if table else [*self.below, *self.tables]
        for place in places:
            if name in self.below.get(place, {}):
                return self.below[place][name]
        if table in self.tables:
            return f"{self.tables[table]}.{name}"
        owners = {full for full in self.tables.values() if name in self.known.get(full, frozenset())}
        if len(owners) == 1:
            return f"{owners.pop()}.{name}"
        return f"{next(iter(self.tables.values()))}.{name}" if len(self.tables) == 1 and not owners else name


def computations(statement: str, dialect: str, relations: Sequence[Relation]) -> Iterator[Computation]:
    """Of each SELECT the columns that are computed; none where the statement cannot be read."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
    except SqlglotError:
        return
    known = {one.name.lower(): frozenset(column.name.lower() for column in one.columns) for one in relations}
    scopes = [(select, scope_of(select, known)) for select in tree.find_all(exp.Select)]
    conditions = frozenset[str]().union(*(scope.filters | scope.joined for _, scope in scopes))
    for select, scope in scopes:
        for one in of_select(select, scope, dialect):
            yield replace(one, conditions=conditions)


def of_select(select: exp.Select, scope: Scope, dialect: str) -> Iterator[Computation]:
    from sqlglot import exp

    for node in [*select.expressions, *ordered(select)]:
        inner = node.unalias()
        own_columns = list(inner.find_all(exp.Column, exp.Star))
        if isinstance(inner, exp.Column | exp.Star | exp.Literal) or not own_columns or inner.find(exp.Query):
            continue
        whole = terms(inner, scope.find)
        columns = frozenset(name for one in inner.find_all(exp.Column) for name in names_in(scope.find(one)))
        aggregates = any(factor.startswith("sum(") or "(" in factor for factors in whole for factor in factors)
        yield Computation(node.alias.lower(), whole, columns, frozenset(scope.filters),
                          inner.sql(dialect=dialect, comments=False), aggregates)  # fmt: skip


def ordered(select: exp.Select) -> list[Expr]:
    """What rows are ordered by, where that is computed there."""
    from sqlglot import exp

    order = select.args.get("order")
    return [one.this for one in order.expressions if one.this.find(exp.AggFunc)] if order else []


def scope_of(select: exp.Select, known: Mapping[str, frozenset[str]], depth: int = 0) -> Scope:
    from sqlglot import exp

    scope = Scope(known=known)
    joins = select.args.get("joins") or []
    begin = select.args.get("from_") or select.args.get("from")
    for source in [*([begin.this] if begin else []), *(join.this for join in joins)]:
        alias = source.alias_or_name.lower()
        inner = source.this if isinstance(source, exp.Subquery) else cte_of(source, select)
        if isinstance(inner, exp.Select) and depth < 20:
            below = scope_of(inner, known, depth + 1)
            scope.below[alias] = {one.alias_or_name.lower(): terms(one.unalias(), below.find)
                                  for one in inner.expressions if one.alias_or_name != "*"}  # fmt: skip
            scope.filters |= below.filters
            if any(isinstance(one, exp.Star) for one in inner.expressions):
                scope.tables |= below.tables
        elif isinstance(source, exp.Table):
            scope.tables[alias] = source.name.lower()
    where = select.args.get("where")
    scope.filters |= {filter_text(part, scope) for part in parts(where.this if where else None)}
    scope.joined |= {filter_text(part, scope) for join in joins for part in parts(join.args.get("on"))}
    return scope


def parts(condition: Expr | None) -> list[Expr]:
    """What an AND joins."""
    from sqlglot import exp

    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def cte_of(source: Expr, select: Expr) -> Expr | None:
    """The query of a WITH that a name in a FROM stands for."""
    from sqlglot import exp

    if not isinstance(source, exp.Table) or source.args.get("db"):
        return None
    place: Expr | None = select
    while place is not None:
        for one in getattr(place, "ctes", []):
            if one.alias.lower() == source.name.lower() and one.this is not select:
                return one.this  # type: ignore[no-any-return]
        place = place.parent
    return None


def filter_text(condition: Expr, scope: Scope) -> str:
    """A condition in normal form: the smaller side first, names in full.

    >>> import sqlglot
    >>> one, two = (sqlglot.parse_one(text) for text in ("a > 5", "(5 < a)"))
    >>> filter_text(one, Scope()) == filter_text(two, Scope())
    True
    """
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        sides = [text(terms(condition.left, scope.find)), text(terms(condition.right, scope.find))]
        name = type(condition).__name__
        if name in MIRROR:
            name, sides = MIRROR[name], sides[::-1]
        return f"{name} {' '.join(sorted(sides) if name in ('EQ', 'NEQ') else sides)}"
    return text(terms(condition, scope.find))


def names_in(whole: Terms | str) -> list[str]:
    """The columns of a term, without the functions around them."""
    import re

    if isinstance(whole, str):
        return [whole.lower()]
    return [name for factors in whole for factor in factors for name in re.findall(r"[\w ]+\.\w+", factor)]
