"""Limits are limits: of tokens, of seconds, of the context, of what a server takes at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from decisor.errors import BudgetExceeded, LLMError
from decisor.lab.evaluation.runner import evaluate_suite
from decisor.lab.evaluation.store import open_store
from decisor.llms.facts import find_slots
from decisor.llms.shared import limit_concurrency
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.run import Run
from decisor.system.tasks import map_concurrently
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.shared.answer import Trajectory
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import FailedCall, LLMCall, ShortenedPrompt
from decisor.types import Action, Completion, Message, Observation, Question, Record, Sampling, Step, Usage
from evaluation.small import model, small_suite
from servers.llama_server import llama
from techniques.table import TableTool


@dataclass
class Slow:
    """Hangs for so long in each call, the last ones not at all."""

    seconds: float
    hangs: int = 1_000
    name: str = "slow"
    calls: int = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.calls += 1
        await asyncio.sleep(self.seconds if self.calls <= self.hangs else 0.0)
        return Completion(("Final answer: none",), Usage(1, 1_000, 10, 0.0))


def run_on(llm: object, **limits: float) -> Run:
    return Run(llm, Toolbox([]), Budget(Limits(**limits)))  # type: ignore[arg-type]


def steps(count: int, rows: int) -> tuple[Step, ...]:
    """So many queries that brought so many rows each."""
    return tuple(
        Step(
            Action("sql", "SELECT name, rent FROM site"),
            Observation(
                tuple(Record(f"o{n}.r{r}", {"name": f"site {r}", "rent": 100 * r}) for r in range(1, rows + 1))
            ),
        )
        for n in range(1, count + 1)
    )


def prompt_of(count: int, rows: int) -> list[Message]:
    return [Message("system", "Decide."), Message("user", Trajectory(Question("?"), steps(count, rows)).show())]


async def test_a_reply_is_capped_by_what_is_left_of_the_tokens() -> None:
    async with llama() as server:
        run = run_on(server.llm(), tokens=2_000)
        await run.ask([Message("user", "x" * 2_000)], str)
        await run.llm.close()  # type: ignore[attr-defined]
    assert server.bodies[0]["max_tokens"] == 512
    assert run.budget.spent.tokens <= 2_000


async def test_a_cap_of_its_own_is_no_part_of_what_a_reply_is_known_by() -> None:
    from decisor.llms.shared import request_digest

    ask = [Message("user", "Hi")]
    assert request_digest(ask, "m", Sampling(max_tokens=300, capped=True)) == request_digest(ask, "m", Sampling())
    assert request_digest(ask, "m", Sampling(max_tokens=300)) != request_digest(ask, "m", Sampling())


async def test_the_last_answer_has_time_left_where_a_call_hangs() -> None:
    llm = Slow(600.0, hangs=1)
    began = time.monotonic()
    run = Run(llm, Toolbox([TableTool()]), Budget(Limits(seconds=30.0), keep_share=0.97))
    decision = await IterRAG()(Question("Which?"), run)
    assert time.monotonic() - began < 30.0 and llm.calls == 2
    assert decision.stopped == "budget" and run.budget.spent.estimates == 1
    (cut_off,) = run.trace.of(FailedCall)
    assert cut_off.usage.tokens > 0 and cut_off.reason == "seconds"


@pytest.mark.slow
async def test_time_in_line_is_no_time_of_a_run() -> None:
    (llm,) = limit_concurrency([Slow(0.3)], 1)

    async def one(_: int) -> tuple[float, float]:
        run = run_on(llm, seconds=60)
        await run.ask("Hi", str, final=True)
        return run.budget.clock.seconds(), run.budget.spent.seconds

    began = time.monotonic()
    clocks, spent = zip(*await map_concurrently(one, range(9), at_once=9), strict=True)
    took = time.monotonic() - began  # with the time in line it would be five times as much, all added up
    assert took >= 2.7 and sum(clocks) < 2 * took and sum(spent) < 2 * took


async def test_a_run_that_does_something_else_meanwhile_is_not_stopped_in_time() -> None:
    (llm,) = limit_concurrency([Slow(0.3)], 1)
    run = run_on(llm, seconds=60)
    await map_concurrently(lambda _: run.ask("Hi", str), range(3), at_once=3)
    assert run.budget.clock.seconds() >= 0.9


async def test_what_is_cancelled_in_line_costs_nothing() -> None:
    (llm,) = limit_concurrency([slow := Slow(60.0)], 1)
    runs = [run_on(llm), run_on(llm)]
    calls = [asyncio.create_task(run.ask("Hi", str)) for run in runs]
    while not (slow.calls and llm.concurrency and llm.concurrency.waiting):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert [run.budget.spent.calls for run in runs] == [1, 0]
    assert [run.budget.spent.tokens > 0 for run in runs] == [True, False]
    assert "before it was sent" in runs[1].trace.of(FailedCall)[0].text


async def test_a_prompt_is_made_to_fit_before_it_is_sent_and_the_trace_says_so() -> None:
    async with llama(context=1024) as server:
        run = run_on(server.llm())
        await run.ask(prompt_of(6, 40), str)
        await run.llm.close()  # type: ignore[attr-defined]
    assert server.refusals == 0 and len(server.bodies) == 1
    (event,) = run.trace.of(ShortenedPrompt)
    assert (event.limit, event.room) == ("context", 768) and event.tokens > 1024
    assert event.left_out[0] == "o1.r40" and "o6.r1" not in event.left_out
    sent = server.bodies[0]["messages"][1]["content"]
    assert "records are left out here" in sent and "[o6.r1]" in sent
    (call,) = run.trace.of(LLMCall)
    assert [message.content for message in call.messages][1] == sent


async def test_what_a_refusal_says_of_the_context_is_remembered() -> None:
    async with llama(context=1024, tells=False) as server:
        llm = server.llm()
        for _ in range(2):
            await run_on(llm).ask(prompt_of(6, 40), str)
        other = server.llm()
        await run_on(other).ask(prompt_of(6, 40), str)
        await llm.close()
        await other.close()
    assert (server.refusals, len(server.bodies)) == (1, 4)


async def test_what_cannot_fit_is_told_with_both_numbers_and_is_not_sent() -> None:
    async with llama(context=1024) as server:
        run = run_on(server.llm())
        with pytest.raises(
            LLMError, match=r"about 5,\d\d\d tokens .* of the 1,024 tokens .* 768 are for it"
        ) as failure:
            await run.ask("word " * 4_500, str)
        await run.llm.close()  # type: ignore[attr-defined]
    assert failure.value.kind == "context" and not server.bodies and "--tables" in str(failure.value)


async def test_a_final_prompt_loses_records_where_the_tokens_left_are_few() -> None:
    async with llama() as server:
        run = run_on(server.llm(), tokens=1_200)
        with pytest.raises(BudgetExceeded):
            await run.ask(prompt_of(6, 40), str)
        await run.ask(prompt_of(6, 40), str, final=True)
        await run.llm.close()  # type: ignore[attr-defined]
    assert [event.limit for event in run.trace.of(ShortenedPrompt)] == ["tokens"]
    assert len(server.bodies) == 1 and run.budget.spent.tokens <= 1_200


async def test_an_evaluation_asks_no_more_at_once_than_the_server_has_slots(tmp_path: Path) -> None:
    async with llama(slots=2, seconds=0.01, answer=model) as server:
        suite = small_suite(f"{server.origin}/v1", many=8, cases_at_once=8, calls_at_once=32)
        with closing(open_store(str(tmp_path / "run.db"))) as store:
            tally = await evaluate_suite(suite, store)
    assert tally.done == 16 and server.most == 2


async def test_a_server_that_does_not_tell_of_slots_is_asked_as_many_at_once_as_is_set() -> None:
    async with llama(tells=False) as server:
        llm = server.llm()
        assert await find_slots([llm]) == {llm.endpoint.where: 0}
        (limited,) = limit_concurrency([llm], 5, await find_slots([llm]))
        assert limited.concurrency is not None and limited.concurrency.most == 5
