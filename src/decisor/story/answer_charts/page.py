"""A chart of an answer as HTML: the drawing for wide and for narrow screens, what is said beside it, and its
specification to take along."""

from __future__ import annotations

import base64
import json

from decisor.render.markup import Html, join, tag
from decisor.story.answer_charts.chart import Chart
from decisor.story.answer_charts.layout import Layout, Shape, layouts
from decisor.story.links import Anchors


def chart_html(chart: Chart, anchors: Anchors) -> Html:
    """Each mark leads to its row of the evidence. The table says the same to who does not see the drawing, so marks are
    no stops of the keyboard."""
    drawings = (svg(chart, one, kind, anchors) for one, kind in zip(layouts(chart), ("wide", "narrow"), strict=True))
    text = json.dumps(chart.vega_lite(), ensure_ascii=False)
    href = "data:application/json;base64," + base64.b64encode(text.encode()).decode()
    notes = [tag("p", note, cls="soft") for note in chart.notes]
    link = tag("p", tag("a", "Chart as Vega-Lite", href=href, download="chart.vl.json"), cls="soft")
    return join(tag("h2", chart.title), tag("div", *drawings, cls="answer-chart"), *notes, link)


def svg(chart: Chart, drawing: Layout, kind: str, anchors: Anchors) -> Html:
    words = f"{chart.title}. {chart.description}"
    picture = tag("g", tag("title", chart.title), tag("desc", chart.description), *map(element, drawing.shapes),
                  role="img", aria_label=words)  # fmt: skip
    links = [tag("a", element(one.shape, one.title), href=f"#{anchors.row(one.record)}", tabindex=-1)
             if one.record in anchors.records else element(one.shape, one.title) for one in drawing.links]  # fmt: skip
    box = f"0 0 {drawing.width:g} {drawing.height:g}"
    return tag("svg", picture, tag("g", *links, aria_hidden="true"), cls=kind, viewBox=box)


def element(shape: Shape, title: str = "") -> Html:
    places = {name.replace("-", "_"): str(value) for name, value in shape.at.items()}
    return tag(shape.tag, tag("title", title) if title else None, shape.text or None, cls=shape.kind or None, **places)
