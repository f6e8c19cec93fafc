"""Converts columns of texts that are numbers, dates or truth values to a person; says which stay text, and why.

Plain types come first; then numbers and dates as people write them, with the columns that settle their form before
those that do not. The limits on memory and size for a process that reads files are here too.
"""

from __future__ import annotations

import csv
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.databases.files.numerals import (
    CELL,
    ERRORS,
    PLAIN,
    READ,
    SPACES,
    Numerals,
    SeparatorEvidence,
    WrittenDates,
    count_dates,
    count_numerals,
    explain_text_column,
    note_numbers,
    reads_as_date,
    reads_as_number,
    sql_bare,
    sql_date,
    sql_missing,
    sql_number,
    sql_text,
    sql_texts,
    sql_tidy,
)
from decisor.sandbox.wire import number_repeated_names
from decisor.system.secrets import redact
from decisor.system.text import fit_on_one_line, quote_identifier
from decisor.system.wording import format_count

if TYPE_CHECKING:
    import duckdb


TOTALS = ("total", "totals", "grand total", "sum", "summe", "gesamt", "insgesamt", "gesamtsumme", "totaal", "totale")
"""What people write before a row that adds up the others, in lower case."""
SUBTOTAL = "(total|subtotal|summe|ergebnis|gesamt)"
TOTAL_START = r"((grand|overall|sub)? ?(total|sum|summe|gesamt|all)\b|$)"
"""What a name begins with, or that there is none, where the figures of the row tell whether it is a total."""
SMALL = 100_000
"""Rows of a table in which a total is looked for."""
SAMPLE = 1_000
"""Texts of a column by which it is decided what it might be."""
EXACT = 2**53
"""From here on a DOUBLE holds not every whole number."""


@dataclass(frozen=True, slots=True)
class PlainType:
    """A column type and the pattern of its texts, the same to DuckDB and to Python.

    A cast alone would round 1.5 to a whole number, drop the zeros of 007 and the hours of +02:00, and take 0x1F.
    """

    type: str
    pattern: str
    value: str = "TRY_CAST({x} AS {type})"
    """SQL that converts a text, with ``{x}`` for the text."""

    def sql_value(self, text: str) -> str:
        return self.value.format(x=text, type=self.type)

    def sql_fits(self, text: str) -> str:
        return f"regexp_full_match({text}, {sql_text(self.pattern)}) AND {self.sql_value(text)} IS NOT NULL"


DAY, TIME_OF_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?"
WHOLE = PlainType("BIGINT", "[+-]?(?:0|[1-9][0-9]{0,5})|-?[1-9][0-9]{6,17}")
LARGE_WHOLE = PlainType("HUGEINT", "-?(?:0|[1-9][0-9]{0,36})")
LONG = "[+-]?[0-9]{16,}"
"""A whole number that a DOUBLE may not hold to its last digit."""
PHONE_NAME = re.compile(r"(?i)(?:phone|fon|fax|\btel)[._ ]*(?:no|nr|num|number|nummer)?[._ ]*$")
CUT = "a whole number in it has more digits than fit beside decimals"
DECIMAL = PlainType(
    "DOUBLE",
    PLAIN,
    f"""CASE WHEN abs(TRY_CAST({{x}} AS DOUBLE)) >= {EXACT} AND
    regexp_full_match({{x}}, '{LONG.replace("{", "{{").replace("}", "}}")}') THEN NULL
    ELSE TRY_CAST({{x}} AS DOUBLE) END""",
)
PLAIN_TYPES = (
    WHOLE,
    LARGE_WHOLE,
    PlainType("BOOLEAN", "(?i:true|false)"),
    PlainType("DATE", DAY),
    PlainType("TIMESTAMP", f"{DAY}(?:[ T]{TIME_OF_DAY}Z?)?"),
    PlainType("TIME", "[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?"),
)
TYPE_NAMES = {
    "BIGINT": "a whole number",
    "HUGEINT": "a whole number",
    "TIMESTAMP": "a date and time",
    "DATE": "a date",
    "TIME": "a time",
}
OFFSET = "(?:[+-][0-9]{2}(?::?[0-9]{2})?)"


@dataclass(frozen=True, slots=True)
class Habits:
    """The ways in which the texts of a table are written, as far as its file and the person say."""

    decimal: str = ""
    """The decimal separator that the person named."""
    dates: str = ""
    """"day" or "month": which goes first, as the person said."""
    comma_hints: frozenset[str] = frozenset()
    """What of the file lets a decimal comma be expected."""
    has_types: bool = False
    """Whether the file has types of its own, so that a plain 12 that is a text there stays one."""
    is_delimited: bool = False
    """Whether its DOUBLE columns were texts with a decimal point."""


def columns_of_type(db: duckdb.DuckDBPyConnection, table: str, kind: str = "VARCHAR") -> list[str]:
    """Return the columns of a table that have this type; by default they hold text."""
    return [column for column, column_type in types_of_columns(db, table) if column_type == kind]


def types_of_columns(db: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Return the name and type of each column, in order."""
    query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?"
    return [(str(column), str(kind)) for column, kind in db.execute(query, [table]).fetchall()]


def has_row_where(db: duckdb.DuckDBPyConnection, table: str, condition: str) -> bool:
    """Return whether a row meets the condition; the search ends with the first such row."""
    return db.execute(f"SELECT 1 FROM {quote_identifier(table)} WHERE {condition} LIMIT 1").fetchone() is not None


def find_plain_type(texts: Sequence[str]) -> PlainType | None:
    """Return the plain type that all texts have, None if no type fits all.

    >>> [found.type if (found := find_plain_type([text])) else ""
    ...     for text in ("12", "007", "2024-01-31", "True", "1.5")]
    ['BIGINT', '', 'DATE', 'BOOLEAN', '']
    """
    return next((kind for kind in PLAIN_TYPES if all(re.fullmatch(kind.pattern, text) for text in texts)), None)


@dataclass
class TextColumns:
    """The text columns of one table while they get types."""

    db: duckdb.DuckDBPyConnection
    table: str
    habits: Habits
    numerals: dict[str, Numerals] = field(default_factory=dict)
    """Counts of columns that seem to hold numbers, by the name of the column."""
    dates: dict[str, WrittenDates] = field(default_factory=dict)
    """Counts of columns that seem to hold dates."""

    def type_all(self, why: Mapping[str, str]) -> Iterator[str]:
        """Give types to the text columns and yield a note for each that is not plain.

        Args:
            why: objection to a type, by column; such a column gets a note too.
        """
        # First the plain types. Columns that seem to hold numbers or dates are only counted.
        for column in columns_of_type(self.db, self.table):
            texts = self.sample(column)
            if not texts:
                continue
            kind = find_plain_type(texts)
            # A file with types of its own stores numbers as numbers: only dates are texts in it.
            if self.habits.has_types and kind is not None and kind.type not in ("DATE", "TIMESTAMP", "TIME"):
                kind = None
            if kind is not None and (note := self.as_plain(column, kind, column in why)) is not None:
                yield from note
            elif 2 * sum(map(reads_as_number, texts)) >= len(texts):
                self.numerals[column] = count_numerals(self.db, self.table, column)
            elif 2 * sum(map(reads_as_date, texts)) >= len(texts):
                self.dates[column] = count_dates(self.db, self.table, column)
            else:
                yield from self.note_errors(column)
        # Then the dates: an order that one column settles helps the others.
        orders = {name: order for name, dates in self.dates.items() if (order := dates.order())}
        for column, dates in self.dates.items():
            others = frozenset(order for name, order in orders.items() if name != column) & {"day", "month"}
            yield from self.as_dates(column, dates, dates.order(others, self.habits.dates))
        # Numbers come after dates, for dates with points let a decimal comma be expected.
        yield from self.type_numbers()
        # The mark of a number's cell goes where its column stays text.
        for column in () if self.habits.is_delimited else columns_of_type(self.db, self.table):
            name = quote_identifier(column)
            if has_row_where(self.db, self.table, f"{name}[1] = {sql_text(CELL)}"):
                self.db.execute(f"UPDATE {self.quoted} SET {name} = {name}[2:] WHERE {name}[1] = '{CELL}'")

    @property
    def quoted(self) -> str:
        return quote_identifier(self.table)

    def sample(self, column: str) -> list[str]:
        texts = f"SELECT {quote_identifier(column)} FROM {self.quoted} WHERE NOT {sql_missing(column)} LIMIT {SAMPLE}"
        return [str(text).strip(SPACES) for (text,) in self.db.execute(texts).fetchall()]

    def example(self, column: str, condition: str, value: str = "x") -> str | None:
        """Return the first text ``x`` that meets a condition, None without one; words for no value are none."""
        texts = sql_texts(self.table, column)
        row = self.db.execute(f"SELECT min({value}) FROM {texts} WHERE {condition}").fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def has_text(self, column: str, condition: str) -> bool:
        return self.example(column, condition) is not None

    def as_plain(self, column: str, kind: PlainType, is_noted: bool) -> list[str] | None:
        """Convert a column to a plain type and return the notes; None if a value is not of this type."""
        if self.has_text(column, f"NOT ({kind.sql_fits('x')})"):
            return None
        missing = self.change(column, kind.type, kind.sql_value)
        if missing or is_noted:
            return [f"{self.table}.{column} is {TYPE_NAMES.get(kind.type, kind.type)}{missing}."]
        return []

    def type_numbers(self) -> Iterator[str]:
        sure = {name: decimal for name, numerals in self.numerals.items() if (decimal := numerals.settles)}
        if self.habits.is_delimited and columns_of_type(self.db, self.table, "DOUBLE"):
            sure[""] = "."
        hints = set(self.habits.comma_hints)
        if any(dates.dotted and dates.dotted == dates.texts for dates in self.dates.values()):
            hints.add("dates")
        for column, numerals in self.numerals.items():
            others = frozenset(decimal for name, decimal in sure.items() if name != column)
            decimal = numerals.decimal(SeparatorEvidence(self.habits.decimal, others, frozenset(hints)))
            yield from self.as_number(column, numerals, decimal)

    def as_number(self, column: str, numerals: Numerals, decimal: str) -> Iterator[str]:
        if self.habits.has_types and not self.has_text(column, f"NOT regexp_full_match(x, {sql_text(PLAIN)})"):
            return
        if reason := self.why_no_number(column, numerals, decimal):
            is_open = not (decimal or numerals.strange or (numerals.point and numerals.comma))
            yield f"{self.table}.{column} is text: {reason}{f'; {SAY_DECIMAL}' if is_open else ''}."
            yield from self.note_errors(column)
            return
        bare, value = sql_bare("x"), sql_number("x", decimal)
        # A number with decimals or an exponent, or beyond 2^53, is no whole number to keep exactly.
        broken = (
            f"contains({bare}, '{decimal}') OR regexp_matches({bare}, '[eE]') OR abs({value}) >= {EXACT} OR "
            f"(x[1] = '{CELL}' AND contains(x, '.'))"
        )
        kind = "DOUBLE" if self.has_text(column, broken) else "BIGINT"
        notes = list(note_numbers(numerals, decimal))
        missing = self.change(
            column, kind, lambda text: f"CAST({sql_number(text, decimal)} AS {kind})", "; ".join(notes)
        )
        # If only three digits after a separator were seen, the reading is a guess.
        unsure = (numerals.either_comma or numerals.either_point) and not (
            numerals.point or numerals.comma or self.habits.decimal
        )
        if notes or missing:
            advice = f". If that is wrong, {SAY_DECIMAL}" if unsure and notes else ""
            yield f"{self.table}.{column} is a number{': ' * bool(notes)}{'; '.join(notes)}{missing}{advice}."

    def why_no_number(self, column: str, numerals: Numerals, decimal: str) -> str:
        if reason := explain_text_column(numerals, decimal):
            return reason
        if numerals.spaced and PHONE_NAME.search(column):
            return "by its name it holds telephone numbers"
        if misfits := {".": numerals.comma, ",": numerals.point}[decimal]:
            return f"{format_count(misfits, 'number')} in it is written otherwise"
        value = sql_number("x", decimal)
        if self.has_text(column, f"{value} IS NULL"):
            return "a number in it cannot be read"
        digits = f"regexp_replace({sql_bare('x')}, '[ .,'']', '', 'g')"
        is_long = f"x[1] <> '{CELL}' AND abs({value}) >= {EXACT} AND regexp_full_match({digits}, '{LONG}')"
        # A long number is refused only if a DOUBLE loses some of its digits.
        exact = f"coalesce(abs(TRY_CAST({digits} AS HUGEINT)) = TRY_CAST(abs({value}) AS HUGEINT), false)"
        return CUT if self.has_text(column, f"{is_long} AND NOT {exact}") else ""

    def as_dates(self, column: str, dates: WrittenDates, order: str) -> Iterator[str]:
        if notes := self.as_local_time(column):
            yield from notes
            return
        if not order:
            settled = dates.texts == dates.figures and not (dates.bad or (dates.day_over_12 and dates.month_over_12))
            advice = f"; {SAY_DATES}" if settled else ""
            yield f"{self.table}.{column} is text: {dates.why_text()}{advice}."
            return
        value = partial(sql_date, order=order, is_day=not dates.clocks, has_short_years=bool(dates.short_years))
        # A text such as 31.02.2024 has the form of a date and is none.
        if (odd := self.example(column, f"{value('x')} IS NULL")) is not None:
            yield f"{self.table}.{column} is text: {odd!r} is no date as the others are ({READ[order]})."
            return
        missing = self.change(column, "TIMESTAMP" if dates.clocks else "DATE", value, f"its texts are {READ[order]}")
        unsettled = order in ("day", "month") and not (dates.day_over_12 or dates.month_over_12 or self.habits.dates)
        advice = f". If that is wrong, {SAY_DATES}" if unsettled else ""
        yield f"{self.table}.{column} is a date: its texts are {READ[order]}{missing}{advice}."

    def as_local_time(self, column: str) -> list[str]:
        """Convert ISO times with one offset from UTC and return the notes; none if the texts are anything else."""
        if self.has_text(column, f"NOT regexp_full_match(x, '{DAY}[ T]{TIME_OF_DAY} ?{OFFSET}')"):
            return []
        offset = f"regexp_extract(x, '{OFFSET}$')"
        first = self.example(column, "true", offset)
        if first is None or self.has_text(column, f"{offset} <> {sql_text(first)}"):
            return []
        note = f"local time, {first} from UTC"
        missing = self.change(
            column, "TIMESTAMP", lambda text: f"TRY_CAST(regexp_replace({text}, ' ?{OFFSET}$', '') AS TIMESTAMP)", note
        )
        return [f"{self.table}.{column} is a date and time: {note}{missing}."]

    def change(self, column: str, kind: str, value: Callable[[str], str], comment: str = "") -> str:
        """Convert a column by an expression of its tidy texts, and return the note on the words that become NULL."""
        # Counted before the change, which makes these words NULL.
        note, name = self.note_missing(column), quote_identifier(column)
        using = f"CASE WHEN {sql_missing(column)} THEN NULL ELSE {value(sql_tidy(name))} END"
        self.db.execute(f"ALTER TABLE {self.quoted} ALTER {name} TYPE {kind} USING {using}")
        if comment:
            self.db.execute(f"COMMENT ON COLUMN {self.quoted}.{name} IS {sql_text(comment)}")
        return note

    def note_missing(self, column: str) -> str:
        """Count the words for no value, and the spreadsheet errors, that become NULL."""
        name = quote_identifier(column)
        errors = ", ".join(map(sql_text, ERRORS))
        rows = self.db.execute(
            f"SELECT trim({name}), count(*), lower(trim({name})) IN ({errors}) FROM {quote_identifier(self.table)} "
            f"WHERE {sql_missing(column)} GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 4"
        ).fetchall()
        return "".join(
            f"; {word!r} is {'an error of the spreadsheet and ' if is_error else ''}no value, "
            f"{format_count(count, 'time')}"
            for word, count, is_error in rows
        )

    def note_errors(self, column: str) -> Iterator[str]:
        """Yield a note for each spreadsheet error that stands among texts."""
        errors = ", ".join(map(sql_text, (*ERRORS, "#n/a")))
        rows = self.db.execute(
            f"SELECT {quote_identifier(column)}, count(*) FROM {quote_identifier(self.table)} "
            # DuckDB holds the range against the least and greatest value of a block, and skips most blocks.
            f"WHERE {quote_identifier(column)} BETWEEN '#' AND '$' "
            f"AND lower({quote_identifier(column)}) IN ({errors}) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 4"
        ).fetchall()
        for word, count in rows:
            yield (
                f"{self.table}.{column} holds {word!r}, an error of the spreadsheet, "
                f"{format_count(int(count), 'time')}."
            )


SAY_DECIMAL = "write #decimal=comma or #decimal=point after the name of the file"
SAY_DATES = "write #dates=day or #dates=month after the name of the file"


def remove_nan(db: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    """Replace NaN with NULL, and note infinite numbers. NaN is no value to a person and spoils every sum."""
    for column in columns_of_type(db, table, "DOUBLE"):
        if has_row_where(db, table, f"isnan({quote_identifier(column)})"):
            db.execute(
                f"UPDATE {quote_identifier(table)} SET {quote_identifier(column)} = NULL "
                f"WHERE isnan({quote_identifier(column)})"
            )
            yield f"{table}.{column}: NaN is no value."
        if has_row_where(db, table, f"isinf({quote_identifier(column)})"):
            yield f"{table}.{column} holds an infinite number, which spoils sums and means."


def note_totals(db: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    """Yield a note if rows are the total of others, by name or by figures. A sum would count such rows twice."""
    row = db.execute(f"SELECT count(*) FROM {quote_identifier(table)}").fetchone()
    texts = columns_of_type(db, table) if row and 2 < row[0] <= SMALL else []
    figures = [column for kind in ("BIGINT", "DOUBLE") for column in columns_of_type(db, table, kind)]
    listed = ", ".join(map(sql_text, TOTALS))
    for column in texts:
        name = f"coalesce(lower(trim({quote_identifier(column)}, ' :')), '')"
        # Of "North" and "North total", as a spreadsheet's subtotals are called, the second is one.
        stem = f"regexp_extract({name}, '^(.+?) +{SUBTOTAL}$', 1)"
        # With the total among the rows, the sum of a column is twice the total.
        adds_up = (
            " OR ".join(
                f"2 * {quote_identifier(figure)} = (SELECT sum({quote_identifier(figure)}) "
                f"FROM {quote_identifier(table)})"
                for figure in figures
            )
            or "false"
        )
        rows = db.execute(
            f"SELECT DISTINCT {quote_identifier(column)}, {name} IN ({listed}) OR {stem} = '' "
            f"FROM {quote_identifier(table)} "
            f"WHERE {name} IN ({listed}) OR {stem} <> '' AND {stem} IN (SELECT {name} FROM {quote_identifier(table)}) "
            f"OR regexp_matches({name}, '^{TOTAL_START}') AND ({adds_up}) ORDER BY 1"
        ).fetchall()
        names = ", ".join("without a name" if value is None else repr(value) for value, _ in rows[:4])
        if len(rows) == 1 or any(not is_whole for _, is_whole in rows):
            what, seem, it = ("row", "seems", "it") if len(rows) == 1 else ("rows", "seem", "them")
            yield (
                f"{table}: the {what} with {column} {names}{', ...' * (len(rows) > 4)} {seem} to add up the others: "
                f"leave {it} out of sums, means and rankings."
            )


NULL = "\x01NULL"
"""Stands for a missing value in a file of ours: an empty text is another thing."""


@dataclass(eq=False)
class ImportTarget:
    """A store while tables are read into it."""

    db: duckdb.DuckDBPyConnection
    scratch: Path
    """A folder for temporary files, removed at the end."""
    names: list[str] = field(default_factory=list)
    """The tables that exist already."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of file by the name of a table."""
    decimal: str = ""
    """Decimal separator that the person names; '' for none."""
    dates: str = ""
    """"day" or "month": which goes first, if the person says it."""

    def name(self, wish: str) -> str:
        """Return a free table name, spelled like ``wish``, and reserve it."""
        # DuckDB takes names that differ in case only for one name.
        self.names = list(number_repeated_names([*self.names, wish or "data"], str.lower))
        return self.names[-1]

    def forget(self, at: int) -> None:
        """Drop the tables from this position on."""
        for name in self.names[at:]:
            self.db.execute(f"DROP TABLE IF EXISTS {quote_identifier(name)}")
        del self.names[at:]

    def count(self, name: str) -> int:
        row = self.db.execute(f"SELECT count(*) FROM {quote_identifier(name)}").fetchone()
        return int(row[0]) if row else 0

    def columns(self, name: str) -> list[tuple[str, str]]:
        return types_of_columns(self.db, name)

    def add_rows(self, name: str, types: Mapping[str, str], rows: Iterable[Sequence[object]]) -> None:
        """Create a table with these columns. The rows go through a file as texts, which DuckDB reads as their types."""
        path = self.scratch / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            for row in rows:
                writer.writerow([NULL if value is None else value for value in row])
        columns = ", ".join(f"{sql_text(column)}: {sql_text(kind)}" for column, kind in types.items())
        self.db.execute(
            f"CREATE TABLE {quote_identifier(name)} AS SELECT * FROM read_csv({sql_text(str(path))}, header=false, "
            f"delim=',', quote='\"', escape='\"', nullstr={sql_text(NULL)}, columns={{{columns}}}, auto_detect=false, "
            "max_line_size=16000000, buffer_size=64000000)"
        )
        path.unlink()


MOST_MEMORY = 2**30
"""Bytes of memory of its own, of one process that reads files."""
ENGINE_MEMORY = "400MB"
"""Of DuckDB within it; beyond that it writes to disk."""
ENGINE_THREADS = 4
MOST_CELLS = 20_000_000
"""Of a sheet, with those that are empty between others; Python holds them all at once."""
MOST_LEVELS = 16
"""Of objects within objects of JSON; what lies deeper stays JSON."""


TOO_LARGE = (
    f"it takes more memory than a reader of files may have ({MOST_MEMORY >> 20:,} MB): "
    "split it, or save tables as CSV or Parquet"
)
SIGNS_OF_MEMORY = re.compile(
    r"(?i)MemoryError|memory allocation|out of memory|bad_alloc|Is a directory|cannot allocate"
)
"""In what Python, its libraries, DuckDB and the loader of a new thread say where they get no more."""


def describe_file_error(error: Exception) -> str:
    """Return the first sentence of a library's complaint. The rest is advice for administrators of databases."""
    first = " ".join(str(error).splitlines()[0].split()) if str(error) else type(error).__name__
    if "maximum_object_size" in first:
        return "an object in it has more than 16 MB: if that is a list of rows, save the list as a file of its own"
    return TOO_LARGE if SIGNS_OF_MEMORY.search(first) else first[:300]


def reason_of_end(returncode: int, complaint: str = "") -> str:
    """Return why a reader ended without a reply."""
    # Rust and C++ abort where they get no memory, DuckDB has crashed too; a reader of documents complains to nobody.
    if -returncode in (signal.SIGABRT, signal.SIGSEGV) or SIGNS_OF_MEMORY.search(complaint):
        return TOO_LARGE
    if returncode < 0:
        return f"its reader was ended by {signal.Signals(-returncode).name}: try again, or split it"
    return redact(fit_on_one_line(complaint.strip().splitlines()[-1], 300)) if complaint.strip() else TOO_LARGE


def limit_reader_memory(size_bytes: int = MOST_MEMORY) -> None:
    """Limit the memory of this process, where the system can, and turn off core dumps.

    The limit is on writable memory (RLIMIT_DATA, which Linux holds for malloc and private maps alike). One on addresses
    alone would count libraries, the stacks of threads and what allocators reserve and never touch, which is several
    times what is used; it stands above as a second fence.
    """
    import resource

    # A core dump would write the data of the files to disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))
        resource.setrlimit(resource.RLIMIT_AS, (4 * size_bytes, 4 * size_bytes))
