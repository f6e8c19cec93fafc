"""Which tables a question is about: BM25 over the words of their names, columns, comments and sample values.

Tables whose names differ in digits only, such as one a day, are one *family*: the words are those of its last table.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from decisor.tools.databases.schema_words import name_words, question_words, stem, words_of
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo

K1, B = 1.2, 0.3
NAME, PLACE, COLUMN, COMMENT, VALUE = 4.0, 1.0, 1.0, 0.3, 0.4
"""What one mention is worth: in the name, in the name of the schema, of a column, in a comment, in a sample value."""
NEIGHBOUR = 0.3
"""Of its score that a table lends to those that it references, and that reference it."""
HUB = 0.3
"""What a table gets for each doubling of the number of tables that it is tied to."""
COMMENT_WORDS = 12
"""Of a column's comment that count."""
ALIKE = 0.5
"""Of the columns of two tables that must be the same for one family."""
LOOKED_AT = 8
LINK = re.compile(r"(\w{2,}?)_?(?:id|key|code|fk)")


@dataclass(frozen=True, slots=True)
class Family:
    """One table, or several whose names differ in digits only: ``tables`` are their numbers in the schema."""

    tables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a family fits a question."""

    family: Family
    score: float


@dataclass(eq=False)
class SchemaIndex:
    """Built once for a schema, asked for each question."""

    tables: list[TableInfo]

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """In the order of their first tables."""
        groups: dict[str, list[tuple[frozenset[str], list[int]]]] = {}
        order: list[list[int]] = []
        for number, table in enumerate(self.tables):
            columns = frozenset(masked(column.name) for column in table.columns)
            near = groups.setdefault(masked(table.name), [])
            for others, members in near[-LOOKED_AT:]:
                if len(columns & others) >= ALIKE * max(len(columns), len(others)):
                    members.append(number)
                    break
            else:
                order.append([number])
                near.append((columns, order[-1]))
        return tuple(Family(tuple(members)) for members in order)

    def prepare(self) -> None:
        """What the first question would else wait for."""
        assert self.postings is not None and self.lengths and self.neighbours is not None

    def rank(self, question: str, tied: bool = True) -> tuple[Fit, ...]:
        """All families, the best fit first; those that fit equally stay in order. ``tied``: tables gain by the tables
        that they are tied to."""
        scores = [0.0] * len(self.families)
        for word in question_words(question):
            posting = self.postings.get(word, {})
            rarity = math.log(1 + (len(scores) - len(posting) + 0.5) / (len(posting) + 0.5))
            for number, weight in posting.items():
                scores[number] += rarity * weight * (K1 + 1) / (weight + K1 * self.lengths[number])
        if not tied:
            fits = [Fit(family, score) for family, score in zip(self.families, scores, strict=True)]
            return tuple(sorted(fits, key=lambda fit: -fit.score))
        lent = [max((scores[other] for other in self.neighbours.get(number, ())), default=0.0)
                for number in range(len(scores))]  # fmt: skip
        ties = [math.log2(1 + len(self.neighbours.get(number, ()))) for number in range(len(scores))]
        fits = [Fit(family, score + NEIGHBOUR * more + HUB * tie) for family, score, more, tie in
                zip(self.families, scores, lent, ties, strict=True)]  # fmt: skip
        return tuple(sorted(fits, key=lambda fit: -fit.score))

    @cached_property
    def words(self) -> tuple[Mapping[str, float], ...]:
        """Of each family, with what their mentions are worth."""
        return tuple(self._words(self.tables[family.tables[-1]]) for family in self.families)

    @cached_property
    def lengths(self) -> tuple[float, ...]:
        """1 for a family with as many words as the mean; more for longer ones."""
        sizes = [math.log(2 + sum(words.values())) for words in self.words]
        mean = sum(sizes) / len(sizes) if sizes else 1.0
        return tuple(1 - B + B * size / mean for size in sizes)

    @cached_property
    def postings(self) -> Mapping[str, Mapping[int, float]]:
        """Word to family number to worth."""
        postings: dict[str, dict[int, float]] = {}
        for number, words in enumerate(self.words):
            for word, weight in words.items():
                postings.setdefault(word, {})[number] = weight
        return postings

    @cached_property
    def neighbours(self) -> Mapping[int, set[int]]:
        """Families that reference each other, are guessed to, or whose columns name each other (``person_id``)."""
        home: dict[str, int] = {}
        for number, family in enumerate(self.families):
            for table in family.tables:
                home[self.tables[table].name] = number
        named = {stem(name.rpartition(".")[2].lower()): number for name, number in home.items()}
        pairs: dict[int, set[int]] = {}
        for number, family in enumerate(self.families):
            for column in self.tables[family.tables[-1]].columns:
                reference = column.references or column.joins
                there = home.get(reference.rpartition(".")[0]) if reference else None
                if there is None and (names := linked(column.name)):
                    there = named.get(names[0], named.get(names[1]))
                if there is not None and there != number:
                    pairs.setdefault(number, set()).add(there)
                    pairs.setdefault(there, set()).add(number)
        return pairs

    def _words(self, table: TableInfo) -> Mapping[str, float]:
        worth: defaultdict[str, float] = defaultdict(float)
        for word, count in Counter(chain.from_iterable(name_words(one.name) for one in table.columns)).items():
            worth[word] = COLUMN * count
        place, _, name = table.name.rpartition(".")
        for word in words_of(place):
            worth[word] += PLACE
        for word in name_words(name):
            worth[word] += NAME
        for word in words_of(table.comment):
            worth[word] += COMMENT
        for column in table.columns:
            if column.comment:
                for word in list(words_of(column.comment))[:COMMENT_WORDS]:
                    worth[word] += COMMENT
            for text in column.examples:
                for word in name_words(text):
                    worth[word] += VALUE
        return worth


@lru_cache(maxsize=65_536)
def linked(column: str) -> tuple[str, str] | None:
    """Stems of the tables that a column may name: of ``home_city_id`` home city, and city.

    >>> linked("City_ID"), linked("name")
    (('citi', 'citi'), None)
    """
    match = LINK.fullmatch(column.lower())
    return (stem(match[1]), stem(match[1].rpartition("_")[2])) if match else None


@lru_cache(maxsize=65_536)
def masked(name: str) -> str:
    """
    >>> masked("sales_2024_01"), masked("Sales_2023_12")
    ('sales_#_#', 'sales_#_#')
    """
    return re.sub(r"\d+", "#", name.lower())


def column_fits(columns: Sequence[ColumnInfo], words: frozenset[str]) -> Iterator[float]:
    """How well each is named by the words of a question: 1 where all words of its name are in it."""
    for column in columns:
        own = set(words_of(column.name))
        about = set(list(words_of(column.comment))[:COMMENT_WORDS]) - own
        yield len(own & words) / max(1, len(own)) + 0.1 * min(3, len(about & words))
