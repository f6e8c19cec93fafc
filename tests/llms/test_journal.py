"""Replies are bought once, and votes, repeats and unusable replies are not taken for one another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from decisor.errors import LLMError
from decisor.llms.scripted import ScriptedLLM
from decisor.llms.shared import Journal
from decisor.types import Completion, Message, Sampling, Usage

HI = [Message("user", "Hi")]
WARM = Sampling(temperature=0.7)


@dataclass
class Pages:
    """A book in memory."""

    kept: dict[str, Completion] = field(default_factory=dict)

    async def reply(self, key: str) -> Completion | None:
        return self.kept.get(key)

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        return self.kept.setdefault(key, reply) if usable else reply


@dataclass
class Counting:
    """Answers with the number of the call, slowly; keeps what it was sent."""

    finish: str = "stop"
    name: str = "m"
    sent: list[Sampling] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        self.sent.append(sampling)
        number = len(self.sent)
        await asyncio.sleep(0.01)
        return Completion((f"{number}",), Usage(1, 10, 5, 0.5, 2.0), self.finish)


async def test_a_resumed_run_replays_its_replies_with_what_they_once_cost() -> None:
    llm, book = Counting(), Pages()
    first = await Journal(book).llm(llm).complete(HI)
    again = await Journal(book).llm(llm).complete(HI)
    assert len(llm.sent) == 1
    assert (first.replayed, again.replayed) == (False, True)
    assert again.text == first.text and again.usage == first.usage == Usage(1, 10, 5, 0.5, 2.0)


async def test_the_same_request_again_in_one_run_gets_a_reply_of_its_own() -> None:
    llm, book = Counting(), Pages()
    votes = Journal(book).llm(llm)
    assert [(await votes.complete(HI, WARM)).text for _ in range(3)] == ["1", "2", "3"]
    votes = Journal(book).llm(llm)
    assert [(await votes.complete(HI, WARM)).text for _ in range(3)] == ["1", "2", "3"]


async def test_repeats_models_and_sampling_are_told_apart() -> None:
    llm, journal = Counting(), Journal(Pages())
    told = [
        await journal.llm(llm, repeat).complete(HI, sampling) for repeat in (0, 1) for sampling in (Sampling(), WARM)
    ]
    told.append(await journal.llm(Counting(name="other")).complete(HI))
    assert [reply.text for reply in told] == ["1", "2", "3", "4", "1"]


async def test_runs_that_ask_the_same_at_once_buy_it_once() -> None:
    llm, journal = Counting(), Journal(Pages())
    told = await asyncio.gather(*(journal.llm(llm).complete(HI) for _ in range(20)))
    assert {reply.text for reply in told} == {"1"} and len(llm.sent) == 1
    assert sum(not reply.replayed for reply in told) == 1
    assert journal.bought.dollars == 0.5


async def test_when_the_buyer_fails_or_is_stopped_another_one_buys() -> None:
    journal = Journal(Pages())
    failing = asyncio.create_task(journal.llm(ScriptedLLM([], name="m")).complete(HI))
    slow = asyncio.create_task(journal.llm(Counting()).complete(HI, WARM))
    await asyncio.sleep(0)
    others = [journal.llm(Counting()).complete(HI, sampling) for sampling in (Sampling(), WARM)]
    waiting = asyncio.gather(*others)
    await asyncio.sleep(0)
    slow.cancel()
    with pytest.raises(LLMError, match="script"):
        await failing
    assert [reply.text for reply in await asyncio.wait_for(waiting, 30)] == ["1", "1"]


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
async def test_a_reply_that_is_no_answer_is_never_replayed(finish: str) -> None:
    llm, book = Counting(finish), Pages()
    for _ in range(2):
        assert (await Journal(book).llm(llm).complete(HI)).finish == finish
    assert len(llm.sent) == 2


async def test_a_seed_makes_each_sampled_request_reproducible_and_different() -> None:
    runs = []
    for _ in range(2):
        llm = Counting()
        run = Journal(Pages(), seed=7).llm(llm)
        for sampling in (WARM, WARM, Sampling(), Sampling(temperature=0.7, seed=3)):
            await run.complete(HI, sampling)
        runs.append([sampling.seed for sampling in llm.sent])
    assert runs[0] == runs[1]
    first, second, cold, own = runs[0]
    assert first != second and None not in (first, second) and cold is None and own == 3
