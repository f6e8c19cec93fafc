"""The question that a query answers, read for what the query should hold: words, numbers, values and conditions.

A reading is by patterns alone, so a rule on it asks where it is not sure. Words are compared by their stems. Numbers
are numbers of the question that a filter or a limit would hold: no part of a name, no count of days or months, which a
query may write in other units. Conditions are what the rules state of columns (``active means status = 'A'``), if the
question speaks of what they define.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import Expr

from decisor.databases.hints import letters_only
from decisor.databases.schema_search import question_words, stemmed_words
from decisor.types import Pitfall


def numbers_in_text(text: str) -> set[float]:
    """Return the numbers in a text, with the year and month of texts such as 201208.

    >>> sorted(numbers_in_text("more than 30,000 in 201208, 1.5 each"))
    [1.5, 8.0, 2012.0, 30000.0, 201208.0]
    """
    numbers: set[float] = set()
    for digits in DIGITS.findall(re.sub(r"(?<=\d),(?=\d{3})", "", text)):
        numbers.add(float(digits))
        if len(digits) in (6, 8) and digits.isdigit():
            numbers |= {float(digits[:4]), float(digits[4:6])}
    return numbers


DIGITS = re.compile(r"\d+(?:\.\d+)?")
NUMBER = re.compile(r"(?<![\w.,/:'\"-])[-+]?\$?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\w/:-]|[.,]\d)")
PERIOD_UNIT = re.compile(
    r"\s*-?\s*(?:calendar )?(?:seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|th|st|nd|rd)\b", re.I
)
DATE = re.compile(r"\b(\d{1,4})[/.-](\d{1,2})[/.-](\d{1,4})\b")
QUOTED = re.compile(r"(?<!\w)(?:\"([^\"]{2,80})\"|'([^'\"]{2,80})'(?!\w)|“([^”]{2,80})”)")
PROPER_NAME = re.compile(r"(?<=[a-z,0-9] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*\b(?! ?\d)")
VALUE = re.compile(r"(?<!\w)'(?:[^']|'(?=\w)|'')+'(?!\w)|\"[^\"]+\"|\b\d{4,8}\b")
COLUMN = r"(?P<column>`[^`]+`|\"[^\"]+\"|[A-Za-z_]\w*)"
LITERAL = r"'(?:[^']|'')*'(?!\w)|\"[^\"]*\"|[-+]?\d+(?:\.\d+)?\b|null\b"
CONDITION = re.compile(
    rf"{COLUMN}\s*(?P<sign>> ?=|< ?=|! ?=|<>|>|<|=|\bis\s+not\b|\bis\b|\blike\b)\s*(?P<value>{LITERAL})", re.I
)
RANGE = re.compile(rf"{COLUMN}\s+(?P<sign>between)\s+(?P<value>{LITERAL})\s+and\s+(?P<end>{LITERAL})", re.I)
CLAUSE_END = re.compile(r";|\n|(?<=[a-z'\")])\.\s")
DEFINES = re.compile(
    r"\b(?:refers? to|means?|stands? for|is defined as|are defined as|can be (?:re)?presented (?:as|by)|=)", re.I
)


CALENDAR = frozenset(
    stemmed_words(
        """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
        september october november december"""
    )
)
"""Days and months, from which others are counted."""
MAX_STATEMENTS = 100


class StatedCondition(NamedTuple):
    """A condition on a column that the rules state for words of the question."""

    column: str
    """In lower case."""
    sign: str
    value: str | None
    """Without quotes; None for NULL."""
    is_text: bool
    stated: str
    """As the rules write it."""


@dataclass(frozen=True)
class AskedQuestion:
    """The question that a query helps to answer, and the rules it is decided by. Both empty if they are not known."""

    text: str = ""
    rules: str = ""
    vocabulary: str = ""
    """Other words that its queries may use: definitions, and the questions that it goes on from."""
    is_alone: bool = False
    """Whether the database is all the data that there is for it."""

    def __bool__(self) -> bool:
        return bool(self.text.strip())

    @cached_property
    def stems(self) -> frozenset[str]:
        """Of the question alone."""
        return frozenset(stemmed_words(self.text))

    @cached_property
    def known_stems(self) -> frozenset[str]:
        """Of the rules and the vocabulary."""
        return frozenset(stemmed_words(f"{self.rules} {self.vocabulary}"))

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """Of all three."""
        return self.stems | self.known_stems

    @cached_property
    def letters(self) -> str:
        """All three, letters and digits only."""
        return letters_only(f"{self.text} {self.rules} {self.vocabulary}")

    @cached_property
    def values(self) -> frozenset[str]:
        """Quoted texts and long numbers of all three, letters and digits only."""
        return frozenset(
            letters_only(match[0]) for match in VALUE.finditer(f"{self.text} {self.rules} {self.vocabulary}")
        )

    @cached_property
    def spelling(self) -> str:
        """All three in lower case, with one blank between words."""
        return " ".join(f"{self.text} {self.rules} {self.vocabulary}".split()).lower()

    @cached_property
    def unquoted(self) -> str:
        """The question without the texts that it puts into quotes."""
        return QUOTED.sub(" ", self.text)

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """Numbers of the question that a query should hold."""
        return tuple(
            float(match[1].replace(",", ""))
            for match in NUMBER.finditer(self.unquoted)
            if not PERIOD_UNIT.match(self.unquoted, match.end())
        )

    @cached_property
    def dates(self) -> tuple[tuple[str, float], ...]:
        """Dates of the question, each with its year."""
        years = ((match[0], float(max(match[1], match[3], key=len))) for match in DATE.finditer(self.unquoted))
        return tuple((day, year) for day, year in years if 999 < year < 2_200)

    @cached_property
    def proper_names(self) -> tuple[str, ...]:
        """Proper names of the question, outside quotes and within its sentences."""
        return tuple(PROPER_NAME.findall(self.unquoted))

    def rewrite(self, number: float) -> set[float]:
        """Return the numbers that the question's rules put for one: "of 2012 refers to Between 201201 and 201212"."""
        clauses = [(numbers_in_text(head), numbers_in_text(body)) for head, body in self.relevant_clauses]
        return {rewritten for head, body in clauses if number in head for rewritten in body}

    @cached_property
    def quoted(self) -> tuple[str, ...]:
        """Texts that the question puts into quotes."""
        return tuple("".join(match.groups(default="")) for match in QUOTED.finditer(self.text))

    @cached_property
    def relevant_clauses(self) -> tuple[tuple[str, str], ...]:
        """The definitions of the rules whose words the question uses: what is defined, and as what."""
        found = []
        for clause in CLAUSE_END.split(self.rules):
            define = DEFINES.search(clause)
            head, body = (clause[: define.start()], clause[define.end() :]) if define else ("", clause)
            words = question_words(head)
            known = sum(word in self.stems for word in words)
            is_word_for_word = len(head) > 5 and head.strip(" '\"").lower() in self.text.lower()
            if define and (is_word_for_word or (words and known == len(words))):
                found.append((head.strip(), body.strip() if define[0] != "=" else clause.strip()))
        return tuple(found)

    @cached_property
    def conditions(self) -> tuple[StatedCondition, ...]:
        """The conditions, on columns or on other words, that the rules state for the question."""
        found = []
        for head, body in self.relevant_clauses:
            if re.search(
                r"\b(?:divide|subtract|percentage|ratio|proportion|average|difference)\b|/", f"{head} {body}", re.I
            ):
                continue
            # Of "a > 8 and sex = 'M' or a > 6 and sex = 'F'" the question decides which part holds.
            if any(len(CONDITION.findall(part)) > 1 for part in re.split(r"\bor\b", body, flags=re.I)[1:]):
                continue
            for match in (*CONDITION.finditer(body), *RANGE.finditer(body)):
                column, sign = (
                    match["column"].strip('`"').lower(),
                    " ".join(match["sign"].lower().replace(" =", "=").split()),
                )
                for value in (match["value"], match.groupdict().get("end")):
                    if value is not None:
                        text = None if value.lower() == "null" else value.strip("'\"").replace("''", "'")
                        found.append(StatedCondition(column, sign, text, value[0] in "'\"", match[0].strip()))
        return tuple(found)

    def defines(self, word: str, computed: str) -> bool:
        """Return whether the rules define words of the question that have this one, and not by such a computation."""
        return any(
            word.lower() in head.lower() and not re.search(computed, body, re.I) for head, body in self.relevant_clauses
        )

    def names_table(self, names: Iterable[str]) -> bool:
        """Return whether the question or its rules name one of these tables."""
        return any(self.all_stems.issuperset(question_words(name)) for name in names)


NO_QUESTION = AskedQuestion()


@dataclass(eq=False)
class QuestionLog:
    """The queries for one question so far, and the sentences that asked about them."""

    asked: AskedQuestion = NO_QUESTION
    statements: list[Expr] = field(default_factory=list)
    under_way: list[str] = field(default_factory=list)
    """Texts of queries that run side by side: what one of them lacks, another may have."""
    told: set[str] = field(default_factory=set)

    @contextmanager
    def beside(self, text: str) -> Iterator[None]:
        """Count a query among those under way until the block ends."""
        self.under_way.append(text)
        try:
            yield
        finally:
            self.under_way.remove(text)

    def note(self, statement: Expr, pitfalls: Iterable[Pitfall]) -> list[Pitfall]:
        """Keep a statement, and return its pitfalls without what was asked before."""
        new = [pitfall for pitfall in pitfalls if pitfall.strength == "wrong" or pitfall.text not in self.told]
        self.told |= {pitfall.text for pitfall in new}
        if len(self.statements) < MAX_STATEMENTS:
            self.statements.append(statement)
        return new
