"""One run as HTML: a piece for a notebook, and a page that needs nothing else.

Question, decision, charts and evidence are markup that every browser shows. Everything else (plans, queries with their
rows, replies of the LLM, drawings, cost) is drawn by the scripts in ``static``, which draw the server's page
too. Their data stand in the page as JSON. The page's content security policy names its one script by
its hash, and nothing is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache

from decisor.system.serialization import finite_json_value
from decisor.system.text import clean_one_line
from decisor.trace.events import (
    RunStart,
    RunUsage,
    TechniqueChoice,
    TraceEntry,
    events_of,
)
from decisor.types import Decision, Question, Record, Usage
from decisor.views.graph_drawing import draw_run
from decisor.views.markup import Html, csp_hash, join, json_block, read_static, tag
from decisor.views.page_data import cut_texts, story_json
from decisor.views.results import decision_of_entries, result_html

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
