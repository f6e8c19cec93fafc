"""Databases for the questions of a benchmark run: each loaded when its first question comes, a few kept open idle."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from decisor.benchmarks.dqa.opening import open_database
from decisor.benchmarks.dqa.places import check, own_place, settle
from decisor.benchmarks.dqa.worlds import World
from decisor.types import BulkSource, Tool

STORES = {"sql": "sqlite", "graph": "kglite"}
ENDINGS = {"sql": ".db", "graph": ".kgl"}
IDLE = 4


@dataclass
class Stores:
    """``users``: how many questions use each world just now. ``url``: a server for all worlds (see ``places``), or one
    database, which must hold the world that is asked for. ``fresh``: drop what the server has of a world, and load it.
    ``settled``: worlds that are known to be where they should be."""

    form: str
    url: str = ""
    fresh: bool = False
    settled: set[str] = field(default_factory=set)
    users: Counter[str] = field(default_factory=Counter)
    opened: dict[str, asyncio.Task[Tool]] = field(default_factory=dict)
    closing: list[asyncio.Task[None]] = field(default_factory=list)
    folder: TemporaryDirectory[str] | None = None

    @asynccontextmanager
    async def tool(self, world: World) -> AsyncIterator[Tool]:
        """The database of a world, for one question. Raises SetupError where it cannot be opened."""
        key = world.key if not self.url or own_place(self.url, world.key) else self.url
        opening = self.opened.pop(key, None) or asyncio.create_task(self._open(world))
        self.opened[key] = opening  # the latest used is last
        self.users[key] += 1
        try:
            tool = await asyncio.shield(opening)
            if key == self.url and world.key not in self.settled:
                await check(cast(BulkSource, tool), world, self.url)
                self.settled.add(world.key)
            yield tool
        finally:
            self.users[key] -= 1
            self._close_idle()

    def _close_idle(self) -> None:
        idle = [key for key in self.opened if not self.users[key]]
        for key in idle[: max(0, len(idle) - IDLE)]:
            path = self._path(key) if not self.url else None
            self.closing.append(asyncio.create_task(close(self.opened.pop(key), path)))
        self.closing = [task for task in self.closing if not task.done()]

    async def _open(self, world: World) -> Tool:
        if self.url:
            place = own_place(self.url, world.key)
            if place and world.key not in self.settled:
                tool = await settle(place, world, self.fresh)
                self.settled.add(world.key)
                return tool
            return await open_database(place or self.url)
        from decisor.benchmarks.dqa.load import load_world

        path = self._path(world.key)
        url = f"{STORES[self.form]}:///{path}"
        if not path.exists():
            await load_world(world.data, url)
        return await open_database(url)

    def _path(self, key: str) -> Path:
        self.folder = self.folder or TemporaryDirectory(prefix="decisor-dqa-")
        return Path(self.folder.name) / f"{key}{ENDINGS[self.form]}"

    async def close(self) -> None:
        """Waits until everything is closed, what a failed run left open too."""
        self.closing += [asyncio.create_task(close(opening)) for opening in self.opened.values()]
        self.opened.clear()
        await asyncio.gather(*self.closing)
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None


async def close(opening: asyncio.Task[Tool], path: Path | None = None) -> None:
    """Close a tool once it is open; nothing where it could not be opened."""
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()
