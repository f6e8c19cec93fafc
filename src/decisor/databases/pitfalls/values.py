"""Texts of a query that the question does not speak of, or spells in another way.

    question: How many members major in Business?
    SELECT COUNT(*) FROM members WHERE major = 'Mathematics'

Neither the question nor its rules have a word of the text (unfounded_value). Abbreviations, codes and yes or no stand
for other words and are let pass.

    question: ... of the card "Molimo, Maro-Sorcerer"
    ... WHERE name = 'Molimo , Maro-Sorcerer'

The question has the same letters with other signs or blanks between them (misspelt_value). Two columns of one row that
a query compares for equality are a value that nobody speaks of as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from decisor.databases.hints import letters_only
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import stemmed_words
from decisor.types import Pitfall

FLAGS = frozenset({"yes", "no", "true", "false", "none", "null", "unknown", "other"})
NUMBER_WORD = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twent\w+|\w+ty|hundred|thousand|million|"
    r"dozen|half|quarter|decade|century|second|minute|hour|day|week|month|year|today|recent|last|past|current)s?\b",
    re.I,
)
"""Words that a query may write as a number that the question has not."""
NUMBER_OR_DAY = re.compile(r"(?P<year>\d{4})[-/]?\d\d(?:[-/]?\d\d)?(?:[ T][\d:.]+)?|\d+(?:\.\d+)?")
PEOPLE = re.compile(r"(?<=\w )[A-Z][a-z]+(?:ish|ch|sh|ese|an|ans|i|ic)\b")
CODE = re.compile(r"\b[A-Z]{2,4}\b")
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
    codes = set(CODE.findall(asked.text)) - {"ID", "IDS", "SQL"}
    for column, literal, node in rule_input.comparisons if asked else ():
        if not isinstance(column, exp.Column):
            continue
        value = literal.name.strip("%")
        letters = letters_only(value)
        # A code stands for a word, unless the question has codes and the query none of them.
        is_code = value.isupper() and len(value) <= 4 and not (codes and codes.isdisjoint(rule_input.literals))
        is_code = is_code or value.lower() in FLAGS
        is_date = letters.isdigit() or re.search(r"\d{4}", value)
        if len(letters) < 3 or is_code or is_date or letters in asked.letters:
            continue
        words = set(stemmed_words(value))
        unknown = words - asked.all_stems
        # French players are of France, Spanish ones of Spain.
        if len(words) == 1 and any(name[:2] == value[:2].title() for name in PEOPLE.findall(asked.text)):
            continue
        is_part = isinstance(node, exp.Like | exp.ILike) and unknown != words
        if unknown and not is_part:
            text = "{}: neither the question nor its rules speak of this value. Is it meant?"
            pitfalls.append(rule_input.pitfall("unfounded_value", node, text, "ask"))
    pitfalls += find_equal_columns(rule_input) if asked else []
    # Where all is said in words ("cheap", "the last half year"), the query has to choose the numbers.
    if asked.all_numbers and not pitfalls and not NUMBER_WORD.search(f"{asked.text} {asked.rules} {asked.vocabulary}"):
        pitfalls += find_unfounded_numbers(rule_input)
    return pitfalls


def find_equal_columns(rule_input: RuleInput) -> Iterator[Pitfall]:
    """Yield the conditions that two columns of one row are equal."""
    for block in rule_input.blocks:
        for home, condition in block.conditions:
            if isinstance(condition, exp.EQ):
                first, second = home.source_column(condition.this), home.source_column(condition.expression)
                is_one_row = first and second and first.source is second.source and first.source.table is not None
                if is_one_row and first != second:
                    text = "{}: neither the question nor its rules compare these two columns of one row. Is it meant?"
                    yield rule_input.pitfall("unfounded_value", condition, text, "ask")


def find_unfounded_numbers(rule_input: RuleInput) -> Iterator[Pitfall]:
    """Yield the comparisons with a number, or with a day of a year, that the question does not speak of."""
    known = rule_input.asked.all_numbers
    for node in rule_input.find(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between):
        for literal in (node.args.get("low") or node.expression, node.args.get("high") or node.this):
            if not isinstance(literal, exp.Literal) or not (digits := NUMBER_OR_DAY.fullmatch(literal.name)):
                continue
            number = float(digits["year"] or literal.name)
            near = {
                number - 1,
                number,
                number + 1,
                *(() if digits["year"] else (number * 100, number / 1e3, number / 1e6)),
            }
            # Small numbers are flags and months, and more than one is two.
            if bool(digits["year"]) == literal.is_string and abs(number) > 2 and not near & known:
                text = "{}: neither the question nor its rules speak of this number. Is it meant?"
                yield rule_input.pitfall("unfounded_value", node, text, "ask")
