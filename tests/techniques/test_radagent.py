"""What holds for every search: budgets, ratings, the tree, snapshots. The LLM is a policy; puzzles are real."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisor.errors import SetupError
from decisor.lab.game24 import Puzzle, list_finished_answers, make_puzzle_question, makes_24
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.techniques.cot import CoT
from decisor.techniques.radagent import PRESETS, EloSearch, RadAgent
from decisor.techniques.shared.judge import compare_sequences
from decisor.techniques.shared.search_tree import TreeNode
from decisor.trace.events import ActionResult, AnswerSnapshot, Conclusion, SearchNode, SearchTree
from decisor.types import Completion, Decision, Message, Sampling, Usage
from policies.game24 import Game24LLM

NUMBERS = ["4 5 6 10", "1 2 4 7", "3 3 8 8", "4 9 10 13", "2 2 2 12"]
HOW = st.builds(
    RadAgent,
    preset=st.sampled_from(["paper", "release", "tuned"]),
    calls=st.integers(1, 90),
    max_steps=st.integers(1, 5),
    settled=st.sampled_from([0, 0, 2]),
    equal=st.sampled_from([0, 0, None]),
    select=st.sampled_from(["elo", "elo", "random"]),
    matches=st.integers(0, 2),
    close=st.sampled_from(["leaf", "parent", None]),
    votes=st.sampled_from([1, 1, 3]),
    opponent=st.sampled_from(["random", "best", "nearest", None]),
    backup=st.sampled_from(["soft", "mean"]),
    at_once=st.sampled_from([1, 1, 4]),
    seed=st.integers(0, 99),
    playoff=st.sampled_from([0, 0, 3]),
)


@dataclass
class Counting:
    """An LLM that counts, and keeps what a judge was shown."""

    inner: Game24LLM
    made: int = 0
    judged: list[str] = field(default_factory=list)
    name: str = "counting"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.made += 1
        if "# Attempt B" in messages[-1].content:
            self.judged.append(messages[-1].content)
        return await self.inner.complete(messages, sampling)


A, B, C = "4 * 5 + 10 - 6", "(10 - 4) * 5 - 6", "4 + 5 + 6 + 10"
"""Answers in the form that the puzzle 4 5 6 10 takes."""


async def search(
    how: RadAgent, numbers: str, llm: Any = None, limits: Limits = Limits()
) -> tuple[EloSearch, Run, Decision]:
    run = Run(llm or Game24LLM(how.seed), Puzzle.of(numbers), Budget(limits))
    made = EloSearch.of(how, make_puzzle_question(numbers), run)
    await made.explore()
    await made.play_off()
    return made, run, made.tree.decide(made.chosen(), "")


def rated_children(node: TreeNode) -> list[TreeNode]:
    return [child for child in node.children if child.rated]


@settings(max_examples=40, deadline=None)
@given(how=HOW, numbers=st.sampled_from(NUMBERS))
async def test_what_holds_for_every_tree(how: RadAgent, numbers: str) -> None:
    llm = Counting(Game24LLM(how.seed))
    made, run, decision = await search(how, numbers, llm)
    tree = made.tree
    grown = len(tree.nodes) - 1
    assert llm.made == run.budget.spent.calls == grown + 2 * made.rules.votes * made.played <= how.calls
    assert abs(sum(leaf.elo for leaf in tree.sequences)) < 1e-6
    assert tree.root.matches == 2 * made.played
    for node in tree.nodes:
        below = rated_children(node)
        if below:
            assert node.matches == sum(child.matches for child in node.children)
            elos = [child.elo for child in below]
            assert min(elos) - 1e-9 <= node.elo <= max(elos) + 1e-9
        if node.step and not node.rated:
            assert node.elo == node.matches == 0
        assert node.depth <= how.max_steps
    answered = [node for node in tree.answers() if node.rated]
    assert how.select == "random" or decision.answer == (made.highest().answer if answered else "")  # type: ignore[union-attr]
    assert (decision.stopped == "answered") == bool(answered)


@settings(max_examples=20, deadline=None)
@given(how=HOW, numbers=st.sampled_from(NUMBERS))
async def test_the_same_seed_grows_the_same_tree(how: RadAgent, numbers: str) -> None:
    def shape(made: EloSearch) -> list[Any]:
        return [(node.id, node.text, node.elo, node.matches) for node in made.tree.nodes]

    assert shape((await search(how, numbers))[0]) == shape((await search(how, numbers))[0])


@settings(max_examples=20, deadline=None)
@given(how=HOW, at=st.sampled_from([10, 20, 30, 60]), numbers=st.sampled_from(NUMBERS))
async def test_a_snapshot_is_the_answer_of_a_run_that_ends_there(how: RadAgent, at: int, numbers: str) -> None:
    long = replace(how, calls=90, every=at, at_once=1, playoff=0, equal=0)
    _, run, _ = await search(long, numbers)
    shots = {one.calls: one.answer for one in run.trace.of(AnswerSnapshot)}
    assert sorted(shots) == list(range(at, 91, at))
    short, _, _ = await search(replace(long, calls=at), numbers)
    chosen = short.chosen()
    assert shots[at] == (chosen.answer if chosen else "")


@settings(max_examples=20, deadline=None)
@given(how=HOW, numbers=st.sampled_from(NUMBERS))
async def test_a_closed_node_is_never_walked_into(how: RadAgent, numbers: str) -> None:
    how = replace(how, at_once=1)
    made, _, _ = await search(how, numbers)
    for leaf in made.tree.sequences:
        assert not leaf.children
        parent = leaf.parent
        if how.rules_of_search().close != "leaf" and parent is not None and parent is not made.tree.root and leaf.rated:
            assert parent.closed and parent.children[-1] is leaf, "nothing grows from it later"


async def test_a_judge_that_always_takes_the_first_moves_nothing() -> None:
    llm = Game24LLM(beta=0, late=0, bias=100)
    made, _, _ = await search(RadAgent(calls=60), "4 5 6 10", llm)
    assert made.played > 5
    assert all(node.elo == 0 for node in made.tree.nodes)


@dataclass
class Longer:
    """A judge without position bias: the longer sequence is the better one."""

    name: str = "longer"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        both = messages[-1].content.partition("# Attempt A")[2].partition("# How to")[0]
        first, _, second = both.partition("# Attempt B")
        said = "neither" if first.strip() == second.strip() else "AB"[len(first.strip()) < len(second.strip())]
        return Completion((f"Better: {said}",), Usage(1))


async def test_the_two_orders_can_change_places() -> None:
    made, _, _ = await search(RadAgent(calls=40, judge=Longer()), "4 5 6 10")
    judge, leaves = made.tree.run.using(llm=Longer(), budget=Budget()), made.tree.sequences
    made.tree.run = judge
    scores = [
        await compare_sequences(made.tree, x, y, judge) + await compare_sequences(made.tree, y, x, judge)
        for x in leaves
        for y in leaves
    ]
    assert len(scores) > 20 and set(scores) == {1.0}


@pytest.mark.slow
async def test_with_a_perfect_judge_the_champion_is_the_best_that_was_found() -> None:
    found = selected = 0
    for seed in range(60):
        numbers = NUMBERS[seed % 2]
        how = RadAgent(calls=100, seed=seed, close="leaf", equal=0)
        _, run, decision = await search(how, numbers, Game24LLM(seed, late=50, bias=0, skill=1.5))
        if any(makes_24(answer, numbers) for answer in list_finished_answers(run.trace.entries)):
            found += 1
            selected += makes_24(decision.answer, numbers)
    assert found >= 20
    assert selected / found >= 0.85


@pytest.mark.parametrize("name", ["radagent", "cot", "best_of_n", "reflexion", "bfs", "dfs", "dfsdt", "tot", "lats"])
@pytest.mark.parametrize(("own", "outer"), [(17, None), (100, 13), (1, None)])
async def test_no_technique_passes_its_budget_or_that_of_its_run(name: str, own: int, outer: int | None) -> None:
    llm = Counting(Game24LLM(1))
    run = Run(llm, Puzzle.of("4 5 6 10"), Budget(Limits(calls=outer)))
    many = {"cot": {"chains": "99"}, "reflexion": {"trials": "99"}, "bfs": {"answers": "0"}, "dfs": {"answers": "0"}}
    decision = await build_technique(name, calls=str(own), **many.get(name, {}))(make_puzzle_question("4 5 6 10"), run)
    assert llm.made == run.budget.spent.calls <= min(own, outer or own)
    assert len(run.trace.of(SearchTree)) == 1 and run.trace.entries[-1].event == Conclusion(decision)


async def test_a_reply_that_cannot_be_read_is_asked_for_again_and_is_no_step() -> None:
    llm = ScriptedLLM(
        [
            "Hm.",
            "Action: combine\nAction input: 4 + 7",
            "Action: fly\nAction input: up",
            "Action: give_up\nAction input: no way",
        ]
    )
    made, _, decision = await search(RadAgent(calls=4), "4 5 6 10", llm)
    assert "Write an Action with its Action input" in llm.seen[1]
    assert "There is no 7" in llm.seen[2]
    assert "There is no tool 'fly'" in llm.seen[3]
    (leaf,) = made.tree.sequences
    assert (leaf.ended, leaf.depth, decision.answer, decision.stopped) == ("gave_up", 3, "", "budget")


async def test_a_sequence_that_gave_up_is_judged_and_never_the_answer() -> None:
    give_up = "Action: give_up\nAction input: no way"
    llm = ScriptedLLM([give_up, f"Final answer: {A}", "Better: B", "Better: A", "Better: A"])
    made, _, decision = await search(RadAgent(calls=4), "4 5 6 10", llm)
    gave, answered = made.tree.sequences
    assert gave.elo > 0 > answered.elo
    assert decision.answer == A
    assert "It ends without an answer: given up." in llm.seen[2]


async def test_what_was_tried_from_a_node_is_shown_to_be_different_from() -> None:
    step = "Action: combine\nAction input: {}"
    llm = ScriptedLLM([step.format("4 * 5"), f"Final answer: {A}", step.format("4 * 6"), f"Final answer: {B}"])
    await search(RadAgent(calls=4, matches=0, explore=9999), "4 5 6 10", llm)
    assert "# Tried" not in llm.seen[0] + llm.seen[1] + llm.seen[3]
    assert f"1. combine 4 * 5 -> 4 * 5 = 20. Left: 6 10 20\n   How it ended: with the answer {A}" in llm.seen[2]


async def test_only_where_nothing_came_of_it_is_the_model_told_to_do_something_different() -> None:
    give_up = "Action: give_up\nAction input: no way"
    llm = ScriptedLLM([give_up, f"Final answer: {A}", give_up])
    await search(RadAgent(calls=3, matches=0, explore=9999), "4 5 6 10", llm)
    assert "How it ended: given up" in llm.seen[1] and "really different" in llm.seen[1]
    assert f"How it ended: with the answer {A}" in llm.seen[2] and "really different" not in llm.seen[2]


@pytest.mark.parametrize("preset", ["paper", "release"])
async def test_as_printed_each_try_is_shown_with_its_elo_and_something_else_is_asked_for(preset: str) -> None:
    llm = ScriptedLLM([f"Final answer: {A}", f"Final answer: {B}", "Better: A", "Better: B", f"Final answer: {C}"])
    await search(RadAgent(preset=preset, matches=1, side_matches=0, votes=1, calls=5, explore=9999), "4 5 6 10", llm)  # type: ignore[arg-type]
    assert f"with the answer {A}\n   Value: 0" in llm.seen[1] and "really different" in llm.seen[1]
    assert f"with the answer {A}\n   Value: -25" in llm.seen[4] and f"with the answer {B}\n   Value: 25" in llm.seen[4]


async def test_a_search_ends_once_its_best_has_won_often_enough_in_both_orders() -> None:
    llm = Counting(Game24LLM(3))
    made, run, _ = await search(RadAgent(calls=100, judge=Longer(), settled=2), "4 5 6 10", llm)
    best = made.highest()
    assert best and made.streaks[best.id] == 2 and run.budget.spent.calls < 60
    endless, _, _ = await search(RadAgent(calls=100, judge=Longer()), "4 5 6 10", Game24LLM(3))
    assert len(endless.tree.sequences) > len(made.tree.sequences)


async def test_a_search_ends_at_three_equal_answers_but_not_as_printed() -> None:
    def reply(messages: Sequence[Message]) -> str:
        is_judge = "# Attempt B" in messages[-1].content
        return "Better: equal" if is_judge else f"Thought: done\nFinal answer: {A}\nBecause: it is 24"

    ends = {}
    for preset in ("tuned", "paper"):
        made, run, decision = await search(RadAgent(preset, calls=40), NUMBERS[0], ScriptedLLM(reply))
        assert decision.answer == A
        ends[preset] = (len(made.tree.sequences), run.budget.spent.calls)
    assert ends["tuned"][0] == 3 and ends["tuned"][1] < 10 and ends["paper"][1] > 30


async def test_a_random_choice_is_among_all_answers_and_grows_the_same_tree() -> None:
    answers = set()
    for seed in range(12):
        one, _, by_luck = await search(RadAgent(calls=60, seed=seed, select="random"), "4 5 6 10", Game24LLM(1))
        other, _, by_elo = await search(RadAgent(calls=60, seed=seed), "4 5 6 10", Game24LLM(1))
        assert [node.text for node in one.tree.nodes] == [node.text for node in other.tree.nodes]
        answers.add(by_luck.answer == by_elo.answer)
    assert answers == {True, False}


async def test_the_judge_may_call_two_sequences_equal() -> None:
    llm = ScriptedLLM([f"Final answer: {A}", f"Final answer: {B}", "Better: equal", "Better: A"])
    made, _, _ = await search(RadAgent(calls=4), "4 5 6 10", llm)
    assert "Better: equal" in llm.seen[2]
    assert [leaf.elo for leaf in made.tree.sequences] == [0, 0]


async def test_one_refusal_does_not_outvote_two_chains_that_say_the_same_in_other_words() -> None:
    answers = ["Final answer: Sorry, with 4 5 6 10 nothing", f"Final answer: It is {A}", f"Final answer: {A}= 24"]
    judge = ScriptedLLM(["Better: A", "Better: B", "Better: B", "Better: A"])
    run = Run(ScriptedLLM(answers), Puzzle.of("4 5 6 10"))
    decision = await CoT(chains=3, judge=judge)(make_puzzle_question("4 5 6 10"), run)
    assert decision.answer == f"It is {A}"
    by_vote = Run(ScriptedLLM(answers), Puzzle.of("4 5 6 10"))
    assert (
        await CoT(chains=3, choose="vote")(make_puzzle_question("4 5 6 10"), by_vote)
    ).answer == "Sorry, with 4 5 6 10 nothing"


async def test_chains_that_agree_need_no_judge() -> None:
    run = Run(ScriptedLLM([f"Final answer: {A}", f"Final answer: {B}.", f"Final answer: {B}"]), Puzzle.of("4 5 6 10"))
    decision = await CoT(chains=3)(make_puzzle_question("4 5 6 10"), run)
    assert decision.answer == B and run.budget.spent.calls == 3


async def test_the_judge_may_be_another_llm_and_votes_are_counted() -> None:
    judge = ScriptedLLM(["Better: A"] * 3 + ["Better: B"] * 3)
    llm = ScriptedLLM([f"Final answer: {A}", f"Final answer: {B}"])
    made, run, _ = await search(RadAgent(calls=8, votes=3, judge=judge), "4 5 6 10", llm)
    assert run.budget.spent.calls == 8 and made.played == 1
    assert [leaf.elo for leaf in made.tree.sequences] == [-100, 100]


async def test_the_judge_is_shown_what_was_done_and_nothing_of_what_is_right() -> None:
    llm = Counting(Game24LLM(2))
    _, run, _ = await search(RadAgent(calls=50), "4 5 6 10", llm)
    observed = {result.observation.note for result in run.trace.of(ActionResult)}
    lines = {line.partition(". ")[2] for text in llm.judged for line in text.splitlines() if "Observation: " in line}
    assert llm.judged and {line.removeprefix("Observation: ").removeprefix("Error: ") for line in lines} <= observed


async def test_a_check_of_the_users_own_ends_the_search_without_a_judge() -> None:
    llm = Counting(Game24LLM(1, skill=4, spread=0.5, last=9))
    how = RadAgent(calls=100, check=lambda answer: makes_24(answer, "4 5 6 10"))
    made, run, decision = await search(how, "4 5 6 10", llm)
    assert makes_24(decision.answer, "4 5 6 10")
    assert not llm.judged and run.budget.spent.calls < 100 and made.tree.sequences[-1].answer == decision.answer


async def test_several_explorers_share_one_budget() -> None:
    llm = Counting(Game24LLM(1))
    made, run, _ = await search(RadAgent(at_once=8), "4 5 6 10", llm, Limits(calls=41))
    assert llm.made == run.budget.spent.calls <= 41
    assert made.played > 3


async def test_the_tree_in_the_trace_is_the_whole_tree() -> None:
    made, run, _ = await search(RadAgent(calls=60), "4 5 6 10")
    (tree,) = run.trace.of(SearchTree)
    assert [(n.node, n.elo, n.matches) for n in tree.nodes] == [
        (node.id, round(node.elo, 3), node.matches) for node in made.tree.nodes
    ]
    chosen = made.highest()
    assert chosen and tree.chosen == chosen.id
    assert [one.node for one in run.trace.of(SearchNode)] == [node.id for node in made.tree.nodes[1:]]


def test_presets_are_settings_and_each_can_be_changed() -> None:
    assert RadAgent(preset="paper").rules_of_search() == PRESETS["paper"]
    made = build_technique("radagent", preset="tuned", K="150", explore="-50", opponent="random")
    assert isinstance(made, RadAgent)
    assert made.rules_of_search() == replace(PRESETS["tuned"], K=150.0, explore=-50.0, opponent="random")
    for wrong in ({"preset": "mine"}, {"judge": "gpt"}, {"check": "x"}, {"tau": "-1"}, {"opponent": "worst"}):
        with pytest.raises(SetupError):
            build_technique("radagent", **wrong)
    with pytest.raises(SetupError, match="above 0"):
        RadAgent(tau=0).rules_of_search()


def test_random_is_ours_alone() -> None:
    """A search does not touch the global generator."""
    random.seed(5)
    before = random.getstate()
    import asyncio

    asyncio.run(search(RadAgent(calls=20), "4 5 6 10"))
    assert random.getstate() == before
