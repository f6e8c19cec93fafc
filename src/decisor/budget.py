"""What is allowed, what is reserved, what was spent.

Before a call the most that it may cost is reserved, after it the real usage is charged: calls that run at once can
never all take the last of it. ``keep_calls``, ``keep_share`` and the ``keep`` of a call set something back that only a
final call may use, so a run that hits a limit still answers, within it. Everything is synchronous between awaits, so it
is exact under asyncio concurrency.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.calls.clock import Clock
from decisor.calls.estimates import Estimates
from decisor.errors import BudgetExceeded
from decisor.types import Usage

FIRST_REPLY = 256
"""Completion tokens that a call is likely to take, before there was one to tell."""
LONGEST_KEEP = 0.5
"""Of a limit of seconds, kept back at most."""
NOTHING = Usage()


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
    under way. ``above``: its parent and those of that. ``limits_dollars``, ``limits_cost``: this one or one above has a
    limit of dollars; of those or tokens."""

    limits: Limits = Limits()
    keep_calls: int = 1
    keep_share: float = 0.1
    parent: Budget | None = None
    spent: Usage = field(default_factory=Usage)
    pending_calls: int = 0
    pending_tokens: int = 0
    pending_dollars: float = 0.0
    pending_actions: int = 0
    clock: Clock = field(default_factory=Clock)
    estimates: Estimates = field(default_factory=Estimates)
    above: tuple[Budget, ...] = field(init=False, repr=False)
    limits_dollars: bool = field(init=False)
    limits_cost: bool = field(init=False)

    def __post_init__(self) -> None:
        above = self.parent
        self.above = above.chain() if above is not None else ()
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
        """Until the nearest wall-clock limit of this budget and its parents; None without one. As long as a call takes
        is kept back for the final one."""
        left = [
            limit - budget.clock.seconds() - budget._back(limit, budget._a_call(limit), final)
            for budget in self.chain()
            if (limit := budget.limits.seconds) is not None
        ]
        return max(0.0, min(left)) if left else None

    def limit_of_seconds(self) -> float:
        """The one that is nearest; 0 without one."""
        left = [(limit - budget.clock.seconds(), limit) for budget in self.chain() if (limit := budget.limits.seconds)]
        return min(left)[1] if left else 0.0

    def tokens_left(self, final: bool, keep: int) -> int | None:
        """For the prompt and the reply of one call, ``keep`` set back; None without a limit."""
        left = [
            int(limit - budget.spent.tokens - budget.pending_tokens - budget._back(limit, keep, final))
            for budget in self.chain()
            if (limit := budget.limits.tokens) is not None
        ]
        return min(left, default=None)

    def dollars_left(self, final: bool, keep: float) -> float | None:
        """As ``tokens_left``."""
        left = [
            limit - (budget.spent.dollars or 0.0) - budget.pending_dollars - budget._back(limit, keep, final)
            for budget in self.chain()
            if (limit := budget.limits.dollars) is not None
        ]
        return min(left, default=None)

    def _back(self, limit: float, keep: float, final: bool) -> float:
        """Of a limit, what only a final call may use."""
        return 0.0 if final else max(self.keep_share * limit, keep)

    def _a_call(self, limit: float) -> float:
        """Seconds."""
        return min(self.spent.seconds / self.spent.calls, LONGEST_KEEP * limit) if self.spent.calls else 0.0

    def likely_reply(self) -> int:
        """Completion tokens of a call, by the mean of those that were made."""
        for budget in self.chain():
            if budget.spent.calls:
                return -(-budget.spent.completion_tokens // budget.spent.calls)
        return FIRST_REPLY

    def reserve(self, request: Usage, final: bool = False, keep: Usage = NOTHING) -> None:
        """Set ``request`` aside; raises BudgetExceeded, and sets nothing aside, where a limit would be passed.
        ``keep``: what a final call after this one is likely to cost."""
        chain = self.chain()
        for budget in chain:
            budget._check(request, final, keep)
        for budget in chain:
            budget.pending_calls += request.calls
            budget.pending_tokens += request.tokens
            budget.pending_dollars += request.dollars or 0.0
            budget.pending_actions += request.actions
            budget.clock.change(request.calls + request.actions)

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
            budget.clock.change(-request.calls - request.actions)

    def _check(self, request: Usage, final: bool, keep: Usage) -> None:
        limits, spent = self.limits, self.spent
        keep_calls = 0 if final or limits.calls is None else min(self.keep_calls, limits.calls - 1)
        if limits.calls is not None and spent.calls + self.pending_calls + request.calls > limits.calls - keep_calls:
            raise BudgetExceeded("calls", limits.calls)
        if limits.actions is not None and spent.actions + self.pending_actions + request.actions > limits.actions:
            raise BudgetExceeded("actions", limits.actions)
        if limits.seconds is not None:
            back = self._back(limits.seconds, self._a_call(limits.seconds), final)
            if self.clock.seconds() >= limits.seconds - back:
                raise BudgetExceeded("seconds", limits.seconds)
        if not request.calls:
            return
        if limits.tokens is not None:
            back = self._back(limits.tokens, keep.tokens, final)
            if spent.tokens + self.pending_tokens + request.tokens > limits.tokens - back:
                raise BudgetExceeded("tokens", limits.tokens, likely(f"{spent.tokens:,}", f"{request.tokens:,}"))
        if limits.dollars is not None:
            if spent.dollars is None or request.dollars is None:
                raise BudgetExceeded("dollars (the price of this model is not known)", limits.dollars)
            back = self._back(limits.dollars, keep.dollars or 0.0, final)
            if spent.dollars + self.pending_dollars + request.dollars > limits.dollars - back:
                why = likely(f"{spent.dollars:.4f}", f"{request.dollars:.4f}")
                raise BudgetExceeded("dollars", limits.dollars, why)


def likely(spent: str, request: str) -> str:
    """Why a call is refused before it is sent."""
    return f"{spent} are spent, and one more call may take {request}."
