"""Databases for the questions of a benchmark run: each loaded once, opened when its first question comes, closed after
its last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from decisor.cli.bench_cases import World
from decisor.types import Tool

STORES = {"sql": "sqlite", "graph": "kglite"}
ENDINGS = {"sql": ".db", "graph": ".kgl"}


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
        from decisor.benchmarks.dqa.load import load_world

        url = f"{STORES[self.form]}:///{self.folder / world.key}"
        await load_world(world.data, url + ENDINGS[self.form])
        return await open_database(url + ENDINGS[self.form])

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
