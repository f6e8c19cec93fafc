"""One run as HTML: a piece for a notebook, and a page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from decisor.durations import took
from decisor.render.markup import Html, chart_style, colours, hashed, join, tag
from decisor.render.text import one_line
from decisor.story.answer_charts.of_run import charts_of
from decisor.story.answer_charts.page import chart_html
from decisor.story.chart_page import study_html
from decisor.story.charts import studies_of
from decisor.story.decision import beside, doubts, ended
from decisor.story.drawing_html import CANVAS, drawing_html
from decisor.story.drawings import drawings
from decisor.story.html import story
from decisor.story.links import Anchors, anchors_of, linked
from decisor.story.run_evidence import evidence_html
from decisor.story.run_ranking import ranking_html
from decisor.story.run_steps import counts, steps_html
from decisor.trace.events import ActionResult, Conclusion, Entry, RunStart, RunUsage, TechniqueChoice, events_of
from decisor.trace.graph_events import NodeResult
from decisor.types import Decision, Question, Record, Usage

MOST_CHARACTERS = 2_000_000
"""Of the steps; beyond it long texts and long tables are cut."""
LONG = 400
AROUND = """html { color-scheme: light dark; } body { margin: 0; background: #fbfaf7; }
@media screen and (prefers-color-scheme: dark) { body { background: #111317; } }
"""


@cache
def style() -> str:
    """The colours of reports, within this piece of a page alone."""
    return colours().replace(":root", ".decisor") + part("run_page.css") + chart_style()


@cache
def part(name: str) -> str:
    return files("decisor.story").joinpath(name).read_text("utf-8")


def document(title: str, body: Html) -> str:
    """A whole page around what ``run_html`` gives. It has a script only where it has drawings, which it moves and
    zooms."""
    script = part("run_page.js") if CANVAS in body else ""
    policy = (
        f"default-src 'none'; style-src '{hashed(AROUND)}' '{hashed(style())}'; base-uri 'none'; form-action 'none'"
    )
    policy += f"; {script_policy()}" if script else ""
    head = join(
        tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", one_line(title, 100)), tag("style", Html(AROUND)),
    )  # fmt: skip
    last = tag("script", Html(script)) if script else None
    whole = tag("html", tag("head", head), tag("body", body, last), lang="en")
    return f"<!doctype html>\n{whole}\n"


def script_policy() -> str:
    """What a content security policy says of the only script that may run there."""
    return f"script-src '{hashed(part('run_page.js'))}'"


def run_html(
    entries: Sequence[Entry], decision: Decision, records: Sequence[Record], usage: Usage, is_page: bool = False
) -> Html:
    """Question, decision, ranking, charts, evidence and drawings, then every step (folded unless it ``is_page``), and
    the cost."""
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    items: Sequence[Mapping[str, object]] = json.loads(story(entries, MOST_CHARACTERS))["items"]
    if decision.plan and not any(item["kind"] == "plan" for item in items):
        items = [{"kind": "plan", "plan": decision.plan}, *items]
    steps = frozenset(entry.id for entry in entries)
    anchors = anchors_of(decision, records, steps, f"{start.question.text} {decision.answer} {len(entries)} {usage}")
    return tag(
        "main" if is_page else "article",
        tag("style", Html(style())),
        tag("p", " · ".join(names(start, entries)), cls="head"),
        *question_html(start.question),
        decision_html(decision, anchors),
        ranking_html(decision.ranking) if decision.ranking else None,
        *(study_html(one) for one in studies_of(entries)),
        *(chart_html(one, anchors) for one in charts_of(entries, decision, records)),
        evidence_html(records, anchors) if records else None,
        tag("h2", "What happened") if is_page else None,
        *(drawing_html(one, anchors) for one in drawings(entries)),
        tag("details", tag("summary", counts(items)), steps_html(items, entries, anchors), open=is_page),
        tag("h2", "Cost"),
        cost_html(usage, start),
        cls="decisor",
    )


def recorded_html(entries: Sequence[Entry], is_page: bool = False) -> Html:
    """Of a run that is read back from its trace, as far as it came."""
    own = [entry.event.decision for entry in entries if isinstance(entry.event, Conclusion) and entry.span == 0]
    decision = own[-1] if own else Decision("", stopped="failed")
    records = {one.id: one for result in events_of(entries, ActionResult) for one in result.observation.records}
    records |= {one.id: one for node in events_of(entries, NodeResult) for one in node.answer.documents}
    cited = [records[name] for name in decision.evidence.ids if name in records]
    usage = next((one.usage for one in events_of(entries, RunUsage)), Usage())
    return run_html(entries, decision, cited, usage, is_page)


def names(start: RunStart, entries: Sequence[Entry]) -> Iterator[str]:
    yield "Decisor"
    choice = next(events_of(entries, TechniqueChoice), None)
    yield f"{start.technique} ({choice.technique})" if choice else start.technique
    yield start.lm or "no LM"


def question_html(question: Question) -> Iterator[Html]:
    yield tag("h1", question.text)
    if question.goal and question.goal not in question.text:
        yield tag("p", question.goal)
    if question.rules:
        yield tag("details", tag("summary", "Rules"), tag("p", question.rules), open=len(question.rules) < LONG)


def decision_html(decision: Decision, anchors: Anchors) -> Html:
    why = ended(decision)
    return tag(
        "div",
        tag("div", "Decision", cls="head"),
        tag("p", decision.answer or "None", cls="answer" if decision.answer else "answer none"),
        tag("p", why, cls="cut") if why else None,
        *(tag("p", linked(text, anchors)) for text in decision.reasons),
        *(tag("p", linked(text, anchors), cls="beside") for text in beside(decision)),
        *(tag("p", linked(one.text, anchors), cls="failed objection") for one in decision.evidence.objections),
        *(tag("p", linked(text, anchors), cls="failed") for text in doubts(decision)),
        cls="box decision",
    )


def cost_html(usage: Usage, start: RunStart) -> Html:
    facts = {
        "LM calls": f"{usage.calls:,}",
        "Tokens": f"{usage.tokens:,}",
        **({"From a cache": f"{usage.cache_reads:,}"} if usage.cache_reads else {}),
        "Price": "unknown" if usage.dollars is None else f"${usage.dollars:.4f}",
        "Waiting for the LM": took(usage.seconds) or "–",
        "Actions": f"{usage.actions:,}",
    }
    if not start.lm:
        facts = {"LM calls": "none", "Actions": facts["Actions"]}
    facts |= {re.sub("_", " ", name): text for name, text in start.settings.items()}
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items()), cls="facts box")
