"""The shop as an environment: tools ``search`` and ``click``, pages as observations. No reward is told anywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from decisor.benchmarks.webshop.bm25 import Index, build
from decisor.benchmarks.webshop.goals import Goal, Kind, draw_prices, goals
from decisor.benchmarks.webshop.pages import FOUND, View, after_click, clickable, shown
from decisor.benchmarks.webshop.products import Product, load_products
from decisor.benchmarks.webshop.terms import terms
from decisor.types import Action, Observation, Record, Value

RELEASED = re.compile(r"\s*(search|click)\s*\[(.+)\]\s*", re.S)
ORDER, PAGE = "order", "page"
LISTED = 30
START = View()


@dataclass(frozen=True)
class Shop:
    """What all shoppers share. ``prices``: what each product costs, in dollars, drawn once from ``seed``."""

    products: Sequence[Product]
    index: Index
    prices: dict[str, float]
    goals: Sequence[Goal]

    @cached_property
    def by_asin(self) -> dict[str, Product]:
        return {item.asin: item for item in self.products}

    def find(self, keywords: str) -> tuple[Product, ...]:
        """At most 50, best first. The release's marks narrow by field: <q> query, <c> category, <a> attribute."""
        mark, _, rest = keywords.partition(" ")
        rest = rest.strip()
        if mark in ("<q>", "<c>", "<a>"):
            return tuple(item for item in self.products if rest in _field(item, mark))
        if mark == "<r>":
            return tuple(random.Random(rest).sample(list(self.products), min(FOUND, len(self.products))))
        return tuple(self.products[number] for number in self.index.find(keywords, FOUND))


def _field(item: Product, mark: str) -> tuple[str, ...]:
    return {"<q>": (item.query,), "<c>": (item.category,)}.get(mark, item.attributes)


def open_shop(folder: Path, kind: Kind = "synthetic", seed: int = 0) -> Shop:
    """Raises SetupError where files are missing."""
    products = load_products(folder)
    rng = random.Random(seed)
    prices = draw_prices(products, rng)
    return Shop(
        products, build((indexed(item) for item in products), terms), prices, goals(products, prices, kind, rng)
    )


def indexed(item: Product) -> str:
    """What the search reads of a product."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in item.options.items())
    return " ".join((item.title, item.description, item.bullets[0] if item.bullets else "", options)).lower()


@dataclass
class WebShop:
    """One shopper. Satisfies ``types.Environment``; a fork shares the shop and copies where the shopper is."""

    shop: Shop
    instruction: str
    view: View = START
    counter: Iterator[int] = field(default_factory=lambda: count(1))

    def tools(self) -> tuple[str, ...]:
        return ("search", "click")

    def describe(self) -> str:
        return DESCRIBED

    async def step(self, action: Action) -> Observation:
        """The page after the action. What cannot be clicked changes nothing, and is said."""
        name, value = read(action)
        if self.view.page == "bought":
            return self.observed("The order is placed: nothing more can be done in this shop.", error=True)
        offered = clickable(self.view)
        if name == "search" and value:
            self.view = View("results", self.shop.find(value))
        elif name == "click" and value in offered:
            self.view = after_click(self.view, value)
            if self.view.page == "bought":
                return self.ordered()
        else:
            return self.observed(refused(name, value, offered), error=True)
        return self.observed(", ".join(f"{name}: {value}" for name, value in self.view.chosen.items()))

    def observed(self, note: str, error: bool = False) -> Observation:
        """The page, and under it the options chosen, or what is wrong."""
        page = Record(f"o{next(self.counter)}.r1", text=shown(self.view, self.instruction), source=PAGE)
        chosen = f"Chosen so far: {note}" if note and not error else note
        return Observation((page,), chosen, error)

    def ordered(self) -> Observation:
        item, chosen = self.view.item, self.view.chosen
        assert item is not None
        answer = order_text(item.asin, chosen)
        fields: dict[str, Value] = {"order": answer, "asin": item.asin, "options": chosen, "title": item.title}
        order = Record(f"o{next(self.counter)}.r1", fields, source=ORDER)
        return Observation((order,), shown(self.view, self.instruction), answer=answer)

    def fork(self) -> WebShop:
        return replace(self)


def order_text(asin: str, chosen: Mapping[str, str]) -> str:
    """
    >>> order_text("B07X", {"size": "9", "color": "red"})
    'B07X (color: red, size: 9)'
    """
    options = ", ".join(f"{name}: {chosen[name]}" for name in sorted(chosen))
    return f"{asin} ({options})" if options else asin


def read(action: Action) -> tuple[str, str]:
    """The tool and its input, lower case; the release's form ``click[buy now]`` is read in either place.

    >>> read(Action("click", "Buy Now")), read(Action("search[red shoes]", "")), read(Action("click", "click[< prev]"))
    (('click', 'buy now'), ('search', 'red shoes'), ('click', '< prev'))
    """
    written = RELEASED.fullmatch(action.tool) or RELEASED.fullmatch(action.input)
    name, value = (written[1], written[2]) if written else (action.tool, action.input)
    return name.strip().lower(), value.strip().lower()


def refused(name: str, value: str, offered: Sequence[str]) -> str:
    if name == "search":
        return "Nothing was searched: give some keywords."
    if name != "click":
        return f"There is no tool {name!r}; there is search and click."
    if not offered:
        return f"There is no {value!r} to click here. Search first."
    more = f" and {len(offered) - LISTED} more" if len(offered) > LISTED else ""
    return f"There is no {value!r} to click here. There is: {', '.join(offered[:LISTED])}{more}."


DESCRIBED = """\
### Tool: search
Searches the shop. Input: keywords. It can be used on every page, and shows up to 50 products, 10 a page: the id, the
title and the price of each.

### Tool: click
Clicks what is shown on the page. Input: the text of a button, the id of a product, or the value of an option.
On results: Back to Search, < Prev, Next >, and the ids of the products. On a product: the values of its options (one
of each kind is chosen by clicking it; the page does not change), Description, Features, Reviews, < Prev, and Buy Now,
which orders the product with the options chosen and ends the shopping. You begin on the search page.
"""
