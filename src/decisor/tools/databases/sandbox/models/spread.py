"""Trials: the inputs varied, the same way for the same seed.

Each input has a stream of its own in each trial (numpy's Philox, whose key is made of the seed and the name of the
input by SeedSequence), and each row or group its place in that stream. So no two draws are bound to each other, and an
input varies in the same way whether it varies alone or with others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decisor.quoting import quoted
from decisor.tools.databases.sandbox.models.program import Spread
from decisor.tools.databases.sandbox.models.results import Floats

if TYPE_CHECKING:
    import duckdb

DRAWS = "__draws"


def draws(spread: Spread, seed: int, count: int) -> Floats:
    """The factors of one input in one trial: 1 + U(-share, share), of ``count`` rows or groups."""
    name = hashlib.sha256(f"{spread.table}.{spread.column}".lower().encode()).digest()
    words = np.frombuffer(name[:16], dtype="<u4").tolist()
    stream = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *words])))
    return np.asarray(1 + spread.share * (2 * stream.random(count) - 1))


def tables_of(spreads: Sequence[Spread]) -> dict[str, list[Spread]]:
    """Each varied table (lower case), with its inputs."""
    by_table: dict[str, list[Spread]] = {}
    for spread in spreads:
        by_table.setdefault(spread.table.lower(), []).append(spread)
    return by_table


def register_draws(db: duckdb.DuckDBPyConnection, table: str, spreads: Sequence[Spread], seeds: Sequence[int]) -> None:
    """The view ``__draws``: of each row (``r``, its rowid) in each trial (``t``) the factor ``f0``, ``f1`` ... of each
    input, by trial and row. Unregister it when it is read."""
    # Rowids count from 0: a copy is loaded by one statement, and what deletes a row of it is rolled back.
    ((rows,),) = db.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
    cells: dict[str, NDArray[np.generic]] = {
        "t": np.repeat(np.arange(len(seeds)), rows), "r": np.tile(np.arange(rows), len(seeds))
    }  # fmt: skip
    for at, spread in enumerate(spreads):
        places = groups(db, table, spread, rows)
        count = int(places.max()) + 1 if rows else 0
        cells[f"f{at}"] = np.concatenate([draws(spread, seed, count)[places] for seed in seeds])
    db.register(DRAWS, cells)


def groups(db: duckdb.DuckDBPyConnection, table: str, spread: Spread, count: int) -> NDArray[np.int64]:
    """For each row, in the order of rowid, which draw it has: its own, the only one, or that of its value."""
    if spread.how in ("each", "together"):
        return np.arange(count) if spread.how == "each" else np.zeros(count, dtype=np.int64)
    place = quoted(spread.how)
    query = f"SELECT dense_rank() OVER (ORDER BY {place}) - 1 AS g FROM {quoted(table)} ORDER BY rowid"
    return np.asarray(db.execute(query).fetchnumpy()["g"], dtype=np.int64)


def replaced(table: str, spreads: Sequence[Spread]) -> list[tuple[str, str]]:
    """Each varied column, quoted, and what it becomes where ``__draws`` is joined as ``__d``."""
    places = [quoted(spread.column) for spread in spreads]
    return [(place, f"{quoted(table)}.{place} * __d.f{at}") for at, place in enumerate(places)]
