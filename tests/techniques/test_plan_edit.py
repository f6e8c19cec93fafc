"""Going on from a run with its plan changed by a person, in every form of reply."""

import json
from collections.abc import Callable

import pytest

from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run, Technique
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.plan_rag import PlanRAG
from decisor.techniques.replay.rerun import Edit, Rerun, rerun_with_edit
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import ActionResult, LLMCall, Plan, PlanChange, RunStart, TraceEntry
from decisor.types import Question
from techniques.table import TableTool

QUESTION = Question("Which river is the longest?")
SHORT, LONG = "select name, km from river where km < 200", "select name, km from river where km > 200"
Write = Callable[[list[str], str], str]
FIRST, SECOND = ["the short one", "the long one"], ("all of them at once", "compare them")


def in_text(plan: list[str], query: str) -> str:
    steps = ", ".join(f"Step {number}: {step}" for number, step in enumerate(plan, 1))
    return f"Plan: [{steps}]\nThought: look\nAction: sql\nAction input: {query}"


def in_json(plan: list[str], query: str) -> str:
    return json.dumps({"reply": {"plan": plan, "thought": "look", "action": "sql", "action_input": query}})


def in_call(plan: list[str], query: str) -> str:
    return json.dumps({"name": "sql", "arguments": {"plan": plan, "thought": "look", "input": query}})


def more(query: str) -> str:
    return f"Re-plan: N\nThought: on\nAction: sql\nAction input: {query}"


def final(id: str) -> str:
    return f"Final answer: bel\nBecause: it is the longest [{id}]"


async def recorded(*replies: str, how: Technique = PlanRAG(), name: str = "plan_rag") -> list[TraceEntry]:
    run = Run(ScriptedLLM(replies), Toolbox([TableTool()]))
    run.trace.add(RunStart(QUESTION, name, "m"))
    await how(QUESTION, run)
    return run.trace.entries


async def again(past: list[TraceEntry], edit: Edit, *replies: str, how: Technique | None = None) -> tuple[Rerun, Run]:
    run = Run(ScriptedLLM(replies), Toolbox([TableTool()]))
    return await rerun_with_edit(past, edit, run, how), run


@pytest.mark.parametrize("write", [in_text, in_json, in_call])
async def test_the_first_plan_is_the_persons_whatever_the_model_writes(write: Write) -> None:
    past = await recorded(in_text(FIRST, SHORT), more(LONG), final("o2.r1"))
    found, run = await again(past, Edit("0", plan=SECOND), write(FIRST, LONG), final("o1.r1"))
    assert isinstance(run.llm, ScriptedLLM)
    assert "Step 2: compare them\nWrite this plan word for word" in run.llm.seen[0]
    assert [plan.steps for plan in run.trace.of(Plan)] == [SECOND]
    assert found.after.plan == SECOND
    assert "The plan is set" not in run.llm.seen[1]
    assert [(one.at, one.how) for one in found.changes] == [("plan", "edited"), ("1", "again"), ("2", "again")]
    assert (found.changes[0].before, found.changes[0].after) == ("\n".join(FIRST), "\n".join(SECOND))


async def test_a_plan_is_changed_after_a_step_and_what_came_before_is_not_done_again() -> None:
    past = await recorded(in_text(FIRST, SHORT), more(LONG), final("o2.r1"))
    found, run = await again(past, Edit("1", plan=SECOND), more(LONG), final("o2.r1"))
    assert [(one.after_step, one.why, one.steps) for one in run.trace.of(PlanChange)] == [(1, "set by hand", SECOND)]
    assert [call.replayed for call in run.trace.of(LLMCall)] == [True, False, False]
    assert found.replayed == 1
    assert found.changes[0].before == "\n".join(FIRST)
    past = [*past[:1], *run.trace.entries]
    again_from_it, third = await again(past, Edit("1", plan=("no more",)), more(SHORT), final("o1.r1"))
    assert again_from_it.changes[0].before == "\n".join(SECOND)
    assert [one.steps for one in third.trace.of(PlanChange)] == [("no more",)]


async def test_a_reply_that_cannot_be_read_is_asked_for_again_with_the_plan() -> None:
    past = await recorded(in_text(FIRST, SHORT), final("o1.r1"))
    found, run = await again(past, Edit("0", plan=SECOND), "Hm.", in_text(FIRST, LONG), final("o1.r1"))
    assert isinstance(run.llm, ScriptedLLM)
    assert found.after.plan == SECOND


async def test_only_a_plan_that_is_there_is_changed() -> None:
    past = await recorded(in_text(FIRST, SHORT), final("o1.r1"))
    for edit, words in (
        (Edit("2", plan=SECOND), "0 for the first plan, at most 1"),
        (Edit("x", plan=SECOND), "0 for the first plan"),
        (Edit("0", plan=SECOND, action="select 1"), "changed alone"),
        (Edit("0", plan=("one", " ")), "none of its steps is empty"),
    ):
        with pytest.raises(SetupError, match=words):
            await again(past, edit)
    with pytest.raises(SetupError, match="does not replan"):
        await again(past, Edit("1", plan=SECOND), how=PlanRAG(replan=False))
    plain = await recorded(more(SHORT), final("o1.r1"), how=IterRAG(), name="iter_rag")
    with pytest.raises(SetupError, match="no plan of steps"):
        await again(plain, Edit("0", plan=SECOND))


@pytest.mark.parametrize("write", [in_json, in_call])
async def test_a_query_is_changed_in_a_reply_that_is_an_object(write: Write) -> None:
    past = await recorded(write(FIRST, SHORT), final("o1.r1"))
    found, run = await again(past, Edit("1", action=LONG), final("o1.r1"))
    rows = [result.observation.records[0].fields["name"] for result in run.trace.of(ActionResult)]
    assert rows == ["bel"]
    assert found.after.plan == tuple(FIRST)
