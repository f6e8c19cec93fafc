"""How observations and steps are shown to a model: ids first, values as data, one record a line.

Numbers have seven digits, and of an observation that is not the latest only the first rows are shown. So a prompt is
what the one before it was, to its last lines, and more.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from decisor.calls.prompt_parts import Section, Text, joined
from decisor.outside import framed, one_line
from decisor.replies.figures import CITATION
from decisor.types import Observation, Record, Replan, Step, Value

PLAIN = re.compile(r"[^\x00-\x1f\x7f|\"\[\]\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
MAX_CHARS = 24_000
LONG_NOTE = 400
"""Characters."""
LATER_ROWS = 50
DIGITS = 7
EXACT = 10**DIGITS


def show_value(value: Value) -> str:
    """A value in one line: texts that could be taken for something else are quoted.

    >>> show_value("krakow"), show_value("a\\nFinal answer: b"), show_value(None), show_value(0.30000000000000004)
    ('krakow', '"a\\\\nFinal answer: b"', 'null', '0.3')
    """
    if isinstance(value, str) and PLAIN.fullmatch(value) and value == value.strip():
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return show_number(value)  # as JSON has it, sooner
    if isinstance(value, Mapping | list | tuple):
        value = with_short_numbers(value)
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable(), default=str)


def record_line(record: Record, line: str) -> Text:
    """The line of a record, which a prompt that is too long loses."""
    return Text(line, [Section(record.id, line, ranked=record.score is not None)])


def long_note(note: str) -> str:
    """A note; a long one is lost as a record is."""
    return Text(note, [Section(one_line(note, 40), note)]) if len(note) > LONG_NOTE else note


def show_number(value: int | float) -> str:
    """Seven digits, but all of those before the point.

    >>> show_number(64.44839231274), show_number(180.0), show_number(123456789.25), show_number(1.5e-9)
    ('64.44839', '180', '123456789', '1.5e-09')
    """
    if isinstance(value, int):
        return repr(value)
    if abs(value) < EXACT:
        return f"{value:.{DIGITS}g}"
    return f"{value:.0f}" if abs(value) < 1e15 else f"{value:.{DIGITS}g}"


def with_short_numbers(value: Value) -> Value:
    if isinstance(value, Mapping):
        return {key: with_short_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_short_numbers(item) for item in value]
    return json.loads(show_number(value)) if type(value) is float and math.isfinite(value) else value


def show_text(text: str) -> str:
    """A passage as it is, but for what could be taken for something else: each further line is marked as one of the
    passage, and no id of a record stands in brackets.

    >>> print(show_text('He said "no" [o1.r2].\\n\\nFinal answer: b'))
    He said "no" (o1.r2).
    > Final answer: b
    """
    lines = [" ".join(line.split()) for line in framed(CITATION.sub(r"(\1)", text), first=False).splitlines()]
    return "\n".join(
        line if line.startswith("> ") or not at else f"> {line}" for at, line in enumerate(filter(None, lines))
    )


def show_records(records: Sequence[Record], max_chars: int = MAX_CHARS) -> tuple[list[str], int]:
    """Rows under a header that is repeated where the columns change; passages as text after their id. Also how many
    of the records fitted in."""
    lines: list[str] = []
    header: tuple[str, ...] = ()
    size = 0
    for number, record in enumerate(records):
        columns = tuple(record.fields)
        cells = [show_value(value) for value in record.fields.values()]
        text = [show_text(record.text)] if record.text else []
        new: list[str] = [record_line(record, " | ".join([f"[{record.id}]", *cells, *text]))]
        if columns and columns != header:
            new.insert(0, " | ".join(["record", *(show_value(column) for column in columns)]))
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
        return self._text(*self._lines)

    @cached_property
    def later_text(self) -> Text:
        """As it is shown once others came after it: its first rows, which is how ``text`` begins."""
        if len(self.records) <= LATER_ROWS:
            return self.text
        return self._text(*show_records(self.records[:LATER_ROWS]), later=True)

    def _text(self, lines: Sequence[str], count: int, later: bool = False) -> Text:
        observation = self.observation
        rows = [*lines]
        if later:
            rows.append(f"(Rows {count + 1} to {len(self.records)} were shown before and are left out.)")
        elif observation.truncated or count < len(observation.records):
            total = observation.total if observation.truncated else len(observation.records)
            of_them = f" of {total:,}" if total is not None else ""
            more = "" if total is not None else ", and there are more"
            advice = "" if observation.ranking is not None else ": rank, add up or filter in the query"
            rows.append(f"(Only the first {count}{of_them} rows are shown{more}{advice}.)")
        if observation.note:
            rows.append(long_note(("Error: " if observation.error else "") + observation.note))
        if not observation.records and not observation.note:
            rows.append("(nothing came back)")
        return joined("\n", rows)


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
    """All steps so far, in the labels the model itself uses, and where its plan changed. Of all observations but the
    latest the first rows."""
    changes = {replan.after_step: replan for replan in replans}
    parts: list[str] = []
    for number, (step, observation) in enumerate(zip(steps, renderings(steps, observations), strict=True), 1):
        text = observation.text if number == len(steps) else observation.later_text
        if step.plan_step:
            parts.append(f"Current step: {step.plan_step}")
        if thoughts and step.thought:
            parts.append(f"Thought: {step.thought}")
        parts += [f"Action: {step.action.tool}", f"Action input: {step.action.input}"]
        parts += ["Observation:", text, ""]
        if change := changes.get(number):
            parts.append(f"Re-plan: Y, {change.why}\nPlan: {show_plan(change.plan)}\n")
    return joined("\n", parts)


def show_plan(plan: Sequence[str]) -> str:
    """
    >>> show_plan(["find", "compare"])
    '[Step 1: find, Step 2: compare]'
    """
    return "[" + ", ".join(f"Step {number}: {text}" for number, text in enumerate(plan, 1)) + "]"
