"""The parent's side of a worker: one child process, asked by many, killed when a query passes a limit."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from decisor.child_process import Start, absolute, python
from decisor.errors import SetupError, ToolError
from decisor.log import logger
from decisor.secrets import redact, redact_known, secrets_in
from decisor.tools.databases.sandbox.audit import Asker, Audit
from decisor.tools.databases.sandbox.child import CRASHED, Child, Elsewhere, KilledOutside, spawn
from decisor.tools.databases.sandbox.engine import Caps, Engine
from decisor.tools.databases.sandbox.engines import engine
from decisor.tools.databases.sandbox.platforms import here, ready
from decisor.tools.databases.sandbox.urls import SYSTEM, placed
from decisor.tools.databases.sandbox.wire import Frame, caps_to, pack, request, table_of
from decisor.types import Table, Value

START_SECONDS = 60.0
SERVER_SECONDS = 20.0
AGAIN_SECONDS = 1.0
AGAIN_SHARE = 1 / 6
"""Of the seconds that a warehouse may take to open, for opening again: its driver alone takes some to load."""
ENDING_SECONDS = 3.0
"""In which a warehouse ends a query that took too long, so that its connection is not opened anew."""
REACH_SECONDS = 4.0
"""In which a server answers to whom it was too slow."""
KILLED_TWICE = "Somebody outside ended the process of this query, twice. Look at what ends processes on this machine."
VARIABLES = ("HOME", "JAVA_HOME", "VIRTUAL_ENV")
TLS_FILES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL", "PGSSLCRLDIR")


@dataclass(eq=False)
class Worker:
    """An engine in a process of its own. Tasks may share it: requests wait in line. After a kill the next one respawns.

    ``opened``: the database could be opened once; from then on its failures are for a model, not for the person.
    ``audit``: where each query is noted, as one of ``source``. ``hidden``, ``closed``: relations (lower case) that may
    not be seen, and views that no query may read.
    """

    engine: str
    url: str
    caps: Caps = field(default_factory=Caps)
    child: Child | None = None
    opened: bool = False
    hidden: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    leaving: list[Child] = field(default_factory=list)
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    audit: Audit | None = None
    source: str = ""

    @property
    def description(self) -> Engine:
        return engine(self.engine)

    def __post_init__(self) -> None:
        self.url = placed(self.url)
        self.passwords = secrets_in(self.url)

    async def start(self) -> None:
        """Open the database now. Raises SetupError, in one line, where it cannot be opened."""
        await self._child()

    async def run(
        self,
        statement: str,
        parameters: Mapping[str, Value] | None = None,
        caps: Caps | None = None,
        trusted: bool = False,
        by: Asker = "decisor",
    ) -> Table:
        """The rows. ``trusted`` statements come from our own code: they skip the check, not the read-only engine.
        ``by``: who asks, for the audit.

        Raises:
            ToolError: refused, the engine's error, or killed for time or memory.
        """
        try:
            reply = await self._ask("run", statement, parameters or {}, caps or self.caps, trusted)
        except ToolError as error:
            self._note(statement, by, None, str(error))
            raise
        table = table_of(reply["table"])
        self._note(statement, by, len(table.rows))
        return table

    def _note(self, statement: str, by: Asker, rows: int | None, complaint: str = "") -> None:
        if self.audit is not None:
            self.audit.write(self.source, statement, by, rows, complaint)

    async def reveal(self, text: str) -> Table:
        """Of each token in a text the value that it stands for. Raises ToolError where the reader may not see them."""
        return table_of((await self._ask("reveal", text, {}, self.caps, False))["table"])

    async def plan(self, statement: str, caps: Caps) -> Table | None:
        """What the engine says of how it would run a checked statement, None where that reads no rows.

        Raises:
            ToolError: as ``run``.
        """
        reply = await self._ask("plan", statement, {}, caps, False)
        return table_of(reply["table"]) if "table" in reply else None

    async def check(self, statement: str) -> None:
        """Raises ToolError where the statement would be refused. Runs nothing."""
        await self._ask("check", statement, {}, self.caps, False)

    async def close(self) -> None:
        async with self.starting:
            if self.child is not None:
                await self.child.end(grace=1.0)
            self.child = None
            for child in self.leaving:
                await child.end()
            self.leaving.clear()

    def failure(self, complaint: str) -> ToolError | SetupError:
        """Why it did not open, for whom it concerns: a model (or who waits for the server), or the person."""
        complaint = redact(complaint, self.passwords)
        return ToolError(complaint, outage=self.description.server) if self.opened else SetupError(complaint)

    async def _ask(self, op: str, statement: str, parameters: Mapping[str, Value], caps: Caps, trusted: bool) -> Frame:
        frame = request(op, statement, dict(parameters), caps, trusted)
        left, is_second = caps.seconds, False
        while True:
            child, seconds = self.child, left
            if child is None or child.ended:
                again, began = self.opened and self.description.server, time.monotonic()
                child = await self._child(caps.seconds)
                if again:
                    seconds = max(0.0, min(seconds, seconds + AGAIN_SECONDS - (time.monotonic() - began)))
            try:
                reply = await child.ask(frame, seconds, caps.memory_mb)
                break
            except Elsewhere:
                continue
            except KilledOutside as error:  # every statement that comes here only reads: it may run again
                if is_second:
                    raise ToolError(KILLED_TWICE) from error
                left, is_second = max(AGAIN_SECONDS, left - error.seconds), True
                logger.warning("a worker of %s was killed from outside; its query is tried once more", self.engine)
            except ToolError:
                if self.description.server and child.ended:
                    await self._child(
                        min(caps.seconds, REACH_SECONDS)
                    )  # it is an outage where the server does not answer at all
                raise
        match reply.get("kind"):
            case None:
                return reply
            case "setup":
                raise SetupError(redact(reply["error"], self.passwords))
            case kind:
                raise ToolError(
                    redact_known(reply["error"], self.passwords), refused=kind == "refused", outage=kind == "outage"
                )

    async def _child(self, seconds: float = 0.0) -> Child:
        """The child that runs, else a new one. ``seconds`` holds for a server that answered before: then it is for a
        model (ToolError); before that, for the person (SetupError)."""
        async with self.starting:
            if self.child is not None and not self.child.ended:
                return self.child
            if self.child is not None:  # its server may still be ending what it ran
                self.leaving = [one for one in (*self.leaving, self.child) if not one.gone.done()]
            limit = START_SECONDS
            if self.description.server:
                warehouse = self.description.warehouse
                opening = warehouse.opening if warehouse else SERVER_SECONDS
                again = max(seconds + AGAIN_SECONDS, warehouse.opening * AGAIN_SHARE if warehouse else 0.0)
                limit = again if self.opened else opening
            ready(here())
            try:
                try:
                    reply = await self._hello(limit)
                except KilledOutside:
                    reply = await self._hello(limit)
            except (ToolError, Elsewhere, KilledOutside) as error:
                why = "its worker ended" if CRASHED in str(error) else f"it did not within {limit:g} s"
                raise self.failure(f"The {self.engine} database did not open: {why}.") from error
            finally:
                if not self.opened and self.child and self.child.ended:
                    await self.child.end()
            assert self.child is not None
            if "error" in reply:
                await self.child.end()
                raise self.failure(reply["error"])
            self.opened = True
            self.hidden, self.closed = frozenset(reply["hidden"]), frozenset(reply["closed"])
            return self.child

    async def _hello(self, seconds: float) -> Frame:
        """Start a child, which is to open the database; return what it says to that."""
        warehouse = self.description.warehouse
        self.child = await spawn(start(), self.description.server, ENDING_SECONDS if warehouse else 0.0)
        hello = pack({"engine": self.engine, "url": self.url, "caps": caps_to(self.caps)})
        return await self.child.ask(hello, seconds, None)


def start() -> Start:
    """How a worker starts. Of the environment only what a driver needs: keys and tokens stay out of a statement's
    reach."""
    tls = [name for name in os.environ if name.startswith("PGSSL")]
    command = python("decisor.tools.databases.sandbox.worker", (*VARIABLES, *tls))
    for name in TLS_FILES:
        if command.environment.get(name, SYSTEM) != SYSTEM:
            command.environment[name] = absolute(command.environment[name])
    return command
