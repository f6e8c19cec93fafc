"""One run as HTML: a piece for a notebook, and a page that needs nothing else, no script either."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from decisor.rankings import SHOWN_EXCLUDED, compared, excluded, varied
from decisor.render.markup import Html, colours, hashed, join, tag
from decisor.render.svg import box, strip
from decisor.render.text import number, one_line
from decisor.replies.figures import CITATION
from decisor.story.chart_page import study_html
from decisor.story.charts import studies_of
from decisor.story.decision import beside, doubts, ended
from decisor.story.html import story
from decisor.story.run_steps import counts, steps_html
from decisor.trace.events import Entry, RunStart, TechniqueChoice, events_of
from decisor.types import Decision, Goal, Option, Question, Ranking, Record, Usage

MOST_BARS = 10
MOST_CHARACTERS = 2_000_000
"""Of the steps; beyond it long texts and long tables are cut."""
LONG = 400
AROUND = """html { color-scheme: light dark; } body { margin: 0; background: #fbfaf7; }
@media (prefers-color-scheme: dark) { body { background: #111317; } }
"""


@cache
def style() -> str:
    """The colours of reports, within this piece of a page alone."""
    return colours().replace(":root", ".decisor") + files("decisor.story").joinpath("run_page.css").read_text("utf-8")


def document(title: str, body: Html) -> str:
    """A whole page around what ``run_html`` gives."""
    policy = (
        f"default-src 'none'; style-src '{hashed(AROUND)}' '{hashed(style())}'; base-uri 'none'; form-action 'none'"
    )
    head = join(
        tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", one_line(title, 100)), tag("style", Html(AROUND)),
    )  # fmt: skip
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def run_html(
    entries: Sequence[Entry], decision: Decision, records: Sequence[Record], usage: Usage, is_page: bool = False
) -> Html:
    """Question, decision, ranking and evidence, then every step (folded unless it ``is_page``), and the cost."""
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    items: Sequence[Mapping[str, Any]] = json.loads(story(entries, MOST_CHARACTERS))["items"]
    if decision.plan and not any(item["kind"] == "plan" for item in items):
        items = [{"kind": "plan", "plan": decision.plan}, *items]
    steps = steps_html(items, entries, {record.id for record in records})
    return tag(
        "article",
        tag("style", Html(style())),
        tag("p", " · ".join(names(start, entries)), cls="head"),
        *question_html(start.question),
        decision_html(decision),
        ranking_html(decision.ranking) if decision.ranking else None,
        *(study_html(one) for one in studies_of(entries)),
        evidence_html(records) if records else None,
        tag("h2", "What happened") if is_page else None,
        tag("details", tag("summary", counts(items)), steps, open=is_page),
        tag("h2", "Cost"),
        cost_html(usage, start),
        cls="decisor",
    )


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


def decision_html(decision: Decision) -> Html:
    why = ended(decision)
    unsupported = ", ".join(decision.evidence.unsupported)
    return tag(
        "div",
        tag("div", "Decision", cls="head"),
        tag("p", decision.answer or "None", cls="answer" if decision.answer else "answer none"),
        tag("p", why, cls="cut") if why else None,
        *(tag("p", with_citations(text)) for text in (*decision.reasons, *beside(decision))),
        tag("p", f"Figures that no record supports: {unsupported}", cls="failed") if unsupported else None,
        *(tag("p", with_citations(text), cls="failed") for text in doubts(decision)),
        cls="box",
    )


def with_citations(text: str) -> Html:
    """Each [o1.r1] of a text stands out."""
    parts, end = [], 0
    for match in CITATION.finditer(text):
        parts += [join(text[end : match.start()]), tag("span", match[1], cls="cite")]
        end = match.end()
    return join(*parts, text[end:])


def ranking_html(ranking: Ranking) -> Html | None:
    """Bars from the last candidate (nothing) to the first (full width)."""
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    if not options:
        return None
    word = "largest" if ranking.goal == "max" else "smallest"
    rows = ranking_rows(ranking)
    more = len(rows) - MOST_BARS
    rest = tag("details", tag("summary", f"{more} more"), ranking_table(rows[MOST_BARS:])) if more > 0 else None
    note = "A bar's length: how far from the worst (none) to the best (full)."
    if any(option.low is not None for option in options):
        note += " The line in it: between its ends lie 90 % of the outcomes while the inputs vary."
    title = tag("h2", f"Ranking: {ranking.measure}, {word} first, {ranking.count:,} candidates")
    lines = (compared(ranking), *excluded(ranking), varied(ranking)) if ranking.candidates is not None else ()
    words = [tag("p", line, cls="soft") for line in lines if line]
    return join(
        title, ranking_table([*rows[:MOST_BARS], *excluded_rows(ranking)]), rest, *words, tag("p", note, cls="soft")
    )


def ranking_rows(ranking: Ranking) -> list[Html]:
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    worst, best = ends(options, ranking.goal)
    rows = []
    for place, option in enumerate(options, 1):
        share = share_of(option.outcome, worst, best)
        words = f"{share:.0%} of the way from the worst to the best"
        bar = strip("bar", words, box("", 0, 100 * share, 0, 10), *span(option, worst, best))
        first = place == 1 or option.name in ranking.ties
        cells = (tag("td", place, cls="place"), tag("td", option.name), tag("td", bar, cls="track"),
                 tag("td", number(option.outcome), cls="n"))  # fmt: skip
        rows.append(tag("tr", *cells, cls="best" if first else None))
    return rows


def ends(options: Sequence[Option], goal: Goal) -> tuple[float, float]:
    """The worst and the best number that is drawn, ranges too."""
    values = [value for one in options for value in (one.outcome, one.low, one.high) if value is not None]
    return (max(values), min(values)) if goal == "min" else (min(values), max(values))


def share_of(value: float, worst: float, best: float) -> float:
    return 1.0 if best == worst else (value - worst) / (best - worst)


def span(option: Option, worst: float, best: float) -> Iterator[Html]:
    """A thin line over the bar: where the outcome lies while the inputs vary."""
    if option.low is not None and option.high is not None:
        start, end = sorted(100 * share_of(value, worst, best) for value in (option.low, option.high))
        yield tag("g", box("", start, max(end - start, 0.5), 4, 2), cls="span")


def excluded_rows(ranking: Ranking) -> list[Html]:
    """The nearest of those ruled out, with the rules."""
    return [
        tag("tr", tag("td", "–", cls="place"), tag("td", one.name),
            tag("td", f"{' and '.join(one.rules) or 'no outcome'}: {one_line(one.why, 90)}", cls="soft"),
            tag("td", "" if one.outcome is None else number(one.outcome), cls="n soft"), cls="out")
        for one in ranking.excluded[:SHOWN_EXCLUDED]
    ]  # fmt: skip


def ranking_table(rows: Sequence[Html]) -> Html:
    return tag("div", tag("table", tag("tbody", *rows)), cls="scroll rank")


def evidence_html(records: Sequence[Record]) -> Html:
    rows = []
    for record in records:
        cells = ", ".join(f"{name} {number(v) if isinstance(v, float) else v}" for name, v in record.fields.items())
        title = f"{record.fields['title']}: " if record.text and "title" in record.fields else ""
        text = f"{title}{record.text}" if record.text else cells
        rows.append(tag("tr", tag("td", record.id, cls="id"), tag("td", text), tag("td", record.source, cls="soft")))
    return join(tag("h2", "Evidence"), tag("div", tag("table", tag("tbody", *rows)), cls="scroll"))


def cost_html(usage: Usage, start: RunStart) -> Html:
    facts = {
        "LM calls": f"{usage.calls:,}",
        "Tokens": f"{usage.tokens:,}",
        **({"From a cache": f"{usage.cache_reads:,}"} if usage.cache_reads else {}),
        "Price": "unknown" if usage.dollars is None else f"${usage.dollars:.4f}",
        "Waiting for the LM": f"{usage.seconds:.2f} s",
        "Actions": f"{usage.actions:,}",
    }
    if not start.lm:
        facts = {"LM calls": "none", "Actions": facts["Actions"]}
    facts |= {re.sub("_", " ", name): text for name, text in start.settings.items()}
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items()), cls="facts box")
