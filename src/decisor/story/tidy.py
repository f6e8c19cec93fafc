"""A tree from left to right: each leaf a row, each parent in the middle of its children, each depth a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from decisor.story.drawing import WIDE, Box, Drawing, Line

ACROSS, DOWN, MARGIN = 44.0, 10.0, 12.0


def tidy(boxes: Sequence[Box], parents: Mapping[str, str], title: str) -> Drawing:
    """``boxes`` in an order in which each comes after its parent. One whose parent does not come before it is a
    root."""
    by_name = {box.name: box for box in boxes}
    depth: dict[str, int] = {}
    children: dict[str, list[str]] = {name: [] for name in by_name}
    for name in by_name:
        parent = parents.get(name, "")
        if parent in depth:
            children[parent].append(name)
        depth[name] = depth.get(parent, -1) + 1
    middles = spread(rows(children, by_name), depth, by_name)
    placed = {
        name: replace(box, x=MARGIN + depth[name] * (WIDE + ACROSS), y=round(middles[name] - box.height / 2, 1))
        for name, box in by_name.items()
    }
    lines = tuple(line_of(placed[name], placed[one]) for name, below in children.items() for one in below)
    right = max((box.x + WIDE for box in placed.values()), default=0.0)
    bottom = max((box.y + box.height for box in placed.values()), default=0.0)
    return Drawing("tree", title, right + MARGIN, bottom + MARGIN, tuple(placed.values()), lines)


def rows(children: Mapping[str, Sequence[str]], by_name: Mapping[str, Box]) -> dict[str, float]:
    """The middle of each box: leaves below one another as a walk meets them, parents between their first and last
    child."""
    parents = {one: name for name, below in children.items() for one in below}
    middles: dict[str, float] = {}
    bottom = MARGIN
    for name in walk([name for name in by_name if name not in parents], children):
        if below := children[name]:
            middles[name] = (middles[below[0]] + middles[below[-1]]) / 2
        else:
            middles[name] = bottom + by_name[name].height / 2
            bottom += by_name[name].height + DOWN
    return middles


def walk(roots: Sequence[str], children: Mapping[str, Sequence[str]]) -> list[str]:
    """Children before their parents, as they stand."""
    order: list[str] = []
    stack = list(roots)
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(children[name])
    return order[::-1]


def spread(middles: dict[str, float], depth: Mapping[str, int], by_name: Mapping[str, Box]) -> dict[str, float]:
    """Boxes of one column that overlap, as those of high parents of low children may, move down."""
    columns: dict[int, list[str]] = {}
    for name, deep in depth.items():
        columns.setdefault(deep, []).append(name)
    for column in columns.values():
        column.sort(key=lambda name: middles[name])
        for above, name in pairwise(column):
            least = middles[above] + (by_name[above].height + by_name[name].height) / 2 + DOWN
            middles[name] = max(middles[name], least)
    return middles


def line_of(start: Box, end: Box) -> Line:
    corners = ((start.x + WIDE, start.y + start.height / 2), (end.x, end.y + end.height / 2))
    return Line(
        start.name, end.name, corners, "way" if start.kind.startswith("way") and end.kind.startswith("way") else ""
    )
