"""An answer that nothing was compared with: its citation is true, and does not bear that it is the best."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decisor.replies.attribution import plain_values
from decisor.replies.figures import numbers_of_fields
from decisor.techniques.shared.objections.uncited import holds_name
from decisor.types import Question, Record, Step

NAMED = "Each query that brought {name} named it, and no other candidate was looked at."
NOT_BEST = "{name} is not the first row of {id}, nor does any column there have its largest or smallest figure in it."
ONE_PASSAGE = "[{id}] alone is cited, and no passage with what {name} was compared with."
ADVICE = "Find the other candidates and compare them by what decides. Where you did, cite what shows it."
FEW_ROWS = 3


def not_compared(name: str, cited: Sequence[Record], question: Question, steps: Sequence[Step]) -> str:
    """Why what was looked at shows no choice; '' where it may show one.

    Every query that brought the candidate named it; or a choice by rules among passages rests on one of them.
    """
    plain = name.strip().casefold()
    holders = [(step, one) for step in steps for one in step.observation.records if holds_name(one, plain)]
    if not plain or not holders or question.earlier:
        return ""
    brought = names(str(question), plain) or any(not names(step.action.input, plain) for step, _ in holders)
    if not brought and alone(plain, [record for _, record in holders], steps):
        return NAMED.format(name=name)
    if len(cited) == 1 and cited[0].text and (question.rules or question.goal):
        return ONE_PASSAGE.format(name=name, id=cited[0].id)
    return ""


def not_best(name: str, cited: Sequence[Record], steps: Sequence[Step]) -> str:
    """Where rows of lists are all that is cited, and the candidate stands in the middle of each column of every list.
    It may be the best of those that the rules allow, so this is for who reads the decision."""
    plain = name.strip().casefold()
    lists = [step.observation.records for step in steps if is_list_with(plain, step)]
    rows = {row.id for some in lists for row in some}
    if not lists or not {one.id for one in cited} <= rows or any(is_best(plain, some) for some in lists):
        return ""
    return NOT_BEST.format(name=name, id=lists[-1][0].id.partition(".")[0])


def names(text: str, plain: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text.casefold()) is not None


def alone(plain: str, holders: Sequence[Record], steps: Sequence[Step]) -> bool:
    """Of rows: no other value was seen in a column that the candidate stands in. Of passages: no search was for
    anything else."""
    if any(record.text for record in holders):
        return all(names(step.action.input, plain) for step in steps if step.observation.records)
    columns = {column for record in holders for column in columns_with(plain, record)}
    rows = (record for step in steps for record in step.observation.records)
    return all(column not in row.fields or column in columns_with(plain, row) for row in rows for column in columns)


def columns_with(plain: str, record: Record) -> Iterator[str]:
    for column, value in record.fields.items():
        if any(plain == str(one).strip().casefold() for one in plain_values([value])):
            yield column


def is_list_with(plain: str, step: Step) -> bool:
    """Whether it brought the candidate as one of several rows with figures, or as the only row without naming it."""
    rows = step.observation.records
    if any(row.text for row in rows) or not any(holds_name(row, plain) for row in rows):
        return False
    if len(rows) < FEW_ROWS:
        return not names(step.action.input, plain)
    return any(True for row in rows for _ in numbers_of_fields(row))


def is_best(plain: str, rows: Sequence[Record]) -> bool:
    """Whether the candidate stands first, or has the largest or smallest figure of a column."""
    if holds_name(rows[0], plain) or len(rows) < FEW_ROWS:
        return True
    figures: dict[str, list[float]] = {}
    for row in rows:
        for column, number in numbers_of_fields(row):
            figures.setdefault(column, []).append(number)
    return any(
        number in (min(figures[column]), max(figures[column]))
        for row in rows
        if holds_name(row, plain)
        for column, number in numbers_of_fields(row)
    )
