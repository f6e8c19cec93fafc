"""What waits for a person's answer between two requests of a client, where the protocol keeps no line open."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from decisor.errors import SetupError

SECONDS = 600.0
MOST = 100


class Stops(Protocol):
    async def stop(self) -> None: ...


Work = TypeVar("Work", bound=Stops)


@dataclass(eq=False)
class Waiting(Generic[Work]):
    """By a key that only the client that was asked has, and whose it is. Where it does not come back, it is stopped."""

    works: dict[str, Work] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def put(self, work: Work, owner: str) -> str:
        key = secrets.token_urlsafe(24)
        self.works[key], self.owners[key] = work, owner
        asyncio.get_running_loop().call_later(SECONDS, self.drop, key)
        while len(self.works) > MOST:
            self.drop(next(iter(self.works)))
        return key

    def take(self, key: str, owner: str) -> Work:
        """Raises SetupError where it has been stopped, or is another's."""
        if self.owners.get(key) != owner:
            raise SetupError("What waited for this answer is over: call the tool again.")
        del self.owners[key]
        return self.works.pop(key)

    def drop(self, key: str) -> None:
        self.owners.pop(key, None)
        if (work := self.works.pop(key, None)) is not None:
            task = asyncio.ensure_future(work.stop())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        for key in list(self.works):
            self.drop(key)
        await asyncio.gather(*self.tasks)
