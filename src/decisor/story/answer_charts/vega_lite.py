"""A chart as a Vega-Lite specification: what others draw it from. Texts are titles and values, never expressions."""

from __future__ import annotations

from decisor.render.text import clean
from decisor.story.answer_charts.chart import Axis, Chart
from decisor.story.answer_charts.moments import iso

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MARKS: dict[str, dict[str, object]] = {
    "line": {"type": "line", "point": True},
    "bar": {"type": "bar"},
    "points": {"type": "point", "filled": True},
}


def vega_lite(chart: Chart) -> dict[str, object]:
    """Version 5, with its data inside: ``x``, ``y``, ``label`` (the cell of x), ``series`` and ``record``, the id that
    the value is cited by. ``usermeta.notes``: what is not drawn."""
    across, up = channel("x", chart.x), channel("y", chart.y)
    if chart.kind == "bar":
        across, up = {**channel("y", chart.y)}, {**channel("label", chart.x), "sort": None}
    encoding = {
        "x": across,
        "y": up,
        "tooltip": [{"field": "label", "type": "nominal"}, {"field": "y", "type": "quantitative"}],
    }
    if len(chart.series) > 1:
        encoding["color"] = {"field": "series", "type": "nominal", "sort": None, "title": None}
    return {
        "$schema": SCHEMA,
        "title": clean(chart.title),
        "description": clean(chart.description),
        "data": {"values": values_of(chart)},
        "mark": {**MARKS[chart.kind], "tooltip": True},
        "encoding": encoding,
        "usermeta": {"notes": list(chart.notes)},
    }


def channel(field: str, axis: Axis) -> dict[str, object]:
    title = clean(axis.title)
    match axis.scale:
        case "time":
            return {"field": field, "type": "temporal", "title": title, "scale": {"type": "utc"}}
        case "number":
            return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": axis.zero}}
        case "name":
            return {"field": field, "type": "nominal", "title": title}


def values_of(chart: Chart) -> list[dict[str, object]]:
    return [
        {
            "x": iso(mark.x) if chart.x.scale == "time" else mark.x, "y": mark.y, "label": clean(mark.label),
            "record": mark.record, **({"series": clean(series.name)} if len(chart.series) > 1 else {}),
        }
        for series in chart.series
        for mark in series.marks
    ]  # fmt: skip
