"""Documents that are not for everybody: a condition on where they lie and what they are called, before any is seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import PurePosixPath

from decisor.errors import SetupError
from decisor.types import Record, Retriever, Value

COLUMNS = ("path", "folder", "name", "title", "section")
FIRST, MOST = 4, 10_000
"""How many times as many as are wanted are looked at first, and how many at most."""


@dataclass(frozen=True)
class Condition:
    """``texts``: conditions in SQL on ``COLUMNS``, and on the fields of what a retriever of somebody's own brings. All
    must hold; what is missing is NULL."""

    texts: tuple[str, ...]

    @cached_property
    def query(self) -> tuple[str, tuple[str, ...]]:
        """One row with a truth value, and the columns whose values it takes. Raises SetupError where a text is no such
        condition."""
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        trees = []
        for text in self.texts:
            try:
                tree = sqlglot.parse_one(f"SELECT 1 WHERE ({text})", dialect="sqlite")
            except SqlglotError as error:
                raise SetupError(f"The condition {text!r} of documents does not parse.") from error
            where = tree.find(exp.Where)
            if where is None or not isinstance(where.this, exp.Paren) or len(list(tree.find_all(exp.Query))) > 1:
                raise SetupError(f"The condition {text!r} of documents is not one condition.")
            trees.append(where.this)
        names = dict.fromkeys(column.name.lower() for tree in trees for column in tree.find_all(exp.Column))
        values = ", ".join(f'? AS "{name}"' for name in names) or "1 AS one"
        tests = " AND ".join(tree.sql(dialect="sqlite") for tree in trees)
        return f"SELECT 1 FROM (SELECT {values}) WHERE {tests}", tuple(names)

    def check(self) -> None:
        """Raises SetupError where it does not run."""
        self.among([{}])

    def among(self, all_values: Sequence[Mapping[str, Value]]) -> list[bool]:
        """Of which it holds."""
        query, names = self.query
        rows = [[value if isinstance(value := values.get(name), str | int | float) else None for name in names]
                for values in all_values]  # fmt: skip
        with closing(sqlite3.connect(":memory:")) as database:
            try:
                return [database.execute(query, row).fetchone() is not None for row in rows]
            except sqlite3.Error as error:
                raise SetupError(f"The condition {' AND '.join(self.texts)} of documents fails: {error}") from error

    def unknown(self) -> list[str]:
        """Names that none of ``COLUMNS`` has."""
        return [name for name in self.query[1] if name not in COLUMNS]


def place_of(path: str) -> dict[str, Value]:
    """
    >>> place_of("hr/pay/2024.md")
    {'path': 'hr/pay/2024.md', 'folder': 'hr/pay', 'name': '2024.md'}
    """
    folder = str(PurePosixPath(path).parent)
    return {"path": path, "folder": "" if folder == "." else folder, "name": PurePosixPath(path).name}


@dataclass(frozen=True)
class ForReader:
    """A retriever of which only what fulfils a condition comes. Satisfies ``types.Retriever``."""

    retriever: Retriever
    condition: Condition

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        wide = limit * FIRST
        while True:
            hits = tuple(await self.retriever.find(query, wide))
            own = tuple(compress(hits, self.condition.among([values_of(one) for one in hits])))
            if len(own) >= limit or len(hits) < wide or wide >= MOST:
                return own[:limit]
            wide *= FIRST


def values_of(record: Record) -> dict[str, Value]:
    """Of a passage, by the names that a condition uses."""
    return {name.lower(): value for name, value in record.fields.items()} | place_of(record.source or record.id)
