"""A schema that is too long to show whole, within a budget of tokens: the tables that fit the question best with their
columns in full, more of them with a line each, the rest by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from decisor.calls.estimates import tokens_in
from decisor.outside import one_line
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.engine import Engine
from decisor.tools.databases.schema_index import SchemaIndex, column_fits, masked
from decisor.tools.databases.schema_words import question_words
from decisor.tools.databases.sql_render import (
    COMMENT_CHARS,
    about,
    column_line,
    dotted,
    head,
    identifier,
    path,
    render,
    table_head,
    table_texts,
)
from decisor.tools.databases.sql_tables import ColumnInfo, TableInfo

BUDGET = 2_000
"""Tokens of a schema, by estimate."""
LINES, NAMES = 0.65, 0.08
"""Shares of the budget: for a line each, and for names alone. What is left is for columns in full."""
FEW, MANY = 5, 14
"""Columns of a table that has a line, and of one that is shown in full; more where the question names them."""
NAMED = 0.99
LEAST = 2
"""Tokens of a column, however short."""
HOW = (
    "It has {count} tables; those that fit the question best are shown. Other inputs: `describe TABLE` shows all of a "
    "table, `find WORDS` says which tables, columns and stored values have them."
)


@dataclass(frozen=True, slots=True)
class TableView:
    """One table of a brief schema. ``columns``: how many of them; ``whole``: with types and examples. ``alike``: tables
    that are named with it, since their names differ in digits only."""

    table: str
    columns: tuple[str, ...]
    whole: bool
    tokens: int
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """``text`` is what a model reads. ``others``: how many tables are there by name or number alone. ``complete``:
    it is all of the schema."""

    text: str
    tables: tuple[TableView, ...]
    others: int
    complete: bool = False

    @property
    def tokens(self) -> int:
        return tokens_in(self.text)


@dataclass(frozen=True, slots=True)
class Entry:
    """A family of tables on its way into the text."""

    table: TableInfo
    alike: tuple[str, ...]
    order: tuple[int, ...]
    named: int

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.table.columns)


def schema_text(engine: Engine, index: SchemaIndex, question: str, budget: int = BUDGET) -> Brief:
    """The whole schema where the budget suffices."""
    columns = sum(len(table.columns) for table in index.tables)
    if LEAST * columns <= budget:
        text = render(engine, index.tables)
        if tokens_in(text) <= budget:
            parts = table_texts(engine, index.tables)
            tables = (TableView(one.name, tuple(column.name for column in one.columns), True, tokens_in(part))
                      for one, part in zip(index.tables, parts, strict=True))  # fmt: skip
            return Brief(text, tuple(tables), 0, complete=True)
    return brief(engine, index, question, budget)


def brief(engine: Engine, index: SchemaIndex, question: str, budget: int = BUDGET) -> Brief:
    """At most ``budget`` tokens by estimate, but for a budget that its first lines fill."""
    words = frozenset(question_words(question))
    fits = index.rank(question)
    entries = Lazy(lambda at: entry_of(index, fits[at].family.tables, words, question), len(fits))
    begin = [*head(engine), HOW.format(count=len(index.tables))]
    left = budget - tokens_in("\n".join(begin)) - 1
    names_left = min(left * NAMES, 3.0 * len(index.tables))
    left -= int(names_left)
    page = Page(left, engine.dialect)
    for entry in entries:
        if not page.add(entry, LINES):
            break
    for at in range(len(page.texts)):
        if not page.widen(at):
            break
    for at in range(len(page.texts), len(fits)):
        if not page.add(entries[at], 1.0):
            break
    texts = page.texts
    left += int(names_left) - sum(page.costs)
    others = len(index.tables) - sum(len(fit.family.tables) for fit in fits[: len(texts)])
    last = [index.tables[fit.family.tables[-1]].name for fit in fits[len(texts) :]]
    rest = names_of(last, others, left)
    tables = tuple(
        TableView(one.table.name, tuple(one.table.columns[number].name for number in columns_of(one, at < page.wholes)),
              at < page.wholes, page.costs[at], one.alike)
        for at, one in enumerate(page.entries)
    )  # fmt: skip
    return Brief("\n".join([*begin, *texts, *rest]), tables, others)


@dataclass(eq=False)
class Page:
    """Texts of tables, as many as there is room for (``left``, in tokens)."""

    left: int
    dialect: Dialect | None
    entries: list[Entry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    wholes: int = 0
    firsts: dict[tuple[str, ...], str] = field(default_factory=dict)

    def add(self, entry: Entry, share: float) -> bool:
        """A line for it; False where ``share`` of the room does not suffice."""
        text = line_of(entry, self.dialect, self.firsts.get(entry.columns, ""))
        cost = tokens_in(text + "\n")
        if sum(self.costs) + cost > self.left * share:
            return False
        self.entries.append(entry)
        self.texts.append(text)
        self.costs.append(cost)
        if len(entry.columns) > 2:
            self.firsts.setdefault(entry.columns, path(entry.table, self.dialect))
        return True

    def widen(self, at: int) -> bool:
        """The block of a table instead of its line; False where there is no room."""
        entry = self.entries[at]
        name = path(entry.table, self.dialect)
        if self.firsts.get(entry.columns, name) != name:
            self.wholes = at + 1  # its columns stand with another table, in full
            return True
        text = block_of(entry, self.dialect)
        cost = tokens_in(text + "\n")
        if sum(self.costs) - self.costs[at] + cost > self.left:
            return False
        self.texts[at], self.costs[at], self.wholes = text, cost, at + 1
        return True


class Lazy:
    """A sequence whose items are made when they are first looked at: most families of a large schema never are."""

    def __init__(self, make: Callable[[int], Entry], length: int) -> None:
        self.make, self.items, self.length = make, dict[int, Entry](), length

    def __getitem__(self, at: int) -> Entry:
        if at not in self.items:
            self.items[at] = self.make(at)
        return self.items[at]

    def __iter__(self) -> Iterator[Entry]:
        return (self[at] for at in range(self.length))


def entry_of(index: SchemaIndex, members: Sequence[int], words: frozenset[str], question: str) -> Entry:
    """The member of a family that has the question's numbers in its name, else the last."""
    numbers = {word for word in words if word.isdigit()}
    tables = [index.tables[number] for number in members]

    def likeness(at: int) -> tuple[bool, int, int]:
        name = tables[at].name.lower()
        return name in question.lower(), sum(number in name for number in numbers), at

    table = tables.pop(max(range(len(tables)), key=likeness) if len(tables) > 1 else 0)
    fits = list(column_fits(table.columns, words))
    seen: dict[str, int] = {}
    repeats = []
    for column in table.columns:
        repeats.append(seen.get(mask := masked(column.name), 0) > 1)
        seen[mask] = seen.get(mask, 0) + 1

    def worth(number: int) -> tuple[bool, bool, float, int]:
        column = table.columns[number]
        linked = column.key or bool(column.references or column.joins)
        return (fits[number] < NAMED, repeats[number] and fits[number] < NAMED, -fits[number] - 0.5 * linked, number)

    order = sorted(range(len(table.columns)), key=worth)
    return Entry(table, tuple(one.name for one in tables), tuple(order), sum(fit >= NAMED for fit in fits))


def columns_of(entry: Entry, whole: bool) -> list[int]:
    """Which of its columns are shown, in the table's order."""
    most = max(MANY if whole else FEW, min(entry.named, MANY))
    if len(entry.order) <= most + 2:
        return sorted(entry.order)
    return sorted(entry.order[:most])


def line_of(entry: Entry, dialect: Dialect | None, same: str = "") -> str:
    """A table with a few of its columns, in one line. ``same``: a table before it that has the same columns."""
    if same:
        return f"{table_head(entry.table, dialect)}{alike(entry)}: columns as in {same}"
    columns = [entry.table.columns[number] for number in columns_of(entry, whole=False)]
    names = [identifier(column.name, dialect) + pointer(column, dialect) for column in columns]
    more = len(entry.table.columns) - len(columns)
    return f"{table_head(entry.table, dialect)}{alike(entry)}: {', '.join(names)}{f', +{more}' if more else ''}"


def block_of(entry: Entry, dialect: Dialect | None) -> str:
    """A table with a line for each of its columns, but for those of a wide one that the question does not name."""
    numbers = columns_of(entry, whole=True)
    lines = [table_head(entry.table, dialect) + alike(entry) + about(entry.table.comment)]
    for number in numbers:
        column = entry.table.columns[number]
        lines.append(column_line(replace(column, examples=column.examples[:2]), dialect) + about(column.comment))
    if more := len(entry.table.columns) - len(numbers):
        lines.append(f"  +{more} columns")
    return "\n".join(lines)


def pointer(column: ColumnInfo, dialect: Dialect | None) -> str:
    table, _, name = (column.references or column.joins).rpartition(".")
    return f" -> {dotted(table, dialect)}({identifier(name, dialect)})" if table else ""


def alike(entry: Entry) -> str:
    """
    >>> alike(Entry(TableInfo("day_3", ()), ("day_1", "day_2"), (), 0))
    ' and 2 alike (day_1 to day_2)'
    """
    if not entry.alike:
        return ""
    order = sorted(entry.alike, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    names = order if len(order) == 1 else [order[0], order[-1]]
    return f" and {len(entry.alike)} alike ({' to '.join(one_line(name, COMMENT_CHARS) for name in names)})"


def names_of(names: Sequence[str], count: int, tokens: float) -> list[str]:
    """The line of the other tables: as many names as there is room for. ``count``: how many tables they stand for."""
    if not names:
        return []
    room, texts = tokens - 16, []
    for name in names:
        text = one_line(name, COMMENT_CHARS)
        room -= tokens_in(text + ", ") + 1
        if room < 0:
            break
        texts.append(text)
    if not texts:
        return [f"And {count} more tables."]
    rest = "" if len(texts) == len(names) else ", ..."
    return [f"{count} more tables: {', '.join(texts)}{rest}"]
