"""``decisor.ask`` and ``await data.ask`` in a cell of a real kernel: what a notebook shows while it runs, and after."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="needs ipykernel and nbclient")
nbclient = pytest.importorskip("nbclient", reason="needs ipykernel and nbclient")
nbformat = pytest.importorskip("nbformat", reason="needs ipykernel and nbclient")
pytestmark = pytest.mark.slow

SITES = """
import sqlite3, time, decisor
with sqlite3.connect("sites.db") as database:
    database.execute("CREATE TABLE site (name TEXT, rent REAL)")
    database.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 700.0), ("elm", 400.0)])
database.close()

PLAN = ("Plan: [Step 1: compare the rents, Step 2: choose <b>one</b>]\\nThought: t\\nAction: sql\\n"
        "Action input: SELECT name, rent FROM site ORDER BY rent")

def reply(messages):
    time.sleep(0.5)
    if "o1.r1" not in messages[-1].content:
        return PLAN
    return "Final answer: elm\\nBecause: it costs 400 [o1.r1], oak 700 [o1.r2]"

def ask(**options):
    return decisor.ask("Which site?", db="sqlite:///sites.db", llm=decisor.ScriptedLLM(reply), technique="plan_rag",
                       settings={"calling": "text"}, **options)
"""


def executed(folder: Path, *cells: str) -> tuple[Any, list[tuple[str, dict[str, str]]]]:
    """The notebook, and every message in which an output was shown or written anew."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    messages = []
    process = client.process_message

    def hear(message: Any, cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            messages.append((message["msg_type"], message["content"]["data"]))
        return process(message, cell, index)

    client.process_message = hear
    client.execute()
    return notebook, messages


def outputs(cell: Any) -> Sequence[Any]:
    return [one for one in cell.outputs if one.output_type != "stream"]


def test_a_cell_shows_the_run_while_it_happens_in_one_output_and_then_the_result(tmp_path: Path) -> None:
    notebook, messages = executed(tmp_path, SITES, "ask()")
    kinds = [kind for kind, _ in messages]
    assert kinds[0] == "display_data" and set(kinds[1:]) == {"update_display_data"}
    pages = [data["text/html"] for _, data in messages]
    assert any("▸ 1. compare the rents" in page and "Decisor: waiting for" in page for page in pages)
    assert any("SELECT name, rent FROM site ORDER BY rent" in page and "2 rows" in page for page in pages[:-1])
    progress, result = outputs(notebook.cells[1])
    last = progress.data["text/html"]
    assert "✓ 2. choose &lt;b&gt;one&lt;/b&gt;" in last and "Decisor: done" in last and "<script" not in last
    assert "plan_rag: 1 action, 2 LLM calls to scripted" in last
    assert "✓ 1. compare the rents" in progress.data["text/plain"]
    assert 'class="answer">elm<' in result.data["text/html"]


def test_who_hears_the_events_gets_no_view_and_a_follow_up_gets_its_own(tmp_path: Path) -> None:
    notebook, messages = executed(
        tmp_path,
        SITES,
        "events = []\nresult = ask(on_event=events.append)\nlen(events) > 5",
        "again = result.ask('And oak?', llm=decisor.ScriptedLLM(reply))\nagain.answer",
    )
    assert [one.data["text/plain"] for one in outputs(notebook.cells[1])] == ["True"]
    progress, answer = outputs(notebook.cells[2])
    assert "Decisor: done" in progress.data["text/html"] and answer.data["text/plain"] == "'elm'"
    assert [kind for kind, _ in messages].count("display_data") == 1


def test_data_that_are_open_show_each_run_that_a_cell_waits_for(tmp_path: Path) -> None:
    cell = """async with decisor.open(db="sqlite:///sites.db") as data:
    wish = {"technique": "plan_rag", "settings": {"calling": "text"}}
    llms = [decisor.ScriptedLLM(one) for one in (reply, reply, [PLAN, "Final answer: oak\\nBecause: so it is [o2.r2]"])]
    result = await data.ask("Which site?", llm=llms[0], **wish)
    more = await asyncio.gather(data.ask("Quietly?", llm=llms[1], on_event=lambda entry: None, **wish),
                                result.ask_async("And oak?", llm=llms[2], **wish))
result"""
    notebook, messages = executed(tmp_path, f"import asyncio{SITES}", cell)
    first, further, result = outputs(notebook.cells[1])
    for one in (first, further):
        assert "Decisor: done" in one.data["text/html"] and "✓ 1. compare the rents" in one.data["text/html"]
    assert any("▸ 1. compare the rents" in data["text/html"] for _, data in messages)
    assert [kind for kind, _ in messages].count("display_data") == 2
    assert 'class="answer">elm<' in result.data["text/html"]


def test_a_run_that_fails_leaves_what_it_had_and_says_that_it_ended(tmp_path: Path) -> None:
    cell = (
        "try:\n    decisor.ask('Which?', db='sqlite:///sites.db', llm=decisor.ScriptedLLM([]))\n"
        "except decisor.LLMError as error:\n    print(error)"
    )
    notebook, _ = executed(tmp_path, SITES, cell)
    [progress] = outputs(notebook.cells[1])
    assert "Decisor: ended by an error" in progress.data["text/html"]
    [stream] = [one for one in notebook.cells[1].outputs if one.output_type == "stream"]
    assert "The script has 0 replies" in stream.text


def test_without_a_notebook_nothing_is_shown_and_ipython_is_not_imported(tmp_path: Path) -> None:
    program = SITES + "import sys\nprint(ask().answer, 'IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"elm False\n", done.stdout)
