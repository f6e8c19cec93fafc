"""A TCP proxy between a driver and its server that commits faults on order.

    async with proxy(("127.0.0.1", 5432)) as between:
        ... connect to between.port ...
        between.mode = Mode("reset")

A mode begins with the next bytes. ``after`` of the server's bytes are let through before it; ``times`` connections get
it, then the proxy only passes on again.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

Name = Literal["pass", "delay", "black_hole", "drip", "reset", "close", "half_close", "corrupt", "refuse"]
CHUNK = 65_536
DRIP_SECONDS = 0.02


@dataclass(frozen=True)
class Mode:
    """``seconds``: of each delay."""

    name: Name = "pass"
    after: int = 0
    times: int | None = None
    seconds: float = 0.0


@dataclass
class Proxy:
    """``made``: connections so far. ``hit``: connections that got the fault of this mode."""

    port: int
    to: tuple[str, int]
    made: int = 0
    hit: set[int] = field(default_factory=set)
    let: int = 0
    links: set[asyncio.StreamWriter] = field(default_factory=set)
    _mode: Mode = Mode()

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode, self.hit, self.let = mode, set(), 0

    async def link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, until either side ends it."""
        self.made += 1
        number = self.made
        if self.mode.name in ("refuse", "reset", "close") and self._strikes(number, b""):
            _end(writer, hard=self.mode.name != "close")
            return
        server_reader, server_writer = await asyncio.open_connection(*self.to)
        self.links |= {writer, server_writer}
        both = (self._pump(number, reader, server_writer, False), self._pump(number, server_reader, writer, True))
        try:
            await asyncio.gather(*both)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.links -= {writer, server_writer}
            _end(writer, hard=False)
            _end(server_writer, hard=False)

    async def _pump(
        self, number: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter, from_server: bool
    ) -> None:
        while data := await source.read(CHUNK):
            mode = self.mode
            if mode.name == "pass" or not (from_server or mode.name == "black_hole") or not self._strikes(number, data):
                sink.write(data)
            else:
                await self._commit(mode, data, sink)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    async def _commit(self, mode: Mode, data: bytes, sink: asyncio.StreamWriter) -> None:
        match mode.name:
            case "delay":
                await asyncio.sleep(mode.seconds)
                sink.write(data)
            case "drip":
                for at in range(len(data)):
                    if sink.transport.is_closing():
                        raise ConnectionResetError
                    sink.write(data[at : at + 1])
                    await asyncio.sleep(DRIP_SECONDS)
            case "corrupt":
                sink.write(bytes(byte ^ 0xA5 for byte in data))
            case "half_close":
                sink.write_eof()
                await asyncio.sleep(60)
            case "reset" | "close" | "refuse":
                sink.write(data[: len(data) // 2])
                await sink.drain()
                _end(sink, hard=mode.name != "close")
                raise ConnectionResetError

    def _strikes(self, number: int, data: bytes) -> bool:
        """Whether this connection gets the fault now."""
        mode = self.mode
        if number in self.hit:
            return True
        self.let += len(data)
        if self.let < mode.after or (mode.times is not None and len(self.hit) >= mode.times):
            return False
        self.hit.add(number)
        return True


def _end(writer: asyncio.StreamWriter, hard: bool) -> None:
    """Close it; ``hard``: with a reset."""
    sock = writer.get_extra_info("socket")
    if hard and sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()


@asynccontextmanager
async def proxy(to: tuple[str, int]) -> AsyncIterator[Proxy]:
    between = Proxy(0, to)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(between.link(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    between.port = server.sockets[0].getsockname()[1]
    try:
        yield between
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
