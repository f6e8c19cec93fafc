"""Drawings of graphs and trees: boxes with lines between them, as plain values that any page can draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from decisor.render.text import one_line

WIDE, CHARACTERS, LINE, PAD = 224.0, 33, 17.0, 9.0
"""Of a box in pixels: its width, how many characters fit in a line, a line's height, and the room around."""
MOST_TITLE = 700


@dataclass(frozen=True, slots=True)
class Box:
    """One node. ``kind``: a class of the page's style (answered, failed, way, ...); ``title``: all of it, in words;
    ``entry``: the entry of the trace that it began with, 0 for none. ``x``, ``y``: its upper left corner."""

    name: str
    lines: tuple[str, ...] = ()
    kind: str = ""
    title: str = ""
    entry: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * max(1, len(self.lines))


@dataclass(frozen=True, slots=True)
class Line:
    """From one node to another, as corners; ``kind`` as of a box."""

    start: str
    end: str
    corners: tuple[tuple[float, float], ...]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """``form``: dag, whose lines run down, or tree, whose lines run to the right. Sizes are pixels."""

    form: str
    title: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def label(head: str, *texts: str, most: int = 2) -> tuple[str, ...]:
    """The lines of a box: the head, then each text on at most ``most`` lines.

    >>> label("Q1.1", "Who directed the film Arrival, and when was it?", "")
    ('Q1.1', 'Who directed the film Arrival,', 'and when was it?')
    """
    lines = [one_line(head, CHARACTERS)]
    for text in texts:
        lines += wrap(one_line(text, 400), CHARACTERS, max_lines=most, placeholder=" …")
    return tuple(lines)


def words(*parts: str) -> str:
    """The title of a box: what there is of these, a line each."""
    return one_line("  ·  ".join(part for part in parts if part), MOST_TITLE)


def curve(corners: Sequence[tuple[float, float]], form: str) -> str:
    """An SVG path through the corners, bent in the direction in which lines run.

    >>> curve([(0, 0), (10, 20)], "dag")
    'M0 0C0 10 10 10 10 20'
    """
    (x, y), *rest = corners
    path = [f"M{x:g} {y:g}"]
    for right, down in rest:
        middle = (x + right) / 2 if form == "tree" else (y + down) / 2
        ends = f"{middle:g} {y:g} {middle:g} {down:g}" if form == "tree" else f"{x:g} {middle:g} {right:g} {middle:g}"
        path.append(f"C{ends} {right:g} {down:g}")
        x, y = right, down
    return "".join(path)
