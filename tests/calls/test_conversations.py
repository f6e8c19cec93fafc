"""Conversations of tool calls: what they cost, how long replies may be, and what is left where they are too long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from decisor.errors import LLMError
from decisor.runtime.budget import Budget, Limits
from decisor.runtime.call import ContextLength
from decisor.runtime.prompt import estimate_prompt_tokens
from decisor.runtime.run import Run
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, ShortenedPrompt
from decisor.types import Completion, Function, Message, Sampling, ToolCall, Usage

SQL = Function("sql", "Run one SELECT.", {"type": "object", "properties": {"query": {"type": "string"}}})
TALK = Sampling(tools=(SQL,))
START = [Message("system", "Decide by data."), Message("user", "Which site is best?")]


@dataclass
class Server:
    """Takes prompts of so many tokens, counted at four characters each, and asks for one row after the other."""

    context: ContextLength = field(default_factory=lambda: ContextLength(tokens=8_000))
    limit: int = 8_000
    name: str = "talker"
    prompts: list[tuple[Message, ...]] = field(default_factory=list)
    caps: list[int | None] = field(default_factory=list)
    refused: int = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        tokens = sum(len(m.content) + sum(len(call.arguments) for call in m.calls) for m in messages) // 4
        if tokens > self.limit:
            self.refused += 1
            raise LLMError(f"This model's maximum context length is {self.limit} tokens.", "context")
        self.prompts.append(tuple(messages))
        self.caps.append(sampling.max_tokens)
        number = len(self.prompts)
        turn = ask(number, 1, raw={"chat": {"reasoning": f"thought {number}"}})
        return Completion(("",), Usage(1, 0, 30, 0.0), turn=turn)


def ask(number: int, calls: int, **fields: object) -> Message:
    made = [ToolCall(f"c{number}.{at}", "sql", json.dumps({"query": f"SELECT {number}"})) for at in range(calls)]
    return replace(Message("assistant", "", tuple(made)), **fields)  # type: ignore[arg-type]


def rows(number: int, count: int = 50, width: int = 80) -> str:
    """A result as the LLM reads it."""
    head = "record | name | capped\n"
    return head + "\n".join(f"[o{number}.r{row}] | {'x' * width} | {row}" for row in range(1, count + 1))


async def talk(run: Run, llm: Server, turns: int, results: int = 1, width: int = 80) -> list[Message]:
    """As a technique does it: its own list of messages only grows."""
    messages, number = list(START), 0
    for _ in range(turns):
        turn = (await run.complete(messages, TALK)).turn
        assert turn is not None
        calls = [replace(turn.calls[0], id=f"c{number + at}") for at in range(results)]
        messages.append(replace(turn, calls=tuple(calls)))
        for one in calls:
            number += 1
            messages.append(Message("tool", rows(number, width=width), call_id=one.id))
    return messages


def check_pairs(messages: Sequence[Message]) -> None:
    """Every call has its result right behind it, as providers want it."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.call_id == open_calls.pop(0)
        else:
            assert not open_calls
            open_calls = [call.id for call in message.calls]
    assert not open_calls


def run_on(llm: Server, **limits: int) -> Run:
    return Run(llm, Toolbox([]), Budget(Limits(**limits)))


def test_calls_thoughts_and_functions_count_as_much_as_texts() -> None:
    words = "wages and rents of all sites " * 40
    text = estimate_prompt_tokens([*START, Message("assistant", words)])
    call = estimate_prompt_tokens([*START, Message("assistant", "", (ToolCall("1", "", words),))])
    thought = estimate_prompt_tokens([*START, Message("assistant", "", raw={"chat": {"reasoning": words}})])
    offered = estimate_prompt_tokens([*START, Message("assistant", "")], [Function("f", words, {})])
    assert call == text
    assert text < thought < text + 30 and text < offered < text + 40


async def test_the_reply_of_a_conversation_may_be_longer_than_others() -> None:
    llm = Server(ContextLength())
    await run_on(llm).complete(START, TALK)
    await run_on(llm).complete(START)
    await run_on(llm).complete(START, replace(TALK, max_tokens=700))
    await run_on(llm, tokens=3_000).complete(START, TALK)
    assert llm.caps == [16_000, 2_048, 700, 512]


@dataclass
class ShortSpoken(Server):
    """Refuses a request for a reply of more than so many tokens, in the words of a provider."""

    words: str = "max_tokens: {cap} > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku"
    longest: int = 8_192

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        if (sampling.max_tokens or 0) > self.longest:
            self.refused += 1
            raise LLMError(self.words.format(cap=sampling.max_tokens), "request", permanent=True)
        return await super().complete(messages, sampling)


async def test_a_model_that_writes_no_such_long_replies_is_asked_for_shorter_ones() -> None:
    llm = ShortSpoken(ContextLength())
    run = run_on(llm)
    await talk(run, llm, 2)
    await talk(run_on(llm), llm, 1)
    assert (llm.refused, llm.caps) == (1, [8_192, 8_192, 8_192]), "remembered for later runs"
    vllm = ShortSpoken(
        ContextLength(),
        words="'max_tokens' is too large: {cap}. This model's maximum context length is 4096 tokens and your request "
        "has 500 input tokens ({cap} > 4096 - 500).",
        longest=3_596,
    )
    await run_on(vllm).complete(START, TALK)
    assert (vllm.refused, vllm.caps) == (1, [2_048])


async def test_a_cap_that_a_technique_named_and_other_refusals_are_raised() -> None:
    llm = ShortSpoken(ContextLength(), longest=100)
    with pytest.raises(LLMError, match="maximum allowed"):
        await run_on(llm).complete(START, replace(TALK, max_tokens=5_000))
    other = ShortSpoken(ContextLength(), words="Invalid messages.", longest=100)
    with pytest.raises(LLMError, match="Invalid messages"):
        await run_on(other).complete(START, TALK)
    assert (llm.refused, other.refused) == (1, 1)


async def test_a_conversation_has_one_next_turn() -> None:
    llm = Server()
    run = run_on(llm)
    reply = await run.complete(START, replace(TALK, n=3))
    assert (len(llm.prompts), len(reply.texts), len(reply.turn.calls if reply.turn else ())) == (1, 1, 1)
    assert run.trace.of(LLMCall)[0].turn == reply.turn


@pytest.mark.parametrize(("results", "width"), [(1, 80), (2, 20)])
async def test_a_long_conversation_is_shortened_once_and_goes_on_from_there(results: int, width: int) -> None:
    llm = Server()
    run = run_on(llm)
    messages = await talk(run, llm, 9, results, width)
    check_pairs(messages)
    assert rows(1, width=width) in [message.content for message in messages], "the technique's own list stays as it is"
    shortened = run.trace.of(ShortenedPrompt)
    assert 1 <= len(shortened) < 9 - 3, "not once a call"
    assert {*shortened[0].left_out} >= {"o1"} and all(id.startswith("o") for id in shortened[0].left_out)
    assert llm.refused == 0
    changes = 0
    for before, after in zip(llm.prompts, llm.prompts[1:], strict=False):
        check_pairs(after)
        assert estimate_prompt_tokens(after, (SQL,)) <= 6_000
        if after[: len(before)] != before:
            changes += 1
            assert estimate_prompt_tokens(after, (SQL,)) <= 0.75 * 8_000
            old = [message for message in after if message.role == "tool"][:-2]
            assert all(message.content.startswith("o") and "\n" not in message.content for message in old[:-results])
            assert all(message.raw is None for message in after)
    assert changes == len(shortened), "all other prompts begin with the one before"


async def test_what_is_left_of_a_result_says_how_to_see_it_again() -> None:
    llm = Server(ContextLength(tokens=6_000))
    run = run_on(llm)
    await talk(run, llm, 5)
    texts = [message.content for message in llm.prompts[-1] if message.role == "tool"]
    assert texts[0] == "o1: 50 rows of name, capped; ask for `rows o1 1` to see them again"
    assert texts[-1] == rows(4)
    words = run.trace.of(ShortenedPrompt)[0].text
    assert "result (o1) is left out of the prompt" in words or "results (o1, o2" in words


async def test_results_that_nobody_read_yet_lose_rows_but_stay() -> None:
    llm = Server(ContextLength(tokens=8_000))
    messages = [*START, ask(1, 6), *(Message("tool", rows(at), call_id=f"c1.{at - 1}") for at in range(1, 7))]
    await run_on(llm).complete(messages, TALK)
    (prompt,) = llm.prompts
    check_pairs(prompt)
    results = [message.content for message in prompt if message.role == "tool"]
    assert all(f"[o{number}.r1] " in text for number, text in enumerate(results, 1))
    assert sum("left out" in text for text in results) >= 3
    assert estimate_prompt_tokens(prompt, (SQL,)) <= 6_000


async def test_results_of_calls_that_were_written_as_text_are_shortened_too() -> None:
    llm = Server(ContextLength(tokens=4_000))
    messages = list(START)
    for number in range(1, 5):
        messages += [Message("assistant", '{"name": "sql"}'), Message("user", f"Result of sql:\n{rows(number, 25)}")]
    await run_on(llm).complete(messages, TALK)
    texts = [message.content for message in llm.prompts[0] if message.role == "user"]
    assert texts[0] == START[1].content
    assert texts[1] == "o1: 25 rows of name, capped; ask for `rows o1 1` to see them again"
    assert texts[-1] == messages[-1].content


async def test_a_refusal_for_length_shortens_for_good() -> None:
    """An endpoint that does not tell its length beforehand."""
    llm = Server(ContextLength(), limit=8_000)
    run = run_on(llm)
    messages = await talk(run, llm, 12)
    assert llm.refused == 1 and len(llm.prompts) == 12
    check_pairs(messages)
    for prompt in llm.prompts:
        check_pairs(prompt)


async def test_the_last_call_fits_what_is_left_of_the_tokens() -> None:
    llm = Server(ContextLength())
    run = run_on(llm, tokens=5_000)
    messages = [*START]
    for number in range(1, 5):
        messages += [ask(number, 1), Message("tool", rows(number), call_id=f"c{number}.0")]
    await run.complete([*messages, Message("user", "Call decide now.")], TALK, final=True)
    check_pairs(llm.prompts[0])
    assert estimate_prompt_tokens(llm.prompts[0], (SQL,)) < 5_000
    assert run.trace.of(ShortenedPrompt)[0].limit == "tokens"


async def test_two_conversations_of_a_run_are_shortened_each_by_its_own_length() -> None:
    llm = Server()
    run = run_on(llm)
    with run.span("first") as first:
        await talk(first, llm, 5)
    with run.span("second") as second:
        await second.complete([*START, ask(1, 1), Message("tool", rows(1), call_id="c1.0")], TALK)
    assert rows(1) in [message.content for message in llm.prompts[-1]]
