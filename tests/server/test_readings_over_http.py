"""A question with two readings over HTTP: the run waits for what is meant where somebody is there, and never else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from definition_shops import shop
from server.serving import Served, names, served
from servers.openai_server import serve_threaded

QUESTION = "Which customer has the most revenue?"


def replies(body: dict[str, Any]) -> str:
    """Holds revenue for open; answers by what it is said to mean."""
    text = "\n".join(turn["content"] for turn in body["messages"])
    if "# How to judge" in text:
        return "Unclear: revenue | after discounts | before discounts"
    for number in (2, 1):
        if f"[o{number}.r1] |" in text:
            answer, row = ("Ann", 1) if '"revenue": before' in text else ("Bo", 2)
            return f"Final answer: {answer}\nBecause: it is first [o{number}.r{row}]"
    return "Plan: [Step 1: look]\nThought: t\nAction: sql\nAction input: SELECT name FROM customer ORDER BY 1"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Served]:
    with (
        serve_threaded(replies) as url,
        served(ServerSettings(build_sources(db=shop(tmp_path)), {"m": f"m@{url}"})) as place,
    ):
        yield place


def test_a_run_waits_for_what_is_meant_and_follows_it(place: Served) -> None:
    run = place.ask(QUESTION, asks=True)
    waiting = place.until(lambda: place.run(run["id"]), lambda run: bool(run["readings"]))
    assert waiting["readings"] == [
        {"number": 1, "words": "revenue", "choices": ["after discounts", "before discounts"], "asks": False}
    ]
    reply = place.client.post(f"/api/runs/{run['id']}/readings/1", json={"answer": "2"})
    assert reply.json()["readings"] == []
    over = place.ended(run["id"])
    assert over["answer"] == "Ann" and over["result"]["assumptions"] == ['"revenue" means before discounts (by you)']
    assert place.client.post(f"/api/runs/{run['id']}/readings/1", json={"answer": "2"}).status_code == 404


def test_the_stream_says_what_waits_and_what_was_said(place: Served) -> None:
    run = place.ask(QUESTION, asks=True)
    place.until(lambda: place.run(run["id"]), lambda run: bool(run["readings"]))
    path = f"/api/runs/{run['id']}"
    seen: list[Any] = []
    with place.client.stream("GET", f"{path}/events") as response:
        lines = response.iter_lines()
        for line in lines:
            if line == "event: reading":
                seen.append(json.loads(next(lines).removeprefix("data: ")))
                if len(seen) == 1:
                    place.client.post(f"{path}/readings/1", json={"answer": "1"})
                else:
                    break
    choices = ["after discounts", "before discounts"]
    assert seen == [{"number": 1, "words": "revenue", "choices": choices, "asks": False}, {"number": 1, "answer": "1"}]


def test_where_nobody_is_said_to_be_there_both_are_computed(place: Served) -> None:
    over = place.ended(place.ask(QUESTION)["id"])
    assert over["answer"] == "Bo" and "That gives Ann" in over["result"]["reasons"][-1]
    assert "reading" not in names(place.events(f"/api/runs/{over['id']}/events"))
