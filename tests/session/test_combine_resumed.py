"""The tool ``combine`` in a run that goes on where another one ended."""

from pathlib import Path

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.budget import Limits
from decisor.session.data import ask_once
from decisor.session.request import Options, read_options
from decisor.session.sources import build_sources
from decisor.trace.events import ActionResult
from session.conftest import database

LOOKS = (
    "Thought: here\nAction: sites\nInput: SELECT * FROM site",
    "Thought: there\nAction: rents\nInput: SELECT name AS town, rent AS euros FROM site",
)
JOIN = (
    "Thought: join\nAction: combine\nInput: SELECT name, rent + euros AS cost FROM o1 JOIN o2 ON name = town ORDER BY 2"
)


@pytest.mark.slow
async def test_a_resumed_run_combines_what_it_fetched_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database(tmp_path / "sites.db", [("oak", 700.0), ("elm", 400.0)])
    database(tmp_path / "rents.db", [("oak", 1.0), ("elm", 2.0)])
    sources = build_sources(db=["sites.db", "rents.db"])
    options: Options = {"technique": "iter_rag", "settings": {"calling": "text"}}
    llm = ScriptedLLM([*LOOKS, "Thought: no more\nFinal answer: none"])
    first = await ask_once(sources, *read_options("Which?", {**options, "llm": llm, "limits": Limits(calls=3)}))
    ends = [at for at, entry in enumerate(first.trace) if isinstance(entry.event, ActionResult)]
    rest = ScriptedLLM([JOIN, "Thought: elm\nFinal answer: elm [o3.r1]"])
    past = first.trace[: ends[1] + 1]
    more = read_options("Which?", {**options, "llm": rest, "limits": Limits(calls=9)})
    second = await ask_once(sources, *more, past=past)
    assert second.answer == "elm"
    assert [record.fields for record in second.records] == [{"name": "elm", "cost": 402}]
