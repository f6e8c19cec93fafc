"""WebShop for the runner: the reward of what a technique bought, found and chosen apart.

A search may order several times, each in a fork of its own. ``reward`` is that of the order which the decision names;
``first_reward`` that of the first order (what RaD-Agent's script reports), ``best_reward`` of the best one: only
something that sees rewards could choose that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from decisor.benchmarks.digest import digest
from decisor.benchmarks.protocol import Case, Score
from decisor.benchmarks.search_metrics import search_metrics
from decisor.benchmarks.webshop.goals import SPLITS, Goal, Kind, Split
from decisor.benchmarks.webshop.nouns import nouns
from decisor.benchmarks.webshop.reward import Fit, fit
from decisor.benchmarks.webshop.shop import ORDER, Shop, WebShop, open_shop, order_text
from decisor.cache import cache_folder
from decisor.errors import SetupError
from decisor.trace.events import ActionResult, ActionStart, Entry, events_of
from decisor.types import Decision, Environment, Question, Record, Value

KEPT_FROM_BYTES = 100 * 2**20
RULES = (
    "You shop for somebody. Find the product that fits what they ask for best, choose the options they ask for, and "
    "order it with Buy Now. The answer is the order as it is confirmed: the product's id and the options chosen."
)


@dataclass(frozen=True)
class WebShopBench:
    """``data``: the folder with the release's files, or the small set. ``goals``: synthetic or human. ``split``: test
    (0 to 499), eval (500 to 1,499), train (the rest) or all. ``seed``: for prices and their limits."""

    data: Path
    goals: Kind = "synthetic"
    split: Split = "test"
    seed: int = 0
    name: str = "webshop"

    @cached_property
    def shop(self) -> Shop:
        return open_shop(self.data, self.goals, self.seed, keep_in(self.data))

    def cases(self) -> Sequence[Case]:
        numbered = list(enumerate(self.shop.goals))[SPLITS[self.split]]
        if not numbered:
            raise SetupError(
                f"{self.data} has {len(self.shop.goals)} {self.goals} goals, none of the {self.split} split."
            )
        return [self.case(number, goal) for number, goal in numbered]

    def case(self, number: int, goal: Goal) -> Case:
        options = {option[0]: option[1] for option in goal.options if isinstance(option, tuple)}
        item = self.shop.item(goal.asin)
        facts: dict[str, Value] = {"number": number, "asin": goal.asin, "attributes": goal.attributes,
                                   "options": goal.options, "price_limit": goal.price_limit}  # fmt: skip
        return Case(str(number), Question(goal.text, RULES), (order_text(goal.asin, options),), item.category, facts)

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield WebShop(self.shop, case.question.text)

    async def score(self, case: Case, decision: Decision, events: Sequence[Entry]) -> Score:
        goal = self.shop.goals[int(str(case.facts["number"]))]
        orders = orders_of(events)
        fits = [self.fit(order, goal) for order in orders]
        at = place_of(decision.answer, orders)
        got = fits[at] if at is not None else NOTHING
        best = max((one.reward for one in fits), default=0.0)
        metrics = {
            "reward": got.reward, "success": float(got.reward == 1), "type": got.type, "attributes": got.attributes,
            "options": got.options, "price": got.price, "best_reward": best,
            "first_reward": fits[0].reward if fits else 0.0, **search_metrics(events),
        }  # fmt: skip
        failure = "" if got.reward == 1 else "no_order" if at is None else "not_selected" if best == 1 else worst(got)
        answer = str(orders[at].fields["order"]) if at is not None else ""
        return Score(
            got.reward == 1,
            answer,
            metrics,
            failure=failure,
            tags=(f"nouns:{nouns()[0]}",),
            counts=counts(events, orders),
        )

    def fit(self, order: Record, goal: Goal) -> Fit:
        asin, options = str(order.fields["asin"]), order.fields["options"]
        values = {name: str(value) for name, value in options.items()} if isinstance(options, Mapping) else {}
        shop = self.shop
        item = shop.item(asin)
        return fit(item, values, shop.price(item), goal, shop.item(goal.asin), nouns()[1])

    async def close(self) -> None:
        """Holds nothing open."""


NOTHING = Fit(0.0, 0.0, 0.0, 0.0, 0.0)


def keep_in(folder: Path) -> Path | None:
    """Where a shop with many products is kept between runs: by the files it is made from. None for a small one."""
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    if sum(path.stat().st_size for path in files) < KEPT_FROM_BYTES:
        return None
    state = [f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files]
    return cache_folder() / "webshop" / digest("\n".join(state))


def orders_of(events: Sequence[Entry]) -> list[Record]:
    """The orders of a run, in time order."""
    results = events_of(events, ActionResult)
    return [record for result in results for record in result.observation.records if record.source == ORDER]


def place_of(answer: str, orders: Sequence[Record]) -> int | None:
    """The place of the order that an answer names: by its text, else the last one of the product it names."""
    whole = [at for at, order in enumerate(orders) if order.fields["order"] == answer.strip()]
    of_product = [at for at, order in enumerate(orders) if str(order.fields["asin"]).lower() in answer.lower()]
    return (whole or of_product)[-1] if whole or of_product else None


def worst(got: Fit) -> str:
    """Which part of the reward is missing: the first of kind, attributes, options, price."""
    if got.type < 1:
        return "wrong_kind"
    return "attributes" if got.attributes < 1 else "options" if got.options < 1 else "price"


def counts(events: Sequence[Entry], orders: Sequence[Record]) -> dict[str, int]:
    used = [action.tool for action in events_of(events, ActionStart)]
    return {"orders": len(orders), "searches": used.count("search"), "clicks": used.count("click")}
