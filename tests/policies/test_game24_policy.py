"""The simulated model of Game of 24: it is as good as it says, and the same over HTTP as in the process."""

import pytest

from data import DATA
from decisor.lab.game24 import Puzzle, make_puzzle_question, read_puzzle_cases
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.types import LLM, Decision
from policies.game24 import Game24LLM, moves, reachable, state_of
from servers.openai_server import serve

RELEASED = pytest.mark.skipif(not (DATA / "game24").is_dir(), reason=f"no test data in {DATA / 'game24'}")
NUMBERS = ("4 5 6 10", "1 2 2 9", "3 5 7 10")


async def decide(name: str, numbers: str, llm: LLM) -> Decision:
    return await build_technique(name, calls="40")(make_puzzle_question(numbers), Run(llm, Puzzle.of(numbers)))


@pytest.mark.parametrize("name", ["radagent", "best_of_n", "dfs", "tot", "lats", "reflexion"])
async def test_over_http_each_technique_decides_as_in_the_process(name: str) -> None:
    policy = Game24LLM(3)
    async with serve(lambda body: policy.reply(body["messages"][-1]["content"], body.get("seed") or 0)) as url:
        llm = OpenAICompatible("policy", url)
        over_http = [await decide(name, numbers, llm) for numbers in NUMBERS]
        await llm.close()
    assert over_http == [await decide(name, numbers, Game24LLM(3)) for numbers in NUMBERS]


def test_it_knows_which_states_can_still_make_24() -> None:
    assert reachable(state_of("3 3 8 8")) and not reachable(state_of("1 1 1 1"))
    assert reachable(state_of("4 6")) and not reachable(state_of("4 7"))
    assert len(moves(state_of("1 2 3 4"))) <= 36


@pytest.mark.slow
@RELEASED
def test_every_test_puzzle_can_be_solved_and_chains_pass_as_gpt4s_did() -> None:
    states = [state_of(str(case.facts["numbers"])) for case in read_puzzle_cases(DATA / "game24")]
    assert all(reachable(state) for state in states)
    chains = [Game24LLM(seed).chain(state) for seed in (0, 1) for state in states]
    for k, published in {1: 0.040, 5: 0.143, 20: 0.295, 100: 0.49}.items():
        assert sum(1 - (1 - p) ** k for p in chains) / len(chains) == pytest.approx(published, rel=0.3)


def test_the_judge_is_right_as_often_as_it_is_set_to_and_prefers_the_first() -> None:
    prompt = "# Task\nfrom the numbers 4 6\n# Attempt A\n{}\n# Attempt B\n{}\n# How to compare\nBetter: A, or"
    right, wrong, llm = "Left: 24", "Left: 23", Game24LLM(0)
    first = sum(llm.reply(prompt.format(right, wrong), seed).endswith("A") for seed in range(600))
    second = sum(llm.reply(prompt.format(wrong, right), seed).endswith("B") for seed in range(600))
    equal = sum(llm.reply(prompt.format(wrong, wrong), seed).endswith("A") for seed in range(600))
    assert 560 < second <= first <= 600
    assert 300 < equal < 390
