"""Checks 6 to 13: something is changed, and what follows is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from decisor.decision_models.checks.subject import Subject
from decisor.decision_models.format import Input, Measure
from decisor.decision_models.outcomes import Outcomes
from decisor.errors import ToolError
from decisor.finding import Finding

SHAKE = 1.07
FAR = (0.5, 2.0, 10.0)
UNIT = 7.0
CENTS = ("cent", "cents", "ct")
"""Of any money."""
SMALL = "cost price expense spend wait delay risk loss waste distance time wage rent fee penalty emission shortage"
LARGE = "profit revenue value margin gain benefit income sales turnover utility reward served coverage satisfaction"


def same(one: Outcomes, other: Outcomes) -> bool:
    return alike(one.values, other.values) and bool((one.broken == other.broken).all())


def alike(one: ArrayLike, other: ArrayLike) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def differs(subject: Subject) -> Iterator[Finding]:
    """Check 6."""
    model, values = subject.model.model, subject.outcomes.values
    for at, measure in enumerate(model.measures[:1]):
        column = values[:, at][~np.isnan(values[:, at])]
        if len(column) > 1 and alike(column, column[0]):
            words = f"measure.{measure.name} is the same for every candidate: what is chosen does not reach it"
            yield Finding(6, model.line("measure", measure.name, "sql"), words)


def statements(subject: Subject) -> Iterator[Finding]:
    """Check 7: without a statement, nothing is otherwise, also where every row of every input is another."""
    model = subject.model.model
    changes = "; ".join(unevenly(one) for one in model.inputs)
    counts = subject.model.statement_counts()
    for number in range(sum(counts)):
        try:
            useless = same(subject.again(skip=number), subject.outcomes) and (
                not changes or same(subject.again(skip=number, changes=changes), subject.again(changes=changes))
            )
        except ToolError:
            continue  # what does not run without it needs it
        if useless:
            part = "change" if number < counts[0] else "recompute"
            place = number + 1 - (0 if part == "change" else counts[0])
            words = f"statement {place} of {part} changes no outcome and no rule"
            yield Finding(7, model.line(*(("change",) if part == "change" else ("recompute", "sql"))), words)


def inputs(subject: Subject) -> Iterator[Finding]:
    """Checks 8 and 9: each input, a little larger."""
    model = subject.model.model
    for one in model.inputs:
        line = model.line("input", one.name)
        shaken = subject.again(changes=times([one], SHAKE))
        if same(shaken, subject.outcomes):
            further = [*(times([one], more) for more in FAR), unevenly(one)]
            if not all(same(subject.again(changes=changes), subject.outcomes) for changes in further):
                continue
            words = f'input "{one.name}" moves no outcome and no rule: use it, or write [input] whole without it'
            yield Finding(8, line, words)
            continue
        for name, wanted in [*((name, 1) for name in one.raises), *((name, -1) for name in one.lowers)]:
            at = subject.outcomes.measures.index(name)
            step = shaken.values[:, at] - subject.outcomes.values[:, at]
            scale = np.abs(subject.outcomes.values[:, at])
            wrong = np.flatnonzero(wanted * step < -1e-9 * np.where(np.isnan(scale), 0, scale))
            word, way = ("raises", "falls") if wanted > 0 else ("lowers", "grows")
            if len(wrong):
                who = subject.name(int(wrong[0]))
                words = (f'input "{one.name}" {word} {name}, says the file, but {name} {way} for {who}: mend it; '
                         f"where it may go either way, write [input] whole without {word}")  # fmt: skip
                yield Finding(9, line, words)
            elif not np.nansum(np.abs(step)) > 0:
                yield Finding(9, line, f'input "{one.name}" {word} {name}, says the file, but {name} does not move')


def constants(subject: Subject) -> Iterator[Finding]:
    """Check 8: a spread that moves what is 1 by its meaning, such as EUR per EUR."""
    copies = {name.lower(): copy for name, copy in subject.model.copies.items()}
    for one in subject.model.model.inputs:
        copy = copies.get(one.table.lower())
        if one.spread is None or copy is None:
            continue
        names = {one.column.lower(), base(one.unit).lower()}
        cells = next(column.values for column in copy.columns if column.name.lower() == one.column.lower())
        for column in copy.columns:
            if any(cell == 1 and str(own).lower() in names for cell, own in zip(cells, column.values, strict=True)):
                word = base(one.unit) or one.column.upper()
                words = (f'the spread of input "{one.name}" moves 1 {word} per {word}, which is a constant: leave that '
                         f"row out of {copy.name} in [copy], and write coalesce({one.column}, 1)")  # fmt: skip
                yield Finding(8, subject.model.model.line("input", one.name), words)
                break


def units(subject: Subject) -> Iterator[Finding]:
    """Check 10: all inputs in the unit of a measure, seven times. A parameter may be a constant in that unit."""
    model = subject.model.model
    for at, measure in enumerate(model.measures):
        of_unit = [one for one in model.inputs if measure.name in (*one.raises, *one.lowers)
                   and one.unit and base(one.unit) in (base(measure.unit), *CENTS)]  # fmt: skip
        if not of_unit or not base(measure.unit):
            continue
        scaled = subject.again(changes=times(of_unit, UNIT))
        now = subject.outcomes.values[:, at]
        if not np.allclose(scaled.values[:, at], UNIT * now, rtol=1e-6, equal_nan=True):
            place = int(np.nanargmax(np.abs(scaled.values[:, at] - UNIT * now)))
            names = ", ".join(one.name for one in of_unit)
            grown = f"{scaled.values[place, at] / now[place]:.4g} times as large" if now[place] else "no longer 0"
            words = (f"with every input in {base(measure.unit)} ({names}) {UNIT:g} times as large, {measure.name} of "
                     f"{subject.name(place)} is {grown}: a column or a constant in that unit is missing in [input], or "
                     "two units are mixed")  # fmt: skip
            constants = any(isinstance(value, int | float) for value in model.parameters.values())
            yield Finding(10, model.line("measure", measure.name, "unit"), words, "doubt" if constants else "error")


def rules(subject: Subject) -> Iterator[Finding]:
    """Check 11."""
    model, broken = subject.model.model, subject.outcomes.broken
    for at, name in enumerate(subject.outcomes.rules):
        count = int(broken[:, at].sum())
        if count in (0, len(broken)) and len(broken):
            words = f"rule {name} is {'broken' if count else 'kept'} by every candidate"
            yield Finding(11, model.line("rule", name), words, "error" if count else "doubt")
    if len(broken) and not subject.outcomes.allowed.any():
        line = model.line("rule", model.rules[0].name) if model.rules else model.line("choice")
        yield Finding(11, line, "no candidate is allowed: every one breaks a rule or has no outcome")


def goals(subject: Subject) -> Iterator[Finding]:
    """Check 12."""
    for measure in subject.model.model.measures:
        if word := against(measure):
            words = f"measure.{measure.name} is to be as {word} as possible, which its name does not suggest"
            yield Finding(12, subject.model.model.line("measure", measure.name, "goal"), words, "doubt")


def against(measure: Measure) -> str:
    words = set(measure.name.lower().replace("_", " ").split())
    if measure.goal == "max" and words & set(SMALL.split()) and not words & set(LARGE.split()):
        return "large"
    return "small" if measure.goal == "min" and words & set(LARGE.split()) and not words & set(SMALL.split()) else ""


def order(subject: Subject) -> Iterator[Finding]:
    """Check 13: LIMIT without ORDER BY, and ties."""
    model = subject.model
    model.job("reverse", {}, 60)
    try:
        turned = subject.again()
    finally:
        model.job("reverse", {}, 60)
    for at, name in enumerate(turned.measures):
        if not np.allclose(turned.values[:, at], subject.outcomes.values[:, at], rtol=1e-7, equal_nan=True):
            words = f"measure.{name} depends on the order of rows: a LIMIT or a tie without ORDER BY"
            yield Finding(13, model.model.line("measure", name, "sql"), words)
    for at, name in enumerate(turned.rules):
        if (turned.broken[:, at] != subject.outcomes.broken[:, at]).any():
            words = f"rule {name} depends on the order of rows: a LIMIT or a tie without ORDER BY"
            yield Finding(13, model.model.line("rule", name), words)


def times(inputs: list[Input], factor: float) -> str:
    """UPDATE statements."""
    return "; ".join(f'UPDATE "{one.table}" SET "{one.column}" = "{one.column}" * {factor}' for one in inputs)


def unevenly(one: Input) -> str:
    """Each row by another factor: weights that are all doubled weigh the same."""
    factor = "(0.2 + 4 * ((rowid * 7919) % 101) / 100.0)"
    return f'UPDATE "{one.table}" SET "{one.column}" = "{one.column}" * {factor}'


def base(unit: str) -> str:
    """
    >>> base("EUR/piece"), base("EUR a month"), base("")
    ('EUR', 'EUR', '')
    """
    words = unit.split("/")[0].split()
    return words[0] if words else ""
