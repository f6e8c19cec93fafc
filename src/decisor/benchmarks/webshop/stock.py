"""All products of a shop: held in memory, or kept in a folder on disk and looked up, for the file of 1.18 million.

A kept folder holds ``products.db`` (SQLite, a product a row) and the search index as numpy files. It is written beside
its place and moved there when it is whole, so a crash leaves nothing half made.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Protocol

from decisor.benchmarks.webshop.bm25 import Index, build, load, save
from decisor.benchmarks.webshop.products import Instruction, Product
from decisor.benchmarks.webshop.terms import terms

VERSION = "1"
NAMES = tuple(one.name for one in fields(Product))
BATCH = 1000


class Stock(Protocol):
    """Products by number, from 0, in file order."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Product: ...

    def number(self, asin: str) -> int:
        """Raises KeyError where there is no such product."""
        ...

    def with_mark(self, mark: str, value: str) -> list[int]:
        """The products with this query (<q>), category (<c>) or attribute (<a>)."""
        ...

    def with_instruction(self) -> Iterator[Product]:
        """Those that an instruction asks for."""
        ...


@dataclass(frozen=True)
class MemoryStock:
    products: Sequence[Product]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {item.asin: number for number, item in enumerate(self.products)}

    def __len__(self) -> int:
        return len(self.products)

    def __getitem__(self, number: int) -> Product:
        return self.products[number]

    def number(self, asin: str) -> int:
        return self.numbers[asin]

    def with_mark(self, mark: str, value: str) -> list[int]:
        return [number for number, item in enumerate(self.products) if value in field_of(item, mark)]

    def with_instruction(self) -> Iterator[Product]:
        return (item for item in self.products if item.synthetic or item.human)


def field_of(item: Product, mark: str) -> tuple[str, ...]:
    return {"<q>": (item.query,), "<c>": (item.category,)}.get(mark, item.attributes)


@dataclass(frozen=True)
class DiskStock:
    """Satisfies ``Stock``, from the database at ``path``."""

    path: Path

    @cached_property
    def db(self) -> sqlite3.Connection:
        db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        weakref.finalize(self, db.close)
        return db

    @cached_property
    def size(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM product").fetchone()[0])

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> Product:
        row = self.db.execute("SELECT body FROM product WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise IndexError(number)
        return unpacked(row[0])

    def number(self, asin: str) -> int:
        row = self.db.execute("SELECT number FROM product WHERE asin = ?", (asin,)).fetchone()
        if row is None:
            raise KeyError(asin)
        return int(row[0])

    def with_mark(self, mark: str, value: str) -> list[int]:
        of_list = "EXISTS (SELECT 1 FROM json_each(product.attributes) WHERE json_each.value = ?)"
        where = {"<q>": "query = ?", "<c>": "category = ?"}.get(mark, of_list)
        numbers = self.db.execute(f"SELECT number FROM product WHERE {where} ORDER BY number", (value,))
        return [number for (number,) in numbers]

    def with_instruction(self) -> Iterator[Product]:
        for (body,) in self.db.execute("SELECT body FROM product WHERE asked ORDER BY number"):
            yield unpacked(body)


def search_text(item: Product) -> str:
    """What the search reads of a product."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in item.options.items())
    return " ".join((item.title, item.description, item.bullets[0] if item.bullets else "", options)).lower()


def memory_stock(products: Iterable[Product]) -> tuple[MemoryStock, Index]:
    stock = MemoryStock(list(products))
    return stock, build((search_text(item) for item in stock.products), terms)


def write_stock(products: Iterable[Product], folder: Path) -> None:
    """Write a folder that ``disk_stock`` opens."""
    making = folder.with_name(f"{folder.name}.making-{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    db = sqlite3.connect(making / "products.db")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("CREATE TABLE product (number INTEGER PRIMARY KEY, asin TEXT, asked INTEGER, query TEXT, category TEXT,"
               " attributes TEXT, body TEXT)")  # fmt: skip
    save(build(_written(products, db), terms), making)
    for column in ("asin", "query", "category"):
        db.execute(f"CREATE INDEX by_{column} ON product ({column})")
    db.execute("CREATE INDEX by_asked ON product (number) WHERE asked")
    db.commit()
    db.close()
    (making / "version").write_text(VERSION)
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)


def is_stock(folder: Path) -> bool:
    mark = folder / "version"
    return mark.is_file() and mark.read_text() == VERSION


def disk_stock(folder: Path) -> tuple[DiskStock, Index]:
    """What ``write_stock`` wrote; the index stays on disk until it is used."""
    return DiskStock(folder / "products.db"), load(folder, terms)


def _written(products: Iterable[Product], db: sqlite3.Connection) -> Iterator[str]:
    """What the search reads of each product, as it is put away."""
    for number, item in enumerate(products):
        has_instruction = bool(item.synthetic or item.human)
        row = number, item.asin, has_instruction, item.query, item.category, json.dumps(item.attributes), packed(item)
        db.execute("INSERT INTO product VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        yield search_text(item)


def packed(item: Product) -> str:
    return json.dumps({name: getattr(item, name) for name in NAMES}, ensure_ascii=False, default=asdict)


def unpacked(body: str) -> Product:
    """
    >>> lamp_wish = Instruction("a lamp", ("brass",))
    >>> lamp = Product("B1", "Lamp", "", ("a",), (1.0, 2.0), "$1", {"size": ("s",)}, (), "", "", "", human=(lamp_wish,))
    >>> unpacked(packed(lamp)) == lamp
    True
    """
    row = json.loads(body)
    for name in ("bullets", "prices", "attributes"):
        row[name] = tuple(row[name])
    row["options"] = {name: tuple(values) for name, values in row["options"].items()}
    row["synthetic"] = _instruction(row["synthetic"]) if row["synthetic"] else None
    row["human"] = tuple(_instruction(one) for one in row["human"])
    return Product(**row)


def _instruction(row: dict[str, list[str]]) -> Instruction:
    return Instruction(str(row["text"]), tuple(row["attributes"]), tuple(row["options"]))
