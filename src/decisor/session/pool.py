"""Sources that are asked by many, in any combination: each is opened once, when it is first needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from decisor.errors import SetupError
from decisor.session.access import ANYBODY, Reader, restrict_sources_to_reader
from decisor.session.data import Data, open_data
from decisor.session.run_setup import LLMs
from decisor.session.sources import Sources, tables_of_source
from decisor.session.user_tools import NO_TOOLS

TOOLS = "tools"
"""Name of the member that holds a person's own tools."""


@dataclass(eq=False)
class Pool:
    """Sources for many questions in any combination, each opened when it is first needed.

    Tables that a program handed over stay open as long as ``sources``.
    """

    sources: Sources
    members: dict[str, Sources]
    """Sources by the name that a model calls each by."""
    owners: dict[str, str] = field(default_factory=dict)
    """Owner of each member that was added later; the limits of ``sources`` are not for these."""
    llms: LLMs = field(default_factory=LLMs)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    open: dict[tuple[str, Reader], tuple[Data, AsyncExitStack]] = field(default_factory=dict)
    """Opened members with what closes each, by name and reader."""
    turns: dict[tuple[str, Reader], asyncio.Lock] = field(default_factory=dict)
    used: dict[tuple[str, Reader], float] = field(default_factory=dict)
    """When each was last asked for, on the monotonic clock."""
    seen: dict[Reader, Mapping[str, Sources]] = field(default_factory=dict)

    async def member(self, name: str, reader: Reader = ANYBODY) -> Data:
        """Return a member, opened as a reader may see it.

        Raises SetupError if the name is unknown or it cannot be opened.
        """
        if name not in self.members:
            raise SetupError(f"There is no connection {name!r}; there is {', '.join(self.members) or 'none'}.")
        seen = self.members_for(reader)[name]
        # A reader from whom nothing is kept back shares the data that are open for anybody.
        place = (name, ANYBODY if seen == self.members[name] else reader)
        self.used[place] = time.monotonic()
        # One caller opens and the others wait; if it fails, the next one tries again.
        async with self.turns.setdefault(place, asyncio.Lock()):
            if place not in self.open:
                closing = await self.stack.enter_async_context(AsyncExitStack())
                self.open[place] = await closing.enter_async_context(open_data(seen)), closing
        return self.open[place][0]

    def add(self, name: str, sources: Sources, owner: str) -> None:
        """Add a member that belongs to one person."""
        self.members[name], self.owners[name] = sources, owner
        self.seen.clear()

    async def remove(self, name: str) -> None:
        """Remove a member that was added, and close it."""
        del self.members[name], self.owners[name]
        self.seen.clear()
        await self.close_member((name, ANYBODY))

    async def close_member(self, place: tuple[str, Reader]) -> None:
        # Before its turn: who asks for it meanwhile opens it anew.
        self.used.pop(place, None)
        async with self.turns.setdefault(place, asyncio.Lock()):
            _, closing = self.open.pop(place, (None, AsyncExitStack()))
            await closing.aclose()

    async def close_idle(self, seconds: float, busy: Collection[str]) -> None:
        """Close what is open for one person alone and was not asked for in so long. busy: persons who have runs."""
        now = time.monotonic()
        for place in [place for place, at in self.used.items() if place in self.open and now - at >= seconds]:
            if place[1] != ANYBODY and place[1].name not in busy:
                await self.close_member(place)

    def members_for(self, reader: Reader) -> Mapping[str, Sources]:
        if reader not in self.seen:
            seen = restrict_sources_to_reader(reader, self.sources)
            own = {name: self.members[name] for name in self.owners}
            self.seen[reader] = self.members if seen is self.sources else split_into_members(seen) | own
        return self.seen[reader]

    async def data(self, names: Sequence[str], reader: Reader = ANYBODY) -> Data:
        """Return several members as one, databases first.

        Raises:
            SetupError: there is none of a name, one cannot be opened, or two bring a decision model.
        """
        parts = [await self.member(name, reader) for name in dict.fromkeys(names)]
        databases = [tool for part in parts for tool in part.databases]
        others = [tool for part in parts for tool in part.tools if tool not in part.databases]
        if sum(tool.name == "whatif" for tool in others) > 1:
            raise SetupError("Two of these connections have a decision model: name one of them.")
        chosen = self.sources_of(names, reader)
        meanings = {name: one for part in parts for name, one in part.definitions.items()}
        # Who asks a server is not told where its data lie.
        return Data([*databases, *others], databases, self.llms, chosen, meanings, tells_places=False)

    def sources_of(self, names: Sequence[str], reader: Reader = ANYBODY) -> Sources:
        """Return the sources of several members together, as a reader may see them."""
        return combine_sources([self.members_for(reader)[name] for name in dict.fromkeys(names)])

    async def close(self) -> None:
        await self.stack.aclose()
        await self.llms.close()


@asynccontextmanager
async def open_pool(sources: Sources) -> AsyncIterator[Pool]:
    """Open a pool until the block ends. Its members are opened when first needed."""
    pool = Pool(sources, split_into_members(sources))
    try:
        yield pool
    finally:
        await pool.close()


def split_into_members(sources: Sources) -> dict[str, Sources]:
    """Split sources into members, each one place with its readable tables.

    A decision model goes with the first database.

    >>> from decisor.session.sources import build_sources
    >>> members = split_into_members(build_sources(db=["sites.db", "rents.db"], docs="reports/", tables="rents.price"))
    >>> [(name, one.tables) for name, one in members.items()]
    [('sites', ()), ('rents', ('price',)), ('passages', ())]
    """
    members: dict[str, Sources] = {}
    for place in sources.places:
        is_first, is_database = place in sources.databases[:1], place in sources.databases
        # A file of definitions without a name is of the only database.
        own_names = (place.name, "") if sources.databases == (place,) else (place.name,)
        members[place.name] = replace(
            sources,
            places=(place,),
            tools=NO_TOOLS,
            model=sources.model if is_first else None,
            tables=tuple(tables_of_source(sources.tables, place, sources)) if is_database else (),
            deny_tables=tuple(tables_of_source(sources.deny_tables, place, sources)) if is_database else (),
            definitions=tuple((name, file) for name, file in sources.definitions if name in own_names),
        )
    if sources.tools.specs:
        members[TOOLS] = Sources(tools=sources.tools)
    return members


def combine_sources(parts: Sequence[Sources]) -> Sources:
    """Combine the sources of several members."""
    tools = next((one.tools for one in parts if one.tools.specs), NO_TOOLS)
    model = next((one.model for one in parts if one.model), None)
    return Sources(
        tuple(place for one in parts for place in one.places),
        tools,
        model,
        # A member names its tables without their source; together they need its name again.
        tuple(f"{one.places[0].name}.{table}" for one in parts for table in one.tables),
        tuple(f"{one.places[0].name}.{table}" for one in parts for table in one.deny_tables),
        next((one.frames for one in parts if one.frames), None),
        tuple((name or one.places[0].name, path) for one in parts for name, path in one.definitions),
        next((one.who for one in parts if one.who), ""),
    )
