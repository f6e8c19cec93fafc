"""The one retry layer: full jitter, a shared gate, and a budget, so that a fault never becomes a storm."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from decisor.errors import LMError
from decisor.log import logger
from decisor.types import Usage

T = TypeVar("T")
LONGEST_GATE = 3600.0
LONG_WAIT = 120.0
"""A wait that was asked for and is longer ends a whole run, which can be gone on with later."""
LOOK_AGAIN = 0.2


class Again(LMError):
    """Worth another attempt. ``after``: seconds the server asked us to wait, None where it named none."""

    def __init__(
        self, complaint: str, kind: str = "protocol", after: float | None = None, used: Usage = Usage()
    ) -> None:
        super().__init__(complaint, kind, used=used)
        self.after = after


@dataclass
class Retries:
    """Shared by all calls to one endpoint.

    The pause before attempt k+1 is uniform in (0, min(most_seconds, first_seconds * 2**(k-1))), with four times
    first_seconds after a 429. Where the server named a time, every call waits at least that long (the gate), then a
    little more, each its own. ``allowance``: retries at hand; each takes one unless the server asked for it, and each
    success gives half a one back. ``overloaded`` is called when the endpoint has too much to do (429, 5xx).

    The breaker: after ``breaks_at`` faults in a row, of all calls together, only one call at a time tries, after a
    rest of ``rest_seconds`` that doubles each time it fails; the others wait. One reply closes it. A 429 is no fault
    in this sense.
    """

    attempts: int = 6
    first_seconds: float = 0.5
    most_seconds: float = 30.0
    allowance: float = 128.0
    overloaded: Callable[[], None] = lambda: None
    breaks_at: int = 20
    rest_seconds: float = 2.0
    opens_at: float = field(default=0.0, init=False)
    faults: int = field(default=0, init=False)
    rest: float = field(default=0.0, init=False)
    trying: bool = field(default=False, init=False)
    why: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.capacity = self.allowance

    async def call(self, once: Callable[[], Awaitable[T]], ends: float) -> T:
        """The reply of the first attempt that succeeds; ``ends`` is in ``time.monotonic`` seconds.

        Raises:
            LMError: a permanent fault at once; a passing one when attempts, allowance or time are used up.
        """
        for tried in range(1, self.attempts + 1):
            alone = await self._gate(ends)
            try:
                reply = await once()
            except Again as error:
                failed = error
                if error.kind != "rate":
                    self._fault(str(error), alone)
            except LMError:
                self.faults, self.rest = 0, 0.0  # it answers, if only to say no
                raise
            except asyncio.CancelledError:
                if time.monotonic() >= ends - 0.01:
                    self._fault("It gave no reply in time.", alone)
                raise
            else:
                self.faults, self.rest = 0, 0.0
                self.allowance = min(self.capacity, self.allowance + 0.5)
                return reply
            finally:
                self.trying = self.trying and not alone
            await self._pause(failed, tried, ends)
        raise AssertionError("unreachable")

    async def _gate(self, ends: float) -> bool:
        """Wait until a call may be made; whether it is the one that tries a broken endpoint.

        Raises:
            LMError: that is later than ``ends``.
        """
        while True:
            now = time.monotonic()
            broken = self.faults >= self.breaks_at
            if now >= self.opens_at and not (broken and self.trying):
                self.trying = broken
                return broken
            if self.opens_at >= ends:
                why = f"The last {self.faults} calls failed. {self.why}" if broken else self.why
                raise LMError(f"Not asked for another {self.opens_at - now:.0f} s, which is longer than this call may "
                              f"take. {why}", "server" if broken else "rate",
                              permanent=self.opens_at - now > LONG_WAIT)  # fmt: skip
            wait = max(self.opens_at - now, LOOK_AGAIN if broken else 0.0)
            await asyncio.sleep(wait + random.uniform(0, min(1.0, wait)))

    def _fault(self, why: str, alone: bool) -> None:
        self.faults, self.why = self.faults + 1, why
        if alone or self.faults == self.breaks_at:
            self.rest = min(self.most_seconds, 2 * self.rest or self.rest_seconds)
            self.opens_at = max(self.opens_at, time.monotonic() + self.rest)

    async def _pause(self, failed: Again, tried: int, ends: float) -> None:
        if failed.kind in ("rate", "server"):
            self.overloaded()
        if failed.after is not None:
            now = time.monotonic()
            self.opens_at = max(self.opens_at, now + min(failed.after, LONGEST_GATE))
            self.why = str(failed)
            if now + failed.after >= ends:
                raise LMError(f"{failed} It asks to wait {failed.after:.0f} s: longer than this call may take. "
                              "Try again later.", failed.kind, permanent=failed.after > LONG_WAIT)  # fmt: skip
        if tried >= self.attempts:
            raise LMError(f"{failed} Gave up after {tried} attempts.", failed.kind)
        if failed.after is None and self.allowance < 1:
            raise LMError(f"{failed} Too many retries lately; not trying again.", failed.kind)
        logger.warning("a call to an LM failed (%s); attempt %d of %d follows", failed.kind, tried + 1, self.attempts)
        if failed.after is not None:
            return
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
