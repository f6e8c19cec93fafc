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
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal

from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.errors import ToolError
from decisor.runtime.prompt import estimate_tokens
from decisor.sandbox.dialect import word_set
from decisor.sandbox.engine import Caps
from decisor.system.text import fit_on_one_line
from decisor.types import Observation, Record, Table

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
QUOTED = re.compile(r"'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|`([^`\n]{2,60})`")
STOP_WORDS = word_set(
    """a about above according across after all along also among an and any are as ask at based be been before between
    both but by calculate can consider considering could define defined determine did display do does during each
    either ensure exact exclude excluding find following for from get give given had has have having here how i
    identify if in include including into is it its just least less let list many may me more most much must my need
    no not of on one only or order other our out over per please provide report respective respectively results
    return round rounded same should show so some such summarize table tell than that the their them then there
    these they this those through to two under until up use using was we were what when where whether which while
    who whose why will with within without would you your"""
)
"""Words of questions that say nothing about their subject."""
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
    """Yield the words of a text by their stems, in order, with repetitions.

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
    return tuple(
        dict.fromkeys(rough_stem(part) for part in map(str.lower, PART.findall(text)) if part not in STOP_WORDS)
    )


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
    # First the inflection, then the derivation: orders, order, ord.
    for endings in (INFLECTIONS, DERIVATIONS):
        if len(word) > 2 and not word.endswith(("ss", "us", "is")):
            for ending, rest in endings:
                if word.endswith(ending) and len(word) - len(ending) >= (2 if ending == "s" else 3):
                    word = word[: -len(ending)] + rest
                    break
    if len(word) > 3:
        word = word[:-1] if word.endswith("e") else word[:-1] + "i" if word.endswith("y") else word
        # A doubled consonant before a dropped ending is single again: stopped, stopp, stop.
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word


K1, B = 1.2, 0.3
"""Parameters of BM25: saturation of repeated words, and weight of the length."""
NAME, PLACE, COLUMN, COMMENT, VALUE = 4.0, 1.0, 1.0, 0.3, 0.4
"""Weight of one mention: in the name, in the name of the schema, of a column, in a comment, in a sample value."""
NEIGHBOUR = 0.3
"""Share of its score that a table lends to the tables that it references, and that reference it."""
HUB = 0.3
"""Score that a table gets for each doubling of the number of tables that it is tied to."""
COMMENT_WORDS = 12
"""Words of a column's comment that count."""
ALIKE = 0.5
"""Share of the columns of two tables that must be the same for one family."""
COMPARED_FAMILIES = 8
LINK = re.compile(r"(\w{2,}?)_?(?:id|key|code|fk)")


@dataclass(frozen=True, slots=True)
class Family:
    """A table, or several tables whose names differ in digits only."""

    tables: tuple[int, ...]
    """Their positions in the schema."""


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
            # Only the latest families are compared: thousands of tables with one mask would take quadratic time.
            for others, members in near[-COMPARED_FAMILIES:]:
                if len(columns & others) >= ALIKE * max(len(columns), len(others)):
                    members.append(number)
                    break
            else:
                order.append([number])
                near.append((columns, order[-1]))
        return tuple(Family(tuple(members)) for members in order)

    def prepare(self) -> None:
        """Build the parts of the index that the first question would wait for."""
        # Reading a cached property builds it.
        assert self.postings is not None and self.lengths and self.neighbours is not None

    def rank(self, question: str, tied: bool = True) -> tuple[FamilyFit, ...]:
        """Return all families, the best fit first; equal fits stay in order.

        Args:
            tied: True if tables gain by the tables that they are tied to.
        """
        scores = [0.0] * len(self.families)
        for word in question_words(question):
            posting = self.postings.get(word, {})
            # Inverse document frequency as Lucene computes it for BM25: the 1 keeps common words from counting against
            # a table.
            rarity = math.log(1 + (len(scores) - len(posting) + 0.5) / (len(posting) + 0.5))
            for number, weight in posting.items():
                # Mentions are weighted by their field before they saturate, as in BM25F.
                scores[number] += rarity * weight * (K1 + 1) / (weight + K1 * self.lengths[number])
        fits = []
        for number, (family, score) in enumerate(zip(self.families, scores, strict=True)):
            if tied:
                ties = self.neighbours.get(number, ())
                lent = max((scores[neighbour] for neighbour in ties), default=0.0)
                score += NEIGHBOUR * lent + HUB * math.log2(1 + len(ties))
            fits.append(FamilyFit(family, score))
        return tuple(sorted(fits, key=lambda fit: -fit.score))

    @cached_property
    def words(self) -> tuple[Mapping[str, float], ...]:
        """Words of each family, with the weight of their mentions."""
        return tuple(weigh_words(self.tables[family.tables[-1]]) for family in self.families)

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
        home = {self.tables[at].name: number for number, family in enumerate(self.families) for at in family.tables}
        by_stem = {rough_stem(name.rpartition(".")[2].lower()): number for name, number in home.items()}
        pairs: dict[int, set[int]] = {}
        for number, family in enumerate(self.families):
            for column in self.tables[family.tables[-1]].columns:
                reference = column.references or column.joins
                target = home.get(reference.rpartition(".")[0]) if reference else None
                if target is None and (names := tables_named_by_column(column.name)):
                    target = by_stem.get(names[0], by_stem.get(names[1]))
                if target is not None and target != number:
                    pairs.setdefault(number, set()).add(target)
                    pairs.setdefault(target, set()).add(number)
        return pairs


def weigh_words(table: TableInfo) -> Mapping[str, float]:
    """Return the words of a table with the weight of their mentions."""
    place, _, name = table.name.rpartition(".")
    mentions: list[tuple[float, Iterable[str]]] = [(COLUMN, name_words(column.name)) for column in table.columns]
    mentions += [(PLACE, stemmed_words(place)), (NAME, name_words(name)), (COMMENT, stemmed_words(table.comment))]
    for column in table.columns:
        mentions.append((COMMENT, islice(stemmed_words(column.comment), COMMENT_WORDS)))
        mentions += [(VALUE, name_words(text)) for text in column.examples]
    weights: defaultdict[str, float] = defaultdict(float)
    for weight, words in mentions:
        for word in words:
            weights[word] += weight
    return weights


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
    """Yield a score for each column: 1 if the words hold all words of its name. Words of its comment add a little."""
    for column in columns:
        name = name_words(column.name)
        comment = set(islice(stemmed_words(column.comment), COMMENT_WORDS)) - name
        yield len(name & words) / max(1, len(name)) + 0.1 * min(3, len(comment & words))


# DESCRIBE SELECT ... and DESC TABLE ... are statements and go to the engine.
LOOKUP = re.compile(r"\s*(describe|desc|find)\s+(?!select\b|with\b|table\b|from\b)(.+?)\s*;?\s*", re.I | re.S)
MAX_TOKENS = 3_000
"""Of the descriptions that one input asks for."""
MAX_TABLES, MAX_HITS = 12, 20
IS_NAMED = 0.5
"""Score of a column from which on it is shown as a hit."""
SEARCHED_MEMBERS = 3
"""Tables of a family that are searched for a value."""
SECONDS = 4.0
SCANNED = 1_000_000
"""Rows of a table that are searched for a value."""
Read = Callable[[str, Caps], Awaitable[Table]]
"""Runs a query with the checks that a query of the LLM passes."""
CheckQuery = Callable[[str], Awaitable[None]]
"""Raises ToolError if a query would read too much."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A request to ``describe`` tables by name or to ``find`` words."""

    verb: Literal["describe", "find"]
    words: str


@dataclass(frozen=True)
class SchemaLanguage:
    """The words and queries that describe and search one kind of schema."""

    table: str
    """Word for a table."""
    column: str
    """Word for a column."""
    head: Callable[[TableInfo], str]
    """Formats a table with its size."""
    lines: Callable[[TableInfo], Iterator[tuple[str, str]]]
    """Each line about a table, with the name that the line is about."""
    place: Callable[[TableInfo], str]
    """A table as a query writes it."""
    name: Callable[[str], str]
    """A column as a query writes it."""
    texts: Callable[[TableInfo], list[ColumnInfo]]
    """The columns that are searched."""
    known: Callable[[ColumnInfo], Sequence[str] | None]
    """The values of a column that the schema tells, None if it does not."""
    search: Callable[[TableInfo, Sequence[ColumnInfo], Sequence[str]], str]
    """A query for rows whose columns hold one of some texts, in any case."""


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
        ToolError: if there is no such table, with names that are near.
    """
    by_name: dict[str, TableInfo] = {}
    for table in tables:
        by_name.setdefault(normalize_table_name(table.bare), table)
        by_name[normalize_table_name(table.name)] = table
    # A name may hold blanks, so all of the input is first tried as one name.
    is_single = normalize_table_name(words) in by_name
    names = [words] if is_single else re.split(r"\s*,\s*|\s+", words.strip())
    for name in names:
        if normalize_table_name(name) not in by_name:
            near = difflib.get_close_matches(normalize_table_name(name), by_name, 3, 0.5)
            hint = f" Did you mean: {', '.join(by_name[key].name for key in near)}?" if near else " Try find WORDS."
            raise ToolError(f"There is no {language.table} {fit_on_one_line(name, 60)}.{hint}")
    return list(dict.fromkeys(by_name[normalize_table_name(name)] for name in names))


def normalize_table_name(name: str) -> str:
    """Return a name in lower case, without quotes, brackets and colons.

    >>> normalize_table_name('"Orders"'), normalize_table_name("(:City)"), normalize_table_name("[:LIES_IN]")
    ('orders', 'city', 'lies_in')
    """
    return re.sub(r"[\"'`\[\]():]", "", name).strip().lower()


def describe_tables(tables: Sequence[TableInfo], index: SchemaIndex, language: SchemaLanguage) -> Observation:
    """Return all lines about the tables as far as ``MAX_TOKENS`` goes, then only names."""
    lines: list[str] = []
    left = MAX_TOKENS
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
            lines.append(f"  and {len(names)} more: {fit_on_one_line(', '.join(names), 4 * MAX_TOKENS)}")
        mask = mask_digits(table.name)
        alike = [other.name for other in index.tables if other.name != table.name and mask_digits(other.name) == mask]
        if alike:
            more = f" and {len(alike) - MAX_TABLES} more" if len(alike) > MAX_TABLES else ""
            lines.append(f"  {language.table.capitalize()}s like it: {', '.join(alike[-MAX_TABLES:])}{more}")
    return Observation(note="\n".join(lines))


async def find_words(
    words: str, index: SchemaIndex, language: SchemaLanguage, read: Read, caps: Caps, source: str
) -> Observation:
    """Find the tables and columns that have the words, and where values with the words are stored.

    Each stored value is a record. Tables that fit best are searched first, by queries that pass the checks of ``read``.
    """
    deadline = time.monotonic() + SECONDS
    wishes = quotations(words) or (words.strip(),)
    positions = [at for fit in index.rank(words) for at in fit.family.tables[-SEARCHED_MEMBERS:]]
    homes = [(index.tables[at], language.texts(index.tables[at])) for at in positions if index.tables[at].runs]
    homes = [(table, columns) for table, columns in homes if columns]
    hits: dict[tuple[str, str, str], None] = {}
    searched = 0
    for table, columns in homes:
        left = deadline - time.monotonic()
        if left <= 0 or len(hits) >= MAX_HITS:
            break
        # The schema tells the values of an enumeration, so no query is needed for them.
        known = {column.name: language.known(column) for column in columns}
        stored = [column for column in columns if known[column.name] is None]
        values = [(name, value) for name, texts in known.items() for value in texts or ()]
        # One slow table must not use up the time of the others.
        narrow = replace(caps, rows=MAX_HITS, cell_chars=200, seconds=min(left, 1.0, caps.seconds))
        try:
            rows = (await read(language.search(table, stored, wishes), narrow)).rows if stored else ()
            searched += 1
        except ToolError:
            rows = ()
        values += [(c.name, str(value)) for row in rows for c, value in zip(stored, row, strict=False)]
        for name, value in values:
            # A row comes back for one of its columns; the others need not hold the wish.
            if any(wish.lower() in value.lower() for wish in wishes):
                hits[table.name, name, value] = None
    records = tuple(
        Record(f"r{number}", {language.table: table, language.column: column, "value": value}, source=source)
        for number, (table, column, value) in enumerate(list(hits)[:MAX_HITS], 1)
    )
    quoted = ", ".join(f'"{fit_on_one_line(wish, 60)}"' for wish in wishes)
    note = f"Stored values with {quoted}: " + ("the records." if records else "none.")
    if searched < len(homes) and len(hits) < MAX_HITS:
        note += f" Of {len(homes)} {language.table}s with texts, {searched} could be looked into."
    names = "\n".join(list_matching_names(words, index, language))
    nothing = f"No name of a {language.table} or {language.column} has them."
    return Observation(records, f"{names or nothing}\n{note}", total=len(records))


def list_matching_names(words: str, index: SchemaIndex, language: SchemaLanguage) -> Iterator[str]:
    """Yield a line for each table that the words fit, with the columns that they fit."""
    wishes = frozenset(question_words(words))
    # Without ties: the words have to fit the table itself.
    for fit in index.rank(words, tied=False)[:MAX_TABLES]:
        if fit.score > 0:
            table = index.tables[fit.family.tables[-1]]
            scores = zip(table.columns, score_columns(table.columns, wishes), strict=True)
            columns = [language.name(column.name) for column, score in scores if score >= IS_NAMED][:8]
            more = len(fit.family.tables) - 1
            alike = f" and {more} alike" if more else ""
            yield f"{language.place(table)}{alike}{': ' if columns else ''}{', '.join(columns)}"


def list_names_within(what: str, names: Sequence[str], tokens: float) -> list[str]:
    """Return a line with as many names as the tokens allow; no line if there are no names.

    >>> list_names_within("2 more tables", ["a", "b"], 4), list_names_within("2 more tables", ["a", "b"], 0)
    (['2 more tables: a, ...'], ['2 more tables.'])
    """
    texts: list[str] = []
    for name in names:
        tokens -= estimate_tokens(name + ", ") + 1
        if tokens < 0:
            break
        texts.append(name)
    more = ", ..." if len(texts) < len(names) else ""
    return [f"{what}: {', '.join(texts)}{more}" if texts else f"{what}."] if names else []
