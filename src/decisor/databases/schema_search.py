"""Finds the tables that a question is about, and answers the lookups that an LLM may write instead of a query.

The search is BM25 over the words of names, columns, comments and sample values, by their stems, so that ``OrderLines``
and "lines of an order" meet. Tables whose names differ in digits only, such as one a day, are one *family*: its words
are those of its last table. The lookup ``describe NAME`` shows all of a table or label; ``find WORDS`` names the
tables, columns or properties, and stored values that have the words. SQL and Cypher share this by ``SchemaLanguage``.
"""

from __future__ import annotations

import difflib
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.errors import ToolError
from decisor.runtime.prompt import estimate_tokens
from decisor.sandbox.dialect import word_set
from decisor.sandbox.engine import Caps
from decisor.system.text import fit_on_one_line
from decisor.types import Observation, Record, Table

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
QUOTED = re.compile(r"'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|`([^`\n]{2,60})`")
STOP = word_set(
    """a about above according across after all along also among an and any are as ask at based be been before between
    both but by calculate can consider considering could define defined determine did display do does during each
    either ensure exact exclude excluding find following for from get give given had has have having here how i
    identify if in include including into is it its just least less let list many may me more most much must my need
    no not of on one only or order other our out over per please provide report respective respectively results
    return round rounded same should show so some such summarize table tell than that the their them then there
    these they this those through to two under until up use using was we were what when where whether which while
    who whose why will with within without would you your"""
)
"""Words of questions that say nothing of what they are about."""
INFLECTIONS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("ings", ""),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
)
DERIVATIONS = (("ation", "ate"), ("er", ""), ("or", ""))


def stemmed_words(text: str) -> Iterator[str]:
    """Return the words of a text by their stems, in order, with repetitions.

    >>> list(stemmed_words("tripHistory_ids")), list(stemmed_words("the 3 cities of HTTPServers"))
    (['trip', 'histori', 'id'], ['the', '3', 'citi', 'of', 'http', 'serv'])
    """
    return (rough_stem(part.lower()) for part in PART.findall(text))


@lru_cache(maxsize=65_536)
def name_words(name: str) -> frozenset[str]:
    """Return the distinct words of a name. They are cached, for names of columns recur."""
    return frozenset(stemmed_words(name))


def question_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a question that tell its subject, quotations included.

    >>> question_words("Which of the drivers won the most races?")
    ('driv', 'won', 'rac')
    """
    return tuple(dict.fromkeys(rough_stem(part) for part in map(str.lower, PART.findall(text)) if part not in STOP))


def quotations(text: str) -> tuple[str, ...]:
    """Return the texts in quotes, which are likely values.

    >>> quotations("routes of 'manowars' and \\"Route A\\"")
    ('manowars', 'Route A')
    """
    return tuple(dict.fromkeys(next(filter(None, match)) for match in QUOTED.findall(text)))


@lru_cache(maxsize=65_536)
def rough_stem(word: str) -> str:
    """Return a rough stem of a word. It need not be a word, only the same for all forms of the word.

    >>> [rough_stem(word) for word in ("cities", "city", "orders", "ordered", "rates", "rating", "bus", "address")]
    ['citi', 'citi', 'ord', 'ord', 'rat', 'rat', 'bus', 'address']
    """
    for endings in (INFLECTIONS, DERIVATIONS):
        if len(word) > 2 and not word.endswith(("ss", "us", "is")):
            for ending, rest in endings:
                if word.endswith(ending) and len(word) - len(ending) >= (2 if ending == "s" else 3):
                    word = word[: -len(ending)] + rest
                    break
    if len(word) > 3:
        word = word[:-1] if word.endswith("e") else word[:-1] + "i" if word.endswith("y") else word
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word


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
    """A table, or several tables whose names differ in digits only. tables: their numbers in the schema."""

    tables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """A family with the score of its fit to a question."""

    family: Family
    score: float


@dataclass(eq=False)
class SchemaIndex:
    """An index of a schema's words that ranks its tables for questions. It is built once for a schema."""

    tables: list[TableInfo]

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Families of tables, in the order of their first tables."""
        groups: dict[str, list[tuple[frozenset[str], list[int]]]] = {}
        order: list[list[int]] = []
        for number, table in enumerate(self.tables):
            columns = frozenset(mask_digits(column.name) for column in table.columns)
            near = groups.setdefault(mask_digits(table.name), [])
            for others, members in near[-LOOKED_AT:]:
                if len(columns & others) >= ALIKE * max(len(columns), len(others)):
                    members.append(number)
                    break
            else:
                order.append([number])
                near.append((columns, order[-1]))
        return tuple(Family(tuple(members)) for members in order)

    def prepare(self) -> None:
        """Build the parts of the index that the first question would wait for."""
        assert self.postings is not None and self.lengths and self.neighbours is not None

    def rank(self, question: str, tied: bool = True) -> tuple[FamilyFit, ...]:
        """Return all families, the best fit first; equal fits stay in order. tied: tables gain by the tables that they
        are tied to.
        """
        scores = [0.0] * len(self.families)
        for word in question_words(question):
            posting = self.postings.get(word, {})
            rarity = math.log(1 + (len(scores) - len(posting) + 0.5) / (len(posting) + 0.5))
            for number, weight in posting.items():
                scores[number] += rarity * weight * (K1 + 1) / (weight + K1 * self.lengths[number])
        if not tied:
            fits = [FamilyFit(family, score) for family, score in zip(self.families, scores, strict=True)]
            return tuple(sorted(fits, key=lambda fit: -fit.score))
        lent = [
            max((scores[other] for other in self.neighbours.get(number, ())), default=0.0)
            for number in range(len(scores))
        ]
        ties = [math.log2(1 + len(self.neighbours.get(number, ()))) for number in range(len(scores))]
        fits = [
            FamilyFit(family, score + NEIGHBOUR * more + HUB * tie)
            for family, score, more, tie in zip(self.families, scores, lent, ties, strict=True)
        ]
        return tuple(sorted(fits, key=lambda fit: -fit.score))

    @cached_property
    def words(self) -> tuple[Mapping[str, float], ...]:
        """Words of each family, with the weight of their mentions."""
        return tuple(self._words(self.tables[family.tables[-1]]) for family in self.families)

    @cached_property
    def lengths(self) -> tuple[float, ...]:
        """Length of each family: 1 if it has as many words as the mean, more if it has more."""
        sizes = [math.log(2 + sum(words.values())) for words in self.words]
        mean = sum(sizes) / len(sizes) if sizes else 1.0
        return tuple(1 - B + B * size / mean for size in sizes)

    @cached_property
    def postings(self) -> Mapping[str, Mapping[int, float]]:
        """Weight of each word in each family, by word and number of the family."""
        postings: dict[str, dict[int, float]] = {}
        for number, words in enumerate(self.words):
            for word, weight in words.items():
                postings.setdefault(word, {})[number] = weight
        return postings

    @cached_property
    def neighbours(self) -> Mapping[int, set[int]]:
        """Families that are tied to each family.

        They reference each other, are guessed to, or their columns name each other (``person_id``).
        """
        home: dict[str, int] = {}
        for number, family in enumerate(self.families):
            for table in family.tables:
                home[self.tables[table].name] = number
        named = {rough_stem(name.rpartition(".")[2].lower()): number for name, number in home.items()}
        pairs: dict[int, set[int]] = {}
        for number, family in enumerate(self.families):
            for column in self.tables[family.tables[-1]].columns:
                reference = column.references or column.joins
                there = home.get(reference.rpartition(".")[0]) if reference else None
                if there is None and (names := tables_named_by_column(column.name)):
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
        for word in stemmed_words(place):
            worth[word] += PLACE
        for word in name_words(name):
            worth[word] += NAME
        for word in stemmed_words(table.comment):
            worth[word] += COMMENT
        for column in table.columns:
            if column.comment:
                for word in list(stemmed_words(column.comment))[:COMMENT_WORDS]:
                    worth[word] += COMMENT
            for text in column.examples:
                for word in name_words(text):
                    worth[word] += VALUE
        return worth


@lru_cache(maxsize=65_536)
def tables_named_by_column(column: str) -> tuple[str, str] | None:
    """Return the stems of the tables that a column may name. For ``home_city_id`` they are home city, and city.

    >>> tables_named_by_column("City_ID"), tables_named_by_column("name")
    (('citi', 'citi'), None)
    """
    match = LINK.fullmatch(column.lower())
    return (rough_stem(match[1]), rough_stem(match[1].rpartition("_")[2])) if match else None


@lru_cache(maxsize=65_536)
def mask_digits(name: str) -> str:
    """Return a name in lower case with # for each run of digits.

    >>> mask_digits("sales_2024_01"), mask_digits("Sales_2023_12")
    ('sales_#_#', 'sales_#_#')
    """
    return re.sub(r"\d+", "#", name.lower())


def score_columns(columns: Sequence[ColumnInfo], words: frozenset[str]) -> Iterator[float]:
    """Yield how well the words of a question name each column:

    1 if they hold all words of its name. Words of the comment add a little.
    """
    for column in columns:
        own = set(stemmed_words(column.name))
        about = set(list(stemmed_words(column.comment))[:COMMENT_WORDS]) - own
        yield len(own & words) / max(1, len(own)) + 0.1 * min(3, len(about & words))


LOOKUP = re.compile(r"\s*(describe|desc|find)\s+(?!select\b|with\b|table\b|from\b)(.+?)\s*;?\s*", re.I | re.S)
TOKENS = 3_000
"""Of the descriptions that one input asks for."""
MOST_TABLES, MOST_HITS, NAMED = 12, 20, 0.5
MIN_SIMILARITY = 3
"""Tables of a family that are searched for a value."""
SECONDS = 4.0
SCANNED = 1_000_000
"""Rows of a table that are searched for a value."""
Read = Callable[[str, Caps], Awaitable[Table]]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A request to ``describe`` tables by name or to ``find`` words."""

    verb: str
    words: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored value with its table and column."""

    table: str
    column: str
    value: str


@dataclass(frozen=True)
class SchemaLanguage:
    """The words and queries that describe and search one kind of schema. table, column: the words for these. head:
    formats a table with its size. lines: each line about a table, with the name that the line is about. place: a
    table, and name: a column, as a query writes them. texts: the columns that are searched. known: the values of a
    column that the schema tells, None if it does not. search: a query for rows whose columns hold one of some texts,
    in any case.
    """

    table: str
    column: str
    head: Callable[[TableInfo], str]
    lines: Callable[[TableInfo], Iterator[tuple[str, str]]]
    place: Callable[[TableInfo], str]
    name: Callable[[str], str]
    texts: Callable[[TableInfo], list[ColumnInfo]]
    known: Callable[[ColumnInfo], Sequence[str] | None]
    search: Callable[[TableInfo, Sequence[ColumnInfo], Sequence[str]], str]


def parse_lookup(text: str) -> Lookup | None:
    """Parse a lookup; return None for a statement.

    >>> parse_lookup("find 'manowars'"), parse_lookup("DESCRIBE orders;"), parse_lookup("SELECT 1")
    (Lookup(verb='find', words="'manowars'"), Lookup(verb='describe', words='orders'), None)
    """
    match = LOOKUP.fullmatch(text)
    return Lookup("find" if match[1].lower() == "find" else "describe", match[2]) if match else None


def parse_table_names(words: str, tables: Sequence[TableInfo], language: SchemaLanguage) -> list[TableInfo]:
    """Return the tables that an LLM names, separated by commas or blanks.

    Raises:
        ToolError: one is not there, with names that are near.
    """
    by_name: dict[str, TableInfo] = {}
    for table in tables:
        by_name.setdefault(normalize_table_name(table.bare), table)
        by_name[normalize_table_name(table.name)] = table
    whole = by_name.get(normalize_table_name(words))
    names = [words] if whole else re.split(r"\s*,\s*|\s+", words.strip())
    unknown = [name for name in names if normalize_table_name(name) not in by_name]
    if unknown:
        near = difflib.get_close_matches(normalize_table_name(unknown[0]), by_name, 3, 0.5)
        hint = f" Did you mean: {', '.join(by_name[name].name for name in near)}?" if near else " Try find WORDS."
        raise ToolError(f"There is no {language.table} {fit_on_one_line(unknown[0], 60)}.{hint}")
    return list(dict.fromkeys(by_name[normalize_table_name(name)] for name in names))


def normalize_table_name(name: str) -> str:
    """Return a name in lower case, without quotes, brackets and colons.

    >>> normalize_table_name('"Orders"'), normalize_table_name("(:City)"), normalize_table_name("[:LIES_IN]")
    ('orders', 'city', 'lies_in')
    """
    return re.sub(r"[\"'`\[\]():]", "", name).strip().lower()


def describe_tables(tables: Sequence[TableInfo], index: SchemaIndex, language: SchemaLanguage) -> str:
    """Return all lines about the tables as far as ``TOKENS`` goes, then only names."""
    lines: list[str] = []
    left = TOKENS
    for table in tables:
        lines.append(language.head(table))
        names: list[str] = []
        for line, name in language.lines(table):
            left -= estimate_tokens(line) + 1
            if left > 0:
                lines.append(line)
            else:
                names.append(name)
        if names:
            lines.append(f"  and {len(names)} more: {fit_on_one_line(', '.join(names), 4 * TOKENS)}")
        mask = mask_digits(table.name)
        alike = [other.name for other in index.tables if other.name != table.name and mask_digits(other.name) == mask]
        if alike:
            more = f" and {len(alike) - MOST_TABLES} more" if len(alike) > MOST_TABLES else ""
            lines.append(f"  {language.table.capitalize()}s like it: {', '.join(alike[-MOST_TABLES:])}{more}")
    return "\n".join(lines)


async def find_words(
    words: str, index: SchemaIndex, language: SchemaLanguage, read: Read, caps: Caps, source: str
) -> Observation:
    """Find the tables and columns that have the words, and where values with the words are stored.

    Each stored value is a record.
    """
    names = "\n".join(list_matching_names(words, index, language))
    wishes = quotations(words) or (words.strip(),)
    hits, looked, total = await find_stored_values(wishes, index, words, language, read, caps)
    records = tuple(
        Record(
            f"r{number}", {language.table: one.table, language.column: one.column, "value": one.value}, source=source
        )
        for number, one in enumerate(hits, 1)
    )
    quoted = ", ".join(f'"{fit_on_one_line(wish, 60)}"' for wish in wishes)
    values = f"Stored values with {quoted}: " + ("the records." if records else "none.")
    if looked < total and len(hits) < MOST_HITS:
        values += f" Of {total} {language.table}s with texts, {looked} could be looked into."
    nothing = f"No name of a {language.table} or {language.column} has them."
    return Observation(records, f"{names or nothing}\n{values}", total=len(records))


def list_matching_names(words: str, index: SchemaIndex, language: SchemaLanguage) -> Iterator[str]:
    """Yield a line for each table that the words fit, with the columns that they fit."""
    wishes = frozenset(question_words(words))
    for fit in index.rank(words, tied=False)[:MOST_TABLES]:
        if fit.score > 0:
            table = index.tables[fit.family.tables[-1]]
            fits = score_columns(table.columns, wishes)
            columns = [column for column, one in zip(table.columns, fits, strict=True) if one >= NAMED][:8]
            more = len(fit.family.tables) - 1
            yield (
                f"{language.place(table)}{f' and {more} alike' if more else ''}"
                + (": " + ", ".join(language.name(column.name) for column in columns) if columns else "")
            )


async def find_stored_values(
    wishes: Sequence[str], index: SchemaIndex, words: str, language: SchemaLanguage, read: Read, caps: Caps
) -> tuple[list[Hit], int, int]:
    """Return stored values that hold one of ``wishes`` in any case, with two counts.

    The counts are the tables that were searched, and all tables with texts. Tables that fit best come first. Queries go
    through the same checks as those of an LLM.
    """
    until = time.monotonic() + SECONDS
    numbers = [number for fit in index.rank(words) for number in fit.family.tables[-MIN_SIMILARITY:]]
    homes = [
        (table, columns)
        for table in (index.tables[number] for number in numbers)
        if table.runs and (columns := language.texts(table))
    ]
    hits: list[Hit] = []
    looked = 0
    for table, columns in homes:
        left = until - time.monotonic()
        if left <= 0 or len(hits) >= MOST_HITS:
            break
        own: list[ColumnInfo] = []
        for column in columns:
            if (values := language.known(column)) is None:
                own.append(column)
            else:
                hits += [Hit(table.name, column.name, value) for value in values if has(value, wishes)]
        narrow = replace(caps, rows=MOST_HITS, cell_chars=200, seconds=min(left, 1.0, caps.seconds))
        try:
            rows = (await read(language.search(table, own, wishes), narrow)).rows if own else ()
        except ToolError:
            continue
        looked += 1
        for row in rows:
            hits += [
                Hit(table.name, column.name, str(value))
                for column, value in zip(own, row, strict=False)
                if has(str(value), wishes)
            ]
        hits = list(dict.fromkeys(hits))
    return hits[:MOST_HITS], looked, len(homes)


def has(value: str, wishes: Sequence[str]) -> bool:
    return any(wish.lower() in value.lower() for wish in wishes)
