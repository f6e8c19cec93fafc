"""The wall clock of a run: it stands still while all that is under way only waits for its turn at an endpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType

CALL: ContextVar[CallUnderWay | None] = ContextVar("CALL", default=None)


@dataclass(slots=True)
class Clock:
    """``running``: calls and actions under way; ``waiting``: those of them that wait for a place among other runs'."""

    started: float = field(default_factory=time.monotonic)
    running: int = 0
    waiting: int = 0
    still: float = 0.0
    stopped: float = 0.0

    def seconds(self) -> float:
        """Since it was started, without what it stood still."""
        now = time.monotonic()
        return now - self.started - self.still - (now - self.stopped if self.stopped else 0.0)

    def change(self, running: int = 0, waiting: int = 0) -> None:
        self.running += running
        self.waiting += waiting
        stands = self.waiting > 0 and self.waiting >= self.running
        if stands and not self.stopped:
            self.stopped = time.monotonic()
        elif self.stopped and not stands:
            self.still += time.monotonic() - self.stopped
            self.stopped = 0.0


@dataclass(slots=True)
class CallUnderWay:
    """With it, what happens is part of the call, until its deadline. ``say``: a line for who watches the run.
    ``waits``: it waits for a place or a connection just now; ``sent``: a request of it may have been worked on."""

    clocks: tuple[Clock, ...]
    seconds_left: Callable[[], float | None]
    deadline: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    say: Callable[[str], None] = lambda words: None
    waits: int = 0
    sent: bool = False
    waiting: float = 0.0
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
        """Since it began, without what it waited in line."""
        return time.monotonic() - began - self.waiting

    def stand_still(self) -> None:
        for clock in self.clocks:
            clock.change(waiting=1)
        self.deadline.reschedule(None)

    def go_on(self) -> None:
        for clock in self.clocks:
            clock.change(waiting=-1)
        left = self.seconds_left()
        if not self.deadline.expired():
            self.deadline.reschedule(None if left is None else asyncio.get_running_loop().time() + left)


@contextmanager
def in_line() -> Iterator[None]:
    """While a call waits for its turn among others: that time is not its run's, and costs nothing."""
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
def connecting() -> Iterator[None]:
    """While a call gets its connection: that time is its run's, and costs nothing."""
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
