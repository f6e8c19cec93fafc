"""The tables of the PlanRAG paper from outcomes, and what a wrong answer is called that the rules or a reader allow."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from decisor.lab.benchmark import Outcome, Score
from decisor.lab.dqa.analysis import make_dqa_paper_tables
from decisor.lab.dqa.bench import DqaBench, find_retrieval_kinds
from decisor.lab.dqa.generator import generate_dataset
from decisor.lab.dqa.worlds import WorldCase
from decisor.lab.papers import tables_for
from decisor.trace.events import LLMCall, Trace, TraceEntry
from decisor.types import Decision


def outcome(case: str, technique: str, right: bool, retrievals: int, **more: object) -> Outcome:
    one = Outcome(
        "dqa", case, technique, "m", 0, "right" if right else "wrong", "locating", counts={"retrievals": retrievals}
    )
    return replace(one, **more)  # type: ignore[arg-type]


ITER = [outcome("a", "iter_rag", False, 1), outcome("b", "iter_rag", True, 3), outcome("c", "iter_rag", False, 2)]
PLAN = [outcome("a", "plan_rag", True, 5), outcome("b", "plan_rag", True, 1), outcome("c", "plan_rag", False, 1)]


def test_questions_are_sorted_by_what_iter_rag_did_whoever_answers() -> None:
    (table,) = [
        one for one in make_dqa_paper_tables("dqa", {"iter_rag": ITER, "plan_rag": PLAN}) if "figure 5" in one.source
    ]
    assert [line.cells for line in table.lines] == [
        ("iter_rag", "0.0 % of 1", "50.0 % of 2", ""),
        ("plan_rag", "100.0 % of 1", "50.0 % of 2", ""),
    ]


def test_another_models_runs_do_not_sort_the_questions_of_a_model_that_ran_iter_rag_itself() -> None:
    other = [replace(ITER[0], model="n", counts={"retrievals": 4})]
    by_question = find_retrieval_kinds([*ITER, *other])
    assert by_question["a", "m"] == "SR" and by_question["a", "n"] == "MR" and ("a", "") not in by_question


def test_without_iter_rag_nothing_is_sorted() -> None:
    assert not [one for one in tables_for("dqa", {"plan_rag": PLAN}) if "figure 5" in one.source]


def test_each_printed_table_has_its_published_lines_marked() -> None:
    marked = {
        table.source.rpartition(", ")[2]: sum(line.published for line in table.lines)
        for table in tables_for("dqa form=graph", {"plan_rag": PLAN})
    }
    assert marked == {
        "140 questions": 4,
        "table 11": 3,
        "a tenth of the questions": 4,
        "table 6": 2,
        "figure 6": 0,
    } | {name: 2 for name in marked if name == "both forms"}


def test_a_kind_of_replan_counts_each_question_once() -> None:
    twice = replace(PLAN[0], tags=("replan: same, reorder", "replan: same, reorder", "replan: increase, divide"))
    once = replace(PLAN[1], tags=("replan: increase, divide",))
    made = make_dqa_paper_tables("dqa", {"plan_rag": [twice, once, PLAN[2]]})
    (table,) = [one for one in made if one.title == "Kinds of replans"]
    cells = dict(zip(table.head, table.lines[0].cells, strict=True))
    assert (cells["reorder"], cells["divide"], cells["merge"]) == ("50.0 % of 2", "100.0 % of 2", "0.0 % of 2")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> DqaBench:
    folder = tmp_path_factory.mktemp("dqa")
    generate_dataset("building", "small", 3, folder, 3)
    bench = DqaBench(folder)
    bench.cases()
    return bench


def first(bench: DqaBench) -> WorldCase:
    return next(iter(bench.shared.cases.values()))


def scored(bench: DqaBench, decision: Decision, *replies: str) -> Score:
    case = first(bench).case
    trace = Trace()
    for text in replies:
        trace.add(LLMCall("m", (), (text.format(gold=case.gold[0]),)))
    events: tuple[TraceEntry, ...] = tuple(trace.entries)
    answer = decision.answer.format(gold=case.gold[0])
    return asyncio.run(bench.score(case, replace(decision, answer=answer), events))


def test_an_answer_without_a_name_beside_a_reply_that_names_the_right_one_is_wrong_in_form(bench: DqaBench) -> None:
    assert scored(bench, Decision("as I said above"), "Final answer: {gold}").failure == "FORM"
    assert scored(bench, Decision(""), "Final answer: none of them").failure == "OTH"
    assert scored(bench, Decision("{gold}"), "Final answer: {gold}").failure == ""


def test_an_answer_that_is_best_by_the_printed_rules_is_counted_and_is_no_misuse_of_data(bench: DqaBench) -> None:
    one = first(bench)
    other = next(name for name in one.candidates if name not in one.ties)
    bench.shared.cases[one.case.id] = replace(one, printed=(other,))
    try:
        score = scored(bench, Decision(other))
    finally:
        bench.shared.cases[one.case.id] = one
    assert (score.right, score.failure, score.metrics["printed"], score.metrics["ties"]) == (False, "RULES", 1.0, 0.0)


def test_a_generated_question_has_its_own_answer_as_the_best_by_the_printed_rules(bench: DqaBench) -> None:
    assert all(one.case.gold[0] in one.printed for one in bench.shared.cases.values())


def test_a_folder_of_one_scenario_is_counted_alone(tmp_path: Path) -> None:
    from decisor.lab.dqa.analysis import measure_scenarios

    generate_dataset("building", "tiny", 1, tmp_path, 2)
    assert [(one.scenario, one.questions) for one in measure_scenarios(tmp_path)] == [("building", 2)]


def test_repeats_of_a_case_count_as_one_case_in_a_table() -> None:
    tries = [replace(PLAN[0], repeat=at) for at in range(3)]
    (table,) = [
        one for one in make_dqa_paper_tables("dqa", {"plan_rag": [*tries, PLAN[2]]}) if "table 10" in one.source
    ]
    assert table.lines[0].cells == ("plan_rag", "50.0 % of 2", "")  # not 75 %, which pools the tries
