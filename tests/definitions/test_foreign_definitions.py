"""Files of definitions from someone else, and queries that would trip the comparison with them."""

import json
from pathlib import Path

import pytest

from decisor.definitions.computations import computations
from decisor.definitions.imported import imported
from decisor.errors import SetupError

SHARED = """
version: 0.2.0.dev0
semantic_model:
  - name: shop
    datasets:
      - name: orders
        source: prod.sales.fct_orders
        fields:
          - {name: net, expression: {dialects: [{dialect: ANSI_SQL, expression: amount - discount}]}}
          - {name: id, expression: {dialects: [{dialect: ANSI_SQL, expression: id}]}}
        metrics:
          - {name: net_total, expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(orders.net)}]}}
          - {name: tax, expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(tax)}]}}
      - name: customers
        source: prod.sales.dim_customers
        fields:
          - {name: country, expression: {dialects: [{dialect: ANSI_SQL, expression: upper(code)}]}, dimension: {}}
        metrics: [{name: tax, expression: SUM(tax_paid)}]
    relationships: [{name: buys, from: orders, to: customers, from_columns: [customer], to_columns: [id]}]
    metrics:
      - {name: french, expression: "SUM(CASE WHEN customers.country = 'FR' THEN orders.net END) / COUNT(orders.id)"}
      - {name: odd, expression: "SUM(orders.net"}
"""
AGGREGATES = {"semantic_model": "orders", "agg": "sum", "agg_time_dimension": None}


LEVELS = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
BOMB = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *LEVELS]
MODEL = """
semantic_model:
  - name: shop
    datasets: [{name: orders, source: orders, description: *a8}]
    metrics: [{name: revenue, expression: SUM(orders.total), description: *a8}]
"""


def test_metrics_of_a_dataset_are_imported_and_fields_stand_for_what_they_compute(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(SHARED)
    metrics = {one.name: (one.sql, one.source) for one in imported(file).definitions.metrics}
    assert metrics == {
        "french": (
            "SUM(CASE WHEN (UPPER(customers.code)) = 'FR' THEN (orders.amount - orders.discount) END) "
            "/ COUNT(orders.id)",
            "fct_orders AS orders LEFT JOIN dim_customers AS customers ON orders.customer = customers.id",
        ),
        "odd": ("SUM(orders.net", "fct_orders AS orders"),
        "net_total": ("SUM((orders.amount - orders.discount))", "fct_orders AS orders"),
        "tax": ("SUM(tax)", "fct_orders AS orders"),
        "tax_2": ("SUM(tax_paid)", "dim_customers AS customers"),
    }


@pytest.mark.parametrize("measure", [{}, {"measure": {"name": "total", "filter": None}}])
def test_a_metric_of_dbt_that_aggregates_by_itself_computes_its_own_expression(
    measure: dict[str, object], tmp_path: Path
) -> None:
    """As dbt writes it once its measures have become metrics: the expression stands beside the aggregation."""
    parts = {**measure, "expr": "amount - discount", "metric_aggregation_params": AGGREGATES}
    metric = {"name": "revenue", "type": "simple", "type_params": parts}
    file = tmp_path / "semantic_manifest.json"
    file.write_text(json.dumps({"semantic_models": [{"name": "orders"}], "metrics": [metric]}))
    assert [one.sql for one in imported(file).definitions.metrics] == ["SUM(amount - discount)"]


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
