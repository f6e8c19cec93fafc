"""The words of a question that are open, and the readings that each may have."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from decisor.semantics.definitions import Column, Relation
from decisor.semantics.relevant import strip_plural_ending

Readings = Literal["auto", "always", "off"]


"""When an LM is asked whether a question has two readings: where the rules suspect it, always, never."""


@dataclass(frozen=True)
class OpenReading:
    """Words of a question with two possible meanings. words: as they stand in the question. choices: the meanings; the
    first is taken if nobody decides. keys: columns and words that a definition mentions if it settles the meaning.
    """

    words: str
    choices: Sequence[str]
    keys: Sequence[str] = ()
    asks: bool = False
    """Whether ``words`` are a question of their own, with a choice, about no word of the question."""

    def line(self) -> str:
        """Format the question to a person.

        >>> OpenReading("revenue", ("gross", "net")).line()
        'What is meant by "revenue"? 1 gross, 2 net'
        """
        choices = ", ".join(f"{number} {text}" for number, text in enumerate(self.choices, 1))
        return f"{self.words}: {choices}" if self.asks else f'What is meant by "{self.words}"? {choices}'

    def choice(self, answer: str) -> str:
        """Return the choice that an answer means: by number, by text, or the answer itself. '' if the answer is empty.

        >>> [OpenReading("revenue", ("gross", "net")).choice(text) for text in ("2", "Net.", "by invoice", " ")]
        ['net', 'net', 'by invoice', '']
        """
        answer = " ".join(answer.split()).rstrip(".")
        if answer.isdigit() and 1 <= int(answer) <= len(self.choices):
            return self.choices[int(answer) - 1]
        return next((text for text in self.choices if text.casefold() == answer.casefold()), answer)


Interpreter: TypeAlias = Callable[[OpenReading], Awaitable[str]]


"""Somebody who is asked what is meant: the number of a choice, its text or words of their own; '' where they do not
know."""


CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


WORD = re.compile(r"[^\W_]+")


def split_name_words(name: str) -> tuple[str, ...]:
    """Split a name into its words, in lower case.

    >>> split_name_words("OrderDate"), split_name_words("monthly_net")
    (('order', 'date'), ('monthly', 'net'))
    """
    return tuple(word.lower() for word in WORD.findall(CAMEL.sub(" ", name)))


@dataclass(frozen=True)
class QuestionSubject:
    """A question and the tables that it is asked of. text: the question in lower case."""

    text: str
    tables: Sequence[Relation]
    decides: bool = True

    @property
    def tokens(self) -> tuple[str, ...]:
        """Words of the question, with their endings."""
        return tuple(WORD.findall(self.text.replace("_", " ")))

    def has(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.text)

    def named(self) -> list[Relation]:
        """Return the tables that the question names, without views."""
        stems = {strip_plural_ending(word) for word in self.tokens}
        return [
            table
            for table in self.tables
            if not table.view and stems & {strip_plural_ending(word) for word in split_name_words(table.name)}
        ]

    def parents(self, table: Relation) -> list[Relation]:
        """Return the tables that a row of this table belongs to."""
        names = {
            place.rpartition(".")[0].rpartition(".")[2].lower()
            for column in table.columns
            if (place := column.references or column.joins)
        }
        return [other for other in self.tables if other.name.lower() in names]

    def says(self, column: Column) -> bool:
        """Return whether every word of a column's name stands in the question."""
        return all(word in self.tokens for word in split_name_words(column.name))
