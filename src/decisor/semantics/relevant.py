"""The definitions that a question is about, as lines of a prompt and as records.

A question is about a definition if it shares words with its names. A definition is one line for an LLM and for a
person. ``DefinitionsTool`` returns definitions as records of a run, so that a decision cites the one that it used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from decisor.semantics.definitions import (
    ApprovedExample,
    Calendar,
    Definition,
    Definitions,
    Dimension,
    Entity,
    Join,
    Metric,
    NamedSection,
    Reading,
    ValueWords,
    section_title,
)
from decisor.system.text import clean_text, fit_on_one_line
from decisor.types import Observation, Record

WORD = re.compile(r"[^\W_]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
PERIODS = frozenset({"year", "yearly", "annual", "quarter", "quarterly", "fiscal", "month", "ytd"})
DULL_WORDS = """
a an and are as at be by do does for from had has have how if in into is it its many most much no not of on or our
should the their them they this to was we were what when where which who why will with would you
"""
DULL = frozenset(DULL_WORDS.split())
MOST, MOST_JOINS = 10, 6
WHOLE = 3.0
SIMILAR = 0.45


def significant_words(text: str) -> tuple[str, ...]:
    """Return the significant words of a text, in lower case and in the singular.

    >>> significant_words("Which OrderDates of net_sales?")
    ('order', 'date', 'net', 'sale')
    """
    return tuple(strip_plural_ending(word) for word in WORD.findall(CAMEL.sub(" ", text).lower()) if word not in DULL)


def strip_plural_ending(word: str) -> str:
    """Remove the ending of a plural from a word."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def find_relevant_definitions(question: str, definitions: Definitions, most: int = MOST) -> list[Definition]:
    """Return the definitions that a question is about, the best first.

    Metrics of relevant readings follow; joins of the tables come last.
    """
    asked = significant_words(question)
    scores = [(score_definition(entry, asked), entry) for entry in definitions if not isinstance(entry, Join)]
    best = [entry for score, entry in sorted(scores, key=lambda pair: -pair[0])[:most] if score >= 1]
    for reading in [entry for entry in best if isinstance(entry, Reading) and entry.metric]:
        best += [metric for metric in definitions.metrics if metric.name == reading.metric and metric not in best]
    read = " ".join(map(sql_text_of_definition, best)).lower()

    def is_read(place: str) -> bool:
        table = place.rpartition(".")[0].strip('"`').lower()
        return re.search(rf"(?<!\w){re.escape(table)}(?!\w)", read) is not None

    # Joins only between tables that these definitions read.
    joins = [join for join in definitions.of(Join) if is_read(join.left[0]) and is_read(join.right[0])]
    return [*best, *joins[:MOST_JOINS]]


def score_definition(definition: Definition, asked: Sequence[str]) -> float:
    """Return the fit of a definition to the significant words of a question.

    It is 3 or more if the question has one of its names, less if it has a part of a name.
    """
    words = set(asked)
    match definition:
        case ApprovedExample():
            similar = set(significant_words(definition.question))
            # Jaccard similarity of the words.
            share = len(similar & words) / len(similar | words) if similar else 0.0
            return WHOLE * share if share >= SIMILAR else 0.0
        case ValueWords():
            names = (name for stored, others in definition.words.items() for name in (stored, *others))
            return WHOLE if any(share_of_name_words(name, asked) == 1 for name in names) else 0.0
        case Reading():
            return WHOLE + 1 if any(share_of_name_words(name, asked) == 1 for name in definition.words) else 0.0
        case Calendar():
            if words & PERIODS and definition.default:
                return WHOLE
    # Of two names in the question the longer one fits better: "net revenue" before "revenue".
    score = max(
        WHOLE + len(significant_words(name)) / 10 if (share := share_of_name_words(name, asked)) == 1 else share * 1.5
        for name in definition.names
    )
    if isinstance(definition, Metric | Entity):
        score += 0.3 * len(words & set(significant_words(definition.about)))
    return score


def share_of_name_words(name: str, text: Sequence[str]) -> float:
    """Return the share of a name's words that the question has."""
    own = significant_words(name)
    return sum(word in text for word in own) / len(own) if own else 0.0


def sql_text_of_definition(definition: Definition) -> str:
    match definition:
        case Metric():
            return f"{definition.sql} {definition.source} {definition.query}"
        case Entity():
            return definition.table
        case Dimension():
            return f"{definition.sql} {definition.source}"
        case ApprovedExample():
            return definition.sql
        case _:
            return ""


MONTHS = "January February March April May June July August September October November December"
MOST_CHARS = 900


def format_definition(one: Definition) -> str:
    """Format a definition as one line.

    >>> format_definition(Calendar("fiscal", "07-01", default=True))
    'calendar.fiscal: a year starts on 1 July and has the number of the year in which it ends; this is meant by "year"'
    """
    synonyms = f" ({', '.join(one.names[1:])})" if one.names[1:] else ""
    return fit_on_one_line(f"{section_title(one)}{synonyms}: {'; '.join(describe_definition(one))}", MOST_CHARS)


def describe_definition(one: Definition) -> Iterator[str]:
    """Yield the parts of a definition's description."""
    if isinstance(one, NamedSection) and one.about:
        yield clean_text(one.about).strip().rstrip(".")
    match one:
        case Metric():
            yield (
                f"the query {collapse_whitespace(one.query)}"
                if one.query
                else f"{collapse_whitespace(one.sql)} over {collapse_whitespace(one.source)}"
            )
            if one.where:
                yield f"only rows where {' and '.join(map(collapse_whitespace, one.where))}"
            if one.grain:
                yield f"a row of these is one {', '.join(one.grain)}"
            if one.date:
                yield f"a period is about {one.date}"
            if one.unit:
                yield f"in {one.unit}"
        case Dimension():
            yield collapse_whitespace(one.sql) + (f" over {collapse_whitespace(one.source)}" if one.source else "")
        case Calendar():
            month, day = one.starts.split("-")
            yield (
                f"a year starts on {int(day)} {MONTHS.split()[int(month) - 1]} and has the number of the year in which "
                f"it {one.named_by}s"
            )
            if one.default:
                yield 'this is meant by "year"'
        case Entity():
            yield f"a row of {one.table}, told apart by {', '.join(one.key)}"
        case Join():
            yield f"{' and '.join(f'{a} = {b}' for a, b in zip(one.left, one.right, strict=True))}, {one.cardinality}"
        case ValueWords():
            yield from (f"{stored!r} is also called {', '.join(words)}" for stored, words in one.words.items())
        case Reading():
            yield f"{' or '.join(repr(text) for text in one.words)} means {one.means}"
            if one.metric:
                yield f"measured by metric.{one.metric}"
        case ApprovedExample():
            yield (
                f"{collapse_whitespace(one.question)!r} is answered by "
                f"{collapse_whitespace(one.sql) if one.sql else repr(collapse_whitespace(one.answer))}"
            )
            if one.why:
                yield collapse_whitespace(one.why)
        case _:
            assert_never(one)


def collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


NAME = "definitions"


@dataclass(frozen=True)
class DefinitionsTool:
    """A tool that returns definitions as records of a run.

    The run calls it by itself; the input names definitions, a line each. Satisfies ``types.Tool``.
    """

    definitions: Sequence[Definition]
    files: Sequence[Definitions]
    """All definitions, to tell the file of each."""
    name: str = NAME

    def format_input(self) -> str:
        """Return the input that asks for all definitions."""
        return "\n".join(section_title(one) for one in self.definitions)

    def describe(self) -> str:
        return "What words mean in these data. The input is the names of definitions, a line each."

    async def call(self, text: str) -> Observation:
        wanted = text.splitlines()
        return Observation(
            tuple(
                Record(
                    f"r{number}",
                    {
                        "definition": section_title(one),
                        "says": format_definition(one).partition(": ")[2],
                        "by": one.by,
                        "on": one.on,
                        "file": self.file(one),
                    },
                    source=self.name,
                )
                for number, one in enumerate((one for one in self.definitions if section_title(one) in wanted), 1)
            )
        )

    def file(self, one: Definition) -> str:
        return next((file.path for file in self.files if one in list(file)), "")

    async def close(self) -> None:
        """Do nothing: the tool holds nothing open."""
