"""How far each input has to move, alone, until another candidate wins: a scan, then ever smaller steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from decisor.decision_models.explain import say
from decisor.decision_models.machine import MORE_SECONDS, OpenModel, TimeOver
from decisor.decision_models.outcomes import Outcomes
from decisor.quoting import quoted
from decisor.types import Turn, Value

LOW, HIGH = 0.5, 2.0
STEPS = 6
FINER = 7
"""So many factors are tried at once between the last that changes nothing and the first that does."""
CLOSE = 5e-4
"""Relative: so near is a turning point told."""
MOST_GROUPS = 12
FACTOR = "$__factor"
CONTENDERS = 50


@dataclass(frozen=True)
class Knob:
    """A column, or its rows of one value of the column that it varies by. ``update``: with ``$__factor``."""

    name: str
    update: str

    def at(self, factor: float) -> str:
        return self.update.replace(FACTOR, repr(factor))


def knobs(model: OpenModel) -> Iterator[Knob]:
    """Every input: one that varies by a column is turned for each of its values alone, any other one as a whole."""
    copies = {name.lower(): copy for name, copy in model.copies.items()}
    for one in model.model.inputs:
        place = quoted(one.column)
        update = f"UPDATE {quoted(one.table)} SET {place} = {place} * {FACTOR}"
        how = one.spread.how if one.spread else "together"
        columns = {column.name.lower(): column for column in copies[one.table.lower()].columns}
        if how in ("each", "together") or how.lower() not in columns:
            yield Knob(one.name, update)
            continue
        values = [value for value in dict.fromkeys(columns[how.lower()].values) if value is not None]
        for value in values[:MOST_GROUPS]:
            yield Knob(f"{one.name} ({how} {value})", f"{update} WHERE {quoted(how)} = {literal(value)}")


def literal(value: Value) -> str:
    """
    >>> literal("O'Hara"), literal(3), literal(2.5)
    ("'O''Hara'", '3', '2.5')
    """
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def contenders(outcomes: Outcomes, goal: str, *more: int) -> list[int]:
    """The best allowed ones, the best of those ruled out, and ``more``: who may win where the data change."""
    sign = 1.0 if goal == "min" else -1.0
    values = sign * outcomes.values[:, 0]
    ruled_out = np.flatnonzero(outcomes.known & ~outcomes.allowed & np.isfinite(values))
    nearest = ruled_out[np.argsort(values[ruled_out], kind="stable")][:CONTENDERS]
    allowed = outcomes.order("min" if goal == "min" else "max")[:CONTENDERS]
    numbers = [int(outcomes.candidates[at]) for at in (*allowed, *nearest)]
    return sorted({*numbers, *more})


def turning_points(
    model: OpenModel, candidates: Sequence[int], best: int, target: int | None = None, seconds: float = float("inf")
) -> Iterator[Turn]:
    """Of each knob and side, the first factor from 1 to 0.5 or 2 at which another one than ``best`` wins; with a
    ``target``, at which that one wins. After ``seconds`` it ends, with both sides of the knobs that it came to.

    Raises:
        ToolError: a statement fails.
    """
    until = time.monotonic() + seconds
    try:
        for knob in knobs(model):
            yield from list(turns_of(model, knob, candidates, best, target, until))
    except TimeOver:
        return


def turns_of(
    model: OpenModel, knob: Knob, candidates: Sequence[int], best: int, target: int | None, until: float
) -> Iterator[Turn]:
    """Both sides of a knob. Raises TimeOver."""

    def winners(factors: Sequence[float]) -> list[int]:
        outcomes = whole(model.turned(candidates, knob.update, factors, seconds=until - time.monotonic()))
        places = outcomes.winners(model.model.first.goal)
        return [int(outcomes.candidates[at]) if at >= 0 else -1 for at in places]

    sides = {end: [math.exp(math.log(end) * step / STEPS) for step in range(1, STEPS + 1)] for end in (HIGH, LOW)}
    first = dict(zip(sides, batched(winners([*sides[HIGH], *sides[LOW]]), STEPS), strict=True))
    for end, factors in sides.items():
        factor, wins = first_factor(winners, best, target, factors, first[end])
        if factor is None:
            yield Turn(f"{knob.name}{'' if end == HIGH else ', falling'}", None)
            continue
        name = model.candidates.name(wins) if wins >= 0 else ""
        yield Turn(knob.name, factor, name, broken_by(model, best, knob.at(factor), until))


def whole(outcomes: Outcomes) -> Outcomes:
    """Raises TimeOver where a limit cut them off."""
    if outcomes.stopped:
        raise TimeOver(MORE_SECONDS)
    return outcomes


def batched(items: list[int], size: int) -> list[list[int]]:
    """
    >>> batched([1, 2, 3, 4], 2)
    [[1, 2], [3, 4]]
    """
    return [items[at : at + size] for at in range(0, len(items), size)]


def first_factor(
    winners: Callable[[Sequence[float]], Sequence[int]], best: int, target: int | None, factors: Sequence[float],
    wins: Sequence[int],
) -> tuple[float | None, int]:  # fmt: skip
    """The first factor on the way from 1 at which the winner is wanted, and who that is. ``wins``: who does at each.

    >>> def winners(factors): return [7 if factor > 1.25 else 1 for factor in factors]
    >>> factor, wins = first_factor(winners, 1, None, [1.1, 1.2, 1.3], winners([1.1, 1.2, 1.3]))
    >>> 1.25 < factor <= 1.25 + CLOSE, wins
    (True, 7)
    """
    near = 1.0
    while True:
        hits = [at for at, one in enumerate(wins) if (one == target if target is not None else one != best)]
        if not hits:
            return None, best
        far, winner = factors[hits[0]], wins[hits[0]]
        near = factors[hits[0] - 1] if hits[0] else near
        if abs(far - near) <= CLOSE:
            return far, winner
        step = (far - near) / (FINER + 1)
        factors = [near + step * at for at in range(1, FINER + 1)]
        wins = [*winners(factors), winner]
        factors.append(far)


def broken_by(model: OpenModel, best: int, update: str, until: float) -> str:
    """The rules that the best breaks there; '' where it is only beaten. Raises TimeOver."""
    there = whole(model.outcomes([best], changes=update, most=1, seconds=until - time.monotonic()))
    rules = [rule for at, rule in enumerate(there.rules) if there.broken[0, at]]
    return "; ".join(f"{rule}: {say(model.model, rule, there.reasons.get((best, rule)))}" for rule in rules)
