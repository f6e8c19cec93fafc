"""Words of a question that have two readings in these data, found by rules: amounts, kinds, times and passages.

A rule gets the question with its tables and yields the readings that it suspects; ``semantics.ambiguity`` puts them
before an LLM.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from decisor.semantics.definitions import Column, Relation
from decisor.semantics.relevant import strip_plural_ending
from decisor.system.text import fit_on_one_line
from decisor.types import Question, Record

Readings = Literal["auto", "always", "off"]
"""When an LLM is asked whether a question has two readings: where the rules suspect it, always, never."""


@dataclass(frozen=True)
class OpenReading:
    """Words of a question with two possible meanings."""

    words: str
    """As they stand in the question."""
    choices: Sequence[str]
    """The meanings; the first is taken if nobody decides."""
    keys: Sequence[str] = ()
    """Columns and words that a definition mentions if it settles the meaning."""
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
    """A question and the tables that it is asked of."""

    text: str
    """The question in lower case."""
    tables: Sequence[Relation]
    decides: bool = True
    """Whether the question names no criterion by rules or a goal, so that "should we" leaves it open."""

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


MONEY = r"\b(revenues?|turnover|sales|income|earnings?|worth|values?|billing|amounts?|money|cash)\b"
MAKING = r"\b(earn(s|ed)?|spen[dt]s?|pa(y|ys|id)|bring(s|ing)?|did we make|make for us)\b"
SETTLED = r"\b(gross|net|discounts?|tax(es)?|vat|freight|rebates?|list price)\b"
LESS = re.compile(r"^(discount|rebate|tax|vat|fee|fees|freight|shipping|deduction)$")
PAIRS = (("gross", "net"), ("list", "net"), ("before", "after"))
NUMBER = re.compile(r"int|num|dec|real|double|float|money|^$", re.I)
DEAL = r"\b(sells?|sold|selling|buys?|bought|purchases? most|best-?sell(er|ers|ing))\b"
RANK = r"\b(most|best|least|worst|more|better|fewest|top)\b"
COUNTS = r"\b(units?|pieces?|cop(y|ies)|quantit(y|ies)|number of)\b"
PIECES = rf"{COUNTS}|\b(revenue|money|value|turnover)\b"
DAY = re.compile(r"date|time", re.I)
COUNTED = re.compile(r"quantity|qty|units|pieces", re.I)


def find_gross_or_net(subject: QuestionSubject) -> Iterator[OpenReading]:
    match = subject.has(MONEY) or (not subject.has(COUNTS) and subject.has(MAKING))
    if not match or subject.has(SETTLED):
        return
    if any(
        match[0] in split_name_words(column.name) and DAY.search(column.type)
        for table in subject.tables
        for column in table.columns
    ):
        return  # the day on which something was paid, say
    for table in rank_nearby_tables(subject):
        numbers = [one for one in table.columns if NUMBER.search(one.type) and not one.key and not one.references]
        if any(subject.says(one) for one in numbers):
            return
        if pair := find_gross_net_columns(numbers):
            yield OpenReading(match[0], pair, [*pair, "gross", "net"])
            return
        amount = next((one for one in numbers if set(split_name_words(one.name)) & WORDS_OF_AMOUNT), None)
        less = next((one for one in numbers if any(LESS.match(word) for word in split_name_words(one.name))), None)
        if amount and less and amount is not less:
            way = "with" if less.name.lower() in ("tax", "vat", "freight", "shipping") else "before"
            other = "without" if way == "with" else "after"
            yield OpenReading(match[0], (f"{other} {less.name}", f"{way} {less.name}"), [less.name, "gross", "net"])
            return


WORDS_OF_AMOUNT = {"price", "amount", "total", "value", "revenue", "cost", "sum", "gross"}


def find_gross_net_columns(numbers: list[Column]) -> tuple[str, str] | None:
    """Find two columns whose names differ only in a word for gross or net, else return None."""
    for one in numbers:
        for other in numbers:
            for gross, net in PAIRS:
                words = split_name_words(one.name)
                if gross in words and tuple(net if word == gross else word for word in words) == split_name_words(
                    other.name
                ):
                    return other.name, one.name
    return None


def rank_nearby_tables(subject: QuestionSubject) -> list[Relation]:
    """Return all tables by their closeness to the question.

    Tables that it names come first, then tables whose rows belong to them, then the others; views count only if named.
    """
    own = subject.named()
    children = [
        table for table in subject.tables if not table.view and any(one in own for one in subject.parents(table))
    ]
    return list(dict.fromkeys([*own, *children, *(table for table in subject.tables if not table.view)]))


def find_pieces_or_money(subject: QuestionSubject) -> Iterator[OpenReading]:
    deal, count = subject.has(DEAL), subject.has(r"\bhow many\b")
    if not deal or not (subject.has(RANK) or count) or subject.has(PIECES):
        return
    quantity = next(
        (
            column
            for table in subject.tables
            if not table.view
            for column in table.columns
            if COUNTED.search(column.name) and NUMBER.search(column.type)
        ),
        None,
    )
    if quantity is None:
        return
    if count:
        yield OpenReading(deal[0], (f"pieces, the sum of {quantity.name}", "how many different ones"), [quantity.name])
    else:
        yield OpenReading(deal[0], ("by money", f"by pieces, the sum of {quantity.name}"), [quantity.name, "money"])


PERIOD = (
    r"\b((19|20)\d\d|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|years?|quarters?|months?|weeks?|monthly|yearly|annual|quarterly)\b"
)
DAY_NAME = re.compile(r"(_at|_on|_date|_day)$|Date$|^date", re.I)
LEFT_OUT = re.compile(r"birth|modified|updated", re.I)
DULL = {"date", "at", "on", "time", "day", "datetime", "timestamp"}
FORMS = {
    "order": ("ordered", "placed", "took", "taken"),
    "shipped": ("shipped", "delivered", "sent", "dispatched"),
    "required": ("required", "due"),
    "opened": ("opened", "created", "raised", "came in"),
    "closed": ("closed", "finished"),
    "created": ("created", "opened"),
    "hire": ("hired", "joined"),
    "hired": ("hired", "joined"),
    "paid": ("paid",),
    "invoice": ("invoiced", "made out", "billed"),
    "invoiced": ("invoiced",),
    "signed": ("signed", "concluded"),
    "starts": ("start", "started", "starting", "began"),
    "ends": ("end", "ended", "ending", "expired"),
}
RATE = r"\b(per|a|each|every) (month|year|week|quarter)\b"
FISCAL = r"\b(fiscal|financial year|fy ?\d*)\b"
RELATIVE = r"\b(last|this|past|previous|current|recent|recently|lately) ?(years?|quarters?|months?|weeks?|days?)?\b"
YEAR = re.compile(r"\b(19|20)\d\d\b")


def find_open_date(subject: QuestionSubject) -> Iterator[OpenReading]:
    # A rate such as "a month" is no period.
    period = re.search(PERIOD, re.sub(RATE, " ", subject.text))
    if not period:
        return
    for table in find_dated_tables(subject):
        days = [one for one in table.columns if is_day(one)]
        if len(days) < 2:
            continue
        # Whoever says "ordered" or "shipped" has named the date.
        if not any(mentions_date_column(subject, one) for one in days):
            yield OpenReading(
                period[0],
                tuple(f"by {one.name}" for one in days[:2]),
                [name for one in days for name in (one.name, *verbs_of_date_column(one))],
            )
        return


def find_dated_tables(subject: QuestionSubject) -> list[Relation]:
    """Return the tables with dates that the question is about.

    These are the tables that it names. If it is about money they are all with dates, first the tables with amounts,
    then the tables that such rows belong to.
    """
    own = [table for table in subject.named() if any(is_day(one) for one in table.columns)]
    if subject.has(MONEY) or subject.has(MAKING) or subject.has(DEAL):
        days = [table for table in rank_nearby_tables(subject) if any(is_day(one) for one in table.columns)]
        return sorted(
            days, key=lambda table: 0 if has_amount(table) else 1 if has_child_with_amounts(table, subject) else 2
        )
    return own


NUMERIC = re.compile(r"amount|total|price|revenue|value", re.I)


def has_amount(table: Relation) -> bool:
    return any(NUMERIC.search(one.name) for one in table.columns)


def has_child_with_amounts(table: Relation, subject: QuestionSubject) -> bool:
    """Return whether rows with amounts belong to rows of a table."""
    return any(has_amount(other) and table in subject.parents(other) for other in subject.tables)


def is_day(column: Column) -> bool:
    return bool((DAY.search(column.type) or DAY_NAME.search(column.name)) and not LEFT_OUT.search(column.name))


def mentions_date_column(subject: QuestionSubject, column: Column) -> bool:
    """Return whether the question mentions a date column, by its name or by a verb for its event."""
    return subject.says(column) or any(
        re.search(rf"\b{re.escape(form)}\b", subject.text) for form in verbs_of_date_column(column)
    )


def verbs_of_date_column(column: Column) -> list[str]:
    """Return verbs for the event of a date column, such as ordered or placed."""
    stems = [word for word in split_name_words(column.name) if word not in DULL]
    return [form for stem in stems for form in FORMS.get(stem, (stem if stem.endswith("ed") else f"{stem}ed",))]


def find_open_calendar(subject: QuestionSubject) -> Iterator[OpenReading]:
    # A column called fiscal tells which year is meant.
    if (fiscal := subject.has(FISCAL)) and not any(
        "fiscal" in split_name_words(column.name) for table in subject.tables for column in table.columns
    ):
        yield OpenReading(
            fiscal[0], ("the calendar year", "July to June, the year in which it ends"), ["year starts on"]
        )


def find_open_present(subject: QuestionSubject) -> Iterator[OpenReading]:
    """Yield an open reading if a relative period may count from today or from the end of the data.

    The newest sample date must be from before last year.
    """
    match = subject.has(RELATIVE)
    if not match or not (match[2] or match[1].startswith("recent") or match[1] == "lately"):
        return
    years = [
        int(year[0])
        for table in subject.tables
        for column in table.columns
        if is_day(column)
        for text in column.examples
        if (year := YEAR.search(text))
    ]
    if years and max(years) < datetime.now(UTC).year - 1:
        choices = ("counted back from the last day in the data", "counted back from today")
        yield OpenReading(match[0].strip(), choices, ["last full", "of the data", "today"])


PRAISE = (
    r"\b(best|worst|strongest|weakest|biggest|largest|smallest|greatest|leading|top|(most|least) \w+(ful|able|ive|ant"
    r"|ar|al|ing)|overloaded|favou?rites?|star|performers?|doing (well|badly)|do(es|ing)? (best|worst))\b"
)
ADVICE = r"\bwhich\b.*\bshould (we|i|they|be)\b|\bshould (we|i) \w+ (the|a|our)\b"
CRITERION = (
    r"\bby (the )?(number|sum|count|total|amount|mean|average|units?|revenue|money|value|length|size|bytes|pieces"
    r"|quantity|net|gross|profit|margin|cost|price)|in terms of|based on|ranked|measured|according to"
    r"|with the (most|highest|lowest|fewest|largest|least|longest)"
    r"|\b(cheapest|so that|in order to|because|that (has|have|is|are))\b"
)
STATE = re.compile(r"^(status|state|stage|condition)$")
STATES = re.compile(
    r'"(open|opened|closed|active|inactive|pending|waiting|ended|done|new|cancelled|canceled|paused|'
    r'lost|won|paid|unpaid|resolved|shipped)"',
    re.I,
)
VAGUE = (
    r"\b(active|inactive|current|regular|loyal|existing|pending|late|overdue|delayed|lost|churned|dormant|outstanding"
    r"|lapsed|frequent|new (?:customers?|clients?|users?|orders?|accounts?))\b"
)
WHOLE = r"\b(all|every|any|ever|or not|still|never|in total|altogether)\b"
PLACE = r"\b(countr(?:y|ies)|cit(?:y|ies)|regions?|markets?)\b"
OWNER = r"\b(billing|shipping|shipped|ship|customers?'s?|clients?'s?|suppliers?'?s?|employees?'?s?|live|lives|based)\b"


def find_open_criterion(subject: QuestionSubject) -> Iterator[OpenReading]:
    praise = subject.has(PRAISE)
    advice = subject.has(ADVICE) if subject.decides else None
    match = praise or advice
    if not match or subject.has(CRITERION):
        return
    after = subject.text[match.end() :].split()[:3] if praise else []
    numbers = [
        column
        for table in subject.tables
        for column in table.columns
        if not (column.key or column.references or "id" in split_name_words(column.name))
    ]
    if len(subject.tables) == 1 and sum(is_number_type(one.type) for one in numbers) < 2:
        return  # there is one thing to go by
    # In "the largest total", the column is the criterion.
    if any(
        set(split_name_words(one.name)) & {strip_plural_ending(word.strip("?.,")) for word in after}
        and is_number_type(one.type)
        for one in numbers
    ):
        return
    wish = re.search(r"should \w+ (\w+)", subject.text)
    words = praise[0] if praise else wish[1] if wish else match[0]
    yield OpenReading(words, ("by money", "by number"), ["most", "least", "by", "highest", "lowest"])


def is_number_type(type_: str) -> bool:
    return bool(re.search(r"int|num|dec|real|double|float|money", type_, re.I))


def find_open_state(subject: QuestionSubject) -> Iterator[OpenReading]:
    tables = subject.named()
    words = " ".join(one for table in subject.tables for column in table.columns for one in column.examples).lower()
    if (vague := subject.has(VAGUE)) and f'"{vague[0]}"' not in words and not has_column_word(vague[0], tables):
        yield OpenReading(
            vague[0], (f"{vague[0]} by the last year of the data", f"{vague[0]} in any other sense"), [vague[0]]
        )
        return
    counts = subject.has(r"\b(how many|most|fewest|number of|does (each|every)|overloaded)\b")
    if not counts or subject.has(WHOLE) or subject.has(r"\bdid (we|they|you|he|she)\b"):
        return
    for table in [*tables, *find_child_tables(tables, subject)]:
        days = [one for one in table.columns if is_day(one)]
        state = find_state_column(table)
        if state is None:
            continue
        stored = [value.strip('"').lower() for value in state.examples]
        own = next(
            (
                word
                for word in subject.tokens
                if strip_plural_ending(word) in {strip_plural_ending(piece) for piece in split_name_words(table.name)}
            ),
            "",
        )
        # A state in the question settles which rows count.
        if any(re.search(rf"\b{re.escape(value)}\b", subject.text) for value in [*stored, "active", "open", "closed"]):
            return
        if any(mentions_date_column(subject, one) for one in days):
            return
        if own or subject.has(r"\bwe have\b"):
            about = own or next(iter(subject.tokens[2:3]), table.name)
            yield OpenReading(
                about,
                (f"all, whatever their {state.name}", f"only those with {state.name} {stored[0]}"),
                [state.name, *stored],
            )
            return


def find_state_column(table: Relation) -> Column | None:
    """Find the column with the state of a row, None if there is none."""
    return next(
        (one for one in table.columns if STATE.match(one.name.lower()) and STATES.search(" ".join(one.examples))), None
    )


def has_column_word(word: str, tables: list[Relation]) -> bool:
    return any(word in split_name_words(column.name) for table in tables for column in table.columns)


def find_child_tables(tables: list[Relation], subject: QuestionSubject) -> list[Relation]:
    """Return the tables whose rows belong to the given ones, if the question says "we have"."""
    if not subject.has(r"\bwe have\b"):
        return []
    return [
        other for other in subject.tables if not other.view and any(one in tables for one in subject.parents(other))
    ]


def find_open_place(subject: QuestionSubject) -> Iterator[OpenReading]:
    match = subject.has(PLACE)
    if not match or subject.has(OWNER):
        return
    word = strip_plural_ending(match[0])
    places = [
        f"{table.name}.{column.name}"
        for table in subject.tables
        if not table.view
        for column in table.columns
        if split_name_words(column.name)[-1] == word
    ]
    if len(places) > 1:
        yield OpenReading(
            match[0],
            tuple(f"{place}" for place in places[:2]),
            [*(place.rpartition(".")[2] for place in places), "billing", "customer's"],
        )


VERBS = (
    r"means|shall mean|(?:is|are) (?:defined as|understood as|taken to (?:mean|be)|any|all|those|one (?:who|that))"
    r"|refers? to|denotes?|stands? for|counts? as"
)
TERM = r"[\"“*_']{0,2}(?P<term>[A-Za-z][\w-]*(?: [\w-]+){0,3}?)[\"”*_']{0,2}"
ARTICLE = r"(?:(?:an?|the|our|every|by) )?"
SENTENCE = re.compile(rf"(?:^|[.!?:;]\s+|\n)\W*{ARTICLE}{TERM},? (?:{VERBS}) (?P<text>[^.\n]{{8,300}})", re.I)
ENTRY = re.compile(rf"^\W*{TERM}\W{{0,2}}(?::| [–—-]) +(?P<text>[^.\n]{{12,300}})", re.M | re.I)
SAME = 0.8
"""Share of the words of two definitions in common from which on they say the same."""
ACCORDING = r"\b(according to|as (in|defined|set out)|in the sense of|by the (definition|standard))\b"
YEAR_IN_TEXT = re.compile(r"\b(?:19|20)\d\d\b")
WRITTEN = re.compile(
    r"\b(published|issued|released|posted|printed|dated|written|last updated)\b[^.\n]{0,30}?\b((?:19|20)\d\d)\b", re.I
)
SAID = (
    r"\b(publish|publication|issued?|releas|posted|printed|written|wrote|dated|report(ed|s)? (in|from)|happen"
    r"|took place|take place|held|occur|effective|in force|as of)"
)


def find_readings_in_passages(question: Question, records: Sequence[Record]) -> list[OpenReading]:
    """Find open readings in passages. records: passages that a search for the question found."""
    documents: dict[str, list[Record]] = {}
    for one in records:
        documents.setdefault(one.source.partition("#")[0], []).append(one)
    text = question.text.lower()
    return [*find_two_definitions(text, documents), *find_event_or_publication(text, documents)]


def find_two_definitions(text: str, documents: Mapping[str, Sequence[Record]]) -> Iterator[OpenReading]:
    if re.search(ACCORDING, text):
        return
    words = [strip_plural_ending(word) for word in WORD.findall(text)]
    known: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for records in documents.values():
        # A document counts once for a term, with its first definition.
        own: dict[tuple[str, ...], tuple[str, str]] = {}
        for one in records:
            title = str(one.fields.get("title") or one.source.partition("#")[0])
            for term, says in find_defined_terms(one.text):
                if contains_term(term, words):
                    own.setdefault(term, (title, says))
        for term, pair in own.items():
            known.setdefault(term, []).append(pair)
    for term, pairs in known.items():
        (title, says), others = pairs[0], pairs[1:]
        other = next(((there, more) for there, more in others if differ_in_words(says, more)), None)
        if other and not any(one.lower() in text for one in (title, other[0])):
            yield OpenReading(
                " ".join(term),
                tuple(
                    f"as {fit_on_one_line(name, 60)} says, {fit_on_one_line(what, 120)}"
                    for name, what in ((title, says), other)
                ),
                term,
            )


def find_defined_terms(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each term that a text defines, with its definition.

    >>> list(find_defined_terms("A regular customer means one who bought twice within a year."))
    [(('regular', 'customer'), 'one who bought twice within a year')]
    """
    for pattern in (SENTENCE, ENTRY):
        for match in pattern.finditer(text):
            yield (
                tuple(strip_plural_ending(word.lower()) for word in WORD.findall(match["term"])),
                " ".join(match["text"].split()),
            )


def contains_term(term: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words of a term stand together in the question."""
    size = len(term)
    return bool(size) and any(tuple(words[at : at + size]) == tuple(term) for at in range(len(words) - size + 1))


def differ_in_words(one: str, other: str) -> bool:
    here, there = ({strip_plural_ending(word.lower()) for word in WORD.findall(text)} for text in (one, other))
    return len(here & there) < SAME * min(len(here), len(there))


def find_event_or_publication(text: str, documents: Mapping[str, Sequence[Record]]) -> Iterator[OpenReading]:
    """Yield an open reading if a year may be of events or of publication.

    Some documents must be from that year about other years, and others from other years about it.
    """
    year = YEAR_IN_TEXT.search(text)
    if year is None or re.search(SAID, text):
        return
    of_it = about_it = False
    for records in documents.values():
        whole = "\n".join(str(one.fields.get("title") or "") + "\n" + one.text for one in records)
        days = {match[2] for match in WRITTEN.finditer(whole)}
        # Without the years of publication, the years that are left are those of events.
        events = set(YEAR_IN_TEXT.findall(WRITTEN.sub(" ", whole)))
        if days:
            of_it |= year[0] in days and bool(events) and year[0] not in events
            about_it |= year[0] not in days and year[0] in events
    if of_it and about_it:
        yield OpenReading(year[0], (f"what happened in {year[0]}", f"what was published in {year[0]}"), ["published"])
