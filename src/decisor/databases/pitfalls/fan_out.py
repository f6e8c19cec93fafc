"""Multiplied rows in a sum or count (fan_out).

    SELECT SUM(o.total) FROM orders o JOIN order_items i ON i.order_id = o.id

takes an order's total once for each of its items. A value is multiplied by each source that may have several rows for
one row of the value's source: whose key does not follow from the row, from what the query groups by, and from what its
conditions fix. Keys are those that the database declares; if they do not suffice, the stored rows are looked at. MIN,
MAX and DISTINCT are not affected. A share that counts the same joined rows above and below the line means these rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import (
    Dependency,
    FromColumn,
    FromItem,
    SelectBlock,
    columns_of_source,
    find_aggregates,
    is_subexpression,
    split_conjuncts,
)
from decisor.databases.pitfalls.limit_order import add_with_clause
from decisor.databases.pitfalls.question import CLAUSE_END, AskedQuestion
from decisor.databases.pitfalls.rule import RuleInput, StoredData
from decisor.types import Pitfall


class Multiplication(NamedTuple):
    """Sources whose rows an aggregate takes more than once, and the sources that multiply them.

    For counted combinations ``multiplied`` is empty.
    """

    multiplied: Sequence[FromItem]
    multipliers: Sequence[FromItem]


@dataclass(frozen=True)
class AggregateTerm:
    """One value that an aggregate takes, under the conditions of FILTER and CASE."""

    block: SelectBlock
    call: Expr
    value: Expr
    fixed: frozenset[FromColumn]
    """Columns with one value in the scope of the call: its partition, or the group."""
    implied: tuple[Dependency, ...] = ()
    """Dependencies that the conditions imply."""

    async def multipliers_of(self, roots: Sequence[FromItem], stored: StoredData) -> list[FromItem]:
        return await find_multipliers(self.block, roots, self.fixed, self.implied, stored)


async def fan_out(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        for call in find_aggregate_calls(block):
            for term in aggregate_terms(block, call):
                multiplication = await find_multiplication(term, rule_input.stored)
                if multiplication and not means_joined_rows(term, multiplication, rule_input.asked):
                    text = describe_fan_out(term, multiplication)
                    # A count of joined rows may be meant: only one that is another with DISTINCT is asked about.
                    is_count = bool(rule_input.asked) and isinstance(term.call, exp.Count)
                    if is_count and not await counts_twice(term, rule_input):
                        continue
                    pitfalls.append(rule_input.pitfall("fan_out", term.call, text, "ask" if is_count else "wrong"))
                    break
    return pitfalls


async def counts_twice(term: AggregateTerm, rule_input: RuleInput) -> bool:
    """Return whether a count of a column is another one with DISTINCT, by the stored rows."""
    call, counted, block = term.call, term.call.this, term.block
    if not isinstance(counted, exp.Column):
        return True
    written = add_with_clause(block, block.statement.write(block.select))
    call.set("this", exp.Distinct(expressions=[counted]))
    try:
        distinct = add_with_clause(block, block.statement.write(block.select))
    finally:
        call.set("this", counted)
    tables = [await rule_input.stored.rows(query, MAX_COUNTS) for query in (written, distinct)]
    return tables[0] is not None and tables[1] is not None and tables[0].rows != tables[1].rows


MAX_COUNTS = 100


def means_joined_rows(term: AggregateTerm, multiplication: Multiplication, asked: AskedQuestion) -> bool:
    """Return whether the joined rows are meant.

    They are if the rules say to join these tables. A count means them if it divides, or is divided by, another sum over
    these rows or the number of what is multiplied; or if the question speaks of the table that multiplies and not of
    the one that is multiplied.
    """
    roots, multipliers = ([source.name for source in sources] for sources in multiplication)
    if roots and any(
        re.search(r"\bjoin\b", clause, re.I) and all(name.lower() in clause.lower() for name in (*roots, *multipliers))
        for clause in CLAUSE_END.split(asked.rules)
    ):
        return True
    if not isinstance(term.call, exp.Count):
        return False
    division = term.call.find_ancestor(exp.Div, exp.Select)
    if isinstance(division, exp.Div):
        opposite = division.expression if is_subexpression(term.call, division.this) else division.this
        for call in find_aggregates(opposite):
            counted = multiplication.multiplied if isinstance(call.this, exp.Distinct) else multiplication.multipliers
            if isinstance(call.this, exp.Star) or {origin.source for origin in term.block.origins_of_value(call)} & set(
                counted
            ):
                return True
    return bool(asked and roots) and asked.names_table(multipliers) and not asked.names_table(roots)


def find_aggregate_calls(block: SelectBlock) -> Iterator[Expr]:
    """Yield the sums, averages and counts of a block that are not DISTINCT."""
    for node in block.aggregates:
        is_affected = isinstance(node, exp.Sum | exp.Avg | exp.Count | exp.CountIf | exp.Anonymous)
        if is_affected and not isinstance(node.this, exp.Distinct):
            inner = aggregate_argument(node)
            if inner is None or not find_aggregates(inner):
                yield node


def aggregate_argument(call: Expr) -> Expr | None:
    if isinstance(call, exp.Anonymous):
        return call.expressions[0] if call.expressions else None
    return call.this if isinstance(call.this, exp.Expression) else None


def aggregate_terms(block: SelectBlock, call: Expr) -> Iterator[AggregateTerm]:
    """Yield the values that an aggregate takes, with the conditions of FILTER and CASE."""
    filtered = call.parent if isinstance(call.parent, exp.Filter) else None
    around = filtered.parent if filtered is not None else call.parent
    groups = (around.args.get("partition_by") if isinstance(around, exp.Window) else block.groups) or ()
    fixed = frozenset(block.source_columns(groups))
    conditions = tuple(split_conjuncts(filtered.expression.this if filtered is not None else None))
    inner = aggregate_argument(call)
    is_row_count = inner is None or isinstance(inner, exp.Star)
    for value, more in [(call, ())] if is_row_count or inner is None else branch_values(inner):
        implied = (dependency for condition in (*conditions, *more) for dependency in block.following(condition))
        yield AggregateTerm(block, call, value, fixed, tuple(implied))


def branch_values(value: Expr) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """Yield the values of the branches of a CASE with their conditions, without branches that add nothing."""
    value = value.unnest()
    if isinstance(value, exp.Case | exp.If):
        for branch in value.args["ifs"] if isinstance(value, exp.Case) else [value]:
            is_simple = isinstance(value, exp.Case) and value.this
            condition = exp.EQ(this=value.this, expression=branch.this) if is_simple else branch.this
            for inner, more in branch_values(branch.args["true"]):
                yield inner, (*split_conjuncts(condition), *more)
        default = value.args.get("default" if isinstance(value, exp.Case) else "false")
        if default is not None:
            yield from branch_values(default)
    elif isinstance(value, exp.Coalesce | exp.Cast | exp.Round):
        yield from branch_values(value.this)
    # ELSE 0 adds nothing to a sum.
    elif not isinstance(value, exp.Null) and not (isinstance(value, exp.Literal) and value.name == "0"):
        yield value, ()


async def find_multiplication(term: AggregateTerm, stored: StoredData) -> Multiplication | None:
    """Return the sources whose rows a term takes more than once; None if no rows are multiplied."""
    block = term.block
    if inside := await find_inner_multiplication(term, stored):
        return inside
    if len(block.sources) < 2:
        return None
    # COUNT(*) and conditions count rows of all sources and have no source of their own.
    counts_rows = term.value is term.call or isinstance(term.value, exp.Predicate | exp.Connector | exp.Not)
    origins = frozenset() if counts_rows else block.origins_of_value(term.value)
    roots = own_sources(block, origins)
    if roots and block.determines(term.fixed, origins, term.implied):
        # Repeats of one value do not change its average.
        if isinstance(term.call, exp.Avg):
            return None
        roots = [] if isinstance(term.call, exp.Count) else roots
    if roots:
        multipliers = await term.multipliers_of(roots, stored)
        if isinstance(term.call, exp.Avg) and repeats_evenly(term, multipliers):
            return None
        return Multiplication(roots, multipliers) if multipliers else None
    return await find_counted_combinations(term, stored)


def repeats_evenly(term: AggregateTerm, multipliers: Sequence[FromItem]) -> bool:
    """Return whether sources repeat all rows of a group alike, for what they are joined by is fixed in a group."""
    compared = [
        *(home.origins_of_value(condition) for home, condition in term.block.conditions),
        *term.block.equal_columns,
    ]
    for origins in compared:
        rest = [origin for origin in origins if origin.source not in multipliers]
        if len(rest) < len(origins) and not term.block.determines(term.fixed, rest):
            return False
    return True


def own_sources(block: SelectBlock, origins: frozenset[FromColumn]) -> list[FromItem]:
    # In the order of FROM: a set of columns has another order in each process, and people compare messages.
    sources = {origin.source for origin in origins}
    return [source for source in block.sources if source in sources]


async def find_inner_multiplication(term: AggregateTerm, stored: StoredData) -> Multiplication | None:
    """Return the sources multiplied inside the part of the query that the value comes from.

    That part does not tell the rows apart: it groups or cuts them by more, or consists of several queries one after the
    other. None if no rows are multiplied.
    """
    origin = term.block.source_column(term.value) if isinstance(term.call, exp.Sum | exp.Avg) else None
    if origin is None:
        return None
    part = origin.source
    known = columns_of_source(part, term.block.closure(term.fixed, ())[0])
    for block in (part.block, *part.branches):
        value = expression_of_column(block, part, origin.column)
        if block is None or value is None or find_aggregates(value) or value.find(exp.Window):
            continue
        origins = block.origins_of_value(value)
        roots = own_sources(block, origins)
        values = (expression_of_column(block, part, name) for name in known)
        fixed = block.source_columns(expression for expression in values if expression is not None)
        if not roots or block.determines(fixed, origins):
            continue
        multipliers = await find_multipliers(block, roots, fixed, (), stored)
        columns, single = block.closure(fixed, roots)
        keys = {name: expression_of_column(block, part, name) for key in part.keys for name in key}
        inner = {name: block.source_column(key) for name, key in keys.items() if key is not None}
        settled = known | {name for name, key in inner.items() if key and (key in columns or key.source in single)}
        if multipliers and not any(key <= settled for key in part.keys):
            return Multiplication(roots, multipliers)
    return None


def expression_of_column(block: SelectBlock | None, part: FromItem, name: str) -> Expr | None:
    """Return the expression of a column of a part. With several queries, columns are matched by position."""
    if block is None or name in block.outputs:
        return block.outputs[name] if block else None
    return dict(zip(part.columns or (), block.outputs.values(), strict=False)).get(name)


async def find_counted_combinations(term: AggregateTerm, stored: StoredData) -> Multiplication | None:
    """Return sources whose combinations a count counts, since no source tells the row of all others.

    Pairs out of one table are taken as intended: None.
    """
    sources = term.block.sources
    for root in sources:
        if not await term.multipliers_of([root], stored):
            return None
    return Multiplication([], sources) if len({source.name.lower() for source in sources}) == len(sources) else None


async def find_multipliers(
    block: SelectBlock,
    roots: Sequence[FromItem],
    fixed: Collection[FromColumn],
    implied: Sequence[Dependency],
    stored: StoredData,
) -> list[FromItem]:
    """Return the sources that may have several rows for one row of each of ``roots``."""
    reached = list(roots)
    # A source with one row may settle the key of the next: repeat until none is added.
    while True:
        columns, reached = block.closure(fixed, reached, implied)
        for source in block.sources:
            if source not in reached and await stored.is_unique(
                source, columns_of_source(source, columns), block.statement
            ):
                reached.append(source)
                break
        else:
            return [source for source in block.sources if source not in reached]


def describe_fan_out(term: AggregateTerm, multiplication: Multiplication) -> str:
    roots, multipliers = multiplication
    names = list(dict.fromkeys(source.name for source in multipliers))
    if not roots:
        return (
            f"{{}} counts combinations of rows of {' and '.join(names)}: none of them has one row for each row of "
            "the others. Count each in a subquery of its own and join the counts, or use COUNT(DISTINCT ...) of a key."
        )
    base = " and ".join(dict.fromkeys(root.name for root in roots))
    first = multipliers[0]
    known = ", ".join(sorted(columns_of_source(first, term.block.closure(term.fixed, roots)[0])))
    return (
        f"{{}} takes rows of {base} more than once: {first.name} may have several rows"
        f"{f' with the same {known}' if known else ''}, and each repeats its row of {base}. Aggregate {base} in a "
        f"subquery without {' and '.join(names[:3])}, or aggregate {first.name} first (SELECT ... FROM {first.name}"
        f"{f' GROUP BY {known}' if known else ''}) and join the result; where {first.name} only filters, use EXISTS."
    )
