"""A column that sounds like the one that the question names (twin_column).

    question: What is the border color of the card "Duress"?
    SELECT colors FROM cards WHERE name = 'Duress'

uses colors, and the question names border_color word by word. A column whose own name the question or its rules have
is no mistake, nor is one that has only the word of its table in common.
"""

from __future__ import annotations

import re
from functools import lru_cache

from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema import TableInfo
from decisor.databases.schema_search import name_words, stemmed_words
from decisor.types import Pitfall


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
