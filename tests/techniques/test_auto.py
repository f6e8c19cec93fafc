"""``auto`` takes what fits, and says so."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line as main
from decisor.lab.game24 import Puzzle, make_puzzle_question, makes_24
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.techniques.auto import Auto
from decisor.trace.events import LLMCall, TechniqueChoice
from decisor.types import Action, Environment, Observation
from policies.game24 import Game24LLM
from servers.openai_server import serve_threaded


@dataclass(frozen=True)
class Has:
    """An environment of which only the names of the tools matter."""

    names: tuple[str, ...]

    def tools(self) -> tuple[str, ...]:
        return self.names

    def describe(self) -> str:
        return ""

    async def step(self, action: Action) -> Observation:
        return Observation()

    def fork(self) -> Environment:
        return self


@pytest.mark.parametrize(
    ("tools", "calls", "name"),
    [
        (("sql", "whatif"), None, "exact"),
        (("sql",), None, "plan_rag"),
        (("passages", "cypher"), None, "plan_rag"),
        (("passages", "calculator"), None, "reasoning_dag"),
        (("passages", "weather"), None, "radagent"),
        (("calculator",), None, "radagent"),
        (("weather",), 29, "best_of_n"),
        (("weather",), 7, "cot"),
    ],
)
def test_it_takes_the_simplest_that_fits(tools: tuple[str, ...], calls: int | None, name: str) -> None:
    run = Run(Game24LLM(), Has(tools), Budget(Limits(calls=calls)))
    assert Auto().choose(run)[0] == name


async def test_where_success_can_be_checked_it_stops_at_the_first_and_judges_nothing() -> None:
    run = Run(Game24LLM(1, skill=4, spread=0.5, last=9), Puzzle.of("4 5 6 10"))
    decision = await Auto(check=lambda answer: makes_24(answer, "4 5 6 10"))(make_puzzle_question("4 5 6 10"), run)
    assert makes_24(decision.answer, "4 5 6 10")
    prompts = [call.messages[-1].content for call in run.trace.of(LLMCall)]
    assert not any("# Attempt B" in prompt for prompt in prompts)
    assert run.trace.of(TechniqueChoice)[0].technique == "radagent"


def test_a_run_of_auto_says_what_it_took_and_can_be_gone_on_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace, site = str(tmp_path / "run.jsonl"), tmp_path / "site.db"
    with closing(sqlite3.connect(site)) as database, database:
        database.executescript("CREATE TABLE site (name TEXT); INSERT INTO site VALUES ('oak'), ('elm')")

    def reply(request: dict[str, Any]) -> str:
        if "[o1.r1]" in request["messages"][-1]["content"]:
            return "Final answer: oak\nBecause: it is there [o1.r1]"
        return "Plan: [Step 1: look]\nThought: x\nAction: sql\nAction input: SELECT name FROM site"

    with serve_threaded(reply) as url:
        words = ["ask", "Which?", "--db", str(site), "-t", "auto", "--llm", f"m@{url}"]
        assert main([*words, "--trace", trace]) == 0
        assert "auto takes plan_rag. There is a database" in capsys.readouterr().err
        assert main(["trace", trace]) == 0
        assert "auto takes plan_rag. There is a database" in capsys.readouterr().out
        assert main([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["chosen"] == "plan_rag"
        assert main(["trace", trace, "--edit", "1", "--db", str(site), "--llm", f"m@{url}", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["after"]["answer"] == "oak"


@pytest.mark.slow
def test_a_question_with_a_decision_model_asks_no_llm_even_where_there_is_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serve_threaded(lambda request: "Final answer: none") as url:
        for llm in ("none", f"m@{url}"):
            assert main(["ask", "--example", "trade", "-t", "auto", "--llm", llm, "--json"]) == 0
            told = json.loads(capsys.readouterr().out)
            assert told["answer"] == told["ranking"]["options"][0]["name"] and told["usage"]["calls"] == 0
