"""What all calls of one endpoint share: the gate, the allowance, the breaker. And what is paid for in vain."""

from __future__ import annotations

import asyncio
import time

import pytest

from decisor.errors import LLMError
from decisor.llms.anthropic import Anthropic
from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.prices import Price
from decisor.llms.retry import Retries
from decisor.runtime.budget import Budget
from decisor.runtime.call import cut_in_half
from decisor.runtime.run import Run
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import FailedCall, LLMCall, Note
from decisor.types import Message
from servers.fault_plays import HTML, body, breaks_off, hangs, resets, said, squeezed, status
from servers.fault_server import ASK, faulty
from servers.faults import FAULTS

USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}


@pytest.mark.slow
async def test_a_named_wait_holds_back_all_calls() -> None:
    async with faulty(status(429, headers={"Retry-After": "1"})) as server:
        llm = server.llm()
        first = asyncio.create_task(llm.complete(ASK))
        while not llm.endpoint.retries.why:  # noqa: ASYNC110  then the wait that was named holds
            await asyncio.sleep(0.01)
        await asyncio.gather(first, llm.complete(ASK))
        await llm.close()
    assert server.asked == 3
    assert all(at - server.at[0] >= 0.95 for at in server.at[1:])


@pytest.mark.slow
async def test_a_run_says_that_it_waits_and_says_it_again_and_short_waits_are_not_said() -> None:
    slow_down = status(429, headers={"Retry-After": "1"})
    async with faulty(slow_down, slow_down, status(429, headers={"Retry-After-Ms": "10"})) as server:
        llm = server.llm(retries=Retries(first_seconds=0.01, says_after=0.5, says_each=0.6))
        run = Run(llm, Toolbox([]))
        await run.ask("Where?", str)
        count = len([*run.trace.of(Note)])
        await Run(llm, Toolbox([]), trace=run.trace).ask("Where?", str)
        await llm.close()
    notes = [*run.trace.of(Note)]
    assert len(notes) == count >= 2
    assert all(note.passing and "Waiting for the LLM" in note.text and "429" in note.text for note in notes)


async def test_a_wait_beyond_the_deadline_is_not_begun_and_the_next_call_does_not_even_ask() -> None:
    began = time.monotonic()
    async with faulty(status(429, headers={"Retry-After": "3600"})) as server:
        llm = server.llm()
        with pytest.raises(LLMError, match="3600 s") as caught:
            await llm.complete(ASK)
        with pytest.raises(LLMError, match="Not asked for another 3") as again:
            await llm.complete(ASK)
        await llm.close()
    assert (caught.value.kind, again.value.kind) == ("rate", "rate")
    assert server.asked == 1
    assert time.monotonic() - began < 600  # of the 3600


async def test_retries_end_when_the_allowance_is_used_up() -> None:
    async with faulty(*[status(500)] * 50) as server:
        llm = server.llm(retries=Retries(first_seconds=0.01, allowance=3))
        results = await asyncio.gather(*(llm.complete(ASK) for _ in range(5)), return_exceptions=True)
        await llm.close()
    assert all(isinstance(result, LLMError) for result in results)
    assert server.asked == 5 + 3


@pytest.mark.slow
async def test_a_broken_endpoint_is_tried_by_one_call_at_a_time_and_all_go_on_when_it_is_back() -> None:
    async with faulty(*[status(503)] * 14) as server:
        retries = Retries(first_seconds=0.01, breaks_at=10, rest_seconds=0.05)
        llm = server.llm(seconds=30.0, retries=retries)
        replies = await asyncio.gather(*(llm.complete(ASK) for _ in range(10)))
        await llm.close()
    assert [reply.text for reply in replies] == ["Lyon"] * 10
    assert server.asked == 14 + 10
    rests = server.gaps[9:14]  # before the 11th request, and each after it until the first good one
    assert all(rest >= 0.95 * 0.05 * 2**number for number, rest in enumerate(rests))


async def test_a_broken_endpoint_is_not_asked_where_the_rest_is_longer_than_the_call() -> None:
    async with faulty(*[resets] * 9) as server:
        llm = server.llm(seconds=1.0, retries=Retries(2, 0.01, breaks_at=2, rest_seconds=9.0))
        with pytest.raises(LLMError, match="2 attempts"):
            await llm.complete(ASK)
        with pytest.raises(LLMError, match=r"The last 2 calls failed\. .* broke off") as caught:
            await llm.complete(ASK)
        await llm.close()
    assert server.asked == 2
    assert not caught.value.permanent


@pytest.mark.slow
async def test_an_endpoint_that_hangs_counts_as_broken() -> None:
    async with faulty(hangs, hangs) as server:
        llm = server.llm(seconds=2.0, retries=Retries(breaks_at=2, rest_seconds=9.0))
        await asyncio.gather(llm.complete(ASK), llm.complete(ASK), return_exceptions=True)
        with pytest.raises(LLMError, match="The last 2 calls failed"):
            await llm.complete(ASK)
        await llm.close()
    assert server.asked == 2


async def test_many_calls_at_once_all_come_through_a_server_that_fails_at_every_fifth() -> None:
    kinds = [status(500), status(429), body(HTML), resets, FAULTS["truncated_body"].play]
    plays = [kinds[i // 5 % 5] if i % 5 == 0 else squeezed("gzip") for i in range(200)]
    async with faulty(*plays) as server:
        llm = server.llm(seconds=60.0)
        replies = await asyncio.gather(*(llm.complete(ASK) for _ in range(150)))
        await llm.close()
    assert {reply.text for reply in replies} == {"Lyon"}
    assert server.asked <= 200


async def test_an_unusable_reply_that_was_billed_is_part_of_the_cost_and_of_one_call() -> None:
    async with faulty(said(None, usage=USAGE)) as server:
        llm = server.llm(price=Price(2.0, 8.0))
        run = Run(llm, Toolbox([]), Budget())
        assert await run.ask("Where?", str) == "Lyon"
        await llm.close()
    spent = run.budget.spent
    assert spent.calls == 1
    assert spent.prompt_tokens > 1_000_000 and spent.completion_tokens >= 500_000
    assert spent.dollars is not None and spent.dollars > 6.0


@pytest.mark.parametrize("play", [resets, body(b'{"choices": ['), breaks_off(b"{", {"Content-Length": "99"})])
async def test_a_reply_lost_on_the_way_is_paid_twice_and_counted_once(play: object) -> None:
    async with faulty(play) as server:  # type: ignore[arg-type]
        llm = server.llm()
        run = Run(llm, Toolbox([]), Budget())
        await run.ask("x" * 4000, str)
        await llm.close()
    assert len(run.trace.of(LLMCall)) == 1
    assert 2000 <= run.budget.spent.prompt_tokens < 2100  # the second one as the server counts it, the first estimated


@pytest.mark.parametrize("play", [status(500), status(429), body(HTML)])
async def test_a_refusal_to_answer_costs_nothing(play: object) -> None:
    async with faulty(play) as server:  # type: ignore[arg-type]
        llm = server.llm()
        reply = await llm.complete([Message("user", "x" * 4000)])
        await llm.close()
    assert reply.usage.prompt_tokens == 1000


@pytest.mark.slow
async def test_what_failed_calls_have_cost_is_charged_and_traced() -> None:
    async with faulty(*[said(None, usage=USAGE)] * 3, hangs) as server:
        run = Run(server.llm(retries=Retries(3, 0.01)), Toolbox([]), Budget())
        with pytest.raises(LLMError):
            await run.ask("Where?", str)
        assert (run.budget.spent.calls, run.budget.spent.prompt_tokens) == (1, 3_000_000)
        slow = server.llm(seconds=2.0)
        with pytest.raises(LLMError, match="no reply within"):
            await run.using(llm=slow).ask("x" * 4000, str)
        for llm in (run.llm, slow):
            assert isinstance(llm, OpenAICompatible)
            await llm.close()
    assert 3_001_000 <= run.budget.spent.prompt_tokens < 3_001_100
    assert [call.reason for call in run.trace.of(FailedCall)] == ["protocol", "timeout"]


async def test_the_messages_api_counts_what_was_billed_in_vain_too() -> None:
    usage = {"input_tokens": 100, "output_tokens": 7}
    good = {"content": [{"type": "text", "text": "Lyon"}], "stop_reason": "end_turn", "usage": usage}
    async with faulty(body({"content": [], "usage": usage}), body(good)) as server:
        llm = Anthropic("m", "sk-none", server.origin, retries=Retries(first_seconds=0.01))
        reply = await llm.complete(ASK)
        await llm.close()
    assert (reply.usage.calls, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 200, 14)


async def test_a_conversation_that_is_too_long_is_shortened_once_and_the_trace_says_so() -> None:
    context = FAULTS["400_context"].play
    async with faulty(context) as server:
        llm = server.llm()
        run = Run(llm, Toolbox([]), Budget())
        prompt = [Message("system", "rules"), Message("user", "question " + "row, " * 2000 + "Go on.")]
        assert await run.ask(prompt, str) == "Lyon"
        await llm.close()
    short = server.bodies[1]["messages"]
    assert short[0]["content"] == "rules"
    assert short[1]["content"].startswith("question row,") and short[1]["content"].endswith("row, Go on.")
    assert "left out" in short[1]["content"] and len(server.sent[1]) < 0.6 * len(server.sent[0])
    failed, call = (entry.event for entry in run.trace.entries)
    assert isinstance(failed, FailedCall) and failed.reason == "context"
    assert isinstance(call, LLMCall) and "left out" in call.messages[1].content


async def test_a_conversation_that_is_still_too_long_fails_with_the_reason() -> None:
    context = FAULTS["400_context"].play
    async with faulty(context, context, context) as server:
        llm = server.llm()
        with pytest.raises(LLMError) as caught:
            await Run(llm, Toolbox([]), Budget()).ask("row, " * 2000, str)
        await llm.close()
    assert (caught.value.kind, caught.value.permanent, server.asked) == ("context", False, 2)


def test_many_messages_lose_the_middle_of_the_longest_first() -> None:
    talk = [Message("user", "a" * 9000), Message("assistant", "b" * 100), Message("user", "c" * 1000)]
    short = cut_in_half(talk)
    assert short is not None
    assert [len(message.content) < len(was.content) for message, was in zip(short, talk, strict=True)] == [
        True,
        False,
        False,
    ]
