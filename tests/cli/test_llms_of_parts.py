"""Settings that name an LLM for a part of a technique, and the list of settings."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.session.run_setup import LLMs, configure_technique
from servers.openai_server import serve_threaded


def test_the_judge_of_a_search_has_an_llm_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def judge(body: dict[str, Any]) -> str:
        judged.append(body["messages"][-1]["content"])
        return "Better: B"

    judged: list[str] = []
    (tmp_path / "notes.txt").write_text("The site elm is the cheapest.")
    answers = iter(f"Thought: x\nFinal answer: {name}" for name in ("elm", "oak", "ash", "elm"))
    with serve_threaded(lambda body: next(answers)) as url, serve_threaded(judge) as other:
        words = ["ask", "Which site?", "--docs", str(tmp_path), "-t", "best_of_n", "-o", "calling=text", "-o", "n=2"]
        assert run_command_line([*words, "-o", f"judge_llm=j@{other}", "--llm", f"m@{url}"]) == 0
    assert len(judged) == 2 and all("Better: A, or" in one for one in judged)


def test_every_setting_that_is_listed_can_be_given_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["techniques", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    told = {(row["name"], setting["name"]) for row in rows for setting in row["settings"]}
    assert {("radagent", "judge_llm"), ("reasoning_dag", "critic_llm"), ("radagent", "tau")} <= told
    assert not [setting for _, setting in told if setting in ("check", "judge", "experts")], "these are for Python"
    for row in rows:
        for setting in row["settings"]:
            given = "m@http://127.0.0.1:9/v1" if setting["type"] == "MODEL[@URL]" else str(setting["default"])
            asyncio.run(configure_technique(row["name"], {setting["name"]: given}, LLMs()))


def test_the_price_of_the_llm_is_not_taken_for_that_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECISOR_PRICE", "1,2")
    given = {"critic_llm": "small@http://127.0.0.1:9/v1", "writer_llm": "other@http://127.0.0.1:9/v1 price=3,4"}
    llms = LLMs()
    asyncio.run(configure_technique("reasoning_dag", given, llms))
    critic, writer = llms.by_spec.values()
    assert isinstance(critic, OpenAICompatible) and critic.price == Price(0, 0)  # it runs here
    assert isinstance(writer, OpenAICompatible) and writer.price == Price(3, 4)
