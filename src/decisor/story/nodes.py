"""How a reasoning DAG reads in a story: which node a line belongs to, and each node's answer with its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from decisor.render.text import clean, one_line
from decisor.trace.events import Event

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


@dataclass
class Nodes:
    """Hears events in order; nodes run at the same time, so each line says which it belongs to."""

    of: dict[int, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def hear(self, event: Event) -> str:
        """The id of the node that an event belongs to, '' for none."""
        node = self.of.get(event.parent, "")
        if event.kind == "span":
            node = str(event.data["node"]) if {"ask", "node"} <= event.data.keys() else node
            self.of[event.id] = node
        if node and node not in self.seen:
            self.seen.append(node)
        return node

    def mark(self, node: str) -> Text:
        """What a line of the node begins with."""
        if not node:
            return Text()
        return Text.assemble((f"{clean(node):>5} ", COLOURS[self.seen.index(node) % len(COLOURS)]))


def node_lines(event: Event, data: Mapping[str, Any]) -> Sequence[Text]:
    """A node that starts, or its answer."""
    if event.kind == "span" and "ask" in data and "node" in data:
        return [Text(f"  {one_line(data['ask'], 300)}", style="bold")]
    if event.kind != "note" or "answered" not in data:
        return []
    node = data["answered"]
    if node["status"] != "answered":
        why = f": {one_line(node['why'], 200)}" if node["why"] else ""
        return [Text(f"    {node['status']}{why}", style="yellow")]
    kept = " (kept from the run before)" if data.get("reused") else ""
    where = f" [{clean(node['document'])}]" if node["document"] else f" ({node['attribution']})"
    lines = [Text.assemble("    -> ", (one_line(node["answer"], 300), "bold"), (where, "cyan"), (kept, "dim"))]
    if node["support"]:
        lines.append(highlighted(node["support"], node["answer"]))
    return lines


def highlighted(sentence: str, answer: str) -> Text:
    """The supporting sentence with the answer marked in it.

    >>> highlighted("She was born in Lyon.", "lyon").plain
    '       “She was born in Lyon.”'
    """
    line = Text(f"       “{one_line(sentence, 400)}”", style="italic dim")
    at = line.plain.lower().find(one_line(answer, 300).lower())
    if at >= 0 and answer:
        line.stylize("not dim bold reverse", at, at + len(one_line(answer, 300)))
    return line
