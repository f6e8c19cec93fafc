"""Money: what is under way is reserved before it is sent, and what was paid is told."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

import decisor
from decisor.cli.output import print_error
from decisor.errors import BudgetExceeded, LLMError, SetupError
from decisor.lab.evaluation.runner import Suite, evaluate_suite
from decisor.lab.evaluation.store import open_store
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.llms.shared import ConcurrencyLimit, Journal, SharedLLM
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import FailedCall, RunUsage, events_of
from decisor.trace.file import read_trace
from decisor.types import Completion, Decision, Message, Question, Sampling, Usage
from evaluation.small import SmallBench
from servers.openai_server import completion, serve_app

PROMPT = "x" * 4_000
"""1,000 tokens."""


DEAR = Price(1.0, 2.0)


@dataclass
class Paid:
    """An LLM that takes its time, and says what each call cost: 1,000 tokens of prompt, 50 of reply."""

    price: Price | None = DEAR
    name: str = "paid"
    calls: int = 0
    hang: bool = False

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.calls += 1
        await asyncio.sleep(60 if self.hang else 0.001)
        dollars = self.price.dollars(1_000, 50) if self.price else None
        return Completion(("1",), Usage(1, 1_000, 50, dollars))


async def many(run: Run, count: int, sampling: Sampling = Sampling()) -> None:
    """So many calls at once; those that the budget does not allow are left out."""

    async def one(_: int) -> None:
        with suppress(BudgetExceeded):
            await run.ask(PROMPT, str, sampling)

    await map_concurrently(one, range(count), at_once=count)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(max_tokens=50)])
async def test_two_hundred_calls_at_once_stay_within_a_limit_of_tokens(sampling: Sampling) -> None:
    run = Run(Paid(), Toolbox([]), Budget(Limits(tokens=5_000)))
    await many(run, 200, sampling)
    assert 2_000 <= run.budget.spent.tokens <= 5_000
    assert run.budget.pending_tokens == run.budget.pending_calls == 0


async def test_two_hundred_calls_at_once_stay_within_a_limit_of_dollars() -> None:
    run = Run(Paid(), Toolbox([]), Budget(Limits(dollars=0.01)))
    await many(run, 200)
    assert run.budget.spent.dollars is not None and 0.004 <= run.budget.spent.dollars <= 0.01
    assert run.budget.pending_dollars == 0.0


async def test_a_final_call_has_what_is_kept_back_and_passes_no_limit_either() -> None:
    run = Run(Paid(), Toolbox([]), Budget(Limits(tokens=2_500)))
    await many(run, 3)
    assert run.budget.spent.tokens == 1_050
    await run.ask(PROMPT, str, final=True)
    with pytest.raises(
        BudgetExceeded, match=r"limit of 2500 tokens is reached: 2,100 are spent, and one more call may"
    ):
        await run.ask(PROMPT, str, final=True)
    assert run.budget.spent.tokens == 2_100


async def test_a_call_that_would_pass_the_limit_of_tokens_is_not_sent() -> None:
    llm = Paid()
    run = Run(llm, Toolbox([]), Budget(Limits(tokens=100)))
    for final in (False, True):
        with pytest.raises(BudgetExceeded, match=r"limit of 100 tokens is reached: 0 are spent"):
            await run.ask(PROMPT, str, final=final)
    assert llm.calls == 0 and run.budget.spent == Usage()


async def test_an_unknown_price_is_refused_before_the_first_call_where_dollars_are_limited() -> None:
    llm = Paid(price=None)
    run = Run(llm, Toolbox([]), Budget(Limits(dollars=1.0)))
    with pytest.raises(SetupError, match="The price of paid is not known"):
        await run.ask("x", str)
    assert llm.calls == 0
    assert await Run(llm, Toolbox([]), Budget(Limits(calls=9))).ask("x", str) == "1"


async def test_a_price_is_known_through_every_wrapper_of_an_llm() -> None:
    llm = SharedLLM(Paid(), ConcurrencyLimit(1))
    run = Run(Journal(Nothing()).llm(llm), Toolbox([]), Budget(Limits(dollars=1.0)))
    assert await run.ask("x", str) == "1"


class Nothing:
    """A book without a reply."""

    async def reply(self, key: str) -> None:
        return None

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        return reply


async def test_a_call_that_its_deadline_cut_off_is_booked_at_its_likely_cost() -> None:
    run = Run(Paid(hang=True), Toolbox([]), Budget(Limits(seconds=0.2)))
    with pytest.raises(BudgetExceeded, match="seconds"):
        await run.ask(PROMPT, str, Sampling(max_tokens=100))
    spent = run.budget.spent
    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens, spent.estimates) == (1, 1_000, 100, 1)
    assert spent.dollars == pytest.approx(DEAR.dollars(1_000, 100)) and spent.seconds > 0.1
    assert [event.reason for event in run.trace.of(FailedCall)] == ["seconds"]


async def test_a_call_that_is_cancelled_is_booked_at_its_likely_cost() -> None:
    run = Run(llm := Paid(hang=True, price=None), Toolbox([]), Budget())
    call = asyncio.create_task(run.ask(PROMPT, str))
    while not llm.calls:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert run.budget.spent.prompt_tokens == 1_000 and run.budget.spent.estimates == 1
    assert run.budget.spent.dollars is None and run.budget.pending_calls == 0
    assert [event.reason for event in run.trace.of(FailedCall)] == ["cancelled"]


@asynccontextmanager
async def one_text_at_a_time() -> AsyncIterator[tuple[OpenAICompatible, list[object]]]:
    """An endpoint that gives one text, however many are asked for; and the requests that it got."""
    requests: list[object] = []

    async def chat(request: web.Request) -> web.Response:
        requests.append(body := await request.json())
        return web.json_response(completion({**body, "n": 1}, "Lyon", "m"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with serve_app(app) as origin:
        llm = OpenAICompatible("m", f"{origin}/v1")
        yield llm, requests
        await llm.close()


async def test_texts_that_an_endpoint_did_not_give_are_asked_for_within_the_budget() -> None:
    async with one_text_at_a_time() as (llm, requests):
        run = Run(llm, Toolbox([]), Budget(Limits(calls=10)))

        async def one(number: int) -> None:
            try:
                reply = await run.complete([Message("user", f"question {number}")], Sampling(temperature=1.0, n=8))
            except BudgetExceeded:
                return
            assert 1 <= len(reply.texts) <= 8 and reply.usage.calls == len(reply.texts)

        await map_concurrently(one, range(9), at_once=9)
        assert len(requests) == run.budget.spent.calls == 9  # the tenth is kept back for the answer


async def test_an_endpoint_that_ignores_n_gives_all_texts_where_the_budget_allows() -> None:
    async with one_text_at_a_time() as (llm, requests):
        run = Run(llm, Toolbox([]), Budget())
        reply = await run.complete([Message("user", "x")], Sampling(temperature=1.0, n=8, seed=3))
        assert len(reply.texts) == len(requests) == run.budget.spent.calls == 8


@pytest.fixture
def sites(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "sites.db") as database:
        database.execute("CREATE TABLE site (name TEXT, rent REAL)")
    database.close()
    return str(tmp_path / "sites.db")


@dataclass
class GoesAway:
    """One reply, then the endpoint is gone."""

    name: str = "m"
    calls: int = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.calls += 1
        if self.calls > 1:
            raise LLMError("The key is refused.", "auth", permanent=True)
        return Completion(("Action: sql\nAction input: SELECT 1",), Usage(1, 1_000, 50, 0.0011))


def test_a_run_that_fails_says_what_was_paid_in_its_error_and_in_its_trace(
    sites: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(LLMError) as failure:
        decisor.ask("Which?", db=sites, llm=GoesAway(), technique="iter_rag", trace=path)
    assert failure.value.spent.tokens == 1_050 and failure.value.spent.calls == 2
    (usage,) = events_of(read_trace(path), RunUsage)
    assert usage.usage == failure.value.spent
    print_error(failure.value)
    assert "Before that: 2 LLM calls, 1,050 tokens, $0.0011." in capsys.readouterr().err
    print_error(failure.value, ["--json"])
    assert json.loads(capsys.readouterr().out)["usage"]["prompt_tokens"] == 1_000


async def test_an_evaluation_that_an_endpoint_ends_says_what_was_bought(tmp_path: Path) -> None:
    async def asks(question: Question, run: Run) -> Decision:
        return Decision(await run.ask(question.text, str))

    suite = Suite({"small": SmallBench()}, {"asks": asks}, {"m": GoesAway()}, cases_at_once=1)
    with closing(open_store(str(tmp_path / "run.db"))) as store, pytest.raises(LLMError) as failure:
        await evaluate_suite(suite, store)
    assert failure.value.spent.tokens == 1_050
