"""Keys taken for amounts (key_as_number).

    SELECT SUM(o.customer_id) FROM orders o WHERE o.id > 20

adds up and compares numbers that only name something (key_as_number), unless the question speaks of that column. A sum
of a column of texts is one too.

"""

from __future__ import annotations

import re

from sqlglot import exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column
from decisor.databases.pitfalls.joins import is_whole_key, kind_of_type
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import name_words
from decisor.types import Pitfall

OF_TIME = re.compile(r"year|month|date|time|birth|age\b", re.I)


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
