"""Pieces of drawings as inline SVG. Colours come from the page's style by class: ``s0`` to ``s7``, ``pub`` for what was
published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from decisor.render.markup import Html, tag

SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Scale:
    """From data to the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span else 0.5)


def shape(kind: int | None, x: float, y: float, size: float = 5.0) -> str:
    """A series' own mark, so that colour is never all that tells two apart."""
    name = "diamond" if kind is None else SHAPES[kind % len(SHAPES)]
    if name == "circle":
        return f'<circle class="{series_class(kind)} dot" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
        "triangle": ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    }[name]
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{series_class(kind)} dot" points="{points}"/>'


def swatch(kind: int | None) -> Html:
    """A series' mark for the legend."""
    return Html(f'<svg class="swatch" viewBox="0 0 14 14" aria-hidden="true">{shape(kind, 7, 7)}</svg>')


def strip(cls: str, words: str, *inside: Html) -> Html:
    """A drawing that is stretched to the width it has."""
    return tag("svg", tag("title", words), *inside, cls=cls, viewBox="0 0 100 10", preserveAspectRatio="none",
               role="img", aria_label=words)  # fmt: skip


def box(cls: str, x: float, width: float, y: float, height: float) -> Html:
    return tag("rect", cls=cls, x=f"{x:.2f}", y=f"{y:g}", width=f"{width:.2f}", height=f"{height:g}")


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Round numbers from ``low`` to at least ``high``.

    >>> round_steps(0, 1, 4), round_steps(0, 7, 6)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 2.0, 4.0, 6.0, 8.0])
    """
    if high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(base * power for base in (1, 2, 2.5, 5, 10) if base * power >= raw * 0.999999)
    first = math.floor(low / step + 1e-9)
    return [round(step * at, 12) for at in range(first, math.ceil(high / step - 1e-9) + 1)]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def caption(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def series_class(kind: int | None) -> str:
    return "pub" if kind is None else f"s{kind % 8}"
