"""Bounds of the question that the query has the other way round, or one off (lost_bound).

    question: Which owners have more than one dog?
    SELECT owner_id FROM dogs GROUP BY owner_id HAVING COUNT(*) > 2

asks for more than two. Of whole numbers, more than one is at least two. A question or query with a negation is not
compared, nor is a bound that no comparison comes near: that is for lost_number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from decisor.databases.pitfalls.outputs import NUMBER_WORDS
from decisor.databases.pitfalls.rule import RuleInput
from decisor.types import Pitfall

NUMBER = rf"\$?\s?(\d[\d,]*(?:\.\d+)?|{'|'.join(NUMBER_WORDS[1:])})\b(?!\s*(?:%|percent))"
MORE = r"more|greater|higher|larger|older|longer|heavier|bigger"
LESS = r"less|fewer|lower|smaller|younger|shorter|lighter|cheaper"
ABOVE = rf"(?:(?<!no )(?<!not )(?:{MORE}) than|over|above|exceed(?:s|ing|ed)?|at least|(?:no|not) (?:{LESS}) than)"
BELOW = rf"(?:(?<!no )(?<!not )(?:{LESS}) than|under|below|at most|up to|(?:no|not) (?:{MORE}) than)"
BOUNDS = {
    ">": re.compile(rf"\b{ABOVE}\s+{NUMBER}|{NUMBER}\s+or\s+(?:{MORE}|above)\b", re.I),
    "<": re.compile(rf"\b{BELOW}\s+{NUMBER}|{NUMBER}\s+or\s+(?:{LESS}|below)\b", re.I),
}
NEGATION = re.compile(r"\b(?:not|no|never|without|except|excluding|neither|nor|none|other than)\b|n't\b", re.I)
IDIOM = re.compile(rf"\b(?:no|not)\s+(?:{MORE}|{LESS})\s+than\b", re.I)


INCLUSIVE = re.compile(r"(?:at|no|not|up)\b|.*\bor\b", re.I)
SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
MIRRORED = str.maketrans("<>", "><")


async def lost_bound(rule_input: RuleInput) -> list[Pitfall]:
    asked, pitfalls = read_bounds(rule_input.asked.text), []
    if not asked or not rule_input.is_answer or rule_input.has(exp.Not, exp.NEQ, exp.Except):
        return []
    found = set(list_bounds(rule_input))
    for text, sign, number in asked:
        step = 1 if sign == ">" else -1
        # Of whole numbers > 1 is >= 2. Whether the bound itself counts is let pass, for people are not exact there.
        same = (sign, number - step) if INCLUSIVE.match(text) else (f"{sign}=", number + step)
        near = {bound for bound in found if abs(bound[1] - number) <= 1}
        if near and near.isdisjoint({(sign, number), (f"{sign}=", number), same}):
            written = ", ".join(f"{sign} {bound:.10g}" for sign, bound in sorted(near))
            explanation = f"The question says '{text}', and the query {written}. Is that meant?"
            pitfalls.append(Pitfall("lost_bound", explanation, strength="ask"))
    return pitfalls


@lru_cache(maxsize=1_024)
def read_bounds(question: str) -> tuple[tuple[str, str, float], ...]:
    """Return the bounds of a question: the words, the sign and the number. None if it has a negation."""
    if NEGATION.search(IDIOM.sub(" ", question)):
        return ()
    matches = [(sign, match) for sign, pattern in BOUNDS.items() for match in pattern.finditer(question)]
    digits = [(match[1] or match[2]).lower() for _, match in matches]
    numbers = [float(NUMBER_WORDS.index(text) if text in NUMBER_WORDS else text.replace(",", "")) for text in digits]
    return tuple((match[0], sign, number) for (sign, match), number in zip(matches, numbers, strict=True))


def list_bounds(rule_input: RuleInput) -> Iterator[tuple[str, float]]:
    """Yield the sign and number of each comparison with a number."""
    for between in rule_input.find(exp.Between):
        for sign, side in ((">=", between.args["low"]), ("<=", between.args["high"])):
            if isinstance(side, exp.Literal) and side.is_number:
                yield sign, float(side.name)
    for node in rule_input.find(*SIGNS):
        for side, sign in ((node.expression, SIGNS[type(node)]), (node.this, SIGNS[type(node)].translate(MIRRORED))):
            if isinstance(side, exp.Literal) and side.is_number:
                yield sign, float(side.name)
