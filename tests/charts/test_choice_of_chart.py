"""Which chart fits, by what the columns hold."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decisor.types import Record, Value
from decisor.views.chart_drawing import WIDTHS, chart_lines, layout_chart, text_width
from decisor.views.charts import AnswerChart, choose_chart

Rows = Sequence[Sequence[Value]]


def chart(columns: str, rows: Rows, units: Mapping[str, str] | None = None) -> AnswerChart | None:
    names = columns.split()
    records = [Record(f"o1.r{at}", dict(zip(names, row, strict=True))) for at, row in enumerate(rows, 1)]
    return choose_chart(records, units or {})


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
    assert sum(shape.tag == "path" for shape in layout_chart(one, 680).shapes) == 2


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
    shapes = layout_chart(one, 680).shapes
    [zero] = [shape.at for shape in shapes if shape.kind == "zero"]
    bars = [shape.at for shape in shapes if shape.tag == "rect"]
    line = float(zero["x1"])
    assert [float(bar["x"]) >= line for bar in bars] == [True, True, False]
    assert float(bars[2]["x"]) + float(bars[2]["width"]) == pytest.approx(line, abs=0.2)
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
    drawing = layout_chart(one, 680)
    assert sum("dot" in shape.kind for shape in drawing.shapes) == 500 and not drawing.links


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
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_drawn_outside_the_drawing(columns: str, rows: Rows, width: int) -> None:
    one = chart(columns, rows)
    assert one is not None
    drawing = layout_chart(one, width)
    for shape in drawing.shapes:
        across = [float(shape.at[name]) for name in ("x", "x1", "x2", "cx") if name in shape.at]
        down = [float(shape.at[name]) for name in ("y", "y1", "y2", "cy") if name in shape.at]
        if shape.at.get("text-anchor") == "end":
            assert float(shape.at["x"]) - text_width(shape.text) >= -2
        assert all(0 <= place <= width for place in across) and all(0 <= place <= drawing.height for place in down)


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
