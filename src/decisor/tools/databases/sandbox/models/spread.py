"""Trials: the inputs varied, the same way for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.program import Spread

BITS = 2**53
TOGETHER = "together"


def draws(spreads: Sequence[Spread], seed: int) -> list[float | int]:
    """Of one trial, a number for each input: its factor where it varies together, else the seed of its rows."""
    rng = np.random.default_rng(seed)
    pairs = [(1 + rng.uniform(-spread.share, spread.share), int(rng.integers(BITS))) for spread in spreads]
    return [pair[spread.how != TOGETHER] for pair, spread in zip(pairs, spreads, strict=True)]


def varied(spreads: Sequence[Spread], words: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each table (lower case), with its varied columns, quoted, and what they become: times 1 + U(-share, share).

    ``words``: for each input, where its draw stands, as SQL.
    """
    by_table: dict[str, list[tuple[str, str]]] = {}
    for spread, word in zip(spreads, words, strict=True):
        by_table.setdefault(spread.table.lower(), []).append((quoted(spread.column), factor(spread, word)))
    yield from by_table.items()


def factor(spread: Spread, word: str) -> str:
    """The varied column, as DuckDB's SQL. ``rowid`` tells the rows of a table apart."""
    table, place = quoted(spread.table), quoted(spread.column)
    if spread.how == TOGETHER:
        return f"{table}.{place} * {word}"
    key = f"{table}.rowid" if spread.how == "each" else f"CAST({table}.{quoted(spread.how)} AS VARCHAR)"
    unit = f"(hash({key}, {word}) % {BITS}) / {BITS}.0::DOUBLE"
    return f"{table}.{place} * (1 + {spread.share!r}::DOUBLE * (2 * {unit} - 1))"


def literals(spreads: Sequence[Spread], seed: int) -> list[str]:
    """The draws of one trial as SQL."""
    return [f"{draw!r}::{kind_of(spread)}" for spread, draw in zip(spreads, draws(spreads, seed), strict=True)]


def kind_of(spread: Spread) -> str:
    return "DOUBLE" if spread.how == TOGETHER else "BIGINT"
