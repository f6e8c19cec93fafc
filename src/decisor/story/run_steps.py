"""The steps of a run as HTML: plans, queries with their rows, what the LM wrote, notes, and search trees."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from decisor.plurals import counted
from decisor.render.markup import Html, join, tag
from decisor.story.tree import node_line, way_to
from decisor.trace.events import Entry
from decisor.trace.search_events import NodeRating, SearchNode, SearchTree

Item = Mapping[str, Any]
THOUGHT = re.compile(r"^\W*thought\W*:\s*(.+)", re.I | re.M)


def steps_html(items: Sequence[Item], entries: Sequence[Entry], cited: Collection[str]) -> Html:
    """``items``: as ``story`` gives them. ``cited``: the ids of the records that the decision rests on."""
    trees = [tree_html(entries, entry.event, entry.span) for entry in entries if isinstance(entry.event, SearchTree)]
    return join(*trees, list_html(items, cited))


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


def list_html(items: Sequence[Item], cited: Collection[str]) -> Html:
    lines = [step_html(item, cited) for item in items if item["kind"] != "decides"]
    return tag("ol", *lines, cls="steps")


def step_html(item: Item, cited: Collection[str]) -> Html:
    """One step as an item of a list."""
    match item["kind"]:
        case "plan":
            inside = join(title("Plan"), plan_html(item["plan"]))
        case "replan":
            after = f"after step {item['after']}" if item["after"] else ""
            inside = join(title("Replan", after), tag("p", item["why"] or "No reason given."), plan_html(item["plan"]))
        case "says":
            inside = says_html(item)
        case "acts":
            inside = acts_html(item, cited)
        case "span":
            inside = span_html(item, cited)
        case "cut":
            inside = title("…", f"{item['items']:,} events left out here")
        case _:
            about = ("Answer", item["attribution"]) if "attribution" in item else ("Note", item["about"])
            inside = join(title(*about), tag("p", item["text"]) if item["text"] else None)
    kind = f"{item['kind']} bad" if item.get("error") or item.get("about", "").startswith("problem") else item["kind"]
    return tag("li", inside, cls=kind)


def title(name: str, *rest: str) -> Html:
    return tag("div", tag("b", name), *(tag("span", text) for text in rest if text), cls="what")


def plan_html(steps: Sequence[str]) -> Html:
    """Numbered, where the steps bring no names of their own."""
    named = [step for step in steps if re.match(r"Q\d", step)]
    return tag("ol", *(tag("li", step) for step in steps)) if not named else join(*(tag("p", step) for step in steps))


def says_html(item: Item, name: str = "The LM") -> Html:
    text = "\n\n".join(item["texts"])
    thought = THOUGHT.search(text)
    about = ", ".join(part for part in (item["model"], f"{item['tokens']:,} tokens", took(item["seconds"])) if part)
    return join(tag("p", thought[1], cls="thought") if thought else None,
                tag("details", tag("summary", f"{name} wrote ({about})"), tag("pre", text)))  # fmt: skip


def acts_html(item: Item, cited: Collection[str]) -> Html:
    visible, total = item.get("shown", 0), item.get("total", 0)
    records = counted(total, "record") if total else ""
    rows = f"{visible:,} of {records} shown" if total > visible else records
    note = tag("p", item["note"], cls="failed" if item["error"] else "soft") if item["note"] else None
    tables = [rows_html(one, item["tool"], cited) for one in item.get("tables", ())]
    query = tag("pre", item["input"]) if item["input"] else None
    return join(title(item["tool"], rows, took(item["seconds"])), query, note, *tables)


def span_html(item: Item, cited: Collection[str]) -> Html:
    """A stretch with a name; of a node its question."""
    ask = item.get("ask", "")
    if not ask and [one["kind"] for one in item["items"]] == ["says"]:
        return says_html(item["items"][0], f"The LM as {item['name']}")
    head = title(item.get("node") or item["name"], item.get("source", "") if ask else item["about"])
    question = tag("p", ask) if ask else None
    return join(head, question, list_html(item["items"], cited) if item["items"] else None)


def rows_html(rows: Mapping[str, Any], tool: str, cited: Collection[str]) -> Html:
    """Without the last column where it only says which tool brought them."""
    if rows["columns"][-1:] == ["source"] and all(row[-1] == tool for row in rows["rows"]):
        rows = {"columns": rows["columns"][:-1], "rows": [row[:-1] for row in rows["rows"]]}
    head = tag("tr", tag("th", "id"), *(tag("th", name) for name in rows["columns"]))
    body = [
        tag("tr", tag("td", row[0], cls="id"), *(tag("td", cell) for cell in row[1:]),
            cls="cited" if row[0] in cited else None)
        for row in rows["rows"]
    ]  # fmt: skip
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), cls="scroll", tabindex=0)


def took(seconds: float) -> str:
    """
    >>> took(1.5), took(0.0123), took(0)
    ('1.50 s', '12 ms', '')
    """
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.0f} ms" if seconds > 0 else ""


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
    return tag("div", tag("p", head, cls="soft"), *roots, cls="box tree")
