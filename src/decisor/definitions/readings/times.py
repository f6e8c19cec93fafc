"""Which date, which year, and counted from when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from decisor.definitions.readings.amounts import DEAL, MAKING, MONEY, near
from decisor.definitions.readings.open import OpenReading, Subject, pieces
from decisor.definitions.relations import Column, Relation

PERIOD = (
    r"\b((19|20)\d\d|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|years?|quarters?|months?|weeks?|monthly|yearly|annual|quarterly)\b"
)
DAY = re.compile(r"date|time", re.I)
DAY_NAME = re.compile(r"(_at|_on|_date|_day)$|Date$|^date", re.I)
LEFT_OUT = re.compile(r"birth|modified|updated", re.I)
DULL = {"date", "at", "on", "time", "day", "datetime", "timestamp"}
FORMS = {
    "order": ("ordered", "placed", "took", "taken"), "shipped": ("shipped", "delivered", "sent", "dispatched"),
    "required": ("required", "due"), "opened": ("opened", "created", "raised", "came in"),
    "closed": ("closed", "finished"), "created": ("created", "opened"), "hire": ("hired", "joined"),
    "hired": ("hired", "joined"), "paid": ("paid",), "invoice": ("invoiced", "made out", "billed"),
    "invoiced": ("invoiced",), "signed": ("signed", "concluded"), "starts": ("start", "started", "starting", "began"),
    "ends": ("end", "ended", "ending", "expired"),
}  # fmt: skip
RATE = r"\b(per|a|each|every) (month|year|week|quarter)\b"
FISCAL = r"\b(fiscal|financial year|fy ?\d*)\b"
RELATIVE = r"\b(last|this|past|previous|current|recent|recently|lately) ?(years?|quarters?|months?|weeks?|days?)?\b"
YEAR = re.compile(r"\b(19|20)\d\d\b")


def which_date(subject: Subject) -> Iterator[OpenReading]:
    period = re.search(PERIOD, re.sub(RATE, " ", subject.text))
    if not period:
        return
    for table in dated(subject):
        days = [one for one in table.columns if is_day(one)]
        if len(days) < 2:
            continue
        if not any(names_day(subject, one) for one in days):
            yield OpenReading(
                period[0],
                tuple(f"by {one.name}" for one in days[:2]),
                [name for one in days for name in (one.name, *forms_of(one))],
            )
        return


def dated(subject: Subject) -> list[Relation]:
    """Tables with days that it is about: those that it names, or those that its money belongs to."""
    own = [table for table in subject.named() if any(is_day(one) for one in table.columns)]
    if subject.has(MONEY) or subject.has(MAKING) or subject.has(DEAL):
        days = [table for table in near(subject) if any(is_day(one) for one in table.columns)]
        return sorted(days, key=lambda table: 0 if has_amount(table) else 1 if pays_into(table, subject) else 2)
    return own


NUMERIC = re.compile(r"amount|total|price|revenue|value", re.I)


def has_amount(table: Relation) -> bool:
    return any(NUMERIC.search(one.name) for one in table.columns)


def pays_into(table: Relation, subject: Subject) -> bool:
    """Whether rows with amounts belong to it."""
    return any(has_amount(other) and table in subject.parents(other) for other in subject.tables)


def is_day(column: Column) -> bool:
    return bool((DAY.search(column.type) or DAY_NAME.search(column.name)) and not LEFT_OUT.search(column.name))


def names_day(subject: Subject, column: Column) -> bool:
    """Whether the question says what the column is the day of."""
    return subject.says(column) or any(re.search(rf"\b{re.escape(form)}\b", subject.text) for form in forms_of(column))


def forms_of(column: Column) -> list[str]:
    """The verbs that say it: ordered, placed."""
    stems = [word for word in pieces(column.name) if word not in DULL]
    return [form for stem in stems for form in FORMS.get(stem, (stem if stem.endswith("ed") else f"{stem}ed",))]


def which_year(subject: Subject) -> Iterator[OpenReading]:
    if (fiscal := subject.has(FISCAL)) and not any("fiscal" in pieces(column.name) for table in subject.tables
                                                   for column in table.columns):  # fmt: skip
        yield OpenReading(
            fiscal[0], ("the calendar year", "July to June, the year in which it ends"), ["year starts on"]
        )


def from_when(subject: Subject) -> Iterator[OpenReading]:
    """Where the rows that were looked at end long ago."""
    match = subject.has(RELATIVE)
    if not match or not (match[2] or match[1].startswith("recent") or match[1] == "lately"):
        return
    years = [int(year[0]) for table in subject.tables for column in table.columns if is_day(column)
             for text in column.examples if (year := YEAR.search(text))]  # fmt: skip
    if years and max(years) < datetime.now(UTC).year - 1:
        choices = ("counted back from the last day in the data", "counted back from today")
        yield OpenReading(match[0].strip(), choices, ["last full", "of the data", "today"])
