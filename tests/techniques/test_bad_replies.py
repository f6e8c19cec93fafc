"""What a bad reply becomes: a call that was paid for, and the run goes on until budget or steps end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from decisor.lab.game24 import Puzzle, make_puzzle_question
from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.prompting import HEADING
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import UnreadableReply, events_of
from decisor.types import Completion, Decision, Message, Question, Sampling
from techniques.shelf import shelf
from techniques.table import TableTool

LONGEST = Question("Which river is the longest?")
LOOK = "Thought: look\nAction: sql\nAction input: select name, km from river order by km"
PLAN = "Plan: [Step 1: read the lengths, Step 2: compare]\nCurrent step: Step 1\n" + LOOK
ANSWER = "Final answer: bel\nBecause: it is 340.25 km long [o1.r2]."
PROSE = "I would look at the lengths of the rivers first, and then compare them with one another. " * 8
WITH_PLAN = {"plan_rag": PLAN, "iter_rag": LOOK}


@pytest.fixture
async def box() -> AsyncIterator[Toolbox]:
    toolbox = Toolbox([TableTool()])
    yield toolbox
    await toolbox.close()


async def ask(name: str, replies: Sequence[str], box: Toolbox) -> tuple[Decision, list[str], Run]:
    llm = ScriptedLLM([*replies])
    run = Run(llm, box)
    return await build_technique(name)(LONGEST, run), llm.seen, run


@pytest.mark.parametrize("name", WITH_PLAN)
async def test_ten_bad_replies_in_a_row_end_no_run_in_which_one_could_be_read(name: str, box: Toolbox) -> None:
    bad = [PROSE, "", "null", "Action: python", "Thought: I look."] * 2
    decision, _, run = await ask(name, [PROSE, "", WITH_PLAN[name], *bad, ANSWER], box)
    assert (decision.answer, decision.stopped) == ("bel", "answered")
    assert run.budget.spent.calls == 14
    assert decision.reasons[-1] == "12 of 14 replies could not be read; try a larger model or calling=json."


@pytest.mark.parametrize("name", WITH_PLAN)
async def test_what_can_never_be_read_ends_after_three_replies_and_says_what_to_do(name: str, box: Toolbox) -> None:
    decision, seen, _ = await ask(name, [PROSE] * 40, box)
    assert (decision.answer, decision.stopped) == ("", "failed") and len(seen) == 3
    told = "Three replies of the LLM in a row could not be used: try a larger model."
    assert decision.reasons[0] == f"No last answer was given. {told}"
    assert not any("Write an Action" in reason for reason in decision.reasons), "that is for the model"


async def test_what_can_never_be_read_may_still_answer_where_evidence_is_free(box: Toolbox) -> None:
    llm = ScriptedLLM([PROSE, PROSE, PROSE, "Final answer: bel"])
    decision = await build_technique("plan_rag", evidence="free")(LONGEST, Run(llm, box))
    assert decision.answer == "bel" and len(llm.seen) == 4


async def test_a_complaint_shows_the_form_filled_in_and_the_bad_reply_cut_short(box: Toolbox) -> None:
    _, seen, _ = await ask("plan_rag", [PROSE, PLAN, ANSWER], box)
    again = seen[1].partition(HEADING)[2]
    assert "Plan: [Step 1: " in again and "\nAction: sql\nAction input: SELECT " in again
    assert "[...]" in again and PROSE not in seen[1] and len(again) < 1_200
    assert seen[1].startswith(seen[0]), "the prompt is the same at its beginning"
    assert HEADING not in seen[2], "what was amended is not told again"


async def test_a_copy_of_the_example_is_no_reply(box: Toolbox) -> None:
    _, seen, _ = await ask("plan_rag", [PROSE, PLAN, ANSWER], box)
    example = seen[1].partition("values of your own:\n")[2]
    _, _, run = await ask("plan_rag", [example, PLAN, ANSWER.replace("o1", "o2")], box)
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == ["copied"]


async def test_an_answer_that_stands_in_a_record_that_is_not_cited_goes_back(box: Toolbox) -> None:
    decision, seen, _ = await ask("iter_rag", [LOOK, ANSWER.replace("r2", "r1"), ANSWER], box)
    assert "bel stands in o1.r2, which you do not cite" in seen[2]
    assert decision.evidence.ids == ("o1.r2",)


async def test_a_second_try_at_the_same_place_is_drawn_otherwise(box: Toolbox) -> None:
    class Noting(ScriptedLLM):
        async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
            samplings.append((sampling.temperature, sampling.seed))
            return await super().complete(messages, sampling)

    samplings: list[tuple[float, int | None]] = []
    await build_technique("iter_rag")(LONGEST, Run(Noting([PROSE, PROSE, LOOK, ANSWER]), box))
    assert samplings == [(0.0, None), (0.4, 1), (0.8, 2), (0.0, None)]


async def test_a_query_made_again_is_answered_with_where_it_stands_and_a_third_ends_the_run(box: Toolbox) -> None:
    decision, seen, run = await ask("iter_rag", [LOOK, LOOK + ";", LOOK, ANSWER], box)
    assert "Observation:\nYou ran this as o1, and the same came back." in seen[2]
    assert "No more actions can be made" in seen[3] and (decision.answer, decision.stopped) == ("bel", "failed")
    assert "The LLM made the same query three times." in decision.reasons
    assert run.budget.spent.actions == 2


@pytest.mark.parametrize("name", WITH_PLAN)
async def test_the_last_prompt_asks_for_the_answer_alone(name: str, box: Toolbox) -> None:
    llm = ScriptedLLM([WITH_PLAN[name], "Action: sql\nAction input: select 2", ANSWER])
    decision = await build_technique(name, max_steps="2")(LONGEST, Run(llm, box))
    assert decision.answer == "bel"
    assert "No more actions can be made" in llm.seen[-1]
    assert "actions left" not in llm.seen[-1] and "next step" not in llm.seen[-1]


@pytest.mark.parametrize("name", ["single_rag", "iter_rag", "plan_rag", "vanilla", "rag", "react", "self_ask", "ircot"])
async def test_a_form_that_comes_back_as_it_was_shown_is_no_reply(name: str, box: Toolbox) -> None:
    env = box if name.endswith("_rag") else shelf()
    llm = ScriptedLLM(lambda messages: "\n".join(one.content.rpartition("Form of your repl")[2] for one in messages))
    decision = await build_technique(name)(LONGEST, Run(llm, env))
    assert decision.answer == "" and decision.stopped in ("failed", "no_answer")


@pytest.mark.parametrize("name", ["tot", "cot", "dfs", "lats", "radagent", "best_of_n"])
async def test_a_bad_reply_at_the_root_ends_no_search(name: str) -> None:
    good = iter(["Action: combine\nAction input: 4 * 6", "Action: combine\nAction input: 24 * 1"])
    count = 0

    def reply(messages: Sequence[Message]) -> str:
        nonlocal count
        count += 1
        if count <= 4:
            return PROSE
        if "list up to" in messages[-1].content:
            return "combine: 4 * 6\ncombine: 10 - 4"
        return next(good, "Better: A. Rating: 5. sure")

    llm = ScriptedLLM(reply)
    run = Run(llm, Puzzle.of("1 4 6"))
    await build_technique(name, calls="12")(make_puzzle_question("1 4 6"), run)
    assert count >= 6, "it went on"
    assert not any("(unreadable)" in prompt for prompt in llm.seen), "a model could write it as an action"


async def test_after_a_search_cannot_be_read_the_form_is_shown_filled_in() -> None:
    llm = ScriptedLLM([PROSE, "Action: give up\nAction input: no"])
    await build_technique("cot", calls="2")(make_puzzle_question("1 4 6 10"), Run(llm, Puzzle.of("1 4 6 10")))
    assert "Action: combine\nAction input: 10 - 4" in llm.seen[1]


async def test_after_an_answer_without_a_citation_the_form_of_an_answer_is_shown(box: Toolbox) -> None:
    _, seen, _ = await ask("plan_rag", [PLAN, "Final answer: bel", ANSWER], box)
    example = seen[2].partition("values of your own:\n")[2]
    assert "Final answer: Harbour Mill\nBecause: " in example and "Action" not in example


async def test_a_form_filled_in_does_not_replan_by_the_way(box: Toolbox) -> None:
    _, seen, _ = await ask("plan_rag", [PLAN, PROSE, ANSWER], box)
    example = seen[2].partition("values of your own:\n")[2]
    assert example.startswith("Re-plan: N\nCurrent step: ") and "Plan: [" not in example


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Final answer: [o1.r4]", "missing_field"),
        ("Final answer: **", "missing_field"),
        ("I'm sorry, but I can't help with that request.", "model_refusal"),
        ("{}", "missing_field"),
    ],
)
async def test_an_empty_answer_is_none_on_documents_either(reply: str, reason: str) -> None:
    run = Run(ScriptedLLM([reply, "Final answer: Bath"]), shelf())
    decision = await build_technique("rag")(LONGEST, run)
    assert decision.answer == "Bath"
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == [reason]
