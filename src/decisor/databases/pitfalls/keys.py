"""Keys and texts taken for amounts, and subqueries of several rows taken for one value.

    SELECT SUM(o.customer_id) FROM orders o WHERE o.id > 20

adds up and compares numbers that only name something (key_as_number), unless the question speaks of that column. A sum
of a column of texts is one too.

    SELECT name FROM staff WHERE team = (SELECT team FROM projects WHERE cost > 100)

compares with the first row of several (several_rows): whether there are several follows from keys and stored rows.
"""

from __future__ import annotations

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column, keys_of_block
from decisor.databases.pitfalls.fan_out import find_multipliers
from decisor.databases.pitfalls.joins import is_whole_key, kind_of_type
from decisor.databases.pitfalls.outputs import OF_TIME
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import name_words
from decisor.types import Pitfall


async def key_as_number(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        for node in block.nodes.find(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Sum, exp.Avg):
            sides = (node.this, node.args.get("expression"))
            is_sum = isinstance(node, exp.Sum | exp.Avg)
            if is_sum or any(isinstance(side, exp.Literal) for side in sides):
                for side in sides:
                    if isinstance(side, exp.Column) and (thing := name_what_is_meant(side, block, rule_input, is_sum)):
                        verb = "adds up" if is_sum else "compares the size of"
                        pitfalls.append(rule_input.pitfall("key_as_number", node, f"{{}} {verb} {thing}.", "ask"))
    return pitfalls


def name_what_is_meant(column: exp.Column, block: SelectBlock, rule_input: RuleInput, is_sum: bool) -> str:
    """Say what a column holds if its size means nothing; '' if it may mean something, or the question speaks of it."""
    origin = block.source_column(column)
    info = find_column(origin) if origin else None
    if origin is None or info is None or origin.source.table is None:
        return ""
    place = (origin.source.table.name.lower(), origin.column)
    is_key = is_whole_key(info, origin.source.table) or place in rule_input.catalog.links.target_of
    if is_key and not OF_TIME.search(info.name) and not name_words(info.name) <= rule_input.asked.stems:
        return "keys, which only name something"
    holds_texts = kind_of_type(info) == "text" and not any(map(str.isdigit, "".join(info.examples)))
    return "texts" if is_sum and info.examples and holds_texts else ""


async def several_rows(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for node in rule_input.find(*COMPARISON_KINDS):
        for side in (node.this, node.expression):
            if isinstance(side, exp.Subquery) and await returns_several_rows(side.unnest(), rule_input):
                text = "{} compares with the first row of several. Use IN, an aggregate, or a condition for one row."
                pitfalls.append(rule_input.pitfall("several_rows", node, text, "ask"))
    return pitfalls


COMPARISON_KINDS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


async def returns_several_rows(query: Expr, rule_input: RuleInput) -> bool:
    """Return whether a subquery on its own may return several rows, by keys and stored rows."""
    block = rule_input.statement.blocks.get(id(query))
    if block is None or block.select.args.get("limit") or frozenset() in keys_of_block(block):
        return False
    used = (source for home, condition in block.conditions for source, _ in home.origins_of_value(condition))
    # One that names the query around it has one row for each of its rows, mostly.
    if any(source not in block.sources for source in used):
        return False
    return bool(block.groups) or bool(await find_multipliers(block, (), (), (), rule_input.stored))
