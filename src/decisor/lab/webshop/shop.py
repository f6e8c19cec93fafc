"""The shop of WebShop as an environment: tools ``search`` and ``click``, pages as observations.

No reward is shown anywhere. A page is text, as a browser would show it, joined with " [SEP] ". Words and order are
those of the release (web_agent_site/templates), except the last page, which names no reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Literal

from decisor.lab.webshop.products import (
    Goal,
    Kind,
    Product,
    draw_product_price,
    load_products,
    make_goals,
    product_search_text,
)
from decisor.lab.webshop.search import Bm25Index, build_bm25_index, extract_terms
from decisor.types import Action, Observation, Record, Value

Name = Literal["search", "results", "item", "description", "features", "reviews", "bought"]
SUB_PAGES: dict[str, Name] = {"description": "description", "features": "features", "reviews": "reviews"}
MAX_RESULTS, PER_PAGE = 50, 10
BACK, BEFORE, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SEPARATOR = " [SEP] "


@dataclass(frozen=True, slots=True)
class ShopView:
    """The page that a shopper sees."""

    page: Name = "search"
    results: tuple[Product, ...] = ()
    """Results of the last search, best first."""
    number: int = 1
    """Number of the results page, from 1."""
    item: Product | None = None
    """The product of an item page; None elsewhere."""
    options: dict[str, str] = field(default_factory=dict)
    """Chosen values by name, kept until the shopper leaves the item."""

    @property
    def on_page(self) -> tuple[Product, ...]:
        return self.results[(self.number - 1) * PER_PAGE : self.number * PER_PAGE]


def format_page(view: ShopView, instruction: str) -> str:
    """Return the page as text."""
    if view.page == "search":
        return SEPARATOR.join(("WebShop", "Instruction:", instruction, "Search"))
    if view.page == "bought":
        return "Thank you for shopping with us!"
    return SEPARATOR.join(("Instruction:", instruction, BACK, *_page_parts(view)))


def _page_parts(view: ShopView) -> Sequence[str]:
    if view.page == "results":
        count_line = f"Page {view.number} (Total results: {len(view.results)})"
        listed = [text for item in view.on_page for text in (item.asin, item.title, item.price_tag)]
        return [count_line, *_page_turns(view), *listed]
    item = view.item
    assert item is not None
    if view.page == "item":
        options = [text for name, values in item.options.items() for text in (name, *values)]
        about = (item.title, f"Price: {item.price_tag}", f"Rating: {item.rating}")
        return [BEFORE, *options, *about, "Description", "Features", "Reviews", BUY]
    texts = {"description": (item.description,), "features": item.bullets}.get(view.page, ())
    return [BEFORE, *(text.strip() for text in texts if text.strip())]


def _page_turns(view: ShopView) -> list[str]:
    before = [BEFORE] if view.number > 1 else []
    return [*before, NEXT] if view.number * PER_PAGE < len(view.results) else before


def list_clickable(view: ShopView) -> list[str]:
    """Return the texts that ``click`` accepts, in lower case."""
    if view.page in ("search", "bought"):
        return []
    if view.page == "results":
        return [text.lower() for text in (BACK, *_page_turns(view), *(item.asin for item in view.on_page))]
    if view.page != "item" or view.item is None:
        return [BACK.lower(), BEFORE.lower()]
    options = [value for values in view.item.options.values() for value in values]
    return [BACK.lower(), BEFORE.lower(), *SUB_PAGES, BUY.lower(), *dict.fromkeys(options)]


def follow_click(view: ShopView, value: str) -> ShopView:
    """Return the view after a click. value: an element of ``list_clickable(view)``.

    Leaving an item forgets its options.
    """
    if value == BACK.lower():
        return ShopView()
    if view.page == "results":
        if value in (NEXT.lower(), BEFORE.lower()):
            return replace(view, number=view.number + (1 if value == NEXT.lower() else -1))
        item = next(one for one in view.on_page if one.asin.lower() == value)
        return replace(view, page="item", item=item, options={})
    if value == BEFORE.lower():
        # From an item back to the results, from a sub-page back to its item.
        to_results = view.page == "item"
        return replace(view, page="results", item=None, options={}) if to_results else replace(view, page="item")
    if value == BUY.lower():
        return replace(view, page="bought")
    if value in SUB_PAGES:
        return replace(view, page=SUB_PAGES[value])
    assert view.item is not None
    # A value of several options counts for the last one.
    name = [name for name, values in view.item.options.items() if value in values][-1]
    return replace(view, options={**view.options, name: value})


RELEASED = re.compile(r"\s*(search|click)\s*\[(.+)\]\s*", re.S)
ORDER, PAGE = "order", "page"
LISTED = 30
START = ShopView()


@dataclass(frozen=True)
class Shop:
    """The products, search index and goals that all shoppers share."""

    products: Sequence[Product]
    """In file order; their places are the numbers that the index finds."""
    index: Bm25Index
    goals: Sequence[Goal]
    seed: int = 0
    """Decides the prices of products that have a range, and the limits of goals."""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each product by its ASIN."""
        return {item.asin: number for number, item in enumerate(self.products)}

    def item(self, asin: str) -> Product:
        """Return the product with an ASIN. Raise KeyError if there is no such product."""
        return self.products[self.numbers[asin]]

    def price(self, item: Product) -> float:
        """Return the price of a product in dollars."""
        return draw_product_price(item, self.seed)

    def find(self, keywords: str) -> tuple[Product, ...]:
        """Search for at most 50 products, best first."""
        return tuple(self.products[number] for number in self.index.find(keywords, MAX_RESULTS))


def open_shop(folder: Path, kind: Kind = "synthetic", seed: int = 0) -> Shop:
    """Open the shop of a folder. Raise SetupError if files are missing."""
    products = tuple(load_products(folder))
    index = build_bm25_index(map(product_search_text, products), extract_terms)
    return Shop(products, index, make_goals(products, kind, seed), seed)


@dataclass
class WebShop:
    """One shopper as an environment (``types.Environment``). A fork shares the shop and copies the view."""

    shop: Shop
    instruction: str
    view: ShopView = START
    counter: Iterator[int] = field(default_factory=lambda: count(1))

    def tools(self) -> tuple[str, ...]:
        return ("search", "click")

    def describe(self) -> str:
        return TOOLS_TEXT

    async def step(self, action: Action) -> Observation:
        """Return the page after an action. An impossible click changes nothing and is answered with an error."""
        name, value = parse_shop_action(action)
        if self.view.page == "bought":
            # An order is final: what follows must not change it.
            return self.show("The order is placed: nothing more can be done in this shop.", error=True)
        offered = list_clickable(self.view)
        if name == "search" and value:
            self.view = ShopView("results", self.shop.find(value))
        elif name == "click" and value in offered:
            self.view = follow_click(self.view, value)
            if self.view.page == "bought":
                return self.order()
        else:
            return self.show(explain_refused_click(name, value, offered), error=True)
        return self.show(", ".join(f"{name}: {value}" for name, value in self.view.options.items()))

    def wrong_form(self, answer: str) -> str:
        """Return a complaint if nothing was ordered.

        The answer is the order that the shop confirms; words order nothing.
        """
        return (
            "" if self.view.page == "bought" else "Nothing is ordered yet: the answer is the order, so click Buy Now."
        )

    def show(self, note: str, error: bool = False) -> Observation:
        """Return the page with the chosen options, or with an error message, below it."""
        page = Record(f"o{next(self.counter)}.r1", text=format_page(self.view, self.instruction), source=PAGE)
        text = f"Chosen so far: {note}" if note and not error else note
        return Observation((page,), text, error)

    def order(self) -> Observation:
        item, options = self.view.item, self.view.options
        assert item is not None
        answer = format_order(item.asin, options)
        fields: dict[str, Value] = {"order": answer, "asin": item.asin, "options": options, "title": item.title}
        record = Record(f"o{next(self.counter)}.r1", fields, source=ORDER)
        return Observation((record,), format_page(self.view, self.instruction), answer=answer)

    def fork(self) -> WebShop:
        return replace(self)


def format_order(asin: str, options: Mapping[str, str]) -> str:
    """Format an order as the product's id and the chosen options.

    >>> format_order("B07X", {"size": "9", "color": "red"})
    'B07X (color: red, size: 9)'
    """
    values = ", ".join(f"{name}: {options[name]}" for name in sorted(options))
    return f"{asin} ({values})" if values else asin


def parse_shop_action(action: Action) -> tuple[str, str]:
    """Return the tool and its input, lower case. The release's form ``click[buy now]`` is read in either place.

    >>> (parse_shop_action(Action("click", "Buy Now")), parse_shop_action(Action("search[red shoes]", "")),
    ...     parse_shop_action(Action("click", "click[< prev]")))
    (('click', 'buy now'), ('search', 'red shoes'), ('click', '< prev'))
    """
    release_form = RELEASED.fullmatch(action.tool) or RELEASED.fullmatch(action.input)
    name, value = (release_form[1], release_form[2]) if release_form else (action.tool, action.input)
    return name.strip().lower(), value.strip().lower()


def explain_refused_click(name: str, value: str, offered: Sequence[str]) -> str:
    if name == "search":
        return "Nothing was searched: give some keywords."
    if name != "click":
        return f"There is no tool {name!r}; there is search and click."
    if not offered:
        return f"There is no {value!r} to click here. Search first."
    more = f" and {len(offered) - LISTED} more" if len(offered) > LISTED else ""
    return f"There is no {value!r} to click here. There is: {', '.join(offered[:LISTED])}{more}."


TOOLS_TEXT = """\
### Tool: search
Searches the shop. Input: keywords. It can be used on every page, and shows up to 50 products, 10 a page: the id, the
title and the price of each.

### Tool: click
Clicks what is shown on the page. Input: the text of a button, the id of a product, or the value of an option.
On results: Back to Search, < Prev, Next >, and the ids of the products. On a product: the values of its options (one
of each kind is chosen by clicking it; the page does not change), Description, Features, Reviews, < Prev, and Buy Now,
which orders the product with the options chosen and ends the shopping. You begin on the search page.
"""
