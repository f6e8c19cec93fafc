"""The products of WebShop and the goals of its shoppers.

A folder of data has one file of products (``items_shuffle.json``, ``items_shuffle_1000.json``, or
``products_1k.jsonl.gz``, one product a line), one of attributes and synthetic instructions (``items_ins_v2*.json``),
and for the human goals ``items_human_ins.json``. Fields and rules: Yao et al., "WebShop", NeurIPS 2022, and its
release (engine.load_products, engine/goal.py).

There is one goal for every combination of options (synthetic), or as people wrote it (human). The release draws prices
and their limits before it seeds its generator, so they differ from run to run; here ``seed`` fixes them. The order is
the release's: seed 233.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from decisor.errors import SetupError

Row = Mapping[str, Any]
PRODUCTS = ("items_shuffle.json", "products_1k.jsonl.gz", "items_shuffle_1000.json")
INSTRUCTIONS = ("items_ins_v2.json", "items_ins_v2_1000.json")
HUMAN = "items_human_ins.json"
NO_PRICE, NO_ATTRIBUTES = (100.0,), ("DUMMY_ATTR",)
CHUNK_CHARS = 2**20


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction for a product, with the attributes and option values that it asks for."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the shop."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    prices: tuple[float, ...]
    """One price, or the two ends of a range, in dollars."""
    price_tag: str
    options: Mapping[str, tuple[str, ...]]
    """Values by name, all lower case."""
    attributes: tuple[str, ...]
    category: str
    categories: str
    query: str
    rating: str = "N.A."
    synthetic: Instruction | None = None
    """Instruction that asks for the product; no page shows it."""
    human: tuple[Instruction, ...] = ()
    """Instructions that people wrote for it; no page shows them."""


def load_products(folder: Path) -> Iterator[Product]:
    """Yield the products in file order, the first of each ASIN.

    They come one at a time: the released file of 1.18 million needs 5 GB.

    Raises:
        SetupError: a file is missing or not of the released form.
    """
    path = _find_first_file(folder, PRODUCTS)
    instructions = read_objects_by_asin(_find_first_file(folder, INSTRUCTIONS))
    human = read_objects_by_asin(folder / HUMAN) if (folder / HUMAN).is_file() else {}
    asins: set[str] = set()
    for row in iterate_json_objects(path):
        try:
            asin = row["asin"]
            # The release's own filter: first of each ASIN, no missing and no overlong ones.
            if asin not in asins and asin != "nan" and len(asin) <= 10:
                asins.add(asin)
                item = parse_product(row, instructions.get(asin, {}), human.get(asin, row.get("instructions", ())))
            else:
                continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SetupError(f"A product of {path} is not of the released form: {error!r}.") from error
        yield item


def parse_product(row: Row, instruction: Row, human: Sequence[Row]) -> Product:
    """Parse a product from a released row, or from one that was already loaded (it has a ``Title``)."""
    loaded = "Title" in row
    prices, tag = (tuple(row["pricing"]), row["Price"]) if loaded else _parse_prices(row.get("pricing"))
    bullets = row["small_description"]
    options = row["options"] if loaded else _parse_options(row["customization_options"])
    attributes = instruction["attributes"] if "attributes" in instruction else row.get("Attributes", NO_ATTRIBUTES)
    synthetic = (
        Instruction(instruction["instruction"], tuple(instruction["instruction_attributes"]))
        if instruction.get("instruction")
        else None
    )
    return Product(
        asin=row["asin"],
        title=row["name"],
        description=row["full_description"],
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets,),
        prices=prices,
        price_tag=tag,
        options={name: tuple(values) for name, values in options.items()},
        attributes=tuple(attributes),
        category=row["category"],
        categories=row["product_category"],
        query=row["query"].lower().strip(),
        rating=str(row.get("Rating", "N.A.")),
        synthetic=synthetic,
        human=tuple(
            Instruction(one["instruction"], tuple(one["instruction_attributes"]), tuple(one["instruction_options"]))
            for one in human
        ),
    )


def _parse_prices(text: str | None) -> tuple[tuple[float, ...], str]:
    """Parse the prices of a product and the text that shows them.

    >>> _parse_prices("$8.99$12.50"), _parse_prices("$1,234.00"), _parse_prices("")
    (((8.99, 12.5), '$8.99 to $12.5'), ((1234.0,), '$1234.0'), ((100.0,), '$100.0'))
    """
    prices = tuple(float(re.sub(r"[^\d.]", "", part)) for part in (text or "").split("$")[1:])[:2] or NO_PRICE
    return prices, " to ".join(f"${price}" for price in prices)


def _parse_options(released: Row | str | None) -> dict[str, list[str]]:
    """Parse the option values of a product by name, all lower case.

    >>> _parse_options({"Size": [{"value": " S/M "}], "Fit": None})
    {'size': ['s | m']}
    """
    by_name = released if isinstance(released, Mapping) else {}
    return {
        name.lower(): [value["value"].strip().replace("/", " | ").lower() for value in values]
        for name, values in by_name.items()
        if values is not None
    }


def iterate_json_objects(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON array or of JSON lines, one at a time."""
    decoder = json.JSONDecoder()
    with open_products_file(path) as file:
        text, at = file.read(CHUNK_CHARS), 0
        while text:
            while at < len(text) and text[at] in " \t\r\n,[]":
                at += 1
            try:
                row, at = decoder.raw_decode(text, at)
            except ValueError as error:
                # The object may go on in the next piece; only at the end of the file is it an error.
                more = file.read(CHUNK_CHARS)
                if not more:
                    if text[at:].strip():
                        raise SetupError(f"{path} is not JSON near {text[at : at + 40]!r}.") from error
                    return
                text, at = text[at:] + more, 0
                continue
            yield row


def read_objects_by_asin(path: Path) -> Row:
    """Read a JSON object. Raise SetupError if the file contains anything else."""
    try:
        with open_products_file(path) as file:
            value = json.load(file)
    except ValueError as error:
        raise SetupError(f"{path} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} holds no object by ASIN.")
    return value


def open_products_file(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def _find_first_file(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise SetupError(f"{folder} holds none of {', '.join(names)}: download the data of WebShop's release into it.")


def product_search_text(item: Product) -> str:
    """Return the text of a product that the search reads."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in item.options.items())
    return " ".join((item.title, item.description, item.bullets[0] if item.bullets else "", options)).lower()


Kind = Literal["synthetic", "human"]
Split = Literal["test", "eval", "train", "all"]
SPLITS: Mapping[Split, slice] = {
    "test": slice(0, 500),
    "eval": slice(500, 1500),
    "train": slice(1500, None),
    "all": slice(None),
}
LIMITS = tuple(10.0 * number for number in range(1, 100))
NO_LIMIT = 1_000_000.0
ORDER_SEED = 233


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of a shopper."""

    text: str
    """The instruction that the shopper gets; the rest is for scoring."""
    asin: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str] | str, ...]
    """(name, value) pairs, or values alone in human goals."""
    price_limit: float
    """In dollars."""


def draw_product_price(item: Product, seed: int) -> float:
    """Return the price of a product in dollars.

    A price in a range is drawn uniformly, depending on the product and the seed alone.
    """
    low, high = item.prices[0], item.prices[-1]
    return low if low == high else random.Random(f"{seed} {item.asin} price").uniform(low, high)


def make_goals(products: Iterable[Product], kind: Kind, seed: int) -> list[Goal]:
    """Make the goals of products, in the release's order."""
    goal_list = [goal for item in products for goal in make_product_goals(item, kind, seed)]
    # Splits are ranges of numbers, so the order must be the release's.
    random.Random(ORDER_SEED).shuffle(goal_list)
    return goal_list


def make_product_goals(item: Product, kind: Kind, seed: int) -> list[Goal]:
    price, rng = draw_product_price(item, seed), random.Random(f"{seed} {item.asin} limit")
    goals = []
    if kind == "human":
        for wish in item.human:
            if wish.attributes:
                limit, words = draw_price_limit(price, rng)
                goals.append(Goal(wish.text.strip(".") + words, item.asin, wish.attributes, wish.options, limit))
    elif item.synthetic is not None:
        limit, words = draw_price_limit(price, rng)
        names, wish = sorted(item.options), item.synthetic
        for values in itertools.product(*(item.options[name] for name in names)):
            options = tuple(zip(names, values, strict=True))
            with_options = ", and ".join(f"{name}: {value}" for name, value in options)
            text = f"{wish.text}{' with ' if options else ''}{with_options}{words}"
            goals.append(Goal(text, item.asin, wish.attributes, options, limit))
    return goals


def draw_price_limit(price: float, rng: random.Random) -> tuple[float, str]:
    """Return a limit in dollars and the words for it.

    It is the larger of two of the next four multiples of ten; there is none for a price from 980 dollars.

    >>> draw_price_limit(985.0, random.Random(0))
    (1000000.0, '')
    """
    above = [limit for limit in LIMITS if limit > price][:4]
    if len(above) < 2:
        return NO_LIMIT, ""
    limit = max(rng.sample(above, 2))
    return limit, f", and price lower than {limit:.2f} dollars"
