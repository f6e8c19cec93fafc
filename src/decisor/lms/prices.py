"""What a call costs. There is no built-in price list: it would go stale, and a wrong price is worse than none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from decisor.errors import SetupError
from decisor.types import LM, Pricing, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens.

    >>> Price(2.0, 8.0).dollars(500_000, 250_000)
    3.0
    """

    prompt: float
    completion: float

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


FREE = Price(0.0, 0.0)


def with_dollars(usage: Usage, price: Price | None) -> Usage:
    """With its dollars, None where the price is not known."""
    dollars = price.dollars(usage.prompt_tokens, usage.completion_tokens) if price else None
    return usage if usage.dollars == dollars else replace(usage, dollars=dollars)


def price_of_lm(lm: LM) -> Pricing | None:
    """For an LM that wraps another: the price of that one, None where it is not known."""
    price: Pricing | None = getattr(lm, "price", None)
    return price


def prompt_usage(payload: bytes) -> Usage:
    """What a request may have cost whose reply was lost: its prompt, at a token per four bytes."""
    return Usage(prompt_tokens=(len(payload) + 3) // 4)


def parse_price(text: str) -> Price:
    """From ``DECISOR_PRICE``: dollars per million prompt tokens, a comma, dollars per million completion tokens.

    >>> parse_price("0.4, 1.6")
    Price(prompt=0.4, completion=1.6)

    Raises:
        SetupError: it is not two amounts.
    """
    try:
        prompt, completion = (float(part) for part in text.split(","))
        if not (0 <= prompt < 1e6 and 0 <= completion < 1e6):
            raise ValueError
    except ValueError:
        raise SetupError(
            f"DECISOR_PRICE is {text!r}; write dollars per million tokens, prompt and completion: 0.4,1.6"
        ) from None
    return Price(prompt, completion)
