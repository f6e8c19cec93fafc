"""What a run knows of values of rows before it begins, and whom it asks whether a tool may get them."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.definitions.readings.open import Interpreter, OpenReading
from decisor.session.tools import ToolSpecs
from decisor.tools.row_values import Release, RowValues, is_governed, is_outward
from decisor.trace.events import ActionResult, Entry, events_of
from decisor.types import Observation, Question, Tool

KEEP, SEND = "do not send it", "send it"


def row_values_of(
    specs: ToolSpecs, question: Question, tools: Sequence[Tool], past: Sequence[Entry], reader: Interpreter | None
) -> RowValues:
    """Those of runs that it follows or goes on with are known from the beginning."""
    words = " ".join((question.text, question.rules, question.goal))
    values = RowValues(specs.row_values, released_by(reader) if reader else None, words)
    if any(map(is_outward, tools)):
        governed = any(map(is_governed, tools))
        if question.earlier:
            values.add(Observation(tuple(question.earlier.records)), "an earlier run", governed)
        for one in events_of(past, ActionResult):
            values.add(one.observation, "an earlier run", governed)
    return values


def released_by(reader: Interpreter) -> Release:
    """Ask whoever says what words mean."""

    async def ask(words: str) -> bool:
        one = OpenReading(words, (KEEP, SEND), asks=True)
        return one.choice(await reader(one)) == SEND

    return ask
