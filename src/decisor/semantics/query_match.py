"""Compare a query with metrics: which of them it computes, and which it computes differently.

The numbers of a query are found in each SELECT, with the filters of their rows, through CTEs and subqueries.
Expressions have one normal form, a sum of products of columns, so that two that compute the same are equal: ``a * b *
(1 - c)`` is ``a*b - a*b*c``, and ``SUM(a) - SUM(b)`` is ``SUM(a - b)``. A query that cannot be parsed computes no
metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

from decisor.sandbox.dialect import parse_sql
from decisor.semantics.definitions import Metric, Relation, section_title

if TYPE_CHECKING:
    from sqlglot import Expr, exp


Terms: TypeAlias = Mapping[tuple[str, ...], Fraction]
"""Factors in order -> how often: a*b - 2*c is {("a", "b"): 1, ("c",): -2}."""
Find: TypeAlias = "Callable[[Expr], Terms | str]"
"""A column as its full name, or as the terms of the expression that it stands for."""
ADDITIVE = ("sum(", "count(")
NUMERIC = {"FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL", "UDECIMAL", "NUMERIC", "REAL"}
MOST_TERMS = 200
NUMBER = re.compile(r"(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][-+]?\d{1,2})?")
"""Any other stays the text that it is: 1e999999999 would be a whole number of as many digits."""


def normalize_expression(node: Expr, find: Find) -> Terms:
    """Convert an expression to its normal form, a sum of products of columns.

    >>> import sqlglot
    >>> one, two = (sqlglot.parse_one(format_terms)
    ...     for format_terms in ("SUM(a * (1 - b))", "round(sum(a) - sum(b * a), 2)"))
    >>> normalize_expression(one, str) == normalize_expression(two, str)
    True
    """
    from sqlglot import exp

    terms = partial(normalize_expression, find=find)
    match node:
        # Rounding a number does not make it another metric.
        case exp.Paren() | exp.Alias() | exp.Round():
            return terms(node.this)
        case exp.Literal() if not node.is_string and NUMBER.fullmatch(node.name):
            return {(): Fraction(str(node.this))}
        case exp.Neg():
            return scale_terms(terms(node.this), Fraction(-1))
        case exp.Add():
            return add_terms(terms(node.left), terms(node.right))
        case exp.Sub():
            return add_terms(terms(node.left), scale_terms(terms(node.right), Fraction(-1)))
        case exp.Mul():
            return multiply_terms(terms(node.left), terms(node.right))
        case exp.Div():
            divisor = terms(node.right)
            # A number other than 0 scales the terms; any other divisor becomes one factor.
            if set(divisor) == {()} and divisor[()]:
                return scale_terms(terms(node.left), 1 / divisor[()])
            return multiply_terms(terms(node.left), {(f"1/({format_terms(divisor)})",): Fraction(1)})
        case exp.Cast() if node.to.this.name in NUMERIC:
            return terms(node.this)
        # coalesce(sum(x), 0) differs from the sum over no rows only.
        case exp.Coalesce() if node.this.find(exp.AggFunc) and not node.find(exp.Subquery):
            return terms(node.this)
        case exp.Column() | exp.Identifier():
            full = find(node)
            return {(full.lower(),): Fraction(1)} if isinstance(full, str) else full
        case exp.Sum() if not isinstance(node.this, exp.Distinct):
            return sum_terms(terms(node.this))
        case exp.Count() if isinstance(node.this, exp.Star | exp.Literal):
            return {("count(*)",): Fraction(1)}
    return {(normalize_atom(node, find),): Fraction(1)}


def normalize_atom(node: Expr, find: Find) -> str:
    """Return an expression that is no sum or product as text, its arguments in normal form."""
    from sqlglot import exp

    if isinstance(node, exp.Distinct):
        return f"distinct {', '.join(format_terms(normalize_expression(one, find)) for one in node.expressions)}"
    if isinstance(node, exp.AggFunc) and node.this is not None and not node.expressions:
        inner = (
            normalize_atom(node.this, find)
            if isinstance(node.this, exp.Distinct)
            else format_terms(normalize_expression(node.this, find))
        )
        return f"{type(node).__name__.lower()}({inner})"

    def named(part: Expr) -> Expr:
        if not isinstance(part, exp.Column):
            return part
        full = find(part)
        return exp.column(full.lower() if isinstance(full, str) else format_terms(full))

    return node.transform(named).sql(normalize=True, comments=False).lower().replace('"', "")


def format_terms(whole: Terms) -> str:
    """Format terms as text.

    >>> format_terms({("a", "b"): Fraction(1), (): Fraction(-2)})
    '-2 + a*b'
    """
    parts = []
    for factors, count in sorted(whole.items()):
        name = "*".join(factors)
        parts.append(str(count) if not name else name if count == 1 else f"{count}*{name}")
    return " + ".join(parts) or "0"


def add_terms(one: Terms, other: Terms) -> Terms:
    whole = dict(one)
    for factors, count in other.items():
        whole[factors] = whole.get(factors, Fraction(0)) + count
    return {factors: count for factors, count in whole.items() if count}


def scale_terms(one: Terms, by: Fraction) -> Terms:
    return {factors: count * by for factors, count in one.items()}


def multiply_terms(one: Terms, other: Terms) -> Terms:
    """Multiply two sums of products.

    A product that could have more than ``MOST_TERMS`` terms stays one product of two factors.
    """
    if len(one) * len(other) > MOST_TERMS:
        return {tuple(sorted((f"({format_terms(one)})", f"({format_terms(other)})"))): Fraction(1)}
    whole: Terms = {}
    for a, x in one.items():
        for b, y in other.items():
            whole = add_terms(whole, {tuple(sorted((*a, *b))): x * y})
    return whole


def sum_terms(inner: Terms) -> Terms:
    """Return the terms of the sum over all rows.

    A sum or count inside stays itself, for a sum of group sums is the sum of all.
    """
    whole: Terms = {}
    for factors, count in inner.items():
        name = "count(*)" if not factors else f"sum({'*'.join(factors)})"
        if len(factors) == 1 and factors[0].startswith(ADDITIVE):
            name = factors[0]
        whole = add_terms(whole, {(name,): count})
    return whole


MIRROR = {"GT": "LT", "GTE": "LTE"}


@dataclass(frozen=True)
class Computation:
    """A number that a query computes, in normal form."""

    name: str
    """Alias in the query, '' if it has none."""
    terms: Terms
    columns: frozenset[str]
    filters: frozenset[str]
    """Filters of its rows, in normal form."""
    written: str
    """Its text in the query."""
    aggregates: bool = True
    """False for a value of one row."""
    conditions: frozenset[str] = frozenset()
    """All conditions of the statement."""

    @property
    def comparable_terms(self) -> Terms:
        """The terms to compare; a value of one row becomes its sum over the rows."""
        return self.terms if self.aggregates else sum_terms(self.terms)


@dataclass
class Scope:
    """The names that one SELECT knows."""

    tables: dict[str, str] = field(default_factory=dict)
    """Tables by alias."""
    below: dict[str, dict[str, Terms]] = field(default_factory=dict)
    """Computed columns of subqueries, by the subquery's alias."""
    filters: set[str] = field(default_factory=set)
    """Conditions on its rows, those of subqueries included."""
    joined: set[str] = field(default_factory=set)
    """Conditions of its joins."""
    known: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Columns by table."""

    def find(self, column: Expr) -> Terms | str:
        """Resolve a column to its full name, or to its terms if a subquery computes it."""
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


def find_computations(statement: str, dialect: str, relations: Sequence[Relation]) -> Iterator[Computation]:
    """Yield the computed columns of each SELECT; none if the statement cannot be parsed."""
    from sqlglot import exp

    if (tree := parse_sql(statement, dialect)) is None:
        return
    known = {one.name.lower(): frozenset(column.name.lower() for column in one.columns) for one in relations}
    scopes = [(select, scope_of(select, known)) for select in tree.find_all(exp.Select)]
    conditions = frozenset[str]().union(*(scope.filters | scope.joined for _, scope in scopes))
    for select, scope in scopes:
        for one in find_select_computations(select, scope, dialect):
            yield replace(one, conditions=conditions)


def find_select_computations(select: exp.Select, scope: Scope, dialect: str) -> Iterator[Computation]:
    from sqlglot import exp

    order = select.args.get("order")
    ordering = [part.this for part in order.expressions if part.this.find(exp.AggFunc)] if order else []
    for node in [*select.expressions, *ordering]:
        inner = node.unalias()
        is_computed = inner.find(exp.Column, exp.Star) and not isinstance(inner, exp.Column | exp.Star | exp.Literal)
        if not is_computed or inner.find(exp.Query):
            continue
        whole = normalize_expression(inner, scope.find)
        columns = frozenset(name for one in inner.find_all(exp.Column) for name in columns_of_terms(scope.find(one)))
        aggregates = any(factor.startswith("sum(") or "(" in factor for factors in whole for factor in factors)
        yield Computation(
            node.alias.lower(),
            whole,
            columns,
            frozenset(scope.filters),
            inner.sql(dialect=dialect, comments=False),
            aggregates,
        )


def scope_of(select: exp.Select, known: Mapping[str, frozenset[str]], depth: int = 0) -> Scope:
    from sqlglot import exp

    scope = Scope(known=known)
    joins = select.args.get("joins") or []
    begin = select.args.get("from_") or select.args.get("from")
    for source in [*([begin.this] if begin else []), *(join.this for join in joins)]:
        alias = source.alias_or_name.lower()
        inner = source.this if isinstance(source, exp.Subquery) else find_cte_query(source, select)
        # The depth is limited, for a recursive CTE may name itself by way of another.
        if isinstance(inner, exp.Select) and depth < 20:
            below = scope_of(inner, known, depth + 1)
            scope.below[alias] = {
                one.alias_or_name.lower(): normalize_expression(one.unalias(), below.find)
                for one in inner.expressions
                if one.alias_or_name != "*"
            }
            scope.filters |= below.filters
            if any(isinstance(one, exp.Star) for one in inner.expressions):
                scope.tables |= below.tables
        elif isinstance(source, exp.Table):
            scope.tables[alias] = source.name.lower()
    where = select.args.get("where")
    scope.filters |= {normalize_condition(part, scope) for part in split_conjunction(where.this if where else None)}
    scope.joined |= {
        normalize_condition(part, scope) for join in joins for part in split_conjunction(join.args.get("on"))
    }
    return scope


def split_conjunction(condition: Expr | None) -> list[Expr]:
    """Return the conditions that AND joins, none for None."""
    from sqlglot import exp

    if condition is None:
        return []
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def find_cte_query(source: Expr, select: Expr) -> Expr | None:
    """Return the query of a WITH clause that a name in FROM refers to, else None."""
    from sqlglot import exp

    # A name with a schema is never a CTE.
    if not isinstance(source, exp.Table) or source.args.get("db"):
        return None
    place: Expr | None = select
    while place is not None:
        for one in getattr(place, "ctes", []):
            if one.alias.lower() == source.name.lower() and one.this is not select:
                return one.this  # type: ignore[no-any-return]
        place = place.parent
    return None


def normalize_condition(condition: Expr, scope: Scope) -> str:
    """Return a condition in normal form: the smaller side first, names in full.

    >>> import sqlglot
    >>> one, two = (sqlglot.parse_one(format_terms) for format_terms in ("a > 5", "(5 < a)"))
    >>> normalize_condition(one, Scope()) == normalize_condition(two, Scope())
    True
    """
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        both = (condition.left, condition.right)
        sides = [format_terms(normalize_expression(side, scope.find)) for side in both]
        name = type(condition).__name__
        if name in MIRROR:
            name, sides = MIRROR[name], sides[::-1]
        return f"{name} {' '.join(sorted(sides) if name in ('EQ', 'NEQ') else sides)}"
    return format_terms(normalize_expression(condition, scope.find))


def columns_of_terms(whole: Terms | str) -> list[str]:
    """Return the columns of terms, without the functions around them."""
    if isinstance(whole, str):
        return [whole.lower()]
    return [name for factors in whole for factor in factors for name in re.findall(r"[\w ]+\.\w+", factor)]


WITHOUT_FILTER = "This computes {} without its filter: it is of rows where {}. Add that, or say in Assumptions why not."
AGGREGATES = re.compile(r"\b(sum|count|avg|min|max|median)\(")
SAME_SHARE = 0.5
PIECES = re.compile(r"\.\w*(quantity|qty|units|pieces|count|number)\w*$", re.I)


@dataclass(frozen=True)
class MetricMatch:
    """A metric that a query computes."""

    metric: Metric
    how: str = ""
    """Note to the author of the query if it computes the metric differently, else ''."""


def match_metrics(
    statement: str, metrics: Sequence[Metric], dialect: str, relations: Sequence[Relation], meant: Sequence[Metric] = ()
) -> Sequence[MetricMatch]:
    """Return the metrics that a query computes, exactly or differently, each at most once.

    A column that is exactly a metric is not compared with other metrics. meant: metrics that the question is about.
    """
    defined = [(metric, computation_of_query(metric.full_query(), dialect, tuple(relations))) for metric in metrics]
    known = [(metric, definition) for metric, definition in defined if definition]
    outcome: dict[str, MetricMatch] = {}
    exact: set[int] = set()
    parts = list(find_computations(statement, dialect, relations))
    # Exact matches come first: a column that is one metric is not compared with the others.
    for metric, definition in known:
        title, where = section_title(metric), " and ".join(metric.where)
        for at, part in enumerate(parts):
            if part.comparable_terms == definition.comparable_terms:
                exact.add(at)
                # A filter may stand in an outer SELECT or a join, so all conditions of the statement count.
                missing = definition.filters - part.conditions
                if metric.name not in outcome or not missing:
                    outcome[metric.name] = MetricMatch(metric, WITHOUT_FILTER.format(title, where) if missing else "")
    others = [part for at, part in enumerate(parts) if at not in exact]
    for metric, definition in known:
        likely = (part for part in others if seems_to_recompute(part, metric, definition, metric in meant))
        if metric.name not in outcome and (other := next(likely, None)):
            text = " ".join((metric.query or f"{metric.sql} over {metric.source}").split())
            rows = f", of rows where {' and '.join(metric.where)}" if metric.where else ""
            outcome[metric.name] = MetricMatch(
                metric,
                f"{other.written} is not {section_title(metric)}, which is {text}{rows}. "
                "Use that where it is meant, or say in Assumptions why not.",
            )
    return tuple(outcome.values())


@lru_cache(maxsize=500)
def computation_of_query(query: str, dialect: str, relations: tuple[Relation, ...]) -> Computation | None:
    """Return the first computation of a metric's query, None if its SQL cannot be read."""
    return next(find_computations(query, dialect, relations), None)


def seems_to_recompute(part: Computation, metric: Metric, definition: Computation, meant: bool) -> bool:
    """Return whether a computation seems to mean a metric.

    It does by its name, or as the same aggregate over half or more of the metric's columns. One common column of
    several is enough only if the metric is ``meant`` and the column does not count pieces.
    """
    if any(normalize_metric_name(part.name) == normalize_metric_name(name) for name in metric.names):
        return True
    shared = part.columns & definition.columns
    if len(shared) == 1 < len(definition.columns) and (not meant or PIECES.search(next(iter(shared)))):
        return False
    kinds = [set(AGGREGATES.findall(str(one.terms))) for one in (part, definition)]
    return (
        part.aggregates
        and kinds[0] == kinds[1]
        and bool(shared)
        and len(shared) >= SAME_SHARE * len(definition.columns)
    )


def normalize_metric_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()
