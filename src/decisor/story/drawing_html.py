"""Drawings as SVG in a box that scrolls; the page's script lets them be dragged and zoomed."""

from __future__ import annotations

from html import escape

from decisor.render.markup import Html, join, tag
from decisor.story.drawing import LINE, PAD, WIDE, Box, Drawing, curve
from decisor.story.links import Anchors

CANVAS = '<div class="canvas"'
"""What a page with a drawing holds, and no text from outside can, as it is escaped."""


def drawing_html(drawing: Drawing, anchors: Anchors) -> Html:
    """Each box leads to what happened there, where the page tells it."""
    lines = "".join(
        f'<path class="line {escape(one.kind)}" d="{curve(one.corners, drawing.form)}"/>' for one in drawing.lines
    )
    boxes = "".join(box_svg(box, anchors) for box in drawing.boxes)
    size = {"width": f"{drawing.width:g}", "height": f"{drawing.height:g}"}
    around = {"viewBox": f"0 0 {drawing.width:g} {drawing.height:g}", "role": "group", "aria_label": drawing.title}
    svg = tag("svg", tag("title", drawing.title), Html(lines), Html(boxes), cls=drawing.form, **around, **size)
    return join(
        tag("p", drawing.title, cls="soft"),
        tag("div", svg, cls="canvas", tabindex=0, role="region", aria_label=drawing.title),
    )


def box_svg(box: Box, anchors: Anchors) -> str:
    texts = "".join(
        f'<text class="{"text" if at else "head"}" x="{PAD + 2:g}" y="{PAD + 12.5 + at * LINE:g}">{escape(line)}</text>'
        for at, line in enumerate(box.lines)
    )
    rect = f'<rect width="{WIDE:g}" height="{box.height:g}" rx="8"/>'
    inner = f"<title>{escape(box.title)}</title>{rect}{texts}"
    if box.entry in anchors.entries:
        inner = f'<a href="#{anchors.step(box.entry)}">{inner}</a>'
    return f'<g class="node {escape(box.kind)}" transform="translate({box.x:g} {box.y:g})">{inner}</g>'
