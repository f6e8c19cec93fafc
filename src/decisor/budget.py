"""What is allowed, what is reserved, what was spent.

Before a call its likely cost is reserved, after it the real usage is charged: calls that run at once can never all take
the last of it. ``keep_calls`` and ``keep_share`` keep something back that only a final call may use, so a run that hits
a limit still answers; that call may pass a limit of tokens or dollars, by what it costs itself. Everything is
synchronous between awaits, so it is exact under asyncio concurrency.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from decisor.errors import BudgetExceeded
from decisor.types import Usage

FIRST_REPLY = 256
"""Completion tokens that a call is likely to take, before there was one to tell."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no limit. An unknown price against a dollar limit is refused: it is never taken for zero."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None
    actions: int | None = None


@dataclass(slots=True)
class Budget:
    """Nested: what is spent here is spent in the parent too, and both must allow it. ``pending``: reserved for what is
    under way. ``limits_dollars``, ``limits_cost``: this one or a parent has a limit of dollars; of those or tokens."""

    limits: Limits = Limits()
    keep_calls: int = 1
    keep_share: float = 0.1
    parent: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    pending_calls: int = 0
    pending_tokens: int = 0
    pending_dollars: float = 0.0
    pending_actions: int = 0
    started: float = field(default_factory=time.monotonic)
    limits_dollars: bool = field(init=False)
    limits_cost: bool = field(init=False)

    def __post_init__(self) -> None:
        above = self.parent
        self.limits_dollars = self.limits.dollars is not None or (above is not None and above.limits_dollars)
        self.limits_cost = (
            self.limits_dollars or self.limits.tokens is not None or (above is not None and above.limits_cost)
        )

    def child(self, limits: Limits = Limits(), keep_calls: int = 0) -> Budget:
        return Budget(limits, keep_calls=keep_calls, parent=self)

    def chain(self) -> Iterator[Budget]:
        budget: Budget | None = self
        while budget is not None:
            yield budget
            budget = budget.parent

    def seconds_left(self) -> float | None:
        """Until the nearest wall-clock limit of this budget and its parents; None without one."""
        now = time.monotonic()
        left = [b.limits.seconds - (now - b.started) for b in self.chain() if b.limits.seconds is not None]
        return max(0.0, min(left)) if left else None

    def likely_reply(self) -> int:
        """Completion tokens of a call, by the mean of those that were made."""
        for budget in self.chain():
            if budget.spent.calls:
                return -(-budget.spent.completion_tokens // budget.spent.calls)
        return FIRST_REPLY

    def reserve(self, request: Usage, final: bool = False) -> None:
        """Set ``request`` aside; raises BudgetExceeded, and sets nothing aside, where a limit would be passed."""
        chain = tuple(self.chain())
        for budget in chain:
            budget._check(request, final)
        for budget in chain:
            budget.pending_calls += request.calls
            budget.pending_tokens += request.tokens
            budget.pending_dollars += request.dollars or 0.0
            budget.pending_actions += request.actions

    def charge(self, request: Usage, used: Usage) -> None:
        """Give back what was reserved and book what was really used."""
        for budget in self.chain():
            budget.pending_calls -= request.calls
            budget.pending_tokens -= request.tokens
            budget.pending_dollars -= request.dollars or 0.0
            budget.pending_actions -= request.actions
            if not budget.pending_calls:
                budget.pending_dollars = 0.0  # no rounding is carried on
            budget.spent = budget.spent + used

    def _check(self, request: Usage, final: bool) -> None:
        limits, spent = self.limits, self.spent
        share = 1.0 if final else 1.0 - self.keep_share
        keep = 0 if final or limits.calls is None else min(self.keep_calls, limits.calls - 1)
        if limits.calls is not None and spent.calls + self.pending_calls + request.calls > limits.calls - keep:
            raise BudgetExceeded("calls", limits.calls)
        if limits.actions is not None and spent.actions + self.pending_actions + request.actions > limits.actions:
            raise BudgetExceeded("actions", limits.actions)
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds * share:
            raise BudgetExceeded("seconds", limits.seconds)
        if not request.calls:
            return
        if limits.tokens is not None and passes(
            limits.tokens * share, spent.tokens + self.pending_tokens, request.tokens, final
        ):
            raise BudgetExceeded("tokens", limits.tokens)
        if limits.dollars is not None:
            if spent.dollars is None or request.dollars is None:
                raise BudgetExceeded("dollars (the price of this model is not known)", limits.dollars)
            if passes(limits.dollars * share, spent.dollars + self.pending_dollars, request.dollars, final):
                raise BudgetExceeded("dollars", limits.dollars)


def passes(allowed: float, before: float, more: float, final: bool) -> bool:
    """Whether ``more`` would pass the limit; a final call may, once, where something is left of it.

    >>> passes(90, 80, 20, final=False), passes(100, 80, 30, final=True), passes(100, 100, 1, final=True)
    (True, False, True)
    """
    return before + more > allowed and not (final and before < allowed)
