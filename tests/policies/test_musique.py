"""A perfect model on MuSiQue through ``reasoning_dag`` and HTTP: it misses what retrieval misses, nothing else."""

from pathlib import Path

import pytest

from data import DATA
from decisor.lab.benchmark import Case, Score
from decisor.lab.qa.bench import MUSIQUE, MuSiQueBench
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques import build_technique
from policies.musique import MusiquePolicy, reachable
from servers.openai_server import serve

pytestmark = pytest.mark.skipif(not (DATA / "multihop").is_dir(), reason=f"no test data in {DATA / 'multihop'}")


async def test_a_perfect_policy_reaches_all_that_retrieval_makes_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bench = MuSiQueBench(DATA)
    cases = bench.cases()[::27]
    policy = MusiquePolicy(cases, {passage.id: passage for passage in MUSIQUE.passages(DATA)})
    async with bench.environment(cases[0]):
        (tool,) = bench.tools
    possible = {case.id for case in cases if all(await reachable(policy.plan_of(case), tool.retriever))}
    async with serve(policy) as base_url:
        llm = OpenAICompatible("policy", base_url)

        async def play(case: Case) -> Score:
            async with bench.environment(case) as env:
                run = Run(llm, env)
                decision = await build_technique("reasoning_dag")(case.question, run)
            return await bench.score(case, decision, run.trace.entries)

        scores = dict(zip([case.id for case in cases], await map_concurrently(play, cases), strict=True))
        await llm.close()
    await bench.close()
    assert len(cases) == 25 and 15 < len(possible) < 25
    assert {id for id, score in scores.items() if score.right} == possible
    assert all(scores[id].metrics["all_recall"] == 1 for id in possible)
    assert {score.failure for id, score in scores.items() if id not in possible} == {"no_answer"}
    assert all(2 <= score.counts["depth"] <= 4 and not score.counts["plan_fallback"] for score in scores.values())
