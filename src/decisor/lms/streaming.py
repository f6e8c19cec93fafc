"""A reply as it is written: with the faults of one that comes at once, and read by the same reader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import urandom
from typing import Any, Protocol

from decisor.errors import LMError
from decisor.lms.chat_stream import LAST
from decisor.lms.endpoint import Endpoint, within
from decisor.lms.event_stream import EventStream
from decisor.lms.faults import fault
from decisor.lms.postprocess import cut
from decisor.lms.prices import Price, prompt_usage
from decisor.lms.repetition import loop_start
from decisor.lms.retry import Again
from decisor.secrets import redact_known
from decisor.trace.writing import OnText
from decisor.types import Completion, Usage

LOOK_EVERY = 200
"""Characters between two looks at whether it repeats itself."""
LOOP = "loop"
Read = Callable[[object], Completion]


class Send(Protocol):
    """As ``Endpoint.post``."""

    def __call__(
        self, body: Mapping[str, object], read: Read, ends: float, bill: list[Usage], url: str = ""
    ) -> Awaitable[Completion]: ...


class Parts(Protocol):
    """What a stream brings, joined: the text so far, whether it came to its end, and the reply that it makes."""

    is_done: bool

    @property
    def is_whole(self) -> bool: ...

    @property
    def text(self) -> str: ...

    def add(self, chunk: Mapping[str, object]) -> None: ...

    def reply(self, finish: str = "") -> dict[str, object]: ...


class Repeats(Exception):
    """The reply goes round in circles."""


@dataclass
class Writing:
    """One attempt at a streamed reply. ``alive`` is called with each event; ``on_text`` with all of the text so far."""

    parts: Parts
    where: str
    alive: Callable[[], None]
    on_text: OnText
    events: EventStream = field(default_factory=EventStream)
    is_begun: bool = False
    looked_at: int = 0
    text: str = ""

    def take(self, piece: bytes) -> bool:
        """Whether that was the end. Raises LMError where it holds an error, and Repeats."""
        return self._hear(self.events.feed(piece))

    def end(self) -> None:
        """The connection ended. Raises LMError where the reply did not."""
        self._hear(self.events.end())
        if not self.is_begun:
            raise Again(f"{self.where} sent no stream of events and no completion.")
        if not self.parts.is_whole:
            raise Again(f"{self.where} broke off: its reply is not whole.", "connection")

    def _hear(self, events: Iterable[str]) -> bool:
        for data in events:
            self.is_begun = True
            self.alive()
            if data.strip() == LAST:
                self.parts.is_done = True
            else:
                self.parts.add(chunk_of(data, self.where))
                self._show(self.parts.text)
        return self.parts.is_done

    def _show(self, text: str) -> None:
        if len(text) != len(self.text):
            self.text = text
            self.on_text(text)
            if len(text) - self.looked_at >= LOOK_EVERY:
                self.looked_at = len(text)
                if loop_start(text) is not None:
                    raise Repeats

    def cost(self, used: Usage) -> Usage:
        """``used`` for the prompt, and what was written of the reply, at a token per four characters."""
        return replace(used, completion_tokens=max(used.completion_tokens, (len(self.text) + 3) // 4))


def chunk_of(data: str, where: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if not isinstance(chunk, Mapping):
        raise Again(f"{where} sent a chunk that is no valid JSON.")
    return chunk


async def stream(
    endpoint: Endpoint, new_parts: Callable[[], Parts], on_text: OnText, alive: Callable[[], None],
    body: Mapping[str, object], read: Read, ends: float, bill: list[Usage], url: str = "",
) -> Completion:  # fmt: skip
    """As ``Endpoint.post``, for a body that asks for a stream. An attempt that broke is made anew, from its beginning.

    A reply that repeats itself is cut where that began, ends with ``loop``, and costs what was written.

    Raises:
        LMError: as sorted out by ``faults``; its text holds no key.
    """
    payload = json.dumps(body).encode()
    headers = {"Idempotency-Key": urandom(16).hex()}

    async def once() -> Completion:
        writing = Writing(new_parts(), endpoint.where, alive, on_text)
        try:
            return await attempt(endpoint, url or endpoint.url, payload, headers, writing, read, bill)
        except LMError as error:
            if writing.is_begun:
                error.used = writing.cost(error.used if error.used.tokens else prompt_usage(payload))
            if error.used.tokens:
                bill.append(error.used)
            raise endpoint.clean(error) from None
        except asyncio.CancelledError:
            bill.append(writing.cost(Usage()))  # its prompt is on the bill already
            raise

    return await endpoint.retries.call(once, ends)


async def attempt(
    endpoint: Endpoint, url: str, payload: bytes, headers: Mapping[str, str], writing: Writing, read: Read,
    bill: list[Usage],
) -> Completion:  # fmt: skip
    try:
        reply = await endpoint.opened().post(url, payload, headers, bill, writing.take)
    except Repeats:
        return looped(read(writing.parts.reply(LOOP)))
    if not 200 <= reply.status < 300:
        raise fault(reply.status, reply.headers, reply.body, endpoint.where)
    if reply.body.lstrip()[:1] in (b"{", b"["):  # it does not stream
        return endpoint.read(reply.body, payload, read)
    try:
        writing.take(reply.body)
        writing.end()
    except Repeats:
        return looped(read(writing.parts.reply(LOOP)))
    return read(writing.parts.reply())


def looped(reply: Completion) -> Completion:
    """Its texts without the loop."""
    starts = [loop_start(text) for text in reply.texts]
    if not any(starts):  # it stood behind a stop word
        return replace(reply, finish="stop", logprobs=())
    texts = tuple(text[:start] for text, start in zip(reply.texts, starts, strict=True))
    return replace(reply, texts=texts, finish=LOOP, logprobs=())


async def while_it_writes(
    seconds: float, act: Callable[[float, list[Usage], Callable[[], None]], Awaitable[Completion]], endpoint: Endpoint,
    price: Price | None,
) -> Completion:  # fmt: skip
    """``act(ends, bill, alive)``, ended when ``alive`` was not called for ``seconds``.

    Raises:
        LMError: it was, or there was no usable reply.
    """
    clock, now = asyncio.timeout(seconds), asyncio.get_running_loop().time

    async def watched(ends: float, bill: list[Usage]) -> Completion:
        return await act(ends, bill, lambda: clock.reschedule(now() + seconds))

    return await within(seconds, watched, endpoint.where, price, clock)


def as_shown(on_text: OnText, stops: tuple[str, ...], endpoint: Endpoint) -> OnText:
    """``on_text`` with texts that are cut at the stop words, and without keys."""
    return lambda text: on_text(redact_known(cut(text, stops), endpoint.secrets))
