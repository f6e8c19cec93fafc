"""A server that sends given bytes: what it answers to each request, in which pieces, and how the connection ends.

    async with wire_server(wire(GOOD[:9], GOOD[9:], end="close")) as server:
        llm = server.llm()

Requests after those get ``GOOD``, on a connection that is kept.
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

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.llms.retry import Retries
from servers.fault_server import KEY

BODY = b'{"choices":[{"message":{"content":"Lyon"}}]}'
OTHER_BODY = BODY.replace(b"Lyon", b"Nice")
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
GOOD = OK + LENGTH + b"\r\n" + BODY


@dataclass(frozen=True)
class Wire:
    """``pieces`` with a little time between them, then the connection is kept, closed or reset; ``late``: sent a while
    after, when nobody waits."""

    pieces: tuple[bytes, ...]
    end: Literal["keep", "close", "reset"] = "keep"
    late: bytes = b""


def wire(*pieces: bytes, end: Literal["keep", "close", "reset"] = "keep", late: bytes = b"") -> Wire:
    return Wire(pieces, end, late)


@dataclass
class WireServer:
    """``ports``: of the client's side, one for each request; ``sent_late``: when what is late has gone out; ``ended``:
    how many connections this side has closed."""

    port: int = 0
    ports: list[int] = field(default_factory=list)
    sent_late: asyncio.Event = field(default_factory=asyncio.Event)
    ended: int = 0

    def llm(self, seconds: float = 10.0, attempts: int = 1, max_bytes: int = 2**20) -> OpenAICompatible:
        retries = Retries(attempts, 0.01, rate_attempts=attempts)
        return OpenAICompatible(
            "m", f"http://127.0.0.1:{self.port}/v1", KEY, seconds, max_bytes=max_bytes, retries=retries
        )


@asynccontextmanager
async def wire_server(*script: Wire) -> AsyncIterator[WireServer]:
    server = WireServer()
    writers: set[asyncio.StreamWriter] = set()

    async def play(part: Wire, writer: asyncio.StreamWriter) -> None:
        for number, piece in enumerate(part.pieces, 1):
            writer.write(piece)
            await writer.drain()
            if number < len(part.pieces) or part.end != "close":  # the end comes with the last piece
                await asyncio.sleep(0.002)
        if part.late:
            await asyncio.sleep(0.05)
            writer.write(part.late)
            await asyncio.sleep(0.05)
            server.sent_late.set()
        if part.end == "reset":
            reset = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            writer.transport.abort()
        elif part.end == "close":
            writer.close()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
                server.ports.append(writer.get_extra_info("peername")[1])
                number = len(server.ports) - 1
                await play(script[number] if number < len(script) else wire(GOOD), writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        server.ended += 1

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)
