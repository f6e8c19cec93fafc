"""What is allowed, what is held, what was spent.

Before a call a share is reserved, after it the real usage is charged: two calls at once can never both take the last
one. ``keep_calls`` and ``keep_share`` hold something back that only a final call may use, so a run that hits a limit
still answers. Everything is synchronous between awaits, so it is exact under asyncio concurrency.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from decisor.errors import BudgetExceeded
from decisor.types import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """None means no limit. An unknown price against a dollar limit ends the run: it is never taken for zero."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None
    actions: int | None = None


@dataclass(slots=True)
class Budget:
    """Nested: what is spent here is spent in the parent too, and both must allow it."""

    limits: Limits = Limits()
    keep_calls: int = 1
    keep_share: float = 0.1
    parent: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    held_calls: int = 0
    held_tokens: int = 0
    held_actions: int = 0
    started: float = field(default_factory=time.monotonic)

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

    def reserve(self, want: Usage, final: bool = False) -> None:
        """Hold ``want``; raises BudgetExceeded, holding nothing, where a limit would be passed."""
        chain = tuple(self.chain())
        for budget in chain:
            budget._check(want, final)
        for budget in chain:
            budget.held_calls += want.calls
            budget.held_tokens += want.tokens
            budget.held_actions += want.actions

    def charge(self, wanted: Usage, used: Usage) -> None:
        """Give back what was held and book what was really used."""
        for budget in self.chain():
            budget.held_calls -= wanted.calls
            budget.held_tokens -= wanted.tokens
            budget.held_actions -= wanted.actions
            budget.spent = budget.spent + used

    def _check(self, want: Usage, final: bool) -> None:
        limits, spent = self.limits, self.spent
        share = 1.0 if final else 1.0 - self.keep_share
        keep = 0 if final or limits.calls is None else min(self.keep_calls, limits.calls - 1)
        if limits.calls is not None and spent.calls + self.held_calls + want.calls > limits.calls - keep:
            raise BudgetExceeded("calls", limits.calls)
        if limits.actions is not None and spent.actions + self.held_actions + want.actions > limits.actions:
            raise BudgetExceeded("actions", limits.actions)
        if (
            limits.tokens is not None
            and want.calls
            and (spent.tokens + self.held_tokens + want.tokens > limits.tokens * share)
        ):
            raise BudgetExceeded("tokens", limits.tokens)
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds * share:
            raise BudgetExceeded("seconds", limits.seconds)
        if (
            limits.dollars is not None
            and want.calls
            and (spent.dollars is None or spent.dollars >= limits.dollars * share)
        ):
            raise BudgetExceeded(
                "dollars (the price of this model is not known)" if spent.dollars is None else "dollars", limits.dollars
            )
