"""Filters of dbt metrics that are no plain comparison with a column of their own table."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from decisor.semantics.dbt import convert_dbt_manifest
from decisor.semantics.definitions import ImportedDefinitions

ORDERS = [(1, 10, "open", 5.0), (2, 11, "open", 7.0), (3, 10, "shut", 11.0), (4, None, "open", 13.0)]
CUSTOMERS = {10: "gold", 11: "open"}


def import_metric(measure: dict[str, str], template: str = "", **customers: Any) -> ImportedDefinitions:
    orders = {
        "name": "orders",
        "entities": [
            {"name": "order", "type": "primary", "expr": "id"},
            {"name": "customer", "type": "foreign", "expr": "buyer"},
        ],
        "measures": [{"name": "m", **measure}],
        "dimensions": [{"name": "status", "type": "categorical"}, {"name": "day", "type": "time", "expr": "order_day"}],
    }
    other = {
        "name": "customers",
        "entities": [{"name": "customer", "type": "primary", "expr": "id"}],
        "dimensions": [{"name": "status", "type": "categorical"}],
    } | customers
    metric = {
        "name": "sales",
        "type": "simple",
        "type_params": {"measure": {"name": "m"}},
        "filter": {"where_filters": [{"where_sql_template": template}] if template else []},
    }
    return convert_dbt_manifest({"semantic_models": [orders, other], "metrics": [metric]})


@pytest.mark.parametrize(
    ("template", "grain"),
    [
        ("{{ TimeDimension('order__day', 'year') }} = '2022-01-01'", "year"),
        ("{{ TimeDimension('order__day').grain('month') }} = '2022-01-01'", "month"),
        ("{{ Dimension('order__day').grain('quarter') }} = '2022-01-01'", "quarter"),
        ("{{ TimeDimension('order__day', time_granularity_name='week') }} = '2022-01-03'", "week"),
        ("{{ TimeDimension('order__day') }} >= '2022-01-01'", ""),
        ("{{ Dimension('order__status') }} = 'year'", ""),
    ],
)
def test_a_filter_by_the_grain_of_a_date_is_left_out_with_a_note(template: str, grain: str) -> None:
    imported = import_metric({"agg": "sum", "expr": "amount"}, template)
    assert [one.name for one in imported.definitions.metrics] == ([] if grain else ["sales"])
    assert not grain or (f"by the {grain}" in imported.notes[0] and "range of dates" in imported.notes[0])


@pytest.mark.parametrize(("link", "wanted"), [("order", "open"), ("customer", "open"), ("customer", "gold")])
def test_a_dimension_is_that_of_the_entity_that_names_it(link: str, wanted: str) -> None:
    """Both tables have a status: the sum is held against one in Python."""
    imported = import_metric({"agg": "sum", "expr": "amount"}, f"{{{{ Dimension('{link}__status') }}}} = '{wanted}'")
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE orders (id, buyer, status, amount)")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
        db.execute("CREATE TABLE customers (id, status)")
        db.executemany("INSERT INTO customers VALUES (?, ?)", CUSTOMERS.items())
        [metric] = imported.definitions.metrics
        statuses = [
            (status if link == "order" else CUSTOMERS.get(buyer or 0), amount) for _, buyer, status, amount in ORDERS
        ]
        assert db.execute(metric.full_query()).fetchone() == (
            sum(amount for status, amount in statuses if status == wanted),
        )


@pytest.mark.parametrize(
    "customers",
    [
        {"entities": [{"name": "customer", "type": "foreign", "expr": "id"}]},
        {"entities": [{"name": "customer", "type": "primary", "expr": "a || b"}]},
        {"dimensions": []},
    ],
)
def test_a_filter_that_no_key_leads_to_is_left_out_with_a_note(customers: dict[str, Any]) -> None:
    imported = import_metric({"agg": "sum", "expr": "amount"}, "{{ Dimension('customer__status') }} = 'x'", **customers)
    assert not len(imported.definitions.metrics) and "no key leads to" in imported.notes[0]


def test_a_function_that_engines_reckon_otherwise_is_left_out_with_its_text() -> None:
    imported = import_metric({"agg": "average", "expr": "DATEDIFF('day', order_day, paid_day)"})
    assert not len(imported.definitions.metrics) and "DATEDIFF('day', order_day, paid_day)" in imported.notes[0]


def test_a_metric_that_lacks_a_part_is_left_out_with_a_note() -> None:
    wrong = {
        "name": "wrong",
        "type": "simple",
        "type_params": {"metric_aggregation_params": {"semantic_model": "gone", "agg": "sum"}},
    }
    empty = {"name": "empty", "type": "derived", "type_params": {"expr": "1"}}
    ratio = {"name": "ratio", "type": "ratio", "type_params": {"numerator": {"name": "half"}}}
    half = {"name": "half", "type": "simple", "type_params": {"measure": {}}}
    on_half = {"name": "on_half", "type": "derived", "type_params": {"expr": "half", "metrics": [{"name": "half"}]}}
    imported = convert_dbt_manifest({"semantic_models": [], "metrics": [wrong, empty, ratio, half, on_half]})
    assert imported.notes == [
        f"metric {name}: it lacks a part" for name in ("wrong", "empty", "ratio", "half", "on_half")
    ]
