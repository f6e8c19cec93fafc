"""Closing an LM, whatever it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from decisor.types import LM


async def close_lm(lm: LM | None) -> None:
    """End its connections, where it has any."""
    close: Callable[[], Awaitable[None]] | None = getattr(lm, "close", None)
    if close is not None:
        await close()
