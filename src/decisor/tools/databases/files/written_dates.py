"""Dates as people write them: 31.12.2024, 12/31/2024 4:05 PM, 3 Feb 2024. ISO dates are no matter of this file.

Whether the day or the month goes first is settled by a number over 12 anywhere in the column, else by the person
(``#dates=day``), else by another column of the table; 3.2.2024 has the day first. Otherwise it stays text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decisor.quoting import quoted
from decisor.tools.databases.files.numerals import ERRORS, MISSING, sql_distinct, sql_text, sql_tidy

if TYPE_CHECKING:
    import duckdb

CLOCK = r"(?:,?[ T]+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[AaPp][Mm])?)?"
FIGURES = "([0-9]{1,2})(?:/([0-9]{1,2})/|[.]([0-9]{1,2})[.]|-([0-9]{1,2})-)([0-9]{4}|[0-9]{2})" + CLOCK
YEAR_FIRST = "[0-9]{4}(?:/[0-9]{1,2}/|[.][0-9]{1,2}[.])[0-9]{1,2}" + CLOCK
MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
NAMED = f"[0-9]{{1,2}}[ -]{MONTH}[ ,-]+[0-9]{{4}}{CLOCK}|{MONTH} [0-9]{{1,2}},? [0-9]{{4}}{CLOCK}"
ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z| ?[+-][0-9]{2}:?[0-9]{2})?)?"
ANY = re.compile(f"(?:{FIGURES})|(?:{YEAR_FIRST})|(?:{NAMED})|(?:{ISO})|[0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}})?")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", " %I:%M:%S%p")
DAYS = {
    "day": ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    "month": ("%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y"),
    "year": ("%Y/%m/%d", "%Y.%m.%d"),
    "name": ("%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d-%B-%Y", "%b %d %Y", "%B %d %Y"),
}
READ = {
    "day": "day, month, year",
    "month": "month, day, year",
    "year": "year, month, day",
    "name": "with the month's name",
}


def reads_as_date(text: str) -> bool:
    return bool(ANY.fullmatch(text.strip()))


@dataclass(frozen=True, slots=True)
class WrittenDates:
    """How many texts of a column are dates of which form."""

    texts: int
    figures: int
    year_first: int
    named: int
    day_over_12: int
    """Texts whose first number is over 12."""
    month_over_12: int
    """Texts whose second number is over 12."""
    short_years: int
    late_years: int
    """Years of two digits over 31, which can be no day."""
    dotted: int
    clocks: int
    sample: str
    bad: int
    """Texts in which no order makes a date."""

    def order(self, others: frozenset[str] = frozenset(), setting: str = "") -> str:
        """Return "day", "month", "year" or "name"; '' if it is not settled, or they are no dates."""
        if self.bad or not self.texts:
            return ""
        if self.texts in (self.year_first, self.named):
            return "year" if self.year_first else "name"
        if self.texts != self.figures or (self.day_over_12 and self.month_over_12):
            return ""
        if self.month_over_12:
            return "month"
        if self.day_over_12 and (not self.short_years or self.late_years or self.dotted == self.texts):
            return "day"
        if setting or len(others) == 1:
            return setting or next(iter(others))
        return "day" if self.dotted == self.texts else ""

    def why_text(self) -> str:
        if self.bad:
            return f"{counted_bad(self.bad)} no date in any order"
        if self.day_over_12 and self.month_over_12:
            return "in some of its dates the day goes first, in others the month"
        if self.texts != self.figures:
            return "its dates are written in several ways"
        return f"nothing says whether the day or the month goes first in {self.sample!r}"


def counted_bad(number: int) -> str:
    return "one of its texts is" if number == 1 else f"{number:,} of its texts are"


def sql_date(column: str, order: str, is_day: bool, has_short_years: bool) -> str:
    """Return SQL for the date that a text of a column means, NULL if it means none."""
    days = DAYS[order]
    # %Y would take 24 for the year 24, %y takes no year of four digits.
    forms = [*(day.replace("%Y", "%y") for day in days), *days] if has_short_years else days
    texts = ", ".join(sql_text(day + clock) for day in forms for clock in (CLOCKS[:1] if is_day else CLOCKS))
    plain = f"regexp_replace(replace({sql_tidy(column)}, ',', ' '), '[ T]+([0-9]|$)| +', ' \\1', 'g')"
    value = f"TRY_STRPTIME(trim({plain}), [{texts}])"
    return f"CAST({value} AS DATE)" if is_day else value


def count_dates(db: duckdb.DuckDBPyConnection, table: str, column: str) -> WrittenDates:
    missing = ", ".join(map(sql_text, (*MISSING, *ERRORS)))
    pattern = sql_text(FIGURES)
    middle = " || ".join(f"regexp_extract(x, {pattern}, {group})" for group in (2, 3, 4))
    row = db.execute(f"""
        WITH texts AS (SELECT {sql_tidy(quoted(column))} AS x, n FROM {sql_distinct(table, column)}
            WHERE {quoted(column)} IS NOT NULL
            AND lower(trim({quoted(column)})) NOT IN ({missing})),
        parts AS (SELECT x, n, regexp_full_match(x, {pattern}) AS figures,
            TRY_CAST(regexp_extract(x, {pattern}, 1) AS INT) AS first, TRY_CAST({middle} AS INT) AS second,
            regexp_extract(x, {pattern}, 5) AS year FROM texts)
        SELECT sum(n), sum(n) FILTER (figures), sum(n) FILTER (regexp_full_match(x, {sql_text(YEAR_FIRST)})),
            sum(n) FILTER (regexp_full_match(x, {sql_text(NAMED)})), sum(n) FILTER (figures AND first > 12),
            sum(n) FILTER (figures AND second > 12), sum(n) FILTER (figures AND len(year) = 2),
            sum(n) FILTER (figures AND len(year) = 2 AND TRY_CAST(year AS INT) > 31),
            sum(n) FILTER (figures AND regexp_matches(x, '^[0-9]+[.]')), sum(n) FILTER (contains(x, ':')), min(x),
            sum(n) FILTER (figures AND (greatest(first, second) > 31 OR least(first, second) > 12
                OR least(first, second) = 0)) FROM parts
    """).fetchone()
    assert row is not None
    counts: tuple[Any, ...] = tuple(int(number or 0) for number in row[:10])
    return WrittenDates(*(*counts, str(row[10] or ""), int(row[11] or 0)))
