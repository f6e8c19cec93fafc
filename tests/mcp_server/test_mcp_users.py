"""Several users of one ``decisor mcp --http``: whose connections, rows and history, by token; and own tools."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from decisor.server.users import digest_of_token
from mcp_server.clients import address, client, text
from server.serving import sites

USERS = f"""
[ann]
token = "{digest_of_token("token of ann")}"

[bob]
token = "{digest_of_token("token of bob")}"
connections = ["hr"]
rows = {{ person = "pay < 50" }}
"""


@asynccontextmanager
async def as_user(url: str, name: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer token of {name}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as web,
        Client(streamable_http_client(url, http_client=web)) as one,
    ):
        yield one


def people(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "hr.db")) as connection, connection:
        connection.execute("CREATE TABLE person (name TEXT, pay REAL)")
        connection.executemany("INSERT INTO person VALUES (?, ?)", [("Ada", 40.0), ("Ben", 90.0)])
    return folder / "hr.db"


@pytest.mark.slow
async def test_each_user_has_their_own_connections_rows_and_history(tmp_path: Path, llm: str) -> None:
    users = tmp_path / "users.toml"
    users.write_text(USERS)
    data = ("--db", f"sql={sites(tmp_path)}", "--db", f"hr={people(tmp_path)}", "--llm", llm, "-o", "calling=text")
    async with address(tmp_path, *data, "--users", str(users)) as (url, _, _):
        async with as_user(url, "ann") as ann:
            question = {"question": "Which site should we open?", "connections": ["sql"]}
            assert "Decision: elm" in text(await ann.call_tool("decide", question))
            assert "Ben" in text(await ann.call_tool("query", {"query": "SELECT name FROM person", "connection": "hr"}))
            assert "Decision: elm" in text(await ann.call_tool("explain_run", {"number": 1}))
        async with as_user(url, "bob") as bob:
            rows = text(await bob.call_tool("query", {"query": "SELECT name FROM person"}))
            assert "Ada" in rows and "Ben" not in rows
            assert "site" not in text(await bob.call_tool("describe_data", {}))
            for tool, arguments, words in (
                ("query", {"query": "SELECT 1", "connection": "sql"}, "Which connection? There is hr."),
                ("describe_data", {"connection": "sql"}, "There is no connection 'sql'; there is hr."),
                ("decide", question, "There is no connection 'sql'; there is hr."),
                ("explain_run", {"number": 1}, "There is no run of these data yet: call decide."),
                ("explain_run", {}, "There is no run of these data yet: call decide."),
                ("decide", {"question": "And then?", "after": 1}, "There is no run of these data yet: call decide."),
            ):
                refusal = await bob.call_tool(tool, arguments)
                assert refusal.is_error and text(refusal).endswith(words), text(refusal)
        async with httpx2.AsyncClient(trust_env=False) as web:
            assert (await web.post(url, json={}, headers={"Authorization": "Bearer token of cat"})).status_code == 401


@pytest.mark.slow
async def test_a_run_may_use_functions_that_a_person_named(tmp_path: Path, llm: str) -> None:
    (tmp_path / "costs.py").write_text(
        'def freight(town: str) -> float:\n    """What a parcel to a town costs."""\n    return 4.5\n'
    )
    async with client(
        tmp_path, "stdio", "--db", str(sites(tmp_path)), "--tools", "costs:freight", "--llm", llm, "-o", "calling=text"
    ) as one:
        assert "What a parcel to a town costs." in text(await one.call_tool("describe_data", {}))
        question = {"question": "Which site should we open?"}
        assert "Decision: elm" in text(await one.call_tool("decide", question))
