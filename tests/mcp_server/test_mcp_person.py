"""The person at the client: what they are asked, and what ends when they stop waiting."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from decisor.history.store import History, PastRun
from definition_shops import shop
from mcp_server.clients import Transport, client, text
from server.serving import planner, sites
from servers.openai_server import serve_threaded

UNCLEAR = "Thought: discounts.\nUnclear: revenue | after discounts, with line.discount | before discounts"
NET, GROSS = "l.price * l.quantity * (1 - l.discount)", "l.price * l.quantity"
PLAN = (
    "Plan: [Step 1: add up]\nThought: t\nAction: sql\nAction input: SELECT c.name, SUM({sum}) AS total FROM customer c "
    "JOIN purchase p ON p.customer_id = c.id JOIN line l ON l.purchase_id = p.id GROUP BY 1 ORDER BY 2 DESC"
)
WAYS = [("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy")]
SOON = 30.0


def analyst(body: dict[str, Any]) -> str:
    """Sees two readings, computes the one of the rules, and names the first row."""
    prompt = str(body["messages"])
    if "# How to judge" in prompt:
        return UNCLEAR
    net = '"revenue": after discounts' in prompt
    last = str(body["messages"][-1]["content"])
    if ".r1] |" in last:
        id = last.rpartition(".r1] |")[0].rpartition("[")[2]
        return f"Final answer: {'Cy' if net else 'Ann'}\nBecause: it is first [{id}.r1]"
    return PLAN.format(sum=NET if net else GROSS)


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_where_a_question_has_two_readings_the_person_at_the_client_is_asked(
    tmp_path: Path, transport: Transport, mode: str
) -> None:
    forms: list[ElicitRequestFormParams] = []

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        forms.append(params)
        return ElicitResult(action="accept", content={"meaning": "before discounts"})

    with serve_threaded(analyst) as url:
        words = ("--db", shop(tmp_path), "--llm", f"m@{url}", "-o", "calling=text")
        async with client(tmp_path, transport, *words, mode=mode, elicitation_callback=person) as one:
            decision = text(await one.call_tool("decide", {"question": "Which customer has the most revenue?"}))
    (form,) = forms
    assert form.message.startswith('What is meant by "revenue"?')
    assert form.requested_schema["properties"]["meaning"]["enum"] == [
        "after discounts, with line.discount",
        "before discounts",
    ]
    assert decision.startswith("Decision: Ann\n") and '"revenue" means before discounts (by you)' in decision


@pytest.mark.slow
async def test_a_client_whose_person_cannot_be_asked_gets_both_readings(tmp_path: Path) -> None:
    with serve_threaded(analyst) as url:
        words = ("--db", shop(tmp_path), "--llm", f"m@{url}", "-o", "calling=text")
        async with client(tmp_path, "stdio", *words) as one:
            decision = text(await one.call_tool("decide", {"question": "Which customer has the most revenue?"}))
    assert "it could mean before discounts. That gives Ann: the choice changes the decision" in decision


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_a_client_that_stops_waiting_ends_the_run_and_the_server_goes_on(
    tmp_path: Path, transport: Transport, mode: str
) -> None:
    waits, go_on = threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> str:
        if "o1.r1" in str(body["messages"]):
            waits.set()
            go_on.wait(SOON)
        return planner()(body)

    history = History(tmp_path / "xdg_data_home" / "decisor")

    async def ended() -> PastRun:
        while (run := await asyncio.to_thread(history.read, 1)).state == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return run

    with serve_threaded(reply) as url:
        words = ("--db", f"sqlite:///{sites(tmp_path)}", "--llm", f"m@{url}", "-o", "calling=text")
        async with client(tmp_path, transport, *words, mode=mode) as one:
            call = asyncio.create_task(one.call_tool("decide", {"question": "Which site should we open?"}))
            assert await asyncio.to_thread(waits.wait, SOON)
            call.cancel()
            await asyncio.wait([call])
            try:
                run = await asyncio.wait_for(ended(), SOON)
                assert run.state == "interrupted" and run.usage.calls >= 2
                assert "elm" in text(await one.call_tool("query", {"query": "SELECT name FROM site ORDER BY rent"}))
            finally:
                go_on.set()
