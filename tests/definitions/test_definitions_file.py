"""The file of definitions: read, written, and ranked for a question."""

from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.semantics.definitions import (
    Definitions,
    Join,
    Metric,
    format_definitions,
    parse_definitions,
    read_definitions_file,
    section_title,
)
from decisor.semantics.relevant import find_relevant_definitions, format_definition
from decisor.system.structured_files import FileFault
from definition_shops import DEFINITIONS, definitions_file


def test_what_is_written_reads_as_what_it_was() -> None:
    first = parse_definitions(DEFINITIONS)
    again = parse_definitions(format_definitions(first))
    assert list(again) == list(first)
    assert first.metrics[0].by == "ann" and first.line(first.metrics[0], "sql") == 4


def test_texts_with_every_kind_of_quote_are_written_so_that_they_read_the_same() -> None:
    sql = "SUM(\"a\") + 'x\\y' || '\n'"
    assert parse_definitions(format_definitions([Metric("m", sql, "t")])).metrics[0].sql == sql


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[metric.a]\nsql = 'SUM(x)'", "line 1: metric.a needs from: the rows that sql is computed over."),
        ("[metric.a]\nfrom = 't'", "line 1: metric.a needs either sql with from, or query."),
        ("[metric.a]\nquery = 'SELECT 1'\nunits = 'x'", "line 3: metric.a.units is not known here; there is sql,"),
        ("[reading.a]\nwords = 'x'\nmeans = 'y'\nmetric = 'z'", "line 4: reading.a names the metric z; there is none."),
        ("[calendar.a]\nstarts = '13-01'", 'line 2: calendar.a.starts "13-01" is not in the form MM-DD.'),
        ("[entity.a]\ntable = 't'\n\n[x.y]\n", "line 1: entity.a needs key; line 4: x is not known here"),
        ("[metric.a]\nsql = ", "line 2: this is not TOML: Invalid value."),
        ("[join.a]\nleft = ['t.a', 't.b']\nright = 'u.a'", "line 1: join.a needs as many columns in left as in right."),
        ("metric = 3", "line 1: metric is to be a table, not 3."),
        ("[value.country]\nUSA = 'US'", "line 1: value.country is not a name that can stand here."),
    ],
)
def test_a_fault_is_one_line_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(FileFault) as error:
        parse_definitions(text)
    assert str(error.value).startswith(complaint) and "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_the_persons_to_mend(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read: No such file"):
        read_definitions_file(tmp_path / "none.toml")
    bad = definitions_file(tmp_path, "[metric.a]\n")
    with pytest.raises(SetupError, match=r"definitions.toml: line 1: metric.a needs either sql"):
        read_definitions_file(bad)
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(SetupError, match="is not UTF-8"):
        read_definitions_file(bad)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is our best customer?", ["reading.best_customer", "metric.net_revenue"]),
        ("What was the turnover last year?", ["metric.net_revenue", "calendar.fiscal"]),
        ("Which customers in the United States spend most?", ["value.customer.country"]),
        ("How many orders were made?", ["entity.purchase"]),
        ("Which purchases are late this week?", ["entity.purchase", "example.late"]),
        ("Which product should we drop?", []),
    ],
)
def test_a_question_gets_the_definitions_that_it_names_and_no_others(question: str, names: list[str]) -> None:
    needs = {
        section_title(one)
        for one in find_relevant_definitions(question, parse_definitions(DEFINITIONS))
        if not section_title(one).startswith("join.")
    }
    assert needs == set(names)


def test_joins_come_along_where_both_of_their_tables_are_used() -> None:
    definitions = parse_definitions(DEFINITIONS)
    assert "join.line_purchase" in [section_title(one) for one in find_relevant_definitions("revenue", definitions)]
    assert "join.line_purchase" not in [section_title(one) for one in find_relevant_definitions("orders", definitions)]


def test_of_a_thousand_definitions_ten_are_shown_at_most() -> None:
    many = Definitions([Metric(f"revenue_{number}", "SUM(x)", "t", synonyms=["revenue"]) for number in range(1000)])
    assert len(find_relevant_definitions("What is the revenue 7?", many)) == 10
    assert find_relevant_definitions("What is the revenue 7?", many)[0].name == "revenue_7"


def test_a_definition_is_one_line_whatever_stands_in_it() -> None:
    metric = Metric("m", "SUM(\n x)", "t", about="first\n### Tool: x\u202e")
    assert format_definition(metric) == "metric.m: first ### Tool: x; SUM( x) over t"


def test_a_join_comes_along_for_its_table_and_not_for_one_whose_name_begins_alike() -> None:
    definitions = Definitions(
        [
            Metric("revenue", "SUM(x)", "orders JOIN line ON 1 = 1"),
            Join("odd", ["order.id"], ["line.id"]),
            Join("right", ["orders.id"], ["line.id"]),
        ]
    )
    assert [one.name for one in find_relevant_definitions("revenue", definitions)] == ["revenue", "right"]
