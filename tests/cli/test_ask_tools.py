"""A person's own tools, as they are named on the command line."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from servers.openai_server import serve_app, serve_threaded
from servers.plants_api import DOCUMENT, KEY, application

COSTS = '''
def freight(city: str, tons: float = 1.0) -> dict[str, object]:
    """What it costs to bring tons of goods to a city."""
    return {"city": city, "euros": 90 + 12.5 * tons}
'''


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs_of_cli_test.py").write_text(COSTS)
    return tmp_path


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    """The plants API, served from a thread."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    origins: list[str] = []

    async def serving() -> None:
        async with serve_app(application([])) as origin:
            origins.append(origin)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serving(),))
    thread.start()
    assert ready.wait(60)
    yield f"{origins[0]}/v1"
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    loop.close()


def test_a_function_and_an_api_decide_together(
    folder: Path, api: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def replies(request: dict[str, Any]) -> str:
        said.append(request["messages"][0]["content"])
        last = request["messages"][-1]["content"]
        if "o2.r1" in last:
            return "Final answer: Ghent\nBecause: freight is 140 euros [o2.r1] and its cost 3.5 [o1.r1]"
        if "o1.r1" in last:
            return 'Thought: freight\nAction: freight\nAction input: {"city": "Ghent", "tons": "4"}'
        return 'Plan: [Step 1: look, Step 2: freight]\nThought: x\nAction: getPlant\nAction input: {"id": 1}'

    (folder / "plants.json").write_text(json.dumps(DOCUMENT))
    monkeypatch.setenv("PLANTS_KEY", KEY)
    with serve_threaded(replies) as url:
        words = [
            "ask",
            "Which plant?",
            "--tools",
            "costs_of_cli_test:freight",
            "--tools",
            "plants.json#read",
            "--base-url",
            api,
            "--auth",
            "head=PLANTS_KEY",
            "--llm",
            f"toy@{url}",
            "--trace",
            "run.jsonl",
        ]
        code = run_command_line([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == 0, told
    assert told["answer"] == "Ghent" and told["evidence"]["objections"] == []
    assert "What it costs to bring tons" in said[0] and "GET /plants/{id}" in said[0] and "keyBearer" not in said[0]
    assert KEY not in (folder / "run.jsonl").read_text() and KEY not in "".join(said)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--tools", "nothing.json"], "neither a function nor a file"),
        (["--tools", "costs_of_cli_test:fright"], "costs_of_cli_test has freight"),
        (["--tools", "no_such_module_x:y"], "no module no_such_module_x"),
        (["--tools", "https://x.invalid/api.json"], "Download it, and give the file"),
        (
            ["--tools", "costs_of_cli_test:freight", "--tools", "costs_of_cli_test:freight"],
            "Two tools are called freight",
        ),
        (["--tools", "plants.json", "--auth", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL, which is not set"),
        (["--tools", "plants.json", "--allow-methods", "post,send"], "send is no HTTP method"),
        (["--db", "x.db", "--auth", "HOME"], "say how to call --tools"),
    ],
)
def test_what_cannot_be_a_tool_is_one_line_with_what_to_do(
    folder: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import sqlite3

    sqlite3.connect(folder / "x.db").close()
    (folder / "plants.json").write_text(json.dumps(DOCUMENT))
    assert run_command_line(["ask", "Which?", *words, "--llm", "toy@http://127.0.0.1:9/v1"]) == 2
    said = capsys.readouterr().err
    assert complaint in said and said.count("\n") == 1


def test_a_search_uses_a_persons_own_function_and_what_that_prints_spoils_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "loud_of_cli_test.py").write_text(COSTS.replace("    return", '    print("loud", city)\n    return'))

    def replies(request: dict[str, Any]) -> str:
        if "first" in request["messages"][0]["content"] and "Verdict" in request["messages"][0]["content"]:
            return "Verdict: first"
        told = request["messages"][-1]["content"].partition("# Tried")[0]
        if "r1] | Ghent" in told:
            return "Thought: known\nFinal answer: Ghent\nBecause: it costs 140 [o1.r1]"
        return 'Thought: try\nAction: freight\nAction input: {"city": "Ghent", "tons": 4}'

    with serve_threaded(replies) as url:
        words = ["ask", "Where?", "--tools", "loud_of_cli_test:freight", "-t", "radagent", "-o", "calls=8"]
        code = run_command_line([*words, "--llm", f"toy@{url}", "--json"])
    heard = capsys.readouterr()
    assert code == 0 and json.loads(heard.out)["answer"] == "Ghent"
    assert "loud Ghent" in heard.err


def test_tools_without_an_llm_say_that_one_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["ask", "Which?", "--tools", "costs_of_cli_test:freight", "--llm", "none"]) == 2
    assert "There is no LLM to plan this" in capsys.readouterr().err


def test_the_doctor_shows_tools_and_what_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plants.json").write_text(json.dumps(DOCUMENT))
    assert run_command_line(["doctor", "--tools", "plants.json", "--tools", "costs_of_cli_test:freight"]) == 0
    said = capsys.readouterr().out
    assert "### Tool: freight" in said and "Left out\n" in said and "    POST /plants: POST is not allowed" in said
    assert run_command_line(["doctor", "--tools", "plants.json"]) == 0
    assert "Keys (--auth) are sent to\n    http://nowhere.invalid/v1\n" in capsys.readouterr().out
    assert run_command_line(["doctor", "--tools", "plants.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"][0]["name"] == "listPlants"
