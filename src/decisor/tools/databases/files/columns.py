"""Texts that are numbers or dates to a person: 1.234,50 as it is written in much of the world; n/a where one lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from decisor.plurals import counted
from decisor.quoting import quoted

if TYPE_CHECKING:
    import duckdb

MISSING = ("", "-", "--", "?", "n/a", "na", "#n/a", "nan", "null", "none", "nil", "k.a.", "unknown")
"""What people write for no value, in lower case, beside numbers and dates."""
TYPES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP")
COMMA = r"^\s*-?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?\s*$"


def texts_of(db: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of a table that hold text."""
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND data_type = 'VARCHAR'"
    return [str(column) for (column,) in db.execute(query, [table]).fetchall()]


def holds(db: duckdb.DuckDBPyConnection, table: str, condition: str) -> bool:
    """Whether a row is like that: the first that is ends the search."""
    return db.execute(f"SELECT 1 FROM {quoted(table)} WHERE {condition} LIMIT 1").fetchone() is not None


def decimal_commas(db: duckdb.DuckDBPyConnection, table: str) -> Iterator[str]:
    """Columns in which each text is a number, one with a decimal comma, become numbers; a note for each."""
    for column in texts_of(db, table):
        name = quoted(column)
        fits = f"regexp_full_match({name}, '{COMMA}')"
        if not holds(db, table, f"NOT {fits}") and holds(db, table, f"contains({name}, ',')"):
            plain = f"CAST(replace(replace(trim({name}), '.', ''), ',', '.') AS DOUBLE)"
            db.execute(f"ALTER TABLE {quoted(table)} ALTER {name} TYPE DOUBLE USING {plain}")
            yield f"{table}.{column} is a number: its texts have a decimal comma."


def with_missing_values(db: duckdb.DuckDBPyConnection, table: str, text: Mapping[str, str]) -> Iterator[str]:
    """Columns of texts that are of one type but for words for no value become that, with a note for each. ``text``:
    columns that are read as text, and why."""
    for column in texts_of(db, table):
        if note := as_type(db, table, column, column in text):
            yield note
        elif column in text:
            yield f"{table}.{column} is text: {text[column]}."


def as_type(db: duckdb.DuckDBPyConnection, table: str, column: str, is_guess: bool) -> str:
    """A note, '' where the column stays as it is. ``is_guess``: most of it was of another type."""
    name, words = quoted(column), ", ".join(f"'{word}'" for word in MISSING)
    is_missing = f"lower(trim({name})) IN ({words})"
    fits = (kind for kind in TYPES if not holds(db, table, f"NOT {is_missing} AND NOT ({fit(name, kind)})"))
    if (kind := next(fits, "")) == "":
        return ""
    row = db.execute(
        f"SELECT count(*) FILTER ({is_missing}), min({name}) FILTER ({is_missing}), count({name}) FROM {quoted(table)}"
    ).fetchone()
    if row is None or row[0] == row[2] or not (row[0] or is_guess):
        return ""
    value = f"CASE WHEN {is_missing} THEN NULL ELSE CAST({name} AS {kind}) END"
    db.execute(f"ALTER TABLE {quoted(table)} ALTER {name} TYPE {kind} USING {value}")
    return f"{table}.{column} is {kind}; {row[1]!r} is no value, {counted(int(row[0]), 'time')}."


def fit(name: str, kind: str) -> str:
    """The condition that a text is of a type. A cast alone would round to whole numbers, and take codes for numbers."""
    plain = {"BIGINT": "[+-]?(0|[1-9][0-9]*)", "DOUBLE": "[+-]?(0|[^0].*|0[^0-9].*)"}.get(kind, ".*")
    return f"regexp_full_match(trim({name}), '{plain}') AND TRY_CAST({name} AS {kind}) IS NOT NULL"
