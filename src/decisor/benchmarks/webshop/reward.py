"""WebShop's reward: how well what was bought fits what was asked for. Seen by scoring only.

    reward = type * (attributes met + options met + [price <= limit]) / (|attributes| + |options| + 1)

Yao et al., "WebShop", NeurIPS 2022, section 3.2, with the details of the release (engine/goal.py): names are compared
by thefuzz's token_set_ratio (here rapidfuzz's, with the same preparation and rounding), above 85 is equal; a colour is
the first of 102 words that is part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from decisor.benchmarks.webshop.goals import Goal
from decisor.benchmarks.webshop.nouns import Nouns
from decisor.benchmarks.webshop.products import Product
from decisor.extras import lacks

ALIKE = 85
COLOUR_WORDS = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel "
    "camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry "
    "cream crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green "
    "grey heather indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot "
    "midnight mint mocha multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple "
    "rainbow red rose royal rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan "
    "taupe teal tiger turquoise violet walnut wheat white wine yellow"
)
COLOURS = COLOUR_WORDS.split()


@dataclass(frozen=True, slots=True)
class Fit:
    """Each part from 0 to 1. ``reward`` 1 is a success."""

    reward: float
    type: float
    attributes: float
    options: float
    price: float


def fit(product: Product, options: Mapping[str, str], price: float, goal: Goal, wish: Product, nouns: Nouns) -> Fit:
    """``wish``: the product that the goal was made from. ``price`` in dollars."""
    attributes_met = sum(has_attribute(product, need) for need in goal.attributes)
    values = [colour_of(value) for value in options.values()]
    options_met = sum(has_option(need, values) for need in goal.options)
    cheap = price <= goal.price_limit
    kind = type_of(product, wish, nouns)
    parts = len(goal.attributes) + len(goal.options) + 1
    return Fit(
        kind * (attributes_met + options_met + cheap) / parts,
        kind,
        attributes_met / len(goal.attributes) if goal.attributes else 1.0,
        options_met / len(goal.options) if goal.options else 1.0,
        float(cheap),
    )


def has_attribute(product: Product, attribute: str) -> bool:
    if any(alike(had, attribute) > ALIKE for had in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def has_option(option: tuple[str, str] | str, values: Sequence[str]) -> bool:
    """A synthetic goal wants a name and a value; a colour word counts there only where it is the whole of either."""
    if isinstance(option, str):
        text = colour_of(option)
    else:
        text = next((colour for colour in COLOURS if colour in option), str(option))
    return any(alike(value, text) > ALIKE for value in values)


def colour_of(text: str) -> str:
    """
    >>> colour_of("navy blue"), colour_of("gunmetal"), colour_of("tangerine")
    ('blue', 'gunmetal', 'tan')
    """
    return next((colour for colour in COLOURS if colour in text), text)


def type_of(product: Product, wish: Product, nouns: Nouns) -> float:
    """1, 0.5, 0.1 or 0: whether it is the kind of thing that was asked for."""
    nouns_here, nouns_wished = set(nouns(product.title)), nouns(wish.title)
    share = len(nouns_here & set(nouns_wished)) / len(nouns_wished) if nouns_wished else 0.2
    if share == 0:
        return 0.0
    if share < 0.1:
        return 0.1
    common = categories(product) & categories(wish)
    return 1.0 if product.query == wish.query or len(common) >= 2 or share > 0.2 else 0.5


def categories(item: Product) -> set[str]:
    return {name.strip() for name in item.categories.split("›")}


@lru_cache(maxsize=100_000)
def alike(one: str, other: str) -> int:
    """
    >>> alike("(color, grey)", "Grey"), alike("easy clean", "easy to clean"), alike("red", "blue")
    (100, 100, 29)
    """
    fuzz, prepared = _fuzzy()
    score: float = fuzz.token_set_ratio(one, other, processor=prepared)
    return round(score)


@cache
def _fuzzy() -> tuple[Any, Any]:
    try:
        from rapidfuzz import fuzz, utils
    except ImportError as error:
        raise lacks("WebShop's reward, which compares names, needs rapidfuzz", "benchmarks") from error
    return fuzz, utils.default_process
