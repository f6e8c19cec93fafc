"""What a call costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from decisor.errors import SetupError
from decisor.types import LM, Pricing, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. ``cached``: of those that the endpoint had in its cache; ``cache_write``: of those
    that it put there; None: as the rest of the prompt.

    >>> Price(2.0, 8.0).dollars(500_000, 250_000), Price(2.0, 8.0, cached=0.5).dollars(500_000, 0, cache_reads=400_000)
    (3.0, 0.4)
    """

    prompt: float
    completion: float
    cached: float | None = None
    cache_write: float | None = None

    def dollars(self, prompt_tokens: int, completion_tokens: int, cache_reads: int = 0, cache_writes: int = 0) -> float:
        cost = prompt_tokens * self.prompt + completion_tokens * self.completion
        if cache_reads and self.cached is not None:
            cost += cache_reads * (self.cached - self.prompt)
        if cache_writes and self.cache_write is not None:
            cost += cache_writes * (self.cache_write - self.prompt)
        return cost / 1e6


FREE = Price(0.0, 0.0)


def with_dollars(usage: Usage, price: Price | None) -> Usage:
    """With its dollars, None where the price is not known."""
    dollars = None
    if price:
        dollars = price.dollars(usage.prompt_tokens, usage.completion_tokens, usage.cache_reads, usage.cache_writes)
    return usage if usage.dollars == dollars else replace(usage, dollars=dollars)


def price_of_lm(lm: LM) -> Pricing | None:
    """For an LM that wraps another: the price of that one, None where it is not known."""
    price: Pricing | None = getattr(lm, "price", None)
    return price


def prompt_usage(payload: bytes) -> Usage:
    """What a request may have cost whose reply was lost: its prompt, at a token per four bytes."""
    return Usage(prompt_tokens=(len(payload) + 3) // 4)


def parse_price(text: str) -> Price:
    """From ``DECISOR_PRICE``: dollars per million tokens of the prompt, of the completion, and, where a third is named,
    of what was read from a cache.

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
