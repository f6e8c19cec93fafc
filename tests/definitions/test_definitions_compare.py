"""Queries held against metrics: the same in other words is the same, and what differs is said."""

import pytest

from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.semantics.definitions import parse_definitions
from decisor.semantics.query_match import match_metrics
from definition_shops import DEFINITIONS


def table(name: str, columns: str) -> TableInfo:
    return TableInfo(name, tuple(ColumnInfo(one, "TEXT") for one in columns.split()))


TABLES = (
    table("line", "purchase_id product price quantity discount"),
    table("customer", "id name country"),
    table("purchase", "id customer_id ordered_on shipped_on status"),
)
METRICS = parse_definitions(DEFINITIONS).metrics


def says(query: str, meant: bool = True) -> list[str]:
    return [match.how for match in match_metrics(query, METRICS, "sqlite", TABLES, METRICS if meant else ())]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT SUM(price * quantity * (1 - discount)) FROM line JOIN purchase p ON p.id = purchase_id "
        "WHERE p.status = 'closed'",
        "SELECT customer_id, ROUND(SUM(q.price * q.quantity) - SUM(q.discount * q.quantity * q.price), 2) AS revenue "
        "FROM purchase AS o JOIN line AS q ON q.purchase_id = o.id WHERE 'closed' = o.status GROUP BY 1 ORDER BY 2",
        "WITH l AS (SELECT purchase_id AS at, price * quantity * (1.0 - discount) AS amount FROM line) "
        "SELECT SUM(amount) AS revenue FROM l JOIN purchase ON purchase.id = l.at WHERE (purchase.status = 'closed')",
        "SELECT SUM(each) FROM (SELECT purchase_id, SUM(quantity * price * (1 - discount)) AS each FROM line "
        "WHERE purchase_id IN (SELECT id FROM purchase WHERE status = 'closed') GROUP BY purchase_id) AS x",
        "SELECT name FROM customer JOIN purchase p ON p.customer_id = customer.id JOIN line ON purchase_id = p.id "
        "WHERE p.status = 'closed' GROUP BY 1 ORDER BY SUM(price * quantity * (1 - discount)) DESC",
        "SELECT COALESCE(CAST(SUM(price * quantity * (1 - discount)) AS REAL), 0) FROM line JOIN purchase "
        "ON purchase.id = purchase_id AND status = 'closed'",
    ],
)
def test_a_metric_in_other_words_is_the_metric(query: str) -> None:
    assert says(query) == [""]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT SUM(price * quantity) FROM line", "SUM(price * quantity) is not metric.net_revenue"),
        ("SELECT SUM(price * quantity * (1 - discount)) FROM line", "without its filter"),
        ("SELECT SUM(price * quantity * discount) FROM line", "is not metric.net_revenue"),
        ("SELECT COUNT(*) AS turnover, country FROM customer GROUP BY 2", "COUNT(*) is not metric.net_revenue"),
        ("SELECT product, price * quantity AS revenue FROM line", "price * quantity is not metric.net_revenue"),
        (
            "SELECT SUM(price * quantity * (1 - discount)) FROM line JOIN purchase p ON p.id = purchase_id "
            "WHERE p.status = 'open'",
            "without its filter",
        ),
    ],
)
def test_another_way_to_compute_it_is_said(query: str, words: str) -> None:
    (how,) = says(query)
    assert words in how and "say" in how


@pytest.mark.parametrize(
    "query",
    [
        "SELECT SUM(quantity) AS pieces FROM line",
        "SELECT AVG(price) FROM line",
        "SELECT COUNT(*), COUNT(DISTINCT customer_id) FROM purchase",
        "SELECT price, quantity, discount FROM line",
        "SELECT MAX(price * quantity) FROM line",
        "this is no SQL",
        "SELECT 1",
    ],
)
def test_another_number_is_left_alone(query: str) -> None:
    assert says(query) == []


def test_one_column_of_several_counts_only_where_the_question_means_the_metric() -> None:
    metrics = parse_definitions("[metric.net]\nsql = 'SUM(price - discount)'\nfrom = 'line'").metrics
    query = "SELECT SUM(price) FROM line"
    assert match_metrics(query, metrics, "sqlite", TABLES, metrics)[0].how
    assert not match_metrics(query, metrics, "sqlite", TABLES)


def test_a_query_that_is_exactly_another_metric_is_not_held_against_this_one() -> None:
    metrics = parse_definitions(
        "[metric.net]\nsql = 'SUM(price * quantity * (1 - discount))'\nfrom = 'line'\n"
        "[metric.gross]\nsql = 'SUM(price * quantity)'\nfrom = 'line'\n"
    ).metrics
    (match,) = match_metrics("SELECT SUM(quantity * price) FROM line", metrics, "sqlite", TABLES, metrics)
    assert (match.metric.name, match.how) == ("gross", "")


def test_a_query_too_deep_for_the_parser_computes_no_metric() -> None:
    assert says(f"SELECT {'(' * 20_000}1{')' * 20_000}") == []
