"""One LLM shared by the runs of a process: replies that were bought, a limit of calls at once, and outages.

    complete(messages)
        observer: marks the call
            journal: a reply that was bought before, else
                concurrency: a place among the running calls
                    the LLM

A bought reply is never bought again. A reply is known by the content of its request (model, messages, sampling), the
number of the repeat, and how often the same request was made before in the same run of a case. So techniques that ask
the same thing share a reply, a resumed run replays its replies, and votes and repeats still get their own.

The limit of calls is halved when a provider is overloaded, and grows by one for each round of successes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from decisor.errors import LLMError
from decisor.llms.facts import endpoint_of
from decisor.llms.prices import price_of_llm
from decisor.llms.retry import Retries
from decisor.parsing.prompting import Ways, ways_of
from decisor.runtime.budget import pause_clocks
from decisor.trace.events import OnText, stream_if_possible
from decisor.types import LLM, Completion, Message, Pricing, Sampling, Usage


class CallObserver(Protocol):
    """A listener to the calls of one LLM in one case, such as a watch for outages."""

    def watch(self) -> AbstractContextManager[object]:
        """Mark a call as under way within the block."""
        ...

    def failed(self, error: LLMError) -> None: ...

    def answered(self, reply: Completion) -> None: ...


@dataclass
class SharedLLM:
    """An LLM shared by runs, for one run of one case.

    A replayed reply carries the usage that it once cost, and has ``replayed`` set.
    """

    llm: LLM
    concurrency: ConcurrencyLimit | None = None
    """Calls wait for a place before their deadline begins; ``seconds`` of usage leaves the wait out."""
    journal: Journal | None = None
    repeat: int = 0
    observer: CallObserver | None = None
    occurrences: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.llm.name

    @property
    def price(self) -> Pricing | None:
        return price_of_llm(self.llm)

    @property
    def ways(self) -> Ways | None:
        return ways_of(self.llm)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        return await self.stream(messages, sampling)

    async def stream(
        self, messages: Sequence[Message], sampling: Sampling, on_text: OnText | None = None
    ) -> Completion:
        """Complete as ``complete`` does; ``on_text`` hears the reply while it is written, if the LLM can stream."""
        with self.observer.watch() if self.observer else nullcontext():
            try:
                reply = await (self._buy if self.journal is None else self._find)(messages, sampling, on_text)
            except LLMError as error:
                if self.observer:
                    self.observer.failed(error)
                raise
        if self.observer:
            self.observer.answered(reply)
        return reply

    async def close(self) -> None:
        await close_llm(self.llm)

    async def _find(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText | None) -> Completion:
        """Return the reply of the journal, or buy it."""
        assert self.journal is not None
        content = request_digest(messages, self.name, sampling, self.journal.seed, self.repeat)
        occurrence = self.occurrences[content]
        self.occurrences[content] += 1
        key = f"{content}-{occurrence}" if occurrence else content
        if self.journal.seed is not None and sampling.seed is None and sampling.temperature > 0:
            # Below 2**31, as many endpoints take a seed for an int of 32 bits.
            sampling = replace(sampling, seed=(int(content[:7], 16) << 2) + occurrence)
        return await self.journal.reply(key, lambda: self._buy(messages, sampling, on_text))

    async def _buy(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText | None) -> Completion:
        if self.concurrency is None:
            return await self._ask(messages, sampling, on_text)
        async with self.concurrency.place():
            began = time.monotonic()
            reply = await self._ask(messages, sampling, on_text)
        self.concurrency.faster()
        return replace(reply, usage=replace(reply.usage, seconds=round(time.monotonic() - began, 6)))

    async def _ask(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText | None) -> Completion:
        if on_text is None:
            return await self.llm.complete(messages, sampling)
        return await stream_if_possible(self.llm, messages, sampling, on_text)


UNUSABLE = frozenset({"length", "content_filter", "refusal", "loop"})
"""How a reply ends that is paid for but is no answer; it is booked, and asked for again."""


class Book(Protocol):
    """A store of replies by the key of their request."""

    async def reply(self, key: str) -> Completion | None: ...

    async def keep_reply(self, key: str, reply: Completion, usable: bool = True) -> Completion:
        """Keep a reply and return the one that counts: an earlier one if another process was faster."""
        ...


@dataclass(frozen=True, slots=True)
class Spending:
    """Upper bounds for all that a process buys. None means no bound."""

    dollars: float | None = None
    tokens: int | None = None


UNBOUNDED = Spending()


@dataclass
class Journal:
    """A journal of bought replies, shared by all runs of a process."""

    book: Book
    seed: int | None = None
    """Each sampled request (temperature above 0) without a seed gets one made from this one and from its key."""
    most: Spending = UNBOUNDED
    dearest: Usage = field(default_factory=Usage)
    """The most that one reply cost so far, in dollars and in tokens."""
    bought: Usage = field(default_factory=Usage)
    """What this process paid, wasted replies included."""
    buying: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    def llm(self, llm: LLM, repeat: int = 0) -> SharedLLM:
        """Return ``llm`` with this journal, for one run of one case."""
        return replace(share_llm(llm), journal=self, repeat=repeat, occurrences=Counter())

    async def reply(self, key: str, ask: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return the kept reply, after a wait while another run buys it; else buy and keep it."""
        while True:
            if (kept := await self.book.reply(key)) is not None:
                return replace(kept, replayed=True)
            if (purchase := self.buying.get(key)) is None:
                break
            # Then the book is asked again: the purchase may have failed, and this run buys it itself.
            await asyncio.wait([purchase])
        self.check_spending()
        self.buying[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await ask()
            self.book_usage(reply.usage)
            first = await self.book.keep_reply(key, reply, reply.finish not in UNUSABLE)
            is_first = first.texts == reply.texts and first.turn == reply.turn
            return reply if is_first else replace(first, replayed=True)
        except LLMError as error:
            if error.used.tokens:
                self.book_usage(error.used)
                await self.book.keep_reply(key, Completion((), error.used, error.kind), usable=False)
            raise
        finally:
            # In any case: those who wait look into the book, and the first of them buys if it has nothing.
            self.buying.pop(key).set_result(None)

    def book_usage(self, usage: Usage) -> None:
        self.bought = self.bought + usage
        dollars = max(self.dearest.dollars or 0.0, usage.dollars or 0.0)
        self.dearest = Usage(completion_tokens=max(self.dearest.tokens, usage.tokens), dollars=dollars)

    def check_spending(self) -> None:
        """Raise a permanent LLMError if this call and those under way could pass a bound.

        Each is taken to cost as much as the dearest one, so only the first calls of a run may pass it.
        """
        if self.most.dollars is not None and self.bought.dollars is None:
            raise LLMError("A bound in dollars needs the price of every LLM that is asked.", "spending", permanent=True)
        calls = len(self.buying) + 1
        bounds = (
            (self.most.dollars, self.bought.dollars or 0.0, self.dearest.dollars or 0.0, "$"),
            (self.most.tokens, self.bought.tokens, self.dearest.tokens, "tokens "),
        )
        for most, spent, dearest, unit in bounds:
            if most is not None and (spent >= most or spent + calls * dearest > most):
                raise LLMError(
                    f"The bound of {unit}{most:g} for the whole run is reached, {unit}{spent:.6g} are spent. What was "
                    "bought is kept: the same command with a higher bound goes on.",
                    "spending",
                    permanent=True,
                )


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
        if message.calls or message.call_id:
            calls = [[call.id, call.name, call.arguments] for call in message.calls]
            content_hash.update(ENCODER.encode([calls, message.call_id]).encode("utf-8", "surrogatepass"))
    return content_hash.hexdigest()


def list_sampling_values(sampling: Sampling) -> list[object]:
    """Return the values of a sampling by which a request is known.

    Rare ones only stand where they are set: requests of earlier versions, which lacked them, keep their digests.
    """
    most = None if sampling.capped else sampling.max_tokens
    usual: list[object] = [sampling.stop, sampling.temperature, most, sampling.n, sampling.seed, sampling.schema]
    if sampling.logprobs or sampling.continuation:
        usual += [sampling.logprobs, sampling.continuation]
    for name, functions in (("functions", sampling.functions), ("tools", sampling.tools)):
        if functions:
            rows = [[function.name, function.description, function.parameters] for function in functions]
            usual.append(rows if name == "functions" else {name: rows})
    return [*usual, f"top_p={sampling.top_p:g}"] if sampling.top_p is not None else usual


ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=list_sampling_values)

NO_SLOTS: Mapping[str, int] = MappingProxyType({})
SLOWED_SECONDS = 1.0
"""Refusals within this time of a slow-down are about the same crowd."""


@dataclass
class ConcurrencyLimit:
    """A limit of calls at once, lowered while the provider is overloaded."""

    most: int
    limit: float = 0.0
    """Calls at once just now, from 1 to ``most``."""
    running: int = 0
    slowed: float = float("-inf")
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.limit = float(self.most)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place among the running calls, first come, first served."""
        with pause_clocks():
            await self._enter()
        try:
            yield
        finally:
            self.running -= 1
            self._admit()

    def slower(self) -> None:
        """Halve the limit, because the provider is overloaded."""
        now = time.monotonic()
        # A crowd of calls is refused together, and one refusal is enough to halve.
        if now - self.slowed >= SLOWED_SECONDS:
            self.slowed = now
            self.limit = max(1.0, self.limit / 2)

    def faster(self) -> None:
        """Raise the limit after a reply, by one for each round of replies."""
        # Additive increase, multiplicative decrease, as TCP finds the room of a path (Jacobson 1988).
        self.limit = min(float(self.most), self.limit + 1 / self.limit)
        self._admit()

    async def _enter(self) -> None:
        if not self.waiting and self.running < int(self.limit):
            self.running += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):
                    self.waiting.remove(turn)
            else:  # it was let in at the same moment
                self.running -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self.waiting and self.running < int(self.limit):
            turn = self.waiting.popleft()
            if not turn.cancelled():
                self.running += 1
                turn.set_result(None)


def limit_concurrency(llms: Sequence[LLM], most: int, slots: Mapping[str, int] = NO_SLOTS) -> list[SharedLLM]:
    """Put LLMs of one provider under one limit of calls and one retry layer.

    ``slots``: of a place, since more calls than that would only wait there.
    """
    limits: dict[str, ConcurrencyLimit] = {}
    layers: dict[str, Retries] = {}
    shared = []
    for llm in llms:
        endpoint = endpoint_of(llm)
        place = llm.name if endpoint is None else endpoint.where
        limit = limits.setdefault(place, ConcurrencyLimit(min(most, slots.get(place) or most)))
        if endpoint is not None:
            endpoint.retries = layers.setdefault(place, endpoint.retries)
            endpoint.retries.overloaded = limit.slower
        shared.append(SharedLLM(llm, limit))
    return shared


def share_llm(llm: LLM) -> SharedLLM:
    """Return an LLM that a journal or an observer can be added to."""
    return llm if isinstance(llm, SharedLLM) else SharedLLM(llm)


async def close_llm(llm: LLM | None) -> None:
    """Close the connections of an LLM, if it has any."""
    close: Callable[[], Awaitable[None]] | None = getattr(llm, "close", None)
    if close is not None:
        await close()
