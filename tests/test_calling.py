"""Replies as objects and calls, from a technique to the wire and back: what is asked, what is learned, what is told."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import BudgetExceeded, SetupError
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.prompting import Calling, split_calling
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run, Technique
from decisor.techniques import TECHNIQUES, build_technique
from decisor.techniques.bfs import BFS
from decisor.techniques.plan_rag import PlanRAG
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Conclusion, LLMCall, Note, PlanChange
from decisor.types import Decision, Question
from servers.openai_server import completion, serve_app
from techniques.shelf import shelf
from techniques.table import TableTool

NO_FORM = ("exact", "heuristic", "self_rag", "rq_rag")
"""Techniques that ask no LLM, or one whose control tokens are the form."""
ON_TABLES = (
    "plan_rag",
    "iter_rag",
    "single_rag",
    "radagent",
    "cot",
    "best_of_n",
    "reflexion",
    "bfs",
    "dfs",
    "dfsdt",
    "tot",
    "lats",
)
LABELS = re.compile(
    r"(?:Final answer|Action input|Action|Thought|Verdict|Better|Rating|Lesson|Query|Helps|Search|Re-plan|Quote):"
)
LONGEST = Question("Which river is the longest?")
LOOK = "select name, km from river order by km"
PLAN = {
    "plan": ["read the lengths", "compare"],
    "current_step": "1",
    "thought": "look",
    "action": "sql",
    "action_input": LOOK,
}
AGAIN = {
    "replan": True,
    "why": "to be sure",
    "plan": ["read again"],
    "current_step": "1",
    "thought": "look again",
    "action": "sql",
    "action_input": f"{LOOK} desc",
}
ANSWER = {
    "thought": "340 is more",
    "final_answer": "bel",
    "because": "it is 340.25 km long [o1.r2]",
    "runner_up": "aune",
    "assumptions": "none",
}
AS_TEXT = [
    f"Plan: [Step 1: read the lengths, Step 2: compare]\nCurrent step: 1\nThought: look\nAction: sql\n"
    f"Action input: {LOOK}",
    "Re-plan: Y, to be sure\nPlan: [Step 1: read again]\nCurrent step: 1\nThought: look again\nAction: sql\n"
    f"Action input: {LOOK} desc",
    "Thought: 340 is more\nFinal answer: bel\nBecause: it is 340.25 km long [o1.r2]\nRunner-up: aune\n"
    "Assumptions: none",
]
TURNS: list[dict[str, Any]] = [PLAN, AGAIN, ANSWER]


class Endpoint:
    """Plays ``TURNS`` as an endpoint that has some ways. ``refuses``: fields that it answers with 400; ``ignores``:
    fields that it does nothing about. It checks that the schema or the functions would take what it says."""

    def __init__(self, refuses: str = "", ignores: str = "") -> None:
        self.refuses, self.ignores = refuses.split(), ignores.split()
        self.bodies: list[dict[str, Any]] = []
        self.turn = 0

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        if field := next((name for name in self.refuses if name in body), ""):
            return web.json_response({"error": {"message": f"{field} is not supported"}}, status=400)
        turn, self.turn = self.turn, self.turn + 1
        whole = completion(body, self.text(body, turn), "m")
        if "tools" in body and "tools" not in self.ignores:
            whole["choices"][0]["message"] = self.call(body["tools"], TURNS[turn])
        return web.json_response(whole)

    def text(self, body: dict[str, Any], turn: int) -> str:
        if "response_format" not in body or "response_format" in self.ignores:
            return AS_TEXT[turn]
        schema = body["response_format"]["json_schema"]["schema"]["properties"]["reply"]
        shapes = schema.get("anyOf", [schema])
        assert any(one["required"] == list(TURNS[turn]) for one in shapes), shapes
        return json.dumps({"reply": TURNS[turn]})

    def call(self, tools: list[dict[str, Any]], turn: dict[str, Any]) -> dict[str, Any]:
        value = {key: one for key, one in turn.items() if not key.startswith("action")}
        name = turn.get("action", "final_answer")
        if name == "sql":
            value["input"] = turn["action_input"]
        (function,) = [one["function"] for one in tools if one["function"]["name"] == name]
        assert function["parameters"]["required"] == list(value)
        call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(value)}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


async def decided(
    endpoint: Endpoint, calling: Calling, technique: Technique = PlanRAG()
) -> tuple[Decision, Run, OpenAICompatible]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.chat)
    box = Toolbox([TableTool()])
    async with serve_app(app) as origin:
        llm = OpenAICompatible("m", f"{origin}/v1")
        run = Run(llm, box, Budget(), calling=calling)
        decision = await technique(LONGEST, run)
        await llm.close()
    await box.close()
    return decision, run, llm


async def test_text_objects_and_calls_lead_to_the_same_decision() -> None:
    decisions = [(await decided(Endpoint(), calling))[0] for calling in ("text", "json", "tools", "auto")]
    assert [one == decisions[0] for one in decisions] == [True] * 4
    assert (decisions[0].answer, decisions[0].evidence.ids) == ("bel", ("o1.r2",))
    assert decisions[0].replans[0].why == "to be sure"


@pytest.mark.parametrize(("calling", "field"), [("json", "response_format"), ("tools", "tools")])
async def test_the_prompt_tells_of_the_way_that_is_asked_for_and_stop_words_are_left_out(
    calling: Calling, field: str
) -> None:
    endpoint = Endpoint()
    await decided(endpoint, calling)
    assert [field in body and "stop" not in body for body in endpoint.bodies] == [True] * 3
    system = endpoint.bodies[0]["messages"][0]["content"]
    assert "Action input:" not in system and "Final answer:" not in system
    # The first reply cannot answer yet, and is not told how; after it the prompt begins the same.
    first, *later = (body["messages"][0]["content"] for body in endpoint.bodies)
    assert first != later[0] == later[1]


@pytest.mark.parametrize(
    ("refuses", "ignores", "ways"),
    [
        ("", "", ["json", "json", "json"]),
        ("response_format", "", ["text", "tools", "tools"]),  # the first reply came without, the schema in words
        ("", "response_format", ["json", "tools", "tools"]),
        ("response_format tools", "", ["text", "text", "text"]),
        ("", "response_format tools", ["json", "tools", "text"]),
    ],
)
async def test_auto_takes_what_the_endpoint_has_and_goes_on_with_the_rest(
    refuses: str, ignores: str, ways: list[str]
) -> None:
    endpoint = Endpoint(refuses, ignores)
    decision, run, llm = await decided(endpoint, "auto")
    assert decision.answer == "bel"
    answers = [body for body in endpoint.bodies if not any(field in body for field in refuses.split())]
    assert [way_of(body) for body in answers] == ways
    notes = [note.text for note in run.trace.of(Note) if "does not take" in note.text]
    assert len(notes) == len(llm.ways.against)
    assert len(run.trace.of(PlanChange)) == 1
    assert all("m does not take" in note for note in notes)


def way_of(body: dict[str, Any]) -> str:
    return "tools" if "tools" in body else "json" if "response_format" in body else "text"


async def test_what_an_endpoint_does_not_take_is_known_in_the_next_run() -> None:
    endpoint = Endpoint(ignores="response_format")
    _, _, llm = await decided(endpoint, "auto")
    run = Run(llm, Toolbox([]), calling="auto")
    assert run.way == "tools"


async def test_a_search_and_its_judge_are_asked_in_the_same_way() -> None:
    bodies: list[dict[str, Any]] = []

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        schema = body["response_format"]["json_schema"]["schema"]
        better = "better" in schema["properties"]
        value = {"thought": "x", "better": "A"} if better else {"reply": ANSWER}
        if not better and len(bodies) < 3:
            value = {"reply": {"thought": "look", "action": "sql", "action_input": LOOK}}
        return web.json_response(completion(body, json.dumps(value), "m"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        llm = OpenAICompatible("m", f"{origin}/v1")
        run = Run(llm, Toolbox([TableTool()]), Budget(), calling="json")
        decision = await BFS(width=1)(LONGEST, run)
        await llm.close()
    assert decision.answer == "bel"
    assert any("better" in body["response_format"]["json_schema"]["schema"]["properties"] for body in bodies)


async def test_an_llm_that_says_nothing_of_ways_is_asked_in_text() -> None:
    llm = ScriptedLLM(AS_TEXT)
    run = Run(llm, Toolbox([TableTool()]), calling="auto")
    decision = await PlanRAG()(LONGEST, run)
    assert run.way == "text" and decision.answer == "bel"
    assert run.trace.of(Conclusion)


def test_a_way_that_is_none_is_refused() -> None:
    assert split_calling({"calling": "tools", "replan": "no"}, "text") == ("tools", {"replan": "no"})
    with pytest.raises(SetupError, match="calling is one of text, json, tools, auto, not 'xml'"):
        split_calling({"calling": "xml"}, "text")


@pytest.mark.parametrize("calling", ["json", "tools"])
@pytest.mark.parametrize("name", [name for name in TECHNIQUES if name not in (*NO_FORM, "model_first")])
async def test_no_prompt_tells_of_labels_where_an_object_or_a_call_is_asked_for(name: str, calling: Calling) -> None:
    llm = ScriptedLLM(lambda messages: "{}")
    run = Run(
        llm,
        shelf() if name not in ON_TABLES else Toolbox([TableTool()]),
        Budget(Limits(calls=9)),
        calling=calling,
        retries=0,
    )
    with suppress(BudgetExceeded):
        await build_technique(name)(LONGEST, run)
    prompts = [message.content for call in run.trace.of(LLMCall) for message in call.messages]
    assert prompts
    assert not [label for prompt in prompts for label in LABELS.findall(prompt)]
