"""Files of definitions from someone else, and queries that would trip the comparison with them."""

from pathlib import Path

import pytest

from decisor.definitions.computations import computations
from decisor.definitions.imported import imported
from decisor.errors import SetupError

LEVELS = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
BOMB = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *LEVELS]
MODEL = """
semantic_model:
  - name: shop
    datasets: [{name: orders, source: orders, description: *a8}]
    metrics: [{name: revenue, expression: SUM(orders.total), description: *a8}]
"""


@pytest.mark.parametrize("text", ["SUM(a) / 0", "SUM(a) * 1e999999999", "SUM(a) / 1e-999999999", "SUM(a) / (0 * 2)"])
def test_no_number_in_a_query_stops_its_comparison(text: str) -> None:
    assert [one.written for one in computations(f"SELECT {text} FROM t", "duckdb", ())] == [text]


def test_numbers_that_are_the_same_are_compared_as_the_same() -> None:
    one, two = (next(computations(f"SELECT SUM(a) * {text} FROM t", "duckdb", ())) for text in ("1.50", "15e-1"))
    assert one.terms == two.terms


def test_a_file_whose_aliases_multiply_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text("\n".join(BOMB) + MODEL)
    with pytest.raises(SetupError, match="counting what its aliases repeat"):
        imported(file)


@pytest.mark.parametrize(
    "text",
    [
        "semantic_model: [{name: x, datasets: 3, metrics: [1]}]",
        "semantic_model: [{name: x, datasets: [{name: [a], primary_key: 4}]}]",
        "semantic_model: [{name: x, metrics: [{name: {a: b}, expression: SUM(a)}], datasets: [{name: a}]}]",
        '{"semantic_models": [{"entities": 3}], "metrics": [{}]}',
        '{"semantic_models": [{"name": {}, "dimensions": [7]}], "metrics": 5}',
        '{"semantic_models": [{"name": "a", "entities": [{"name": [], "type": "primary"}]}]}',
        "[" * 100_000,
        "{" * 100_000,
    ],
)
def test_a_file_of_odd_parts_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(text)
    with pytest.raises(SetupError) as complaint:
        imported(file)
    assert "\n" not in str(complaint.value) and len(str(complaint.value)) < 500
