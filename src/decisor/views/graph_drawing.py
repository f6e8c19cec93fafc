"""Drawings of a run's reasoning DAG and search trees: boxes with lines between them.

Drawings are plain values; ``static/drawing.js`` draws them, and lets them be dragged and zoomed.

A graph without cycles is laid out in layers, each node below its parents:

    layer     <- the longest way from a root
    long edges pass through a point in each layer between
    repeat      order each layer by the mean place of its neighbours
    repeat      move each node towards the mean of its neighbours, as near as order and room allow

After Sugiyama, Tagawa and Toda (1981); the room is kept by pooling neighbours that would overlap. A tree runs from
left to right: each leaf is a row, each parent is in the middle of its children, each depth is a column.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from textwrap import wrap

from decisor.system.text import clean_one_line
from decisor.system.wording import format_count
from decisor.trace.events import (
    ActionResult,
    GraphPlan,
    NodeAnswer,
    NodeRating,
    NodeResult,
    NodeSpan,
    SearchNode,
    SearchTree,
    TraceEntry,
    events_of,
)
from decisor.views.transcript import ENDED, path_to_node

WIDE, CHARACTERS, LINE, PAD = 224.0, 33, 17.0, 9.0
"""Of a box in pixels: its width, how many characters fit in a line, a line's height, and the room around."""
MOST_TITLE = 700


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a drawing."""

    name: str
    lines: tuple[str, ...] = ()
    kind: str = ""
    """A class of the page's style: answered, failed, way, ..."""
    title: str = ""
    """All of the node in words."""
    entry: int = 0
    """Entry of the trace that it began with, 0 for none."""
    x: float = 0.0
    """Upper left corner, in pixels, with ``y``."""
    y: float = 0.0

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * max(1, len(self.lines))


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """A line from one node to another, as corners."""

    start: str
    end: str
    corners: tuple[tuple[float, float], ...]
    kind: str = ""
    """As of a box."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of a graph or tree. Sizes are pixels."""

    form: str
    """dag, whose lines run down, or tree, whose lines run to the right."""
    title: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[EdgeLine, ...]


def box_lines(head: str, *texts: str, most: int = 2) -> tuple[str, ...]:
    """Return the lines of a box: the head, then each text on at most ``most`` lines.

    >>> box_lines("Q1.1", "Who directed the film Arrival, and when was it?", "")
    ('Q1.1', 'Who directed the film Arrival,', 'and when was it?')
    """
    lines = [clean_one_line(head, CHARACTERS)]
    for text in texts:
        lines += wrap(clean_one_line(text, 400), CHARACTERS, max_lines=most, placeholder=" …")
    return tuple(lines)


def box_title(*parts: str) -> str:
    """Join the texts that are not empty to the title of a box, on one line."""
    return clean_one_line("  ·  ".join(part for part in parts if part), MOST_TITLE)


ACROSS, DOWN, MARGIN, POINT = 26.0, 46.0, 12.0, 12.0
SWEEPS = 8
Corner = tuple[float, float]
Neighbours = Mapping[str, Sequence[str]]


def layout_graph(boxes: Sequence[Box], parents: Neighbours, title: str) -> Drawing:
    """Lay out a graph in layers.

    The boxes come in an order in which each follows its parents; a name that comes later, or never, is no parent.
    """
    graph = Layers(boxes, parents)
    # Order first, then places: moving may not change the order that avoids crossings.
    for sweep in range(SWEEPS):
        graph.order(downwards=sweep % 2 == 0)
    for sweep in range(SWEEPS):
        graph.move(downwards=sweep % 2 == 0)
    return graph.drawing(title)


class Layers:
    """The nodes of each layer from left to right, with points of long edges, and their places."""

    def __init__(self, boxes: Sequence[Box], parents: Neighbours) -> None:
        self.boxes = {box.name: box for box in boxes}
        depth: dict[str, int] = {}
        edges: list[tuple[str, str]] = []
        for name in self.boxes:
            # A parent that has not come yet would close a ring; it is left out.
            above = [one for one in dict.fromkeys(parents[name]) if one in depth]
            edges += ((one, name) for one in above)
            depth[name] = 1 + max((depth[one] for one in above), default=0)
        self.layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0))]
        self.above: dict[str, list[str]] = {name: [] for name in self.boxes}
        self.below: dict[str, list[str]] = {name: [] for name in self.boxes}
        for name, deep in depth.items():
            self.layers[deep - 1].append(name)
        self.ways = [self.way(start, end, depth) for start, end in edges]
        self.x = {name: at * (WIDE + ACROSS) for layer in self.layers for at, name in enumerate(layer)}

    def way(self, start: str, end: str, depth: Mapping[str, int]) -> list[str]:
        """Return the two ends of an edge and a point in each layer between."""
        way = [start]
        for deep in range(depth[start] + 1, depth[end]):
            point = f"{start}\n{end}\n{deep}"
            self.layers[deep - 1].append(point)
            self.above[point], self.below[point] = [], []
            way.append(point)
        way.append(end)
        for one, next_one in pairwise(way):
            self.below[one].append(next_one)
            self.above[next_one].append(one)
        return way

    def order(self, downwards: bool) -> None:
        neighbours = self.above if downwards else self.below
        for layer in self.layers if downwards else reversed(self.layers):
            layer.sort(key=lambda name: self.mean(name, neighbours))
            for name, x in zip(layer, pack_places([0.0] * len(layer), self.rooms(layer)), strict=True):
                self.x[name] = x

    def move(self, downwards: bool) -> None:
        neighbours = self.above if downwards else self.below
        for layer in self.layers if downwards else reversed(self.layers):
            wishes = [self.mean(name, neighbours) for name in layer]
            for name, x in zip(layer, pack_places(wishes, self.rooms(layer)), strict=True):
                self.x[name] = x

    def mean(self, name: str, neighbours: Neighbours) -> float:
        others = neighbours[name]
        return fmean(self.x[one] for one in others) if others else self.x[name]

    def rooms(self, layer: Sequence[str]) -> list[float]:
        """Return the least distance of each node's middle from the one before it."""
        wide = [WIDE if name in self.boxes else POINT for name in layer]
        return [0.0, *((one + other) / 2 + ACROSS for one, other in pairwise(wide))][: len(layer)]

    def drawing(self, title: str) -> Drawing:
        left = min((self.x[name] for name in self.boxes), default=0.0) - WIDE / 2 - MARGIN
        tops, y = [], MARGIN
        for layer in self.layers:
            high = max((self.boxes[name].height for name in layer if name in self.boxes), default=0.0)
            tops.append((y, y + high))
            y += high + DOWN
        placed: dict[str, Box] = {}
        points: dict[str, tuple[Corner, Corner]] = {}
        for (top, bottom), layer in zip(tops, self.layers, strict=True):
            for name in layer:
                x = round(self.x[name] - left, 1)
                if name in self.boxes:
                    placed[name] = replace(self.boxes[name], x=round(x - WIDE / 2, 1), y=top)
                else:
                    points[name] = ((x, top), (x, bottom))
        right = max((box.x + WIDE for box in placed.values()), default=0.0)
        lines = tuple(graph_line(way, placed, points) for way in self.ways)
        boxes = tuple(placed[name] for name in self.boxes)
        return Drawing("dag", title, right + MARGIN, max(y - DOWN, 0.0) + MARGIN, boxes, lines)


def graph_line(way: Sequence[str], boxes: Mapping[str, Box], points: Mapping[str, tuple[Corner, Corner]]) -> EdgeLine:
    start, end = boxes[way[0]], boxes[way[-1]]
    corners = [
        (start.x + WIDE / 2, start.y + start.height),
        *(corner for one in way[1:-1] for corner in points[one]),
        (end.x + WIDE / 2, end.y),
    ]
    return EdgeLine(start.name, end.name, tuple(corners), end.kind if end.kind == "failed" else "")


def pack_places(wishes: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """Return places as near as possible to the wishes (least squares).

    They are in order, each at least its room from the one before.

    >>> pack_places([0, 0, 10], [0, 4, 4])
    [-2.0, 2.0, 10.0]
    """
    start, starts = 0.0, []
    groups: list[tuple[float, int]] = []
    for wish, room in zip(wishes, rooms, strict=True):
        start += room
        starts.append(start)
        total, count = wish - start, 1
        # Pool adjacent violators: groups that would overlap move to their common mean.
        while groups and groups[-1][0] / groups[-1][1] > total / count:
            before = groups.pop()
            total, count = total + before[0], count + before[1]
        groups.append((total, count))
    shifts = [total / count for total, count in groups for _ in range(count)]
    return [shift + start for shift, start in zip(shifts, starts, strict=True)]


NODE_SPACING, LEVEL_SPACING, TREE_MARGIN = 44.0, 10.0, 12.0


def layout_tree(boxes: Sequence[Box], parents: Mapping[str, str], title: str) -> Drawing:
    """Lay out a tree.

    The boxes come in an order in which each follows its parent; one whose parent does not come before it is a root.
    """
    by_name = {box.name: box for box in boxes}
    depth: dict[str, int] = {}
    children: dict[str, list[str]] = {name: [] for name in by_name}
    for name in by_name:
        parent = parents.get(name, "")
        if parent in depth:
            children[parent].append(name)
        depth[name] = depth.get(parent, -1) + 1
    # A column may hold boxes of several subtrees, so the middles alone may overlap.
    middles = separate_boxes(middle_of_box(children, by_name), depth, by_name)
    placed = {
        name: replace(
            box, x=TREE_MARGIN + depth[name] * (WIDE + NODE_SPACING), y=round(middles[name] - box.height / 2, 1)
        )
        for name, box in by_name.items()
    }
    lines = tuple(tree_line(placed[name], placed[one]) for name, below in children.items() for one in below)
    right = max((box.x + WIDE for box in placed.values()), default=0.0)
    bottom = max((box.y + box.height for box in placed.values()), default=0.0)
    return Drawing("tree", title, right + TREE_MARGIN, bottom + TREE_MARGIN, tuple(placed.values()), lines)


def middle_of_box(children: Mapping[str, Sequence[str]], by_name: Mapping[str, Box]) -> dict[str, float]:
    """Return the middle of each box.

    Leaves stand below one another as a walk meets them, parents between their first and last child.
    """
    parents = {one: name for name, below in children.items() for one in below}
    middles: dict[str, float] = {}
    bottom = TREE_MARGIN
    for name in walk_children_first([name for name in by_name if name not in parents], children):
        if below := children[name]:
            middles[name] = (middles[below[0]] + middles[below[-1]]) / 2
        else:
            middles[name] = bottom + by_name[name].height / 2
            bottom += by_name[name].height + LEVEL_SPACING
    return middles


def walk_children_first(roots: Sequence[str], children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of all nodes, children before their parents, in their order."""
    order: list[str] = []
    stack = list(roots)
    # A stack instead of recursion: a chain of a search may be deeper than Python's limit.
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(children[name])
    return order[::-1]


def separate_boxes(middles: dict[str, float], depth: Mapping[str, int], by_name: Mapping[str, Box]) -> dict[str, float]:
    """Move down the boxes of one column that overlap. High parents of low children may do so."""
    columns: dict[int, list[str]] = {}
    for name, deep in depth.items():
        columns.setdefault(deep, []).append(name)
    for column in columns.values():
        column.sort(key=lambda name: middles[name])
        for above, name in pairwise(column):
            least = middles[above] + (by_name[above].height + by_name[name].height) / 2 + LEVEL_SPACING
            middles[name] = max(middles[name], least)
    return middles


def tree_line(start: Box, end: Box) -> EdgeLine:
    corners = ((start.x + WIDE, start.y + start.height / 2), (end.x, end.y + end.height / 2))
    return EdgeLine(
        start.name, end.name, corners, "way" if start.kind.startswith("way") and end.kind.startswith("way") else ""
    )


def draw_run(entries: Sequence[TraceEntry]) -> Iterator[Drawing]:
    """Yield the reasoning DAG and search trees of a run; a plan of a single part has none."""
    plans = [plan for plan in events_of(entries, GraphPlan) if len(plan.graph.parts) > 1]
    if plans:
        yield graph_drawing(plans[-1], entries)
    for entry in entries:
        if isinstance(entry.event, SearchTree) and len(entry.event.nodes) > 1:
            yield tree_drawing(entry.event, [one for one in entries if one.span == entry.span])


def graph_drawing(plan: GraphPlan, entries: Sequence[TraceEntry]) -> Drawing:
    begun = {entry.event.node: entry.id for entry in entries if isinstance(entry.event, NodeSpan)}
    answers = {result.answer.node: result.answer for result in events_of(entries, NodeResult)}
    boxes = []
    for part in plan.graph.parts:
        answer = answers.get(part.id, NodeAnswer(part.id, part.query))
        kind = answer.status if part.id in answers else "waiting"
        became = answer.answer or ("" if kind == "waiting" else answer.status)
        head = f"{part.id}  {part.source}" if part.source else part.id
        lines = box_lines(head, answer.question or part.query)
        if became:
            lines = (*lines, *box_lines(f"→ {became}"))
        title = box_title(part.id, answer.question or part.query, became and f"→ {became}", answer.why, answer.support)
        boxes.append(Box(part.id, lines, kind, title, begun.get(part.id, 0)))
    parents = {part.id: part.parents for part in plan.graph.parts}
    done = sum(box.kind == "answered" for box in boxes)
    return layout_graph(boxes, parents, f"Reasoning DAG: {format_count(len(boxes), 'node')}, {done} answered")


def tree_drawing(tree: SearchTree, entries: Sequence[TraceEntry]) -> Drawing:
    """Draw a search tree. entries: those of the tree's span."""
    grown = {entry.event.node: entry for entry in entries if isinstance(entry.event, SearchNode)}
    way = path_to_node(tree.chosen, {node.node: node.parent for node in tree.nodes})
    steps = [entry.event.action for entry in entries if isinstance(entry.event, ActionResult)]
    boxes, parents = [], {}
    for node in tree.nodes:
        entry = grown.get(node.node)
        at = bisect(steps, entry.id) if entry else 0
        boxes.append(tree_box(node, entry, node.node in way, steps[at - 1] if at else 0))
        if node.parent is not None:
            parents[str(node.node)] = str(node.parent)
    ends = sum(bool(node.ended) for node in tree.nodes)
    title = f"Search tree: {format_count(len(boxes) - 1, 'node')}, {format_count(ends, 'sequence')}"
    return layout_tree(boxes, parents, title)


def tree_box(node: NodeRating, entry: TraceEntry | None, chosen: bool, step: int) -> Box:
    """Build the box of a node. step: the entry that its action began with."""
    kind = " ".join(part for part in ("way" if chosen else "", node.ended) if part)
    rate = f"Elo {node.elo:+.0f}" if node.matches else f"value {node.value:.3g}" if node.value else ""
    if entry is None or not isinstance(entry.event, SearchNode):
        head = "start" if node.parent is None else ENDED.get(node.ended, str(node.node))
        return Box(str(node.node), box_lines("  ".join((head, rate)).strip()), kind, box_title(head, rate, node.answer))
    grown = entry.event
    lines = box_lines("  ".join(part for part in (grown.action.tool, rate) if part), grown.action.input, most=1)
    result = clean_one_line(grown.text, 200)
    title = box_title(grown.action.tool, rate, grown.thought, grown.action.input, result and f"→ {result}", node.answer)
    return Box(str(node.node), lines, f"{kind} error".strip() if grown.error else kind, title, step)
