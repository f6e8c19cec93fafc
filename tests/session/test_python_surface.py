"""What a program gets of a run: rows as tables, SQL, events as a loop, objects of its own types, its own words."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from pydantic import BaseModel

import decisor
from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.session.result import build_recorded_result
from decisor.trace.events import Note, TraceEntry, events_of
from decisor.trace.file import read_trace
from decisor.types import Message
from session.conftest import QUERY, planner


class Site(BaseModel):
    name: str
    rent: float
    saved: float


@dataclass
class Rent:
    name: str
    rent: float


def filler(*objects: str) -> ScriptedLLM:
    """Decides as ``planner``, then replies with the objects in order, the last one again and again."""
    decides, left = planner().replies, list(objects)

    def reply(messages: Sequence[Message]) -> str | Message:
        if "JSON schema:" not in messages[0].content:
            return decides(messages)  # type: ignore[operator]
        return left.pop(0) if len(left) > 1 else left[0]

    return ScriptedLLM(reply)


def test_all_rows_of_a_result_are_a_table_of_each_library(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, llm=planner())
    rows = [{"name": "elm", "rent": 400.0}, {"name": "oak", "rent": 700.0}]
    table = result.table("o1")
    assert (table.rows, table.columns, len(table)) == (rows, ["name", "rent"], 2)
    assert table.to_pandas().equals(pandas.DataFrame(rows))
    assert table.to_polars().equals(polars.DataFrame(rows))
    # Polars reads what Arrow's own interface hands over, with the types of the columns.
    assert polars.DataFrame(table).schema == polars.Schema({"name": polars.String, "rent": polars.Float64})
    assert result.sql == f"-- o1\n{QUERY}"
    chart = result.chart()
    assert chart is not None and "rent" in chart.title and result.to_dict()["answer"] == "elm"
    result.save("run.jsonl")
    recorded = build_recorded_result(read_trace(Path("run.jsonl")))
    assert (recorded.sql, recorded.table("o1").rows, recorded.output) == (result.sql, rows, None)
    with pytest.raises(SetupError, match="no result 'o9' with rows; cited are o1"):
        result.table("o9")


def test_a_block_without_async_asks_and_loops_over_events_on_one_opening(sites: Path) -> None:
    before = {*threading.enumerate()}
    with decisor.open(db=sites) as data:
        assert data.ask("Which site?", llm=planner()).answer == "elm"
        stream = data.stream("Which site?", llm=planner())
        with pytest.raises(SetupError, match="has not ended"):
            _ = stream.result
        entries = list(stream)
        assert (stream.result.answer, entries) == ("elm", list(stream.result.trace))
        for _ in data.stream("Which site?", llm=planner()):
            break  # ends that run
        assert stream.result.ask("And now?").answer == "elm"
    # Python 3.11 watches each worker's end in a thread of its own, which ends a moment after the worker.
    for one in {*threading.enumerate()} - before:
        one.join(10)
    assert {*threading.enumerate()} <= before
    with pytest.raises(SetupError, match=r"nothing\.db"), decisor.open(db="nothing.db"):
        pass


async def test_events_are_looped_over_while_the_run_goes_on(sites: Path) -> None:
    heard: list[TraceEntry] = []
    async with decisor.open(db=sites) as data:
        stream = data.stream("Which site?", llm=planner(), on_event=heard.append)
        entries = [entry async for entry in stream]
        assert entries == heard == list(stream.result.trace)
        with pytest.raises(SetupError, match="async for"):
            list(stream)
        failing = data.stream("Which site?", llm=planner(), technique="exact")
        with pytest.raises(SetupError, match="exact computes from a decision model"):
            _ = [entry async for entry in failing]
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_an_output_type_is_filled_and_a_figure_of_no_record_goes_back(sites: Path) -> None:
    right = '{"name": "elm", "rent": 400, "saved": 300}'
    llm = filler('{"name": "elm", "rent": 410, "saved": 300}', '{"name": "elm", "rent": "x"}', f"```json\n{right}\n```")
    result = decisor.ask("Which site?", db=sites, llm=llm, output_type=Site)
    # 300 = 700 - 400 stands in no record, and is computed from two that the answer cites.
    assert result.output == Site(name="elm", rent=400, saved=300)
    assert "410 stands in no record" in llm.seen[-2] and "rent: Input should be" in llm.seen[-1]
    assert decisor.ask("Which site?", db=sites, llm=filler(right), output_type=Rent).output == Rent("elm", 400.0)


def test_an_output_that_stays_wrong_is_none_and_the_trace_says_why(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, llm=filler('{"name": "elm", "rent": 12345}'), output_type=Rent)
    notes = [note.text for note in events_of(result.trace, Note)]
    assert (result.answer, result.output) == ("elm", None) and any("12345 stands in no record" in one for one in notes)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "No data source given. Use db=, graph=, docs= or tools=, or try: decisor demo"),
        ({"db": "sites.db", "llm": "none", "technique": "plan_rag"}, 'name one with llm="MODEL[@URL]", or set'),
        ({"db": "sites.db", "modle": "x.toml"}, "There is no option modle. Did you mean model?"),
        ({"db": "sites.db", "output_type": 3}, "output_type takes a pydantic model or a dataclass, not 3."),
        ({"db": "sites.db", "llm": "none", "technique": "heuristic", "output_type": Rent}, "An LLM fills in"),
    ],
)
def test_messages_name_the_words_of_python(sites: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SetupError) as told:
        decisor.ask("Which site?", **options)
    assert complaint in str(told.value) and "--" not in str(told.value)


def test_a_scripted_llm_is_heard_while_it_writes(sites: Path) -> None:
    texts: list[str] = []
    decisor.ask("Which site?", db=sites, llm=planner(), on_text=lambda writing: texts.append(writing.text))
    assert len(texts) > 10 and "Plan:".startswith(texts[0].strip()) and "Final answer: elm" in texts[-1]
