"""A search tree of a trace, drawn: each node with its action, what came of it, its Elo and how often it was updated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from decisor.plurals import counted
from decisor.trace.events import Event

if TYPE_CHECKING:
    from rich.tree import Tree

ENDED = {"answered": "answered", "gave_up": "gave up", "steps": "no steps left"}


def draw(events: Iterable[Event], tree: Event) -> Tree:
    """The tree that the event ``tree`` ends, of the same span; the way to the chosen sequence is marked."""
    from rich.text import Text
    from rich.tree import Tree

    told = {
        event.data["node"]: event.data
        for event in events
        if event.parent == tree.parent and event.kind == "note" and event.data.get("name") == "node"
    }
    rows: list[Mapping[str, Any]] = list(tree.data["nodes"])
    way = way_to(tree.data["chosen"], {row["id"]: row["of"] for row in rows})
    drawn: dict[int, Tree] = {}
    for row in rows:
        if row["of"] is None:
            grown, ended = len(rows) - 1, sum(bool(other["ended"]) for other in rows)
            told_of = f"Search tree: {counted(grown, 'node')}, {counted(ended, 'sequence')}"
            drawn[row["id"]] = Tree(Text(told_of, style="bold"))
        else:
            drawn[row["id"]] = drawn[row["of"]].add(line(row, told.get(row["id"], {}), row["id"] in way))
    return drawn[rows[0]["id"]]


def line(row: Mapping[str, Any], told: Mapping[str, Any], chosen: bool) -> Any:
    from rich.text import Text

    from decisor.render.text import clean, one_line

    mark = "▸ " if chosen else ""
    text = Text(f"{mark}{clean(told.get('tool', '?'))} ", style="bold cyan" if chosen else "cyan")
    text.append(one_line(told.get("input", ""), 120), style="bold" if chosen else "")
    seen = one_line(told.get("text", ""), 100)
    if seen and told.get("tool") not in ENDED.values():
        text.append(f" → {seen}", style="red" if told.get("error") else "dim")
    if row["matches"]:
        text.append(f"  Elo {row['elo']:+.0f} (M {row['matches']})", style="magenta")
    elif row["value"]:
        text.append(f"  value {row['value']:.3g}", style="magenta")
    if row["ended"]:
        text.append(f"  [{ENDED[row['ended']]}]", style="green" if row["ended"] == "answered" else "yellow")
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
