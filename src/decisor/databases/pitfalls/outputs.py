"""Outputs other than those asked for: no order for a superlative, no average.

    question: Which three suppliers are the cheapest?
    SELECT name FROM suppliers

has no order and no limit; ORDER BY price DESC would be the wrong way round (lost_order). A question for an average or a
percentage wants AVG or a division (lost_measure).
"""

from __future__ import annotations

import re

from sqlglot import exp

from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

AT_LEAST = re.compile(r"\bat (?:most|least)\b|\bmost recent\b|\b(?:maxi|mini)mum\b", re.I)
MOST = r"highest|most|largest|biggest|greatest|longest|tallest|heaviest"
LEAST = r"lowest|least|smallest|fewest|shortest|cheapest"
NEWEST, OLDEST = r"latest|newest|youngest", r"earliest|oldest"
EITHER = rf"{NEWEST}|{OLDEST}|best|worst|peak"
SUPERLATIVE = re.compile(
    rf"\b(?:(?P<most>{MOST})|(?P<least>{LEAST})|(?P<newest>{NEWEST})|(?P<oldest>{OLDEST})|{EITHER})\b", re.I
)
DAY_NAME = re.compile(r"date|birth|year|dob|created|release|_at$", re.I)
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
COUNTED = rf"(?P<count>{'|'.join(NUMBER_WORDS[2:])}|\d\d?)"
TOP = re.compile(
    rf"\b(?:top|first|{MOST}|{LEAST}|{EITHER})\s+{COUNTED}\b(?!\s+(?:second|minute|hour|day|week|month|quarter|year))",
    re.I,
)
OPERATION = re.compile(r"\b(avg|divide|subtract)\s*\(", re.I)
OF_TIME = re.compile(r"year|month|date|time|birth|age\b", re.I)
STORED_MEASURE = re.compile(r"perc|pct|\bratio|ratio\b|rate\b|share\b|av(?:g|er)")
"""In the name of a column that holds what would else be computed."""
STORED_EXTREME = re.compile(r"(?:\b|_)(?:high|lowest|low_|max|min_|best|peak)")
NODES_OF_OPERATION: dict[str, tuple[type[exp.Expr], ...]] = {
    "AVG": (exp.Avg, exp.Div),
    "DIVIDE": (exp.Div, exp.Avg),
    "SUBTRACT": (exp.Sub,),
}
RANKING = (exp.Order, exp.Max, exp.Min, exp.Window, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.All, exp.ArgMax, exp.ArgMin)


async def lost_order(rule_input: RuleInput) -> list[Pitfall]:
    asked = rule_input.asked
    if not asked or not rule_input.is_answer:
        return []
    wish = AT_LEAST.sub(" ", asked.text)
    names = " ".join(rule_input.used_columns)
    words = [] if STORED_EXTREME.search(names) else list(SUPERLATIVE.finditer(wish))
    if words and not rule_input.is_in_any(*RANKING):
        text = f"The question asks for the {words[0][0].lower()}, and the query neither sorts nor compares."
        return [Pitfall("lost_order", text, strength="ask")]
    if (count := TOP.search(wish)) is not None and not rule_input.is_in_any(exp.Window, exp.Fetch):
        number = NUMBER_WORDS.index(count["count"].lower()) if not count["count"].isdigit() else int(count["count"])
        trees = (rule_input.tree, *rule_input.earlier)
        limits = {node.expression.name for tree in trees for node in tree.find_all(exp.Limit)}
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
    # The newest has the largest date, and the smallest age.
    is_day = bool(orders) and DAY_NAME.search(orders[0].this.name) is not None
    directions = {
        bool(word["most"] or word["newest"]) if word["most"] or word["least"] or (is_day and word.lastgroup) else None
        for word in words
    }
    # The rules may say that the most is a minimum, as of what remains.
    # The highest rank is the first.
    is_rank = bool(orders) and re.search(r"rank|position|place|level|grade", orders[0].this.name, re.I)
    is_ruled = is_rank or re.search(r"\b(?:MIN|MAX)\b", rule_input.asked.rules, re.I)
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
    if STORED_MEASURE.search(names):
        return []
    if re.search(r"\baverage\b", asked.text, re.I) and not rule_input.is_in_any(exp.Avg, exp.Div):
        text = "The question asks for an average, and no query computes one."
    elif re.search(r"\bpercent(?:age)?\b", asked.text, re.I) and not rule_input.is_in_any(exp.Div):
        text = "The question asks for a percentage, and no query divides."
    for head, body in asked.relevant_clauses if not text else ():
        for operation in OPERATION.findall(body):
            # An age may be compared by its date of birth.
            is_of_time = operation.upper() == "SUBTRACT" and OF_TIME.search(body)
            if not is_of_time and not rule_input.is_in_any(*NODES_OF_OPERATION[operation.upper()]):
                text = f"The rules say {operation}(...) for '{head}', and no query computes it."
    return [Pitfall("lost_measure", text, strength="ask")] if text else []
