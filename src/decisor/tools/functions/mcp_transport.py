"""Transports to an MCP server, with caps on what it may send: a process that is started, or an address.

Only a command that a person typed is started. It gets a few variables of the environment and those that are named for
it, and is ended with all that it started. The SDK's own transport of a process holds a line of any length in memory,
and leaves a call waiting whose answer cannot be read. No key goes to another server than the address.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from decisor.child_process import Start, here

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TERM", "TMPDIR", "TZ", "USER")
GRACE_SECONDS = 1.0
NUMBER = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


@dataclass
class Meter:
    """``left``: bytes that may still come before the next call. ``line``: the most that one message has."""

    most: int = 8_000_000
    line: int = 1_000_000
    left: int = 8_000_000

    def begin(self) -> None:
        self.left = self.most

    def take(self, size: int) -> bool:
        self.left -= size
        return self.left >= 0


def start_of(command: Sequence[str], variables: Mapping[str, str]) -> Start:
    """In the person's folder, as they typed it."""
    environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return Start(tuple(command), {**environment, **variables}, str(here()))


@asynccontextmanager
async def pipe(start: Start, meter: Meter) -> AsyncIterator[TransportStreams]:
    """A transport of the SDK. It ends where the process does, or sends more than it may.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *start.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, env=start.environment, cwd=start.folder, limit=meter.line,
        start_new_session=True,
    )  # fmt: skip
    arrivals, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, departures = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(read, process, arrivals, meter)
            group.start_soon(write, process, departures)
            yield reading, writing
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await end(process)
        for stream in (arrivals, reading, writing, departures):
            stream.close()


async def read(process: asyncio.subprocess.Process, arrivals: Any, meter: Meter) -> None:
    """A line that is no message is left out, and an answer that cannot be read is an error: nobody waits for it."""
    assert process.stdout is not None
    async with arrivals:
        with suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # ValueError: too long a line
            while (line := await process.stdout.readline()) and meter.take(len(line)):
                for message in messages_of(line):
                    await arrivals.send(message)
                await asyncio.sleep(0)


def messages_of(line: bytes) -> Iterator[SessionMessage]:
    """One, or none."""
    try:
        yield SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        if number := NUMBER.search(line):
            error = ErrorData(code=PARSE_ERROR, message="its answer cannot be read")
            yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(number[1]), error=error))


async def write(process: asyncio.subprocess.Process, departures: Any) -> None:
    assert process.stdin is not None
    with suppress(OSError, anyio.ClosedResourceError):
        async with departures:
            async for one in departures:
                line = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()


async def end(process: asyncio.subprocess.Process) -> None:
    """Its input is closed; what is still there of it after a moment is killed."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # a pipe that nobody reads any more keeps it open
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    await asyncio.sleep(0)


class Metered(httpx2.AsyncByteStream):
    """A body that ends with an error where it is more than a meter lets through."""

    def __init__(self, stream: httpx2.AsyncByteStream, meter: Meter) -> None:
        self.stream, self.meter = stream, meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            if not self.meter.take(len(chunk)):
                raise httpx2.ReadError("The server sends more than it may.")
            yield chunk

    async def aclose(self) -> None:
        await self.stream.aclose()


class MeteredTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("The server sends a body that is packed, which was not asked for.")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=Metered(response.stream, self.meter),
            extensions=response.extensions,
        )  # fmt: skip


@asynccontextmanager
async def web(url: str, key: str, meter: Meter, seconds: float) -> AsyncIterator[TransportStreams]:
    """A transport of the SDK. ``key``: '' for none."""
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    async with (
        httpx2.AsyncClient(
            headers=headers, transport=MeteredTransport(meter), timeout=seconds, trust_env=False
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=meter.line) as streams,
    ):
        yield streams
