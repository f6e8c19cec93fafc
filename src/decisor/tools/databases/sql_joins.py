"""Which column holds the keys of which other table, where nothing declares it: guessed from names and shared values."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.process import Worker
from decisor.types import Value

SECONDS = 2.0
MOST_PAIRS = 200_000
"""Of columns and keys that are compared. A schema with more of them is left as it is declared."""
FEWEST_VALUES = 3
"""Of different texts that must be keys of the other table, where the names are unlike."""
KEY_WORDS = frozenset({"id", "code", "key", "name", "no", "number", "nr", "uuid", "fk", "pk"})


@dataclass(frozen=True, slots=True)
class Place:
    """A column that may hold keys, with some of its values."""

    table: str
    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """The one column of a table's primary key. ``schema`` begins the table's name where it is not the default one."""

    table: str
    column: str
    schema: str = ""


async def guess(
    worker: Worker, places: Sequence[Place], keys: Sequence[Key], counts: Mapping[str, int | None]
) -> dict[tuple[str, str], str]:
    """(table, column) to the table.column whose keys it holds: all of its values that were sampled are keys there, and
    the names are alike or the values are several texts. Takes at most ``SECONDS``."""
    dialect = worker.description.dialect
    joins: dict[tuple[str, str], str] = {}
    until = time.monotonic() + SECONDS
    for place, key in pairs(places, keys):
        left = until - time.monotonic()
        if left <= 0 or dialect is None:
            break
        if (place.table, place.column) in joins or (counts.get(key.table) or 0) < len(place.values):
            continue
        if await all_are_keys(worker, place, key, dialect, left):
            joins[place.table, place.column] = f"{key.table}.{key.column}"
    return joins


def pairs(places: Sequence[Place], keys: Sequence[Key]) -> Iterator[tuple[Place, Key]]:
    """Those worth a look, the likeliest first; none of a schema that has too many."""
    if len(places) * len(keys) > MOST_PAIRS:
        return
    worth = [
        (-likeness(place, key), at, place, key)
        for at, place in enumerate(places)
        for key in keys
        if (place.table, place.column) != (key.table, key.column) and place.values
    ]
    for _, _, place, key in sorted(worth, key=lambda one: one[:2]):
        texts = {value for value in place.values if isinstance(value, str)}
        if likeness(place, key) >= 1 or len(texts) >= FEWEST_VALUES:
            yield place, key


def likeness(place: Place, key: Key) -> float:
    """1 and more where the names speak for it.

    >>> likeness(Place("supply", "goods_id", ()), Key("goods", "code"))
    2.0
    >>> likeness(Place("node", "country_name", ()), Key("country", "country_name"))
    3.0
    >>> likeness(Place("flow", "level", ()), Key("goods", "code")), likeness(Place("a", "id", ()), Key("b", "id"))
    (0.0, 0.0)
    """
    column, own, table = words(place.column), words(key.column), words(key.table)
    telling = own - KEY_WORDS
    if place.column.lower() == key.column.lower():
        return 3.0 if telling else 0.0
    about = column - KEY_WORDS
    if about and about <= table | telling:
        return 2.0 if about in (table, telling) else 1.0
    return 0.0


def words(name: str) -> set[str]:
    """
    >>> sorted(words("homeNode_ids"))
    ['home', 'id', 'node']
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    return {part.lower() if part.lower() in ("goods", "is") else part.lower().removesuffix("s") for part in parts}


def place_of(key: Key, dialect: Dialect) -> str:
    bare = key.table[len(key.schema) + 1 :] if key.schema else key.table
    return ".".join(dialect.quoted(part) for part in (key.schema, bare) if part)


async def all_are_keys(worker: Worker, place: Place, key: Key, dialect: Dialect, seconds: float) -> bool:
    names = {f"v{at}": value for at, value in enumerate(dict.fromkeys(place.values))}
    column = dialect.quoted(key.column)
    within = ", ".join(f":{name}" for name in names)
    query = f"SELECT count(DISTINCT {column}) FROM {place_of(key, dialect)} WHERE {column} IN ({within})"
    try:
        table = await worker.run(query, names, replace(worker.caps, seconds=max(0.2, seconds)), trusted=True)
    except ToolError:
        return False
    return table.rows[0][0] == len(names)
