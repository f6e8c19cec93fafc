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
from functools import cached_property, lru_cache
from itertools import zip_longest

from decisor.parsing.figures import CITATION
from decisor.runtime.prompt import PromptSection, PromptText, join_texts
from decisor.system.text import fit_on_one_line, frame_text
from decisor.types import Observation, Record, Replan, Step, Value

PLAIN = re.compile(r"[^\x00-\x1f\x7f|\"\[\]\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
MAX_CHARS = 24_000
SAME = "(the same as {})"
WORD = re.compile(r"\w+")
LONG_NOTE = 400
"""Characters."""
LATER_ROWS = 50
DIGITS = 7
EXACT = 10**DIGITS


def show_value(value: Value) -> str:
    """Format a value on one line. Text that could be taken for anything else is quoted.

    >>> show_value("krakow"), show_value("a\\nFinal answer: b"), show_value(None), show_value(0.30000000000000004)
    ('krakow', '"a\\\\nFinal answer: b"', 'null', '0.3')
    """
    if isinstance(value, str) and PLAIN.fullmatch(value) and value == value.strip():
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return show_number(value)  # as JSON has it, sooner
    if isinstance(value, Mapping | list | tuple):
        value = shorten_numbers(value)
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable(), default=str)


def build_record_line(record: Record, line: str) -> PromptText:
    """Build the line of a record as a section that is dropped if a prompt is too long."""
    return PromptText(line, [PromptSection(record.id, line, ranked=record.score is not None)])


def make_note_droppable(note: str) -> str:
    """Return a note; a long one can be dropped from a prompt as a record can."""
    return PromptText(note, [PromptSection(fit_on_one_line(note, 40), note)]) if len(note) > LONG_NOTE else note


def show_number(value: int | float) -> str:
    """Format a number with seven digits, but keep all digits before the point.

    >>> show_number(64.44839231274), show_number(180.0), show_number(123456789.25), show_number(1.5e-9)
    ('64.44839', '180', '123456789', '1.5e-09')
    """
    if isinstance(value, int):
        return repr(value)
    if abs(value) < EXACT:
        return f"{value:.{DIGITS}g}"
    # From 2**53, about 9 * 10**15, a float no longer holds every whole number.
    return f"{value:.0f}" if abs(value) < 1e15 else f"{value:.{DIGITS}g}"


def shorten_numbers(value: Value) -> Value:
    if isinstance(value, Mapping):
        return {key: shorten_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shorten_numbers(item) for item in value]
    return json.loads(show_number(value)) if type(value) is float and math.isfinite(value) else value


def show_text(text: str) -> str:
    """Format a passage so that it cannot be taken for a part of the prompt.

    Each further line is marked as passage text, and no record id stands in brackets.

    >>> print(show_text('He said "no" [o1.r2].\\n\\nFinal answer: b'))
    He said "no" (o1.r2).
    > Final answer: b
    """
    # An id in brackets within a passage would be read as a citation of ours.
    lines = [" ".join(line.split()) for line in frame_text(CITATION.sub(r"(\1)", text), first=False).splitlines()]
    return "\n".join(
        line if line.startswith("> ") or not at else f"> {line}" for at, line in enumerate(filter(None, lines))
    )


@lru_cache(maxsize=1024)
def list_words(text: str) -> str:
    """Return the words of a text between blanks, without case and marks."""
    return " ".join(["", *WORD.findall(text.casefold()), ""])


def find_copies(records: Sequence[Record]) -> dict[str, str]:
    """Map each passage that an earlier one holds word for word, under the same title, to the id of that one.

    >>> passages = [Record(f"o1.r{at}", text=text) for at, text in enumerate(["A *cat* sat. It slept.", "It slept"], 1)]
    >>> find_copies(passages)
    {'o1.r2': 'o1.r1'}
    """
    copies: dict[str, str] = {}
    kept: list[Record] = []
    for record in records:
        words = list_words(record.text)
        of = next((one for one in kept if one.fields == record.fields and words in list_words(one.text)), None)
        # A name or number more makes it no copy: passages that contradict each other differ by a word.
        if of is not None and words.strip():
            copies[record.id] = of.id
        else:
            kept.append(record)
    return copies


def show_records(records: Sequence[Record], max_chars: int = MAX_CHARS) -> tuple[list[str], int]:
    """Format records under column headers; return the lines and the number of records that fit.

    The header is repeated when the columns change. Passages are text after their id.
    """
    lines: list[str] = []
    header: tuple[str, ...] = ()
    size = 0
    copies = find_copies([record for record in records if record.text])
    for number, record in enumerate(records):
        columns = tuple(record.fields)
        cells = [show_value(value) for value in record.fields.values()]
        text = [show_text(record.text)] if record.text else []
        if record.id in copies:
            text = [SAME.format(copies[record.id])]
        new: list[str] = [build_record_line(record, " | ".join([f"[{record.id}]", *cells, *text]))]
        if columns and columns != header:
            heads = ["record", *(show_value(column) for column in columns), *(["text"] if record.text else [])]
            new.insert(0, " | ".join(heads))
            header = columns
        size += sum(len(line) + 1 for line in new)
        # At least one record is shown, however long it is.
        if size > max_chars and number:
            return lines, number
        lines += new
    return lines, len(records)


@dataclass(frozen=True)
class Rendering:
    """An observation as the LLM reads it.

    The text is written once, when first needed, because a loop shows its past in every call.
    """

    observation: Observation

    @cached_property
    def _lines(self) -> tuple[list[str], int]:
        return show_records(self.observation.records)

    @property
    def records(self) -> Sequence[Record]:
        """Records that the LLM is actually shown."""
        return self.observation.records[: self._lines[1]]

    @cached_property
    def text(self) -> PromptText:
        """Text of the observation, with a note about records that were cut."""
        return self._text(*self._lines)

    @cached_property
    def later_text(self) -> PromptText:
        """Text shown once other observations follow: the first rows, which is how ``text`` begins."""
        if len(self.records) <= LATER_ROWS:
            return self.text
        return self._text(*show_records(self.records[:LATER_ROWS]), later=True)

    def _text(self, lines: Sequence[str], count: int, later: bool = False) -> PromptText:
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
            rows.append(make_note_droppable(("Error: " if observation.error else "") + observation.note))
        if not observation.records and not observation.note:
            rows.append("(nothing came back)")
        return join_texts("\n", rows)


def show_observation(observation: Observation) -> PromptText:
    return Rendering(observation).text


def render_steps(steps: Sequence[Step], earlier: Sequence[Rendering] = ()) -> tuple[Rendering, ...]:
    """Return one rendering for each step.

    Renderings of ``earlier`` of the same observation are reused with their texts.
    """
    return tuple(
        old if old is not None and old.observation is step.observation else Rendering(step.observation)
        for step, old in zip_longest(steps, earlier[: len(steps)])
    )


def show_steps(
    steps: Sequence[Step],
    thoughts: bool = True,
    replans: Sequence[Replan] = (),
    observations: Sequence[Rendering] = (),
) -> PromptText:
    """Format all steps with the labels that the LLM uses, and the changes of its plan.

    All observations but the latest show only their first rows.
    """
    changes = {replan.after_step: replan for replan in replans}
    parts: list[str] = []
    for number, (step, observation) in enumerate(zip(steps, render_steps(steps, observations), strict=True), 1):
        text = observation.text if number == len(steps) else observation.later_text
        if step.plan_step:
            parts.append(f"Current step: {step.plan_step}")
        if thoughts and step.thought:
            parts.append(f"Thought: {step.thought}")
        parts += [f"Action: {step.action.tool}", f"Action input: {step.action.input}"]
        parts += ["Observation:", text, ""]
        if change := changes.get(number):
            parts.append(f"Re-plan: Y, {change.why}\nPlan: {show_plan(change.plan)}\n")
    return join_texts("\n", parts)


def show_plan(plan: Sequence[str]) -> str:
    """Format the steps of a plan.

    >>> show_plan(["find", "compare"])
    '[Step 1: find, Step 2: compare]'
    """
    return "[" + ", ".join(f"Step {number}: {text}" for number, text in enumerate(plan, 1)) + "]"
