"""Texts of a query that the question does not speak of, or spells in another way.

    question: How many members major in Business?
    SELECT COUNT(*) FROM members WHERE major = 'Mathematics'

Neither the question nor its rules have a word of the text (unfounded_value). Short texts and yes or no stand for other
words and are let pass.

    question: ... of the card "Molimo, Maro-Sorcerer"
    ... WHERE name = 'Molimo , Maro-Sorcerer'

The question has the same letters with other signs or blanks between them (misspelt_value).
"""

from __future__ import annotations

import calendar
import re

from sqlglot import exp

from decisor.databases.hints import letters_only
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import stemmed_words
from decisor.types import Pitfall

FLAGS = frozenset({"yes", "no", "true", "false", "none", "null", "unknown", "other"})
CALENDAR = frozenset(
    stemmed_words(" ".join(name.lower() for name in (*calendar.day_name, *calendar.month_name, *calendar.day_abbr)))
)
PEOPLE = re.compile(r"(?<=\w )[A-Z][a-z]+(?:ish|ch|sh|ese|an|ans|i|ic)\b")
MISSPELT = re.compile(r"\s[,.;:!?]|[^\x00-\x7f]")


async def misspelt_value(rule_input: RuleInput) -> list[Pitfall]:
    asked, pitfalls = rule_input.asked, []
    for _, literal, node in rule_input.comparisons if asked else ():
        value = literal.name.strip("%").lower()
        is_same = len(letters_only(value)) >= 3 and letters_only(value) in asked.letters
        is_pattern = isinstance(node, exp.Like | exp.ILike) and re.search("[%_]", value)
        is_spelt = is_pattern or " ".join(value.split()) in asked.spelling
        if is_same and not is_spelt and (MISSPELT.search(value) or letters_only(value) in asked.values):
            text = "{} is spelt in another way than in the question. Copy the text as the question has it."
            pitfalls.append(rule_input.pitfall("misspelt_value", node, text))
    return pitfalls


async def unfounded_value(rule_input: RuleInput) -> list[Pitfall]:
    asked, pitfalls = rule_input.asked, []
    for column, literal, node in rule_input.comparisons if asked else ():
        if not isinstance(column, exp.Column):
            continue
        value = literal.name.strip("%")
        letters = letters_only(value)
        # A code stands for a word.
        is_code = len(letters) <= 4 or value.lower() in FLAGS
        is_date = letters.isdigit() or re.search(r"\d{4}", value)
        if is_code or is_date or letters in asked.letters:
            continue
        words = set(stemmed_words(value))
        unknown = words - asked.all_stems
        # French players are of France, and days and months are counted from those that are named.
        people = {name[:2].lower() for name in PEOPLE.findall(asked.text)}
        unknown = {word for word in unknown if word[:2] not in people} if len(unknown) == 1 else unknown
        if unknown <= CALENDAR:
            continue
        is_part = isinstance(node, exp.Like | exp.ILike) and unknown != words
        if unknown and not is_part:
            text = "{}: neither the question nor its rules speak of this value. Is it meant?"
            pitfalls.append(rule_input.pitfall("unfounded_value", node, text, "ask"))
    return pitfalls
