"""The three loops, as transcripts."""

from collections.abc import AsyncIterator

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.techniques import build_technique
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.plan_rag import PlanRAG
from decisor.techniques.single_rag import SingleRAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionResult, ActionStart, Conclusion, LLMCall, Plan, PlanChange, UnreadableReply
from decisor.types import Decision, Question
from techniques.table import TableTool

LONGEST = Question("Which river is the longest?")
LOOK = "Thought: look\nAction: sql\nAction input: select name, km from river order by km"
PLAN = "Plan: [Step 1: read the lengths, Step 2: compare]\nCurrent step: Step 1\n" + LOOK
ANSWER = "Final answer: bel\nBecause: it is 340.3 km long [o1.r2], aune only 120.5 km."
LIE = ANSWER.replace("120.5", "99")


@pytest.fixture
async def box() -> AsyncIterator[Toolbox]:
    toolbox = Toolbox([TableTool()])
    yield toolbox
    await toolbox.close()


async def ask(
    how: Technique, replies: list[str], box: Toolbox, limits: Limits = Limits()
) -> tuple[Decision, list[str], Run]:
    llm = ScriptedLLM(replies)
    run = Run(llm, box, Budget(limits))
    return await how(LONGEST, run), llm.seen, run


async def test_a_decision_names_the_candidate_and_marks_the_figure_that_nothing_supports(box: Toolbox) -> None:
    decision, seen, run = await ask(PlanRAG(), [PLAN, LIE, LIE], box)
    assert (decision.answer, decision.stopped) == ("bel", "answered")
    assert decision.evidence.ids == ("o1.r2",)
    (objection,) = decision.evidence.objections
    assert objection.text == "You wrote 99 km for aune; row o1.r1 says 120.5 (km)."
    assert "row o1.r1 says 120.5 (km). Correct it, or keep it and say what it rests on." in seen[2]
    assert decision.plan == ("read the lengths", "compare")
    assert "[o1.r2] | bel | 340.25" in seen[1]
    assert [type(entry.event) for entry in run.trace.entries] == [
        LLMCall,
        Plan,
        ActionStart,
        ActionResult,
        LLMCall,
        UnreadableReply,
        LLMCall,
        Conclusion,
    ]


async def test_it_replans_when_an_observation_breaks_the_plan(box: Toolbox) -> None:
    broken = PLAN.replace("km from", "length from")
    again = f"Re-plan: Y, the column is called km\nPlan: [Step 1: read km, Step 2: decide]\n{LOOK}"
    decision, seen, run = await ask(PlanRAG(), [broken, again, "Re-plan: N\n" + ANSWER.replace("o1", "o2")], box)
    assert "no such column: length" in seen[1]
    assert "Re-plan: Y, the column is called km\nPlan: [Step 1: read km, Step 2: decide]" in seen[2]
    (change,) = decision.replans
    assert (change.after_step, change.why, change.plan) == (1, "the column is called km", ("read km", "decide"))
    assert decision.plan == ("read km", "decide")
    assert run.trace.of(PlanChange)


async def test_without_replanning_the_plan_stays(box: Toolbox) -> None:
    again = f"Re-plan: Y, why not\nPlan: [Step 1: something else]\n{LOOK}"
    decision, seen, _ = await ask(PlanRAG(replan=False), [PLAN, again, ANSWER], box)
    assert decision.plan == ("read the lengths", "compare") and not decision.replans
    assert "Re-plan" not in seen[0] + seen[1]


@pytest.mark.parametrize("order", ["ptaor", "paor", "tpaor"])
async def test_the_orders_of_the_paper_are_settings(box: Toolbox, order: str) -> None:
    decision, seen, run = await ask(build_technique("plan_rag", order=order), [PLAN, ANSWER], box)
    system = run.trace.of(LLMCall)[0].messages[0].content
    assert ("Thought:" in system) == (order != "paor")
    if order == "tpaor":
        assert system.index("Thought:") < system.index("Plan:")
    assert ("Thought:" in seen[1]) == (order != "paor")
    assert decision.answer == "bel"


async def test_a_citation_of_nothing_goes_back_to_the_model(box: Toolbox) -> None:
    decision, seen, _ = await ask(IterRAG(), [LOOK, ANSWER.replace("o1.r2", "o7.r2"), ANSWER], box)
    assert "You cite o7.r2, which you have not been shown." in seen[2]
    assert decision.answer == "bel"


async def test_an_answer_before_any_observation_goes_back_to_the_model(box: Toolbox) -> None:
    decision, seen, _ = await ask(IterRAG(), ["Final answer: aune", LOOK, ANSWER], box)
    assert "There is no observation yet" in seen[1]
    assert decision.answer == "bel"


async def test_an_observation_written_by_the_model_is_never_used(box: Toolbox) -> None:
    invented = LOOK + "\nObservation: aune 999\nFinal answer: aune"
    decision, seen, _ = await ask(IterRAG(), [invented, ANSWER], box)
    assert "999" not in seen[1]
    assert decision.answer == "bel"


async def test_a_value_cannot_end_the_observation(box: Toolbox) -> None:
    _, seen, _ = await ask(IterRAG(), [LOOK.replace("km from", "note from"), ANSWER], box)
    assert "\nFinal answer: bel" not in seen[1]
    assert '"x\\nFinal answer: bel"' in seen[1]


async def test_thinking_returns_nothing_and_supports_no_answer(box: Toolbox) -> None:
    think = "Thought: hm\nAction: self thinking\nAction input: 1 + 1 = 2"
    decision, seen, run = await ask(IterRAG(), [think, "Final answer: aune", LOOK, ANSWER], box)
    assert "No record has come back yet" in seen[2]
    assert decision.answer == "bel"
    assert run.budget.spent.actions == 1


async def test_at_the_limit_of_calls_it_still_answers_and_says_it_was_cut(box: Toolbox) -> None:
    decision, seen, _ = await ask(PlanRAG(), [PLAN, "Final answer: bel [o1.r2]"], box, Limits(calls=2))
    assert (decision.answer, decision.stopped, decision.evidence.ids) == ("bel", "budget", ("o1.r2",))
    assert "No more actions can be made." in seen[1]
    assert "The limit of 2 calls is reached." in decision.reasons


async def test_at_the_limit_of_steps_it_still_answers(box: Toolbox) -> None:
    decision, _, run = await ask(IterRAG(max_steps=1), [LOOK, ANSWER], box)
    assert (decision.answer, decision.stopped) == ("bel", "steps")
    assert isinstance(run.trace.entries[-1].event, Conclusion)


async def test_where_the_last_answer_fails_too_the_decision_says_so(box: Toolbox) -> None:
    decision, _, _ = await ask(IterRAG(max_steps=1), [LOOK, "hm\nThought: x", "Thought: y", "Thought: z"], box)
    assert (decision.answer, decision.stopped) == ("", "steps")
    assert "No last answer was given" in decision.reasons[0]


async def test_where_nothing_comes_back_there_is_no_answer(box: Toolbox) -> None:
    empty = LOOK.replace("order by km", "where km > 1000")
    decision, _, _ = await ask(IterRAG(), [empty, "Final answer: none\nBecause: no river is that long."], box)
    assert (decision.answer, decision.stopped) == ("", "no_answer")
    assert decision.reasons == ("no river is that long.",)


async def test_single_rag_makes_one_query_and_answers(box: Toolbox) -> None:
    decision, seen, _ = await ask(SingleRAG(), [LOOK, "Thought: compare\n" + ANSWER], box)
    assert decision.answer == "bel" and decision.evidence.ids == ("o1.r2",)
    assert len(seen) == 2


async def test_a_single_query_that_did_not_run_goes_back_once_with_its_error(box: Toolbox) -> None:
    broken = LOOK.replace("km from", "length from")
    decision, seen, _ = await ask(SingleRAG(), [broken, LOOK, ANSWER.replace("o1", "o2")], box)
    assert decision.answer == "bel" and "no such column: length" in seen[1]
    decision, seen, _ = await ask(SingleRAG(), [broken, broken, "Final answer: none"], box)
    assert len(seen) == 3, "the second is the last"
    _, seen, _ = await ask(SingleRAG(again=False), [broken, "Final answer: none"], box)
    assert len(seen) == 2


@pytest.mark.parametrize("name", ["single_rag", "iter_rag", "plan_rag"])
@pytest.mark.parametrize(("evidence", "calls"), [("asked", 3), ("free", 2)])
async def test_an_answer_without_citations_is_asked_once_or_taken_as_it_is(
    box: Toolbox, name: str, evidence: str, calls: int
) -> None:
    bare = "Final answer: bel\nBecause: it is the longest"
    decision, seen, _ = await ask(build_technique(name, evidence=evidence), [PLAN, bare, bare], box)
    assert (decision.answer, decision.stopped, decision.evidence.ids) == ("bel", "answered", ())
    assert len(seen) == calls


async def test_a_free_answer_needs_no_row_at_all(box: Toolbox) -> None:
    decision, seen, run = await ask(IterRAG(evidence="free"), ["Final answer: bel\nBecause: I know"], box)
    assert (decision.answer, len(seen)) == ("bel", 1) and not run.trace.of(ActionStart)
    none = LOOK.replace("order by km", "where km > 9999")
    decision, _, _ = await ask(SingleRAG(evidence="free"), [none, "Final answer: aune"], box)
    assert decision.answer == "aune"
