"""Databases for the questions of a benchmark run: each loaded once, opened when its first question comes, closed after
its last."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from decisor.cli.bench_cases import World
from decisor.errors import SetupError
from decisor.types import Tool

KINDS = {"str": "VARCHAR(80)", "float": "DOUBLE", "int": "INTEGER", "bool": "BOOLEAN"}
KEYS = {
    "country": "country_name", "trade_node": "trade_node", "flow": "source, dest",
    "node_country": "trade_node, country_name", "goods": "code", "building": "id",
    "supply": "goods_id, building_id", "demand": "goods_id, building_id",
}  # fmt: skip


@dataclass
class Stores:
    """``waiting``: how many questions each world has still to answer. ``url``: one database for all of them."""

    folder: Path
    form: str
    url: str | None = None
    waiting: Counter[str] = field(default_factory=Counter)
    opened: dict[str, asyncio.Task[Tool]] = field(default_factory=dict)
    closing: list[asyncio.Task[None]] = field(default_factory=list)

    def expect(self, worlds: Iterable[World]) -> None:
        self.waiting.update(self.key(world) for world in worlds)

    def key(self, world: World) -> str:
        return self.url or world.key

    @asynccontextmanager
    async def tool(self, world: World) -> AsyncIterator[Tool]:
        """The database of a world, for one question."""
        key = self.key(world)
        if key not in self.opened:
            self.opened[key] = asyncio.create_task(self._open(world))
        try:
            yield await asyncio.shield(self.opened[key])
        finally:
            self.waiting[key] -= 1
            if not self.waiting[key]:
                self.closing.append(asyncio.create_task(close(self.opened.pop(key))))

    async def _open(self, world: World) -> Tool:
        if self.url:
            return await open_database(self.url)
        path = self.folder / f"{world.key}.db"
        if not path.exists():
            await asyncio.to_thread(load, world, path, self.form)
        return await open_database(f"sqlite:///{path}")

    async def close(self) -> None:
        """Waits until everything is closed, what a failed run left open too."""
        self.closing += [asyncio.create_task(close(opening)) for opening in self.opened.values()]
        self.opened.clear()
        await asyncio.gather(*self.closing)


async def close(opening: asyncio.Task[Tool]) -> None:
    """Close a tool once it is open; nothing where it could not be opened."""
    await asyncio.wait([opening])
    if opening.exception() is None:
        await opening.result().close()


def load(world: World, path: Path, form: str) -> None:
    """Fill a new database with a world that was read from its dump."""
    from decisor.whatif.locating import LocatingData
    from decisor.whatif.rows import BUILDING, LOCATING

    if form == "graph":
        raise SetupError("Load the graph form first, and name it: decisor bench dqa run --form graph --db URL")
    kinds: Mapping[str, Any] = LOCATING if isinstance(world.data, LocatingData) else BUILDING
    rows = (getattr(world.data, field.name) for field in fields(world.data))
    load_sqlite(
        {name: (kind.__annotations__, table) for (name, kind), table in zip(kinds.items(), rows, strict=True)}, path
    )


def load_sqlite(tables: Mapping[str, tuple[Mapping[str, Any], Sequence[tuple[Any, ...]]]], path: Path) -> None:
    """New tables of (columns with the names of their types, rows), floats as 64-bit doubles, in a new file."""
    with closing(sqlite3.connect(path)) as database, database:
        for name, (columns, rows) in tables.items():
            made = (f"{column} {KINDS[getattr(kind, '__forward_arg__', kind)]}" for column, kind in columns.items())
            database.execute(f"CREATE TABLE {name} ({', '.join(made)}, PRIMARY KEY ({KEYS[name]}))")
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


async def open_database(url: str) -> Tool:
    """The tool for a URL: a graph for kglite, arcadedb, bolt and neo4j, else SQL.

    Raises:
        SetupError: it cannot be opened.
    """
    if form_of(url) == "graph":
        from importlib import import_module

        graph: Tool = await import_module("decisor.tools.cypher").CypherTool.open(url)
        return graph
    from decisor.tools.sql import SqlTool

    return await SqlTool.open(url)


def form_of(url: str) -> str:
    """
    >>> form_of("bolt://localhost:7687"), form_of("trade.db")
    ('graph', 'sql')
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return "graph" if scheme in ("kglite", "arcadedb", "bolt", "neo4j") else "sql"
