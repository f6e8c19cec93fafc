"""Joins that follow no key, and joined tables that nothing needs.

    SELECT c.name FROM cards c JOIN sets s ON c.id = s.id WHERE s.name = 'Coldsnap'

compares two numbers that have nothing to do with each other: the key is cards.set_code = sets.code (keyless_join). Keys
are declared, or guessed from names and values. Columns of one name in two tables, or with a text in common, count as
keys where nothing else joins the two.

    SELECT s.code FROM sets s JOIN translations t ON t.set_code = s.code WHERE s.block = 'Ice Age'

uses nothing of translations (idle_table). A table that the question names, or that holds a kind of its parent's rows
under the parent's own key, may be there to choose rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import FromColumn, FromItem, SelectBlock, find_column
from decisor.databases.pitfalls.fan_out import find_multipliers
from decisor.databases.pitfalls.rule import RuleInput, StoredData
from decisor.databases.pitfalls.statement import KeyLinks, Place
from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.databases.schema_search import name_words
from decisor.types import Pitfall

NUMBER_TYPE = re.compile(r"int|real|num|dec|float|double|serial|money", re.I)
TEXT_TYPE = re.compile(r"char|text|string|clob|uuid", re.I)


async def keyless_join(rule_input: RuleInput) -> list[Pitfall]:
    links, pitfalls = rule_input.catalog.links, []
    for block in rule_input.blocks:
        groups: dict[frozenset[FromItem], list[ColumnPair]] = {}
        for pair in equal_columns(block):
            groups.setdefault(frozenset({pair.first.source, pair.second.source}), []).append(pair)
        for pairs in groups.values():
            reasons = [await explain_keyless(pair, links, rule_input.stored) for pair in pairs]
            # One condition that follows a key is enough; the others filter.
            if all(reasons):
                pitfalls.append(rule_input.pitfall("keyless_join", pairs[0].condition, reasons[0]))
    return pitfalls


class ColumnPair(NamedTuple):
    """Two columns of different tables that a condition compares for equality."""

    condition: Expr
    first: FromColumn
    second: FromColumn
    tables: tuple[TableInfo, TableInfo]

    @property
    def places(self) -> tuple[Place, Place]:
        first, second = self.tables
        return (first.name.lower(), self.first.column), (second.name.lower(), self.second.column)


def equal_columns(block: SelectBlock) -> Iterator[ColumnPair]:
    """Yield the pairs of columns by which a SELECT joins two different tables of its own."""
    own = set(block.sources)
    for home, node in block.conditions:
        condition = node.this.unnest() if isinstance(node, exp.Not) else node
        if isinstance(condition, exp.EQ | exp.In):
            first = home.source_column(condition.this)
            second = column_of_subquery(home, condition) if condition.args.get("query") else None
            if isinstance(condition, exp.EQ):
                second = home.source_column(condition.expression)
            if first is None or second is None or first.source is second.source:
                continue
            if isinstance(condition, exp.EQ) and {first.source, second.source} - own:
                continue
            tables = (first.source.table, second.source.table)
            if tables[0] is not None and tables[1] is not None and tables[0].name != tables[1].name:
                yield ColumnPair(condition, first, second, (tables[0], tables[1]))


def column_of_subquery(block: SelectBlock, condition: Expr) -> FromColumn | None:
    """Return the one column that the subquery of an IN returns, None if it is no column of a source."""
    select = condition.args["query"].unnest()
    inner = block.block_of(select)
    return inner.source_column(select.expressions[0].unalias()) if inner and len(select.expressions) == 1 else None


async def explain_keyless(pair: ColumnPair, links: KeyLinks, stored: StoredData) -> str:
    """Say why a condition follows no key; '' if it may follow one."""
    (first, second), (one_place, other_place) = pair.tables, pair.places
    if links.root(one_place) == links.root(other_place):
        return ""
    if keys := links.links(first, second):
        name, key = keys[0]
        return f"{{}} follows no key: these tables are joined by {first.name}.{name} = {second.name}.{key}."
    columns = [find_column(origin) for origin in (pair.first, pair.second)]
    kinds = [kind_of_type(column) for column in columns]
    if all(kinds) and kinds[0] != kinds[1]:
        return f"{{}} compares a column of {kinds[0]}s with a column of {kinds[1]}s: they hold different things."
    if (one_place[1] == other_place[1] and one_place[1] != "id") or await share_values(pair, kinds, stored):
        return ""
    # flights.airline = airlines.uid
    if name_words(one_place[1]) & name_words(second.name) or name_words(other_place[1]) & name_words(first.name):
        return ""
    for place, opposite in (pair.places, pair.places[::-1]):
        if (target := links.target_of.get(place)) is not None:
            return (
                f"{{}} follows no key: {'.'.join(place)} holds values of {'.'.join(target)}, {'.'.join(opposite)} does "
                f"not. Join through {target[0]}."
            )
    targets = set(links.target_of.values())
    are_keys = [
        is_whole_key(column, table) or place in targets
        for column, table, place in zip(columns, pair.tables, pair.places, strict=True)
    ]
    if all(are_keys):
        return f"{{}} compares the keys of {first.name} and {second.name}, which stand for different things."
    return ""


async def share_values(pair: ColumnPair, kinds: Sequence[str], stored: StoredData) -> bool:
    """Return whether two columns have a value in common that is no number: numbers agree by chance, texts do not."""
    sources = (pair.first, pair.second)
    if kinds == ["number", "number"]:
        return False
    first, second = (f"{name}.{stored.quoted_column(*place)}" for name, place in zip("ab", sources, strict=True))
    tables = f"{pair.first.source.text} AS a JOIN {pair.second.source.text} AS b"
    table = await stored.rows(f"SELECT 1 FROM {tables} ON {first} = {second} LIMIT 1")
    # No alarm without an answer.
    return table is None or bool(table.rows)


def kind_of_type(column: ColumnInfo | None) -> str:
    """Return number or text, '' for any other type of a column."""
    if column is None:
        return ""
    return "number" if NUMBER_TYPE.search(column.type) else "text" if TEXT_TYPE.search(column.type) else ""


def is_whole_key(column: ColumnInfo | None, table: TableInfo) -> bool:
    return column is not None and table.key_columns == (column,)


async def idle_table(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        select = block.select
        joins = select.args.get("joins") or ()
        names_columns = any(join.args.get("using") or join.method == "NATURAL" for join in joins)
        # With DISTINCT the join repeats nothing, and mostly chooses rows.
        shows_all = any(item.is_star for item in select.expressions) or select.args.get("distinct")
        if not joins or names_columns or shows_all or select.find_ancestor(exp.Exists) or counts_rows(block):
            continue
        uses = find_uses(block)
        for source in block.names.values():
            if not isinstance(source, FromItem) or source.table is None:
                continue
            used_for = uses.get(source, set())
            # A table between two others is the way from one to the other.
            if None in used_for or len(used_for) > 1 or chooses_rows(source, block, rule_input):
                continue
            # The parent of a row that is there anyway: the join neither repeats rows nor, mostly, drops them.
            others = [known for known in block.sources if known is not source]
            if source not in await find_multipliers(block, others, (), (), rule_input.stored):
                continue
            text = f"Is {source.name} needed? Nothing of it is used, and the join repeats or drops rows."
            node = next(
                (table for table in block.nodes.find(exp.Table) if table.name.lower() == source.name.lower()), select
            )
            pitfalls.append(rule_input.pitfall("idle_table", node, text, "ask"))
    return pitfalls


def counts_rows(block: SelectBlock) -> bool:
    """Return whether a SELECT counts rows with COUNT(*): then each joined table counts."""
    return any(isinstance(count.this, exp.Star) for count in block.nodes.find(exp.Count))


def find_uses(block: SelectBlock) -> dict[FromItem, set[FromItem | None]]:
    """Return, for each source, the sources that it is joined to; None among them stands for any other use."""
    uses: dict[FromItem, set[FromItem | None]] = {}
    for column in block.select.find_all(exp.Column):
        home = block if column.parent_select is block.select else block.block_of(column.parent_select)
        if home is None or column.is_star:
            continue
        joined: FromItem | None = None
        comparison = column.parent
        if isinstance(comparison, exp.EQ) and home is block:
            opposite = comparison.expression if comparison.this is column else comparison.this
            origin = block.source_column(opposite) if isinstance(opposite, exp.Column) else None
            joined = origin.source if origin else None
        for origin in home.origins(column):
            uses.setdefault(origin.source, set()).add(joined if joined is not origin.source else None)
    return uses


def chooses_rows(source: FromItem, block: SelectBlock, rule_input: RuleInput) -> bool:
    """Return whether a table may be joined for which rows it has: the question names it, or it is a kind of another."""
    if rule_input.asked.names_table([source.name]):
        return True
    links = rule_input.catalog.links
    for pair in equal_columns(block):
        for origin, place, table in zip((pair.first, pair.second), pair.places, pair.tables, strict=True):
            if origin.source is source and is_whole_key(find_column(origin), table) and place in links.target_of:
                return True
    return False
