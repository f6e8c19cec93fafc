"""An HTTP proxy: passes on what names a whole address, and makes tunnels. Every place leads to the one given.

async with http_proxy(("127.0.0.1", port), "user:word") as seen: ... http://user:word@127.0.0.1:{seen.port} ...
"""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

OPENS = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass
class Passed:
    """``lines``: the first line of each request; ``heads``: the whole heads."""

    port: int = 0
    lines: list[str] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def http_proxy(
    to: tuple[str, int], user: str = "", refuses: int = 0, page: bytes = b"", opens: bytes = OPENS
) -> AsyncIterator[Passed]:
    """``refuses``: the status that every request gets instead, with this page; ``opens``: the answer to CONNECT."""
    seen = Passed()
    writers: set[asyncio.StreamWriter] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
            writer.close()

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        seen.lines.append(head.split(b"\r\n")[0].decode())
        seen.heads.append(head)
        authorization = b"Proxy-Authorization: Basic " + b64encode(user.encode())
        if refuses or (user and authorization not in head):
            writer.write(b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n%b" % (refuses or 407, len(page), page))
            return
        there, out = await asyncio.open_connection(*to)
        writers.add(out)
        if head.startswith(b"CONNECT"):
            writer.write(opens)
        else:
            out.write(head)
        await asyncio.gather(copy(reader, out), copy(there, writer))

    server = await asyncio.start_server(link, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0.05)
