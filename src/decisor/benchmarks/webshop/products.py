"""The products of WebShop, from the released files or from the small set as it is after loading.

A folder holds one file of products (``items_shuffle.json``, ``items_shuffle_1000.json``, or ``products_1k.jsonl.gz``,
one product a line), one of attributes and synthetic instructions (``items_ins_v2*.json``), and for the human goals
``items_human_ins.json``. Fields and rules: Yao et al., "WebShop", NeurIPS 2022, and its release (engine.load_products).
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from decisor.errors import SetupError

Row = Mapping[str, Any]
PRODUCTS = ("items_shuffle.json", "products_1k.jsonl.gz", "items_shuffle_1000.json")
INSTRUCTIONS = ("items_ins_v2.json", "items_ins_v2_1000.json")
HUMAN = "items_human_ins.json"
NO_PRICE, NO_ATTRIBUTES = (100.0,), ("DUMMY_ATTR",)
CHUNK_CHARS = 2**20


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction for a product: what is wanted, with which attributes and option values."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """One product. ``prices``: one, or the two ends of a range, in dollars. ``options``: values by name, all lower
    case. ``synthetic`` and ``human``: the instructions that ask for it; no page shows them."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    prices: tuple[float, ...]
    price_tag: str
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    category: str
    categories: str
    query: str
    rating: str = "N.A."
    synthetic: Instruction | None = None
    human: tuple[Instruction, ...] = ()


def load_products(folder: Path) -> Iterator[Product]:
    """In file order, the first of each ASIN. One at a time: the released file of 1.18 million needs 5 GB.

    Raises:
        SetupError: a file is missing or not of the released form.
    """
    path = _one_of(folder, PRODUCTS)
    instructions = read_json(_one_of(folder, INSTRUCTIONS))
    human = read_json(folder / HUMAN) if (folder / HUMAN).is_file() else {}
    asins: set[str] = set()
    for row in rows(path):
        try:
            asin = row["asin"]
            if asin not in asins and asin != "nan" and len(asin) <= 10:
                asins.add(asin)
                item = product(row, instructions.get(asin, {}), human.get(asin, row.get("instructions", ())))
            else:
                continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SetupError(f"A product of {path} is not of the released form: {error!r}.") from error
        yield item


def product(row: Row, instruction: Row, human: Sequence[Row]) -> Product:
    """From a released row, or from one that is loaded already (it has a ``Title``)."""
    loaded = "Title" in row
    prices, tag = (tuple(row["pricing"]), row["Price"]) if loaded else _prices(row.get("pricing"))
    bullets = row["small_description"]
    options = row["options"] if loaded else _options(row["customization_options"])
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
        rating=row.get("Rating", "N.A."),
        synthetic=synthetic,
        human=tuple(
            Instruction(one["instruction"], tuple(one["instruction_attributes"]), tuple(one["instruction_options"]))
            for one in human
        ),
    )


def _prices(text: str | None) -> tuple[tuple[float, ...], str]:
    """
    >>> _prices("$8.99$12.50"), _prices("$1,234.00"), _prices("")
    (((8.99, 12.5), '$8.99 to $12.5'), ((1234.0,), '$1234.0'), ((100.0,), '$100.0'))
    """
    prices = tuple(float(re.sub(r"[^\d.]", "", part)) for part in (text or "").split("$")[1:])[:2] or NO_PRICE
    return prices, " to ".join(f"${price}" for price in prices)


def _options(released: Row | str | None) -> dict[str, list[str]]:
    """
    >>> _options({"Size": [{"value": " S/M "}], "Fit": None})
    {'size': ['s | m']}
    """
    by_name = released if isinstance(released, Mapping) else {}
    return {
        name.lower(): [value["value"].strip().replace("/", " | ").lower() for value in values]
        for name, values in by_name.items()
        if values is not None
    }


def rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON array or of JSON lines, one at a time."""
    decoder = json.JSONDecoder()
    with open_text(path) as file:
        text, at = file.read(CHUNK_CHARS), 0
        while text:
            while at < len(text) and text[at] in " \t\r\n,[]":
                at += 1
            try:
                row, at = decoder.raw_decode(text, at)
            except ValueError as error:
                more = file.read(CHUNK_CHARS)
                if not more:
                    if text[at:].strip():
                        raise SetupError(f"{path} is not JSON near {text[at : at + 40]!r}.") from error
                    return
                text, at = text[at:] + more, 0
                continue
            yield row


def read_json(path: Path) -> Row:
    """Raises SetupError where it is not a JSON object."""
    try:
        with open_text(path) as file:
            value = json.load(file)
    except ValueError as error:
        raise SetupError(f"{path} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} holds no object by ASIN.")
    return value


def open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def _one_of(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise SetupError(f"{folder} holds none of {', '.join(names)}: download the data of WebShop's release into it.")
