"""Conditions of the question that no query holds: numbers, quoted texts, and what the rules say of columns.

    question: Which customers consumed more than 30,000 in 2012?
    SELECT COUNT(*) FROM consumption WHERE year = 2012

has lost 30,000 (lost_number); a text in quotes is lost likewise (lost_text). Rules such as "active refers to status =
'A'" state a condition for a word of the question: a query that does not use the column, or not with that value, has
lost it (lost_condition). All queries for the question count together, and one that only looks around loses nothing.

    question: Which owners have more than one dog?
    SELECT owner_id FROM dogs GROUP BY owner_id HAVING COUNT(*) > 2

asks for more than two (lost_bound). Of whole numbers, more than one is at least two. A question or query with a
negation is not compared, nor is a bound that no comparison comes near.

    question: How does the composition of paper affect its durability?
    SELECT AVG(price) FROM flights WHERE stops = 0

answers from data that do not tell: most words of the question, three at least, are met by no name, comment, value or
definition, nor by a text that the queries found (unmet_question). Words of time, order, form and choice say nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache

from sqlglot import exp

from decisor.databases.hints import letters_only
from decisor.databases.pitfalls.outputs import NUMBER_WORDS
from decisor.databases.pitfalls.question import CALENDAR, StatedCondition, numbers_in_text
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import question_words, stemmed_words
from decisor.types import Pitfall

WORD = re.compile(r"\w+")
TEXT = re.compile(r"(?<!\w)'[^']*'(?!\w)")
BEFORE_COLUMN = re.compile(r"[(.,`]\s*$")
AFTER_COLUMN = re.compile(r"`|\s*(?:[=<>!),]|(?:is|in|like|between|contains?)\b)", re.I)
STEPS = {">": 1, "<=": 1, "<": -1, ">=": -1}
CODE = re.compile(r"[A-Za-z]{2,3}")
OF_PEOPLE = ("ish", "ch", "ese", "an", "ans", "ic")
TABLE_ALIAS = re.compile(r"[a-z]\d", re.I)
BOUND = rf"\$?\s?(\d[\d,]*(?:\.\d+)?|{'|'.join(NUMBER_WORDS[1:])})\b(?!\s*(?:%|percent))"
MORE = r"more|greater|higher|larger|older|longer|heavier|bigger"
LESS = r"less|fewer|lower|smaller|younger|shorter|lighter|cheaper"
ABOVE = rf"(?:(?<!no )(?<!not )(?:{MORE}) than|over|above|exceed(?:s|ing|ed)?|at least|(?:no|not) (?:{LESS}) than)"
BELOW = rf"(?:(?<!no )(?<!not )(?:{LESS}) than|under|below|at most|up to|(?:no|not) (?:{MORE}) than)"
BOUNDS = {
    ">": re.compile(rf"\b{ABOVE}\s+{BOUND}|{BOUND}\s+or\s+(?:{MORE}|above)\b", re.I),
    "<": re.compile(rf"\b{BELOW}\s+{BOUND}|{BOUND}\s+or\s+(?:{LESS}|below)\b", re.I),
}
NEGATION = re.compile(r"\b(?:not|no|never|without|except|excluding|neither|nor|none|other than)\b|n't\b", re.I)
IDIOM = re.compile(rf"\b(?:no|not)\s+(?:{MORE}|{LESS})\s+than\b", re.I)


INCLUSIVE = re.compile(r"(?:at|no|not|up)\b|.*\bor\b", re.I)
SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
MIRRORED = str.maketrans("<>", "><")


IS_ENGLISH = re.compile(r"\b(?:the|what|how|which|who)\b", re.I)
GENERAL = CALENDAR | frozenset(
    stemmed_words(
        """average mean high higher highest low lower lowest great greater greatest large larger largest
        small smaller smallest short shorter shortest long longer longest number total count amount sum
        maximum minimum particular specific different distinct unique every year yearly month monthly week
        weekly day daily today date quarter hour minute second time current currently recent earlier
        earliest latest first last past previous prior top percentage percent ratio proportion share name
        called older oldest younger youngest used use using value data database record before after since
        during please tell me equal exceed ever never any much overall compare compared difference
        descending ascending sorted alphabetical alphabetically id both neither except but corresponding
        associated belong related contain kind type new old good best better worst common frequently popular
        same above below than inclusive exclusive hh mm yyyy iso absolute integer decimal answer format
        whole split being got come he she his her they result output column row refer note s t don doesn won
        want now choose pick select recommend drop open close keep stop start buy sell hire invest cut raise
        change increase decrease improve maximize minimize worth prefer option candidate decision decide
        would cheapest dearest few pay paid spend spent happen happened happening people exactly true false
        euro dollar"""
    )
)
"""Words of questions that data answer without having them."""


async def unmet_question(rule_input: RuleInput) -> list[Pitfall]:
    asked, result = rule_input.asked, rule_input.result
    if not asked.is_alone or not result or not result.rows or not rule_input.is_answer:
        return []
    if not IS_ENGLISH.search(asked.text):
        return []
    # Codes and keys, with digits, are no words.
    question = re.sub(r"\S*\d\S*", " ", asked.unquoted)
    words = [word for word in question_words(question) if word not in GENERAL]
    # SQLite reads "Dutch" as a text if no column is called so.
    written = [*rule_input.literals, *(identifier.name for identifier in rule_input.find(exp.Identifier))]
    unmet = words
    for texts in ([rule_input.catalog.words], asked.known_stems, stemmed_words(" ".join(written))):
        known = f" {' '.join(texts)} "
        # Names may be written in one word, and verbs for nouns: departure, to depart.
        unmet = [word for word in unmet if (word[:5] if len(word) > 3 else f" {word} ") not in known]
    spelt = [word for word in dict.fromkeys(WORD.findall(question)) if {*stemmed_words(word)} & {*unmet}]
    if len(spelt) < 3 or len(unmet) * 3 < len(words) * 2:
        return []
    text = f"No table, column, value or definition speaks of: {', '.join(spelt)}. If the data do not tell, say so."
    return [Pitfall("unmet_question", text)]


async def lost_number(rule_input: RuleInput) -> list[Pitfall]:
    asked = rule_input.asked
    if not (asked.numbers or asked.dates) or not rule_input.is_answer:
        return []
    numbers = numbers_of_query(rule_input)
    pitfalls = []
    for day, year in asked.dates:
        # Before 2001/1/1 is up to the last day of 2000.
        if numbers.isdisjoint({year - 1, year, year + 1}):
            text = f"The question says {day}, and no query has a date of that year. Is a condition missing?"
            pitfalls.append(Pitfall("lost_number", text, strength="ask"))
    for number in asked.numbers:
        # A share may be written for a percentage, and >= 6 for more than 5. One is mostly a pronoun.
        spellings = {number, number / 100, number * 100, number * 1e3, number * 1e6, number - 1, number + 1}
        spellings |= asked.rewrite(number)
        if number != 1 and not spellings & numbers:
            text = f"The question says {number:.10g}, and no query does. Is a condition missing?"
            pitfalls.append(Pitfall("lost_number", text, strength="ask"))
    return pitfalls


def numbers_of_query(rule_input: RuleInput) -> set[float]:
    """Return the numbers in literals and names."""
    names = [identifier.name for identifier in rule_input.find(exp.Identifier)]
    return numbers_in_text(
        " ".join([*rule_input.literals, *(name for name in names if not TABLE_ALIAS.fullmatch(name))])
    )


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


def abbreviates(code: str, text: str) -> bool:
    """Return whether a code may stand for a text.

    >>> abbreviates("CA", "California"), abbreviates("CZE", "Czech Republic"), abbreviates("UK", "France")
    (True, True, False)
    """
    letters = iter(text.upper())
    return 2 <= len(code) <= 4 and code.isupper() and code[0] == text[0].upper() and all(c in letters for c in code)


def names_in_text(text: str, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield the columns that a text names, in lower case; ANA is not named where ``ANA pattern`` is, a column too."""
    for column in columns:
        if " " in column and column in text.lower():
            yield column
            text = re.sub(re.escape(column), " ", text, flags=re.I)
    for match in WORD.finditer(text):
        # An ordinary word is a column only where it is written as code is: "the name of the school" names none.
        around = text[: match.start()], text[match.end() :]
        is_code = (
            not re.fullmatch("[a-z]+", match[0]) or BEFORE_COLUMN.search(around[0]) or AFTER_COLUMN.match(around[1])
        )
        if match[0].lower() in columns and (is_code or not WORD.search("".join(around).replace("the ", ""))):
            yield match[0].lower()


async def lost_text(rule_input: RuleInput) -> list[Pitfall]:
    asked = rule_input.asked
    if not (asked.quoted or asked.proper_names) or not rule_input.is_answer:
        return []
    letters = [letters_only(literal) for literal in rule_input.literals]
    names = {letters_only(identifier.name) for identifier in rule_input.find(exp.Identifier)}
    words = {word for literal in rule_input.literals for word in stemmed_words(literal)}
    lost = []
    for quoted in asked.quoted:
        sought = letters_only(quoted)
        is_part = any(sought in text or (len(text) > 3 and text in sought) for text in letters)
        is_part = is_part or any(abbreviates(literal, quoted) for literal in rule_input.literals)
        if sought and not is_part and sought not in names and not words.issuperset(stemmed_words(quoted)):
            lost.append(f"The question says '{quoted}'")
    lost = lost or find_lost_names(rule_input)
    return [
        Pitfall("lost_text", f"{text}, and no query does. Is a condition missing?", strength="ask") for text in lost
    ]


def find_lost_names(rule_input: RuleInput) -> list[str]:
    """Return what to say of the first proper name of the question that neither schema nor rules have, nor any query."""
    asked = rule_input.asked
    # SQLite reads "Dutch" as a text if no column is called so.
    written = " ".join([*rule_input.literals, *(node.name for node in rule_input.find(exp.Identifier))])
    known, ruled = rule_input.catalog.descriptions, asked.rules.lower()
    # In other languages every noun has a capital, and a code may stand for any name: ORD for Chicago.
    if not IS_ENGLISH.search(asked.text) or any(CODE.fullmatch(literal) for literal in rule_input.literals):
        return []
    for name in asked.proper_names:
        # French players are of France.
        starts = [word[: 2 if word.endswith(OF_PEOPLE) else 4] for word in name.split()]
        is_written = re.search(rf"(?<![^\W_])(?:{'|'.join(starts)})", written, re.I) is not None
        is_known = GENERAL.issuperset(question_words(name)) or any(stem in known for stem in stemmed_words(name))
        if not is_written and not is_known and not any(word.lower() in ruled for word in name.split()):
            return [f"The question speaks of {name}"]
    return []


async def lost_condition(rule_input: RuleInput) -> list[Pitfall]:
    if not rule_input.asked.rules or not rule_input.is_answer:
        return []
    lost = [*lost_values(rule_input), *lost_columns(rule_input)][:1]
    return [Pitfall("lost_condition", f"{text} Is it missing?", strength="ask") for text in lost]


def lost_values(rule_input: RuleInput) -> Iterator[str]:
    """Yield what the rules state of a column that no query holds."""
    conditions = [each for each in rule_input.asked.conditions if each.column in rule_input.catalog.column_names]
    if not conditions:
        return
    texts = " ".join(rule_input.literals)
    letters, numbers = letters_only(texts), numbers_in_text(texts)
    tested = {node.this.name.lower() for node in rule_input.find(exp.Is)}
    # What counts or compares a column leaves NULL out: it is filled.
    for node in rule_input.find(exp.Count, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.In):
        sides = (node.this, node.args.get("expression"))
        columns = (side.this if isinstance(side, exp.Coalesce) else side for side in sides)
        tested |= {f"filled {column.name.lower()}" for column in columns if isinstance(column, exp.Column)}
    # Of "inpatient or outpatient", each a value of one column, the query shows which.
    values_of = Counter(column for column, _ in {(each.column, each.value) for each in conditions if each.sign == "="})
    shown = {item.unalias().name.lower() for block in rule_input.blocks for item in block.select.expressions}
    shown -= {value.name.lower() for value, _, _ in rule_input.comparisons}
    # What equals another value is not the one that is left out.
    equal = {node.this.name.lower() for node in rule_input.find(exp.EQ) if isinstance(node.expression, exp.Literal)}
    for condition in conditions:
        column = condition.column
        if (column in shown and values_of[column] > 1) or (column in equal and condition.sign in ("!=", "<>")):
            continue
        if column not in rule_input.used_columns:
            yield f"The rules say {condition.stated}, and no query uses {column}."
        elif not is_held(condition, texts, letters, numbers, tested):
            yield f"The rules say {condition.stated}, and no query does."


def is_held(condition: StatedCondition, texts: str, letters: str, numbers: set[float], tested: set[str]) -> bool:
    """Return whether the texts of a query, with or without other signs than letters, or its numbers hold a value."""
    if condition.value is None:
        is_filled = condition.sign not in ("is", "=") and f"filled {condition.column}" in tested
        return is_filled or condition.column in tested
    if condition.is_text:
        wanted = letters_only(condition.value)
        is_before = any(day in letters for day in days_beside(condition))
        return is_before or (wanted in letters if wanted else condition.value in texts)
    # A flag may be tested in many ways.
    number = abs(float(condition.value))
    # Of whole numbers > 5 is >= 6.
    return bool({number, number + STEPS.get(condition.sign, 0)} & numbers) or number in (0, 1)


def days_beside(condition: StatedCondition) -> Iterator[str]:
    """Yield other ways to write the bound of a stated date, digits only.

    Before a day is up to the day before, and from the first of January on is from that year on.
    """
    with suppress(ValueError):
        day = date.fromisoformat((condition.value or "")[:10])
        beside = day + timedelta(1 if condition.sign[0] == ">" else -1)
        if condition.sign in ("<", ">"):
            yield f"{beside:%Y%m%d}"
        if condition.sign[0] in "<>":
            yield from (f"{bound:%Y}" for bound in (day, beside) if (bound.month, bound.day) in ((1, 1), (12, 31)))


def lost_columns(rule_input: RuleInput) -> Iterator[str]:
    """Yield the columns that the rules name for words of the question, and no query uses."""
    columns, used = rule_input.catalog.column_names, rule_input.used_columns
    for head, body in rule_input.asked.relevant_clauses:
        named = list(names_in_text(TEXT.sub(" ", body), columns))
        # One of two columns is enough where the rules say "or".
        if re.search(r"\bor\b", body, re.I) and not used.isdisjoint(named):
            continue
        for column in named:
            is_counted = re.search(rf"\bcount\s*\([^)]*\b{re.escape(column)}\b", body, re.I) is not None
            is_counted = is_counted and rule_input.is_in_any(exp.Count)
            if not (column in used or is_counted or used & rule_input.catalog.equal_keys(column)):
                yield f"The rules name {columns[column]} for '{head}', and no query uses it."
                break
