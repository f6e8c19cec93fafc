"""Which chart fits, by what the columns hold."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from decisor.types import Record, Value
from decisor.views.answer_charts import choose_chart
from decisor.views.chart_drawing import WIDTHS, chart_html, chart_lines, chart_svg, text_width
from decisor.views.charts import Axis, Chart, ChartMark, ChartSeries

Rows = Sequence[Sequence[Value]]


def chart(columns: str, rows: Rows, units: Mapping[str, str] | None = None) -> Chart | None:
    names = columns.split()
    records = [Record(f"o1.r{at}", dict(zip(names, row, strict=True))) for at, row in enumerate(rows, 1)]
    return choose_chart(records, units or {})


def drawn(one: Chart, kind: str = "wide") -> list[ElementTree.Element]:
    """The elements of its drawing, those that say a mark's value last."""
    return list(ElementTree.fromstring(chart_svg(one, kind)).iter())


def shapes(one: Chart, cls: str) -> list[ElementTree.Element]:
    return [shape for shape in drawn(one) if cls in shape.get("class", "").split()]


def months(many: int, start: float = 10.0, step: float = 1.0) -> list[tuple[str, float]]:
    return [(f"1997-{at + 1:02}", start + step * at) for at in range(many)]


@pytest.mark.parametrize(
    ("columns", "rows", "kind"),
    [
        ("month revenue", months(6), "line"),
        ("day revenue", [(f"1997-01-{at:02}", at) for at in range(1, 9)], "line"),
        ("at reading", [(f"1997-01-01T{at:02}:30:00+02:00", at) for at in range(1, 9)], "line"),
        ("quarter revenue", [("1997-Q1", 1), ("1997-Q2", 5), ("1997-Q3", 4)], "line"),
        ("year revenue", [(1996, 1), (1997, 5), (1998, 4)], "line"),
        ("year revenue", [("1996", 1.5), ("1997", 5), ("1998", 4)], "line"),
        ("year month revenue", [(1997, at, at) for at in (10, 11, 12)], "line"),
        ("hour visits", [(at, at % 5) for at in range(24)], "line"),
        ("month category revenue", [(m, c, v) for c in "ab" for m, v in months(4)], "line"),
        ("category revenue", [("a", 3), ("b", 2), ("c", 1)], "bar"),
        ("category revenue", [("a", "3.25"), ("b", "2.125"), ("c", "1.5")], "bar"),
        ("customer_id revenue", [(11, 3), (7, 2), (9, 1)], "bar"),
        ("customer_id name revenue", [(11, "Ann", 3), (7, "Ann", 2), (9, "Cy", 1)], "bar"),
        ("country city revenue", [("PL", "a", 3), ("PL", "b", 2), ("CZ", "a", 1)], "bar"),
        ("category revenue orders", [("a", 3, 10), ("b", 2, 50), ("c", 1, 20)], "bar"),
        ("category price units", [("a", 3, 10), ("b", 1, 50), ("c", 2, 20)], "points"),
        ("price units", [(3.5, 10), (1.5, 50), (2.5, 20)], "points"),
        ("name hired sales", [("Ann", "1997-01-02", 3), ("Bo", "1995-02-03", 4), ("Cy", "1996-01-01", 1)], "bar"),
        ("day revenue", [("1997-01-09", 9), ("1997-01-02", 7), ("1997-01-05", 3)], "bar"),
    ],
)
def test_the_columns_decide(columns: str, rows: Rows, kind: str) -> None:
    one = chart(columns, rows)
    assert one is not None and one.kind == kind


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("revenue", [(1,), (2,), (3,)]),
        ("month revenue", months(2)),
        ("category revenue", [("a", None), ("b", None), ("c", None)]),
        ("name city", [("Ann", "Bern"), ("Bo", "Lyon"), ("Cy", "Bath")]),
        ("name revenue", [("a", 1), ("a", 2), ("b", 3)]),
        ("month revenue", [("1997-01", 1), ("1997-01", 2), ("1997-02", 3), ("1997-03", 3)]),
        ("name tags", [("a", ["x"]), ("b", ["y"]), ("c", [])]),
        ("order_id customer_id", [(1, 2), (2, 2), (3, 1)]),
    ],
)
def test_what_makes_no_chart_is_a_table_alone(columns: str, rows: Rows) -> None:
    assert chart(columns, rows) is None


def test_times_stand_where_they_are_not_in_the_order_of_the_rows_and_a_gap_breaks_the_line() -> None:
    one = chart("month revenue", [("1997-06", 5.0), ("1997-01", 1.0), ("1997-03", None), ("1997-02", 2.0)])
    assert one is not None
    assert [mark.label for mark in one.series[0].marks] == ["1997-01", "1997-02", "1997-03", "1997-06"]
    assert len(shapes(one, "run")) == 2


def test_bars_keep_the_order_of_the_query_and_of_many_the_first_or_the_largest_are_drawn() -> None:
    rows = [(f"n{at}", 100 - at) for at in range(50)]
    one, other = chart("name revenue", rows), chart("name revenue", [*rows[25:], *rows[:25]])
    assert one is not None and other is not None
    assert [mark.label for _, mark, _ in one.marks()] == [f"n{at}" for at in range(20)]
    assert one.notes == ("The first 20 of 50 are drawn; the table has all.",)
    assert [mark.label for _, mark, _ in other.marks()] == [f"n{at}" for at in range(20)]
    assert other.notes == ("The largest 20 of 50 are drawn; the table has all.",)


def test_measures_on_other_scales_or_with_other_units_do_not_share_an_axis() -> None:
    rows = [(month, value, value * 1.5, value * 1000) for month, value in months(5)]
    one = chart("month revenue cost visits", rows)
    assert one is not None and [series.name for series in one.series] == ["revenue", "cost"]
    assert one.notes == ("In the table alone: visits.",)
    other = chart("month revenue weight", [row[:3] for row in rows], {"revenue": "EUR", "weight": "kg"})
    assert other is not None and other.y.title == "revenue (EUR)" and len(other.series) == 1


def test_an_axis_begins_at_0_unless_the_values_of_a_line_lie_close_together_and_then_it_says_so() -> None:
    near, far = chart("month revenue", months(6, 1000.0)), chart("month revenue", months(6, 10.0, 30.0))
    bars = chart("name revenue", [("a", 1003), ("b", 1002), ("c", 1001)])
    assert near is not None and far is not None and bars is not None
    assert (near.y.zero, far.y.zero, bars.y.zero) == (False, True, True)
    assert near.notes == ("The axis of revenue does not begin at 0.",) and not far.notes


def test_bars_below_0_stand_on_the_other_side_of_the_line() -> None:
    one = chart("name change", [("a", 30), ("b", 10), ("c", -20)])
    assert one is not None
    [zero], bars = shapes(one, "zero"), shapes(one, "bar")
    line = float(zero.attrib["x1"])
    assert [float(bar.attrib["x"]) >= line for bar in bars] == [True, True, False]
    assert float(bars[2].attrib["x"]) + float(bars[2].attrib["width"]) == pytest.approx(line, abs=0.2)
    assert list(chart_lines(one))[1:4] == [
        "  a                 |████████████████████████  30",
        "  b                 |████████                  10",
        "  c ████████████████|                         -20",
    ]


def test_rows_without_a_value_are_counted() -> None:
    one = chart("name revenue", [("a", 3), ("b", None), ("c", 2), (None, 1)])
    assert one is not None
    assert [mark.label for _, mark, _ in one.marks()] == ["a", "c", "(empty)"]
    assert one.notes == ("Not drawn: 1 row without revenue.",)


def test_many_points_are_all_drawn_without_links() -> None:
    one = chart("price units", [(at * 7 % 501, at * 3 % 499) for at in range(500)])
    assert one is not None
    assert len(shapes(one, "dot")) == 500 and not shapes(one, "hit")


EVERY = [
    ("month category revenue", [(m, c, v) for c in "abc" for m, v in months(12, -3.0)]),
    ("name change", [(f"A rather long name of a thing, number {at}", at - 5.5) for at in range(30)]),
    ("price units", [(at * 1.37, (at * 7) % 13) for at in range(40)]),
    ("year revenue", [(1900 + at, 5.0 + at % 3) for at in range(90)]),
    ("valid_to price", [("0001-01-01", 2.0), ("1997-02-03", 3.0), ("9999-12-31", 1.0)]),
    ("name change", [(f"\u8336\u8449\u7684\u540d\u5b57\u5f88\u9577\u7684\u8336{at}", at) for at in range(9)]),
    ("at reading", [(f"1997-01-01 00:{at:02}:30", at * 1e9) for at in range(50)]),
]


@pytest.mark.parametrize(("columns", "rows"), EVERY)
@pytest.mark.parametrize("kind", WIDTHS)
def test_nothing_is_drawn_outside_the_drawing(columns: str, rows: Rows, kind: str) -> None:
    one = chart(columns, rows)
    assert one is not None
    root, *parts = drawn(one, kind)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for shape in parts:
        across = [float(shape.attrib[name]) for name in ("x", "x1", "x2", "cx") if name in shape.attrib]
        down = [float(shape.attrib[name]) for name in ("y", "y1", "y2", "cy") if name in shape.attrib]
        if shape.get("text-anchor") == "end":
            assert float(shape.attrib["x"]) - text_width(shape.text or "") >= -2
        assert all(0 <= place <= width for place in across) and all(0 <= place <= height for place in down)


@pytest.mark.parametrize(("columns", "rows"), EVERY)
def test_vega_itself_draws_the_specification_with_as_many_marks(columns: str, rows: Rows, tmp_path: Path) -> None:
    converter: Any = pytest.importorskip("vl_convert")
    one = chart(columns, rows)
    assert one is not None
    spec = json.dumps(one.vega_lite())
    scene = json.dumps(converter.vegalite_to_scenegraph(spec, vl_version="5.20"))
    svg = converter.vegalite_to_svg(spec, vl_version="5.20")
    kind = {"line": "symbol", "bar": "rect", "points": "symbol"}[one.kind]
    assert len(marks_of(json.loads(scene), kind)) == len(list(one.marks()))
    assert one.title in svg and one.y.title in svg


def marks_of(scene: Any, kind: str) -> list[Any]:
    """The items that stand for a cell: those with a description, as a reader of screens is told it."""
    if isinstance(scene, list):
        return [item for one in scene for item in marks_of(one, kind)]
    if not isinstance(scene, dict):
        return []
    own = scene.get("items", []) if scene.get("marktype") == kind and "mark" in str(scene.get("role", "")) else []
    return [*own, *(item for one in scene.values() for item in marks_of(one, kind) if isinstance(one, dict | list))]


def test_a_series_without_values_takes_no_line_of_a_terminal() -> None:
    two = chart("month category revenue", [(m, c, v) for c in "ab" for m, v in months(4)])
    assert two is not None
    empty = replace(two.series[1], marks=tuple(replace(mark, y=None) for mark in two.series[1].marks))
    assert all(chart_lines(replace(two, series=(two.series[0], empty))))


def values(kind: Any, *marks: ChartMark, zero: bool = True, **series: Sequence[ChartMark]) -> Chart:
    every = series or {"": marks}
    lines = tuple(ChartSeries(name, tuple(some)) for name, some in every.items())
    return Chart(kind, "Rents", Axis("", scale="name"), Axis("rent", "EUR", zero=zero), lines)


def test_bars_before_and_after_a_change_stand_on_one_axis_and_the_legend_names_both() -> None:
    now = [ChartMark("", 1, 200.0, "oak"), ChartMark("", 2, 400.0, "elm")]
    then = [ChartMark("", 1, 100.0, "oak"), ChartMark("", 2, 300.0, "elm")]
    one = values("bar", now=now, then=then)
    widths = [float(bar.attrib["width"]) for bar in shapes(one, "bar")]
    assert [width / widths[2] for width in widths] == pytest.approx([0.5, 0.25, 1.0, 0.75], abs=0.01)
    texts = [shape.text for shape in drawn(one) if shape.tag == "text"]
    assert texts[:2] == ["now", "then"] and {"oak", "elm", "200", "100", "400", "300"} <= set(texts)
    assert [line.split()[:3] for line in list(chart_lines(one))[1:5]] == [
        ["oak", "now", "█" * 20],
        ["oak", "then", "█" * 10],
        ["elm", "now", "█" * 40],
        ["elm", "then", "█" * 30],
    ]


def test_where_the_axis_does_not_begin_at_0_values_are_points_and_the_axis_is_broken() -> None:
    one = values("bar", ChartMark("", 1, 980.0, "oak", 970.0, 990.0), ChartMark("", 2, 1000.0, "elm"), zero=False)
    assert not shapes(one, "bar") and len(shapes(one, "dot")) == 2 and len(shapes(one, "whisker")) == 1
    assert len(shapes(one, "break")) == 1 and not shapes(one, "zero")
    ticks = [shape.text for shape in shapes(one, "soft")][:-1]
    assert ticks == ["970", "980", "990", "1,000"] or ticks[0] == "970"
    text = "\n".join(chart_lines(one))
    assert "█" not in text and "980 (970 to 990)" in text and "rent (EUR), 970 to 1,000" in text


def test_a_span_reaches_from_its_low_to_its_high_end_across_0() -> None:
    one = values("span", ChartMark("", 1, 6.0, "price", -2.0, 6.0, "stays best in 70 %"))
    [bar], [zero] = shapes(one, "bar"), shapes(one, "zero")
    left, width, line = float(bar.attrib["x"]), float(bar.attrib["width"]), float(zero.attrib["x1"])
    assert (line - left) / width == pytest.approx(0.25, abs=0.01)
    assert list(chart_lines(one))[1] == f"  price {'█' * 5}|{'█' * 15} -2 to 6, stays best in 70 %"


def test_figures_without_records_stand_in_a_table_beyond_the_rows_that_are_drawn() -> None:
    one = values("bar", *(ChartMark("", at, 10.0 + at, f"n{at}\u202e") for at in range(30)))
    html = chart_html(one)
    assert len(shapes(one, "bar")) == 20 and html.count("<tr>") == 30 and "\u202e" not in html
    note = "The first 20 of 30 are drawn; the last has 39."
    assert note in html and note in "\n".join(chart_lines(one))
