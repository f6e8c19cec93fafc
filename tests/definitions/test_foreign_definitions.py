"""Files of definitions from someone else, and queries that would trip the comparison with them."""

import json
from pathlib import Path

import pytest

from decisor.cli.definitions import import_manifest_command
from decisor.errors import SetupError
from decisor.semantics.dbt import import_dbt_manifest
from decisor.semantics.definitions import parse_definitions
from decisor.semantics.query_match import find_computations

AGGREGATES = {"semantic_model": "orders", "agg": "sum", "agg_time_dimension": None}


@pytest.mark.parametrize("measure", [{}, {"measure": {"name": "total", "filter": None}}])
def test_a_metric_of_dbt_that_aggregates_by_itself_computes_its_own_expression(
    measure: dict[str, object], tmp_path: Path
) -> None:
    """As dbt writes it once its measures have become metrics: the expression stands beside the aggregation."""
    parts = {**measure, "expr": "amount - discount", "metric_aggregation_params": AGGREGATES}
    metric = {"name": "revenue", "type": "simple", "type_params": parts}
    file = tmp_path / "semantic_manifest.json"
    file.write_text(json.dumps({"semantic_models": [{"name": "orders"}], "metrics": [metric]}))
    assert [one.sql for one in import_dbt_manifest(file).definitions.metrics] == ["SUM(amount - discount)"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"semantic_models": [{"name": "a"}, {"entities": []}]}, "semantic_models[1]"),
        (
            {"semantic_models": [{"name": "a", "dimensions": [{"type": "categorical"}]}]},
            "semantic_models[0].dimensions[0]",
        ),
        ({"semantic_models": [], "metrics": [{"type": "simple"}]}, "metrics[0]"),
    ],
)
def test_a_part_of_a_manifest_without_a_name_is_named_by_its_place(
    content: dict[str, object], place: str, tmp_path: Path
) -> None:
    file = tmp_path / "semantic_manifest.json"
    file.write_text(json.dumps(content))
    with pytest.raises(SetupError) as error:
        import_dbt_manifest(file)
    assert str(error.value) == f"{file}: {place} has no name: let dbt write the manifest again (dbt parse)."


@pytest.mark.parametrize("text", ["SUM(a) / 0", "SUM(a) * 1e999999999", "SUM(a) / 1e-999999999", "SUM(a) / (0 * 2)"])
def test_no_number_in_a_query_stops_its_comparison(text: str) -> None:
    assert [one.written for one in find_computations(f"SELECT {text} FROM t", "duckdb", ())] == [text]


def test_numbers_that_are_the_same_are_compared_as_the_same() -> None:
    one, two = (next(find_computations(f"SELECT SUM(a) * {text} FROM t", "duckdb", ())) for text in ("1.50", "15e-1"))
    assert one.terms == two.terms


@pytest.mark.parametrize(
    "text",
    [
        '{"semantic_models": [{"entities": 3}], "metrics": [{}]}',
        '{"semantic_models": [{"name": {}, "dimensions": [7]}], "metrics": 5}',
        '{"semantic_models": [{"name": "a", "entities": [{"name": [], "type": "primary"}]}]}',
        "[" * 100_000,
        "{" * 100_000,
    ],
)
def test_a_file_of_odd_parts_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(text)
    with pytest.raises(SetupError) as complaint:
        import_dbt_manifest(file)
    assert "\n" not in str(complaint.value) and len(str(complaint.value)) < 500


ORDERS = [{"name": "orders", "measures": [{"name": "revenue", "agg": "sum", "expr": "amount"}]}]
FIRST = {"name": "m0", "type": "simple", "type_params": {"measure": {"name": "revenue"}}}


def twice(number: int) -> dict[str, object]:
    part = {"name": f"m{number - 1}"}
    if number % 2:
        return {"name": f"m{number}", "type": "ratio", "type_params": {"numerator": part, "denominator": part}}
    return {
        "name": f"m{number}",
        "type": "derived",
        "type_params": {"expr": "a + a", "metrics": [part | {"alias": "a"}]},
    }


GROWING: dict[str, object] = {
    "metrics that double": {"semantic_models": ORDERS, "metrics": [FIRST, *map(twice, range(1, 60))]},
    "a filter that never ends": {
        "semantic_models": ORDERS,
        "metrics": [FIRST | {"filter": {"where_filters": [{"where_sql_template": "{{Dimension('a'" * 50_000}]}}],
    },
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_without_end_from_a_small_file_is_left_out(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(GROWING[name]))
    whole = import_dbt_manifest(path)
    assert whole.notes and len(whole.text()) < 1_000_000


def test_no_letter_of_an_imported_file_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = "\x1b[2J\x9b2J\u202e\U000e0041\ud800 'x' \"y\""
    metrics = [FIRST | {"description": odd}, {"name": f"left{odd}", "type": "cumulative"}]
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"semantic_models": ORDERS, "metrics": metrics}))
    import_manifest_command(path, tmp_path / "definitions.toml")
    import_manifest_command(path, None)
    printed = "".join(capsys.readouterr()).replace("\n", "")
    assert "Left out" in printed and printed.isprintable()
    assert "'x' \"y\"" in parse_definitions((tmp_path / "definitions.toml").read_text("utf-8")).metrics[0].about
