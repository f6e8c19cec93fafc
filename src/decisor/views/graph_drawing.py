"""Drawings of a run's reasoning DAG and search trees: boxes with lines between them.

Drawings are plain values; ``static/drawing.js`` draws them, and lets them be dragged and zoomed.

A graph without cycles is laid out in layers, each node below its parents:

    layer     <- the longest way from a root
    long edges pass through a point in each layer between
    repeat      order each layer by the mean place of its neighbours
    repeat      move each node towards the mean of its neighbours, as near as order and room allow

After Sugiyama, Tagawa and Toda (1981); the room is kept by pooling neighbours that would overlap. The layers of a tree
are columns, so that it runs from left to right.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from textwrap import wrap
from typing import Literal

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
Form = Literal["dag", "tree"]


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

    form: Form
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


MARGIN, POINT, SWEEPS = 12.0, 12.0, 8
ROOMS: Mapping[Form, tuple[float, float]] = {"dag": (26.0, 46.0), "tree": (10.0, 44.0)}
"""Pixels between two boxes of a layer, and between two layers."""
Corner = tuple[float, float]
Neighbours = Mapping[str, Sequence[str]]


def layout_graph(boxes: Sequence[Box], parents: Neighbours, title: str, form: Form) -> Drawing:
    """Lay out a graph in layers.

    The boxes come in an order in which each follows its parents; a name that comes later, or never, is no parent.
    """
    graph = Layers(boxes, parents, form)
    # Order first, then places: moving may not change the order that avoids crossings. In a tree none are left once each
    # layer is in the order of its parents.
    for sweep in range(1 if form == "tree" else SWEEPS):
        graph.order(downwards=sweep % 2 == 0)
    for sweep in range(SWEEPS):
        graph.move(downwards=sweep % 2 == 0)
    return graph.drawing(title)


class Layers:
    """The nodes of each layer, with points of long edges, and the place of their middles along it.

    A layer is a row of a DAG, from left to right, and a column of a tree, from top to bottom.
    """

    def __init__(self, boxes: Sequence[Box], parents: Neighbours, form: Form) -> None:
        self.boxes, self.form = {box.name: box for box in boxes}, form
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
        self.middles = {name: float(at) for layer in self.layers for at, name in enumerate(layer)}

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
            self.place(layer, [0.0] * len(layer))

    def move(self, downwards: bool) -> None:
        neighbours = self.above if downwards else self.below
        for layer in self.layers if downwards else reversed(self.layers):
            self.place(layer, [self.mean(name, neighbours) for name in layer])

    def place(self, layer: Sequence[str], wishes: Sequence[float]) -> None:
        """Place a layer as near to its wishes as the room around each node allows."""
        sizes = [self.size(name) for name in layer]
        rooms = [0.0, *((one + other) / 2 + ROOMS[self.form][0] for one, other in pairwise(sizes))][: len(layer)]
        self.middles.update(zip(layer, pack_places(wishes, rooms), strict=True))

    def mean(self, name: str, neighbours: Neighbours) -> float:
        others = neighbours[name]
        return fmean(self.middles[one] for one in others) if others else self.middles[name]

    def size(self, name: str) -> float:
        """Return the room of a node along its layer."""
        return POINT if name not in self.boxes else self.boxes[name].height if self.form == "tree" else WIDE

    def drawing(self, title: str) -> Drawing:
        begin = min((self.middles[name] - self.size(name) / 2 for name in self.boxes), default=0.0) - MARGIN
        placed: dict[str, Box] = {}
        points: dict[str, tuple[Corner, Corner]] = {}
        start = MARGIN
        for layer in self.layers:
            inside = [self.boxes[name] for name in layer if name in self.boxes]
            end = start + max((WIDE if self.form == "tree" else box.height for box in inside), default=0.0)
            for name in layer:
                middle = self.middles[name] - begin
                if name in self.boxes:
                    edge = round(middle - self.size(name) / 2, 1)
                    x, y = (start, edge) if self.form == "tree" else (edge, start)
                    placed[name] = replace(self.boxes[name], x=x, y=y)
                else:  # only a DAG has long edges
                    points[name] = ((round(middle, 1), start), (round(middle, 1), end))
            start = end + ROOMS[self.form][1]
        boxes = tuple(placed[name] for name in self.boxes)
        width = max((box.x + WIDE for box in boxes), default=0.0)
        height = max((box.y + box.height for box in boxes), default=0.0)
        lines = tuple(self.line(way, placed, points) for way in self.ways)
        return Drawing(self.form, title, width + MARGIN, height + MARGIN, boxes, lines)

    def line(
        self, way: Sequence[str], boxes: Mapping[str, Box], points: Mapping[str, tuple[Corner, Corner]]
    ) -> EdgeLine:
        start, end = boxes[way[0]], boxes[way[-1]]
        first, last = (start.x + WIDE / 2, start.y + start.height), (end.x + WIDE / 2, end.y)
        if self.form == "tree":
            first, last = (start.x + WIDE, start.y + start.height / 2), (end.x, end.y + end.height / 2)
        is_way = start.kind.startswith("way") and end.kind.startswith("way")
        kind = "failed" if end.kind == "failed" else "way" if is_way else ""
        corners = (first, *(corner for one in way[1:-1] for corner in points[one]), last)
        return EdgeLine(start.name, end.name, corners, kind)


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
    return layout_graph(boxes, parents, f"Reasoning DAG: {format_count(len(boxes), 'node')}, {done} answered", "dag")


def tree_drawing(tree: SearchTree, entries: Sequence[TraceEntry]) -> Drawing:
    """Draw a search tree. entries: those of the tree's span."""
    grown = {entry.event.node: entry for entry in entries if isinstance(entry.event, SearchNode)}
    way = path_to_node(tree.chosen, {node.node: node.parent for node in tree.nodes})
    steps = [entry.event.action for entry in entries if isinstance(entry.event, ActionResult)]
    boxes, parents = [], {str(node.node): list[str]() for node in tree.nodes}
    for node in tree.nodes:
        entry = grown.get(node.node)
        at = bisect(steps, entry.id) if entry else 0
        boxes.append(tree_box(node, entry, node.node in way, steps[at - 1] if at else 0))
        if node.parent is not None:
            parents[str(node.node)] = [str(node.parent)]
    ends = sum(bool(node.ended) for node in tree.nodes)
    title = f"Search tree: {format_count(len(boxes) - 1, 'node')}, {format_count(ends, 'sequence')}"
    return layout_graph(boxes, parents, title, "tree")


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
