"""Each measure of a paper's cell against figures that are counted by hand, or by plain code here."""

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from data import DATA
from decisor.lab.benchmark import Outcome
from decisor.lab.reproduction.papers import CellFigure, MeasuredRun, measure_cell, measure_size


def outcome(case: str, right: bool = True, technique: str = "plan_rag", **more: object) -> Outcome:
    one = Outcome("dqa", case, technique, "m", 0, "right" if right else "wrong", "locating")
    return replace(one, **more)  # type: ignore[arg-type]


def value(measure: str, *part: Outcome, **more: object) -> object:
    figure = measure_cell(measure, MeasuredRun(part, **more))  # type: ignore[arg-type]
    return None if figure is None else pytest.approx(figure.value)


def test_accuracy_is_of_right_wrong_and_over_budget_and_crashes_are_left_out() -> None:
    part = (outcome("a"), outcome("b", False), outcome("c", state="over_budget"), outcome("d", state="crashed"))
    assert value("accuracy", *part) == 100 / 3
    assert value("accuracy") is None


def test_accuracy_over_two_forms_is_the_mean_of_both_and_repeats_count_as_one_case() -> None:
    forms = [outcome("a"), outcome("a", False, benchmark="dqa form=graph")]
    forms += [outcome("b"), outcome("b", benchmark="dqa form=graph")]
    assert value("accuracy", *forms) == 75.0
    tries = [outcome("a", repeat=at) for at in range(3)]
    assert value("accuracy", *tries, outcome("b", False)) == 50.0  # not 75, which pools the tries


def test_a_metric_is_a_mean_in_percent_without_outcomes_that_lack_it() -> None:
    part = (outcome("a", metrics={"f1": 0.5}), outcome("b", metrics={"f1": 0.25}), outcome("c"))
    assert value("mean f1", *part) == 37.5
    assert value("mean em", *part) is None


def test_questions_are_sorted_by_what_iter_rag_did_in_each_form() -> None:
    split = [outcome("a", technique="iter_rag", counts={"retrievals": 1})]
    split += [outcome("b", technique="iter_rag", counts={"retrievals": 3})]
    split += [outcome("a", technique="iter_rag", counts={"retrievals": 2}, benchmark="dqa form=graph")]
    part = (outcome("a"), outcome("b", False), outcome("a", False, benchmark="dqa form=graph"))
    assert value("kind SR", *part, splitting=split) == 100.0
    assert value("kind MR", *part, splitting=split) == 0.0
    assert value("kind_count MR", *split, splitting=split) == 2.0
    assert value("kind SR", *part) is None


def test_missed_data_has_two_readings_over_the_questions_that_were_retrieved_for() -> None:
    both, one = ("missed: ingoing", "missed: total_power"), ("missed: ingoing",)
    part = (
        outcome("a", tags=both, counts={"retrievals": 2}),
        outcome("b", tags=one, counts={"retrievals": 1}),
        outcome("c", counts={"retrievals": 1}),
        outcome("d", tags=both),  # nothing was retrieved
    )
    assert (value("missed any", *part), value("missed all", *part)) == (200 / 3, 100 / 3)


def test_replans_are_counted_with_the_accuracy_on_them() -> None:
    part = [outcome(str(n), n % 2 == 0, counts={"replans": n}) for n in (0, 2, 5, 6)]
    often = measure_cell("replans 4", MeasuredRun(part))
    assert often is not None and (often.value, often.count) == (50.0, 2)
    assert measure_cell("replans 1", MeasuredRun(part)) == CellFigure(0.0, None, 0)
    total = measure_cell("replans total", MeasuredRun(part))
    assert total is not None and (total.value, total.count) == (75.0, 4)


def test_a_kind_of_replan_counts_each_question_once() -> None:
    twice = outcome("a", tags=("replan: same, reorder", "replan: same, reorder", "replan: increase, divide"))
    once, never = outcome("b", tags=("replan: increase, divide",)), outcome("c")
    shares = [
        value(f"replan {kind}", twice, once, never) for kind in ("reorder", "same", "divide", "increase", "merge")
    ]
    assert shares == [50.0, 50.0, 100.0, 100.0, 0.0]


def test_failures_are_shares_of_all_questions() -> None:
    part = (outcome("a"), outcome("b", False, failure="CAN"), outcome("c", False, failure="MIS"), outcome("d"))
    assert value("failure CAN", *part) == 25.0


def test_plans_are_counted_by_depth_and_sub_queries_by_their_documents() -> None:
    deep = outcome("a", counts={"nodes": 3, "depth": 2, "nodes_one_document": 2, "nodes_documents": 1})
    none = outcome("b", counts={"nodes": 1, "depth": 0, "nodes_one_document": 1})
    figure = measure_cell("depth 2", MeasuredRun((deep, none)))
    assert figure is not None and (figure.value, figure.count) == (50.0, 1)
    assert (value("documents one", deep, none), value("documents several", deep, none)) == (75.0, 25.0)
    assert (value("sum nodes", deep, none), value("average nodes", deep, none)) == (4.0, 2.0)


def test_failures_of_calls_are_incidences_and_what_passed_all_the_same() -> None:
    part = (
        outcome("a", tags=("tool_call_error", "fixed:tool_call_error")),
        outcome("b", False, tags=("tool_call_error",)),
        outcome("c", False, tags=("decision_failure",)),
        outcome("d"),
        outcome("e", state="unscored", tags=("tool_call_error",)),
    )
    assert (value("incidence tool_call_error", *part), value("fix tool_call_error", *part)) == (50.0, 50.0)
    assert value("incidence decision_failure", *part) == 25.0 and value("fix hallucinated_tool", *part) is None


def test_accuracy_by_calls_is_that_of_the_answer_held_then() -> None:
    from decisor.types import Usage

    part = (outcome("a", snapshots={30: False, 60: True}, usage=Usage(90)), outcome("b", False, usage=Usage(10)))
    assert [value(f"by_calls {calls}", *part) for calls in (30, 60, 90)] == [0.0, 50.0, 50.0]


def test_the_tenths_of_one_rater_serve_every_technique() -> None:
    rating = [outcome(f"{n:02}", technique="radagent", metrics={"elo": float(n)}) for n in range(50)]
    part = [outcome(f"{n:02}", n < 5, technique="dfsdt", metrics={"elo": -float(n)}) for n in range(50)]
    assert [value(f"tenth {at}", *part, rating=rating) for at in (1, 2, 10)] == [100.0, 0.0, 0.0]
    assert value("tenth 1", *part, rating=rating[:9]) is None


def test_an_unknown_measure_is_a_bug() -> None:
    with pytest.raises(ValueError, match="no measure"):
        measure_cell("beauty", MeasuredRun((outcome("a"),)))


DQA = Path(os.environ.get("DECISOR_DATA", DATA)) / "dqa"


@pytest.mark.skipif(not DQA.is_dir(), reason="the released questions are not here (set DECISOR_DATA)")
def test_sizes_are_those_that_plain_counting_of_the_dumps_gives_and_the_papers_for_locating() -> None:
    """The manifest names the database of each of the 200 questions: their mean is the printed 2038.8."""
    moved = dict(line.split("\t") for line in (DQA / "MANIFEST.tsv").read_text().splitlines() if "\t" in line)
    insert = re.compile(r"^INSERT INTO [`\"]?(\w+)", re.I)
    counts: dict[str, Counter[str]] = {}
    for name in set(moved.values()):
        if name.startswith("locating") and name.endswith(".sql"):
            rows = (insert.match(line) for line in (DQA / name).read_text().splitlines())
            counts[name] = Counter(found[1].lower() for found in rows if found)
    dumps = [counts[file] for name, file in moved.items() if file in counts]
    assert len(dumps) == 200
    totals = [rows.total() for rows in dumps]
    edges = [rows["flow"] + rows["node_country"] for rows in dumps]
    assert round(sum(totals) / 200, 1) == 2038.8 and round(sum(edges) / 200, 1) == 1432.3
    assert round((sum(totals) - sum(edges)) / 200, 1) == 606.5
    here = [re.search(r"q(\d+)\.sql$", name) for name, file in moved.items() if file in counts]
    asked = {int(found[1]) for found in here if found}
    questions = measure_size(DQA, "locating", "questions")
    assert questions is not None and 0 < questions.value <= len(asked)


def test_a_scenario_that_is_not_there_has_no_size(tmp_path: Path) -> None:
    assert measure_size(tmp_path, "locating", "rows") is None and measure_size(tmp_path, "", "rows") is None
