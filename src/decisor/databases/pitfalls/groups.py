"""Columns outside GROUP BY.

    SELECT e.name, SUM(x.cost) FROM events e JOIN expenses x ON x.event_id = e.id

has one row with all costs and the name of any event (ungrouped_column): SQLite and MySQL allow it. MIN and MAX alone
are let pass, for SQLite then takes the other columns from their row, unless the question asks for each of something.
"""

from __future__ import annotations

import re

from sqlglot import exp

from decisor.databases.pitfalls.blocks import SelectBlock
from decisor.databases.pitfalls.fan_out import find_multipliers
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

EACH = re.compile(r"\b(?:each|every|per)\b", re.I)


async def ungrouped_column(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        groups = block.groups or []
        is_each = not groups and bool(EACH.search(rule_input.asked.text))
        if (not groups and not block.has_aggregates()) or (is_extreme_only(block) and not is_each):
            continue
        known = block.source_columns(groups)
        for item in block.select.expressions:
            value = item.unalias()
            origin = block.source_column(value) if isinstance(value, exp.Column) and not value.is_star else None
            if origin is None or value in groups or origin in known or origin.source not in block.sources:
                continue
            if origin.source in await find_multipliers(block, (), known, (), rule_input.stored):
                text = "{} is not in GROUP BY: a group shows that of any of its rows. Group by it, or leave it out."
                pitfalls.append(rule_input.pitfall("ungrouped_column", value, text))
    return pitfalls


def is_extreme_only(block: SelectBlock) -> bool:
    return bool(block.aggregates) and all(isinstance(call, exp.Max | exp.Min) for call in block.aggregates)
