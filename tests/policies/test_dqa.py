"""The policy plays all three techniques over HTTP, on real databases with the released content."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from data import DATA
from decisor.decision_models.ranking import rank_what_if
from decisor.lab.dqa import worlds as dumps
from decisor.lab.dqa.worlds import DqaCase, Scenario, read_dqa_questions
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.types import LLM, Decision
from policies.dqa import DqaPolicy
from policies.stores import STORES, Store, opened
from servers.neo4j_server import neo4j_database
from servers.openai_server import serve

pytestmark = pytest.mark.skipif(not (DATA / "dqa").is_dir(), reason=f"no test data in {DATA / 'dqa'}")
TECHNIQUES = ("single_rag", "iter_rag", "plan_rag")
NEO4J = pytest.param("neo4j", marks=pytest.mark.slow)
SCENARIOS: tuple[Scenario, ...] = ("locating", "building")


def some(scenario: Scenario, count: int = 10) -> list[DqaCase]:
    """The first cases of different texts: the policy knows a question by its text, which names no country's data."""
    distinct = {str(case.question): case for case in reversed(read_dqa_questions(DATA / "dqa", scenario, "sql"))}
    return list(reversed(distinct.values()))[:count]


@pytest.fixture
def neo4j_server() -> Iterator[str]:
    with neo4j_database() as url:
        yield url


def chosen(asked: list[DqaCase]) -> dict[str, str]:
    """By question text, the best candidate of a simulation."""
    worlds = {case.database: dumps.read_dump(case.database) for case in asked}
    best: dict[str, str] = {}
    for case in asked:
        ranking = rank_what_if(worlds[case.database].model(case.subject, "released"), trials=0)
        best[str(case.question)] = ranking.options[0].name
    return best


def by_database(asked: list[DqaCase]) -> Iterator[tuple[Path, list[DqaCase]]]:
    ordered = sorted(asked, key=lambda case: str(case.database))
    return ((path, list(group)) for path, group in groupby(ordered, key=lambda case: case.database))


async def decide(how: str, case: DqaCase, llm: LLM, box: Toolbox) -> Decision:
    return await build_technique(how)(case.question, Run(llm, box, Budget(Limits(calls=20))))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("store", [NEO4J if store == "neo4j" else store for store in STORES])
async def test_each_technique_decides_ten_released_questions(
    store: Store, scenario: Scenario, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if store == "neo4j":
        request.getfixturevalue("neo4j_server")
    asked = some(scenario)
    wrong, decisions = [], 0
    async with serve(DqaPolicy(chosen(asked).__getitem__)) as base_url:
        llm = OpenAICompatible("policy", base_url)
        for dump, group in by_database(asked):
            async with opened(store, dump, tmp_path) as tool:
                for case in group:
                    for how in TECHNIQUES:
                        decision = await decide(how, case, llm, Toolbox([tool]))
                        decisions += 1
                        if decision.answer != case.gold or not decision.evidence.ids or decision.evidence.objections:
                            wrong.append((how, case.id, case.gold, decision))
        await llm.close()
    assert not wrong
    assert decisions == 30


@pytest.mark.slow
async def test_planted_mistakes_are_told_and_make_the_decision_wrong(tmp_path: Path) -> None:
    asked = some("building")
    policy = DqaPolicy(chosen(asked).__getitem__, share=0.5, seed=3)
    wrong = set()
    for dump, group in by_database(asked):
        async with opened("sqlite", dump, tmp_path) as tool:
            for case in group:
                decision = await decide("plan_rag", case, ScriptedLLM(policy.reply), Toolbox([tool]))
                if decision.answer != case.gold:
                    wrong.add(str(case.question))
    assert 0 < len(wrong) < len(asked)
    assert wrong == set(policy.planted)
