"""An answer read against the records that a model was shown.

``Ground`` indexes the records by their names, numbers and periods. ``Clause`` is a sentence of the answer with its
names, figures, periods and citations. ``AnswerReading`` holds both, with the column that decides and the places in it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeGuard

from decisor.parsing.figures import (
    CITATION,
    UNIT_OF,
    UNITS,
    Period,
    Quantity,
    WrittenCalculation,
    find_citations,
    find_quantities,
    find_written_calculations,
    iterate_numbers,
    iterate_periods,
    split_name,
    unit_of_column,
)
from decisor.types import Observation, Ranking, Record, Value

IS_ENGLISH = re.compile(r"\b(?:the|with|and|has|which)\b", re.I)
DECIMAL_COMMA = re.compile(r"\d,\d{1,2}(?!\d)|\d[.'\s]\d{3},\d")
IDS = {"id", "ids", "key", "code", "uuid", "guid", "phone", "fax", "zip", "postal"}
"""A column whose name ends so holds keys: never quoted as an amount, never calculated with."""
PARTS = {"share", "ratio", "fraction", "proportion", "probability", "quotient", "index", "factor"}
AMOUNTS = set(re.findall(r"\w+", "price cost costs revenue sales turnover profit rent salary wage fee budget"))
COUNTS = {"count", "quantity", "qty", "stock", "orders", "number", "stores", "customers", "invoices", "tracks"}
MOST_LETTERS = 60
"""Mean length of a value above which a column holds sentences, not names."""

BREAK = re.compile(
    r"(?<=[.!?])(?<!\.\.)(?<!\bvs\.)(?<!\bca\.)(?<!\b[Nn]o\.)(?<!\bapprox\.)(?<!e\.g\.)(?<!i\.e\.)[\"'*)\]]*\s+(?=[A-Z\[\d*|(\"'$€£-])"
    r"|\n+|;[^\S\n]+(?=\S)(?![^()]*\))"
)
SEPARATOR = re.compile(r"[|\t]")
"""What stands between the columns of a table."""
LOOSE = re.compile(r"\s*(?:[A-Za-z%€$]+\s+)?(?:or so|give or take|and change)\b|[ -]?ish\b|\+", re.I)
ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.?|ca\.?|circa|some|close to)|[~≈])\s*$", re.I
)
BOUND = re.compile(
    r"\b(?:over|under|above|below|more than|less than|fewer than|at least|at most|up to|exceed\w*|past|beyond"
    r"|pass(?:es)?|reach(?:es)?)\s*$",
    re.I,
)
LABELLED = re.compile(
    r"(?:(?:\b|_)(?:top|first|last|next|option|step|rule|no\.?|number|ranks?|ranked|place|position|part|page|table|figure|level"
    r"|tier|phase|version|id|code|key)|#)\s*$",
    re.I,
)
MAX = r"highest|most|largest|biggest|greatest|maximum|longest"
MIN = r"lowest|least|fewest|smallest|cheapest|shortest|minimum"
HEAD = re.compile(
    r"(?:(?<!\ball )(?<!\bits )(?<!\btheir )\b([A-Za-z]{3,})[*\"`]*\s*[:=]"
    r"|\b(?:number|count) of ([A-Za-z]{3,}) (?:is|was|being)\b)[\s*\"`]*$",
    re.I,
)
"""A word before a colon that says what the figure after it is: "orders: 34", and not "over all orders: 34 EUR"."""
COUNTED = re.compile(r"\d\s+[A-Za-z]+\s*=\s*$")
"""A word that is what was counted, and does not say what the figure after it is: "93.53 over 93 tracks = 1.0057"."""
BARE_NUMBER = re.compile(
    rf"(?<![\w.,$€£%-])\d+(?![\w%])(?![.,]\d)(?!\s*(?:[%€$£]|(?:{'|'.join(map(re.escape, sorted(UNIT_OF)))})\b))", re.I
)
"""A number that may be a key: whole, without a sign, a unit or separators."""
AFTER_ID = re.compile(r"\bid\s*[:=]?\s*$", re.I)
SUPERLATIVE = re.compile(
    rf"\b(?:(?P<max>{MAX}|(?:valor )?más alto|höchste[mnrs]?)|(?P<min>{MIN}|(?:valor )?más bajo|niedrigste[mnrs]?))\b",
    re.I,
)
RULED = re.compile(
    r"\b(?:höchstens|mindestens|darf|nur|ohne|au plus|au moins|como máximo|al menos|at least|at most|no more"
    r"|less than|more than|under|over|above|below|only|without|excluding|except|must"
    r"|should|where|whose|while|unless|if|with|that|who|drop|not)\b",
    re.I,
)
"""Words of a question that restrict its candidates, so that the first of all rows need not be the answer."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a row, or of a passage (column '')."""

    value: float
    id: str
    column: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A name of rows in a text."""

    name: str
    start: int
    end: int
    ids: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """The numbers of one column that holds no keys."""

    table: str
    name: str
    unit: str
    by_id: Mapping[str, float]
    numbers: tuple[float, ...]
    total: float
    largest: tuple[float, ...]
    """At most five, the largest first."""
    smallest: tuple[float, ...]

    @property
    def mean(self) -> float:
        return self.total / len(self.numbers)

    def row_of(self, name: Mention) -> str | None:
        """Return the one row of a name in this table."""
        ids = [id for id in name.ids if table_of(id) == self.table]
        return ids[0] if len(ids) == 1 else None

    def values(self, names: Iterable[Mention]) -> list[tuple[str, float]]:
        """Return the names that have a number here, with it."""
        rows = [(name.name, self.row_of(name) or "") for name in names]
        return [(name, self.by_id[row]) for name, row in rows if row in self.by_id]

    def ranks(self, id: str | None) -> tuple[range, range] | None:
        """Return the places of a row from the largest and from the smallest; equal numbers share theirs."""
        if id is None or id not in self.by_id:
            return None
        # Sums of floats differ in their last digits: such numbers are equal.
        own, room = self.by_id[id], 1e-9 * abs(self.by_id[id])
        above = sum(number > own + room for number in self.numbers)
        below = sum(number < own - room for number in self.numbers)
        return range(above + 1, len(self.numbers) - below + 1), range(below + 1, len(self.numbers) - above + 1)


class Ground:
    """The records that a model was shown."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.records = records
        self.tables: dict[str, list[Record]] = {}
        self.ids_of_text: dict[str, set[str]] = {}
        self.names: dict[str, str] = {}
        """Name in lower case -> name."""
        self.name_of: dict[str, str] = {}
        """Id of a row -> its name."""
        self.ids_of_key: dict[str, set[str]] = {}
        """Whole number in a column of keys -> ids of the rows with it."""
        for record in records.values():
            self.tables.setdefault(table_of(record.id), []).append(record)
        for rows in self.tables.values():
            texts: dict[str, list[str]] = {}
            for row in rows:
                for column, value in row.fields.items():
                    if isinstance(value, str) and value:
                        self.ids_of_text.setdefault(value.strip().lower(), set()).add(row.id)
                        texts.setdefault(column, []).append(value)
                    elif type(value) is int and is_key(column):
                        self.ids_of_key.setdefault(str(value), set()).add(row.id)
            columns = [column for column, values in texts.items() if not rows[0].text and are_names(values)]
            for column in columns:
                # The first column of names names the rows. A further one does only if it tells all rows apart.
                if column != columns[0] and (is_key(column) or len(set(texts[column])) < len(rows)):
                    continue
                for row in rows:
                    if isinstance(value := row.fields.get(column), str) and value.strip():
                        self.names.setdefault(value.strip().lower(), value.strip())
                        self.name_of.setdefault(row.id, value.strip())

    @cached_property
    def column_names(self) -> set[str]:
        return {column for rows in self.tables.values() for column in rows[0].fields}

    @cached_property
    def columns(self) -> list[NumberColumn]:
        columns = []
        for table, rows in self.tables.items():
            for name in rows[0].fields:
                values = [] if is_key(name) else [(row.id, row.fields.get(name)) for row in rows]
                by_id = {id: float(value) for id, value in values if is_number(value)}
                if numbers := tuple(by_id.values()):
                    ordered, unit = sorted(numbers), unit_of_column(name)
                    largest, smallest = tuple(ordered[:-6:-1]), tuple(ordered[:5])
                    columns.append(
                        NumberColumn(table, name, unit, by_id, numbers, math.fsum(numbers), largest, smallest)
                    )
        return columns

    @cached_property
    def ranked_columns(self) -> list[NumberColumn]:
        """The columns of tables with one row for each name."""
        owners = {table: {self.name_of.get(row.id, "") for row in rows} for table, rows in self.tables.items()}
        named = {table for table, names in owners.items() if len(names) == len(self.tables[table]) > 1}
        return [column for column in self.columns if column.table in named and len(column.by_id) > 1]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every number of a row, keys apart, smallest first."""
        cells = []
        keys = {column for column in self.column_names if is_key(column)}
        for record in self.records.values():
            for column, value in record.fields.items():
                if value is None or column in keys or isinstance(value, bool):
                    continue
                if type(value) in (int, float):
                    cells += [Cell(abs(float(value)), record.id, column)] if is_number(value) else []
                else:
                    numbers = numbers_of_text(value) if isinstance(value, str) else iterate_numbers(value)
                    cells += (Cell(abs(number), record.id, column) for number in numbers)
            if record.text:
                cells += (Cell(abs(number), record.id, "") for number in iterate_numbers(record.text))
        return sorted(cells, key=lambda cell: cell.value)

    @cached_property
    def _sizes(self) -> list[float]:
        return [cell.value for cell in self.cells]

    def between(self, low: float, high: float) -> Iterable[Cell]:
        # Cells are sorted by size, so a figure looks at those of its size alone.
        for at in range(bisect_left(self._sizes, low), len(self.cells)):
            if self.cells[at].value > high:
                return
            yield self.cells[at]

    def cells_with(self, figure: Quantity) -> list[Cell]:
        """Return the cells that a figure rounds, whatever their unit."""
        cells: dict[Cell, None] = {}
        for meaning in figure.meanings:
            value, near = abs(meaning.value), meaning.room * (1 + 1e-9) + 1e-9 * abs(meaning.value)
            cells |= dict.fromkeys(self.between(value - near, value + near))
            # 12 % may be stored as 0.12.
            if figure.unit == "%" or (figure.is_word and value == 0.5):
                parts = self.between((value - near) / 100, (value + near) / 100)
                cells |= dict.fromkeys(cell for cell in parts if not unit_of_column(cell.column) or cell.value <= 1)
            for unit, size in list_convertible_units(figure.unit):
                converted = self.between((value - near) * size, (value + near) * size)
                cells |= dict.fromkeys(cell for cell in converted if unit_of_column(cell.column) == unit)
        return list(cells)

    def fits_unit(self, figure: Quantity, cell: Cell) -> bool:
        """Return whether the unit that is written may be that of the column."""
        unit, words = unit_of_column(cell.column), set(split_name(cell.column))
        value = abs(figure.meanings[0].value)
        if not figure.unit or not cell.column or unit == figure.unit:
            return True
        if figure.unit == "%" and unit == "":
            is_part = abs(cell.value * 100 - value) < abs(cell.value - value)
            return is_part or not (words & (AMOUNTS | COUNTS) or (words & PARTS and cell.value < 2))
        if unit == "":
            return not (UNITS[figure.unit][0] == "money" and words & COUNTS)
        is_same = any(abs(cell.value - abs(meaning.value)) <= meaning.room * 1.001 for meaning in figure.meanings)
        return not is_same and any(unit == convertible for convertible, _ in list_convertible_units(figure.unit))

    def periods_of(self, id: str) -> list[Period]:
        """Return the dates, months and years that a row holds."""
        record = self.records[id]
        periods = list(iterate_periods(record.text))
        for value in record.fields.values():
            if isinstance(value, str):
                periods += iterate_periods(value)
            elif isinstance(value, int) and 1900 <= value < 2100:
                periods.append(Period(str(value), 0, 0, value))
        return periods

    def mentions(self, text: str, has_keys: bool = True) -> list[Mention]:
        """Return the names of rows in a text, the longest first where they overlap.

        has_keys: whether a whole number that is a key of a row names it. Else only one behind "id", or alone.
        """
        low = text.lower()
        if len(low) != len(text):  # Of a few letters the small form is longer, and places would not agree.
            low = text
        names = sorted((name for name in self.names if name in low), key=len, reverse=True)
        # A first or last word that belongs to one name alone stands for it.
        capitalized = {word.lower() for word in re.findall(r"\b[A-Z]\w{3,}", text)}
        owners: dict[str, set[str]] = {}
        for name in self.names:
            parts = re.findall(r"\w+", name)
            for part in {parts[0], parts[-1]} & capitalized if len(parts) > 1 else ():
                owners.setdefault(part, set()).add(name)
        short = [(part, min(full)) for part, full in owners.items() if len(full) == 1 and part not in self.names]
        mentions: list[Mention] = []
        for name, full_name in [*((name, name) for name in names), *short]:
            for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", low):
                start, end = match.span()
                if any(start < mention.end and mention.start < end for mention in mentions):
                    continue
                is_as_shown = text[start:end] == self.names[full_name] and name not in ("a", "i")
                if text[start].isupper() if name != full_name else len(name) > 2 or is_as_shown:
                    ids = frozenset(self.ids_of_text[full_name])
                    mentions.append(Mention(self.names[full_name], start, end, ids))
        mentions += (
            Mention(match[0], *match.span(), frozenset(self.ids_of_key[match[0]]))
            for match in (BARE_NUMBER.finditer(text) if self.ids_of_key else ())
            if match[0] in self.ids_of_key
            and ((has_keys and len(match[0]) > 2) or match[0] == text.strip() or AFTER_ID.search(text[: match.start()]))
            and not any(match.start() < mention.end and mention.start < match.end() for mention in mentions)
        )
        return sorted(mentions, key=lambda mention: mention.start)

    def label(self, id: str) -> str:
        """
        >>> Ground({"o1.r1": Record("o1.r1", {"site": "elm"})}).label("o1.r1")
        'o1.r1 (elm)'
        """
        return f"{id} ({self.name_of[id]})" if id in self.name_of else id


@lru_cache(maxsize=4096)
def is_key(column: str) -> bool:
    """
    >>> is_key("ProductID"), is_key("postal_code"), is_key("paid")
    (True, True, False)
    """
    return (split_name(column) or ("",))[-1] in IDS


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def table_of(id: str) -> str:
    return id.partition(".")[0]


def are_names(values: Sequence[str]) -> bool:
    if sum(map(len, values)) > MOST_LETTERS * len(values):
        return False
    has_letters = all(re.search(r"[^\W\d_]", value) for value in values[:5])
    return has_letters and not any(True for value in values[:3] for _ in iterate_periods(value))


@lru_cache(maxsize=4096)
def numbers_of_text(text: str) -> tuple[float, ...]:
    """Return the numbers of a cell that holds text. A date has none."""
    is_date = any(True for _ in iterate_periods(text))
    return () if not re.search(r"\d", text) or is_date else tuple(iterate_numbers(text))


def list_convertible_units(unit: str) -> list[tuple[str, float]]:
    """Return the other units of a dimension, each with its factor. Money and counts have none."""
    if unit not in UNITS or UNITS[unit][0] in ("money", "share", "count"):
        return []
    dimension, size, _ = UNITS[unit]
    return [(name, size / by) for name, (kind, by, _) in UNITS.items() if kind == dimension and name != unit]


@dataclass(frozen=True)
class Claims:
    """A final answer in parts, with the ids that it cites."""

    answer: str
    because: str
    runner_up: str = ""
    cited: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clause:
    """A sentence, or the text up to a semicolon or line end."""

    text: str
    masked: str
    """The text with X for letters of names, Y for those of periods and blanks for citations."""
    names: tuple[Mention, ...]
    figures: tuple[Quantity, ...]
    periods: tuple[Period, ...]
    cited: tuple[tuple[int, int, tuple[str, ...]], ...]
    """Start, end and ids of each citation."""
    heads: tuple[str, ...] = ()
    """Column heads of the table of which it is a line. Empty: it is no line of a table."""

    @cached_property
    def cited_ids(self) -> frozenset[str]:
        return frozenset(id for _, _, ids in self.cited for id in ids)

    @cached_property
    def sole_id(self) -> str:
        """The one row that is cited; empty where none or several are."""
        return next(iter(self.cited_ids)) if len(self.cited_ids) == 1 else ""

    @cached_property
    def name_ids(self) -> frozenset[str]:
        return frozenset(id for name in self.names for id in name.ids)

    @cached_property
    def calculations(self) -> list[WrittenCalculation]:
        """Calculations that it writes out, such as 66 + 56 = 122."""
        return list(find_written_calculations(re.sub(r"[$€£](?=\s*\d)|(?<![\d*])\*{1,2}(?=\d)", "", self.text)))

    def head_of(self, figure: Quantity) -> str:
        """Return the head of the column of a table that a figure stands in, or of its line where names are heads."""
        is_turned = any(name.start == name.end for name in self.names)
        words = tuple(map(str.strip, SEPARATOR.split(self.masked))) if is_turned else self.heads
        at = 1 if is_turned else len(SEPARATOR.findall(self.masked[: figure.start]))
        return words[at] if at < len(words) else ""

    def around(self, figure: Quantity) -> tuple[str, str]:
        """Return the text before and after a figure."""
        return self.masked[: figure.start], self.masked[figure.end :]

    def rows_before(self, at: int) -> frozenset[str]:
        """Return the rows of the name before a place, narrowed by the names before that."""
        rows: frozenset[str] = frozenset()
        for name in reversed([name for name in self.names if name.end <= at]):
            lost = {table_of(id) for id in (rows & self.cited_ids) - name.ids}
            # "Into Genua: Elm gains 5 [o7.r1]": only o2 holds both names, and o7 is what is spoken of.
            if rows and (not rows & name.ids or lost - {table_of(id) for id in rows & name.ids}):
                break
            rows = rows & name.ids if rows else name.ids
        return rows

    def rows_after(self, at: int) -> frozenset[str]:
        return next((name.ids for name in self.names if name.start >= at), frozenset())

    def cited_for(self, figure: Quantity) -> str:
        """Return the one row that is cited right after a figure; empty without one."""
        starts = [*(known.start for known in self.figures), *(name.start for name in self.names)]
        if not self.cited or not any(start < self.cited[0][0] for start in starts):
            return ""  # The citations stand ahead of what they are for.
        for start, _, ids in self.cited:
            if start >= figure.end:
                between = self.masked[figure.end : start]
                is_near = bool(re.fullmatch(r"[^A-Za-z]*(?:(?!and\b)[A-Za-z]+[^A-Za-z]*){0,2}", between))
                is_near = is_near and not any(figure.end <= at < start for at in starts)
                # Of several in a row each belongs to another figure, and nothing says which.
                rest = [place for place in [*starts, *(place for place, _, _ in self.cited)] if place > start]
                is_run = min(rest, default=0) not in starts and len(rest) > 0
                return ids[0] if len(ids) == 1 and is_near and not is_run else ""
        return ""


@dataclass(frozen=True)
class AnswerReading:
    """One answer and its ground."""

    claims: Claims
    ground: Ground
    question: str
    ranked: Observation | None = None
    """The observation whose ranking the answer should follow."""
    known: str = ""
    """Text beside the records that the model was given."""

    @property
    def ranking(self) -> Ranking | None:
        return self.ranked.ranking if self.ranked else None

    @cached_property
    def reasons(self) -> list[Clause]:
        return list(self.clauses(self.claims.because))

    @cached_property
    def runner_up(self) -> list[Clause]:
        return list(self.clauses(self.claims.runner_up))

    @cached_property
    def given_figures(self) -> list[Quantity]:
        """Figures of the question and of the text that came with the records."""
        return find_quantities(f"{self.question}\n{self.known}")

    @cached_property
    def subject(self) -> Mention | None:
        """The rows of the answer."""
        names = self.ground.mentions(self.claims.answer)
        return names[0] if len(names) == 1 else None

    @cached_property
    def has_texts(self) -> bool:
        """Whether passages were shown: which name a passage speaks of is not read."""
        return any(record.text for record in self.ground.records.values())

    @cached_property
    def is_by_key(self) -> bool:
        """Whether the candidates are named by keys: else a figure that happens to be one would name a row."""
        return any(key in self.ground.ids_of_key for key in re.findall(r"\b\d+\b", self.claims.answer))

    def clauses(self, text: str) -> Iterator[Clause]:
        names = self.ground.mentions(text, self.is_by_key)
        cites = list(CITATION.finditer(text))
        masked = text
        for name in names:
            # As many letters as before, so that places in the masked text are those of the text.
            masked = masked[: name.start] + "X" * (name.end - name.start) + masked[name.end :]
        for match in cites:
            # "Elm leads. [o1.r2] gives Oak 5": a citation that begins a sentence is kept as its mark.
            is_first = re.search(r"[.!?]\s+$", masked[: match.start()]) and re.match(r"\s+[a-z]", text[match.end() :])
            blank = ("[" if is_first else " ").ljust(len(match.group()))
            masked = masked[: match.start()] + blank + masked[match.end() :]
        start = 0
        heads: tuple[str, ...] = ()
        head_names: list[tuple[int, Mention]] = []
        for end, after in [*(match.span() for match in BREAK.finditer(masked)), (len(text), len(text))]:
            piece = masked[start:end]
            if text[start:end].strip():
                periods = tuple(iterate_periods(piece))
                for period in periods:
                    piece = piece[: period.start] + "Y" * len(period.text) + piece[period.end :]
                is_line = piece.lstrip().startswith("|") or piece.count("\t") > 1
                is_placed = masked[start:end] != text[start:end]  # by a name or citation
                own = [
                    replace(name, start=name.start - start, end=name.end - start)
                    for name in names
                    if start <= name.start < end
                ]
                if is_line and not heads:
                    head_names = [(len(SEPARATOR.findall(piece[: name.start])), name) for name in own]
                elif is_line and not own and len(head_names) > 1:
                    # "| | Elm | Oak |" above "| revenue | 5,495 | 5,120 |": the names stand in the head.
                    cells = [0, *(match.end() for match in SEPARATOR.finditer(piece)), len(piece)]
                    inside = [(cells[at], name) for at, name in head_names if at < len(cells)]
                    own = [replace(name, start=place, end=place) for place, name in inside]
                heads = () if not is_line else heads or tuple(head.strip() for head in SEPARATOR.split(piece))
                yield Clause(
                    text[start:end],
                    piece,
                    tuple(own),
                    tuple(
                        widen(self.settle_mark(figure), piece, is_placed)
                        for figure in find_quantities(piece)
                        if is_claim(figure, piece)
                    ),
                    periods,
                    tuple(
                        (match.start() - start, match.end() - start, find_citations(match.group(), self.ground.records))
                        for match in cites
                        if start <= match.start() < end
                    ),
                    heads,
                )
            # "Next is Elm; [o1.r9] gives it 969": the blanks of a citation are no part of the break.
            cut = next((match.start() for match in cites if end < match.start() < after), after)
            start = cut if text[end:cut].startswith((";", "\n")) else after

    def settle_mark(self, figure: Quantity) -> Quantity:
        """Return a figure with the one meaning that it has in English: 8,400 is no 8.4 there."""
        has_one_mark = "," in figure.text and "." not in figure.text
        return replace(figure, meanings=figure.meanings[:1]) if has_one_mark and self.is_english else figure

    @cached_property
    def is_english(self) -> bool:
        """Whether the answer is in English, and no figure of it has a decimal comma."""
        text = f"{self.claims.because} {self.claims.runner_up}"
        return IS_ENGLISH.search(text) is not None and not DECIMAL_COMMA.search(text)

    def cells(self, figure: Quantity, clause: Clause) -> list[Cell]:
        cells, value = self.ground.cells_with(figure), abs(figure.meanings[0].value)
        # "Over 40,000" is a bound, not a rounding: numbers up to half as much again count.
        bound = None if cells else BOUND.search(clause.masked[: figure.start])
        if bound and (figure.unit or rounded_to(value) > 1):  # Nobody says over 42 of 44.
            is_low = re.match(r"over|above|more|at least|exceed", bound.group(), re.I)
            return list(self.ground.between(value, value * 1.5) if is_low else self.ground.between(value / 1.5, value))
        return cells

    def noun_columns(self, figure: Quantity, clause: Clause) -> set[str]:
        """Return the columns that the word after a figure names, or the head above it: "34 orders"."""
        before, after = clause.around(figure)
        # "late 2 of orders 123": the column is named before the figure.
        ahead = re.search(r"([A-Za-z]\w+)[\s*\"`]*$", before)
        if ahead and not clause.heads and any(column.name == ahead[1] for column in self.ground.columns):
            return {ahead[1]}
        match, names = re.match(r"[*]*\s+(?:of the |of )?([A-Za-z]{3,})", after), self.ground.column_names
        head = HEAD.search(before) if match is None and not COUNTED.search(before) else None
        # "In that order: 5,495" names no column orders.
        if head and any((head[1] or head[2]).lower() == split_name(name)[0] for name in names if split_name(name)):
            match = head
        if clause.heads:
            match = re.fullmatch(r"\W*([A-Za-z]{3,})\W*", clause.head_of(figure))
        noun = stem(next(filter(None, match.groups())).lower()) if match and not figure.unit else ""
        if noun in ("", "time", "than", "more", "less"):
            return set()
        return {
            name
            for rows in self.ground.tables.values()
            for name, value in rows[0].fields.items()
            if not is_key(name)
            and isinstance(value, int | float)
            and split_name(name)
            and noun == stem(split_name(name)[0])
            and COUNTS.issuperset(split_name(name)[1:])  # "44.01 stored" is of no stored_ratio
        }

    @cached_property
    def deciding(self) -> NumberColumn | None:
        """The column that most figures of the answer are from, of those that the question names where it names any."""
        counts: Counter[tuple[str, str]] = Counter()
        for clause in self.reasons:
            rows = clause.name_ids | clause.cited_ids
            for figure in clause.figures:
                if figure.digits > 2 or figure.unit:
                    cells = [cell for cell in self.cells(figure, clause) if cell.id in rows]
                    fitting = {
                        (table_of(cell.id), cell.column) for cell in cells if self.ground.fits_unit(figure, cell)
                    }
                    counts.update(sorted(fitting))
        ranked = {(column.table, column.name): column for column in self.ground.ranked_columns}
        places = [place for place, _ in counts.most_common() if place in ranked]
        asked = [place for place in places or ranked if self.is_asked(place[1])]
        if asked or not places:
            return ranked[asked[0]] if asked and (places or len(asked) == 1) else None
        if any(self.is_asked(name) for _, name in ranked):
            return None  # The question is about a column of which the answer gives no figure.
        return ranked[places[0]] if len(places) == 1 or counts[places[0]] > counts[places[1]] else None

    def is_asked(self, column: str) -> bool:
        """Return whether the question names a column, or its unit."""
        wording = re.findall(r"[a-z]+", self.question.lower().replace("kilowatt hours", "kwh"))
        units = {UNIT_OF[word] for word in wording if len(word) > 1 and word in UNIT_OF}
        return unit_of_column(column) in units or bool({*map(stem, wording)} & {*map(stem, split_name(column))})

    @cached_property
    def goal(self) -> str:
        """max or min if the question asks for one extreme and restricts nothing; else empty."""
        goals = {"max" if match["max"] else "min" for match in SUPERLATIVE.finditer(self.question)}
        return goals.pop() if len(goals) == 1 and not RULED.search(self.question) else ""

    def name(self, id: str) -> str:
        return self.ground.name_of.get(id, id)

    def recent(self, memory: Sequence[Mention]) -> list[Mention]:
        """Return the names of which a clause without a name may speak."""
        return [*reversed(memory), *([self.subject] if self.subject else [])]


def widen(figure: Quantity, text: str, is_placed: bool) -> Quantity:
    """Return the figure with more room if it is round and of a name or row, or its text says that it is about right."""
    size = abs(figure.meanings[0].value) if figure.meanings[0].room <= 0.5 else 0.0
    # Zeros at the end are seldom exact, whatever the words around say.
    last = rounded_to(size) if size == int(size) and "." not in figure.text else 1.0
    is_about = (is_placed and last >= 100) or ABOUT.search(text[: figure.start]) or LOOSE.match(text[figure.end :])
    if figure.is_word or not is_about:
        return figure
    meanings = []
    for meaning in figure.meanings:
        value = abs(meaning.value)
        room = min(rounded_to(value) if value == int(value) else 2 * meaning.room, value / 20)
        meanings.append(replace(meaning, room=max(meaning.room, room)))
    return replace(figure, meanings=tuple(meanings))


def is_claim(figure: Quantity, text: str) -> bool:
    """Return whether a figure is more than the number of a list item, a rank or a label."""
    before, after = text[: figure.start], text[figure.end :]
    is_item = not before.strip(" -*(|") and re.match(r"[.)]\s", after)
    is_time = re.search(r"\d:$", before) or re.match(r":\d\d\b", after)
    if figure.digits < 3 and (LABELLED.search(before) or is_item or is_time):
        return False
    value = figure.meanings[0].value
    if figure.text.lower() in ("zero", "one", "half") or value == 0 or (value == 100 and figure.digits == 3):
        return False
    return not (figure.is_word and not re.match(r"\s+[a-z]", after))


def fits(figure: Quantity, *values: float) -> bool:
    """Return whether the figure rounds one of the values, whatever the sign."""
    bounds = [(abs(one.value), one.room * (1 + 1e-6) + 1e-9 * abs(one.value)) for one in figure.meanings]
    return any(abs(abs(value) - size) <= room for value in values for size, room in bounds)


def stem(word: str) -> str:
    """
    >>> stem("countries"), stem("orders"), stem("boxes"), stem("cost")
    ('countr', 'order', 'box', 'cost')
    """
    return re.sub(r"(?:ies|y|(?<=[sx])es|s)$", "", word)


def rounded_to(value: float) -> float:
    """Return the place of the last digit that is not zero.

    >>> rounded_to(1300.0), rounded_to(2.0)
    (100.0, 1.0)
    """
    size = 1.0
    while value and value % (size * 10) == 0:
        size *= 10
    return size
