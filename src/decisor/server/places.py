"""How many runs are under way at once: more wait in line, and a line that is too long is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

AT_ONCE = 256
IN_LINE = 1_000


class Full(Exception):
    """Too many wait already."""


@dataclass(eq=False)
class Places:
    """Around a run. ``most``: at once. ``line``: so many more may wait."""

    most: int = AT_ONCE
    line: int = IN_LINE
    waiting: int = 0
    inside: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.inside = asyncio.Semaphore(self.most)

    @property
    def are_taken(self) -> bool:
        """Whether who comes has to wait."""
        return self.inside.locked()

    def check(self) -> None:
        """Raises Full where no more may wait."""
        if self.are_taken and self.waiting >= self.line:
            raise Full(f"{self.line:,} runs wait already: try again later.")

    async def __aenter__(self) -> None:
        self.waiting += 1
        try:
            await self.inside.acquire()
        finally:
            self.waiting -= 1

    async def __aexit__(self, *error: object) -> None:
        self.inside.release()
