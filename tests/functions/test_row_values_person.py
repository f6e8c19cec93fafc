"""Whoever is there is asked whether a tool may get values of rows: at a terminal, on the page, at an MCP client."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from decisor.server.settings import ServerSettings
from decisor.session.sources import build_sources
from mcp_server.clients import client, text
from server.serving import served
from servers.openai_server import serve_threaded

SECRET = "TOPSECRET-42"
TOOL = '''
def weather(place: str) -> str:
    """Tell the weather of a place."""
    with open("calls.txt", "a") as file:
        file.write(place)
    return "mild"
'''
QUESTION = "Which site is best?"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tool writes what it got."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weather_of_row_values.py").write_text(TOOL)
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("CREATE TABLE site (name TEXT, code TEXT)")
        database.execute("INSERT INTO site VALUES ('elm', ?)", [SECRET])
    (tmp_path / "calls.txt").write_text("")
    return tmp_path / "calls.txt"


def sender(body: dict[str, Any]) -> str:
    """Reads the rows, sends a value of them, decides."""
    said = "\n".join(str(turn["content"]) for turn in body["messages"])
    if "mild" in said or "was not called" in said:
        return "Final answer: elm\nBecause: it is there [o1.r1]"
    if "o1.r1" in said:
        return f'Thought: send\nAction: weather\nAction input: {{"place": "{SECRET}"}}'
    return "Plan: [Step 1: look]\nThought: t\nAction: sql\nAction input: SELECT name, code FROM site"


OPTIONS = ("--db", "shop.db", "--tools", "weather_of_row_values:weather")
ANSWERS = [("2", SECRET), ("1", ""), ("", ""), ("y", "")]


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "got"), ANSWERS)
def test_at_a_terminal_only_the_choice_to_send_sends(answer: str, got: str, calls: Path) -> None:
    mine, theirs = pty.openpty()
    with serve_threaded(sender) as url:
        words = [
            sys.executable,
            "-m",
            "decisor",
            "ask",
            QUESTION,
            *OPTIONS,
            "--llm",
            f"m@{url}",
            "-o",
            "calling=text",
            "--readings",
            "off",
            "--no-history",
        ]
        process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        while b"Enter for the first)" not in shown:
            shown += os.read(mine, 1000)
        assert calls.read_text() == ""
        os.write(mine, f"{answer}\n".encode())
        out, _ = process.communicate(timeout=60)
    os.close(mine)
    line = re.sub(r"\s+", " ", shown.decode())
    assert "May weather get values of rows" in line and SECRET in line and "1 do not send it, 2 send it" in line
    assert process.returncode == 0 and "Decision: elm" in out.decode() and calls.read_text() == got


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "got"), ANSWERS)
def test_over_http_only_the_choice_to_send_sends(answer: str, got: str, calls: Path) -> None:
    sources = build_sources(db="shop.db", tools="weather_of_row_values:weather")
    with serve_threaded(sender) as url, served(ServerSettings(sources, {"m": f"m@{url}"})) as place:
        run = place.ask(QUESTION, asks=True)
        waiting = place.until(lambda: place.run(run["id"]), lambda run: bool(run["readings"]))
        (reading,) = waiting["readings"]
        assert reading["asks"] and SECRET in reading["words"] and reading["choices"] == ["do not send it", "send it"]
        assert calls.read_text() == ""
        place.client.post(f"/api/runs/{run['id']}/readings/1", json={"answer": answer})
        assert place.ended(run["id"])["answer"] == "elm"
        again = place.ended(place.ask(QUESTION)["id"])  # nobody is there
    assert again["answer"] == "elm" and calls.read_text() == got


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "got"),
    [
        ({"meaning": "send it"}, SECRET),
        ({"meaning": "do not send it"}, ""),
        ({"own_words": "yes"}, ""),
        (None, ""),
    ],
)
async def test_at_an_mcp_client_only_the_choice_to_send_sends(
    content: dict[str, str | int | float | bool | list[str] | None] | None, got: str, calls: Path
) -> None:
    forms: list[ElicitRequestFormParams] = []

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        forms.append(params)
        return ElicitResult(action="accept" if content else "decline", content=content)

    with serve_threaded(sender) as url:
        words = (*OPTIONS, "--llm", f"m@{url}", "-o", "calling=text")
        async with client(calls.parent, "stdio", *words, elicitation_callback=person) as one:
            decision = text(await one.call_tool("decide", {"question": QUESTION}))
    (form,) = forms
    assert "May weather get values of rows" in form.message and json.dumps(SECRET) in form.message
    assert decision.startswith("Decision: elm") and calls.read_text() == got
