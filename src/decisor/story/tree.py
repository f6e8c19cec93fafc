"""A search tree of a trace, drawn: each node with its action, what came of it, its Elo and how often it was updated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.trace.search_events import NodeRating, SearchNode, SearchTree

if TYPE_CHECKING:
    from decisor.trace.events import Entry

ENDED = {"answered": "answered", "gave_up": "gave up", "steps": "no steps left"}


def draw(entries: Iterable[Entry], tree: SearchTree, span: int) -> Tree:
    """``tree``, whose nodes grew in ``span``; the way to the chosen sequence is marked. A node whose parent does not
    come before it is left out."""
    inside = (entry.event for entry in entries if entry.span == span)
    grown = {event.node: event for event in inside if isinstance(event, SearchNode)}
    way = way_to(tree.chosen, {node.node: node.parent for node in tree.nodes})
    ended = sum(bool(node.ended) for node in tree.nodes)
    head = f"Search tree: {counted(max(0, len(tree.nodes) - 1), 'node')}, {counted(ended, 'sequence')}"
    root = Tree(Text(head, style="bold"))
    branches: dict[int, Tree] = {}
    for node in tree.nodes:
        if node.parent is None:
            branches[node.node] = root
        elif node.parent in branches:
            label = node_line(node, grown.get(node.node), node.node in way)
            branches[node.node] = branches[node.parent].add(label)
    return root


def node_line(node: NodeRating, grown: SearchNode | None, chosen: bool) -> Text:
    """``grown``: what was done there, where the trace holds it."""
    tool = grown.action.tool if grown else "?"
    text = Text(f"{'▸ ' if chosen else ''}{one_line(tool)} ", style="bold cyan" if chosen else "cyan")
    if grown:
        text.append(one_line(grown.action.input, 120), style="bold" if chosen else "")
        if (result := one_line(grown.text, 100)) and tool not in ENDED.values():
            text.append(f" → {result}", style="red" if grown.error else "dim")
    if node.matches:
        text.append(f"  Elo {node.elo:+.0f} (M {node.matches})", style="magenta")
    elif node.value:
        text.append(f"  value {node.value:.3g}", style="magenta")
    if node.ended:
        text.append(f"  [{ENDED[node.ended]}]", style="green" if node.ended == "answered" else "yellow")
    return text


def way_to(node: int | None, parents: Mapping[int, int | None]) -> set[int]:
    """
    >>> sorted(way_to(3, {0: None, 1: 0, 2: 0, 3: 1}))
    [0, 1, 3]
    """
    way: set[int] = set()
    while node is not None and node not in way:
        way.add(node)
        node = parents.get(node)
    return way
