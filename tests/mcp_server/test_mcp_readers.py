"""Rows and columns not for a client of ``decisor mcp``, its lines in the audit, and how many runs go at once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from decisor.server.users import digest_of_token
from mcp_server.clients import address, client, text
from mcp_server.test_mcp_users import as_user
from server.serving import planner, sites
from servers.openai_server import serve_threaded

SECRETS = ("ada@home.example", "ben@home.example", "Ben", "90.25")
POLICY = ("--rows", "person=pay < 50", "--mask", "person.email", "--audit", "audit.jsonl")
SOON = 30.0
AROUND = [
    "SELECT p.email AS name, q.name AS other FROM person p, main.person AS q",
    "SELECT name FROM person WHERE 0 UNION ALL SELECT email FROM person UNION ALL SELECT name FROM everybody",
    "WITH person AS (SELECT * FROM main.person) SELECT email, name, pay FROM person",
    "SELECT (SELECT max(pay) FROM person WHERE name LIKE 'B%'), (SELECT group_concat(email) FROM person)",
    "SELECT json_extract(email, '$.' || email), abs(-9223372036854775808 * (pay > 50)) FROM person",
    "SELECT name FROM person WHERE email LIKE '%home%' OR length(email) < 17 ORDER BY email",
]


def people(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "people.db")) as database, database:
        database.execute("CREATE TABLE person (name TEXT, email TEXT, pay REAL)")
        rows = [("Ada", "ada@home.example", 40.5), ("Ben", "ben@home.example", 90.25)]
        database.executemany("INSERT INTO person VALUES (?, ?, ?)", rows)
        database.execute("CREATE VIEW everybody AS SELECT name || ' ' || email AS name FROM person")
    return folder / "people.db"


async def all_that_it_says(one: Client) -> list[str]:
    """Of each way around, of the schema, and of a run with its story."""
    answers = [text(await one.call_tool("query", {"query": query})) for query in AROUND]
    answers.append(text(await one.call_tool("describe_data")))
    answers.append(text(await one.call_tool("decide", {"question": "Whom should we write to?"})))
    answers.append(text(await one.call_tool("explain_run")))
    return answers


@pytest.mark.slow
async def test_no_way_around_brings_a_client_or_an_llm_a_masked_value_or_a_row_of_others(tmp_path: Path) -> None:
    prompts: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        prompts.append(str(body["messages"]))
        return planner("SELECT name, email FROM person", "Final answer: Ada\nBecause: she is there [o1.r1]")(body)

    with serve_threaded(reply) as url:
        words = ("--db", str(people(tmp_path)), "--llm", f"m@{url}", "-o", "calling=text", *POLICY)
        async with client(tmp_path, "stdio", *words) as one:
            answers = await all_that_it_says(one)
    assert "masked_" in answers[0] and "Decision: Ada" in answers[-2]
    says = "\n".join([*answers, *prompts])
    assert not [secret for secret in SECRETS if secret in says]
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert {*AROUND, "SELECT name, email FROM person"} <= {line["statement"] for line in lines if line["by"] == "model"}


@pytest.mark.slow
async def test_a_user_who_may_see_values_gets_tokens_here_since_an_llm_reads_them(tmp_path: Path) -> None:
    (tmp_path / "users.toml").write_text(
        f'[ann]\ntoken = "{digest_of_token("token of ann")}"\nmask = ["person.email"]\nreveal = true\n'
    )
    with serve_threaded(planner("SELECT email FROM person", "Final answer: her\nBecause: [o1.r1]")) as url:
        words = ("--db", str(people(tmp_path)), "--llm", f"m@{url}", "-o", "calling=text", "--users", "users.toml")
        async with address(tmp_path, *words) as (place, _, _), as_user(place, "ann") as ann:
            decision = text(await ann.call_tool("decide", {"question": "Whom should we write to?"}))
    assert "masked_" in decision and "home.example" not in decision


@pytest.mark.slow
async def test_a_run_beyond_those_that_go_at_once_waits_in_line_and_says_so(tmp_path: Path) -> None:
    asks, go_on = threading.Event(), threading.Event()
    steps: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        asks.set()
        go_on.wait(SOON)
        return planner()(body)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message or "")
        go_on.set()

    question = {"question": "Which site should we open?"}
    with serve_threaded(reply) as url:
        words = ("--db", str(sites(tmp_path)), "--llm", f"m@{url}", "-o", "calling=text", "--at-once", "1")
        async with client(tmp_path, "stdio", *words) as one:
            try:
                first = asyncio.create_task(one.call_tool("decide", question))
                assert await asyncio.to_thread(asks.wait, SOON)
                second = asyncio.create_task(one.call_tool("decide", question, progress_callback=hear))
                decisions = [text(await run) for run in (first, second)]
            finally:
                go_on.set()
    assert steps[0] == "Waits in line behind 0 others: 1 at once" and len(steps) > 2
    assert all("Decision: elm" in decision for decision in decisions)
