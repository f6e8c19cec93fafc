"""Techniques of an evaluation whose judge or experts have LLMs of their own."""

import asyncio
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from decisor.errors import LLMError, SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.evaluation.runner import evaluate_suite
from decisor.lab.evaluation.store import open_store
from decisor.lab.evaluation.suite import SuiteRequest, open_suite
from evaluation import small
from servers.openai_server import serve, serve_app

assert small.__name__ == "evaluation.small"  # it puts itself on the list of benchmarks by being imported


def run(path: Path, wanted: SuiteRequest) -> list[Outcome]:
    async def once() -> None:
        await evaluate_suite(open_suite(wanted, {}), store)

    store = open_store(path)
    try:
        asyncio.run(once())
        return list(store.each_outcome())
    finally:
        store.close()


def wanted(model: str, judge: str, technique: str = "best_of_n n=2") -> SuiteRequest:
    return SuiteRequest(
        benches=("small many=1",),
        techniques=(f"{technique} judge_llm='{judge} price=1,1'",),
        models=(f"m@{model} price=1,1",),
    )


async def test_a_judge_of_its_own_is_named_charged_and_bought_once(tmp_path: Path) -> None:
    judged: list[str] = []

    def judge(body: dict[str, Any]) -> str:
        judged.append(body["model"])
        return "Better: A"

    answers: Iterator[str] = cycle(["bel", "aune"])
    async with serve(lambda body: f"Thought: x\nFinal answer: {next(answers)}") as url, serve(judge) as other:
        suite = wanted(url, f"j@{other}")
        for _ in range(2):
            (outcome,) = await asyncio.to_thread(run, tmp_path / "run.db", suite)
    assert judged == ["j", "j"], "in both orders, and never again"
    assert outcome.technique == "best_of_n n=2 judge_llm=j"
    assert outcome.usage.calls == 4 and outcome.usage.dollars


async def test_a_judge_that_will_answer_no_case_ends_the_run(tmp_path: Path) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "no such key"}}, status=401)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", refuse)
    answers: Iterator[str] = cycle(["bel", "aune"])
    async with serve(lambda body: f"Thought: x\nFinal answer: {next(answers)}") as url, serve_app(app) as other:
        with pytest.raises(LLMError):
            await asyncio.to_thread(run, tmp_path / "run.db", wanted(url, f"j@{other}/v1"))


def test_a_part_that_there_is_not_is_one_line() -> None:
    with pytest.raises(SetupError, match="plan_rag has no judge_llm"):
        open_suite(wanted("http://127.0.0.1:9/v1", "j@http://127.0.0.1:9/v1", "plan_rag"), {})
