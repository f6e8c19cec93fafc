"""The limits of a run, the parts reserved and spent, and the wall clock of a run.

Before a call the most that it may cost is reserved, after it the real usage is charged: calls that run at once can
never all take the last of it. ``keep_calls``, ``keep_share`` and the ``keep`` of a call set something back that only a
final call may use, so a run that hits a limit still answers, within it. Everything is synchronous between awaits, so
it is exact under asyncio concurrency. The clock stands still while all that is under way only waits for its turn at an
endpoint. ``MaxScan`` limits the rows or bytes that one query reads.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType

from decisor.errors import BudgetExceeded, SetupError
from decisor.runtime.prompt import TokenEstimates
from decisor.types import Usage

LIMIT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<size>[KMGT]?)(?P<bytes>B(?:ytes)?)?(?:\s*rows)?", re.I)
SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class MaxScan:
    """A limit on the rows, or bytes, that one query reads."""

    number: int
    bytes: bool = False

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"

    @property
    def unit(self) -> str:
        return "bytes" if self.bytes else "rows"


def parse_max_scan(text: str | int) -> MaxScan:
    """Parse a limit of rows or bytes, such as 5M or 2GB.

    >>> print(parse_max_scan("5M"), parse_max_scan("1_000 rows"), parse_max_scan("2.5GB"), parse_max_scan(700))
    5,000,000 rows 1,000 rows 2,500,000,000 bytes 700 rows
    >>> parse_max_scan("9 bytes") == MaxScan(9, bytes=True)
    True

    Raises:
        SetupError: it is neither rows nor bytes.
    """
    match = LIMIT.fullmatch(str(text).strip())
    if match is None:
        raise SetupError(f"A limit on what a query reads is rows or bytes, such as 5M or 2GB, not {text!r}.")
    number = float(match["number"].replace("_", "").replace(",", ""))
    return MaxScan(int(number * SIZES[match["size"].upper()]), bool(match["bytes"]))


CALL: ContextVar[CallUnderWay | None] = ContextVar("CALL", default=None)


@dataclass(slots=True)
class Clock:
    """The wall clock of a run, which stands still while all calls wait in line."""

    started: float = field(default_factory=time.monotonic)
    running: int = 0
    """Calls and actions under way."""
    waiting: int = 0
    """Those of them that wait for a place among other runs' calls."""
    still: float = 0.0
    """Seconds that the clock stood still, without the present stop."""
    stopped: float = 0.0
    """When the present stop began (monotonic); 0 if the clock runs."""

    def seconds(self) -> float:
        """Return the seconds since the start, without the time that the clock stood still."""
        now = time.monotonic()
        return now - self.started - self.still - (now - self.stopped if self.stopped else 0.0)

    def change(self, running: int = 0, waiting: int = 0) -> None:
        self.running += running
        self.waiting += waiting
        # One call that works is enough for time to pass: the run uses its seconds then.
        stands = self.waiting > 0 and self.waiting >= self.running
        if stands and not self.stopped:
            self.stopped = time.monotonic()
        elif self.stopped and not stands:
            self.still += time.monotonic() - self.stopped
            self.stopped = 0.0


@dataclass(slots=True)
class CallUnderWay:
    """A call in progress; within its block, waits and requests are noted on it until its deadline."""

    clocks: tuple[Clock, ...]
    seconds_left: Callable[[], float | None]
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    say: Callable[[str], None] = lambda words: None
    """Shows a line to whoever watches the run."""
    waits: int = 0
    """Number of waits for a place or a connection just now."""
    sent: bool = False
    """True if the endpoint may have worked on a request of this call."""
    waiting: float = 0.0
    """Seconds waited in line."""
    token: Token[CallUnderWay | None] = field(init=False)

    def __aenter__(self) -> Awaitable[object]:
        self.token = CALL.set(self)
        return self.deadline.__aenter__()

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> Awaitable[bool | None]:
        CALL.reset(self.token)
        return self.deadline.__aexit__(kind, error, where)

    @property
    def is_unsent(self) -> bool:
        return self.waits > 0 and not self.sent

    def seconds(self, began: float) -> float:
        """Return the seconds since ``began``, without the time waited in line."""
        return time.monotonic() - began - self.waiting

    def stand_still(self) -> None:
        for clock in self.clocks:
            clock.change(waiting=1)
        # The deadline is of working time: it is set anew when the wait is over.
        self.deadline.reschedule(None)

    def go_on(self) -> None:
        for clock in self.clocks:
            clock.change(waiting=-1)
        left = self.seconds_left()
        # A deadline that has expired cannot be rescheduled: asyncio raises RuntimeError.
        if not self.deadline.expired():
            self.deadline.reschedule(None if left is None else asyncio.get_running_loop().time() + left)


@contextmanager
def pause_clocks() -> Iterator[None]:
    """Stop the clocks of the current call's run while the call waits in line.

    The wait among other calls costs nothing.
    """
    call = CALL.get()
    if call is None:
        yield
        return
    began = time.monotonic()
    call.waits += 1
    call.stand_still()
    try:
        yield
        call.waits -= 1
    finally:
        call.waiting += time.monotonic() - began
        call.go_on()


@contextmanager
def mark_while_connecting() -> Iterator[None]:
    """Mark the current call as unsent while it gets its connection. That time counts for the run, and costs nothing."""
    call = CALL.get()
    if call is None:
        yield
        return
    call.waits += 1
    try:
        yield
    except Exception:
        call.waits -= 1
        raise
    call.waits, call.sent = call.waits - 1, True


FIRST_REPLY = 256
"""Completion tokens that a call is likely to take, before there was one to tell."""
LONGEST_KEEP = 0.5
"""Of a limit of seconds, kept back at most."""
NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for one run.

    None means no limit. An unknown price against a dollar limit is refused: it is never taken for zero.
    """

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None
    actions: int | None = None


@dataclass(slots=True)
class Budget:
    """An allowance of calls, tokens, dollars, seconds and actions, with the usage so far.

    Budgets nest: a child's usage is charged to its parents too, and all must allow it.
    """

    limits: Limits = Limits()
    keep_calls: int = 1
    """Calls that only a final call may use."""
    keep_share: float = 0.1
    """Share of tokens, dollars and seconds that only a final call may use."""
    parent: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    pending_calls: int = 0
    """Reserved for calls under way, as are the other ``pending_...``."""
    pending_tokens: int = 0
    pending_dollars: float = 0.0
    pending_actions: int = 0
    clock: Clock = field(default_factory=Clock)
    estimates: TokenEstimates = field(default_factory=TokenEstimates)
    above: tuple[Budget, ...] = field(init=False, repr=False)
    """The parent and its parents."""
    limits_dollars: bool = field(init=False)
    """True if this budget or a parent limits dollars."""
    limits_cost: bool = field(init=False)
    """True if this budget or a parent limits dollars or tokens."""

    def __post_init__(self) -> None:
        above = self.parent
        self.above = above.chain() if above is not None else ()
        # What was learned of an LLM's tokenizer holds for the whole run, so a child shares its parent's estimates.
        self.estimates = above.estimates if above is not None else self.estimates
        self.limits_dollars = self.limits.dollars is not None or (above is not None and above.limits_dollars)
        self.limits_cost = (
            self.limits_dollars or self.limits.tokens is not None or (above is not None and above.limits_cost)
        )

    def child(self, limits: Limits = Limits(), keep_calls: int = 0) -> Budget:
        return Budget(limits, keep_calls=keep_calls, parent=self)

    def chain(self) -> tuple[Budget, ...]:
        return (self, *self.above)

    def seconds_left(self, final: bool = False) -> float | None:
        """Return the seconds until the nearest time limit of this budget and its parents; None without one.

        The length of a mean call is kept back for the final call.
        """
        left = [
            limit - budget.clock.seconds() - budget._back(limit, budget._a_call(limit), final)
            for budget in self.chain()
            if (limit := budget.limits.seconds) is not None
        ]
        return max(0.0, min(left)) if left else None

    def limit_of_seconds(self) -> float:
        """Return the time limit that is nearest to its end, in seconds; 0 without one."""
        left = [(limit - budget.clock.seconds(), limit) for budget in self.chain() if (limit := budget.limits.seconds)]
        return min(left)[1] if left else 0.0

    def tokens_left(self, final: bool, keep: int) -> int | None:
        """Return the tokens left for prompt and reply of one call; None without a limit.

        ``keep`` tokens stay back for the final call.
        """
        left = [
            int(limit - budget.spent.tokens - budget.pending_tokens - budget._back(limit, keep, final))
            for budget in self.chain()
            if (limit := budget.limits.tokens) is not None
        ]
        return min(left, default=None)

    def dollars_left(self, final: bool, keep: float) -> float | None:
        """Return the dollars left for one call; None without a limit. ``keep`` dollars stay back for the final call."""
        left = [
            limit - (budget.spent.dollars or 0.0) - budget.pending_dollars - budget._back(limit, keep, final)
            for budget in self.chain()
            if (limit := budget.limits.dollars) is not None
        ]
        return min(left, default=None)

    def _back(self, limit: float, keep: float, final: bool) -> float:
        """Return the part of a limit that only a final call may use."""
        return 0.0 if final else max(self.keep_share * limit, keep)

    def _a_call(self, limit: float) -> float:
        """Return the mean seconds of a call so far, at most ``LONGEST_KEEP`` of the limit; 0 before the first."""
        return min(self.spent.seconds / self.spent.calls, LONGEST_KEEP * limit) if self.spent.calls else 0.0

    def likely_reply(self) -> int:
        """Estimate the completion tokens of a call as the mean of the calls so far."""
        for budget in self.chain():
            if budget.spent.calls:
                # Rounded up: an estimate that is too low would keep back too little.
                return -(-budget.spent.completion_tokens // budget.spent.calls)
        return FIRST_REPLY

    def reserve(self, request: Usage, final: bool = False, keep: Usage = NOTHING) -> None:
        """Set ``request`` aside before a call; raise BudgetExceeded if a limit would be passed.

        Nothing is set aside then. keep: likely cost of a final call after this one.
        """
        chain = self.chain()
        # All are checked before any is changed, so a refusal leaves no reservation behind.
        for budget in chain:
            budget._check(request, final, keep)
        for budget in chain:
            budget.pending_calls += request.calls
            budget.pending_tokens += request.tokens
            budget.pending_dollars += request.dollars or 0.0
            budget.pending_actions += request.actions
            budget.clock.change(request.calls + request.actions)

    def charge(self, request: Usage, used: Usage) -> None:
        """Give back the reservation and book the real usage."""
        for budget in self.chain():
            budget.pending_calls -= request.calls
            budget.pending_tokens -= request.tokens
            budget.pending_dollars -= request.dollars or 0.0
            budget.pending_actions -= request.actions
            if not budget.pending_calls:
                budget.pending_dollars = 0.0  # no rounding is carried on
            budget.spent = budget.spent + used
            budget.clock.change(-request.calls - request.actions)

    def _check(self, request: Usage, final: bool, keep: Usage) -> None:
        limits, spent = self.limits, self.spent
        # One call is never kept back from all others: under a limit of one call that call can still be made.
        keep_calls = 0 if final or limits.calls is None else min(self.keep_calls, limits.calls - 1)
        if limits.calls is not None and spent.calls + self.pending_calls + request.calls > limits.calls - keep_calls:
            raise BudgetExceeded("calls", limits.calls)
        if limits.actions is not None and spent.actions + self.pending_actions + request.actions > limits.actions:
            raise BudgetExceeded("actions", limits.actions)
        if limits.seconds is not None:
            back = self._back(limits.seconds, self._a_call(limits.seconds), final)
            if self.clock.seconds() >= limits.seconds - back:
                raise BudgetExceeded("seconds", limits.seconds)
        # An action costs neither tokens nor dollars, so those limits do not concern it.
        if not request.calls:
            return
        if limits.tokens is not None:
            back = self._back(limits.tokens, keep.tokens, final)
            if spent.tokens + self.pending_tokens + request.tokens > limits.tokens - back:
                raise BudgetExceeded(
                    "tokens", limits.tokens, explain_budget_refusal(f"{spent.tokens:,}", f"{request.tokens:,}")
                )
        if limits.dollars is not None:
            if spent.dollars is None or request.dollars is None:
                raise BudgetExceeded("dollars (the price of this model is not known)", limits.dollars)
            back = self._back(limits.dollars, keep.dollars or 0.0, final)
            if spent.dollars + self.pending_dollars + request.dollars > limits.dollars - back:
                why = explain_budget_refusal(f"{spent.dollars:.4f}", f"{request.dollars:.4f}")
                raise BudgetExceeded("dollars", limits.dollars, why)


def explain_budget_refusal(spent: str, request: str) -> str:
    """Explain why a call is refused before it is sent."""
    return f"{spent} are spent, and one more call may take {request}."
