"""The parent's side of a worker: one child process, asked one thing at a time, killed when it passes a limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decisor.errors import SetupError, ToolError
from decisor.tools.fence.engine import Caps
from decisor.tools.fence.wire import HEAD, caps_to, pack, table_of
from decisor.types import Table, Value

START_SECONDS = 60.0
SERVER_SECONDS = 20.0
AGAIN_SECONDS = 1.0
SERVERS = ("postgres", "mysql", "bolt")
WATCH_SECONDS = 0.02
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")


@dataclass(eq=False)
class Worker:
    """A fenced engine. Tasks may share it: requests wait for each other. After a kill the next one respawns."""

    engine: str
    url: str
    caps: Caps = field(default_factory=Caps)
    child: Process | None = None
    opened: bool = False
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self) -> None:
        """Open the database now. Raises SetupError, in one line, where it cannot be opened."""
        async with self.gate:
            await self._child()

    async def run(
        self,
        statement: str,
        parameters: Mapping[str, Value] | None = None,
        caps: Caps | None = None,
        trusted: bool = False,
    ) -> Table:
        """The rows. ``trusted`` statements come from our own code: they skip the check, not the read-only engine.

        Raises:
            ToolError: refused, the engine's error, or killed for time or memory.
        """
        reply = await self._ask("run", statement, parameters or {}, caps or self.caps, trusted)
        return table_of(reply["table"])

    async def check(self, statement: str) -> None:
        """Raises ToolError where the statement would be refused. Runs nothing."""
        await self._ask("check", statement, {}, self.caps, False)

    async def close(self) -> None:
        async with self.gate:
            if self.child is not None and self.child.stdin is not None:
                self.child.stdin.close()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await self.child.wait()
            await self._kill()

    async def _ask(
        self, op: str, statement: str, parameters: Mapping[str, Value], caps: Caps, trusted: bool
    ) -> dict[str, Any]:
        frame = {
            "op": op,
            "statement": statement,
            "parameters": dict(parameters),
            "caps": caps_to(caps),
            "trusted": trusted,
        }
        async with self.gate:
            began = time.monotonic()
            child = await self._child(caps.seconds)
            left = caps.seconds + AGAIN_SECONDS - (time.monotonic() - began)
            reply = await self._exchange(child, frame, caps, min(caps.seconds, left))
        match reply.get("kind"):
            case None:
                return reply
            case "setup":
                raise SetupError(reply["error"])
            case kind:
                raise ToolError(reply["error"], refused=kind == "refused")

    async def _child(self, seconds: float = 0.0) -> Process:
        """The child that runs, else a new one. ``seconds`` holds for a server that answered before: then a model is
        told (ToolError); before that, the person (SetupError)."""
        if self.child is not None and self.child.returncode is None:
            return self.child
        await self._kill()
        limit = START_SECONDS
        if self.engine in SERVERS:
            limit = seconds + AGAIN_SECONDS if self.opened else SERVER_SECONDS
        told = ToolError if self.opened else SetupError
        child = self.child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-X", "utf8", "-W", "ignore", "-m", "decisor.tools.fence.worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=_environment(),
        )
        hello = {"engine": self.engine, "url": self.url, "caps": caps_to(self.caps)}
        try:
            async with asyncio.timeout(limit):  # wait_for may lose a cancellation on Python 3.11
                reply = await _send(child, hello)
        except BaseException as error:
            await self._kill()
            if isinstance(error, TimeoutError | EOFError | ConnectionError):
                raise told(f"The {self.engine} database did not open within {limit:g} s.") from error
            raise
        if "error" in reply:
            await self._kill()
            raise told(reply["error"])
        self.opened = True
        return child

    async def _exchange(self, child: Process, frame: dict[str, Any], caps: Caps, seconds: float) -> dict[str, Any]:
        """A reply, or a kill: for time, for memory, or because the asker was cancelled in between."""
        talk = asyncio.ensure_future(_send(child, frame))
        watch = asyncio.ensure_future(_grown(child.pid, caps.memory_mb))
        done: set[asyncio.Future[Any]] = set()
        try:
            done, _ = await asyncio.wait({talk, watch}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
            if talk in done:
                return talk.result()
        except (EOFError, ConnectionError) as error:
            raise ToolError("The engine crashed on this statement. Try another one.") from error
        finally:
            watch.cancel()
            if talk not in done or talk.exception() is not None:
                talk.cancel()
                await asyncio.gather(talk, watch, return_exceptions=True)
                await self._kill()
        if watch in done:
            raise ToolError(f"Stopped: the query used more than {caps.memory_mb} MB of memory.")
        raise ToolError(f"Stopped: the query ran for more than {caps.seconds:g} s.")

    async def _kill(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        if child.stdin is not None:
            child.stdin.close()
        if child.stdout is not None:  # until the pipe is drained the transport stays open, and complains
            while await child.stdout.read(2**20):
                pass
        await child.wait()


async def _send(child: Process, frame: dict[str, Any]) -> dict[str, Any]:
    """Raises EOFError (also as IncompleteReadError) where the child is gone."""
    import json

    if child.stdin is None or child.stdout is None:
        raise EOFError
    child.stdin.write(pack(frame))
    await child.stdin.drain()
    head = await child.stdout.readexactly(HEAD.size)
    reply: dict[str, Any] = json.loads(await child.stdout.readexactly(HEAD.unpack(head)[0]))
    return reply


async def _grown(pid: int, memory_mb: int) -> None:
    """Returns once the process holds more than that much memory; never where the system does not tell."""
    statm = Path(f"/proc/{pid}/statm")
    limit = memory_mb * 2**20
    await asyncio.sleep(WATCH_SECONDS)
    if not statm.exists():
        await asyncio.Event().wait()
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        try:
            if int(statm.read_text().split()[1]) * page > limit:
                return
        except (OSError, IndexError, ValueError):  # it is gone: the talk ends by itself
            await asyncio.Event().wait()
        await asyncio.sleep(WATCH_SECONDS)


def _environment() -> dict[str, str]:
    """Only what a driver needs: keys and tokens of the parent stay out of reach of a statement."""
    kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith("PGSSL")}
    package = str(Path(__file__).resolve().parents[3])
    return {**kept, "PYTHONPATH": os.pathsep.join([package, *filter(None, sys.path)])}
