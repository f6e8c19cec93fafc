"""Failure classes, retrievals and missed data, from traces made for the test."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from decisor.lab.dqa.bench import FailureFacts, classify_wrong_answer, find_missed_values
from decisor.trace.events import ActionResult, ActionStart, Trace
from decisor.trace.file import TraceFile, read_trace
from decisor.types import Observation, Option, Ranking, Record, Value

NODE = FailureFacts("locating", "krakow", frozenset({"krakow", "wien"}))
PLANT = FailureFacts("building", "12", frozenset({"12", "34"}))


def told(*steps: tuple[str, object], tool: str = "sql") -> Trace:
    """A trace of queries, each with its rows, or with an error's text, or with nothing (the run ended)."""
    trace = Trace()
    for query, came in steps:
        at = trace.add(ActionStart(tool, query))
        if isinstance(came, str):
            trace.add(ActionResult(at, Observation(note=came, error=True)))
        elif isinstance(came, list):
            records = tuple(Record(f"o1.r{n}", row) for n, row in enumerate(came, 1))
            trace.add(ActionResult(at, Observation(records)))
    return trace


KRAKOW: dict[str, Value] = {"trade_node": "krakow", "total_power": 10.0, "ingoing": 3.0}
WIEN: dict[str, Value] = {"trade_node": "wien", "total_power": 8.0, "ingoing": 1.0}
ALL = ("SELECT * FROM trade_node", [KRAKOW, WIEN])


def test_everything_was_there_and_the_conclusion_is_wrong() -> None:
    assert classify_wrong_answer(told(ALL).entries, NODE, "wien") == "DEEP"


def test_a_needed_value_that_was_never_asked_for_is_missing() -> None:
    trace = told(("SELECT trade_node, ingoing FROM trade_node", [{"trade_node": "krakow", "ingoing": 3.0}]))
    assert classify_wrong_answer(trace.entries, NODE, "wien") == "MIS"
    assert find_missed_values(trace.entries, "locating") == ("total_power",)


def test_an_answer_that_cannot_change_anything_is_a_wrong_candidate() -> None:
    assert classify_wrong_answer(told(ALL).entries, NODE, "genua") == "CAN"


def test_a_best_candidate_that_nobody_looked_at_is_a_wrong_candidate() -> None:
    assert (
        classify_wrong_answer(
            told(("SELECT * FROM trade_node WHERE trade_node = 'wien'", [WIEN])).entries, NODE, "wien"
        )
        == "CAN"
    )


def test_a_level_is_no_look_at_the_building_of_that_number() -> None:
    query = "SELECT building_id, level, current_output, pop_demand FROM supply, goods"
    row: dict[str, Value] = {"building_id": 34, "level": 12, "current_output": 1.0, "pop_demand": 3.0}
    assert classify_wrong_answer(told((query, [row])).entries, PLANT, "34") == "CAN"
    seen = {**row, "building_id": 12}
    assert classify_wrong_answer(told((query, [row, seen])).entries, PLANT, "34") == "DEEP"


def test_a_database_that_picks_the_best_has_looked_at_all() -> None:
    query = "SELECT * FROM trade_node ORDER BY total_power LIMIT 1"
    assert classify_wrong_answer(told((query, [WIEN])).entries, NODE, "wien") == "DEEP"


def test_a_failed_query_that_was_never_repaired_is_a_query_error() -> None:
    assert (
        classify_wrong_answer(told(ALL, ("SELECT inflow FROM node", "no such table: node")).entries, NODE, "wien")
        == "QUR"
    )


def test_a_failed_query_that_was_repaired_is_not() -> None:
    assert (
        classify_wrong_answer(told(("SELECT inflow FROM node", "no such table: node"), ALL).entries, NODE, "wien")
        == "DEEP"
    )


def test_a_needed_value_lost_in_a_failed_query_is_a_query_error() -> None:
    trace = told(
        ("SELECT current_output FROM suply", "no such table: suply"),
        ("SELECT pop_demand, building_id FROM goods JOIN supply", [{"building_id": 12, "pop_demand": 3.0}]),
    )
    assert find_missed_values(trace.entries, "building") == ("current_output",)
    assert classify_wrong_answer(trace.entries, PLANT, "34") == "QUR"


def test_no_answer_and_a_limit_are_other() -> None:
    assert classify_wrong_answer(told(ALL).entries, NODE, "") == "OTH"
    assert classify_wrong_answer(told(ALL).entries, NODE, "wien", stopped="budget") == "OTH"


def test_a_run_cut_off_in_its_only_query_is_a_query_error() -> None:
    assert classify_wrong_answer(told(("SELECT 1", None)).entries, NODE, "") == "QUR"


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("MATCH (n:Trade_node) RETURN n", {"n": KRAKOW}),
        ("MATCH (n:Trade_node) RETURN collect(n) AS nodes", {"nodes": [KRAKOW, WIEN]}),
        ("SELECT sum(f.flow), SUM( nc.calculated_trading_power ) FROM flow f, node_country nc", {"a": 1.0}),
        ("SELECT n.ingoing AS i, n.total_power AS p FROM trade_node n", {"i": 3.0, "p": 1.0}),
    ],
)
def test_data_come_in_nodes_in_lists_under_other_names_and_as_sums(query: str, row: Mapping[str, Value]) -> None:
    assert find_missed_values(told((query, [row]), tool="cypher").entries, "locating") == ()


def test_a_comment_asks_for_nothing_and_an_empty_result_brings_nothing() -> None:
    assert find_missed_values(told(("SELECT 1 -- ingoing, total_power", [{"1": 1}])).entries, "locating") == (
        "ingoing",
        "total_power",
    )
    assert find_missed_values(told(("SELECT pop_demand FROM goods WHERE 1 = 0", [])).entries, "building") == (
        "current_output",
        "pop_demand",
    )


def test_a_decision_model_misses_nothing() -> None:
    trace = Trace()
    at = trace.add(ActionStart("whatif", "rank"))
    ranking = Ranking("profit", "max", (Option("krakow", 1.0),))
    trace.add(ActionResult(at, Observation(ranking=ranking)))
    assert find_missed_values(trace.entries, "locating") == ()
    assert classify_wrong_answer(trace.entries, NODE, "wien") == "DEEP"


def test_a_trace_from_a_file_reads_as_the_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("w") as file:
        trace = Trace(listeners=[TraceFile(file).write])
        at = trace.add(ActionStart("sql", ALL[0]))
        trace.add(ActionResult(at, Observation((Record("o1.r1", KRAKOW),))))
    events = read_trace(path)
    assert json.loads(path.read_text().splitlines()[1])["event"] == "ActionStart"
    assert (find_missed_values(events, "locating"), classify_wrong_answer(events, NODE, "wien")) == ((), "DEEP")
