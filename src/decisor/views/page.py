"""One run as HTML: a piece for a notebook, and a page that needs nothing else.

It shows the decision with its ranking, charts, evidence and computed figures, then every step: plans, queries with
their rows, replies of the LLM, notes and search trees. The page's content security policy lets only the script of its
drawings run.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from decisor.parsing.figures import COMPUTED
from decisor.system.text import clean_one_line, format_number
from decisor.system.wording import format_count, format_duration
from decisor.trace.events import (
    ActionResult,
    Conclusion,
    NodeRating,
    NodeResult,
    RunStart,
    RunUsage,
    SearchNode,
    SearchTree,
    TechniqueChoice,
    TraceEntry,
    events_of,
)
from decisor.types import Decision, Question, Record, Usage, Value
from decisor.views.chart_drawing import chart_html
from decisor.views.charts import charts_of_decision
from decisor.views.graph_drawing import CANVAS, draw_run, drawing_html
from decisor.views.links import RECORD, Anchors, EvidenceCell, anchors_of, link_text
from decisor.views.markup import Html, csp_hash, join, query_html, read_chart_style, read_colours, tag
from decisor.views.page_data import story_json
from decisor.views.rankings import ranking_html, studies_of, study_html
from decisor.views.terminal import diff_plans
from decisor.views.transcript import describe_end, node_line, path_to_node, pitfall_lines, runner_up_lines

Item = Mapping[str, Any]
THOUGHT = re.compile(r"^\W*thought\W*:\s*(.+)", re.I | re.M)


def steps_html(items: Sequence[Item], entries: Sequence[TraceEntry], anchors: Anchors) -> Html:
    """Return the search trees and steps of a run as HTML. items: as ``story_json`` gives them."""
    trees = [tree_html(entries, entry.event, entry.span) for entry in entries if isinstance(entry.event, SearchTree)]
    return join(*trees, list_html(items, anchors))


def count_steps(items: Sequence[Item]) -> str:
    """Return the number of replans, actions and LLM calls to unfold, in words."""
    kinds = [item["kind"] for item in flatten_items(items)]
    names = {"replan": "replan", "acts": "action", "says": "LM call"}
    parts = [format_count(number, name) for kind, name in names.items() if (number := kinds.count(kind))]
    return ", ".join(parts) or "No steps"


def flatten_items(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if item["kind"] == "span":
            yield from flatten_items(item["items"])


def list_html(items: Sequence[Item], anchors: Anchors) -> Html:
    """Return the items as a list; each replan is compared with the plan before it."""
    lines: list[Html] = []
    plan: Sequence[str] = ()
    for item in items:
        if item["kind"] != "decides":
            lines.append(step_html(item, anchors, plan))
        plan = item.get("plan", plan)
    return tag("ol", *lines, cls="steps")


def step_html(item: Item, anchors: Anchors, plan: Sequence[str]) -> Html:
    """Return one step as an item of a list. plan: the one that holds until then."""
    match item["kind"]:
        case "plan":
            inside = join(step_title_html("Plan"), plan_html(item["plan"]))
        case "replan":
            after = f"after step {item['after']}" if item["after"] else ""
            inside = join(
                step_title_html("Replan", after),
                tag("p", item["why"] or "No reason given."),
                diff_html(plan, item["plan"]),
            )
        case "says":
            inside = says_html(item)
        case "acts":
            inside = acts_html(item, anchors)
        case "span":
            inside = span_html(item, anchors)
        case "cut":
            inside = step_title_html("…", f"{item['items']:,} events left out here")
        case _:
            about = ("Answer", item["attribution"]) if "attribution" in item else ("Note", item["about"])
            inside = join(step_title_html(*about), tag("p", item["text"]) if item["text"] else None)
    kind = f"{item['kind']} bad" if item.get("error") or item.get("about", "").startswith("problem") else item["kind"]
    place = anchors.step(item["entry"]) if "entry" in item else None
    return tag("li", inside, cls=kind, id=place)


def step_title_html(name: str, *rest: str) -> Html:
    return tag("div", tag("b", name), *(tag("span", text) for text in rest if text), cls="what")


def plan_html(steps: Sequence[str]) -> Html:
    """Return a plan as HTML; it is numbered unless its steps bring names of their own."""
    named = [step for step in steps if re.match(r"Q\d", step)]
    return tag("ol", *(tag("li", step) for step in steps)) if not named else join(*(tag("p", step) for step in steps))


def diff_html(before: Sequence[str], after: Sequence[str]) -> Html:
    """Return the kept, new and dropped steps of a plan as HTML; words tell them apart too."""
    lines = [
        tag(
            "li",
            tag("span", step) if mark == "stays" else tag("ins" if mark == "new" else "del", step),
            tag("small", f" {mark}") if mark != "stays" else None,
            cls=mark,
        )
        for mark, step in diff_plans(before, after)
    ]
    return tag("ul", *lines, cls="diff")


def says_html(item: Item, name: str = "The LM") -> Html:
    text = "\n\n".join(item["texts"])
    thought = THOUGHT.search(text)
    about = ", ".join(
        part for part in (item["model"], f"{item['tokens']:,} tokens", format_duration(item["seconds"])) if part
    )
    return join(
        tag("p", thought[1], cls="thought") if thought else None,
        tag("details", tag("summary", f"{name} wrote ({about})"), tag("pre", text)),
    )


def acts_html(item: Item, anchors: Anchors) -> Html:
    visible, total = item.get("shown", 0), item.get("total", 0)
    records = format_count(total, "record") if total else ""
    rows = f"{visible:,} of {records} shown" if total > visible else records
    note = tag("p", item["note"], cls="failed" if item["error"] else "soft") if item["note"] else None
    tables = [observation_rows_html(one, item["tool"], anchors) for one in item.get("tables", ())]
    query = query_html(item["input"]) if item["input"] else None
    return join(step_title_html(item["tool"], rows, format_duration(item["seconds"])), query, note, *tables)


def span_html(item: Item, anchors: Anchors) -> Html:
    """Return a named span as HTML; a node has its question."""
    ask = item.get("ask", "")
    if not ask and [one["kind"] for one in item["items"]] == ["says"]:
        return says_html(item["items"][0], f"The LM as {item['name']}")
    head = step_title_html(item.get("node") or item["name"], item.get("source", "") if ask else item["about"])
    question = tag("p", ask) if ask else None
    return join(head, question, list_html(item["items"], anchors) if item["items"] else None)


def observation_rows_html(rows: Mapping[str, Any], tool: str, anchors: Anchors) -> Html:
    """Return rows as HTML. The last column is left out if it only says which tool brought them."""
    if rows["columns"][-1:] == ["source"] and all(row[-1] == tool for row in rows["rows"]):
        rows = {**rows, "columns": rows["columns"][:-1], "rows": [row[:-1] for row in rows["rows"]]}
    kinds = ["n" if one else None for one in rows["numeric"]]
    cells = zip(rows["columns"], kinds, strict=False)
    head = tag(
        "tr", tag("th", "record", scope="col"), *(tag("th", name, cls=kind, scope="col") for name, kind in cells)
    )
    body = [observation_row_html(row, kinds, anchors) for row in rows["rows"]]
    inner = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", inner, cls="scroll", tabindex=0, role="group", aria_label=f"Rows of {tool}")


def observation_row_html(row: Sequence[str], kinds: Sequence[str | None], anchors: Anchors) -> Html:
    """Return a row as HTML; a cited one can be reached, and leads back to the evidence."""
    is_cited = row[0] in anchors.records
    name = tag("a", row[0], href=f"#{anchors.row(row[0])}") if is_cited else row[0]
    cells = (tag("td", cell, cls=kind) for cell, kind in zip(row[1:], kinds, strict=False))
    place, cls = (anchors.origin(row[0]), "cited") if is_cited else (None, None)
    return tag("tr", tag("td", name, cls="id"), *cells, cls=cls, id=place)


def tree_html(entries: Sequence[TraceEntry], tree: SearchTree, span: int) -> Html:
    """Return a search tree as nested lists; the path to the chosen sequence is bold."""
    inside = (entry.event for entry in entries if entry.span == span)
    grown = {event.node: event for event in inside if isinstance(event, SearchNode)}
    way = path_to_node(tree.chosen, {node.node: node.parent for node in tree.nodes})
    children: dict[int | None, list[NodeRating]] = defaultdict(list)
    for node in tree.nodes:
        children[node.parent].append(node)

    def branch(parent: int | None) -> Html | None:
        if not children[parent]:
            return None
        return tag("ul", *(leaf(node) for node in children[parent]))

    def leaf(node: NodeRating) -> Html:
        line = node_line(node, grown.get(node.node), node.node in way).plain
        return tag("li", tag("span", line, cls="way" if node.node in way else None), branch(node.node))

    roots = [branch(node.node) for node in children[None]]
    ended = sum(bool(node.ended) for node in tree.nodes)
    head = f"Search tree: {format_count(max(0, len(tree.nodes) - 1), 'node')}, {format_count(ended, 'sequence')}"
    return tag("details", tag("summary", f"{head}, as a list"), *roots, cls="tree")


def evidence_tables_html(records: Sequence[Record], anchors: Anchors) -> Html:
    """Return records of the same columns in one table.

    Columns that hold a figure of the answer come first, and each such cell is marked.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*record.fields, *(("text",) if record.text else ())), []).append(record)
    marked = {cell for cells in anchors.cells.values() for cell in cells}
    tables = [table_html(names, group, marked, anchors) for names, group in groups.items()]
    return join(tag("h2", "Evidence"), *tables, figures_html(anchors))


def table_html(names: Sequence[str], records: Sequence[Record], marked: set[EvidenceCell], anchors: Anchors) -> Html:
    ids = {record.id for record in records}
    deciding = {cell.column for cell in marked if cell.record in ids}
    texts = {at for at, name in enumerate(names) if not any(is_number_value(one.fields.get(name)) for one in records)}
    order = sorted(range(len(names)), key=lambda at: (at > 0, at not in deciding, at))
    head = (tag("th", names[at], cls=None if at in texts else "n", scope="col") for at in order)
    body = (
        tag("tr", *evidence_row_html(one, names, order, texts, marked, anchors), id=anchors.row(one.id))
        for one in records
    )
    inner = tag("table", tag("thead", tag("tr", tag("th", "record", scope="col"), *head)), tag("tbody", *body))
    return tag("div", inner, cls="scroll evidence", tabindex=0, role="group", aria_label="Evidence")


def evidence_row_html(
    record: Record,
    names: Sequence[str],
    order: Sequence[int],
    texts: set[int],
    marked: set[EvidenceCell],
    anchors: Anchors,
) -> Iterator[Html]:
    source = tag("small", f" {record.source}") if record.source else None
    yield tag("td", tag("a", record.id, href=f"#{anchors.origin(record.id)}"), source, cls="id")
    for at in order:
        is_text = at >= len(record.fields)
        cell = EvidenceCell(record.id, -1 if is_text else at)
        value = record.text if is_text else record.fields[names[at]]
        hit = cell in marked
        classes = " ".join(part for part in ("" if at in texts else "n", "hit" if hit else "") if part)
        yield tag("td", cell_text(value), cls=classes or None, id=anchors.cell(cell) if hit else None)


def cell_text(value: Value) -> str:
    return "" if value is None else format_number(value) if isinstance(value, float) else str(value)


def is_number_value(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def figures_html(anchors: Anchors) -> Html | None:
    """Return the computed figures with their formulas as HTML; None if there are none."""
    rows = [
        (one.text, one.support.removeprefix(COMPUTED)) for one in anchors.figures if one.support.startswith(COMPUTED)
    ]
    lines = (
        tag("div", tag("dt", tag("span", text, cls="figure")), tag("dd", with_links(formula, anchors)))
        for text, formula in rows
    )
    return tag("dl", *lines, cls="figures") if rows else None


def with_links(formula: str, anchors: Anchors) -> Html:
    """Link each record in a formula to its row."""
    parts: list[Html | str] = []
    end = 0
    for match in RECORD.finditer(formula):
        link = tag("a", match[0], href=f"#{anchors.row(match[0])}") if match[0] in anchors.records else match[0]
        parts += [formula[end : match.start()], link]
        end = match.end()
    return join(*parts, formula[end:])


MOST_CHARACTERS = 2_000_000
"""Of the steps; beyond it long texts and long tables are cut."""
LONG = 400
AROUND = """html { color-scheme: light dark; } body { margin: 0; background: #fbfaf7; }
@media screen and (prefers-color-scheme: dark) { body { background: #111317; } }
"""


@cache
def run_page_style() -> str:
    """Return the style sheet of reports, limited to this piece of a page."""
    return read_colours().replace(":root", ".decisor") + read_page_part("run_page.css") + read_chart_style()


@cache
def read_page_part(name: str) -> str:
    return files("decisor.views").joinpath(name).read_text("utf-8")


def html_document(title: str, body: Html) -> str:
    """Build a whole page around the output of ``run_html``.

    It has a script only if it has drawings, which the script moves and zooms.
    """
    script = read_page_part("run_page.js") if CANVAS in body else ""
    policy = (
        f"default-src 'none'; style-src '{csp_hash(AROUND)}' '{csp_hash(run_page_style())}'; base-uri 'none'; "
        "form-action 'none'"
    )
    policy += f"; {script_policy()}" if script else ""
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", clean_one_line(title, 100)),
        tag("style", Html(AROUND)),
    )
    last = tag("script", Html(script)) if script else None
    whole = tag("html", tag("head", head), tag("body", body, last), lang="en")
    return f"<!doctype html>\n{whole}\n"


def script_policy() -> str:
    """Return the content security policy of the only script that may run on the page."""
    return f"script-src '{csp_hash(read_page_part('run_page.js'))}'"


def run_html(
    entries: Sequence[TraceEntry], decision: Decision, records: Sequence[Record], usage: Usage, is_page: bool = False
) -> Html:
    """Return a run as HTML: question, decision, ranking, charts, evidence, drawings, steps and cost.

    The steps are folded unless it ``is_page``.
    """
    start = next(events_of(entries, RunStart), RunStart(Question("")))
    items: Sequence[Mapping[str, object]] = json.loads(story_json(entries, MOST_CHARACTERS))["items"]
    if decision.plan and not any(item["kind"] == "plan" for item in items):
        items = [{"kind": "plan", "plan": decision.plan}, *items]
    steps = frozenset(entry.id for entry in entries)
    anchors = anchors_of(decision, records, steps, f"{start.question.text} {decision.answer} {len(entries)} {usage}")
    return tag(
        "main" if is_page else "article",
        tag("style", Html(run_page_style())),
        tag("p", " · ".join(run_head_parts(start, entries)), cls="head"),
        *question_html(start.question),
        run_decision_html(decision, anchors),
        ranking_html(decision.ranking) if decision.ranking else None,
        *(study_html(one) for one in studies_of(entries)),
        *(chart_html(one, anchors) for one in charts_of_decision(entries, decision, records)),
        evidence_tables_html(records, anchors) if records else None,
        tag("h2", "What happened") if is_page else None,
        *(drawing_html(one, anchors) for one in draw_run(entries)),
        tag("details", tag("summary", count_steps(items)), steps_html(items, entries, anchors), open=is_page),
        tag("h2", "Cost"),
        cost_html(usage, start),
        cls="decisor",
    )


def recorded_html(entries: Sequence[TraceEntry], is_page: bool = False) -> Html:
    """Return a run that is read back from its trace as HTML, as far as it came."""
    own = [entry.event.decision for entry in entries if isinstance(entry.event, Conclusion) and entry.span == 0]
    decision = own[-1] if own else Decision("", stopped="failed")
    records = {one.id: one for result in events_of(entries, ActionResult) for one in result.observation.records}
    records |= {one.id: one for node in events_of(entries, NodeResult) for one in node.answer.documents}
    cited = [records[name] for name in decision.evidence.ids if name in records]
    usage = next((one.usage for one in events_of(entries, RunUsage)), Usage())
    return run_html(entries, decision, cited, usage, is_page)


def run_head_parts(start: RunStart, entries: Sequence[TraceEntry]) -> Iterator[str]:
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


def run_decision_html(decision: Decision, anchors: Anchors) -> Html:
    why = describe_end(decision)
    return tag(
        "div",
        tag("div", "Decision", cls="head"),
        tag("p", decision.answer or "None", cls="answer" if decision.answer else "answer none"),
        tag("p", why, cls="cut") if why else None,
        *(tag("p", link_text(text, anchors)) for text in decision.reasons),
        *(tag("p", link_text(text, anchors), cls="beside") for text in runner_up_lines(decision)),
        *(tag("p", link_text(one.text, anchors), cls="failed objection") for one in decision.evidence.objections),
        *(tag("p", link_text(text, anchors), cls="failed") for text in pitfall_lines(decision)),
        cls="box decision",
    )


def cost_html(usage: Usage, start: RunStart) -> Html:
    facts = {
        "LM calls": f"{usage.calls:,}",
        "Tokens": f"{usage.tokens:,}",
        **({"From a cache": f"{usage.cache_reads:,}"} if usage.cache_reads else {}),
        "Price": "unknown" if usage.dollars is None else f"${usage.dollars:.4f}",
        "Waiting for the LM": format_duration(usage.seconds) or "–",
        "Actions": f"{usage.actions:,}",
    }
    if not start.lm:
        facts = {"LM calls": "none", "Actions": facts["Actions"]}
    facts |= {re.sub("_", " ", name): text for name, text in start.settings.items()}
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items()), cls="facts box")
