"""The price of a call, and the published prices of well-known models.

Published prices come from a dated file that is shipped; a person's own file (DECISOR_PRICES) goes before it. No
network is used.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Lt

from decisor.errors import SetupError
from decisor.system.serialization import DocumentFormat
from decisor.types import LLM, Pricing, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """A price in dollars per million tokens.

    >>> Price(2.0, 8.0).dollars(500_000, 250_000), Price(2.0, 8.0, cached=0.5).dollars(500_000, 0, cache_reads=400_000)
    (3.0, 0.4)
    """

    prompt: float
    completion: float
    cached: float | None = None
    """Of tokens that the endpoint had in its cache; None means as the rest of the prompt."""
    cache_write: float | None = None
    """Of tokens that the endpoint put into its cache; None means as the rest of the prompt."""

    def dollars(self, prompt_tokens: int, completion_tokens: int, cache_reads: int = 0, cache_writes: int = 0) -> float:
        cost = prompt_tokens * self.prompt + completion_tokens * self.completion
        # The tokens of a cache are part of prompt_tokens: only the difference of the prices is added.
        if cache_reads and self.cached is not None:
            cost += cache_reads * (self.cached - self.prompt)
        if cache_writes and self.cache_write is not None:
            cost += cache_writes * (self.cache_write - self.prompt)
        return cost / 1e6


FREE = Price(0.0, 0.0)


def add_dollars(usage: Usage, price: Price | None) -> Usage:
    """Add the dollars to a usage; None if the price is unknown."""
    dollars = None
    if price:
        dollars = price.dollars(usage.prompt_tokens, usage.completion_tokens, usage.cache_reads, usage.cache_writes)
    return usage if usage.dollars == dollars else replace(usage, dollars=dollars)


def price_of_llm(llm: LLM) -> Pricing | None:
    """Return the price of an LLM; None if unknown."""
    price: Pricing | None = getattr(llm, "price", None)
    return price


def estimate_prompt_usage(payload: bytes) -> Usage:
    """Estimate the usage of a request whose reply was lost: its prompt, at a token per four bytes."""
    return Usage(prompt_tokens=(len(payload) + 3) // 4)


def parse_price(text: str) -> Price:
    """Parse the text of ``DECISOR_PRICE``, two or three amounts separated by commas.

    They are dollars per million tokens of prompt, of completion and, if a third is given, of prompt that was read from
    a cache.

    >>> parse_price("0.4, 1.6"), parse_price("0.4,1.6,0.1").cached
    (Price(prompt=0.4, completion=1.6, cached=None, cache_write=None), 0.1)

    Raises:
        SetupError: it is not two or three amounts.
    """
    try:
        prompt, completion, *cached = (float(part) for part in text.split(","))
        if not all(0 <= amount < 1e6 for amount in (prompt, completion, *cached)) or len(cached) > 1:
            raise ValueError
    except ValueError:
        raise SetupError(
            f"DECISOR_PRICE is {text!r}; write dollars per million tokens, prompt and completion, and cached prompt "
            "where that differs: 0.4,1.6 or 0.4,1.6,0.1"
        ) from None
    return Price(prompt, completion, *cached)


SHIPPED = Path(__file__).parent / "prices.toml"
SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})")
Amount = Annotated[float, Ge(0), Lt(1e6)]


@dataclass(frozen=True, slots=True)
class PriceRow:
    """A row of a price table: the price of a model at a host, since when, and by which source."""

    host: str
    """With its port, if it has one."""
    model: str
    prompt: Amount
    completion: Amount
    date: datetime.date
    source: str
    cached: Amount | None = None
    cache_write: Amount | None = None

    @property
    def price(self) -> Price:
        return Price(self.prompt, self.completion, self.cached, self.cache_write)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """A table of prices."""

    models: tuple[PriceRow, ...]


PRICES = DocumentFormat(PriceTable, is_closed=True)


def published_price(model: str, host: str, environ: Mapping[str, str]) -> Price | None:
    """Return the price of ``model`` at ``host`` by the table of ``DECISOR_PRICES``, else the shipped one.

    None if neither has it.

    Raises:
        SetupError: the person's table cannot be read.
    """
    own = environ.get("DECISOR_PRICES")
    # A person's own rows first: the first match counts.
    rows = (*(read_prices(Path(own)) if own else ()), *read_prices(SHIPPED))
    for row in rows:
        name, ending = model[: len(row.model)], model[len(row.model) :]
        # A dated snapshot costs as its model; gpt-4.1-mini is no snapshot of gpt-4.1.
        if (host, name) == (row.host, row.model) and (not ending or SNAPSHOT.fullmatch(ending)):
            return row.price
    return None


@cache
def read_prices(path: Path) -> tuple[PriceRow, ...]:
    """Read the rows of a price table.

    Raises:
        SetupError: the file cannot be read, or a line lacks something.
    """
    try:
        return PRICES.decode_value(tomllib.loads(path.read_text("utf-8"))).models
    except OSError as error:
        raise SetupError(f"Cannot read the prices in {path}: {error.strerror}.") from error
    except ValueError as error:
        raise SetupError(
            f"{path} is no table of prices ({error}). Each line of its list models has host, model, prompt and "
            "completion in dollars per million tokens, date and source; cached and cache_write where they differ."
        ) from error
