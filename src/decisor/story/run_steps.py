"""The steps of a run as HTML: plans, queries with their rows, what the LM wrote, notes, and search trees."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decisor.durations import took
from decisor.plurals import counted
from decisor.render.markup import Html, join, tag
from decisor.story.links import Anchors
from decisor.story.plan_diff import plan_diff
from decisor.story.query_words import query_html
from decisor.story.tree import node_line, way_to
from decisor.trace.events import Entry
from decisor.trace.search_events import NodeRating, SearchNode, SearchTree

Item = Mapping[str, Any]
THOUGHT = re.compile(r"^\W*thought\W*:\s*(.+)", re.I | re.M)


def steps_html(items: Sequence[Item], entries: Sequence[Entry], anchors: Anchors) -> Html:
    """``items``: as ``story`` gives them."""
    trees = [tree_html(entries, entry.event, entry.span) for entry in entries if isinstance(entry.event, SearchTree)]
    return join(*trees, list_html(items, anchors))


def counts(items: Sequence[Item]) -> str:
    """How much there is to unfold."""
    kinds = [item["kind"] for item in flat(items)]
    names = {"replan": "replan", "acts": "action", "says": "LM call"}
    parts = [counted(number, name) for kind, name in names.items() if (number := kinds.count(kind))]
    return ", ".join(parts) or "No steps"


def flat(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        if item["kind"] == "span":
            yield from flat(item["items"])


def list_html(items: Sequence[Item], anchors: Anchors) -> Html:
    """Each replan beside the plan before it."""
    lines: list[Html] = []
    plan: Sequence[str] = ()
    for item in items:
        if item["kind"] != "decides":
            lines.append(step_html(item, anchors, plan))
        plan = item.get("plan", plan)
    return tag("ol", *lines, cls="steps")


def step_html(item: Item, anchors: Anchors, plan: Sequence[str]) -> Html:
    """One step as an item of a list; ``plan``: the one that holds until then."""
    match item["kind"]:
        case "plan":
            inside = join(title("Plan"), plan_html(item["plan"]))
        case "replan":
            after = f"after step {item['after']}" if item["after"] else ""
            inside = join(title("Replan", after), tag("p", item["why"] or "No reason given."),
                          diff_html(plan, item["plan"]))  # fmt: skip
        case "says":
            inside = says_html(item)
        case "acts":
            inside = acts_html(item, anchors)
        case "span":
            inside = span_html(item, anchors)
        case "cut":
            inside = title("…", f"{item['items']:,} events left out here")
        case _:
            about = ("Answer", item["attribution"]) if "attribution" in item else ("Note", item["about"])
            inside = join(title(*about), tag("p", item["text"]) if item["text"] else None)
    kind = f"{item['kind']} bad" if item.get("error") or item.get("about", "").startswith("problem") else item["kind"]
    place = anchors.step(item["entry"]) if "entry" in item else None
    return tag("li", inside, cls=kind, id=place)


def title(name: str, *rest: str) -> Html:
    return tag("div", tag("b", name), *(tag("span", text) for text in rest if text), cls="what")


def plan_html(steps: Sequence[str]) -> Html:
    """Numbered, where the steps bring no names of their own."""
    named = [step for step in steps if re.match(r"Q\d", step)]
    return tag("ol", *(tag("li", step) for step in steps)) if not named else join(*(tag("p", step) for step in steps))


def diff_html(before: Sequence[str], after: Sequence[str]) -> Html:
    """The steps that stay, those that are new and those that are dropped; said in words too."""
    lines = [
        tag("li", tag("span", step) if mark == "stays" else tag("ins" if mark == "new" else "del", step),
            tag("small", f" {mark}") if mark != "stays" else None, cls=mark)
        for mark, step in plan_diff(before, after)
    ]  # fmt: skip
    return tag("ul", *lines, cls="diff")


def says_html(item: Item, name: str = "The LM") -> Html:
    text = "\n\n".join(item["texts"])
    thought = THOUGHT.search(text)
    about = ", ".join(part for part in (item["model"], f"{item['tokens']:,} tokens", took(item["seconds"])) if part)
    return join(tag("p", thought[1], cls="thought") if thought else None,
                tag("details", tag("summary", f"{name} wrote ({about})"), tag("pre", text)))  # fmt: skip


def acts_html(item: Item, anchors: Anchors) -> Html:
    visible, total = item.get("shown", 0), item.get("total", 0)
    records = counted(total, "record") if total else ""
    rows = f"{visible:,} of {records} shown" if total > visible else records
    note = tag("p", item["note"], cls="failed" if item["error"] else "soft") if item["note"] else None
    tables = [rows_html(one, item["tool"], anchors) for one in item.get("tables", ())]
    query = query_html(item["input"]) if item["input"] else None
    return join(title(item["tool"], rows, took(item["seconds"])), query, note, *tables)


def span_html(item: Item, anchors: Anchors) -> Html:
    """A stretch with a name; of a node its question."""
    ask = item.get("ask", "")
    if not ask and [one["kind"] for one in item["items"]] == ["says"]:
        return says_html(item["items"][0], f"The LM as {item['name']}")
    head = title(item.get("node") or item["name"], item.get("source", "") if ask else item["about"])
    question = tag("p", ask) if ask else None
    return join(head, question, list_html(item["items"], anchors) if item["items"] else None)


def rows_html(rows: Mapping[str, Any], tool: str, anchors: Anchors) -> Html:
    """Without the last column where it only says which tool brought them."""
    if rows["columns"][-1:] == ["source"] and all(row[-1] == tool for row in rows["rows"]):
        rows = {**rows, "columns": rows["columns"][:-1], "rows": [row[:-1] for row in rows["rows"]]}
    kinds = ["n" if one else None for one in rows["numeric"]]
    cells = zip(rows["columns"], kinds, strict=False)
    head = tag(
        "tr", tag("th", "record", scope="col"), *(tag("th", name, cls=kind, scope="col") for name, kind in cells)
    )
    body = [row_html(row, kinds, anchors) for row in rows["rows"]]
    inner = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", inner, cls="scroll", tabindex=0, role="group", aria_label=f"Rows of {tool}")


def row_html(row: Sequence[str], kinds: Sequence[str | None], anchors: Anchors) -> Html:
    """A cited one can be reached, and leads back to the evidence."""
    is_cited = row[0] in anchors.records
    name = tag("a", row[0], href=f"#{anchors.row(row[0])}") if is_cited else row[0]
    cells = (tag("td", cell, cls=kind) for cell, kind in zip(row[1:], kinds, strict=False))
    place, cls = (anchors.origin(row[0]), "cited") if is_cited else (None, None)
    return tag("tr", tag("td", name, cls="id"), *cells, cls=cls, id=place)


def tree_html(entries: Sequence[Entry], tree: SearchTree, span: int) -> Html:
    """A search tree, as nested lists; the way to the chosen sequence is bold."""
    inside = (entry.event for entry in entries if entry.span == span)
    grown = {event.node: event for event in inside if isinstance(event, SearchNode)}
    way = way_to(tree.chosen, {node.node: node.parent for node in tree.nodes})
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
    head = f"Search tree: {counted(max(0, len(tree.nodes) - 1), 'node')}, {counted(ended, 'sequence')}"
    return tag("details", tag("summary", f"{head}, as a list"), *roots, cls="tree")
