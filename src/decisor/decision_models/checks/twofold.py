"""Checks 14 to 18: the same twice, joins, the solver, and the words of the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from decisor.decision_models.checks.subject import Subject
from decisor.decision_models.machine import OpenModel
from decisor.decision_models.outcomes import Outcomes
from decisor.decision_models.rank_model import agree
from decisor.decision_models.solver import solve
from decisor.errors import ToolError
from decisor.finding import Finding
from decisor.plurals import counted
from decisor.rankings import amount

CLEAR = 1e-4
"""By so much of it an outcome differs that rows of seven digits can tell whose is right."""
COPIES, ON_COPIES = 20, 50
"""Copies whose inputs vary, and the candidates of each that are computed: these only leave a doubt."""
FEW = 50
"""Rows: a large table holds nearly every number somewhere."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")


def together(subject: Subject) -> Iterator[Finding]:
    """Check 14."""
    try:
        agree(subject.model, subject.outcomes)
    except ToolError as error:
        yield Finding(14, 0, str(error))


def joins(subject: Subject) -> Iterator[Finding]:
    """Check 15."""
    model = subject.model.model
    for part, left, right, what, rows in subject.model.job("joins", {}, 60).rows:
        line = model.line(*str(part).split("."))
        if what == "twice":
            words = f"{part} joins {left} to {right}, and neither tells its rows apart: rows are counted several times"
        else:
            words = (
                f"{part} joins {left} to {right}: {counted(int(str(rows)), 'row')} of {left.split('.')[0]} match none"  # type: ignore[union-attr]
            )
        yield Finding(15, line, words, "doubt")


@dataclass(frozen=True)
class Difference:
    """Of two models. ``candidate``: by whose outcome or rules they do on the data as they are, with what both say of
    it; None where they differ otherwise."""

    finding: Finding
    candidate: int | None = None
    outcomes: tuple[float, float] = (0.0, 0.0)
    allowed: tuple[bool, bool] = (True, True)


def second(subject: Subject, other: OpenModel) -> Iterator[Finding]:
    """Check 16."""
    if one := difference(subject, other):
        yield one.finding


def difference(subject: Subject, other: OpenModel) -> Difference | None:
    """Of two models: on all candidates as the data are, which decides; and on shaken copies, where a doubt is left."""
    model = subject.model.model
    if model.first.goal != other.model.first.goal:
        words = (
            f'by this model {model.first.name} is to be "{model.first.goal}", by the second "{other.model.first.goal}"'
        )
        return Difference(Finding(16, model.line("measure", model.first.name, "goal"), words))
    names = [subject.model.candidates.name(int(one)) for one in subject.outcomes.candidates]
    try:
        there = [other.candidates.find(name) for name in names]
    except ToolError as error:
        return Difference(Finding(16, model.line("choice"), f"the second model has other candidates: {error}"))
    line = model.line("measure", model.first.name)
    few = sorted({int(at) for at in np.linspace(0, len(names) - 1, min(len(names), ON_COPIES))})
    for number in range(COPIES + 1):
        places, changes = (few if number else range(len(names))), shaken(subject, number)
        ours = [int(subject.outcomes.candidates[at]) for at in places]
        one = subject.outcomes_of(subject.model, ours, changes=changes) if number else subject.outcomes
        two = subject.outcomes_of(other, [there[at] for at in places], changes=changes)
        places_apart = apart(one, two)
        if not places_apart:
            continue
        place = places_apart[0] if number else easiest(subject.model, (one, two), places_apart)
        values = (float(one.values[place, 0]), float(two.values[place, 0]))
        allowed = (bool(one.allowed[place]), bool(two.allowed[place]))
        words = (f"for {names[places[place]]} this model gives {in_words(values[0], allowed[0])}, the second "
                 f"{in_words(values[1], allowed[1])}")  # fmt: skip
        if number:
            words = f"as the data are both models say the same; where inputs vary, {words}"
            return Difference(Finding(16, line, words, "doubt"))
        return Difference(Finding(16, line, words), ours[place], values, allowed)
    return None


def apart(one: Outcomes, two: Outcomes) -> list[int]:
    """Where two outcomes of the same candidates differ, most first; a rule counts where numbers do not."""
    first, second = one.values[:, 0], two.values[:, 0]
    if np.allclose(first, second, rtol=1e-6, equal_nan=True):
        return [int(place) for place in np.flatnonzero(one.allowed != two.allowed)]
    distance = np.nan_to_num(np.abs(first - second), nan=np.inf)
    distance[np.isnan(first) & np.isnan(second)] = 0
    clear = distance > CLEAR * np.fmax(np.abs(first), np.abs(second))
    order = np.argsort(-distance, kind="stable")
    return [int(place) for place in order[clear[order]]] or [int(order[0])]


def easiest(model: OpenModel, both: tuple[Outcomes, Outcomes], places: Sequence[int]) -> int:
    """Of these places the one that is worked out by hand with least: few rows are chosen, and many candidates come out
    the same, as those do that hardly touch the measure."""
    texts = [[f"{value:.9g}" for value in one.values[:, 0]] for one in both]
    counts = [Counter(one) for one in texts]

    def work(place: int) -> tuple[int, int]:
        rows = model.candidates.places[int(both[0].candidates[place])]
        return len(rows), -sum(count[one[place]] for one, count in zip(texts, counts, strict=True))

    return min(places, key=work)


def in_words(value: float, allowed: bool) -> str:
    return f"{amount(value)}{'' if allowed else ', ruled out'}"


def shaken(subject: Subject, number: int) -> str:
    """The inputs, each row by another factor from 0.8 to 1.2, other ones for each copy."""
    if not number:
        return ""
    factor = "(0.8 + 0.4 * ((rowid * {0} + {1}) % 101) / 100.0)"
    return "; ".join(
        f'UPDATE "{one.table}" SET "{one.column}" = "{one.column}" * '
        + factor.format(7919 + 2 * number, 31 * number + at)
        for at, one in enumerate(subject.model.model.inputs)
    )


def solver(model: OpenModel) -> Iterator[Finding]:
    """Check 17."""
    if not model.model.variables:
        return
    first = model.model.first
    try:
        proposal = solve(model)
    except ToolError as error:
        yield Finding(17, model.model.line("measure", first.name, "sum"), str(error))
        return
    if not proposal.measures:
        line = model.model.line("require")
        yield Finding(17, line, f"the solver ends with: {proposal.status}")


def words(model: OpenModel) -> Iterator[Finding]:
    """Check 18: a number that a rule's text says stands in its query, a parameter, or a cell."""
    file = model.model
    columns = [column for copy in model.copies.values() if copy.rows <= FEW for column in copy.columns]
    cells = {float(value) for column in columns for value in column.values
             if isinstance(value, int | float)}  # fmt: skip
    cells |= {float(value) for value in file.parameters.values() if isinstance(value, int | float)}
    statements = file.statements()
    for kind, named in (("rule", file.rules), ("require", file.requires)):
        for one in named:
            if not getattr(one, "testable", True):
                continue
            own = " ".join(sql for part, sql in statements.items() if part.startswith(f"{kind}.{one.name}"))
            own += f" {one.bound}"
            there = {number_of(text) for text in NUMBER.findall(own)} | cells
            there |= {value / 100 for value in there} | {value * 100 for value in there}
            for text in NUMBER.findall(one.text):
                if not any(abs(number_of(text) - value) <= 1e-9 * max(1.0, abs(value)) for value in there):
                    words = f"{text} in the text of {kind}.{one.name} stands in no query of it and in no cell"
                    yield Finding(18, file.line(kind, one.name, "text"), words)


def number_of(text: str) -> float:
    """
    >>> number_of("1,200"), number_of("2.5"), number_of("2,5")
    (1200.0, 2.5, 2.5)
    """
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        return float(text.replace(",", ""))
    return float(text.replace(",", ".")) if text.count(",") + text.count(".") <= 1 else float(re.sub(r"[.,]", "", text))
