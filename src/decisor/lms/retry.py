"""The one retry layer: full jitter, waits that calls share, and an allowance, so that a fault never becomes a storm."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from decisor.calls.clock import CALL
from decisor.errors import LMError
from decisor.log import logger
from decisor.types import Usage

T = TypeVar("T")
LONGEST_WAIT = 3600.0
LONG_WAIT = 120.0
"""A wait that was asked for and is longer ends a whole run, which can be gone on with later."""
LOOK_AGAIN = 0.2


class Again(LMError):
    """Worth another attempt. ``after``: seconds the server asked us to wait, None where it named none. ``nobody``:
    nothing listens there, or the host has no such name."""

    def __init__(
        self, complaint: str, kind: str = "protocol", after: float | None = None, used: Usage = Usage(),
        nobody: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(complaint, kind, used=used)
        self.after = after
        self.nobody = nobody


@dataclass
class Patience:
    """Of one call that waits for the endpoint: a wait of ``says_after`` seconds or more is said, and again each
    ``says_each``."""

    says_after: float
    says_each: float
    began: float = 0.0
    says_at: float = 0.0

    async def wait(self, seconds: float, why: str) -> None:
        now = time.monotonic()
        self.began, until = self.began or now, now + seconds
        while now < until:
            if now >= self.says_at and until - self.began >= self.says_after:
                self.says_at = now + self.says_each
                say(f"Waiting for the LM, {now - self.began:.0f} s so far: {why}")
            await asyncio.sleep(min(until, max(self.says_at, now + LOOK_AGAIN)) - now)
            now = time.monotonic()


def say(words: str) -> None:
    """In the trace of the run, where there is one."""
    if (call := CALL.get()) is not None:
        call.say(words)


@dataclass
class Retries:
    """Shared by all calls to one endpoint.

    The pause before attempt k+1 is uniform in (0, min(most_seconds, first_seconds * 2**(k-1))), with four times
    first_seconds after a 429. Where the server named a time, every call waits at least that long, then a little more,
    each its own; a time that is shorter than the pause does not shorten it. ``attempts`` counts faults; refusals for
    being too many (429) are no faults: of them a call takes ``rate_attempts``, if its time allows. Where nobody is and
    nobody ever was (a server that was not started, a misspelt host), ``first_attempts`` are enough. ``allowance``:
    retries at hand; each takes one unless the server asked for it, and each success gives half a one back.
    ``overloaded`` is called when the endpoint has too much to do (429, 5xx). A call that waits for ``says_after``
    seconds or longer says so in the trace of its run, and again each ``says_each``.

    The breaker: after ``breaks_at`` faults in a row, of all calls together, only one call at a time tries, after a
    rest of ``rest_seconds`` that doubles each time it fails; the others wait. One reply closes it.
    """

    attempts: int = 6
    first_seconds: float = 0.5
    most_seconds: float = 30.0
    allowance: float = 128.0
    overloaded: Callable[[], None] = lambda: None
    breaks_at: int = 20
    rest_seconds: float = 2.0
    rate_attempts: int = 100
    first_attempts: int = 3
    says_after: float = 5.0
    says_each: float = 30.0
    opens_at: float = field(default=0.0, init=False)
    faults: int = field(default=0, init=False)
    rest: float = field(default=0.0, init=False)
    trying: bool = field(default=False, init=False)
    why: str = field(default="", init=False)
    somebody: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.capacity = self.allowance

    async def call(self, once: Callable[[], Awaitable[T]], ends: float) -> T:
        """The reply of the first attempt that succeeds; ``ends`` is in ``time.monotonic`` seconds.

        Raises:
            LMError: a permanent fault at once; a passing one when attempts, allowance or time are used up.
        """
        faults = refusals = 0
        patience = Patience(self.says_after, self.says_each)
        while True:
            alone = await self._turn(ends, patience)
            try:
                reply = await once()
            except Again as error:
                failure = error
                self.somebody |= not error.nobody
                if error.kind == "rate":
                    refusals += 1
                else:
                    faults += 1
                    self._fault(str(error), alone)
            except LMError:
                self.somebody, self.faults, self.rest = True, 0, 0.0  # it answers, if only to say no
                raise
            except asyncio.CancelledError:
                if time.monotonic() >= ends - 0.01:
                    self._fault("It gave no reply in time.", alone)
                raise
            else:
                self.somebody, self.faults, self.rest = True, 0, 0.0
                self.allowance = min(self.capacity, self.allowance + 0.5)
                return reply
            finally:
                self.trying = self.trying and not alone
            await self._pause(failure, faults, refusals, ends, patience)

    async def _turn(self, ends: float, patience: Patience) -> bool:
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
            await patience.wait(wait + random.uniform(0, min(1.0, wait)), self.why)

    def _fault(self, why: str, alone: bool) -> None:
        self.faults, self.why = self.faults + 1, why
        if alone or self.faults == self.breaks_at:
            self.rest = min(self.most_seconds, 2 * self.rest or self.rest_seconds)
            self.opens_at = max(self.opens_at, time.monotonic() + self.rest)

    async def _pause(self, failure: Again, faults: int, refusals: int, ends: float, patience: Patience) -> None:
        """Until this call may wait for its turn again.

        Raises:
            LMError: its attempts, its time or the allowance are used up.
        """
        is_rate, now, attempts = failure.kind == "rate", time.monotonic(), faults + refusals
        if failure.kind in ("rate", "server"):
            self.overloaded()
        if failure.after is not None:
            self.opens_at = max(self.opens_at, now + min(failure.after, LONGEST_WAIT))
            self.why = str(failure)
            if now + failure.after >= ends:
                raise LMError(f"{failure} It asks to wait {failure.after:.6g} s: longer than this call may take. "
                              "Try again later.", failure.kind, permanent=failure.after > LONG_WAIT)  # fmt: skip
        most_faults = self.attempts if self.somebody else min(self.attempts, self.first_attempts)
        if refusals >= self.rate_attempts if is_rate else faults >= most_faults:
            advice = " Is it started, and is the address right?" if failure.nobody else ""
            raise LMError(f"{failure} Gave up after {attempts} attempts.{advice}", failure.kind)
        if failure.after is None and not is_rate:
            if self.allowance < 1:
                raise LMError(f"{failure} Too many retries lately; not trying again.", failure.kind)
            self.allowance -= 1
        slower = 2 + refusals if is_rate else faults
        pause = random.uniform(0, min(self.most_seconds, self.first_seconds * 2 ** min(slower - 1, 60)))
        if is_rate and now + pause >= ends:
            raise LMError(f"{failure} Gave up after {attempts} attempts: no time is left for another.", failure.kind)
        logger.warning("a call to an LM failed (%s) and is tried again, attempt %d", failure.kind, attempts + 1)
        await patience.wait(pause, str(failure))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait; header names in lower case. None where it does not say so, readably, or where
    none are left: then our own pause is all that keeps a crowd from coming back at once.

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
            return seconds if seconds > 0 else None
    until = _instant(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _instant(headers.get("date", ""))
    left = until - (time.time() if now is None else now)
    return left if left > 0 else None


def _instant(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
