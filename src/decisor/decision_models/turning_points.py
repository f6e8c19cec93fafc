"""Turning points: how far one input has to move, alone, until another candidate or plan wins.

A column, or its rows of one group, is a knob that is turned from 1 to 0.5 and to 2. The first factor at which another
one wins is found by a scan, then by ever smaller steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.decision_models.client import OpenModel, TimeOver
from decisor.decision_models.copies import Copy
from decisor.decision_models.ranking import check_not_stopped, explain_broken_rules
from decisor.decision_models.schema import Input, write_literal
from decisor.system.text import quote_identifier
from decisor.types import Turn, Value

LOW, HIGH = 0.5, 2.0
STEPS = 6
FINER = 7
"""So many factors are tried at once between the last that changes nothing and the first that does."""
CLOSE = 5e-4
"""Relative: so near is a turning point told."""
MOST_GROUPS = 12
FACTOR = "$__factor"


@dataclass(frozen=True)
class Knob:
    """An input that is turned alone: a column, or its rows of one group."""

    name: str
    update: str
    """Its UPDATE with ``$__factor``."""


def build_knobs(model: OpenModel) -> Iterator[Knob]:
    """Build the knobs of every input.

    An input that varies by a column has one for each of that column's values, any other input has one.
    """
    for one in model.model.inputs:
        place = quote_identifier(one.column)
        update = f"UPDATE {quote_identifier(one.table)} SET {place} = {place} * {FACTOR}"
        groups = list_input_groups(model, one)
        if not groups:
            yield Knob(one.name, update)
        for name, condition in groups.items():
            yield Knob(f"{one.name} ({one.how} {name})", f"{update} WHERE {condition}")


def list_input_groups(model: OpenModel, column: Input) -> dict[str, str]:
    """Return the condition of each group of rows that vary alike, by its name; of many groups, the first."""
    copies = {name.lower(): copy for name, copy in model.copies.items()}
    columns = {one.name.lower(): one.values for one in copies[column.table.lower()].columns}
    names = map_keys_to_names(copies, column.how)
    values = [value for value in dict.fromkeys(columns.get(column.how.lower(), ())) if value is not None]
    return {
        str(names.get(value, value)): f"{quote_identifier(column.how)} = {write_literal(value)}"
        for value in values[:MOST_GROUPS]
    }


def map_keys_to_names(copies: Mapping[str, Copy], column: str) -> Mapping[Value, Value]:
    """Map each key of a column to the name of the row that it leads to, in the table that is called as the column."""
    table = copies.get(column.lower().removesuffix("_id"))
    fields = {one.name.lower(): one.values for one in table.columns} if table else {}
    keys = fields.get("id") or fields.get(column.lower()) or ()
    texts = (
        texts
        for texts in fields.values()
        if all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts)
    )
    return dict(zip(keys, next(texts, ()), strict=False))


def find_turning_points(
    model: OpenModel, candidates: Sequence[int], best: int, target: int | None = None, seconds: float = float("inf")
) -> Iterator[Turn]:
    """Find the first factor of each input at which another candidate than ``best`` wins.

    Factors go from 1 to 0.5 and to 2; with a ``target``, that candidate has to win. After ``seconds`` it ends, with
    both sides of the knobs that it reached.

    Raises:
        ToolError: a statement fails.
    """
    until = time.monotonic() + seconds

    def winners(factors: Sequence[float]) -> list[int]:
        left = until - time.monotonic()
        outcomes = check_not_stopped(model.outcomes_at_factors(candidates, knob.update, factors, seconds=left))
        places = outcomes.winners()
        return [int(outcomes.candidates[at]) if at >= 0 else -1 for at in places]

    def describe(factor: float, wins: int) -> tuple[str, str]:
        update, left = knob.update.replace(FACTOR, repr(factor)), until - time.monotonic()
        # By itself at the turning point, the former winner shows which rule it breaks.
        alone = check_not_stopped(model.outcomes([best], changes=update, most=1, seconds=left))
        name = model.candidates.name(wins) if wins >= 0 else ""
        return name, "; ".join(explain_broken_rules(model, alone, 0))

    try:
        for knob in build_knobs(model):
            yield from list(find_turns_of_knob(knob, winners, describe, best, target))
    except TimeOver:
        return


def find_turns_of_knob(
    knob: Knob,
    winners: Callable[[Sequence[float]], list[int]],
    describe: Callable[[float, int], tuple[str, str]],
    best: int,
    target: int | None,
) -> Iterator[Turn]:
    """Find the turning points of a knob, upwards and downwards; raise TimeOver if cut off.

    winners: who wins at each of some factors. describe: name of a winner, and why the best does not win.
    """
    # Steps of equal ratio, for 0.5 and 2 are equally far from 1.
    sides = {end: [math.exp(math.log(end) * step / STEPS) for step in range(1, STEPS + 1)] for end in (HIGH, LOW)}
    both = winners([*sides[HIGH], *sides[LOW]])  # one request for both sides
    for (end, factors), scanned in zip(sides.items(), (both[:STEPS], both[STEPS:]), strict=True):
        factor, wins = find_first_factor(winners, best, target, factors, scanned)
        if factor is None:
            yield Turn(f"{knob.name}{'' if end == HIGH else ', falling'}", None)
            continue
        yield Turn(knob.name, factor, *describe(factor, wins))


def find_first_factor(
    winners: Callable[[Sequence[float]], Sequence[int]],
    best: int,
    target: int | None,
    factors: Sequence[float],
    wins: Sequence[int],
) -> tuple[float | None, int]:
    """Find the first factor on the way from 1 at which another or the wanted candidate wins.

    Returns it with the winner, or None with ``best``. wins: winner at each of ``factors``.

    >>> def winners(factors): return [7 if factor > 1.25 else 1 for factor in factors]
    >>> factor, wins = find_first_factor(winners, 1, None, [1.1, 1.2, 1.3], winners([1.1, 1.2, 1.3]))
    >>> 1.25 < factor <= 1.25 + CLOSE, wins
    (True, 7)
    """
    near = 1.0
    while True:
        # A winner between two factors of the scan is not seen.
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
