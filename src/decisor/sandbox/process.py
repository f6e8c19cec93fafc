"""The parent's side of a worker: one child process, asked by many, killed when a query passes a limit.

Requests are written before those ahead of them are answered, so the process never waits for its parent; replies come
in order. Only the first in line has begun, and a clock runs for it. When it is stopped the others have not begun, and
go to another process (``RequestNotStarted``). ``BlockingWorker`` serves synchronous code from an event loop in a
thread of its own. ``Audit`` writes a line for each query of a database: who, when, the statement, how many rows.
``check_all_statements`` returns a verdict on statements without running them on the source.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar, cast

from decisor.errors import SetupError, ToolError
from decisor.sandbox.engine import STOPPED, Caps, Engine
from decisor.sandbox.engines import SYSTEM, load_engine, make_paths_absolute
from decisor.sandbox.limits import check_platform, limits_of_this_system, memory_of, processes_killed_for_memory
from decisor.sandbox.wire import HEAD, Frame, caps_to, pack_frame, pack_request, table_from_frame
from decisor.system.extras import logger
from decisor.system.fork_server import CAN_FORK, start_forked
from decisor.system.processes import ProcessStart, build_python_start, make_path_absolute
from decisor.system.secrets import find_url_secrets, redact, redact_known
from decisor.types import Table, Value

WATCH_SECONDS = 0.02
PATIENCE_SECONDS = 7.0
AHEAD = 16
EXIT_SECONDS = 1.0
"""Time in which a process whose pipe broke has ended, so that its exit status is known."""
CRASHED = "The engine crashed on this statement. Try another one."
OUTSIDE = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP, signal.SIGKILL] if hasattr(signal, "SIGKILL") else []))
"""Signals that somebody sends; a fault of the process itself is another (SIGSEGV, SIGABRT, SIGALRM)."""
SMALL_SHARE = 1 / 2
"""Share of its memory limit; a process that held more may have been killed for that, by a guard outside the kernel."""


class RequestNotStarted(Exception):
    """A request that its process did not come to before it ended."""


class KilledOutside(Exception):
    """A request whose process was killed by somebody else while it worked on it, not for want of memory."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """Seconds that it had worked on it."""


@dataclass(eq=False, slots=True)
class ChildRequest:
    """A request to a worker process."""

    frame: bytes
    seconds: float
    memory_mb: int | None
    """Limit of the process; None if its memory is not watched."""
    reply: asyncio.Future[Frame]
    began: float = 0.0
    """Time at which it became the first in line; 0 before that."""
    memory: int = 0
    """Bytes that the process held at most, as far as was seen."""


class Child(asyncio.SubprocessProtocol):
    """A worker process as its parent sees it; ``spawn`` starts one."""

    def __init__(self, patient: bool, grace: float) -> None:
        self.patient = patient
        self.grace = grace
        self.loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.sent: deque[ChildRequest] = deque()
        self.waiting: deque[ChildRequest] = deque()
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
        """Send a request and return the reply. ``seconds`` run from the moment when the process turns to it.

        Raises:
            ToolError: stopped for time or memory, or the process ended on it.
            KilledOutside: the process was ended from outside.
            RequestNotStarted: the process ended before it came to it.
        """
        if self.ended:
            raise RequestNotStarted
        request = ChildRequest(frame, seconds, memory_mb, self.loop.create_future())
        self.waiting.append(request)
        if not self.soon:  # what comes meanwhile goes out with it, in one write
            self.soon = True
            self.loop.call_soon(self._send)
        try:
            return await request.reply
        except asyncio.CancelledError:
            # Only the first in line is being worked on; one that waits costs nothing and is taken out.
            if self.sent and self.sent[0] is request:
                self._stop(None)
            elif request in self.waiting:
                self.waiting.remove(request)
            raise

    async def end(self, grace: float = 0.0) -> None:
        """Close the input, give the process ``grace`` seconds to end, and wait until it is gone."""
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
        # The exit status comes a moment after the pipe broke, and says whether a signal was the reason.
        if fd == 1 and not self.ended:
            self.loop.call_later(EXIT_SECONDS, self._stop, ToolError(CRASHED))

    def process_exited(self) -> None:
        error: ToolError | KilledOutside = ToolError(CRASHED)
        if not self.ended and self.sent and self._was_killed_outside(self.sent[0]):
            error = KilledOutside(self.loop.time() - self.sent[0].began)
        self._stop(error)
        self.process.close()

    def _was_killed_outside(self, request: ChildRequest) -> bool:
        """Return whether somebody else's signal ended the process.

        False if memory may have been the reason, or if that cannot be told: the same query would take it again.
        """
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
        """Write the requests that may go ahead, and start the clock of the first."""
        self.soon = False
        if self.ended:
            return
        pipe = cast(asyncio.WriteTransport, self.process.get_pipe_transport(0))
        ahead = min(AHEAD - len(self.sent), len(self.waiting))
        if ahead > 0:
            now = [self.waiting.popleft() for _ in range(ahead)]
            self.sent.extend(now)
            pipe.write(b"".join(request.frame for request in now))
        # The clock starts when a request is first in line, so nobody pays for the query before theirs.
        if self.sent and not self.sent[0].began:
            self.sent[0].began = self.loop.time()
            if self.tick is None:
                self.tick = self.loop.call_later(WATCH_SECONDS, self._watch)

    def _watch(self) -> None:
        """Stop the first request if it has passed a limit, or if nobody waits for it any more."""
        self.tick = None
        if self.ended or not self.sent:
            return
        first = self.sent[0]
        if first.memory_mb is not None:
            first.memory = max(first.memory, memory_of(self.pid))
        # Its caller has gone: what it computes is for nobody.
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
        """Kill the process. The first request gets ``error``, the others are sent to another process."""
        if not self.ended:
            self.ended = True
            if self.tick is not None:
                self.tick.cancel()
            # SIGTERM first: the worker of a server cancels its query there, then ends.
            if self.process.get_returncode() is None and self.patient and self.sent:
                self.process.terminate()
                self.loop.call_later(PATIENCE_SECONDS, self._kill)
            else:
                self._kill()
        for request in (*self.sent, *self.waiting):
            if not request.reply.done():
                request.reply.set_exception(error if error is not None and request.began else RequestNotStarted())
        self.sent.clear()
        self.waiting.clear()

    def _kill(self) -> None:
        if self.process.get_returncode() is None:
            self.process.kill()
        self.process.close()


async def spawn(engine: str, patient: bool, grace: float) -> Child:
    """Start a worker: a fork of a process that has loaded what this engine needs, where there are forks."""
    loop, start, build = asyncio.get_running_loop(), worker_start(), partial(Child, patient, grace)
    if CAN_FORK:
        return await start_forked(build, start, WORKER, LOADED.get(engine, ()))
    _, child = await loop.subprocess_exec(
        build,
        *start.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=start.environment,
        cwd=start.folder,
        start_new_session=True,
    )
    return child


Asker = Literal["model", "person", "decisor"]
ASKER: ContextVar[Asker] = ContextVar("asker", default="person")
BY_HAND: ContextVar[str] = ContextVar("by_hand", default="")


@contextmanager
def set_asker(asker: Asker) -> Iterator[None]:
    """Set who gives tools their input until the block ends.

    Without it, that is a person: the one who runs the program.
    """
    token = ASKER.set(asker)
    try:
        yield
    finally:
        ASKER.reset(token)


@contextmanager
def mark_as_handwritten(text: str) -> Iterator[None]:
    """Mark one text as a person's until the block ends, in place of the text of an LLM."""
    token = BY_HAND.set(text.strip())
    try:
        yield
    finally:
        BY_HAND.reset(token)


def asker_of(text: str) -> Asker:
    """Return who gave a tool this text."""
    return "person" if BY_HAND.get() and text.strip() == BY_HAND.get() else ASKER.get()


@dataclass(frozen=True, slots=True)
class Audit:
    """A file of JSON lines, one for each query of a database, that only its owner may read."""

    path: Path
    reader: str
    """Person that the queries are for."""

    def write(self, source: str, statement: str, by: Asker, rows: int | None, complaint: str = "") -> None:
        """Write a line for one query. by: who asked; ``decisor`` for queries of its own, such as for the schema or for
        checks of a query's meaning. rows: None if the query failed.

        Raises:
            SetupError: the file cannot be written: then nothing more is read.
        """
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "reader": self.reader,
            "source": source,
            "by": by,
            "statement": statement,
            "rows": rows,
            "error": complaint or None,
        }
        try:
            # One write of a whole line with O_APPEND: lines of several processes do not mix.
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            finally:
                os.close(file)
        except OSError as error:
            raise SetupError(f"The audit cannot be written to {self.path}: {error.strerror}.") from error


WORKER = "decisor.sandbox.worker"
LOADED = {
    "sqlite": ("decisor.sandbox.engines.sqlite",),
    "duckdb": ("decisor.sandbox.engines.duckdb",),
    "combine": ("decisor.sandbox.engines.combine",),
    "model": ("decisor.decision_models.worker.engine",),
    "postgres": ("decisor.sandbox.engines.postgres", "psycopg"),
    "mysql": ("decisor.sandbox.engines.mysql", "pymysql"),
    "bolt": ("decisor.sandbox.engines.bolt", "neo4j"),
}
"""What a worker of an engine loads beside its own module. Not duckdb, which starts a thread when it is loaded."""
START_SECONDS = 60.0
SERVER_SECONDS = 20.0
AGAIN_SECONDS = 1.0
AGAIN_SHARE = 1 / 6
"""Share of a warehouse's opening time that it may take to open again: its driver alone takes seconds to load."""
ENDING_SECONDS = 3.0
"""Time in which a warehouse ends a query that took too long, so that its connection is kept."""
REACH_SECONDS = 4.0
"""Time in which a server that was too slow must show that it is there."""
KILLED_TWICE = "Somebody outside ended the process of this query, twice. Look at what ends processes on this machine."
VARIABLES = ("HOME", "JAVA_HOME", "VIRTUAL_ENV")
TLS_FILES = ("PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL", "PGSSLCRLDIR")


@dataclass(eq=False)
class Worker:
    """An engine in a process of its own. Tasks may share it: requests wait in line. If the process is killed, the next
    request starts another."""

    engine: str
    url: str
    caps: Caps = field(default_factory=Caps)
    child: Child | None = None
    opened: bool = False
    """Whether the database could be opened once; from then on its failures are for a model, not for the person."""
    hidden: frozenset[str] = frozenset()
    """Relations (lower case) that may not be seen."""
    closed: frozenset[str] = frozenset()
    """Views (lower case) that no query may read."""
    leaving: list[Child] = field(default_factory=list)
    """Killed processes that are not gone yet."""
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    audit: Audit | None = None
    """File where each query is noted; None for none."""
    source: str = ""
    """Name of the database in the audit."""

    @property
    def description(self) -> Engine:
        return load_engine(self.engine)

    def __post_init__(self) -> None:
        self.url = make_paths_absolute(self.url)
        self.passwords = find_url_secrets(self.url)

    async def start(self) -> None:
        """Open the database now. Raises SetupError, in one line, if it cannot be opened."""
        await self._child()

    async def run(
        self,
        statement: str,
        parameters: Mapping[str, Value] | None = None,
        caps: Caps | None = None,
        trusted: bool = False,
        by: Asker = "decisor",
    ) -> Table:
        """Run a statement and return its rows.

        ``trusted`` statements come from our own code: they skip the check, not the read-only engine. by: the asker, for
        the audit.

        Raises:
            ToolError: refused, the engine's error, or killed for time or memory.
        """
        try:
            reply = await self._ask("run", statement, parameters or {}, caps or self.caps, trusted)
        except ToolError as error:
            self._note(statement, by, None, str(error))
            raise
        table = table_from_frame(reply["table"])
        self._note(statement, by, len(table.rows))
        return table

    def _note(self, statement: str, by: Asker, rows: int | None, complaint: str = "") -> None:
        if self.audit is not None:
            self.audit.write(self.source, statement, by, rows, complaint)

    async def reveal(self, text: str) -> Table:
        """Return the value of each token in a text. Raises ToolError if the reader may not see the values."""
        return table_from_frame((await self._ask("reveal", text, {}, self.caps, False))["table"])

    async def plan(self, statement: str, caps: Caps) -> Table | None:
        """Return the engine's plan for a checked statement, None if the statement reads no rows.

        Raises:
            ToolError: as ``run``.
        """
        reply = await self._ask("plan", statement, {}, caps, False)
        return table_from_frame(reply["table"]) if "table" in reply else None

    async def check(self, statement: str) -> None:
        """Raise ToolError if the statement would be refused. Runs nothing."""
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
        """Return the error for a database that did not open.

        It is a ToolError for an LLM (or for a person who waits for the server), else a SetupError for the person who
        set it up.
        """
        complaint = redact(complaint, self.passwords)
        return ToolError(complaint, outage=self.description.server) if self.opened else SetupError(complaint)

    async def _ask(self, op: str, statement: str, parameters: Mapping[str, Value], caps: Caps, trusted: bool) -> Frame:
        frame = pack_request(op, statement, dict(parameters), caps, trusted)
        left, is_second = caps.seconds, False
        while True:
            child, seconds = self.child, left
            if child is None or child.ended:
                again, began = self.opened and self.description.server, time.monotonic()
                child = await self._child(caps.seconds)
                # A server that answered before is opened again within the time of the query, not beside it.
                if again:
                    seconds = max(0.0, min(seconds, seconds + AGAIN_SECONDS - (time.monotonic() - began)))
            try:
                reply = await child.ask(frame, seconds, caps.memory_mb)
                break
            except RequestNotStarted:
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
        """Return the running child, or start a new one. seconds: the limit for a server that answered before; then its
        failure is for an LLM (ToolError). Before that, it is for the person (SetupError).
        """
        async with self.starting:
            # Another task may have started one while this one waited for the lock.
            if self.child is not None and not self.child.ended:
                return self.child
            if self.child is not None:  # its server may still be ending what it ran
                self.leaving = [one for one in (*self.leaving, self.child) if not one.gone.done()]
            # A server that answered before has the time of the query and a little more; at first it has longer.
            limit = START_SECONDS
            if self.description.server:
                warehouse = self.description.warehouse
                opening = warehouse.opening if warehouse else SERVER_SECONDS
                again = max(seconds + AGAIN_SECONDS, warehouse.opening * AGAIN_SHARE if warehouse else 0.0)
                limit = again if self.opened else opening
            check_platform(limits_of_this_system())
            try:
                try:
                    reply = await self._hello(limit)
                except (KilledOutside, RequestNotStarted):
                    reply = await self._hello(limit)
            except (ToolError, RequestNotStarted, KilledOutside, OSError) as error:
                match error:
                    case OSError():
                        why = "no process could be started; is a limit of processes or of memory reached?"
                    case ToolError():
                        why = "its worker ended." if CRASHED in str(error) else f"it did not within {limit:g} s."
                    case _:
                        why = "somebody outside ended its process, twice."
                raise self.failure(f"The {self.engine} database did not open: {why}") from error
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
        """Start a child that opens the database, and return its first reply."""
        warehouse = self.description.warehouse
        self.child = await spawn(self.engine, self.description.server, ENDING_SECONDS if warehouse else 0.0)
        hello = pack_frame({"engine": self.engine, "url": self.url, "caps": caps_to(self.caps)})
        return await self.child.ask(hello, seconds, None)


def worker_start() -> ProcessStart:
    """Return the command and environment of a worker.

    The environment has only variables that a driver needs: keys and tokens stay out of a statement's reach.
    """
    tls = [name for name in os.environ if name.startswith("PGSSL")]
    command = build_python_start(WORKER, (*VARIABLES, *tls))
    for name in TLS_FILES:
        if command.environment.get(name, SYSTEM) != SYSTEM:
            command.environment[name] = make_path_absolute(command.environment[name])
    return command


T = TypeVar("T")


@dataclass(eq=False)
class BlockingWorker:
    """A worker for synchronous code, with an event loop in a thread.

    ``run`` may be called from any thread but the worker's own. ``close`` cancels running statements.
    """

    worker: Worker
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread

    @classmethod
    async def open(cls, engine: str, url: str, caps: Caps = Caps()) -> BlockingWorker:
        """Start a worker and its thread. Raises SetupError, in one line, if the database cannot be opened."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name=f"decisor {engine}", daemon=True)
        thread.start()
        blocking = cls(Worker(engine, url, caps), loop, thread)
        try:
            await asyncio.wrap_future(blocking._begin(blocking.worker.start()))
        except BaseException:
            await asyncio.to_thread(blocking.close)
            raise
        return blocking

    def run(self, statement: str, parameters: Mapping[str, Value], seconds: float) -> Table:
        """Run a trusted statement of our own.

        Raises ToolError with the engine's error, or if it was killed for time or memory.
        """
        caps = replace(self.worker.caps, seconds=seconds)
        try:
            return self._begin(self.worker.run(statement, parameters, caps, trusted=True)).result()
        except CancelledError as error:
            raise ToolError("Stopped: it was closed.") from error

    def close(self) -> None:
        if self.loop.is_closed():
            return
        self._begin(self._end()).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _end(self) -> None:
        # Callers in other threads wait for these: cancelled, their ``result()`` returns before the loop stops.
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.worker.close()

    def _begin(self, work: Coroutine[object, object, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)


async def start_machine(content: str) -> BlockingWorker:
    """Start the machine of a decision model (``worker.engine.Machine``), with memory for its tables and for work."""
    return await BlockingWorker.open("model", content, Caps(memory_mb=1536 + 8 * len(content) // 2**20))


@dataclass(frozen=True, slots=True)
class StatementVerdict:
    """Whether a statement may run."""

    allowed: bool
    reason: str = ""
    """'' if it may."""


async def check_all_statements(worker: Worker, statements: Iterable[str]) -> list[StatementVerdict]:
    """Return a verdict for each statement, in order. Raises SetupError if the database cannot be opened."""
    verdicts = []
    for statement in statements:
        try:
            await worker.check(statement)
            verdicts.append(StatementVerdict(True))
        except ToolError as error:
            verdicts.append(StatementVerdict(False, str(error)))
    return verdicts
