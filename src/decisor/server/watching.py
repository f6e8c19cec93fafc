"""Who watches all runs of a user, and what each of them has not seen yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from decisor.server.live import LiveRun


@dataclass(eq=False)
class Watcher:
    """``news``: runs that changed since they were last sent, by id."""

    owner: str
    news: dict[str, LiveRun] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> list[LiveRun]:
        """What is new, once."""
        news, self.news = self.news, {}
        self.changed.clear()
        return list(news.values())


@dataclass(eq=False)
class Watchers:
    everybody: set[Watcher] = field(default_factory=set)

    @contextmanager
    def one(self, owner: str) -> Iterator[Watcher]:
        watcher = Watcher(owner)
        self.everybody.add(watcher)
        try:
            yield watcher
        finally:
            self.everybody.discard(watcher)

    def wake(self, live: LiveRun) -> None:
        self.tell(live.past.owner, live)

    def tell(self, name: str, live: LiveRun) -> None:
        for watcher in self.everybody:
            if watcher.owner == name:
                watcher.news[live.id] = live
                watcher.changed.set()

    def wake_all(self) -> None:
        for watcher in self.everybody:
            watcher.changed.set()
