"""Game of 24: the states are exact, refusals change nothing, and only the scorer knows what is right."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import DATA
from decisor.errors import SetupError, ToolError
from decisor.lab.game24 import (
    Game24Bench,
    Puzzle,
    list_finished_answers,
    make_puzzle_question,
    makes_24,
    read_puzzle_cases,
)
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.types import Action, Decision, Message, Observation
from policies.game24 import Game24LLM

CSV = DATA / "game24" / "24.csv"
RELEASED = pytest.mark.skipif(not CSV.exists(), reason=f"no test data in {CSV}")


async def play(numbers: str, *steps: str) -> list[Observation]:
    puzzle = Puzzle.of(numbers)
    return [await puzzle.step(Action("combine", step)) for step in steps]


async def test_the_last_step_hands_in_the_expression() -> None:
    first, second, third = await play("4 5 6 10", "10 - 4", "6 - 5 = 1", "6 / 1")
    assert (first.note, first.answer) == ("10 - 4 = 6. Left: 5 6 6", None)
    assert second.note == "6 - 5 = 1. Left: 6 1"
    assert third.answer == "(10 - 4) / (6 - 5)"
    assert not makes_24(third.answer, "4 5 6 10")


async def test_fractions_are_exact() -> None:
    last = (await play("3 3 8 8", "8 / 3", "3 - 8/3", "8 / (1/3)"))[-1]
    assert last.note == "8 / 1/3 = 24. Left: 24"
    assert last.answer is not None and makes_24(last.answer, "3 3 8 8")


async def test_negative_numbers_can_be_used() -> None:
    last = (await play("1 5 5 6", "1 - 5", "6 * -4", "5 - (-24)"))[-1]
    assert last.note.endswith("Left: 29")


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ("7 + 4", "There is no 7: left are 4 5 5 10"),
        ("4 + 4", "There is only one 4"),
        ("add 4 and 5", "That is no step"),
        ("4 ^ 5", "That is no step"),
        ("", "That is no step"),
        ("4/0 + 5", "That is no step"),
    ],
)
async def test_a_refusal_says_why_and_changes_nothing(step: str, complaint: str) -> None:
    puzzle = Puzzle.of("4 5 5 10")
    with pytest.raises(ToolError, match=complaint):
        await puzzle.step(Action("combine", step))
    assert puzzle.left_text() == "4 5 5 10"


async def test_division_by_zero_and_steps_after_the_end_are_refused() -> None:
    puzzle = Puzzle.of("4 5 5")
    await puzzle.step(Action("combine", "5 - 5"))
    with pytest.raises(ToolError, match="zero"):
        await puzzle.step(Action("combine", "4 / 0"))
    await puzzle.step(Action("combine", "0 * 4"))
    with pytest.raises(ToolError, match="One number is left"):
        await puzzle.step(Action("combine", "0 + 0"))


async def test_a_fork_goes_its_own_way() -> None:
    puzzle = Puzzle.of("4 5 6 10")
    fork = puzzle.fork()
    await fork.step(Action("combine", "4 + 5"))
    assert (puzzle.left_text(), fork.left_text()) == ("4 5 6 10", "6 10 9")


async def test_nothing_but_the_numbers_tells_whether_it_is_right() -> None:
    right = (await play("4 6", "4 * 6"))[0]
    wrong = (await play("4 6", "4 + 6"))[0]
    assert right.note.replace("*", "+").replace("24", "10") == wrong.note
    assert (right.error, right.records, right.ranking) == (wrong.error, wrong.records, wrong.ranking)


@given(
    st.lists(st.integers(1, 13), min_size=4, max_size=4),
    st.lists(st.sampled_from("+-*/"), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
async def test_what_is_handed_in_has_the_value_that_is_left(numbers: list[int], ops: list[str], random: object) -> None:
    import random as r

    assert isinstance(random, r.Random)
    puzzle = Puzzle.of(" ".join(map(str, numbers)))
    answer = None
    for op in ops:
        x, y = random.sample([held.value for held in puzzle.left], 2)
        if op == "/" and y == 0:
            op = "+"
        answer = (await puzzle.step(Action("combine", f"{x} {op} ({y})"))).answer
    assert answer is not None
    assert makes_24(answer, " ".join(map(str, numbers))) == (puzzle.left[0].value == Fraction(24))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("(10 - 4) * (5 - 1)", True),
        ("(10-4)×(5-1) = 24", True),
        ("10 + 5 + 4 + 5", False),
        ("24", False),
        ("(10 - 4) * (5 - 1", False),
        ("10 * 4 - (5 + 1) * 1", False),
        ("(10 - 4) ** (5 - 1)", False),
        ("__import__('os')", False),
        ("(" * 99 + "1", False),
        ("", False),
        ("10 - 4 // 5 - 1", False),
        ("1.0 + 4", False),
    ],
)
def test_an_answer_is_right_where_it_uses_each_number_once_and_is_24(answer: str, right: bool) -> None:
    assert makes_24(answer, "1 4 5 10") is right


@RELEASED
def test_the_test_puzzles_are_rows_900_to_999() -> None:
    loaded = read_puzzle_cases(CSV.parent)
    assert (len(loaded), loaded[0].facts["numbers"], loaded[-1].facts["numbers"]) == (100, "4 5 6 10", "4 9 10 13")
    assert (loaded[0].id, loaded[0].facts["rank"]) == ("900", 901)
    assert "4 5 6 10" in str(loaded[0].question)


@RELEASED
async def test_found_and_selected_are_told_apart() -> None:
    bench = Game24Bench(CSV, 900, 900)
    (case,) = bench.cases()
    async with bench.environment(case) as env:
        run = Run(ScriptedLLM([]), env.fork())
        for step in ("10 - 4", "5 * 6", "30 - 6"):
            await run.act(Action("combine", step))
    events = run.trace.entries
    right, wrong = Decision("5 * 6 - (10 - 4)"), Decision("4 + 5 + 6 + 10")
    assert list_finished_answers(events) == ["(5 * 6) - (10 - 4)"]
    assert (await bench.score(case, right, events)).metrics == {"selected": 1.0, "found": 1.0}
    lost = await bench.score(case, wrong, events)
    assert (lost.right, lost.metrics, lost.failure) == (False, {"selected": 0.0, "found": 1.0}, "not_selected")
    assert (await bench.score(case, wrong, [])).failure == "not_found"


def test_a_missing_or_foreign_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Tree of Thoughts"):
        read_puzzle_cases(tmp_path)
    (tmp_path / "24.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SetupError, match="needs the columns"):
        read_puzzle_cases(tmp_path, 0, 0)
    with pytest.raises(SetupError, match="has rows 0 to 0"):
        read_puzzle_cases(tmp_path)


@RELEASED
async def test_the_elo_of_the_answer_is_a_metric_where_it_was_compared() -> None:
    bench = Game24Bench(CSV, 900, 900)
    (case,) = bench.cases()
    for name, rated in (("radagent", True), ("dfsdt", False)):
        run = Run(Game24LLM(1), Puzzle.of("4 5 6 10"))
        decision = await build_technique(name, calls="40")(case.question, run)
        score = await bench.score(case, decision, run.trace.entries)
        assert ("elo" in score.metrics) is rated
        assert score.counts["sequences"] > 0


@pytest.mark.parametrize("name", ["cot", "dfs", "dfsdt", "bfs", "lats", "radagent", "best_of_n"])
async def test_a_bare_24_is_no_answer_and_an_expression_is_one_whatever_it_comes_to(name: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        prompt = messages[-1].content
        if "# Attempt A" in prompt or "# The attempt" in prompt:
            return "Better: A\nRating: 5"
        return "Final answer: 4 + 5 + 6 + 10" if "could not be used" in prompt else "Final answer: 24"

    llm = ScriptedLLM(reply)
    run = Run(llm, Puzzle.of("4 5 6 10"))
    decision = await build_technique(name, calls="8")(make_puzzle_question("4 5 6 10"), run)
    assert "The answer is an expression that uses each of 4 5 6 10 once" in llm.seen[1]
    assert "Action: combine\nAction input: 10 - 4" in llm.seen[1].partition("could not be used")[2]
    assert decision.answer == "4 + 5 + 6 + 10"


async def test_the_form_of_an_answer_is_that_of_the_first_numbers_however_many_are_left() -> None:
    puzzle = Puzzle.of("4 5 6 10")
    await puzzle.step(Action("combine", "10 - 4"))
    assert (
        puzzle.left_text() == "5 6 6" and puzzle.wrong_form("5 + 6 + 6") and not puzzle.wrong_form("5 * (10 - 4) - 6")
    )
