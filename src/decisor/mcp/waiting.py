"""Runs that wait for a person's answer between two requests of a client, where the protocol keeps no line open."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from decisor.errors import SetupError
from decisor.mcp.deciding import Deciding

SECONDS = 600.0
MOST = 100


@dataclass(eq=False)
class Waiting:
    """By a key that only the client that was asked has, and whose it is. Where it does not come back, the run is
    stopped."""

    runs: dict[str, Deciding] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def put(self, run: Deciding, owner: str) -> str:
        key = secrets.token_urlsafe(24)
        self.runs[key], self.owners[key] = run, owner
        asyncio.get_running_loop().call_later(SECONDS, self.drop, key)
        while len(self.runs) > MOST:
            self.drop(next(iter(self.runs)))
        return key

    def take(self, key: str, owner: str) -> Deciding:
        """Raises SetupError where it has been stopped, or is another's."""
        if self.owners.get(key) != owner:
            raise SetupError("The run that waited for this answer is over: call decide again.")
        del self.owners[key]
        return self.runs.pop(key)

    def drop(self, key: str) -> None:
        self.owners.pop(key, None)
        if (run := self.runs.pop(key, None)) is not None:
            task = asyncio.ensure_future(run.stop())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        for key in list(self.runs):
            self.drop(key)
        await asyncio.gather(*self.tasks)
