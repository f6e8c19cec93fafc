"""The settings of a server, its limit on runs at once, the watchers of a user's runs, and its log.

More runs wait in line; a line that is too long is refused. A watcher holds the runs that changed and that its stream
has not sent yet.

The log goes to standard error: lines for people, or a JSON object a line for programs. Objects have no values: of a
message its fixed words alone, of an error its kind and the places in the code, of a person the hash that their folder
of uploads has.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import logging
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal

from decisor.errors import SetupError
from decisor.history.store import History
from decisor.llms.providers import read_spec
from decisor.runtime.budget import Limits
from decisor.server.live import LiveRun
from decisor.server.users import User, Users
from decisor.session.sources import Sources
from decisor.system.extras import logger
from decisor.system.secrets import redact

AT_ONCE = 256
IN_LINE = 1_000


class Full(Exception):
    """An error: too many runs wait already."""


@dataclass(eq=False)
class Places:
    """A limit on the runs at once. Of those who wait, the one with the fewest runs before theirs goes first."""

    most: int = AT_ONCE
    """Number of runs at once."""
    line: int = IN_LINE
    """Number of runs that may wait."""
    taken: int = 0
    heap: list[tuple[int, int, asyncio.Future[None]]] = field(default_factory=list)
    """Runs that wait: how many of the same person were before it, its number, and what wakes it."""
    of_owner: Counter[str] = field(default_factory=Counter)
    """Number of runs of each person that wait or go on."""
    numbers: count[int] = field(default_factory=count)

    @property
    def waiting(self) -> int:
        """Number of runs that wait."""
        return sum(not turn.done() for _, _, turn in self.heap)

    @property
    def are_taken(self) -> bool:
        """Whether a new run has to wait."""
        return self.taken >= self.most

    @property
    def has_room(self) -> bool:
        """Whether a new run is taken, if only to wait."""
        return not self.are_taken or self.waiting < self.line

    def check(self) -> None:
        """Raise Full if no more runs may wait."""
        if not self.has_room:
            raise Full(f"{self.line:,} runs wait already: try again later.")

    @asynccontextmanager
    async def one(self, owner: str = "") -> AsyncIterator[None]:
        """Wait for a place, and keep it within the block."""
        self.of_owner[owner] += 1
        try:
            await self.take(self.of_owner[owner])
            try:
                yield
            finally:
                self.leave()
        finally:
            self.of_owner[owner] -= 1

    async def take(self, before: int) -> None:
        if not self.are_taken:
            self.taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self.heap, (before, next(self.numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            # The place that it had just been given goes to the next.
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place to the next that waits."""
        while self.heap:
            _, _, turn = heapq.heappop(self.heap)
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1


NO_LLM = "none"
NOTHING, NO_LIMITS = Sources(), Limits()


@dataclass(frozen=True)
class ServerSettings:
    """The settings that a server was started with."""

    sources: Sources = NOTHING
    llms: Mapping[str, str] = field(default_factory=dict)
    """MODEL[@URL] of each LLM name. The first is the usual one; without any it is that of the environment."""
    limits: Limits = NO_LIMITS
    """Upper bounds that no run exceeds."""
    users: Users = field(default_factory=Users)
    evaluations: Mapping[str, str] = field(default_factory=dict)
    """Place of the run store of each name."""
    host: str = "127.0.0.1"
    port: int = 8765
    allow_hosts: tuple[str, ...] = ()
    at_once: int = AT_ONCE
    """Number of runs at a time; more wait in line. 0 leaves them to other processes."""
    history: History = field(default_factory=History)
    takes_files: bool = True
    """Whether people may bring files of their own; they lie beside the history."""
    log: LogForm = "text"
    """Form of the log on standard error."""

    def llms_for(self, user: User) -> Mapping[str, str]:
        """Return the LLMs that a user may use."""
        return {name: spec for name, spec in self.llms.items() if user.llms is None or name in user.llms}

    def llm_of(self, name: str, user: User) -> str | None:
        """Return the LLM spec for a client's name; None for the LLM of the environment.

        Raises:
            SetupError: there is no LLM of the name, or the user may not use it.
        """
        llms = self.llms_for(user)
        if name == NO_LLM:
            return NO_LLM
        if not name:
            return next(iter(llms.values()), None if user.llms is None else NO_LLM)
        if name not in llms:
            raise SetupError(f"There is no LLM {name!r:.200}; there is {', '.join([*llms, NO_LLM])}.")
        return llms[name]

    def name_of(self, spec: str) -> str:
        """Return the name of the LLM with this spec; any other text as it is."""
        return next((name for name, own in self.llms.items() if own == spec), spec)

    def limits_of(self, wanted: Limits) -> Limits:
        """Return the smaller of the wanted limits and the server's.

        >>> ServerSettings(limits=Limits(calls=10, seconds=60.0)).limits_of(Limits(calls=20, tokens=900))
        Limits(calls=10, tokens=900, dollars=None, seconds=60.0, actions=None)
        """
        return lower_limits(self.limits, wanted)


def lower_limits(one: Limits, other: Limits) -> Limits:
    """Return the smaller of two limits, field by field. None is no limit."""
    limits: dict[str, Any] = {}
    for limit in fields(Limits):
        values = [getattr(one, limit.name), getattr(other, limit.name)]
        limits[limit.name] = min((value for value in values if value is not None), default=None)
    return Limits(**limits)


def names_of_llms(specs: list[str]) -> dict[str, str]:
    """Name each LLM by its model, without its address. A number sets apart two of one name.

    >>> names_of_llms(["qwen@http://localhost:8000/v1 timeout=60", "qwen@http://localhost:9000/v1"])
    {'qwen': 'qwen@http://localhost:8000/v1 timeout=60', 'qwen (2)': 'qwen@http://localhost:9000/v1'}

    Raises:
        SetupError: something that is set for one cannot be.
    """
    names: dict[str, str] = {}
    for spec in specs:
        name = redact(read_spec(spec)[0].partition("@")[0]) or "LLM"
        number = 1 + sum(other == name or other.startswith(f"{name} (") for other in names)
        names[name if number == 1 else f"{name} ({number})"] = spec
    return names


@dataclass(eq=False)
class Watcher:
    """A watcher of all runs of one user."""

    owner: str
    news: dict[str, LiveRun] = field(default_factory=dict)
    """Runs that changed since they were last sent, by id."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> list[LiveRun]:
        """Return the changed runs, each change once."""
        news, self.news = self.news, {}
        self.changed.clear()
        return list(news.values())


@dataclass(eq=False)
class Watchers:
    """The watchers of all users; one user may have several."""

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


LogForm = Literal["text", "json"]


class JsonFormatter(logging.Formatter):
    """A formatter of records as JSON. Facts of a record are its ``extra={"facts": ...}``."""

    def format(self, record: logging.LogRecord) -> str:
        own = vars(record)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            # Redaction has put the values into the message; the words without them stand beside it.
            "event": own.get("words", record.msg),
            "process": record.process,
            **own.get("facts", {}),
        }
        if record.exc_info and (error := record.exc_info[1]) is not None:
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["at"] = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        return json.dumps(line)


def show_log(form: LogForm = "text") -> None:
    """Write what the server logs to standard error: as text problems alone, as JSON the end of each run too."""
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonFormatter())
        logger.setLevel(logging.INFO)
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    logger.addHandler(handler)
