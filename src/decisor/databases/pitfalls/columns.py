"""Columns that are something else than a query takes them for.

    question: What is the border color of the card "Duress"?
    SELECT colors FROM cards WHERE name = 'Duress'

uses colors, and the question names border_color word by word (twin_column). A column whose own name the question or its
rules have is no mistake, nor is one that has only the word of its table in common.

    SELECT e.name, SUM(x.cost) FROM events e JOIN expenses x ON x.event_id = e.id

has one row with all costs and the name of any event (ungrouped_column): SQLite and MySQL allow it. MIN and MAX alone
are let pass, for SQLite then takes the other columns from their row, unless the question asks for each of something.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp

from decisor.databases.pitfalls.fan_out import find_multipliers
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema import TableInfo
from decisor.databases.schema_search import name_words, stemmed_words
from decisor.types import Pitfall

EACH = re.compile(r"\b(?:each|every|per)\b", re.I)


async def twin_column(rule_input: RuleInput) -> list[Pitfall]:
    if not rule_input.asked or not rule_input.is_answer:
        return []
    tables = {id(source.table): source.table for block in rule_input.blocks for source in block.sources if source.table}
    return [pitfall for table in tables.values() for pitfall in find_twins(table, rule_input)]


@lru_cache(maxsize=65_536)
def spell_name(name: str) -> str:
    """Return the stems of a name or text with a blank around each. They are kept, for names of columns recur."""
    return f" {' '.join(stemmed_words(name))} "


def find_twins(table: TableInfo, rule_input: RuleInput) -> list[Pitfall]:
    """Find the columns that the question names and no query uses, if another one with a word of theirs is used."""
    asked, used, named = rule_input.asked, rule_input.used_columns, []
    text = spell_name(asked.text)
    # Longest first: who says "winner rank points" does not speak of winner_rank.
    for column in sorted(table.columns, key=lambda column: -len(column.name)):
        spelled = spell_name(column.name)
        if spelled in text:
            text = text.replace(spelled, " ; ")
            named.append(column)
    pitfalls = []
    for column in named:
        words = name_words(column.name) - name_words(table.name)
        is_used = column.name.lower() in used or used & rule_input.catalog.equal_keys(column.name.lower())
        if is_used or len(name_words(column.name)) < 2:
            continue
        for twin in table.columns:
            is_twin = twin not in named and twin.name.lower() in used and name_words(twin.name) & words
            if is_twin and not re.search(rf"\b{re.escape(twin.name)}\b", asked.rules, re.I):
                text = f"The question says {column.name}, and the query uses {twin.name}. Which is meant?"
                pitfalls.append(Pitfall("twin_column", text, strength="ask", place=twin.name))
                break
    return pitfalls


async def ungrouped_column(rule_input: RuleInput) -> list[Pitfall]:
    pitfalls = []
    for block in rule_input.blocks:
        groups = block.groups or []
        is_each = not groups and bool(EACH.search(rule_input.asked.text))
        is_extreme = bool(block.aggregates) and all(isinstance(call, exp.Max | exp.Min) for call in block.aggregates)
        if (not groups and not block.has_aggregates()) or (is_extreme and not is_each):
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
