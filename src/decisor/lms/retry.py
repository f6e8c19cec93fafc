"""The one retry layer: full jitter, a shared gate, and a budget, so that a fault never becomes a storm."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from decisor.errors import LMError

T = TypeVar("T")


class Again(LMError):
    """Worth another attempt. ``after``: seconds the server asked us to wait, None where it named none."""

    def __init__(self, complaint: str, kind: str = "protocol", after: float | None = None) -> None:
        super().__init__(complaint, kind)
        self.after = after


@dataclass
class Retries:
    """Shared by all calls to one endpoint.

    The pause before attempt k+1 is uniform in (0, min(most_seconds, first_seconds * 2**(k-1))), with four times
    first_seconds after a 429. Where the server named a time, every call waits at least that long (the gate), then a
    little more, each its own. ``allowance``: retries at hand; each takes one unless the server asked for it, and each
    success gives half a one back. ``overloaded`` is called when the endpoint has too much to do (429, 5xx).
    """

    attempts: int = 6
    first_seconds: float = 0.5
    most_seconds: float = 30.0
    allowance: float = 128.0
    opens_at: float = 0.0
    overloaded: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.capacity = self.allowance

    async def call(self, once: Callable[[], Awaitable[T]], ends: float) -> T:
        """The reply of the first attempt that succeeds; ``ends`` is in ``time.monotonic`` seconds.

        Raises:
            LMError: a permanent fault at once; a passing one when attempts, allowance or time are used up.
        """
        for tried in range(1, self.attempts + 1):
            await self._gate()
            try:
                reply = await once()
            except Again as error:
                failed = error
            else:
                self.allowance = min(self.capacity, self.allowance + 0.5)
                return reply
            await self._pause(failed, tried, ends)
        raise AssertionError("unreachable")

    async def _gate(self) -> None:
        while (wait := self.opens_at - time.monotonic()) > 0:  # noqa: ASYNC110 - it may be moved while we sleep
            await asyncio.sleep(wait + random.uniform(0, min(1.0, wait)))

    async def _pause(self, failed: Again, tried: int, ends: float) -> None:
        if failed.kind in ("rate", "server"):
            self.overloaded()
        if tried >= self.attempts:
            raise LMError(f"{failed} Gave up after {tried} attempts.", failed.kind)
        if failed.after is not None:
            now = time.monotonic()
            if now + failed.after >= ends:
                raise LMError(f"{failed} It asks to wait {failed.after:.0f} s: longer than this call may take. "
                              "Try again later.", failed.kind)  # fmt: skip
            self.opens_at = max(self.opens_at, now + failed.after)
            return
        if self.allowance < 1:
            raise LMError(f"{failed} Too many retries lately; not trying again.", failed.kind)
        self.allowance -= 1
        slower = 2 if failed.kind == "rate" else 0
        await asyncio.sleep(random.uniform(0, min(self.most_seconds, self.first_seconds * 2 ** (tried - 1 + slower))))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait; header names in lower case. None where it does not say so, readably.

    A date is taken against the server's own Date header: our clock may be wrong.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after-ms": "250"}), retry_after({"retry-after": "soon"})
    (2.0, 0.25, None)
    >>> retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:05 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"})
    5.0
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    until = _instant(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _instant(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _instant(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
