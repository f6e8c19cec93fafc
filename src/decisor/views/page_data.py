"""A run as JSON for the script of a page: its entries, cut to a number of characters, and its pictures.

The script (``static/story.js``) draws the entries as a trace file has them. Long texts and long tables are cut, and say
how much was cut; records that the decision cites are always kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decisor.system.serialization import finite_json_value
from decisor.trace.events import (
    ActionResult,
    AnswerSnapshot,
    Conclusion,
    Event,
    LLMCall,
    MeaningChoice,
    NodeResult,
    RunStart,
    SearchNode,
    SearchTree,
    TraceEntry,
    events_of,
)
from decisor.trace.file import build_trace_row
from decisor.trace.prompts import read_thoughts
from decisor.types import Decision, Question, Record
from decisor.views.graph_drawing import draw_run
from decisor.views.markup import Html
from decisor.views.results import decision_of_entries, result_html

UNDRAWN = (MeaningChoice, SearchNode, SearchTree, AnswerSnapshot)
"""Events for programs, and those that a drawing shows."""

MOST_INTEGER = 2**53 - 1
"""Larger whole numbers go as texts: JavaScript would round them."""


@dataclass(frozen=True, slots=True)
class StoryCaps:
    """Limits of the entries of a run."""

    text: int
    """Characters of a text."""
    cell: int
    """Characters of a cell of a table."""
    rows: int
    """Records of an observation, and candidates of a ranking; cited records come on top."""
    entries: int
    """Entries of a span."""


LEVELS = (
    StoryCaps(6000, 300, 40, 400),
    StoryCaps(1600, 160, 12, 160),
    StoryCaps(500, 90, 6, 80),
    StoryCaps(160, 60, 3, 40),
    StoryCaps(80, 40, 2, 14),
)


def story_json(entries: Sequence[TraceEntry], most: int = 60_000) -> str:
    """Return the question and the entries of a run as JSON of about ``most`` characters.

    It is the least cut version that fits, else the most cut one.
    """
    question = next((start.question for start in events_of(entries, RunStart)), Question(""))
    decision, cited = decision_of_entries(entries)
    text = ""
    for caps in LEVELS:
        story = {
            "question": cut_text(question.text, 4 * caps.text),
            "goal": cut_text(question.goal, caps.text),
            "rules": cut_text(question.rules, 2 * caps.text),
            "entries": cut_entries(entries, caps),
            "result": cut_result(decision, cited, caps) if decision else "",
        }
        text = json.dumps(story, ensure_ascii=False, default=str, separators=(",", ":"))
        if len(text) <= most:
            break
    # An LLM may write half of a surrogate pair, which no file in UTF-8 can hold.
    return text.encode("utf-8", "replace").decode()


def cut_result(decision: Decision, cited: Sequence[Record], caps: StoryCaps) -> Html:
    """Return a decision with its ranking and evidence as HTML, cut like the entries."""
    records = []
    for record in cited:
        fields = cut_texts(finite_json_value(record.fields), caps.cell, caps.cell)
        records.append(replace(record, fields=fields, text=cut_text(record.text, caps.text)))
    ranking = decision.ranking
    if ranking:
        ranking = replace(ranking, options=ranking.options[: caps.rows])
    short = [cut_text(text, caps.text) for text in decision.reasons]
    answer = cut_text(decision.answer, caps.text)
    return result_html((), replace(decision, answer=answer, reasons=tuple(short), ranking=ranking), records)


def cut_entries(entries: Sequence[TraceEntry], caps: StoryCaps) -> list[dict[str, Any]]:
    """Return the rows of a trace that a page draws; of a span with too many entries the middle is left out."""
    cited = {id for one in events_of(entries, Conclusion) for id in one.decision.evidence.ids}
    # Results are not counted: each stays or goes with its action.
    sizes = Counter(entry.span for entry in entries if not isinstance(entry.event, (*UNDRAWN, ActionResult)))
    places: Counter[int] = Counter()
    kept, rows = {0}, []
    for entry in entries:
        if isinstance(entry.event, UNDRAWN) or entry.span not in kept:
            continue
        if isinstance(entry.event, ActionResult):
            if entry.event.action in kept:
                rows.append(cut_entry(entry, caps, cited))
            continue
        place, size = places[entry.span], sizes[entry.span]
        places[entry.span] += 1
        # Two thirds of what is kept is from the beginning, one third from the end.
        ending = caps.entries // 3
        if size > caps.entries and caps.entries - ending <= place < size - ending:
            if place == caps.entries - ending:
                left_out = {"entries": size - caps.entries}
                rows.append({"id": entry.id, "span": entry.span, "at": entry.at, "event": "Cut", "data": left_out})
            continue
        kept.add(entry.id)
        rows.append(cut_entry(entry, caps, cited))
    return rows


def cut_entry(entry: TraceEntry, caps: StoryCaps, cited: set[str]) -> dict[str, Any]:
    """Return the row of an entry for a page, with its first and its cited records, and with short texts."""
    event: Event = entry.event
    match event:
        case RunStart():
            # The records of an earlier decision come with the entries that cite them.
            event = RunStart(replace(event.question, earlier=None), event.technique, event.llm, event.settings)
        case ActionResult(observation=observation):
            # A cited record is kept wherever it stands, as the decision links to it.
            records = tuple(one for at, one in enumerate(observation.records) if at < caps.rows or one.id in cited)
            total = observation.total or len(observation.records)
            short = replace(observation, records=records, total=total, ranking=None, study=None)
            event = replace(event, observation=short)
        case NodeResult(answer=answer):
            documents = tuple(one for one in answer.documents if one.id in cited)
            event = replace(event, answer=replace(answer, documents=documents))
        case Conclusion(decision=decision) if decision.ranking:
            ranking = replace(decision.ranking, options=decision.ranking.options[: caps.rows])
            event = Conclusion(replace(decision, ranking=ranking))
        case _:
            pass
    row = build_page_row(replace(entry, event=event))
    return {**row, "data": cut_texts(finite_json_value(row["data"]), caps.text, caps.cell)}


def build_page_row(entry: TraceEntry) -> Mapping[str, Any]:
    """Build the row of an entry for a page. An LLM call is without its prompt; its thoughts are one text."""
    event = entry.event
    if not isinstance(event, LLMCall):
        return build_trace_row(entry)
    # Prompts repeat the run so far, and would be most of the page.
    turn, thoughts = event.turn, read_thoughts(event.turn) if event.turn else ""
    row = build_trace_row(replace(entry, event=replace(event, messages=(), turn=turn and replace(turn, raw=None))))
    return {**row, "data": {**row["data"], "thoughts": thoughts}} if thoughts else row


def cut_texts(value: Any, most: int, cell: int) -> Any:
    """Cut every text of a JSON value. most, cell: characters of a text, and of a field of a record."""
    if isinstance(value, str):
        return cut_text(value, most)
    if isinstance(value, int) and abs(value) > MOST_INTEGER:
        return str(value)
    if isinstance(value, Mapping):
        return {name: cut_texts(item, cell if name == "fields" else most, cell) for name, item in value.items()}
    return [cut_texts(item, most, cell) for item in value] if isinstance(value, list) else value


def cut_text(text: str, most: int) -> str:
    """Cut a text and say how much more there was.

    >>> cut_text("abcdefghij", 4)
    'abcd… (+6)'
    """
    return text if len(text) <= most else f"{text[:most]}… (+{len(text) - most:,})"


def draw_picture(entries: Sequence[TraceEntry], decision: Decision | None, records: Sequence[Record]) -> dict[str, Any]:
    """Return the drawings and the result of a run. decision: None while there is none."""
    result = result_html(entries, decision, records) if decision else ""
    return {"drawings": finite_json_value(tuple(draw_run(entries))), "result": result}
