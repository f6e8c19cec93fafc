"""A journal of replies: an LLM that looks into it first and writes into it what it buys.

A bought reply is never bought again. A reply is known by the content of its request (model, messages, sampling), the
number of the repeat, and how often the same request was made before in the same run of a case. So techniques that ask
the same thing share a reply, a resumed run replays what it had, and votes and repeats still get replies of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from decisor.errors import LMError
from decisor.llms.prices import price_of_lm
from decisor.parsing.prompting import Ways, ways_of
from decisor.types import LM, Completion, Message, Pricing, Sampling, Usage

UNUSABLE = frozenset({"length", "content_filter", "refusal", "loop"})
"""How a reply ends that is paid for but is no answer; it is booked, and asked for again."""


class Book(Protocol):
    """A store of replies by the key of their request."""

    async def reply(self, key: str) -> Completion | None: ...

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        """Keep a reply and return the one that counts: an earlier one if another process was faster."""
        ...


@dataclass
class Journal:
    """A journal of bought replies, shared by all runs of a process. seed: each sampled request (temperature above 0)
    without a seed gets one made from it and from the request's key. bought: usage that this process paid, wasted
    replies included.
    """

    book: Book
    seed: int | None = None
    bought: Usage = field(default_factory=Usage)
    buying: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    def lm(self, lm: LM, repeat: int = 0) -> JournaledLM:
        """Return ``lm`` with this journal, for one run of one case."""
        return JournaledLM(lm, self, repeat)

    async def find(self, key: str) -> Completion | None:
        """Return the kept reply, after a wait while another run buys it. None means that the caller has to buy it."""
        while True:
            if (earlier := await self.book.reply(key)) is not None:
                return replace(earlier, replayed=True)
            if (other := self.buying.get(key)) is None:
                return None
            await asyncio.wait([other])

    async def buy(self, key: str, lm: LM, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.buying[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await lm.complete(messages, sampling)
            self.bought = self.bought + reply.usage
            first = await self.book.keep_reply(key, reply, reply.finish not in UNUSABLE)
            return reply if first.texts == reply.texts else replace(first, replayed=True)
        except LMError as error:
            wasted = error.used
            if wasted.tokens:
                self.bought = self.bought + wasted
                await self.book.keep_reply(key, Completion((), wasted, error.kind), usable=False)
            raise
        finally:
            self.buying.pop(key).set_result(None)


@dataclass
class JournaledLM:
    """An LLM with a journal, for one run of one case.

    A replayed reply carries the usage that it once cost, and has ``replayed`` set.
    """

    lm: LM
    journal: Journal
    repeat: int = 0
    occurrences: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.lm.name

    @property
    def price(self) -> Pricing | None:
        return price_of_lm(self.lm)

    @property
    def ways(self) -> Ways | None:
        return ways_of(self.lm)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        content = request_digest(messages, self.name, sampling, self.journal.seed, self.repeat)
        occurrence = self.occurrences[content]
        self.occurrences[content] += 1
        key = f"{content}-{occurrence}" if occurrence else content
        if self.journal.seed is not None and sampling.seed is None and sampling.temperature > 0:
            sampling = replace(sampling, seed=(int(content[:7], 16) << 2) + occurrence)
        return await self.journal.find(key) or await self.journal.buy(key, self.lm, messages, sampling)


def request_digest(messages: Sequence[Message], *rest: object) -> str:
    """Return a digest that is the same for equal requests, in any process.

    >>> request_digest([Message("user", "Hi")], "m", Sampling())
    '3608103980b31a2835f6bc6c432ef51c'
    """
    content_hash = hashlib.blake2b(ENCODER.encode(rest).encode("utf-8", "surrogatepass"), digest_size=16)
    for message in messages:
        content = message.content.encode("utf-8", "surrogatepass")
        content_hash.update(f"\n{message.role} {len(content)}\n".encode())
        content_hash.update(content)
    return content_hash.hexdigest()


def as_plain(sampling: Sampling) -> list[object]:
    most = None if sampling.capped else sampling.max_tokens
    usual: list[object] = [sampling.stop, sampling.temperature, most, sampling.n, sampling.seed]
    rare = [sampling.logprobs, sampling.continuation] if sampling.logprobs or sampling.continuation else []
    functions = [[[one.name, one.description, one.parameters] for one in sampling.functions]]
    top_p = [f"top_p={sampling.top_p:g}"] if sampling.top_p is not None else []
    return [*usual, sampling.schema, *rare, *(functions if sampling.functions else []), *top_p]


ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=as_plain)
