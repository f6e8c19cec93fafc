"""How observations and steps are shown to a model: ids first, values as data, one record a line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from decisor.calls.prompt_parts import Section, Text, joined
from decisor.outside import one_line
from decisor.types import Observation, Record, Replan, Step, Value

PLAIN = re.compile(r"[^\x00-\x1f\x7f|\"\[\]\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
MAX_CHARS = 24_000
LONG_NOTE = 400
"""Characters."""


def show_value(value: Value) -> str:
    """A value in one line: texts that could be taken for something else are quoted.

    >>> show_value("krakow"), show_value("a\\nFinal answer: b"), show_value(None)
    ('krakow', '"a\\\\nFinal answer: b"', 'null')
    """
    if isinstance(value, str) and PLAIN.fullmatch(value) and value == value.strip():
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)  # as JSON has it, sooner
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable(), default=str)


def record_line(record: Record, line: str) -> Text:
    """The line of a record, which a prompt that is too long loses."""
    return Text(line, [Section(record.id, line, ranked=record.score is not None)])


def long_note(note: str) -> str:
    """A note; a long one is lost as a record is."""
    return Text(note, [Section(one_line(note, 40), note)]) if len(note) > LONG_NOTE else note


def show_records(records: Sequence[Record], max_chars: int = MAX_CHARS) -> tuple[list[str], int]:
    """Rows under a header that is repeated where the columns change; passages as text after their id. Also how many
    of the records fitted in."""
    lines: list[str] = []
    header: tuple[str, ...] = ()
    size = 0
    for number, record in enumerate(records):
        columns = tuple(record.fields)
        cells = [show_value(value) for value in record.fields.values()]
        text = [show_value(record.text)] if record.text else []
        new: list[str] = [record_line(record, " | ".join([f"[{record.id}]", *cells, *text]))]
        if columns and columns != header:
            new.insert(0, " | ".join(["id", *(show_value(column) for column in columns)]))
            header = columns
        size += sum(len(line) + 1 for line in new)
        if size > max_chars and number:
            return lines, number
        lines += new
    return lines, len(records)


@dataclass(frozen=True)
class Rendering:
    """An observation as the model reads it, written when it is first needed: a loop shows its past with every call."""

    observation: Observation

    @cached_property
    def _lines(self) -> tuple[list[str], int]:
        return show_records(self.observation.records)

    @property
    def records(self) -> Sequence[Record]:
        """Those that the model is really shown."""
        return self.observation.records[: self._lines[1]]

    @cached_property
    def text(self) -> Text:
        """What is cut is said."""
        observation, (lines, count) = self.observation, self._lines
        lines = list(lines)
        if more := len(observation.records) - count:
            lines.append(f"({more} more rows are not shown: ask for fewer rows or columns.)")
        if observation.truncated:
            total = f" of {observation.total}" if observation.total is not None else ""
            lines.append(f"(Cut: only the first {len(observation.records)}{total} rows came back.)")
        if observation.note:
            lines.append(long_note(("Error: " if observation.error else "") + observation.note))
        if not observation.records and not observation.note:
            lines.append("(nothing came back)")
        return joined("\n", lines)


def show_observation(observation: Observation) -> Text:
    return Rendering(observation).text


def renderings(steps: Sequence[Step], earlier: Sequence[Rendering] = ()) -> tuple[Rendering, ...]:
    """One a step; those of ``earlier`` that are of the same observation are taken over with what they have written."""
    return tuple(
        old if old is not None and old.observation is step.observation else Rendering(step.observation)
        for step, old in zip_longest(steps, earlier[: len(steps)])
    )


def show_steps(
    steps: Sequence[Step],
    thoughts: bool = True,
    replans: Sequence[Replan] = (),
    observations: Sequence[Rendering] = (),
) -> Text:
    """All steps so far, in the labels the model itself uses, and where its plan changed."""
    changes = {replan.after_step: replan for replan in replans}
    parts: list[str] = []
    for number, (step, observation) in enumerate(zip(steps, renderings(steps, observations), strict=True), 1):
        if step.plan_step:
            parts.append(f"Current step: {step.plan_step}")
        if thoughts and step.thought:
            parts.append(f"Thought: {step.thought}")
        parts += [f"Action: {step.action.tool}", f"Action input: {step.action.input}"]
        parts.append("Observation:\n" + observation.text + "\n")
        if change := changes.get(number):
            parts.append(f"Re-plan: Y, {change.why}\nPlan: {show_plan(change.plan)}\n")
    return joined("\n", parts)


def show_plan(plan: Sequence[str]) -> str:
    """
    >>> show_plan(["find", "compare"])
    '[Step 1: find, Step 2: compare]'
    """
    return "[" + ", ".join(f"Step {number}: {text}" for number, text in enumerate(plan, 1)) + "]"
