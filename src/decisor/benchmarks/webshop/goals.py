"""What shoppers are asked to buy: one goal for every combination of options (synthetic), or as people wrote it (human).

Yao et al., "WebShop", NeurIPS 2022; the release's engine/goal.py. The release draws prices and their limits before it
seeds its generator, so they differ from run to run; here ``seed`` fixes them. The order is the release's: seed 233.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from decisor.benchmarks.webshop.products import Instruction, Product

Kind = Literal["synthetic", "human"]
Split = Literal["test", "eval", "train", "all"]
SPLITS: Mapping[Split, slice] = {
    "test": slice(0, 500), "eval": slice(500, 1500), "train": slice(1500, None), "all": slice(None)
}  # fmt: skip
LIMITS = tuple(10.0 * number for number in range(1, 100))
NO_LIMIT = 1_000_000.0
ORDER_SEED = 233


@dataclass(frozen=True, slots=True)
class Goal:
    """``text`` is what a shopper is told; the rest is for scoring. ``options``: (name, value) pairs, or values alone
    in human goals. ``weight``: how often it is drawn where goals are sampled."""

    text: str
    asin: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str] | str, ...]
    price_limit: float
    weight: float = 1.0


def price_of(item: Product, seed: int) -> float:
    """In dollars: a range is drawn from uniformly, by the product and the seed alone."""
    low, high = item.prices[0], item.prices[-1]
    return low if low == high else random.Random(f"{seed} {item.asin} price").uniform(low, high)


def goals(products: Iterable[Product], kind: Kind, seed: int) -> list[Goal]:
    """In the release's order."""
    goal_list = [goal for item in products for goal in goals_of(item, kind, seed)]
    if kind == "synthetic":
        count = Counter(attribute for goal in goal_list for attribute in goal.attributes)
        goal_list = [
            replace(goal, weight=sum(1 / count[name] for name in goal.attributes) / len(goal.attributes))
            for goal in goal_list
        ]
    random.Random(ORDER_SEED).shuffle(goal_list)
    return goal_list


def goals_of(item: Product, kind: Kind, seed: int) -> list[Goal]:
    price, rng = price_of(item, seed), random.Random(f"{seed} {item.asin} limit")
    if kind == "human":
        instructions = [instruction for instruction in item.human if instruction.attributes]
        return [human_goal(item, instruction, *price_limit(price, rng)) for instruction in instructions]
    if item.synthetic is None:
        return []
    limit, words = price_limit(price, rng)
    names = sorted(item.options)
    return [
        synthetic_goal(item, item.synthetic, tuple(zip(names, values, strict=True)), limit, words)
        for values in itertools.product(*(item.options[name] for name in names))
    ]


def human_goal(item: Product, instruction: Instruction, limit: float, words: str) -> Goal:
    return Goal(instruction.text.strip(".") + words, item.asin, instruction.attributes, instruction.options, limit)


def synthetic_goal(
    item: Product, instruction: Instruction, options: tuple[tuple[str, str], ...], limit: float, words: str
) -> Goal:
    with_options = ", and ".join(f"{name}: {value}" for name, value in options)
    text = f"{instruction.text}{' with ' if options else ''}{with_options}{words}"
    return Goal(text, item.asin, instruction.attributes, options, limit)


def price_limit(price: float, rng: random.Random) -> tuple[float, str]:
    """The larger of two of the next four multiples of ten, and how it is told; none above 980 dollars.

    >>> price_limit(985.0, random.Random(0))
    (1000000.0, '')
    """
    above = [limit for limit in LIMITS if limit > price][:4]
    if len(above) < 2:
        return NO_LIMIT, ""
    limit = max(rng.sample(above, 2))
    return limit, f", and price lower than {limit:.2f} dollars"
