"""Keys taken for amounts (key_as_number).

    SELECT SUM(o.customer_id) FROM orders o WHERE o.id > 20

adds up and compares numbers that only name something, unless the question speaks of that column.
"""

from __future__ import annotations

import re

from sqlglot import exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column
from decisor.databases.pitfalls.joins import is_whole_key
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
            is_size = is_sum or any(isinstance(side, exp.Literal) for side in sides)
            if is_size and any(isinstance(side, exp.Column) and is_label(side, block, rule_input) for side in sides):
                verb = "adds up" if is_sum else "compares the size of"
                text = f"{{}} {verb} keys, which only name something."
                pitfalls.append(rule_input.pitfall("key_as_number", node, text, "ask"))
    return pitfalls


def is_label(column: exp.Column, block: SelectBlock, rule_input: RuleInput) -> bool:
    """Return whether a column holds keys whose size means nothing, and the question does not speak of it."""
    origin = block.source_column(column)
    info = find_column(origin) if origin else None
    if origin is None or info is None or origin.source.table is None:
        return False
    place = (origin.source.table.name.lower(), origin.column)
    is_key = is_whole_key(info, origin.source.table) or place in rule_input.catalog.links.target_of
    return is_key and not OF_TIME.search(info.name) and not name_words(info.name) <= rule_input.asked.stems
