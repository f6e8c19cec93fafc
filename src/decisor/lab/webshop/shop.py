"""The shop of WebShop as an environment: tools ``search`` and ``click``, pages as observations.

No reward is shown anywhere. A page is text, as a browser would show it, joined with " [SEP] ". Words and order are
those of the release (web_agent_site/templates), except the last page, which names no reward.

Its search has terms as Lucene's English analyzer makes them, ranked by BM25 in memory. The scores are those of Lucene
as pyserini sets it up: k1 = 0.9, b = 0.4, lengths kept in one byte. A term's contributions are computed once; a query
adds up a few short arrays.

    score(d, q) = sum over terms t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * length(d) / mean length))
    idf(t)      = ln(1 + (N - df + 0.5) / (df + 0.5))

Terms are words, lower case, no stop words, Porter's stems. Words are those of the Unicode standard's annex 29, nearly:
a point or an apostrophe stays between two letters or two digits, a colon between letters, a comma or semicolon between
digits, an underscore anywhere; a pictograph or a character of Chinese or Japanese stands alone. Checked against Lucene
10.5 (docs/measurements/search.md).
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decisor.lab.webshop.products import (
    Goal,
    Kind,
    Product,
    draw_product_price,
    load_products,
    make_goals,
    product_search_text,
)
from decisor.system.extras import missing_extra_error
from decisor.types import Action, Observation, Record, Value

K1, B = 0.9, 0.4


@dataclass(frozen=True)
class Bm25Index:
    """A search index in memory, by term."""

    size: int
    """Number of documents."""
    numbers: dict[str, int]
    """Number of each term."""
    begins: list[int]
    """For each term the index of its first entry, and an end."""
    documents: NDArray[np.int32]
    """The document of each entry."""
    parts: NDArray[np.float32]
    """The amount that the term adds to the document's score."""
    terms: Callable[[str], list[str]]
    """Splits a text into its terms."""

    def find(self, query: str, limit: int) -> list[int]:
        """Return the numbers of at most ``limit`` documents, best first, equal ones in their order."""
        # A term that a query repeats counts as often, as in Lucene.
        query_terms = Counter(self.numbers[term] for term in self.terms(query) if term in self.numbers)
        if not query_terms:
            return []
        spans = [(self.begins[number], self.begins[number + 1], times) for number, times in query_terms.items()]
        documents = np.concatenate([self.documents[begin:end] for begin, end, _ in spans])
        parts = np.concatenate([times * self.parts[begin:end] for begin, end, times in spans])
        scores = np.bincount(documents, parts, self.size)
        matches = np.flatnonzero(scores)
        values = scores[matches]
        # Partition before sorting: a common term matches most documents, and 50 of them are shown.
        if len(matches) > limit:
            best = values >= np.partition(values, -limit)[-limit]
            matches, values = matches[best], values[best]
        # The last key counts first: by score, then by the document's number, as Lucene breaks ties.
        order: list[int] = matches[np.lexsort((matches, -values))[:limit]].tolist()
        return order


def build_bm25_index(texts: Iterable[str], terms: Callable[[str], list[str]]) -> Bm25Index:
    numbers: dict[str, int] = {}
    # Arrays of machine numbers: Python lists would hold an object for every entry.
    of_term, times, lengths, distinct = array("i"), array("H"), array("i"), array("i")
    for text in texts:
        counts = Counter(terms(text))
        lengths.append(counts.total())
        distinct.append(len(counts))
        for term, frequency in counts.items():
            of_term.append(numbers.setdefault(term, len(numbers)))
            times.append(min(frequency, 65_535))
    # A stable sort keeps the documents of a term in order.
    which = np.asarray(of_term, np.int32)
    order = np.argsort(which, kind="stable")
    in_documents = np.bincount(which, minlength=len(numbers))
    exact = np.asarray(lengths, np.int64)
    mean = exact.sum() / max(len(exact), 1) or 1.0
    norms = (K1 * (1 - B + B * coarse_lengths(exact) / mean)).astype(np.float32)
    rarity = np.log(1 + (len(exact) - in_documents + 0.5) / (in_documents + 0.5)).astype(np.float32)
    documents = np.repeat(np.arange(len(exact), dtype=np.int32), np.asarray(distinct, np.int64))[order]
    often = np.asarray(times, np.uint16)[order].astype(np.float32)
    parts = np.repeat(rarity, in_documents) * often / (often + norms[documents])
    begins = np.concatenate([[0], np.cumsum(in_documents)]).tolist()
    return Bm25Index(len(exact), numbers, begins, documents, parts, terms)


def coarse_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Round lengths as one byte stores them.

    They are exact below 40; above, the first four binary digits of the length minus 24 are kept.

    >>> coarse_lengths(np.array([7, 39, 40, 41, 42, 100, 1000])).tolist()
    [7.0, 39.0, 40.0, 40.0, 42.0, 96.0, 984.0]
    """
    above = np.maximum(lengths - 24, 0)
    digits = np.frexp(above.astype(np.float64))[1]
    step = 2 ** np.maximum(digits - 4, 0)
    coarse: NDArray[np.float64] = np.where(lengths < 24, lengths, 24 + above // step * step).astype(np.float64)
    return coarse


HAN = "\u3040-\u309f\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714"
    "\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)  # Unicode's Extended_Pictographic
LETTER, DIGIT = rf"[^\W\d_{HAN}]", "[0-9]"
INNER = rf"(?<={LETTER})[.:'\u2018\u2019\u00b7\uff1a](?={LETTER})|(?<={DIGIT})[.,;'\u2018\u2019](?={DIGIT})"
WORD = re.compile(
    rf"{PICTOGRAPH}\ufe0f?|[{HAN}]|(?:[^\W\u00b2\u00b3\u00b9\u00bc-\u00be\u2044\u2070-\u2089\u2150-\u218b{HAN}]|{INNER})+"
)
CHUNK = re.compile(rf"{PICTOGRAPH}\ufe0f?|\w+(?:[.:'\u2018\u2019\u00b7\uff1a,;]\w+)*")
STOPPED = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOP_WORDS = frozenset(STOPPED.split())
LONGEST = 255
VOWELS_THEN_OTHERS = re.compile(r"[aeiouy]+[^aeiouy]+")


def extract_terms(text: str) -> list[str]:
    """Return the terms of a text as Lucene's English analyzer makes them.

    >>> extract_terms("The Women's shoes, size 8.5 and US:8")
    ['women', 'shoe', 'size', '8.5', 'us', '8']
    """
    words: list[str] = []
    for chunk in CHUNK.findall(text):
        if chunk.isascii() and chunk.isalnum():  # most are; only the others need the whole rule
            words.append(term_of_word(chunk))
        else:
            words += map(term_of_word, WORD.findall(chunk))
    return [one for one in words if one]


@lru_cache(maxsize=200_000)
def term_of_word(word: str) -> str:
    """Return the term of a word, empty for a stop word.

    >>> [term_of_word(word) for word in ("technology", "assembly", "incredibly", "doubly", "happily", "US")]
    ['technolog', 'assembl', 'incred', 'doubli', 'happili', 'us']
    """
    # In Lucene's order: possessive, lower case, stop words, stem.
    word = re.sub(r"['\u2019\uff07][sS]$", "", word)[:LONGEST].lower()
    if word in STOP_WORDS or not word.strip("_"):
        return ""
    return word if len(word) <= 2 else apply_lucene_ending(_stemmer().stemWord(word))


def apply_lucene_ending(stem: str) -> str:
    """Change the endings -bli and -logi of a stem as Lucene does.

    Porter's own program, and Lucene's, treat these two otherwise than his paper.
    """
    # Porter's m: the number of runs of vowels that consonants follow.
    if stem.endswith("ibli") and len(VOWELS_THEN_OTHERS.findall(stem[:-4])) > 1:
        return stem[:-4]
    if stem.endswith(("bli", "logi")) and VOWELS_THEN_OTHERS.search(stem.removesuffix("bli").removesuffix("logi")):
        return stem[:-1]
    return stem


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise missing_extra_error("WebShop's search needs a stemmer", "lab") from error
    return Stemmer.Stemmer("porter")


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
