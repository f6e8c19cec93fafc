"""WebShop as a benchmark: the reward of the purchase, with found and chosen orders separate.

    reward = type * (attributes met + options met + [price <= limit]) / (|attributes| + |options| + 1)

Yao et al., "WebShop", NeurIPS 2022, section 3.2, with the details of the release (engine/goal.py): names are compared
by thefuzz's token_set_ratio (here rapidfuzz's, with the same preparation and rounding), above 85 is equal; a colour is
the first of 102 words that is part of it. Only scoring sees rewards.

A search may order several times, each in a fork of its own. ``reward`` is that of the order which the decision names;
``first_reward`` that of the first order (which RaD-Agent's script reports), ``best_reward`` of the best one: only
something that sees rewards could choose that.

The nouns of a product's name are found by spaCy if its English model is installed, as in the release, else by a rule;
a result says which. The rule: names of products are written with capitals, and almost every word with one is part of a
proper name; so these words count, except those of closed classes. If a name has none, all its words count.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

from decisor.errors import SetupError
from decisor.lab.benchmark import Case, Score, compute_search_metrics
from decisor.lab.webshop.products import SPLITS, Goal, Kind, Product, Split
from decisor.lab.webshop.shop import ORDER, Shop, WebShop, format_order, open_shop
from decisor.system.extras import require_package
from decisor.trace.events import ActionResult, ActionStart, TraceEntry, events_of
from decisor.types import Decision, Environment, Question, Record, Value

Nouns = Callable[[str], Sequence[str]]
MODELS = ("en_core_web_sm", "en_core_web_lg")
KINDS = ("PNOUN", "NOUN", "PROPN")
WORD = re.compile(r"\b[^\W\d_]{2,}")
CLOSED_CLASSES = (
    "a about after all also an and any are as at be before both but by can each every few for from has have how if in "
    "into is it its more most no non not of off on one only or other our out over per so some such than that the "
    "their them these they this those through to under up use used very via was we when which while who will with "
    "without you your"
)
CLOSED = frozenset(CLOSED_CLASSES.split())


@cache
def load_noun_finder() -> tuple[str, Nouns]:
    """Return the name of the noun finder (spacy:MODEL or heuristic) and its function."""
    try:
        import spacy
    except ImportError:
        return "heuristic", find_nouns_by_rule
    installed = next((name for name in MODELS if spacy.util.is_package(name)), None)
    if installed is None:
        return "heuristic", find_nouns_by_rule
    model = spacy.load(installed)

    @lru_cache(maxsize=20_000)
    def by_model(text: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in model(text) if token.pos_ in KINDS)

    return f"spacy:{model.meta['name']}", by_model


@lru_cache(maxsize=20_000)
def find_nouns_by_rule(text: str) -> tuple[str, ...]:
    """Return the nouns of a product's name by a rule of thumb.

    >>> find_nouns_by_rule("Rubber Boots for Men, 2 Pack, with wide Calf"), find_nouns_by_rule("rubber boots for men")
    (('rubber', 'boots', 'men', 'pack', 'calf'), ('rubber', 'boots', 'men'))
    """
    words = [word for word in WORD.findall(text) if word.lower() not in CLOSED]
    return tuple(word.lower() for word in [word for word in words if word[0].isupper()] or words)


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
class PurchaseFit:
    """The fit of a purchase to a goal, each part from 0 to 1. A ``reward`` of 1 is a success."""

    reward: float
    type: float
    attributes: float
    options: float
    price: float


def rate_purchase(
    product: Product, options: Mapping[str, str], price: float, goal: Goal, wish: Product, nouns: Nouns
) -> PurchaseFit:
    """Rate how well a purchase fits a goal. wish: the product from which the goal was made. price: in dollars."""
    texts = [text.lower() for text in (product.title, " ".join(product.bullets), product.description)]
    attributes_met = sum(
        any(rate_name_likeness(had, need) > ALIKE for had in product.attributes) or any(need in text for text in texts)
        for need in goal.attributes
    )
    values = [colour_of(value) for value in options.values()]
    options_met = sum(has_option(need, values) for need in goal.options)
    cheap = price <= goal.price_limit
    kind = rate_product_kind(product, wish, nouns)
    parts = len(goal.attributes) + len(goal.options) + 1
    return PurchaseFit(
        # The reward of the paper: the share of attributes, options and price that fit, times the fit of the kind.
        kind * (attributes_met + options_met + cheap) / parts,
        kind,
        attributes_met / len(goal.attributes) if goal.attributes else 1.0,
        options_met / len(goal.options) if goal.options else 1.0,
        float(cheap),
    )


def has_option(option: tuple[str, str] | str, values: Sequence[str]) -> bool:
    """Return whether an option of the goal was chosen.

    A synthetic goal wants a name and a value; a colour word counts there only if it is the whole name or the whole
    value.
    """
    if isinstance(option, str):
        text = colour_of(option)
    else:
        # For a pair, ``in`` compares whole names and values; for a text it looks inside. The release does both.
        text = next((colour for colour in COLOURS if colour in option), str(option))
    return any(rate_name_likeness(value, text) > ALIKE for value in values)


def colour_of(text: str) -> str:
    """Return the first colour word in a text, the text itself if it has none.

    >>> colour_of("navy blue"), colour_of("gunmetal"), colour_of("tangerine")
    ('blue', 'gunmetal', 'tan')
    """
    return next((colour for colour in COLOURS if colour in text), text)


def rate_product_kind(product: Product, wish: Product, nouns: Nouns) -> float:
    """Return 1, 0.5, 0.1 or 0 for how close a product is to the kind that was asked for."""
    nouns_here, nouns_wished = set(nouns(product.title)), nouns(wish.title)
    # 0.2 without nouns, and the thresholds below, are the release's (engine/goal.py).
    share = len(nouns_here & set(nouns_wished)) / len(nouns_wished) if nouns_wished else 0.2
    if share == 0:
        return 0.0
    if share < 0.1:
        return 0.1
    of_product, of_wish = ({name.strip() for name in item.categories.split("›")} for item in (product, wish))
    common = of_product & of_wish
    return 1.0 if product.query == wish.query or len(common) >= 2 or share > 0.2 else 0.5


@lru_cache(maxsize=100_000)
def rate_name_likeness(one: str, other: str) -> int:
    """Return the likeness of two names, 0 to 100.

    >>> (rate_name_likeness("(color, grey)", "Grey"), rate_name_likeness("easy clean", "easy to clean"),
    ...     rate_name_likeness("red", "blue"))
    (100, 100, 29)
    """
    with require_package("rapidfuzz, as WebShop's reward compares names", "lab"):
        from rapidfuzz import fuzz, utils
    # default_process lowers case and drops punctuation, as the release's thefuzz does.
    return round(fuzz.token_set_ratio(one, other, processor=utils.default_process))


RULES = (
    "You shop for somebody. Find the product that fits what they ask for best, choose the options they ask for, and "
    "order it with Buy Now. The answer is the order as it is confirmed: the product's id and the options chosen."
)


@dataclass(frozen=True)
class WebShopBench:
    """The benchmark WebShop."""

    data: Path
    """Folder with the release's files, or the small set."""
    goals: Kind = "synthetic"
    split: Split = "test"
    """test (0 to 499), eval (500 to 1,499), train (the rest) or all."""
    seed: int = 0
    """Decides prices and their limits."""
    name: str = "webshop"

    @cached_property
    def shop(self) -> Shop:
        return open_shop(self.data, self.goals, self.seed)

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
        facts: dict[str, Value] = {
            "number": number,
            "asin": goal.asin,
            "attributes": goal.attributes,
            "options": goal.options,
            "price_limit": goal.price_limit,
        }
        return Case(str(number), Question(goal.text, RULES), (format_order(goal.asin, options),), item.category, facts)

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        yield WebShop(self.shop, case.question.text)

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        goal = self.shop.goals[int(str(case.facts["number"]))]
        results = events_of(events, ActionResult)
        orders = [record for result in results for record in result.observation.records if record.source == ORDER]
        # A technique may order in several sequences; the answer says which order counts.
        fits = [self.fit(order, goal) for order in orders]
        # The text of the order counts first, then the last order of a product that is named.
        text = decision.answer
        named = [at for at, order in enumerate(orders) if order.fields["order"] == text.strip()]
        named = named or [at for at, one in enumerate(orders) if str(one.fields["asin"]).lower() in text.lower()]
        got = fits[named[-1]] if named else NOTHING
        best = max((one.reward for one in fits), default=0.0)
        metrics = {
            "reward": got.reward,
            "success": float(got.reward == 1),
            "type": got.type,
            "attributes": got.attributes,
            "options": got.options,
            "price": got.price,
            "best_reward": best,
            "first_reward": fits[0].reward if fits else 0.0,
            **compute_search_metrics(events),
        }
        if got.reward == 1:
            failure = ""
        elif not named:
            failure = "no_order"
        elif best == 1:
            failure = "not_selected"
        else:  # the first part of the reward that is missing
            parts = {"wrong_kind": got.type, "attributes": got.attributes, "options": got.options}
            failure = next((name for name, value in parts.items() if value < 1), "price")
        used = [action.tool for action in events_of(events, ActionStart)]
        answer = str(orders[named[-1]].fields["order"]) if named else ""
        return Score(
            got.reward == 1,
            answer,
            metrics,
            failure=failure,
            tags=(f"nouns:{load_noun_finder()[0]}",),
            counts={"orders": len(orders), "searches": used.count("search"), "clicks": used.count("click")},
        )

    def fit(self, order: Record, goal: Goal) -> PurchaseFit:
        asin, options = str(order.fields["asin"]), order.fields["options"]
        values = {name: str(value) for name, value in options.items()} if isinstance(options, Mapping) else {}
        shop = self.shop
        item = shop.item(asin)
        return rate_purchase(item, values, shop.price(item), goal, shop.item(goal.asin), load_noun_finder()[1])

    async def close(self) -> None:
        """Do nothing, as nothing is open."""


NOTHING = PurchaseFit(0.0, 0.0, 0.0, 0.0, 0.0)
