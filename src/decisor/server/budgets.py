"""What people and groups may spend on LLMs in a day and a month, and what they have spent.

Who pays is a person, and each of their groups that has a budget. A call is refused before it is made once a budget is
spent; calls that are under way then are still paid. Several processes tell each other what they spent each second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from decisor.errors import BudgetExceeded, LLMError, SetupError
from decisor.history.store import History, Spent
from decisor.llms.shared import Journal, share_llm
from decisor.runtime.budget import Limits
from decisor.server.metrics import Metrics
from decisor.server.responses import BudgetLine
from decisor.server.settings import lower_limits
from decisor.server.users import User
from decisor.system.extras import logger
from decisor.types import LLM, Completion, Usage

STORE_SECONDS = 1.0
WARNING_SHARE = 0.8
"""The part of a budget that is told once it is spent."""
UNKNOWN_PRICE = "the price of an LLM is not known: set it in the config file"


@dataclass(frozen=True)
class Allowance:
    """A budget of one payer for one day or month."""

    payer: str
    period: str
    """A day, such as 2026-11-28, or a month."""
    whose: str
    """Words for people."""
    dollars: float | None
    tokens: int | None


def allowances_of(user: User, now: datetime) -> Iterator[Allowance]:
    """Yield the budgets that a user's calls are paid from."""
    for name, budget in user.budgets:
        is_group = name in user.reader.groups
        payer = f"group {name}" if is_group else user.name
        parts = [(payer, name if is_group else "you", budget.day, budget.month)]
        if is_group:
            parts.append((user.name, "you", budget.each_day, budget.each_month))
        for who, whose, day, month in parts:
            for limits, period, words in ((day, f"{now:%Y-%m-%d}", "today"), (month, f"{now:%Y-%m}", "this month")):
                if limits.dollars is not None or limits.tokens is not None:
                    yield Allowance(who, period, f"{whose}, {words}", limits.dollars, limits.tokens)


def payers_of(user: User) -> set[str]:
    return {user.name, *(f"group {name}" for name, _ in user.budgets if name in user.reader.groups)}


@dataclass(eq=False)
class Budgets:
    """What all payers of a server have spent."""

    history: History
    metrics: Metrics | None = None
    spent: dict[tuple[str, str], Spent] = field(default_factory=dict)
    """By payer and period, as the store had it last, and what this process has spent since."""
    news: dict[tuple[str, str], Spent] = field(default_factory=dict)
    """By payer and day, what the store does not have yet."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def lines(self, user: User) -> list[BudgetLine]:
        """Return the budgets of a user with what is spent of them."""
        await self.store(payers_of(user))
        lines = []
        for one, spent in self.balances(user):
            shares = [part / most for part, most in ((spent.dollars, one.dollars), (spent.tokens, one.tokens)) if most]
            lines.append(
                BudgetLine(
                    name=one.whose,
                    dollars=one.dollars,
                    spent_dollars=spent.dollars,
                    tokens=one.tokens,
                    spent_tokens=spent.tokens,
                    warns=max(shares) >= WARNING_SHARE,
                )
            )
        return lines

    async def limits_left(self, user: User, limits: Limits) -> Limits:
        """Return the limits of a run, lowered to what is left. Raise SetupError if nothing is."""
        if not user.budgets:
            return limits
        await self.store(payers_of(user))
        try:
            self.check(user)
        except BudgetExceeded as error:
            raise SetupError(str(error)) from error
        for one, spent in self.balances(user):
            left = None if one.dollars is None else one.dollars - spent.dollars
            rest = None if one.tokens is None else one.tokens - spent.tokens
            limits = lower_limits(limits, Limits(dollars=left, tokens=rest))
        return limits

    def balances(self, user: User) -> Iterator[tuple[Allowance, Spent]]:
        """Yield the budgets that a user's calls are paid from now, with what is spent of each."""
        for one in allowances_of(user, datetime.now(UTC)):
            yield one, self.spent.get((one.payer, one.period), Spent())

    def check(self, user: User) -> None:
        """Raise BudgetExceeded if a budget that the user's calls are paid from is spent."""
        for one, spent in self.balances(user):
            for limit, most, part, words in (
                ("dollars", one.dollars, spent.dollars, f"${spent.dollars:,.2f}"),
                ("tokens", one.tokens, spent.tokens, f"{spent.tokens:,}"),
            ):
                if most is not None and part >= most:
                    if self.metrics:
                        self.metrics.refusals.labels(limit).inc()
                    raise BudgetExceeded(limit, most, f"{words} are spent ({one.whose}).")

    def book(self, user: User, usage: Usage) -> None:
        """Book a call. Raise BudgetExceeded if its price is not known, and a budget is in dollars."""
        now = datetime.now(UTC)
        paid = Spent(usage.dollars or 0.0, usage.tokens)
        for payer in payers_of(user):
            for period in (f"{now:%Y-%m-%d}", f"{now:%Y-%m}"):
                self.spent[payer, period] = self.spent.get((payer, period), Spent()) + paid
            self.news[payer, f"{now:%Y-%m-%d}"] = self.news.get((payer, f"{now:%Y-%m-%d}"), Spent()) + paid
        in_dollars = [one.dollars for one in allowances_of(user, now) if one.dollars is not None]
        if in_dollars and usage.dollars is None:
            raise BudgetExceeded("dollars", in_dollars[0], UNKNOWN_PRICE)

    def pay(self, llm: LLM, user: User, journal: Journal | None) -> LLM:
        """Return an LLM whose calls are paid by a user."""
        shared = journal.llm(llm) if journal else share_llm(llm)
        return replace(shared, observer=Payment(self, user)) if user.budgets else shared

    async def work(self) -> None:
        """Store what was spent, for ever."""
        while True:
            await asyncio.sleep(STORE_SECONDS)
            if self.news:
                try:
                    await self.store({payer for payer, _ in self.news})
                except SetupError as error:
                    logger.warning("what was spent is not stored yet: %s", error)

    async def store(self, payers: set[str]) -> None:
        """Store what was spent, and read what these payers have spent anywhere."""
        # One at a time: who reads while another stores would take for spent what was so before.
        async with self.turn:
            news, self.news = self.news, {}
            month = f"{datetime.now(UTC):%Y-%m}"
            try:
                days = await asyncio.to_thread(self.history.spend, news, payers, month)
            except SetupError:
                for key, spent in news.items():
                    self.news[key] = self.news.get(key, Spent()) + spent
                raise
            for payer in payers:
                own = {day: spent for (who, day), spent in days.items() if who == payer}
                # What was spent here while the store answered.
                for (who, day), spent in self.news.items():
                    if who == payer:
                        own[day] = own.get(day, Spent()) + spent
                self.spent |= {(payer, day): spent for day, spent in own.items()}
                self.spent[payer, month] = sum(own.values(), Spent())


@dataclass(frozen=True)
class Payment:
    """The payment of the calls of one user; a ``CallObserver``."""

    budgets: Budgets
    user: User

    def watch(self) -> AbstractContextManager[object]:
        self.budgets.check(self.user)
        return nullcontext()

    def failed(self, error: LLMError) -> None:
        self.budgets.book(self.user, error.used)

    def answered(self, reply: Completion) -> None:
        # A reply that was bought before is paid.
        if not reply.replayed:
            self.budgets.book(self.user, reply.usage)
