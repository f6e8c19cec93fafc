"""Replies seen while they are written: from the front door, in a trace, on a terminal."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from aiohttp import web
from rich.console import Console

import decisor
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, Trace, UnreadableReply, Writers, Writing, events_of
from decisor.views.terminal import LiveView
from servers.event_server import body_of, chat
from servers.openai_server import completion, serve_app

QUERY = "Plan: [Step 1: the rents]\nThought: Start.\nAction: sql\nAction input: SELECT name, rent FROM site"
ANSWER = "Final answer: elm\nBecause: it is the cheapest [o1.r1]"


@asynccontextmanager
async def streaming(*replies: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that streams each reply piece by piece, the last one for ever; its base URL, and what it was sent."""
    bodies: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        text = replies[min(len(bodies), len(replies)) - 1]
        if not bodies[-1].get("stream"):
            return web.json_response(completion(bodies[-1], text, "m"))
        words = [text[at : at + 5] for at in range(0, len(text), 5)]
        return web.Response(body=body_of(chat(*words)), content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    async with serve_app(app) as origin:
        yield f"{origin}/v1", bodies


async def test_a_person_who_listens_gets_what_is_written_and_the_run_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sites.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE site (name TEXT, rent REAL)")
        database.execute("INSERT INTO site VALUES ('elm', 400.0)")
    texts: list[Writing] = []
    async with streaming(QUERY, ANSWER) as (base_url, bodies), decisor.open(db=f"sqlite:///{path}") as data:
        listening = await data.ask("Which?", llm=f"m@{base_url}", technique="plan_rag", on_text=texts.append)
        bodies_heard = len(bodies)
        bodies.clear()
        alone = await data.ask("Which?", llm=f"m@{base_url}", technique="plan_rag")
        assert not any("stream" in body for body in bodies)
    assert bodies_heard == listening.usage.calls == 2
    assert listening.answer == alone.answer == "elm"
    calls = [call.texts for call in events_of(listening.trace, LLMCall)]
    assert calls == [(one.text,) for one in texts if one.is_over] == [c.texts for c in events_of(alone.trace, LLMCall)]
    assert [one.call for one in texts] == sorted(one.call for one in texts)
    assert len([one for one in texts if one.call == 1]) > 5
    assert listening.usage.completion_tokens == 2 * 3


async def test_who_does_not_listen_gets_no_stream() -> None:
    async with streaming("x") as (base_url, bodies):
        llm = OpenAICompatible("m", base_url)
        await Run(llm, Toolbox([])).ask("Where?", str)
        await llm.close()
    assert "stream" not in bodies[0]


async def test_calls_at_once_are_told_apart() -> None:
    texts: list[Writing] = []
    async with streaming("one two three") as (base_url, _):
        llm = OpenAICompatible("m", base_url)
        run = Run(llm, Toolbox([]), trace=Trace(writers=Writers(texts.append)))
        await map_concurrently(lambda number: run.ask(f"Where {number}?", str), range(5))
        await llm.close()
    assert {one.call for one in texts} == {1, 2, 3, 4, 5}
    assert sorted(one.call for one in texts if one.is_over) == [1, 2, 3, 4, 5]


async def test_a_reply_that_repeats_itself_is_asked_for_again_and_counted() -> None:
    async with streaming("look again. " * 200, "Lyon") as (base_url, bodies):
        llm = OpenAICompatible("m", base_url)
        run = Run(llm, Toolbox([]), trace=Trace(writers=Writers(lambda _: None)))
        assert (await run.ask("Where?", str)) == "Lyon"
        await llm.close()
    assert [event.reason for event in events_of(run.trace.entries, UnreadableReply)] == ["loop"]
    assert len(str(bodies[1])) < 1_000, "the loop is not sent back"
    assert run.budget.spent.estimates == 1 and run.budget.spent.completion_tokens > 50


def test_a_terminal_shows_the_end_of_what_is_written_until_it_is_over() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60)
    view = LiveView(console)

    def below() -> str:
        with console.capture() as capture:
            console.print(view.below())
        return capture.get()

    view.hear_text(Writing(1, 0, "Thought: \x1b[2Jlook\n" + "\n".join(map(str, range(99)))))
    assert "98" in below() and "50" not in below()
    view.hear_text(Writing(2, 0, "Thought: [red]another"))
    assert "[red]another" in below() and "98" not in below()
    view.hear_text(Writing(2, 0, "Thought: \x1b[2Jmore"))
    assert "\x1b[2J" not in below()
    view.hear_text(Writing(2, 0, "", is_over=True))
    assert "98" in below(), "the other one is still being written"
    view.hear_text(Writing(1, 0, "", is_over=True))
    assert "98" not in below()
