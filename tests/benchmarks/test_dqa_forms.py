"""What a wrong answer is called that the printed rules or a reader allow, bare schemas, questions of one candidate."""

import asyncio
from dataclasses import replace

import pytest

from decisor.lab.benchmark import Score
from decisor.lab.dqa.bench import DqaBench
from decisor.lab.dqa.generator import generate_dataset
from decisor.lab.dqa.worlds import WorldCase
from decisor.trace.events import LLMCall, Trace, TraceEntry
from decisor.types import Action, Decision


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


def test_accuracy_with_a_choice_is_of_questions_with_two_candidates_or_more(bench: DqaBench) -> None:
    one = first(bench)
    for choices, measured in ((1, False), (2, True)):
        bench.shared.cases[one.case.id] = replace(one, choices=choices)
        try:
            assert ("strict_of_several" in scored(bench, Decision("{gold}")).metrics) is measured
        finally:
            bench.shared.cases[one.case.id] = one


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("sql", "supply(goods_id, building_id, max_supply, current_output, level)"),
        ("graph", "(:Building)-[:Supply {max_supply, current_output, level}]->(:Goods)"),
    ],
)
async def test_a_bare_schema_is_names_alone_and_queries_run_as_before(bench: DqaBench, form: str, told: str) -> None:
    described = DqaBench(bench.data, form=form)  # type: ignore[arg-type]
    bare = replace(described, schema="bare")
    case = bare.cases()[0]
    described.cases()
    async with bare.environment(case) as env, described.environment(case) as other:
        assert told in env.describe() and "e.g." not in env.describe() and "rows)" not in env.describe()
        query = "SELECT count(*) FROM goods" if form == "sql" else "MATCH (g:Goods) RETURN count(g)"
        action = Action("sql" if form == "sql" else "cypher", query)
        assert (await env.step(action)).records == (await other.step(action)).records
    await bare.close()
    await described.close()
