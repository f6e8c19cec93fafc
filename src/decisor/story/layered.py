"""A directed graph without cycles in layers, each node below those that it needs.

    layer     <- the longest way from a root
    long edges pass through a point in each layer between
    repeat      order each layer by the mean place of its neighbours
    repeat      move each node towards the mean of its neighbours, as near as order and room allow

After Sugiyama, Tagawa and Toda (1981); the room is kept by pooling neighbours that would overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from decisor.story.drawing import WIDE, Box, Drawing, Line

ACROSS, DOWN, MARGIN, POINT = 26.0, 46.0, 12.0, 12.0
SWEEPS = 8
Corner = tuple[float, float]
Neighbours = Mapping[str, Sequence[str]]


def layered(boxes: Sequence[Box], parents: Neighbours, title: str) -> Drawing:
    """``boxes`` in an order in which each comes after its parents; what comes later, or never, is no parent."""
    graph = Layers(boxes, parents)
    for sweep in range(SWEEPS):
        graph.order(downwards=sweep % 2 == 0)
    for sweep in range(SWEEPS):
        graph.move(downwards=sweep % 2 == 0)
    return graph.drawing(title)


class Layers:
    """The nodes of each layer from left to right, points of long edges among them, and where each stands."""

    def __init__(self, boxes: Sequence[Box], parents: Neighbours) -> None:
        self.boxes = {box.name: box for box in boxes}
        depth: dict[str, int] = {}
        edges: list[tuple[str, str]] = []
        for name in self.boxes:
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
        """The two ends of an edge and a point in each layer between."""
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
            for name, x in zip(layer, packed([0.0] * len(layer), self.rooms(layer)), strict=True):
                self.x[name] = x

    def move(self, downwards: bool) -> None:
        neighbours = self.above if downwards else self.below
        for layer in self.layers if downwards else reversed(self.layers):
            wishes = [self.mean(name, neighbours) for name in layer]
            for name, x in zip(layer, packed(wishes, self.rooms(layer)), strict=True):
                self.x[name] = x

    def mean(self, name: str, neighbours: Neighbours) -> float:
        others = neighbours[name]
        return fmean(self.x[one] for one in others) if others else self.x[name]

    def rooms(self, layer: Sequence[str]) -> list[float]:
        """The least distance of each node's middle from the one before it."""
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
        lines = tuple(line_of(way, placed, points) for way in self.ways)
        boxes = tuple(placed[name] for name in self.boxes)
        return Drawing("dag", title, right + MARGIN, max(y - DOWN, 0.0) + MARGIN, boxes, lines)


def line_of(way: Sequence[str], boxes: Mapping[str, Box], points: Mapping[str, tuple[Corner, Corner]]) -> Line:
    start, end = boxes[way[0]], boxes[way[-1]]
    corners = [(start.x + WIDE / 2, start.y + start.height), *(corner for one in way[1:-1] for corner in points[one]),
               (end.x + WIDE / 2, end.y)]  # fmt: skip
    return Line(start.name, end.name, tuple(corners), end.kind if end.kind == "failed" else "")


def packed(wishes: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """Places as near as can be to the wishes (least squares), in order, each at least its room from the one before.

    >>> packed([0, 0, 10], [0, 4, 4])
    [-2.0, 2.0, 10.0]
    """
    start, starts = 0.0, []
    groups: list[tuple[float, int]] = []
    for wish, room in zip(wishes, rooms, strict=True):
        start += room
        starts.append(start)
        total, count = wish - start, 1
        while groups and groups[-1][0] / groups[-1][1] > total / count:
            before = groups.pop()
            total, count = total + before[0], count + before[1]
        groups.append((total, count))
    shifts = [total / count for total, count in groups for _ in range(count)]
    return [shift + start for shift, start in zip(shifts, starts, strict=True)]
