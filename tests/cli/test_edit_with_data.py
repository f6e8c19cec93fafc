"""Going on from a recorded run of decisor ask --db --docs --tools --model, through the command and a local endpoint."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from cli.test_ask import MODEL
from decisor.cli import run_command_line
from servers.openai_server import serve_threaded

COSTS = '''
def freight(city: str, tons: float = 1.0) -> dict[str, object]:
    """What it costs to bring tons of goods to a city."""
    print("counting")
    return {"city": city, "euros": 90 + 12.5 * tons}
'''
PLAN = "Plan: [Step 1: read the note, Step 2: compare]\n"
NOTE = "Thought: the note first\nAction: passages\nAction input: which sites are closed to us"
RENTS = "Re-plan: N\nThought: the rents\nAction: sql\nAction input: select name, rent from site order by rent"
FREIGHT = 'Re-plan: N\nThought: freight\nAction: freight\nAction input: {"city": "Ghent", "tons": "4"}'
WHATIF = "Re-plan: N\nThought: compute\nAction: whatif\nAction input: oak"

Asked = list[dict[str, Any]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The options that name each of the data."""
    for name in ("DECISOR_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("sites.db")) as db, db:
        db.execute("CREATE TABLE site (name TEXT, rent REAL, is_open INTEGER)")
        db.executemany("INSERT INTO site VALUES (?, ?, ?)", [("ash", 900.5, 1), ("oak", 700.5, 0), ("elm", 400.5, 0)])
    Path("notes").mkdir()
    Path("notes/closed.txt").write_text("The site elm is closed to us until the flood is over.")
    Path("costs_of_edit_test.py").write_text(COSTS)
    Path("sites.toml").write_text(MODEL)
    return {
        "sql": ["--db", "sites.db"],
        "passages": ["--docs", "notes"],
        "whatif": ["--model", "sites.toml"],
        "freight": ["--tools", "costs_of_edit_test:freight"],
    }


def record(replies: Sequence[str], *options: str) -> None:
    """A run of plan_rag into run.jsonl."""
    given = iter(replies)
    with serve_threaded(lambda body: next(given)) as url:
        words = ["ask", "Which site?", *options, "-t", "plan_rag", "--llm", f"m@{url}", "--trace", "run.jsonl"]
        assert run_command_line(words) == 0


def edit(*options: str, says: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> tuple[Any, Asked, int]:
    """What the command prints as JSON, what the endpoint was sent, and the exit code."""
    sent: Asked = []

    def reply(body: dict[str, Any]) -> str:
        sent.append(body)
        return says(body["messages"][-1]["content"])

    capsys.readouterr()
    with serve_threaded(reply) as url:
        code = run_command_line(["trace", "run.jsonl", *options, "--llm", f"m@{url}", "--json"])
    return json.loads(capsys.readouterr().out), sent, code


def test_a_step_over_documents_and_a_database_is_edited_and_the_model_asked_from_there(
    data: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    both = [*data["sql"], *data["passages"]]
    record([PLAN + NOTE, RENTS, "Re-plan: N\nFinal answer: oak\nBecause: 700.5 [o2.r2], elm is closed [o1.r1]"], *both)

    def says(prompt: str) -> str:
        assert "elm is closed to us" in prompt, "the first step is reused"
        assert "[o2.r1] | ash | 900.5" in prompt
        return "Re-plan: N\nFinal answer: ash\nBecause: the dearest one [o2.r1]"

    dearest = "select name, rent from site order by rent desc"
    told, sent, code = edit("--edit", "2", "--action", dearest, *both, says=says, capsys=capsys)
    assert code == 0 and len(sent) == 1
    assert (told["before"]["answer"], told["after"]["answer"]) == ("oak", "ash")
    assert [change["how"] for change in told["changes"]] == ["reused", "edited"]
    assert (told["usage"]["calls"], told["usage"]["actions"]) == (1, 1), "what was replayed was not done again"
    assert (
        "name, rent" not in sent[0]["messages"][0]["content"] and "### Tool: sql" in sent[0]["messages"][0]["content"]
    )


def test_an_observation_set_by_hand_needs_no_data_and_the_model_is_told_what_is_not_at_hand(
    data: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    both = [*data["sql"], *data["passages"]]
    record([PLAN + NOTE, RENTS, "Re-plan: N\nFinal answer: oak\nBecause: [o2.r2]"], *both)
    rents = ["--edit", "2", "--observation", "ash 300, oak 500"]
    told, sent, _ = edit(
        *rents, says=lambda prompt: "Re-plan: N\nFinal answer: ash\nBecause: 300 [o2.r1]", capsys=capsys
    )
    assert told["after"]["answer"] == "ash" and len(sent) == 1 and told["usage"]["actions"] == 0
    assert told["changes"][1]["after"].endswith("-> ash 300, oak 500")
    assert "### Tool: sql\nNot at hand now: it cannot be used." in sent[0]["messages"][0]["content"]
    told, _, code = edit(*rents, says=lambda prompt: RENTS, capsys=capsys)
    assert code == 2
    assert told["error"] == "To go on, the tool sql is needed: name its data again, with --db."
    assert told["usage"]["calls"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "reply"), [("freight", FREIGHT), ("whatif", WHATIF)])
def test_ones_own_tools_and_a_decision_model_are_named_again(
    tool: str, reply: str, data: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*data["sql"], *data[tool]]
    read = PLAN + RENTS.removeprefix("Re-plan: N\n")
    record([read, reply, "Re-plan: N\nFinal answer: oak\nBecause: [o1.r2]"], *options)
    moves = chain([reply], repeat("Re-plan: N\nFinal answer: elm\nBecause: [o2.r1]"))
    again = ["--edit", "1", "--action", "select name, rent from site where name <> 'oak'"]
    told, sent, code = edit(*again, *options, says=lambda prompt: next(moves), capsys=capsys)
    assert code == 0 and len(sent) == {"freight": 2, "whatif": 3}[tool], "a row of oak does not speak for elm"
    assert {"freight": "[o2.r1] | Ghent | 140", "whatif": "[o2.r1] | oak"}[tool] in sent[1]["messages"][-1]["content"]
    told, _, code = edit(*again, *data["sql"], says=lambda prompt: reply, capsys=capsys)
    assert code == 2
    assert {"freight": "with --tools.", "whatif": "with --model."}[tool] in told["error"]
