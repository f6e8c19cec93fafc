"""Recognizes numbers and dates as people write them, in columns of texts.

Numbers: 1,234.50 and 1.234,50, $12, 7.5 %, (450.00), 450-, 1 234, 1'234. A column is counted once, by what each text
can mean; then it is decided whether its comma is a decimal comma. A column that does not settle it is settled by the
others of its table, by the separator of its file, or by the person (``#decimal=comma``); else it stays text, and the
note says how to say it.

Dates: 31.12.2024, 12/31/2024 4:05 PM, 3 Feb 2024; ISO dates are not converted here. Whether the day or the month goes
first is settled by a number over 12 anywhere in the column, else by the person (``#dates=day``), else by another
column of the table; 3.2.2024 has the day first. Otherwise the column stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decisor.system.text import quote_identifier
from decisor.system.wording import format_count

if TYPE_CHECKING:
    import duckdb


MISSING = ("", "-", "--", "?", "n/a", "na", "#n/a", "nan", "null", "none", "nil", "k.a.", "unknown", "\\n")
"""What people write for no value, in lower case, beside numbers and dates."""
ERRORS = ("#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!", "#spill!", "#calc!", "#getting_data", "#error!")
"""What a spreadsheet writes for a value that it could not compute, in lower case; #N/A is in ``MISSING``."""
SPACES = " \t\r\n\u00a0\u202f\u2009\u2007"
CELL = "\x02"
"""Begins a number that was a number in its sheet, beside texts: it is read as Python writes it."""
SYMBOLS = "[$€£¥₹₽₩₺₪₴₫₱฿¢]"
CODES = (
    "EURO?|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|BRL|MXN|ZAR|TRY|RUB|KRW|SGD|HKD|AED|SAR|ILS|THB"
    "|IDR|MYR|PHP|VND|RON|BGN|UAH|kr\\.?|zł|Kč|Ft|Rs\\.?|Fr\\."
)
CURRENCY = f"(?:(?:US|AU|CA|NZ|HK|R|A|C|S)?{SYMBOLS}|(?i:{CODES}))"
WHOLE = r"(?:0|[1-9][0-9]*)"
PLAIN = rf"[+-]?(?:{WHOLE}(?:[eE][+-][0-9]{{1,3}})?|(?:{WHOLE}\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?)"
"""A number as programs write it, with a decimal point. 007 and 12E4 are codes: programs write 1.2e5 or 12e+4."""


def digits_pattern(group: str, decimal: str) -> str:
    """Return the pattern of digits with these separators. Groups are of three digits, or of two as in India."""
    groups = "|".join(f"(?:{mark}[0-9]{{3}})+" for mark in (group, " ", "'"))
    whole = f"{WHOLE}|[1-9][0-9]{{0,2}}(?:{groups})|[1-9][0-9]?(?:{group}[0-9]{{2}})+{group}[0-9]{{3}}"
    return rf"(?:(?:{whole})(?:{decimal}[0-9]*)?|{decimal}[0-9]+)"


def signed(body: str) -> str:
    return rf"[+-]? ?{body}|{body} ?-|\( ?{body} ?\)"


POINT = f"{PLAIN}|{signed(digits_pattern(',', '[.]'))}"
COMMA = signed(digits_pattern("[.]", ","))
CERTAIN = signed(r"[0-9]{1,3}(?:,[0-9]{2,3})+\.[0-9]*") + "|" + signed(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*")
"""Both separators in one text, which settles it by itself."""
EITHER = {mark: signed(rf"[1-9][0-9]{{0,2}}{mark}[0-9]{{3}}") for mark in (",", "[.]")}
"""Three digits after one separator: thousands or decimals."""
LONG = signed("[1-9][0-9]{3,}")
"""Four digits or more and no separator."""
LEADING = rf"^([(+-]? ?){CURRENCY} ?"
TRAILING = rf" ?(?:{CURRENCY}|[%‰])( ?[)+-]?)$"
UNIT = rf"^[(+-]? ?({CURRENCY})|({CURRENCY}|[%‰]) ?[)+-]?$"
NUMBER = re.compile(f"(?:{POINT})|(?:{COMMA})")


def reads_as_number(text: str) -> bool:
    """Return whether a text is a number as people write numbers.

    >>> [reads_as_number(text) for text in ("12", "$1,234.50", "(3)", "7,5 %", "007", "12 Main St", "a")]
    [True, True, True, True, False, False, False]
    """
    if text.startswith(CELL):
        return True
    text = text.strip(SPACES).translate({ord(old): new for old, new in zip(FROM, TO, strict=True)})
    text = re.sub(TRAILING, r"\1", re.sub(LEADING, r"\1", text, count=1), count=1)
    return bool(NUMBER.fullmatch(re.sub(r"([0-9])[.,]--?$", r"\1", text)))


FROM, TO = "\u00a0\u202f\u2009\u2007’−–—", "    '---"


def sql_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def sql_missing(column: str) -> str:
    """Return SQL for whether a column holds a word for no value, or an error of a spreadsheet."""
    listed = ", ".join(map(sql_text, (*MISSING, *ERRORS)))
    return f"lower(trim({quote_identifier(column)}, {sql_text(SPACES)})) IN ({listed})"


def sql_tidy(column: str) -> str:
    """Return SQL for a text without outer spaces, with one kind of space, apostrophe and minus."""
    return f"translate(trim({column}, {sql_text(SPACES)}), {sql_text(FROM)}, {sql_text(TO)})"


def sql_texts(table: str, column: str) -> str:
    """Return SQL for the tidy texts ``x`` of a column and their rows ``n``, without words for no value."""
    tidy, missing = sql_tidy(quote_identifier(column)), sql_missing(column)
    # Each text once, with its rows: patterns cost more than groups.
    distinct = f"(SELECT {quote_identifier(column)}, count(*) AS n FROM {quote_identifier(table)} GROUP BY 1)"
    return f"(SELECT {tidy} AS x, n FROM {distinct} WHERE NOT {missing})"


def sql_bare(tidy: str) -> str:
    """Return SQL for a tidy text without its currency, its percent sign and the dash of ``100,-``."""
    inner = f"regexp_replace({tidy}, {sql_text(LEADING)}, '\\1')"
    outer = f"regexp_replace({inner}, {sql_text(TRAILING)}, '\\1')"
    return f"regexp_replace({outer}, '([0-9])[.,]--?$', '\\1')"


def sql_number(tidy: str, decimal: str) -> str:
    """Return SQL for the number that a tidy text means. decimal: the decimal separator, a point or a comma."""
    bare = sql_bare(tidy)
    digits = f"regexp_replace({bare}, '[^0-9{decimal}]', '', 'g')"
    amount = f"TRY_CAST(replace({digits}, ',', '.') AS DOUBLE)"
    spelled = f"CASE WHEN regexp_matches({bare}, '^[(-]|-$') THEN -{amount} ELSE {amount} END"
    exact = f"WHEN regexp_full_match({bare}, {sql_text(PLAIN)}) THEN TRY_CAST({bare} AS DOUBLE) " * (decimal == ".")
    return f"CASE WHEN {tidy}[1] = {sql_text(CELL)} THEN TRY_CAST({bare}[2:] AS DOUBLE) {exact}ELSE {spelled} END"


@dataclass(frozen=True, slots=True)
class SeparatorEvidence:
    """The decimal separators that the rest of a table, its file and the person suggest for one column."""

    setting: str = ""
    """The decimal separator that the person named; '' for none."""
    sure: frozenset[str] = frozenset()
    """Those of columns that settle it by themselves."""
    hints: frozenset[str] = frozenset()
    """Reasons to expect a decimal comma: ``;`` between values, dates as 31.12.2024."""


@dataclass(frozen=True, slots=True)
class Numerals:
    """Counts of the texts of a column by the numbers that they can mean. A word for no value does not count."""

    texts: int
    strange: int
    """Texts that are no number in any reading."""
    example: str
    """The first of those."""
    point: int
    """Texts that are a number with a decimal point only."""
    comma: int
    certain: int
    either_comma: int
    either_point: int
    long: int
    bracketed: int
    percent: int
    tagged: int
    """Texts with a currency or a percent sign."""
    infinite: int
    phones: int
    """Texts of a plus sign and seven digits or more, as +49301234567."""
    negative: int
    units: tuple[str, ...]
    sample: str
    """A text that could be read in two ways."""
    spaced: str
    """A text with spaces or apostrophes between its digits."""

    def decimal(self, evidence: SeparatorEvidence) -> str:
        """Return the decimal separator; '' if nothing settles it.

        Texts of the column count before texts of other columns. Three digits after a comma in
        every text are thousands, unless the file expects a decimal comma; three after a point are decimals, likewise.
        """
        if evidence.setting:
            return evidence.setting
        if self.point and self.comma:
            return ""
        if self.comma:
            return "" if evidence.sure == {"."} and not self.certain else ","
        if self.point:
            return "."
        if not (self.either_comma or self.either_point):
            return "."
        if self.either_comma and self.either_point:
            return ""
        if len(evidence.sure) == 1:
            return next(iter(evidence.sure))
        if evidence.sure or len(evidence.hints) == 1 or (self.either_comma and self.long):
            return ""
        return "," if evidence.hints else "."

    @property
    def settles(self) -> str:
        """Decimal separator that this column shows and settles by itself; else ''."""
        marked = (self.point and not self.comma) or (self.comma and not self.point)
        return self.decimal(SeparatorEvidence()) if marked and not self.strange else ""


def count_numerals(db: duckdb.DuckDBPyConnection, table: str, column: str) -> Numerals:
    unit = f"regexp_extract(x, {sql_text(UNIT)}, 1) || regexp_extract(x, {sql_text(UNIT)}, 2)"
    fits = {
        name: f"regexp_full_match(y, {sql_text(pattern)})"
        for name, pattern in {
            "point": POINT,
            "comma": COMMA,
            "certain": CERTAIN,
            "either_comma": EITHER[","],
            "either_point": EITHER["[.]"],
            "long": LONG,
        }.items()
    }
    # Each distinct text is matched once and counts for its n rows.
    facts = f"""
        (SELECT *, is_cell OR {fits["point"]} AS is_point, is_cell OR {fits["comma"]} AS is_comma FROM
        (SELECT x, n, {sql_bare("x")} AS y, x[1] = {sql_text(CELL)} AS is_cell, {unit} AS unit
        FROM {sql_texts(table, column)}))"""
    counts = {
        "texts": "true",
        "strange": "NOT is_point AND NOT is_comma",
        "point": "is_point AND NOT is_comma",
        "comma": "is_comma AND NOT is_point",
        "certain": fits["certain"],
        **{name: f"NOT is_cell AND {fits[name]}" for name in ("either_comma", "either_point", "long")},
        "bracketed": "y[1] = '('",
        "percent": "unit IN ('%', '‰')",
        "tagged": "unit <> ''",
        "infinite": "NOT isfinite(coalesce(TRY_CAST(y AS DOUBLE), 0))",
        "phones": "regexp_full_match(x, '[+][1-9]( ?[0-9]){6,14}')",
        "negative": "x[1] = '-'",
    }
    examples = {
        "example": f"min(x) FILTER ({counts['strange']})",
        "sample": f"min(x) FILTER ({fits['either_comma']} OR {fits['either_point']})",
        "spaced": "min(x) FILTER (regexp_matches(y, '[0-9][ ''][0-9]'))",
        "units": "list_sort(list(DISTINCT unit) FILTER (unit <> ''))[:4]",
    }
    found = count_facts(db, facts, counts, examples)
    return Numerals(**{**found, "units": tuple(found["units"])})


def count_facts(
    db: duckdb.DuckDBPyConnection, facts: str, counts: Mapping[str, str], examples: Mapping[str, str]
) -> dict[str, Any]:
    """Return how many rows meet each condition of ``counts``, and the examples, "" for none."""
    sums = (f"coalesce(sum(n) FILTER ({condition}), 0)" for condition in counts.values())
    row = db.execute(f"SELECT {', '.join((*sums, *examples.values()))} FROM {facts}").fetchone()
    found = zip((*counts, *examples), row or (), strict=True)
    return {name: value or ("" if name in examples else 0) for name, value in found}


def explain_text_column(numerals: Numerals, decimal: str) -> str:
    """Return the reason why a column of numbers stays text; '' if it does not."""
    units = " and ".join(numerals.units)
    if numerals.strange:
        return (
            f"{numerals.example.replace(CELL, '')[:40]!r} is no number ({format_count(numerals.strange, 'such text')})"
        )
    if len(numerals.units) > 1:
        return f"its amounts are in {units}, and one sum of them means nothing"
    if numerals.percent and numerals.percent < numerals.texts:
        return f"{format_count(numerals.percent, 'value')} of {numerals.texts:,} are in {units}, the others are not"
    if numerals.bracketed == numerals.texts:
        return "all of its numbers stand in brackets, which may be negative or mere brackets"
    if numerals.phones and not numerals.negative:
        return "a plus sign before seven digits or more is that of a telephone number"
    if numerals.infinite:
        return "it has a number beyond what a computer's numbers hold"
    if not decimal and numerals.point and numerals.comma:
        return "some of its numbers have a decimal comma, and some a decimal point"
    if not decimal:
        either = "," if "," in numerals.sample or numerals.comma else "."
        meaning = "parts thousands or decimals" if either == "," else "parts decimals or thousands"
        sample = f" of {numerals.sample!r}" if numerals.sample else ""
        return f"nothing says whether the {'comma' if either == ',' else 'point'}{sample} {meaning}"
    return ""


def note_numbers(numerals: Numerals, decimal: str) -> Iterator[str]:
    """Yield notes on how the texts of a column are read as numbers."""
    marks = {".": "point", ",": "comma"}
    if decimal == "," and (numerals.comma or numerals.either_comma):
        yield "its texts have a decimal comma"
    elif decimal == "." and numerals.either_comma:
        yield f"its comma parts thousands, as in {numerals.sample!r}"
    elif decimal == "," and numerals.either_point:
        yield f"its point parts thousands, as in {numerals.sample!r}"
    elif decimal == "." and numerals.either_point and not numerals.point:
        yield f"its point is a decimal {marks[decimal]}, as in {numerals.sample!r}"
    if numerals.spaced:
        marks_of_groups = "apostrophes" if "'" in numerals.spaced else "spaces"
        yield f"its {marks_of_groups} part thousands, as in {numerals.spaced!r}"
    if numerals.bracketed:
        yield "a number in brackets is negative"
    if numerals.units:
        without = numerals.texts - numerals.tagged
        yield f"in {numerals.units[0]}" + (
            f", which {format_count(without, 'value')} of {numerals.texts:,} lack" * bool(without)
        )


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
    """Counts of the texts of a column by the form of date that they can be."""

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
        """Return "day", "month", "year" or "name"; '' if the order is not settled or the texts are no dates."""
        if self.bad or not self.texts:
            return ""
        if self.texts in (self.year_first, self.named):
            return "year" if self.year_first else "name"
        if self.texts != self.figures or (self.day_over_12 and self.month_over_12):
            return ""
        if self.month_over_12:
            return "month"
        # With years of two digits, 25/02/24 could begin with its year; a year over 31, or points, rule that out.
        if self.day_over_12 and (not self.short_years or self.late_years or self.dotted == self.texts):
            return "day"
        if setting or len(others) == 1:
            return setting or next(iter(others))
        return "day" if self.dotted == self.texts else ""

    def why_text(self) -> str:
        if self.bad:
            bad = "one of its texts is" if self.bad == 1 else f"{self.bad:,} of its texts are"
            return f"{bad} no date in any order"
        if self.day_over_12 and self.month_over_12:
            return "in some of its dates the day goes first, in others the month"
        if self.texts != self.figures:
            return "its dates are written in several ways"
        return f"nothing says whether the day or the month goes first in {self.sample!r}"


def sql_date(tidy: str, order: str, is_day: bool, has_short_years: bool) -> str:
    """Return SQL for the date that a tidy text means, NULL if it means none."""
    days = DAYS[order]
    # %Y would take 24 for the year 24, %y takes no year of four digits.
    forms = [*(day.replace("%Y", "%y") for day in days), *days] if has_short_years else days
    texts = ", ".join(sql_text(day + clock) for day in forms for clock in (CLOCKS[:1] if is_day else CLOCKS))
    plain = f"regexp_replace(replace({tidy}, ',', ' '), '[ T]+([0-9]|$)| +', ' \\1', 'g')"
    value = f"TRY_STRPTIME(trim({plain}), [{texts}])"
    return f"CAST({value} AS DATE)" if is_day else value


def count_dates(db: duckdb.DuckDBPyConnection, table: str, column: str) -> WrittenDates:
    pattern = sql_text(FIGURES)
    middle = " || ".join(f"regexp_extract(x, {pattern}, {group})" for group in (2, 3, 4))
    facts = f"""
        (SELECT x, n, regexp_full_match(x, {pattern}) AS is_figures,
        TRY_CAST(regexp_extract(x, {pattern}, 1) AS INT) AS first, TRY_CAST({middle} AS INT) AS second,
        regexp_extract(x, {pattern}, 5) AS year FROM {sql_texts(table, column)})"""
    counts = {
        "texts": "true",
        "figures": "is_figures",
        "year_first": f"regexp_full_match(x, {sql_text(YEAR_FIRST)})",
        "named": f"regexp_full_match(x, {sql_text(NAMED)})",
        "day_over_12": "is_figures AND first > 12",
        "month_over_12": "is_figures AND second > 12",
        "short_years": "is_figures AND len(year) = 2",
        "late_years": "is_figures AND len(year) = 2 AND TRY_CAST(year AS INT) > 31",
        "dotted": "is_figures AND regexp_matches(x, '^[0-9]+[.]')",
        "clocks": "contains(x, ':')",
        "bad": """is_figures AND (greatest(first, second) > 31 OR least(first, second) > 12
            OR least(first, second) = 0)""",
    }
    return WrittenDates(**count_facts(db, facts, counts, {"sample": "min(x)"}))
