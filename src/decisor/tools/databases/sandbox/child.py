"""One worker process as its parent sees it: frames go out ahead, replies come in order, a clock runs for the first.

Requests are written before those ahead of them are answered, so the process never waits for its parent. Only the first
in line has begun; when it is stopped the others have not, and ask elsewhere (``Elsewhere``).
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import cast

from decisor.child_process import Start
from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import STOPPED
from decisor.tools.databases.sandbox.memory import memory_of, processes_killed_for_memory
from decisor.tools.databases.sandbox.wire import HEAD, Frame

WATCH_SECONDS = 0.02
PATIENCE_SECONDS = 7.0
AHEAD = 16
EXIT_SECONDS = 1.0
"""In which a process whose pipe broke has ended, so that the system says by what."""
CRASHED = "The engine crashed on this statement. Try another one."
OUTSIDE = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP, signal.SIGKILL] if hasattr(signal, "SIGKILL") else []))
"""Signals that somebody sends; a fault of the process itself is another (SIGSEGV, SIGABRT, SIGALRM)."""
SMALL_SHARE = 1 / 2
"""Of the memory that it may have: one that held more may have been killed for that, by a guard outside the kernel."""


class Elsewhere(Exception):
    """The process ended before it came to this request."""


class KilledOutside(Exception):
    """Somebody else ended the process while it worked on this request, and not for want of memory."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """How long it had worked on it."""


@dataclass(eq=False, slots=True)
class Request:
    """``began``: when it came to be the first in line, 0 before that. ``memory_mb``: None where it is not watched."""

    frame: bytes
    seconds: float
    memory_mb: int | None
    reply: asyncio.Future[Frame]
    began: float = 0.0
    memory: int = 0
    """Bytes that the process held at most, as far as was seen."""


class Child(asyncio.SubprocessProtocol):
    """Made by ``spawn``. ``gone`` is done when the process and its pipes are. ``patient``: it gets a moment before it
    is killed, to have its server end what it runs there. ``grace``: seconds after a query's own, in which the process
    ends it and goes on."""

    def __init__(self, patient: bool, grace: float) -> None:
        self.patient = patient
        self.grace = grace
        self.loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.sent: deque[Request] = deque()
        self.waiting: deque[Request] = deque()
        self.buffer = bytearray()
        self.tick: asyncio.TimerHandle | None = None
        self.ended = False
        self.soon = False
        self.killed_before = processes_killed_for_memory()

    @property
    def pid(self) -> int:
        pid: int = self.process.get_pid()
        return pid

    async def ask(self, frame: bytes, seconds: float, memory_mb: int | None) -> Frame:
        """The reply. ``seconds`` run from when the process turns to it.

        Raises:
            ToolError: stopped for time or memory, or the process ended on it.
            KilledOutside: the process was ended from outside.
            Elsewhere: the process ended before it came to it.
        """
        if self.ended:
            raise Elsewhere
        request = Request(frame, seconds, memory_mb, self.loop.create_future())
        self.waiting.append(request)
        if not self.soon:  # what comes meanwhile goes out with it, in one write
            self.soon = True
            self.loop.call_soon(self._send)
        try:
            return await request.reply
        except asyncio.CancelledError:
            if self.sent and self.sent[0] is request:
                self._stop(None)
            elif request in self.waiting:
                self.waiting.remove(request)
            raise

    async def end(self, grace: float = 0.0) -> None:
        """Close its input, give it ``grace`` seconds to end by itself, and wait until it is gone."""
        if grace and not self.ended and (pipe := self.process.get_pipe_transport(0)):
            pipe.close()
            await asyncio.wait([self.gone], timeout=grace)
        if not self.gone.done():
            self._stop(None)
        await asyncio.shield(self.gone)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.process = cast(asyncio.SubprocessTransport, transport)  # other event loops have classes of their own

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.ended:
            return  # what was on its way when it was stopped
        self.buffer += data
        while len(self.buffer) >= HEAD.size:
            ends = HEAD.size + HEAD.unpack_from(self.buffer)[0]
            if len(self.buffer) < ends:
                break
            body = bytes(self.buffer[HEAD.size : ends])
            del self.buffer[:ends]
            request, reply = self.sent.popleft(), json.loads(body)
            if not request.reply.done():
                request.reply.set_result(reply)
            if "last" in reply:  # too little memory is left for another
                self._stop(None)
                return
        self._send()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and not self.ended:
            self.loop.call_later(EXIT_SECONDS, self._stop, ToolError(CRASHED))

    def process_exited(self) -> None:
        error: ToolError | KilledOutside = ToolError(CRASHED)
        if not self.ended and self.sent and self._was_killed_outside(self.sent[0]):
            error = KilledOutside(self.loop.time() - self.sent[0].began)
        self._stop(error)
        self.process.close()

    def _was_killed_outside(self, request: Request) -> bool:
        """Whether a signal of somebody else ended it. Not where memory may have been the reason, or that cannot be
        told: the same query would take it again."""
        return (
            -(self.process.get_returncode() or 0) in OUTSIDE
            and self.killed_before is not None
            and self.killed_before == processes_killed_for_memory()
            and request.memory <= SMALL_SHARE * (request.memory_mb or 0) * 2**20
        )

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def _send(self) -> None:
        """Write what may go ahead, and start the clock of the first."""
        self.soon = False
        if self.ended:
            return
        pipe = cast(asyncio.WriteTransport, self.process.get_pipe_transport(0))
        ahead = min(AHEAD - len(self.sent), len(self.waiting))
        if ahead > 0:
            now = [self.waiting.popleft() for _ in range(ahead)]
            self.sent.extend(now)
            pipe.write(b"".join(request.frame for request in now))
        if self.sent and not self.sent[0].began:
            self.sent[0].began = self.loop.time()
            if self.tick is None:
                self.tick = self.loop.call_later(WATCH_SECONDS, self._watch)

    def _watch(self) -> None:
        """Stop the first in line where it has passed a limit, or nobody waits for it any more."""
        self.tick = None
        if self.ended or not self.sent:
            return
        first = self.sent[0]
        if first.memory_mb is not None:
            first.memory = max(first.memory, memory_of(self.pid))
        if first.reply.done():
            self._stop(None)
        elif self.loop.time() - first.began >= first.seconds + self.grace:
            self._stop(ToolError(STOPPED.format(first.seconds)))
        elif first.memory_mb is not None and first.memory > first.memory_mb * 2**20:
            self._stop(ToolError(f"Stopped: the query used more than {first.memory_mb} MB of memory."))
        else:
            left = first.began + first.seconds + self.grace - self.loop.time()
            self.tick = self.loop.call_later(min(WATCH_SECONDS, max(left, 0.001)), self._watch)

    def _stop(self, error: ToolError | KilledOutside | None) -> None:
        """Kill it; the first in line gets ``error``, the others go elsewhere."""
        if not self.ended:
            self.ended = True
            if self.tick is not None:
                self.tick.cancel()
            if self.process.get_returncode() is None and self.patient and self.sent:
                self.process.terminate()
                self.loop.call_later(PATIENCE_SECONDS, self._kill)
            else:
                self._kill()
        for request in (*self.sent, *self.waiting):
            if not request.reply.done():
                request.reply.set_exception(error if error is not None and request.began else Elsewhere())
        self.sent.clear()
        self.waiting.clear()

    def _kill(self) -> None:
        if self.process.get_returncode() is None:
            self.process.kill()
        self.process.close()


async def spawn(start: Start, patient: bool, grace: float) -> Child:
    loop = asyncio.get_running_loop()
    _, child = await loop.subprocess_exec(
        partial(Child, patient, grace), *start.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, env=start.environment, cwd=start.folder, start_new_session=True,
    )  # fmt: skip
    return child
