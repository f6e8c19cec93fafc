"""What an LM is writing: heard while it happens, never kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol, TypeAlias, cast

from decisor.secrets import redacted_text
from decisor.types import LM, Completion, Message, Sampling

OnText: TypeAlias = "Callable[[str], None]"
"""Gets all that was written so far of one reply, again and again; a shorter text where an attempt is made anew."""


class StreamingLM(LM, Protocol):
    """One that can say what it writes while it writes it."""

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """As ``complete``."""
        ...


async def streamed(lm: LM, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
    """As ``stream``, where the LM can; else nothing is heard of the reply before it is there."""
    if not hasattr(lm, "stream"):
        return await lm.complete(messages, sampling)
    return await cast(StreamingLM, lm).stream(messages, sampling, on_text)


@dataclass(frozen=True, slots=True)
class Writing:
    """All that was written so far of the reply to one call (1, 2, ... in the run), in the span of that id. The text
    gets shorter where an attempt broke and is made anew. ``is_over``: the call ended; its event, if any, comes next."""

    call: int
    span: int
    text: str
    is_over: bool = False


@dataclass(slots=True)
class Writers:
    """Who writes in one run. ``hear`` gets every Writing."""

    hear: Callable[[Writing], None]
    calls: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def call(self, span: int) -> Iterator[OnText]:
        """For one call: what to give each text to."""
        number, last = next(self.calls), ""

        def on_text(text: str) -> None:
            nonlocal last
            last = text
            self.hear(Writing(number, span, redacted_text(text)))

        try:
            yield on_text
        finally:
            self.hear(Writing(number, span, redacted_text(last), is_over=True))
