"""What the records say against an answer comes back at once, and once, in every way of asking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.prompting import Calling
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import UnreadableReply, events_of
from decisor.types import Decision, Observation, Pitfall, Question
from techniques.table import TableTool

SHORTEST = Question("Which river is the shortest?")
QUERY = "select name, km from river order by km"
ROWS = "insert into river values ('cald', 410.5, ''), ('dove', 77.25, '')"
DOUBT = "A join repeats rows, so the sums count them twice."


class DoubtfulTable(TableTool):
    """A table whose queries are doubtful."""

    async def call(self, text: str) -> Observation:
        found = await super().call(text)
        return replace(found, pitfalls=(Pitfall("fan_out", DOUBT), Pitfall("idle_table", "NULL?", strength="ask")))


def say(way: Calling, name: str, value: Mapping[str, object]) -> str:
    """Write a reply as this way of asking has it."""
    if way == "json":
        return json.dumps({"reply": value})
    if way == "tools":
        rest = {key: one for key, one in value.items() if key not in ("action", "action_input")}
        more = {"input": value["action_input"]} if "action" in value else {}
        return json.dumps({"name": value.get("action", "final_answer"), "arguments": rest | more})
    labels = {"plan": "Plan", "thought": "Thought", "action": "Action", "action_input": "Action input"}
    labels |= {"final_answer": "Final answer", "because": "Because"}
    return "\n".join(f"{labels[key]}: {one}" for key, one in value.items())


async def ask(name: str, way: Calling, because: str, *answers: str) -> tuple[Decision, list[str], Run]:
    tool = DoubtfulTable()
    tool.db.execute(ROWS)
    plan = {"plan": "[Step 1: look]" if way == "text" else ["look"]} if name == "plan_rag" else {}
    act = plan | {"thought": "look", "action": "sql", "action_input": QUERY}
    ends: list[Mapping[str, object]] = [{"thought": "t", "final_answer": one, "because": because} for one in answers]
    llm = ScriptedLLM([say(way, name, act), *(say(way, name, end) for end in ends)])
    run = Run(llm, Toolbox([tool]), calling=way)
    return await build_technique(name)(SHORTEST, run), llm.seen, run


@pytest.mark.parametrize("way", ["text", "json", "tools"])
@pytest.mark.parametrize("name", ["plan_rag", "iter_rag"])
async def test_all_objections_come_back_at_once_and_once(name: str, way: Calling) -> None:
    decision, seen, run = await ask(name, way, "It has 120.5 km [o1.r3].", "bel", "bel")
    complaint = seen[2].partition("could not be used\n")[2]
    assert "120.5" in complaint and "340.25" in complaint, "the figure of another row"
    assert "dove (77.25)" in complaint and DOUBT in complaint and "NULL" not in complaint
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == ["objection"]
    assert decision.answer == "bel" and len(seen) == 3, "kept, it stands"
    assert decision.evidence.objections


@pytest.mark.parametrize("way", ["text", "json", "tools"])
async def test_an_answer_without_a_citation_is_told_the_rest_as_well(way: Calling) -> None:
    _, seen, run = await ask("plan_rag", way, "It is short.", "bel", "bel [o1.r3]")
    complaint = seen[2].partition("could not be used\n")[2]
    assert "Cite the records" in complaint and "dove (77.25)" in complaint
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == ["no_citation"]
    assert len(seen) == 3


@pytest.mark.parametrize("because", ["It is short (o1.r3).", "It is short, see row o1.r3.", "row=o1.r3; it is short"])
async def test_an_id_without_brackets_is_a_citation_where_there_is_no_other(because: str) -> None:
    decision, _, run = await ask("iter_rag", "text", because, "bel", "bel")
    assert decision.evidence.ids == ("o1.r3",)
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == ["objection"]
    told, _, _ = await ask("iter_rag", "text", f"{because} Not dove [o1.r1].", "bel", "bel")
    assert told.evidence.ids == ("o1.r1",)


async def test_the_paper_s_rule_is_told_of_contradicted_citations_alone() -> None:
    tool = DoubtfulTable()
    llm = ScriptedLLM([f"Plan: [Step 1: a]\nAction: sql\nAction input: {QUERY}", "Final answer: aune"])
    decision = await build_technique("plan_rag", evidence="free")(SHORTEST, Run(llm, Toolbox([tool])))
    assert decision.answer == "aune" and len(llm.seen) == 2


async def test_the_last_row_of_all_is_the_best_of_a_query_that_orders_the_other_way() -> None:
    tool = TableTool()
    tool.db.execute(ROWS)
    plan = f"Plan: [Step 1: a]\nAction: sql\nAction input: {QUERY} desc"
    llm = ScriptedLLM([plan, "Final answer: dove\nBecause: it has 77.25 km [o1.r4]"])
    decision = await build_technique("plan_rag")(SHORTEST, Run(llm, Toolbox([tool])))
    assert decision.answer == "dove" and len(llm.seen) == 2
