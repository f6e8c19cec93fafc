"""What is measured on the rows: whether columns tell them apart, and how many belong to how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from decisor.definitions.format import Cardinality, Join
from decisor.definitions.relations import Relation
from decisor.types import Observation, Table


class Rows(Protocol):
    """A database behind the sandbox, with its schema."""

    @property
    def name(self) -> str: ...

    @property
    def form(self) -> str: ...

    @property
    def tables(self) -> Sequence[Relation]: ...

    def quoted(self, name: str) -> str: ...

    async def call(self, text: str) -> Observation: ...

    async def fetch(self, query: str, max_rows: int = ..., trusted: bool = ...) -> Table: ...


async def number(query: str, rows: Rows) -> int:
    """Of a query that counts. Raises ToolError."""
    table = await rows.fetch(query, 1)
    value = table.rows[0][0] if table.rows else 0
    return int(value) if isinstance(value, int | float) else 0


async def doubles(columns: Sequence[str], source: str, rows: Rows, where: Sequence[str] = ()) -> int:
    """How many values of ``columns`` several rows of ``source`` share: 0 where they tell the rows apart. Both are SQL.

    Raises:
        ToolError: they are no columns of these rows.
    """
    names = ", ".join(columns)
    condition = f" WHERE {' AND '.join(f'({one})' for one in where)}" if where else ""
    groups = f"SELECT count(*) AS n FROM {source}{condition} GROUP BY {names} HAVING count(*) > 1"
    return await number(f"SELECT count(*) AS n FROM ({groups}) AS shared", rows)


async def cardinality(join: Join, rows: Rows) -> tuple[Cardinality, int]:
    """As the rows have it, and how many rows on the left have no partner.

    Raises:
        ToolError: a table or column is not there.
    """
    sides = []
    for places in (join.left, join.right):
        table, columns = split(places, rows)
        filled = [f"{column} IS NOT NULL" for column in columns]
        sides.append("many" if await doubles(columns, table, rows, filled) else "one")
    (left, own), (right, there) = split(join.left, rows), split(join.right, rows)
    equal = " AND ".join(f"a.{one} = b.{other}" for one, other in zip(own, there, strict=True))
    filled = [f"a.{column} IS NOT NULL" for column in own]
    alone = f"SELECT count(*) AS n FROM {left} AS a WHERE {' AND '.join(filled)} AND NOT EXISTS " \
            f"(SELECT 1 AS one FROM {right} AS b WHERE {equal})"  # fmt: skip
    words: Cardinality = f"{sides[0]} to {sides[1]}"  # type: ignore[assignment]
    return words, await number(alone, rows)


def split(places: Sequence[str], rows: Rows) -> tuple[str, list[str]]:
    """TABLE.COLUMN, several of one table, as quoted names."""
    table = places[0].rpartition(".")[0]
    return rows.quoted(bare(table)), [rows.quoted(bare(place.rpartition(".")[2])) for place in places]


def bare(name: str) -> str:
    return name.strip().strip('"`[]')
