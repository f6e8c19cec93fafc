"""A process that has loaded what workers need, and forks one for each start: milliseconds in place of a third of a
second, and what they loaded is in memory once.

The fork server is a child as all others (``processes``), has one thread and never reads what a model, a row or a file
says. A start comes as one message over a socket, with two sockets of the new process: its input and output, and one
that tells its pid and later its exit status. It ends when nobody can ask it any more, and then its children end.
``start_forked`` shows a forked process to asyncio as ``loop.subprocess_exec`` shows one. On Linux alone: elsewhere
system libraries keep threads that no fork survives.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import NoReturn, TypeVar

from decisor.system.processes import WATCH_SECONDS, ProcessStart, build_python_start, end_with, module_path

CAN_FORK = sys.platform == "linux"
NUMBER = struct.Struct("=i")
MOST_BYTES = 200_000
"""Size of a message; environment and path take a few thousand."""
LOST = -signal.SIGTERM
"""Exit status of a process whose fork server is gone: it gets this signal then."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""numpy starts threads when it is loaded, which a fork does not have."""

P = TypeVar("P", bound=asyncio.SubprocessProtocol)


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a fork server is asked for."""

    module: str
    """Module whose ``main`` the new process runs."""
    loaded: tuple[str, ...]
    """Modules that the server loads first, once for all that follow; they start no threads."""
    path: list[str]
    environment: dict[str, str]
    folder: str


@dataclass(eq=False, slots=True)
class ForkServer:
    """A running fork server, as the process sees it that started it."""

    process: subprocess.Popen[bytes]
    control: socket.socket

    @classmethod
    def start(cls) -> ForkServer:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        start = build_python_start(__name__)
        with theirs:
            process = subprocess.Popen(
                start.command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=start.environment,
                cwd=start.folder,
                start_new_session=True,
            )
        return cls(process, control)

    def send(self, request: ForkRequest, link: socket.socket, life: socket.socket) -> None:
        message = json.dumps(asdict(request)).encode()
        socket.send_fds(self.control, [message], [link.fileno(), life.fileno()])


SERVERS: dict[int, ForkServer] = {}
"""By process: a fork of this process starts one of its own."""
STARTING: dict[int, threading.Lock] = {}
"""By process too: a fork may come while another thread holds it."""


def send_to_server(request: ForkRequest, link: socket.socket, life: socket.socket) -> None:
    """Send a request to the fork server of this process, and start one if there is none or it was killed."""
    with STARTING.setdefault(os.getpid(), threading.Lock()):
        server = SERVERS.get(os.getpid())
        if server is not None and server.process.poll() is None:
            with suppress(BrokenPipeError, ConnectionResetError):  # it ended just now
                return server.send(request, link, life)
        if server is not None:
            server.control.close()
            server.process.wait()  # its socket broke, so it is ending
        else:
            atexit.register(end_server, os.getpid())
        SERVERS[os.getpid()] = server = ForkServer.start()
        return server.send(request, link, life)


def end_server(process: int) -> None:
    """End the fork server of a process that ends, and so its children; a fork of the process leaves it alone."""
    if os.getpid() == process:
        server = SERVERS.pop(process)
        with server.control, suppress(OSError):
            server.control.shutdown(socket.SHUT_RDWR)  # a fork of this process has it too
        server.process.wait()


class ForkedProcess(asyncio.SubprocessTransport):
    """A forked process with a pipe to its input and from its output, for a protocol of a subprocess."""

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.pid = 0
        self.status: int | None = None
        self.is_over = False
        self.link: asyncio.Transport | None = None
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_pid(self) -> int:
        return self.pid

    def get_returncode(self) -> int | None:
        return self.status

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self.link

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, signal: int) -> None:
        if self.pid and self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal)

    def close(self) -> None:
        self.kill()
        if self.link is not None:
            self.link.close()

    def tell_end(self) -> None:
        self.protocol.process_exited()
        self.close()
        self.protocol.connection_lost(None)


class Link(asyncio.Protocol):
    """The input and output of a forked process."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process

    def data_received(self, data: bytes) -> None:
        self.process.protocol.pipe_data_received(1, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.process.protocol.pipe_connection_lost(1, exc)


class Life(asyncio.Protocol):
    """What the fork server tells of a process: its pid, then its exit status. Closed without them, it has none."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process

    def data_received(self, data: bytes) -> None:
        for (number,) in NUMBER.iter_unpack(data):
            if self.process.pid:
                self.process.status = number
            else:
                self.process.pid = number
        if not self.process.started.done():
            self.process.started.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        process = self.process
        if not process.started.done():
            process.started.set_exception(OSError("no process could be forked"))
        process.is_over = True
        process.status = LOST if process.status is None else process.status
        if process.link is not None:
            process.tell_end()


async def start_forked(build: Callable[[], P], start: ProcessStart, module: str, loaded: Sequence[str]) -> P:
    """Start a process that runs ``main`` of a module, with the environment and the folder of ``start``.

    Raises OSError if it could not be forked.
    """
    request = ForkRequest(module, tuple(loaded), module_path(), start.environment, start.folder)
    try:
        return await fork_once(build(), request)
    except OSError:  # the server was killed before it came to this
        return await fork_once(build(), request)


async def fork_once(protocol: P, request: ForkRequest) -> P:
    loop, process = asyncio.get_running_loop(), ForkedProcess(protocol)
    (link, their_link), (life, their_life) = socket.socketpair(), socket.socketpair()
    with their_link, their_life:
        send_to_server(request, their_link, their_life)
    told, _ = await loop.create_unix_connection(lambda: Life(process), sock=life)
    try:
        await process.started
        process.link, _ = await loop.create_unix_connection(lambda: Link(process), sock=link)
    except BaseException:
        told.close()
        link.close()  # the process, if there is one, ends with its input
        raise
    protocol.connection_made(process)
    if process.is_over:
        process.tell_end()
    return protocol


def main() -> None:
    """Serve starts until the process that asks for them is gone."""
    parent = os.getppid()
    # The kernel's signal comes also when only the thread ends that started this process.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.environ.update(ONE_THREAD)
    control = socket.socket(fileno=os.dup(0))
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the end of a child writes to the pipe
    server = os.getpid()
    lives: dict[int, int] = {}
    loaded: set[str] = set()
    while os.getppid() == parent:
        ready, _, _ = select.select([control.fileno(), wake], [], [], WATCH_SECONDS)
        if wake in ready:
            os.read(wake, 4096)
            tell_ends(lives)
        if control.fileno() in ready:
            message, files, *_ = socket.recv_fds(control, MOST_BYTES, 2)
            if not message:
                return
            request = ForkRequest(**json.loads(message))
            load_modules(request, loaded)
            with suppress(OSError):  # both sockets are closed then, which says that there is no process
                if (pid := os.fork()) == 0:
                    run_forked(request, server, files, [control.fileno(), wake, woken, *lives.values()])
                lives[pid] = os.dup(files[1])
                os.write(lives[pid], NUMBER.pack(pid))
            for file in files:
                os.close(file)


def load_modules(request: ForkRequest, loaded: set[str]) -> None:
    """Load the modules of a request that are not in ``loaded`` yet."""
    if new := [name for name in (request.module, *request.loaded) if name not in loaded]:
        sys.path[:] = request.path
        for name in new:
            with suppress(ImportError):  # the worker says what is missing
                import_module(name)
        loaded.update(new)
        gc.freeze()  # a collection would write to the memory that the children share


def tell_ends(lives: dict[int, int]) -> None:
    """Tell the exit status of each child that has ended."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            life = lives.pop(pid)
            with suppress(OSError):  # nobody waits for it any more
                os.write(life, NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(life)


def run_forked(request: ForkRequest, server: int, files: Sequence[int], others: Sequence[int]) -> NoReturn:
    """Run the module's ``main`` in the new process, which keeps nothing of the server but what is loaded.

    others: files of the server.
    """
    status = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        end_with(server)
        nothing = os.open(os.devnull, os.O_RDWR)
        for own, file in enumerate((files[0], files[0], nothing)):
            os.dup2(file, own)
        for file in (*files, nothing, *others):
            os.close(file)
        os.environ.clear()
        os.environ.update(request.environment)
        time.tzset()  # the C library read TZ when the server started
        os.chdir(request.folder)
        sys.path[:] = request.path
        import_module(request.module).main()
        status = 0
    finally:
        os._exit(status)
