"""What a benchmark's own LLMs cost: counted beside the technique's usage, bought once, told in reports."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from decisor.cli import run_command_line
from decisor.errors import LLMError
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.runner import Suite, evaluate_suite
from decisor.lab.evaluation.store import OUTCOME, RunStore, open_store
from decisor.lab.judges import OwnLLM
from decisor.lab.toolbench.bench import ToolBenchBench
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.runtime.run import Run
from decisor.system.serialization import json_text
from decisor.trace.events import AnswerSnapshot
from decisor.types import Action, Decision, Question, Usage
from servers.openai_server import serve, serve_threaded

FINISH = 'Thought: done\nAction: Finish\nAction input: {"return_type": "give_answer", "final_answer": "Rain"}'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two tasks, one API, nothing recorded."""
    folder = tmp_path / "toolbench"
    folder.mkdir()
    api = {
        "category_name": "Weather",
        "tool_name": "sky",
        "api_name": "now",
        "api_description": "The weather.",
        "required_parameters": [{"name": "city", "type": "STRING", "description": "", "default": ""}],
        "optional_parameters": [],
    }
    rows = [
        {
            "query_id": n,
            "split": "t",
            "query": f"What is the weather in Ghent? ({n})",
            "api_list": [api],
            "relevant APIs": [],
        }
        for n in range(2)
    ]
    (folder / "test_queries.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (folder / "recorded_calls.jsonl.gz").write_bytes(gzip.compress(b""))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    found = open_store(tmp_path / "run.db")
    yield found
    found.close()


async def looks(question: Question, run: Run) -> Decision:
    """Looks twice at the same, then hands in what the LLM says; three answers are held on the way."""
    for _ in range(2):
        await run.act(Action("now_for_sky", '{"city": "Ghent"}'))
    for calls, answer in ((1, "Snow"), (2, "Rain"), (3, "Snow")):
        run.trace.add(AnswerSnapshot(calls, answer), run.span_id)
    return Decision(await run.ask(question.text, str))


async def looks_too(question: Question, run: Run) -> Decision:
    return await looks(question, run)


def reply(request: dict[str, Any]) -> str:
    """The technique's model, the simulator and the judge in one."""
    prompt = str(request["messages"][-1]["content"])
    if "stand in for a web API" in str(request["messages"][-1]["content"]):
        return '{"error": "", "response": "rain"}'
    if "Final answer" in prompt:
        return "Verdict: solved" if "> Rain" in prompt else "Verdict: unsolved"
    return "Verdict: solvable" if "\nTools\n" in prompt else "Rain"


async def test_judge_and_simulator_are_counted_beside_the_technique_and_bought_once(
    data: Path, store: RunStore
) -> None:
    asked: list[str] = []

    def counting(request: dict[str, Any]) -> str:
        asked.append(f"{request['model']}: {request['messages'][-1]['content']}")
        return reply(request)

    async with serve(counting) as url:

        def suite() -> Suite:
            bench = ToolBenchBench(data, judge=f"judge@{url} price=10,10", simulate=f"sim@{url}", evaluations=2)
            loops = {"looks": looks, "looks_too": looks_too}
            return Suite({"toolbench": bench}, loops, {"m": OpenAICompatible("m", url)}, cases_at_once=1)

        tally = await evaluate_suite(suite(), store)
        first = store.outcomes()
        calls = len(asked)
        assert store.reopen(["right"]) == 4
        await evaluate_suite(suite(), store)
    assert tally.states == {"right": 4} and len(asked) == calls, "running a case again buys nothing again"
    assert [one.beside for one in store.outcomes()] == [one.beside for one in first]
    assert tally.usage.calls == calls, "what was paid is told with them"
    for one in first:
        assert one.usage.calls == 1, "the technique's own call, and nothing else"
        assert one.beside["simulator"].calls == 2
        # Rain: two evaluations, solved at once. Snow, held twice: two evaluations of two calls, once.
        assert one.beside["judge"].calls == 2 + 4
        assert one.beside["judge"].dollars and one.beside["judge"].dollars > 0
        assert one.snapshots == {1: False, 2: True, 3: False}
    by_model = {name: sum(text.startswith(f"{name}: ") for text in asked) for name in ("m", "sim", "judge")}
    assert by_model == {"m": 2, "sim": 1, "judge": 2 * 6}, "both techniques and both looks share replies"


async def test_a_judge_that_will_answer_nothing_stops_the_run_and_loses_nothing(data: Path, store: RunStore) -> None:
    quota = True

    def judging(request: dict[str, Any]) -> str:
        if request["model"] == "judge" and quota:
            raise web.HTTPUnauthorized(text="no key")
        return reply(request)

    async with serve(judging) as url:

        def suite() -> Suite:
            bench = ToolBenchBench(data, judge=f"judge@{url}", simulate=f"sim@{url}", evaluations=1)
            return Suite({"toolbench": bench}, {"looks": looks}, {"m": OpenAICompatible("m", url)}, cases_at_once=1)

        with pytest.raises(LLMError):
            await evaluate_suite(suite(), store)
        assert store.outcomes() == []
        quota = False
        assert (await evaluate_suite(suite(), store)).states == {"right": 2}


def test_an_outcome_of_an_older_store_has_nothing_beside() -> None:
    outcome = Outcome("b", "1", "rag", "m", 0, "right", beside={"judge": Usage(2, 10, 5, 0.1)})
    assert OUTCOME.decode(json_text(outcome)) == outcome
    row = json.loads(json_text(outcome))
    del row["beside"]
    assert OUTCOME.decode(json.dumps(row)).beside == {}


async def test_a_judge_named_wrongly_is_told_before_any_call(data: Path, store: RunStore) -> None:
    from decisor.errors import SetupError

    with pytest.raises(SetupError, match="names no LLM"):
        OwnLLM("none").for_case()


def test_every_form_of_a_report_tells_it_apart(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "cli.db")
    with serve_threaded(lambda request: reply(request) if "functions" not in str(request) else FINISH) as url:
        words = [
            "eval",
            "-b",
            f"toolbench data='{data}' judge='judge@{url} price=10,10' evaluations=1",
            "-t",
            "cot",
            "--llm",
            f"m@{url} price=1,1",
            "--store",
            path,
        ]
        assert run_command_line(words) == 0
    capsys.readouterr()
    for words, told in (
        ([], "judge 1 call"),
        (["--markdown"], "judge 1 call"),
        (["--csv"], "judge_calls,judge_tokens,judge_dollars"),
        (["--json"], '"beside": {"judge": {"calls": 2'),
    ):
        assert run_command_line(["report", path, *words]) == 0
        out = capsys.readouterr().out
        assert told in " ".join(out.split()), out
    assert run_command_line(["report", path, "--html", str(tmp_path / "r.html")]) == 0
    assert "judge 1 call" in (tmp_path / "r.html").read_text()
