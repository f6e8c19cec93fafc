"""The technique of a question that names none: agent where the endpoint has tool calls, else plan_rag, and why."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import decisor
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.scripted import ScriptedLLM
from decisor.session.result import Result, build_following_question
from decisor.session.run_setup import choose_default
from decisor.trace.events import LLMCall, Note, RunStart, TechniqueChoice, events_of
from decisor.trace.file import read_trace
from decisor.types import Question
from servers.openai_server import completion, serve, serve_app
from session.conftest import ANSWER, PLAN, QUERY, database, planner

DECISION = {"answer": "elm", "because": "elm costs 400 [o1.r1], oak 700 [o1.r2]."}


@asynccontextmanager
async def serve_calls() -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """An endpoint that plans and queries in its first turn and decides once it has seen the rows."""
    bodies: list[dict[str, Any]] = []

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        names = [tool["function"]["name"] for tool in body["tools"]]
        first: list[tuple[str, Any]] = [("plan", {"steps": ["compare the rents"]}), (names[1], {"query": QUERY})]
        last: list[tuple[str, Any]] = [("decide", DECISION)]
        is_known = any(turn["role"] == "tool" for turn in body["messages"])
        calls = [
            {
                "id": f"c{len(bodies)}{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(value)},
            }
            for at, (name, value) in enumerate(last if is_known else first)
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


async def test_a_follow_up_goes_on_in_the_conversation_of_the_decision(sites: Path, tmp_path: Path) -> None:
    async with serve_calls() as (url, bodies), decisor.open(db=str(sites)) as data:
        first = await data.ask("Which site?", llm=f"m@{url}", rules="Rent counts.")
        second = await first.ask_async("And which of the two is dearer?")
        third = await second.ask_async("And again?")
    # All queries were answered before, so each follow-up is decided in its first reply.
    assert [result.usage.calls for result in (first, second, third)] == [2, 1, 1]
    for before, after in ((1, 2), (2, 3)):
        known = bodies[before]["messages"]
        assert bodies[after]["messages"][: len(known)] == known and bodies[after]["tools"] == bodies[before]["tools"]
    decided, result, question = bodies[3]["messages"][-3:]
    assert decided["tool_calls"][0]["function"]["name"] == "decide" and result["content"] == "ok"
    assert question["content"] == "# Next question\nAnd again?"
    assert third.answer == "elm" and [record.id for record in third.records] == ["o1.r1", "o1.r2"]
    third.save(tmp_path / "run.jsonl")
    start = next(events_of(read_trace(tmp_path / "run.jsonl"), RunStart))
    assert start.question == third.question


async def test_on_other_data_a_follow_up_is_a_conversation_of_its_own(sites: Path, tmp_path: Path) -> None:
    other = database(tmp_path / "other.db", [("elm", 400.0), ("ash", 500.0), ("oak", 700.0)])
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE region (name TEXT)")
    async with serve_calls() as (url, bodies):
        first = await decisor_ask(sites, "Which site?", url)
        question = build_following_question(first, "And now?")
        await decisor_ask(other, question, url)
    assert len(bodies[2]["messages"]) == 2 and "# What was decided earlier" in bodies[2]["messages"][1]["content"]


async def decisor_ask(place: Path, question: str | Question, url: str) -> Result:
    async with decisor.open(db=str(place)) as data:
        return await data.ask(question, llm=f"m@{url}")
