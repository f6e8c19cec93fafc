"""Techniques that cannot work on a benchmark are told and left out, and the others go on."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from decisor.cli import run_command_line
from decisor.errors import LLMError, SetupError
from decisor.lab.evaluation.runner import Suite, evaluate_suite
from decisor.lab.evaluation.store import RunStore, open_store
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.techniques import TECHNIQUES, build_technique
from decisor.types import LLM, Action, Decision, Message, Question
from evaluation.small import SmallBench, model
from servers.openai_server import serve_threaded

READERS = ("rag", "self_ask", "ircot", "iter_retgen", "react", "self_rag", "rq_rag", "furepa")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    found = open_store(tmp_path / "run.db")
    yield found
    found.close()


async def asks(question: Question, run: Run) -> Decision:
    return Decision(await run.ask(question.text, str))


async def needs_a_graph(question: Question, run: Run) -> Decision:
    if "cypher" not in run.env.tools():
        raise SetupError("This needs a graph.")
    return await asks(question, run)


async def notices_late(question: Question, run: Run) -> Decision:
    """As those that read log-probabilities do."""
    await run.act(Action("sql", "select name from river"))
    if "(0)" not in question.text:
        raise SetupError("This LLM tells no probabilities.")
    return Decision("bel")


async def test_what_cannot_work_is_noticed_before_any_call_and_the_others_go_on(store: RunStore) -> None:
    asked: list[str] = []

    def answer(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].content)
        return "bel"

    models: dict[str, LLM] = {"m": ScriptedLLM(answer, name="m")}
    suite = Suite({"small": SmallBench()}, {"graph": needs_a_graph, "asks": asks}, models)
    tally = await evaluate_suite(suite, store)
    assert tally.left_out == {("small", "graph"): "This needs a graph."}
    assert (tally.done, tally.total, len(asked)) == (4, 4, 4)
    assert {outcome.technique for outcome in store.outcomes()} == {"asks"}


@pytest.mark.parametrize("at_once", [1, 8])
async def test_what_is_noticed_on_the_way_leaves_out_the_rest_and_keeps_what_was_finished(
    at_once: int, store: RunStore
) -> None:
    models: dict[str, LLM] = {"m": ScriptedLLM(lambda messages: "bel", name="m")}
    suite = Suite({"small": SmallBench()}, {"late": notices_late, "asks": asks}, models, cases_at_once=at_once)
    tally = await evaluate_suite(suite, store)
    assert tally.left_out == {("small", "late"): "This LLM tells no probabilities."}
    assert (tally.done, tally.total, tally.states) == (5, 5, {"right": 5})
    assert Counter(outcome.technique for outcome in store.outcomes()) == {"asks": 4, "late": 1}


async def test_where_nothing_applies_the_first_reason_is_an_error(store: RunStore) -> None:
    suite = Suite({"small": SmallBench()}, {"graph": needs_a_graph}, {"m": ScriptedLLM(["bel"], name="m")})
    with pytest.raises(SetupError, match=r"graph on small: This needs a graph\."):
        await evaluate_suite(suite, store)


@pytest.mark.parametrize("name", TECHNIQUES)
async def test_techniques_that_read_passages_do_not_fit_a_database(name: str, store: RunStore) -> None:
    """And none of them makes a call to find that out: the LLM has no reply to give."""
    llm = ScriptedLLM([], name="m")
    suite = Suite({"small": SmallBench()}, {name: build_technique(name)}, {"m": llm}, cases_at_once=1)
    if name in {*READERS, "exact", "heuristic", "model_first"}:
        with pytest.raises(SetupError, match="reads passages, and the tools are: sql" if name in READERS else name):
            await evaluate_suite(suite, store)
        assert llm.seen == []
    else:
        with pytest.raises(LLMError, match="one more was asked for"):
            await evaluate_suite(suite, store)


def test_the_command_tells_one_line_for_each_and_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve_threaded(model) as url:
        words = [
            "eval",
            "-b",
            "small",
            "-t",
            "plan_rag",
            "-t",
            "rag k=3",
            "-t",
            "exact",
            "--llm",
            f"m@{url}",
            "--store",
            str(tmp_path / "run.db"),
        ]
        assert run_command_line(words) == 0
        first = capsys.readouterr()
        assert run_command_line(words) == 0
    assert "decisor: rag k=3 on small is left out: This technique reads passages, and the tools are: sql." in first.err
    assert "decisor: exact on small is left out: exact needs a decision model" in first.err
    assert "4 of 4 cases" in first.err
    assert [line.split()[1] for line in first.out.splitlines()] == ["technique", "plan_rag"]
    assert capsys.readouterr().out == first.out
