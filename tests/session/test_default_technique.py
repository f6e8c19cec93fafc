"""The technique of a question that names none: agent where the endpoint has tool calls, else plan_rag, and why."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import decisor
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.scripted import ScriptedLLM
from decisor.session.run_setup import choose_default
from decisor.trace.events import LLMCall, Note, TechniqueChoice, events_of
from servers.openai_server import completion, serve, serve_app
from session.conftest import ANSWER, PLAN, QUERY, planner

DECISION = {"answer": "elm", "because": "elm costs 400 [o1.r1], oak 700 [o1.r2]."}


@asynccontextmanager
async def serve_calls() -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """An endpoint that plans and queries in its first turn and decides once it has seen the rows."""
    bodies: list[dict[str, Any]] = []

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        names = [tool["function"]["name"] for tool in body["tools"]]
        first = [("plan", {"steps": ["compare the rents"]}), (names[1], {"query": QUERY})]
        is_known = any(turn["role"] == "tool" for turn in body["messages"])
        calls = [
            {
                "id": f"c{len(bodies)}{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(value)},
            }
            for at, (name, value) in enumerate([("decide", DECISION)] if is_known else first)
        ]
        whole = completion(body, "", "m")
        whole["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": calls}
        return web.json_response(whole)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        yield f"{origin}/v1", bodies


def reply(body: dict[str, Any]) -> str:
    return ANSWER if "o1.r1" in str(body["messages"]) else PLAN.format(tool="sql", query=QUERY)


async def test_an_endpoint_with_tool_calls_gets_the_agent(sites: Path) -> None:
    async with serve_calls() as (url, bodies), decisor.open(db=str(sites)) as data:
        result = await data.ask("Which site?", llm=f"m@{url}")
    assert (result.answer, result.technique, result.replacing_technique) == ("elm", "agent", "")
    assert len(bodies) == result.usage.calls == 2 and not list(events_of(result.trace, Note))


async def test_documents_alone_are_the_agents_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The site elm costs 400, oak 700.")
    async with serve_calls() as (url, _), decisor.open(docs="a.txt") as data:
        result = await data.ask("Which site is cheaper, elm or oak?", llm=f"m@{url}")
    assert result.technique == "agent" and (result.answer, result.decision.stopped) == ("elm", "answered")


async def test_an_endpoint_that_refuses_tools_gets_plan_rag_at_once_the_next_time(sites: Path) -> None:
    async with serve(reply) as url, decisor.open(db=str(sites)) as data:
        first, second = [await data.ask("Which site?", llm=f"m@{url}") for _ in range(2)]
    assert first.answer == second.answer == "elm"
    assert (first.technique, first.replacing_technique) == ("agent", "plan_rag")
    assert [choice.why for choice in events_of(first.trace, TechniqueChoice)] == ["m takes no tool calls."]
    assert (second.technique, second.replacing_technique) == ("plan_rag", "")
    assert [note.text for note in events_of(second.trace, Note)] == [
        "m takes no tool calls: plan_rag decides in place of agent."
    ]
    assert all(call.turn is None for call in events_of(first.trace, LLMCall))


async def test_an_llm_without_tools_gets_plan_rag_and_a_note(sites: Path) -> None:
    async with decisor.open(db=str(sites)) as data:
        result = await data.ask("Which site?", llm=planner())
    assert (result.answer, result.technique) == ("elm", "plan_rag")
    assert next(note.text for note in events_of(result.trace, Note)).startswith("scripted takes no tool calls")


@pytest.mark.parametrize("calling", ["text", "json"])
def test_words_or_json_are_asked_for_by_plan_rag_without_a_note(calling: Any) -> None:
    assert choose_default(OpenAICompatible("m", "http://127.0.0.1:9/v1"), calling) == ("plan_rag", ())


def test_without_an_llm_a_decision_model_decides() -> None:
    assert choose_default(None, "auto") == ("exact", ())
    assert choose_default(ScriptedLLM([]), "tools")[0] == "plan_rag"
