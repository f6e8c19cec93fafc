"""Outputs other than those asked for: no order for a superlative, no average, a key where a name is wanted.

    question: Which three suppliers are the cheapest?
    SELECT name FROM suppliers

has no order and no limit; ORDER BY price DESC would be the wrong way round (lost_order). A question for an average or a
percentage wants AVG or a division, and a list is more than a count (lost_measure).

    question: Which members attended the concert?
    SELECT m.member_id FROM members m JOIN ...

shows keys where the same table has names, and the question does not speak of keys (id_for_name).
"""

from __future__ import annotations

import re

from sqlglot import exp

from decisor.databases.pitfalls.blocks import FromColumn, SelectBlock, find_column
from decisor.databases.pitfalls.question import AskedQuestion
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

AT_LEAST = re.compile(r"\bat (?:most|least)\b|\bmost recent\b|\b(?:maxi|mini)mum\b", re.I)
MOST = r"highest|most|largest|biggest|greatest|longest|tallest|heaviest"
LEAST = r"lowest|least|smallest|fewest|shortest|cheapest"
EITHER = r"latest|newest|earliest|oldest|youngest|best|worst|peak"
SUPERLATIVE = re.compile(rf"\b(?:(?P<most>{MOST})|(?P<least>{LEAST})|{EITHER})\b", re.I)
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
COUNTED = rf"(?P<count>{'|'.join(NUMBER_WORDS[2:])}|\d\d?)"
TOP = re.compile(
    rf"\b(?:top|first|{MOST}|{LEAST}|{EITHER})\s+{COUNTED}\b(?!\s+(?:second|minute|hour|day|week|month|quarter|year))",
    re.I,
)
RANKING = (exp.Order, exp.Max, exp.Min, exp.Window, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.All, exp.ArgMax, exp.ArgMin)
KEY_WORDS = re.compile(r"(?i:\b(?:ids?|identif\w*|codes?|numbers?|keys?|links?|uuids?|ranks?)\b)|[a-z]ID?s?\b")
KEY_NAME = re.compile(r"(?:^|_)(?:id|uuid|identifier)$|[a-z]I[dD]$|uuid$", re.I)
NAME = re.compile(r"name|title", re.I)


async def lost_order(rule_input: RuleInput) -> list[Pitfall]:
    asked = rule_input.asked
    if not asked or not rule_input.is_answer:
        return []
    words = list(SUPERLATIVE.finditer(AT_LEAST.sub(" ", asked.text)))
    if words and not rule_input.has(*RANKING):
        text = f"The question asks for the {words[0][0].lower()}, and the query neither sorts nor compares."
        return [Pitfall("lost_order", text, strength="ask")]
    if (count := TOP.search(asked.text)) is not None and not rule_input.has(exp.Window, exp.Fetch):
        number = NUMBER_WORDS.index(count["count"].lower()) if not count["count"].isdigit() else int(count["count"])
        limits = {node.expression.name for node in rule_input.find(exp.Limit)}
        if str(number) not in limits:
            return [Pitfall("lost_order", f"The question asks for {number}, and no LIMIT says so.", strength="ask")]
    return find_wrong_direction(rule_input, words)


def find_wrong_direction(rule_input: RuleInput, words: list[re.Match[str]]) -> list[Pitfall]:
    """Find the one order of a query that takes the first rows, if it is the other way round than all superlatives."""
    orders = [
        term
        for order in rule_input.find(exp.Order)
        if isinstance(order.parent, exp.Select) and order.parent.args.get("limit")
        for term in order.expressions[:1]
    ]
    directions = {True if word["most"] else False if word["least"] else None for word in words}
    # The rules may say that the most is a minimum, as of what remains.
    is_ruled = re.search(r"\b(?:MIN|MAX)\b", rule_input.asked.rules, re.I)
    if len(orders) != 1 or len(directions) != 1 or None in directions or is_ruled or rule_input.has(exp.Max, exp.Min):
        return []
    is_descending = bool(orders[0].args.get("desc"))
    if is_descending in directions:
        return []
    text = f"The question asks for the {words[0][0].lower()}, and {{}} takes the other end. Is that meant?"
    return [rule_input.pitfall("lost_order", orders[0], text, "ask")]


async def lost_measure(rule_input: RuleInput) -> list[Pitfall]:
    asked, text = rule_input.asked, ""
    if not asked or not rule_input.is_answer:
        return []
    names = " ".join(rule_input.used_columns)
    if re.search(r"\baverage\b", asked.text, re.I) and not rule_input.has(exp.Avg, exp.Div) and "av" not in names:
        text = "The question asks for an average, and no query computes one."
    elif re.search(r"\bpercent(?:age)?\b", asked.text, re.I) and not rule_input.has(exp.Div) and "perc" not in names:
        text = "The question asks for a percentage, and no query divides."
    elif counts_only(rule_input) and re.search(r"\blist\b.*\b(?:ids?|names?)\b", asked.text, re.I):
        text = "The question asks for a list, and the query only counts."
    return [Pitfall("lost_measure", text, strength="ask")] if text else []


def counts_only(rule_input: RuleInput) -> bool:
    outputs = rule_input.tree.expressions if isinstance(rule_input.tree, exp.Select) else []
    return bool(outputs) and all(isinstance(output.unalias(), exp.Count) for output in outputs)


async def id_for_name(rule_input: RuleInput) -> list[Pitfall]:
    asked, tree = rule_input.asked, rule_input.tree
    block = next((block for block in rule_input.blocks if block.select is tree), None)
    if not asked or block is None or KEY_WORDS.search(f"{asked.text} {asked.rules}"):
        return []
    outputs = [item.unalias() for item in block.select.expressions]
    origins = [block.source_column(output) for output in outputs]
    keys = [origin for origin in origins if origin is not None and is_key_column(origin)]
    table = keys[0].source.table if keys and len(keys) == len(outputs) else None
    names = [column.name for column in table.columns if NAME.search(column.name)] if table else []
    if table is None or not names or not asks_who(asked) or is_only_step(block):
        return []
    text = f"{{}} is a key. Is {table.name}.{names[0]} meant?"
    return [rule_input.pitfall("id_for_name", outputs[0], text, "ask")]


def is_key_column(origin: FromColumn) -> bool:
    column = find_column(origin)
    return column is not None and KEY_NAME.search(column.name) is not None


def asks_who(asked: AskedQuestion) -> bool:
    """Return whether a question asks who, which or what, and not how many."""
    return re.search(r"\b(?:who|which|what|list|name|find|show)\b", asked.text, re.I) is not None


def is_only_step(block: SelectBlock) -> bool:
    """Return whether a query looks up keys for the next one: it is no more than one table with a filter."""
    return len(block.sources) == 1 and not block.groups and not block.select.args.get("order")
