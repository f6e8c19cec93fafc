"""One trial: the inputs varied, the same way for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from decisor.tools.databases.sandbox.models.program import Spread
from decisor.tools.databases.sandbox.models.tables import quoted

BITS = 2**53


def varied(spreads: Sequence[Spread], seed: int) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each table (lower case), with its varied columns, quoted, and what they become: times 1 + U(-share, share)."""
    rng = np.random.default_rng(seed)
    by_table: dict[str, list[tuple[str, str]]] = {}
    for spread in spreads:
        by_table.setdefault(spread.table.lower(), []).append((quoted(spread.column), factor(spread, rng)))
    yield from by_table.items()


def factor(spread: Spread, rng: np.random.Generator) -> str:
    """The varied column, as DuckDB's SQL. ``rowid`` tells the rows of a table apart."""
    place = quoted(spread.column)
    if spread.how == "together":
        return f"{place} * {1 + rng.uniform(-spread.share, spread.share)!r}::DOUBLE"
    key = "rowid" if spread.how == "each" else f"CAST({quoted(spread.how)} AS VARCHAR)"
    seed = int(rng.integers(BITS))
    unit = f"(hash({key}, {seed}) % {BITS}) / {BITS}.0::DOUBLE"
    return f"{place} * (1 + {spread.share!r}::DOUBLE * (2 * {unit} - 1))"
