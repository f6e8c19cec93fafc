"""One run as HTML: a piece for a notebook, and a page that needs nothing else.

Question, decision, charts and evidence are markup that every browser shows. Everything else (plans, queries with their
rows, replies of the LLM, drawings, cost) is drawn by the scripts in ``static``, which draw the server's page too. Their
data stand in the page as JSON. The page's content security policy names its one script by its hash, and nothing is
loaded.

The script (``static/story.js``) draws the entries as a trace file has them, and the run's pictures. Long texts and long
tables are cut, and say how much was cut; records that the decision cites are always kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from decisor.system.serialization import finite_json_value
from decisor.system.text import clean_one_line
from decisor.trace.events import (
    ActionResult,
    AnswerSnapshot,
    Conclusion,
    Event,
    LLMCall,
    MeaningChoice,
    NodeResult,
    RunStart,
    RunUsage,
    SearchNode,
    SearchTree,
    TechniqueChoice,
    TraceEntry,
    events_of,
)
from decisor.trace.file import build_trace_row
from decisor.trace.prompts import read_thoughts
from decisor.types import Decision, Question, Record, Usage
from decisor.views.graph_drawing import draw_run
from decisor.views.markup import Html, csp_hash, join, json_block, read_static, tag
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


MOST_CHARACTERS = 2_000_000
"""Of the entries; beyond it long texts and long tables are cut."""
AROUND = """html { color-scheme: light dark; } body { margin: 0; background: #fbfaf7; }
@media screen and (prefers-color-scheme: dark) { body { background: #111317; } }
"""
MODULES = ("dom.js", "pieces.js", "drawing.js", "story.js")
IMPORT = re.compile(r'^import (\{.*?\}) from "\./([\w.]+)";$', re.M)
EXPORT = re.compile(r"^export (?:function|class|const) (\w+)", re.M)


def join_modules(*scripts: str) -> str:
    """Join the modules of ``static`` and then ``scripts`` to one script, as a file from disk may not import any.

    Each module is a function that returns its exports, so that names of two modules do not meet.
    """
    parts = ['"use strict";', "const modules = {};"]
    for name in MODULES:
        module = read_static(name)
        # Imports become look-ups of modules that stand above, so MODULES is in order of need.
        body = IMPORT.sub(r'const \1 = modules["\2"];', module).replace("\nexport ", "\n")
        exports = ", ".join(EXPORT.findall(module))
        parts.append(f'modules["{name}"] = (() => {{\n{body}return {{ {exports} }};\n}})();')
    parts += [IMPORT.sub(r'const \1 = modules["\2"];', script) for script in scripts]
    return "\n".join(["(() => {", *parts, "})();", ""])


@cache
def run_script() -> str:
    return join_modules(read_static("run_page.js"))


@cache
def run_page_style() -> str:
    """Return the style sheet of a run, limited to elements of class ``decisor``."""
    inside = read_static("text.css") + read_static("run.css") + read_static("chart.css")
    return (
        f"{read_static('colours.css').replace(':root', '.decisor')}.decisor {{ {inside} }}\n{read_static('piece.css')}"
    )


def html_document(title: str, body: Html, style: str | None = None, script: str | None = None) -> str:
    """Build a whole page.

    Args:
        style: Style sheet that stands in ``body``. None means that of ``run_html``.
        script: Policy of the scripts in ``body``. None means that of ``run_html``.
    """
    style, script = style or run_page_style(), script or script_policy()
    policy = (
        # Nothing is loaded and only the named script runs, whatever the texts of a run hold.
        f"default-src 'none'; {script}; style-src '{csp_hash(AROUND)}' '{csp_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", clean_one_line(title, 100)),
        tag("style", Html(AROUND)),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def script_policy() -> str:
    """Return the content security policy of the only script that may run on the page."""
    return f"script-src '{csp_hash(run_script())}'"


def run_html(
    entries: Sequence[TraceEntry], decision: Decision, records: Sequence[Record], usage: Usage, is_page: bool = False
) -> Html:
    """Return a run as HTML with its script. Its steps are folded unless it ``is_page``."""
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    choice = next(events_of(entries, TechniqueChoice), None)
    evidence = {**finite_json_value(decision.evidence), "records": finite_json_value(records)}
    data = {
        "run": {
            "question": {"text": start.question.text, "goal": start.question.goal, "rules": start.question.rules},
            "technique": start.technique,
            "chosen": choice.technique if choice else "",
            "llm": start.llm,
            "settings": start.settings,
            "usage": usage,
        },
        "result": {**finite_json_value(decision), "evidence": evidence},
        # The result stands in the markup.
        "drawings": tuple(draw_run(entries)),
        "entries": json.loads(story_json(entries, MOST_CHARACTERS))["entries"],
    }
    values = cut_texts(finite_json_value(data), MOST_CHARACTERS, MOST_CHARACTERS)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return tag(
        "main" if is_page else "article",
        tag("style", Html(run_page_style())),
        tag(
            "div",
            tag("h1", start.question.text),
            tag("div", result_html(entries, decision, records), cls="result"),
            tag("p", "The steps and the cost are drawn by a script, which did not run here.", cls="soft"),
            cls="brief",
        ),
        json_block(text),
        tag("script", Html(run_script())),
        cls="decisor",
    )


def recorded_html(entries: Sequence[TraceEntry], is_page: bool = False) -> Html:
    """Return a run that is read back from its trace as HTML, as far as it came."""
    decision, cited = decision_of_entries(entries)
    usage = next((one.usage for one in events_of(entries, RunUsage)), Usage())
    return run_html(entries, decision or Decision("", stopped="failed"), cited, usage, is_page)
