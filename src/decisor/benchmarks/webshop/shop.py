"""The shop as an environment: tools ``search`` and ``click``, pages as observations. No reward is told anywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from decisor.benchmarks.webshop.bm25 import Index
from decisor.benchmarks.webshop.goals import Goal, Kind, goals, price_of
from decisor.benchmarks.webshop.pages import MAX_RESULTS, SearchResults, View, after_click, clickable, page_text
from decisor.benchmarks.webshop.products import Product, load_products
from decisor.benchmarks.webshop.stock import Stock, disk_stock, is_stock, memory_stock, write_stock
from decisor.types import Action, Observation, Record, Value

RELEASED = re.compile(r"\s*(search|click)\s*\[(.+)\]\s*", re.S)
ORDER, PAGE = "order", "page"
LISTED = 30
START = View()


@dataclass(frozen=True)
class Shop:
    """What all shoppers share. ``seed`` decides the prices of products that have a range, and the limits of goals."""

    stock: Stock
    index: Index
    goals: Sequence[Goal]
    seed: int = 0

    def item(self, asin: str) -> Product:
        """Raises KeyError where there is no such product."""
        return self.stock[self.stock.number(asin)]

    def price(self, item: Product) -> float:
        """What it costs, in dollars."""
        return price_of(item, self.seed)

    def find(self, keywords: str) -> SearchResults:
        """At most 50, best first. The release's marks narrow by field: <q> query, <c> category, <a> attribute."""
        mark, _, rest = keywords.partition(" ")
        if mark in ("<q>", "<c>", "<a>"):
            return SearchResults(tuple(self.stock.with_mark(mark, rest.strip())), self.stock)
        if mark == "<r>":
            size = len(self.stock)
            return SearchResults(tuple(random.Random(rest).sample(range(size), min(MAX_RESULTS, size))), self.stock)
        return SearchResults(tuple(self.index.find(keywords, MAX_RESULTS)), self.stock)


def open_shop(folder: Path, kind: Kind = "synthetic", seed: int = 0, keep_in: Path | None = None) -> Shop:
    """``keep_in``: products and index are kept there and not held in memory; made the first time.

    Raises:
        SetupError: files are missing.
    """
    if keep_in is None:
        stock: Stock
        stock, index = memory_stock(load_products(folder))
    else:
        if not is_stock(keep_in):
            write_stock(load_products(folder), keep_in)
        stock, index = disk_stock(keep_in)
    return Shop(stock, index, goals(stock.with_instruction(), kind, seed), seed)


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
        return TOOLS_TEXT

    async def step(self, action: Action) -> Observation:
        """The page after the action. What cannot be clicked changes nothing, and is said."""
        name, value = read(action)
        if self.view.page == "bought":
            return self.show("The order is placed: nothing more can be done in this shop.", error=True)
        offered = clickable(self.view)
        if name == "search" and value:
            self.view = View("results", self.shop.find(value))
        elif name == "click" and value in offered:
            self.view = after_click(self.view, value)
            if self.view.page == "bought":
                return self.order()
        else:
            return self.show(refused(name, value, offered), error=True)
        return self.show(", ".join(f"{name}: {value}" for name, value in self.view.options.items()))

    def wrong_form(self, answer: str) -> str:
        """The answer is what the shop confirms: words order nothing."""
        return (
            "" if self.view.page == "bought" else "Nothing is ordered yet: the answer is the order, so click Buy Now."
        )

    def show(self, note: str, error: bool = False) -> Observation:
        """The page, and under it the options chosen, or what is wrong."""
        page = Record(f"o{next(self.counter)}.r1", text=page_text(self.view, self.instruction), source=PAGE)
        text = f"Chosen so far: {note}" if note and not error else note
        return Observation((page,), text, error)

    def order(self) -> Observation:
        item, options = self.view.item, self.view.options
        assert item is not None
        answer = order_text(item.asin, options)
        fields: dict[str, Value] = {"order": answer, "asin": item.asin, "options": options, "title": item.title}
        record = Record(f"o{next(self.counter)}.r1", fields, source=ORDER)
        return Observation((record,), page_text(self.view, self.instruction), answer=answer)

    def fork(self) -> WebShop:
        return replace(self)


def order_text(asin: str, options: Mapping[str, str]) -> str:
    """
    >>> order_text("B07X", {"size": "9", "color": "red"})
    'B07X (color: red, size: 9)'
    """
    values = ", ".join(f"{name}: {options[name]}" for name in sorted(options))
    return f"{asin} ({values})" if values else asin


def read(action: Action) -> tuple[str, str]:
    """The tool and its input, lower case; the release's form ``click[buy now]`` is read in either place.

    >>> read(Action("click", "Buy Now")), read(Action("search[red shoes]", "")), read(Action("click", "click[< prev]"))
    (('click', 'buy now'), ('search', 'red shoes'), ('click', '< prev'))
    """
    release_form = RELEASED.fullmatch(action.tool) or RELEASED.fullmatch(action.input)
    name, value = (release_form[1], release_form[2]) if release_form else (action.tool, action.input)
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
