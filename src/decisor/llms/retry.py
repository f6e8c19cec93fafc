"""The one retry layer of calls to an endpoint, and the errors for its refusals.

It has full jitter, waits that calls share, and an allowance, so that a fault never becomes a storm. A refusal of an
endpoint becomes an LLMError: it tells whether another try is worth it, and the remedy.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from decisor.errors import LLMError
from decisor.runtime.budget import CALL
from decisor.system.extras import logger
from decisor.types import Usage

T = TypeVar("T")
LONGEST_WAIT = 3600.0
LONG_WAIT = 120.0
"""Seconds; a longer wait that a server asks for ends the whole run, which can be resumed later."""
LOOK_AGAIN = 0.2


class RetryableError(LLMError):
    """A fault that is worth another attempt. after: seconds the server asked us to wait; None if it named none. nobody:
    nothing listens there, or the host has no such name.
    """

    def __init__(
        self,
        complaint: str,
        kind: str = "protocol",
        after: float | None = None,
        used: Usage = Usage(),
        nobody: bool = False,
    ) -> None:
        super().__init__(complaint, kind, used=used)
        self.after = after
        self.nobody = nobody


@dataclass
class Patience:
    """The wait of one call for its endpoint, with messages."""

    says_after: float
    """Seconds from which on a wait is reported."""
    says_each: float
    """Seconds after which it is reported again."""
    began: float = 0.0
    says_at: float = 0.0

    async def wait(self, seconds: float, why: str) -> None:
        now = time.monotonic()
        self.began, until = self.began or now, now + seconds
        while now < until:
            if now >= self.says_at and until - self.began >= self.says_after:
                self.says_at = now + self.says_each
                if (call := CALL.get()) is not None:  # a call outside of a run has no trace
                    call.say(f"Waiting for the LLM, {now - self.began:.0f} s so far: {why}")
            # Not slept in one piece: the next message is due before a long wait ends.
            await asyncio.sleep(min(until, max(self.says_at, now + LOOK_AGAIN)) - now)
            now = time.monotonic()


@dataclass
class Retries:
    """The retry state that all calls to one endpoint share. The pause before attempt k+1 is uniform in (0,
    min(most_seconds, first_seconds * 2**(k-1))), with four times first_seconds after a 429. Where the server named a
    time, every call waits at least that long, then a little more, each its own; a time that is shorter than the pause
    does not shorten it. The breaker: after ``breaks_at`` faults in a row, of all calls together, only one call at a
    time tries, after a rest of ``rest_seconds`` that doubles each time it fails; the others wait. One reply closes it.
    """

    attempts: int = 6
    """Faults of a call, after which it gives up; refusals for being too many (429) do not count."""
    first_seconds: float = 0.5
    most_seconds: float = 30.0
    allowance: float = 128.0
    """Retries at hand. Each takes one unless the server asked for it, and each success gives half a one back."""
    overloaded: Callable[[], None] = lambda: None
    """Called when the endpoint has too much to do (429, 5xx)."""
    breaks_at: int = 20
    rest_seconds: float = 2.0
    rate_attempts: int = 100
    """Refusals for being too many that a call takes, if its time allows."""
    first_attempts: int = 3
    """Faults that are enough where nobody ever answered: a server that was not started, a misspelt host."""
    says_after: float = 5.0
    """Seconds of waiting after which a call says so in the trace of its run."""
    says_each: float = 30.0
    """Seconds after which it says so again."""
    opens_at: float = field(default=0.0, init=False)
    faults: int = field(default=0, init=False)
    rest: float = field(default=0.0, init=False)
    trying: bool = field(default=False, init=False)
    why: str = field(default="", init=False)
    somebody: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.capacity = self.allowance

    async def call(self, once: Callable[[], Awaitable[T]], ends: float) -> T:
        """Return the reply of the first attempt that succeeds. ends: in ``time.monotonic`` seconds.

        Raises:
            LLMError: a permanent fault at once; a passing one when attempts, allowance or time are used up.
        """
        faults = refusals = 0
        patience = Patience(self.says_after, self.says_each)
        while True:
            alone = await self._turn(ends, patience)
            try:
                reply = await once()
            except RetryableError as error:
                failure = error
                self.somebody |= not error.nobody
                if error.kind == "rate":
                    refusals += 1
                else:
                    faults += 1
                    self._fault(str(error), alone)
            except LLMError:
                self.somebody, self.faults, self.rest = True, 0, 0.0  # it answers, if only to say no
                raise
            except asyncio.CancelledError:
                # The deadline ended it, which is a fault of the endpoint; any other cancellation is the caller's.
                if time.monotonic() >= ends - 0.01:
                    self._fault("It gave no reply in time.", alone)
                raise
            else:
                self.somebody, self.faults, self.rest = True, 0, 0.0
                self.allowance = min(self.capacity, self.allowance + 0.5)
                return reply
            finally:
                # Also after a cancellation, or nobody would try a broken endpoint again.
                self.trying = self.trying and not alone
            await self._pause(failure, faults, refusals, ends, patience)

    async def _turn(self, ends: float, patience: Patience) -> bool:
        """Wait until a call may be made; return whether it alone tries a broken endpoint.

        Raises:
            LLMError: that is later than ``ends``.
        """
        while True:
            now = time.monotonic()
            broken = self.faults >= self.breaks_at
            if now >= self.opens_at and not (broken and self.trying):
                self.trying = broken
                return broken
            if self.opens_at >= ends:
                why = f"The last {self.faults} calls failed. {self.why}" if broken else self.why
                raise LLMError(
                    f"Not asked for another {self.opens_at - now:.0f} s, which is longer than this call may "
                    f"take. {why}",
                    "server" if broken else "rate",
                    permanent=self.opens_at - now > LONG_WAIT,
                )
            wait = max(self.opens_at - now, LOOK_AGAIN if broken else 0.0)
            await patience.wait(wait + random.uniform(0, min(1.0, wait)), self.why)

    def _fault(self, why: str, alone: bool) -> None:
        self.faults, self.why = self.faults + 1, why
        if alone or self.faults == self.breaks_at:
            self.rest = min(self.most_seconds, 2 * self.rest or self.rest_seconds)
            self.opens_at = max(self.opens_at, time.monotonic() + self.rest)

    async def _pause(
        self, failure: RetryableError, faults: int, refusals: int, ends: float, patience: Patience
    ) -> None:
        """Wait after a fault until this call may wait for its turn again.

        Raises:
            LLMError: its attempts, its time or the allowance are used up.
        """
        is_rate, now, attempts = failure.kind == "rate", time.monotonic(), faults + refusals
        if failure.kind in ("rate", "server"):
            self.overloaded()
        if failure.after is not None:
            self.opens_at = max(self.opens_at, now + min(failure.after, LONGEST_WAIT))
            self.why = str(failure)
            if now + failure.after >= ends:
                raise LLMError(
                    f"{failure} It asks to wait {failure.after:.6g} s: longer than this call may take. "
                    "Try again later.",
                    failure.kind,
                    permanent=failure.after > LONG_WAIT,
                )
        most_faults = self.attempts if self.somebody else min(self.attempts, self.first_attempts)
        if refusals >= self.rate_attempts if is_rate else faults >= most_faults:
            advice = " Is it started, and is the address right?" if failure.nobody else ""
            raise LLMError(f"{failure} Gave up after {attempts} attempts.{advice}", failure.kind)
        # A retry that the server asked for is no storm, so it takes nothing from the allowance.
        if failure.after is None and not is_rate:
            if self.allowance < 1:
                raise LLMError(f"{failure} Too many retries lately; not trying again.", failure.kind)
            self.allowance -= 1
        # Two doublings ahead: a crowd against a limit used up its attempts in seconds.
        slower = 2 + refusals if is_rate else faults
        pause = random.uniform(0, min(self.most_seconds, self.first_seconds * 2 ** min(slower - 1, 60)))
        if is_rate and now + pause >= ends:
            raise LLMError(f"{failure} Gave up after {attempts} attempts: no time is left for another.", failure.kind)
        logger.warning("a call to an LLM failed (%s) and is tried again, attempt %d", failure.kind, attempts + 1)
        await patience.wait(pause, str(failure))


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks us to wait; header names in lower case.

    None if it names none, unreadably, or if none are left: then our own pause is all that keeps a crowd from coming
    back at once.

    A date is taken against the server's own Date header: our clock may be wrong.

    >>> (parse_retry_after({"retry-after": "2"}), parse_retry_after({"retry-after-ms": "250"}),
    ...     parse_retry_after({"retry-after": "soon"}))
    (2.0, 0.25, None)
    >>> parse_retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:05 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"})
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


SPENT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "billing_error"}
KEYS = {"invalid_api_key", "authentication_error", "permission_error", "account_deactivated"}
FILTERED = {"content_filter", "content_policy_violation", "data_inspection_failed"}
TOO_LONG = re.compile(r"(?i)context (length|window|size)|prompt is too long|maximum context|too many tokens")
UNSUPPORTED = re.compile(r"(?i)unsupported param|requires --jinja")
"""How llama.cpp's server refuses a field, with status 500."""
PASSING = {408, 409, 425, 429}
LONGEST = 300


def build_fault(status: int, headers: Mapping[str, str], body: bytes, where: str) -> LLMError:
    """Build the error for a reply whose status is not 2xx. headers: with names in lower case."""
    if 300 <= status < 400:
        return LLMError(
            f"{where} redirects elsewhere ({status}); redirects are not followed. If the other address is "
            "right, name it: --llm MODEL@BASE_URL",
            "redirect",
            permanent=True,
        )
    return classify_fault(status, parse_error_body(body), where, parse_retry_after(headers))


def fault_in_reply(error: Mapping[str, object], where: str) -> LLMError:
    """Build the error for an error object that came with status 200."""
    code = error.get("code")
    is_status = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600
    return classify_fault(code if is_status and isinstance(code, int) else 200, error, where, None)


def classify_fault(status: int, error: Mapping[str, object], where: str, after: float | None) -> LLMError:
    """Classify a fault by its codes first, then its status: some providers send quota errors as 429."""
    codes = {str(error.get("code")), str(error.get("type"))}
    complaint = f"{where} answered {status}: {format_error_message(error)}"
    # Before the status: OpenAI sends a spent quota as 429, and waiting does not fill an account.
    if codes & SPENT or status == 402:
        return LLMError(f"{complaint} No credit is left there: top up, or name another LLM with --llm.", "quota", True)
    if codes & FILTERED:
        return LLMError(complaint, "content_filter")
    if codes & KEYS or status in (401, 403):
        return LLMError(
            f"{complaint} Check the key for this endpoint (decisor doctor shows which is used).", "auth", True
        )
    if status == 429:
        return RetryableError(complaint, "rate", after)
    if "tool_use_failed" in codes:  # Groq: the model wrote a call that could not be read
        return RetryableError(complaint)
    if "context_length_exceeded" in codes or status == 413 or (status < 500 and TOO_LONG.search(complaint)):
        return LLMError(complaint, "context")
    if status == 500 and UNSUPPORTED.search(complaint):
        return LLMError(complaint, "request")
    if status in PASSING or (status >= 500 and status != 501):
        return RetryableError(complaint, "server", after)
    if status == 200:
        return RetryableError(complaint, "protocol")
    if status == 404:
        return LLMError(f"{complaint} Is the LLM's name right, and the base URL? Most end in /v1.", "request", True)
    return LLMError(complaint, "request", permanent=status not in (400, 422))  # the next may be taken


def parse_error_body(body: bytes) -> Mapping[str, object]:
    """Parse the error object of a reply, in any of the usual shapes. A web page or plain text becomes its message."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:20_000].decode("utf-8", "replace")
        title = re.search(r"(?is)<title>(.{1,200}?)</title>", text)
        page = "<html" in text.lower() or "<!doctype" in text.lower()
        return {"message": f"a web page, {title[1].strip()!r}" if title else "a web page" if page else text}
    error = reply.get("error", reply) if isinstance(reply, dict) else reply
    return error if isinstance(error, dict) else {"message": str(error)}


def format_error_message(error: Mapping[str, object]) -> str:
    """Format the message of an error and the parameter it names, as one line with a full stop."""
    message = error.get("message") or error.get("detail") or error.get("type") or "(no reason given)"
    text = " ".join(str(message).split())
    param = error.get("param")
    text = f"{text} (param {param!r})" if isinstance(param, str) and param not in text else text
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def shorten_complaint(complaint: str) -> str:
    """Shorten a complaint to ``LONGEST`` characters. Redact first: a key cut in half would not be found."""
    return complaint if len(complaint) <= LONGEST else complaint[: LONGEST - 1] + "…"
