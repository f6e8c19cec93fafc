"""The terminal shows thoughts and a chart however replies are asked for: as text, as an object, by tool calls."""

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from local_llm import Decisor
from servers.openai_server import serve_app

QUERY = "SELECT name, rent FROM site ORDER BY rent"
BECAUSE = "it costs 400 [o1.r1], oak 700 [o1.r2], ash 900 [o1.r3]"
FIRST, LAST = "I look at the rents first.", "Elm is cheapest, so I decide."
VALUES = {"plan": ["compare"], "current_step": "compare", "input": QUERY, "query": QUERY, "sql": QUERY}
VALUES |= {"action": "sql", "tool": "sql", "action_input": QUERY, "runner_up": "oak", "assumptions": "none"}
VALUES |= {"final_answer": "elm", "answer": "elm", "because": BECAUSE, "reasons": BECAUSE}


def fill(schema: Mapping[str, Any], thought: str) -> str:
    """An object that has all that a schema requires; of several forms the last, which ends the run."""
    if of := schema["properties"].get("reply"):
        return json.dumps({"reply": json.loads(fill(of.get("anyOf", [of])[-1], thought))})
    values = VALUES | {"thought": thought}
    kinds = schema["properties"]
    return json.dumps({name: values.get(name) or kinds[name].get("enum", [""])[0] for name in schema["required"]})


def reply(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Query, then decide, in the form that is asked for, with a thought each time."""
    is_last = "o1.r1" in json.dumps(body["messages"])
    thought = LAST if is_last else FIRST
    if "tools" in body:
        functions = [tool["function"] for tool in body["tools"]]
        own = [one for one in functions if "thought" in one["parameters"]["properties"]]
        ends = [one for one in functions if {"final_answer", "answer"} & one["parameters"]["properties"].keys()]
        one = ends[0] if is_last else next(one for one in functions if one["name"] == "sql")
        call = {"name": one["name"], "arguments": fill(one["parameters"], thought)}
        calls = [{"id": f"c{len(body['messages'])}", "type": "function", "function": call}]
        return {"role": "assistant", "content": "" if own else thought, "tool_calls": calls}
    if "response_format" in body:
        return {"role": "assistant", "content": fill(body["response_format"]["json_schema"]["schema"], thought)}
    if is_last:
        return {"role": "assistant", "content": f"Thought: {LAST}\nFinal answer: elm\nBecause: {BECAUSE}"}
    step = f"Plan: [Step 1: compare]\nThought: {FIRST}\nAction: sql\nAction input: {QUERY}"
    return {"role": "assistant", "content": step}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["agent"], ["plan_rag", "calling=text"], ["plan_rag", "calling=json"], ["plan_rag", "calling=tools"]]
)
async def test_thoughts_and_a_chart_are_shown_in_every_calling(
    words: list[str], decisor: Decisor, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "sites.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL)")
        db.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700), ("elm", 400), ("ash", 900)])

    async def chat(request: web.Request) -> web.Response:
        message = reply(await request.json())
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return web.json_response({"model": "m", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        own = ["-t", words[0], *(text for word in words[1:] for text in ("-o", word))]
        ask = ["ask", "Which site is cheapest?", "--db", "sites.db", "--llm", f"m@{origin}/v1", *own]

        said = await asyncio.to_thread(decisor, *ask)
    shown = said.stdout + said.stderr
    assert FIRST in shown and LAST in shown and QUERY in shown
    assert "Decision: elm" in said.stdout and "1 elm █" in said.stdout and "3 ash █" in said.stdout
    assert "retrying" not in shown
