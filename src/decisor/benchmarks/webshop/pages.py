"""The pages of the shop in text mode: what a browser would show, joined with " [SEP] ", and what can be clicked.

Words and order are those of the release (web_agent_site/templates), but for the last page: it names no reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from decisor.benchmarks.webshop.products import Product

Name = Literal["search", "results", "item", "description", "features", "reviews", "bought"]
SUB_PAGES: dict[str, Name] = {"description": "description", "features": "features", "reviews": "reviews"}
MAX_RESULTS, PER_PAGE = 50, 10
BACK, BEFORE, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SEPARATOR = " [SEP] "


class ProductsByNumber(Protocol):
    def __getitem__(self, number: int) -> Product: ...


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search found: numbers of products, best first, and where to look them up."""

    numbers: tuple[int, ...] = ()
    products: ProductsByNumber = field(default=(), compare=False, repr=False)

    def page(self, number: int) -> tuple[Product, ...]:
        """Ten of them; pages count from 1."""
        return tuple(self.products[one] for one in self.numbers[(number - 1) * PER_PAGE : number * PER_PAGE])


NOTHING = SearchResults()


@dataclass(frozen=True, slots=True)
class View:
    """Where a shopper is. ``found`` by the last search; ``number`` of the results page, from 1; ``chosen``: option
    values by name, kept until the shopper leaves the item."""

    page: Name = "search"
    results: SearchResults = NOTHING
    number: int = 1
    item: Product | None = None
    options: dict[str, str] = field(default_factory=dict)

    @property
    def on_page(self) -> tuple[Product, ...]:
        return self.results.page(self.number)


def page_text(view: View, instruction: str) -> str:
    """The page as text."""
    if view.page == "search":
        return SEPARATOR.join(("WebShop", "Instruction:", instruction, "Search"))
    if view.page == "bought":
        return "Thank you for shopping with us!"
    return SEPARATOR.join(("Instruction:", instruction, BACK, *_middle(view)))


def _middle(view: View) -> Sequence[str]:
    if view.page == "results":
        count_line = f"Page {view.number} (Total results: {len(view.results.numbers)})"
        listed = [text for item in view.on_page for text in (item.asin, item.title, item.price_tag)]
        return [count_line, *_turns(view), *listed]
    item = view.item
    assert item is not None
    if view.page == "item":
        options = [text for name, values in item.options.items() for text in (name, *values)]
        about = (item.title, f"Price: {item.price_tag}", f"Rating: {item.rating}")
        return [BEFORE, *options, *about, "Description", "Features", "Reviews", BUY]
    texts = {"description": (item.description,), "features": item.bullets}.get(view.page, ())
    return [BEFORE, *(text.strip() for text in texts if text.strip())]


def _turns(view: View) -> list[str]:
    before = [BEFORE] if view.number > 1 else []
    return [*before, NEXT] if view.number * PER_PAGE < len(view.results.numbers) else before


def clickable(view: View) -> list[str]:
    """What ``click`` takes, in lower case."""
    if view.page in ("search", "bought"):
        return []
    if view.page == "results":
        return [text.lower() for text in (BACK, *_turns(view), *(item.asin for item in view.on_page))]
    if view.page != "item" or view.item is None:
        return [BACK.lower(), BEFORE.lower()]
    options = [value for values in view.item.options.values() for value in values]
    return [BACK.lower(), BEFORE.lower(), *SUB_PAGES, BUY.lower(), *dict.fromkeys(options)]


def after_click(view: View, value: str) -> View:
    """The view that follows; ``value`` is one of ``clickable(view)``. Leaving an item forgets its options."""
    if value == BACK.lower():
        return View()
    if view.page == "results":
        if value in (NEXT.lower(), BEFORE.lower()):
            return replace(view, number=view.number + (1 if value == NEXT.lower() else -1))
        item = next(one for one in view.on_page if one.asin.lower() == value)
        return replace(view, page="item", item=item, options={})
    if value == BEFORE.lower():
        to_results = view.page == "item"
        return replace(view, page="results", item=None, options={}) if to_results else replace(view, page="item")
    if value == BUY.lower():
        return replace(view, page="bought")
    if value in SUB_PAGES:
        return replace(view, page=SUB_PAGES[value])
    assert view.item is not None
    name = [name for name, values in view.item.options.items() if value in values][-1]
    return replace(view, options={**view.options, name: value})
