"""Texts that are numbers or dates to a person: 1.234,50 as it is written in much of the world; n/a where one lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.plurals import counted
from decisor.quoting import quoted
from decisor.tools.databases.files.tables import literal

if TYPE_CHECKING:
    import duckdb

MISSING = ("", "-", "--", "?", "n/a", "na", "#n/a", "nan", "null", "none", "nil", "k.a.", "unknown")
"""What people write for no value, in lower case, beside numbers and dates."""
TOTALS = ("total", "totals", "grand total", "sum", "summe", "gesamt", "insgesamt", "gesamtsumme", "totaal", "totale")
"""What people write before a row that adds up the others, in lower case."""
SMALL = 100_000
"""Rows of a table in which a total is looked for."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A type, and how people write its values. In SQL, with ``{x}`` for a text: ``plain`` is all of it as a pattern,
    ``value`` what it means, NULL where nothing. ``mark``: what of a text tells that a column is written so even where
    no value is missing; '' where nothing does."""

    what: str
    type: str
    plain: str
    value: str
    mark: str = ""


TYPED = (  # a cast alone would round to whole numbers, and take codes for numbers
    Writing("BIGINT", "BIGINT", "[+-]?(0|[1-9][0-9]*)", "TRY_CAST({x} AS BIGINT)"),
    Writing("DOUBLE", "DOUBLE", "[+-]?(0|[^0].*|0[^0-9].*)", "TRY_CAST({x} AS DOUBLE)"),
    Writing("DATE", "DATE", ".*", "TRY_CAST({x} AS DATE)"),
    Writing("TIMESTAMP", "TIMESTAMP", ".*", "TRY_CAST({x} AS TIMESTAMP)"),
)
WRITTEN = (
    Writing(
        "a number: its texts have a decimal comma", "DOUBLE", r"-?([1-9]\d{0,2}(\.\d{3})+|0|[1-9]\d*)(,\d+)?",
        "TRY_CAST(replace(replace({x}, '.', ''), ',', '.') AS DOUBLE)", "contains({x}, ',')",
    ),
    Writing(
        "a date: its texts are day.month.year", "DATE", r"\d{1,2}\.\d{1,2}\.\d{4}",
        "CAST(TRY_STRPTIME({x}, '%d.%m.%Y') AS DATE)", "TRUE",
    ),
)  # fmt: skip


def texts_of(db: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of a table that hold text."""
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND data_type = 'VARCHAR'"
    return [str(column) for (column,) in db.execute(query, [table]).fetchall()]


def holds(db: duckdb.DuckDBPyConnection, table: str, condition: str) -> bool:
    """Whether a row is like that: the first that is ends the search."""
    return db.execute(f"SELECT 1 FROM {quoted(table)} WHERE {condition} LIMIT 1").fetchone() is not None


def typed_texts(
    db: duckdb.DuckDBPyConnection, table: str, text: Mapping[str, str], writings: Sequence[Writing] = (*TYPED, *WRITTEN)
) -> Iterator[str]:
    """Columns of texts that all are values of one type, but for words for no value, become that, with a note for each.
    ``text``: columns that are read as text, and why."""
    for column in texts_of(db, table):
        if note := as_type(db, table, column, column in text, writings):
            yield note
        elif column in text:
            yield f"{table}.{column} is text: {text[column]}."


def as_type(db: duckdb.DuckDBPyConnection, table: str, column: str, is_guess: bool, writings: Sequence[Writing]) -> str:
    """A note, '' where the column stays as it is. ``is_guess``: most of it was of another type."""
    name, words = quoted(column), ", ".join(map(literal, MISSING))
    x, is_missing = f"trim({name})", f"lower(trim({name})) IN ({words})"

    def is_so(one: Writing) -> bool:
        fits = f"regexp_full_match({x}, '{one.plain}') AND {one.value.format(x=x)} IS NOT NULL"
        return not holds(db, table, f"NOT {is_missing} AND NOT ({fits})")

    writing = next(filter(is_so, writings), None)
    if writing is None:
        return ""
    row = db.execute(
        f"SELECT count(*) FILTER ({is_missing}), min({name}) FILTER ({is_missing}), count({name}) FROM {quoted(table)}"
    ).fetchone()
    marked = writing.mark and holds(db, table, f"{name} IS NOT NULL AND {writing.mark.format(x=x)}")
    if row is None or row[0] == row[2] or not (row[0] or is_guess or marked):
        return ""
    value = f"CASE WHEN {is_missing} THEN NULL ELSE {writing.value.format(x=x)} END"
    db.execute(f"ALTER TABLE {quoted(table)} ALTER {name} TYPE {writing.type} USING {value}")
    missing = f"; {row[1]!r} is no value, {counted(int(row[0]), 'time')}" if row[0] else ""
    return f"{table}.{column} is {writing.what}{missing}."


def totals(db: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    """A note where one row is named as the total of the others, which a sum would count twice."""
    row = db.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()
    for column in texts_of(db, table) if row and 2 < row[0] <= SMALL else ():
        is_total = f"lower(trim({quoted(column)}, ' :')) IN ({', '.join(map(literal, TOTALS))})"
        rows = db.execute(f"SELECT {quoted(column)} FROM {quoted(table)} WHERE {is_total} LIMIT 2").fetchall()
        if len(rows) == 1:
            what = f"the row with {column} {rows[0][0]!r} seems to add up the others"
            yield f"{table}: {what}: leave it out of sums, means and rankings."
