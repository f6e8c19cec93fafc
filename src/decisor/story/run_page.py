"""One run as HTML: a piece for a notebook, and a page that needs nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from decisor.render.markup import Html, join, table, tag
from decisor.render.text import number, one_line
from decisor.story.html import story
from decisor.trace.events import Entry
from decisor.types import Decision, Ranking, Record

MOST_BARS = 10
STYLE = """
.decisor{font:15px/1.5 system-ui,sans-serif;max-width:60rem;color:#1d2733;background:#fff}
.decisor h2{font-size:1.3rem;margin:.2em 0}
.decisor h3{font-size:1rem;margin:1.2em 0 .3em}
.decisor table{border-collapse:collapse;font-size:.9em}
.decisor td,.decisor th{padding:.15em .6em;text-align:left;border-bottom:1px solid #e2e7ec;vertical-align:top}
.decisor pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2em 0}
.decisor pre{font-size:.85em;background:#f4f6f8;padding:.4em .6em;border-radius:4px}
.decisor .dim{color:#5d6b7a}
.decisor .scroll{overflow-x:auto}
.decisor .bar{background:#2c7fb8;height:.8em;border-radius:2px;min-width:1px}
.decisor .best .bar{background:#2e8b57}
.decisor .track{width:16rem}
.decisor .failed{color:#b3261e}
.decisor details{margin:.3em 0}
.decisor summary{cursor:pointer}
"""


def document(title: str, body: str) -> str:
    """A whole page around what ``run_html`` gives."""
    head = join(tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width"),
                tag("title", one_line(title, 100)))  # fmt: skip
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', Html(body)), lang='en')}\n"


def run_html(entries: Sequence[Entry], decision: Decision, records: Sequence[Record], summary: str) -> Html:
    """Question, decision, ranking and evidence; below them, folded, every step."""
    data: Mapping[str, Any] = json.loads(story(entries))
    steps = [item for item in data["items"] if item["kind"] != "decides"]
    return tag(
        "div",
        tag("style", Html(STYLE)),
        tag("p", data["question"], cls="dim"),
        tag("h2", decision.answer or "No decision"),
        *(tag("p", reason) for reason in decision.reasons),
        ranking_html(decision.ranking) if decision.ranking else None,
        evidence_html(records) if records else None,
        tag("details", tag("summary", f"{len(steps)} steps"), *map(step_html, steps)) if steps else None,
        tag("p", summary, cls="dim"),
        cls="decisor",
    )


def ranking_html(ranking: Ranking) -> Html:
    """Bars from the last candidate (nothing) to the first (full width)."""
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    if not options:
        return join()
    best, worst = options[0].outcome, options[-1].outcome
    rows = []
    for place, option in enumerate(options[:MOST_BARS], 1):
        share = 1.0 if best == worst else (option.outcome - worst) / (best - worst)
        bar = tag("div", tag("div", cls="bar", style=f"width:{100 * share:.1f}%"), cls="track")
        first = place == 1 or option.name in ranking.ties
        rows.append(tag("tr", tag("td", place), tag("td", option.name), tag("td", bar),
                        tag("td", number(option.outcome)), cls="best" if first else None))  # fmt: skip
    word = "largest" if ranking.goal == "max" else "smallest"
    return join(tag("h3", f"Ranking: {ranking.measure}, {word} first, {len(options)} candidates"),
                tag("table", *rows))  # fmt: skip


def evidence_html(records: Sequence[Record]) -> Html:
    rows = []
    for record in records:
        cells = ", ".join(f"{name} {value}" for name, value in record.fields.items())
        rows.append(tag("tr", tag("td", f"[{record.id}]"), tag("td", record.text or cells)))
    return join(tag("h3", "Evidence"), tag("table", *rows))


def step_html(item: Mapping[str, Any]) -> Html:
    """A plan, a query with what it brought, a note, or a span with its own steps."""
    match item["kind"]:
        case "plan" | "replan":
            why = f"Replan: {item.get('why') or 'no reason given'}" if item["kind"] == "replan" else "Plan"
            return join(tag("h3", why), tag("ol", *(tag("li", line) for line in item["plan"])))
        case "says":
            return tag("details", tag("summary", "The LM", cls="dim"), *(tag("pre", text) for text in item["texts"]))
        case "acts":
            tables = [rows_html(one) for one in item.get("tables", ())]
            note = tag("p", item["note"], cls="failed" if item["error"] else "dim") if item["note"] else None
            return join(tag("p", item["tool"]), tag("pre", item["input"]), note, *tables)
        case "span":
            return tag("details", tag("summary", f"{item['name']} {item['about']}"), *map(step_html, item["items"]))
        case "cut":
            return tag("p", f"{item['items']} more", cls="dim")
        case "notes":
            return tag("p", f"{item['about']} {item['text']}", cls="dim")
    return join()


def rows_html(rows: Mapping[str, Any]) -> Html:
    head = join(tag("th", ""), *(tag("th", name) for name in rows["columns"]))
    return table(head, join(*(tag("tr", *(tag("td", cell) for cell in row)) for row in rows["rows"])))
