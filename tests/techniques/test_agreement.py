"""Agreement of several attempts: what counts as the same result, who decides, and what is told."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from decisor.databases.sql import SqlTool
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques.agent import Agent
from decisor.techniques.shared.agreement import Look, decide_by_agreement, group_by_result
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import Conclusion, Span
from decisor.types import Completion, Decision, Message, Option, Question, Ranking, Sampling, ToolCall, Usage


def decided(answer: str, outcomes: Mapping[str, float] | None = None, measure: str = "cost") -> Decision:
    options = tuple(Option(name, outcome) for name, outcome in (outcomes or {}).items())
    return Decision(answer, ranking=Ranking(measure, "min", options) if options else None)


OAK = decided("oak", {"oak": 80.0, "elm": 100.0})


@dataclass
class Attempts:
    """Attempts that end in decisions in order, and keep the words of a look and the seeds they were asked with."""

    decisions: list[Decision]
    words: list[str] = field(default_factory=list)
    seeds: list[int | None] = field(default_factory=list)

    async def __call__(self, run: Run) -> tuple[Decision, Look]:
        self.seeds.append(run.asking.seed)
        decision = self.decisions[len(self.seeds) - 1]

        async def look(words: str, run: Run) -> Decision:
            self.words += [decision.answer, words]
            return self.decisions[-1]

        return decision, look


def agree(*decisions: Decision, attempts: int = 3) -> tuple[Decision, Attempts, Run]:
    technique, run = Attempts(list(decisions)), Run(ScriptedLLM([]), Toolbox([]))
    return asyncio.run(decide_by_agreement(technique, attempts, run)), technique, run


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (decided("Oak ", {"elm": 100.00000001, "oak": 80.0}, "price"), True),
        (decided("oak", {"oak": 80.0, "elm": 100.1}), False),
        (decided("oak", {"oak": 80.0}), True),
        (decided("oak"), True),
        (decided("elm", {"elm": 80.0, "oak": 100.0}), False),
    ],
)
def test_results_are_compared_as_tables(other: Decision, same: bool) -> None:
    assert len(group_by_result([OAK, other])) == (1 if same else 2)


def test_all_agree() -> None:
    decision, technique, run = agree(OAK, OAK, OAK)
    assert (decision.answer, decision.reasons) == ("oak", ("3 of 3 attempts computed the same result.",))
    assert technique.seeds == [None, 2, 3], "a journal tells the attempts apart by their numbers"
    spans = [entry.event.name for entry in run.trace.entries if isinstance(entry.event, Span)]
    assert spans == ["attempt 1 of 3", "attempt 2 of 3", "attempt 3 of 3"]
    assert [entry.span for entry in run.trace.entries if isinstance(entry.event, Conclusion)] == [0]


def test_the_majority_decides_and_the_rows_that_differ_are_told() -> None:
    decision, technique, _ = agree(decided("elm", {"elm": 71.4, "oak": 80.0}), OAK, OAK)
    assert (decision.answer, technique.words) == ("oak", [])
    assert decision.reasons == (
        "2 of 3 attempts agree on this. The results:\n"
        "- oak (2 times) by cost: elm 100\n"
        "- elm (1 times) by cost: elm 71.4",
    )


def test_without_a_majority_there_is_one_more_look() -> None:
    ash, elm = decided("ash", {"ash": 1.0, "oak": 80.0}), decided("elm", {"elm": 71.4, "oak": 80.0})
    decision, technique, _ = agree(ash, elm, OAK, OAK)
    assert (decision.answer, len(technique.seeds)) == ("oak", 3)
    first, words = technique.words
    assert first == "ash"
    assert words.startswith("The question was computed in several ways")
    assert "- elm (1 times) by cost: elm 71.4" in words
    assert decision.reasons[0].startswith("3 attempts did not agree; one more look took the result of 1 of them.")


COST = "SELECT name, cost FROM site"
LEAST, MOST, LATER = f"{COST} ORDER BY cost", f"{COST} ORDER BY cost DESC", f"{COST} WHERE cost > 80 ORDER BY cost"


@dataclass
class Caller:
    """A model of tool calls whose attempts query in turn, and which answers by the first row."""

    queries: list[str]
    prompts: list[Sequence[Message]] = field(default_factory=list)
    name: str = "caller"
    price: None = None

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.prompts.append(list(messages))
        told = messages[-1]
        if told.role == "user" and "several ways" not in told.content:
            calls: tuple[tuple[str, object], ...] = (
                ("plan", {"steps": ["cost"]}),
                ("sql", {"query": self.queries.pop()}),
            )
        else:
            record, name, *_ = (
                next(text for text in reversed(messages) if text.role == "tool" and "[o" in text.content)
                .content.splitlines()[1]
                .split(" | ")
            )
            calls = (("decide", {"answer": name, "because": f"It is the first {record}."}),)
        written = tuple(ToolCall(f"c{at}", call, json.dumps(value)) for at, (call, value) in enumerate(calls))
        return Completion(("",), Usage(1, 100, 10), turn=Message("assistant", "", written))


def test_the_look_goes_on_in_the_conversation_of_one_attempt(tmp_path: Path) -> None:
    path = tmp_path / "sites.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE site (name TEXT, cost REAL)")
        connection.executemany("INSERT INTO site VALUES (?, ?)", [("oak", 80.0), ("elm", 100.0), ("ash", 120.0)])

    async def ask(llm: Caller) -> Decision:
        tool = await SqlTool.open(f"sqlite:///{path}")
        try:
            return await Agent(agree=3, objections=False)(Question("Which?"), Run(llm, Toolbox([tool])))
        finally:
            await tool.close()

    llm = Caller([LATER, MOST, LEAST])
    decision = asyncio.run(ask(llm))
    last = llm.prompts[-1]
    assert len(llm.prompts) == 7, "two calls an attempt and one for the look"
    assert [turn.role for turn in last[-3:]] == ["assistant", "tool", "user"], "behind the decision of an attempt"
    assert all(query in last[-1].content for query in (LEAST, MOST, LATER))
    assert "one more look took the result of 1 of them" in decision.reasons[-1]
