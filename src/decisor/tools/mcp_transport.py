"""Transport to an MCP server: over the pipe of a process, or over HTTP; with limits on its messages."""

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

from decisor.system.processes import ProcessStart, working_folder

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TERM", "TMPDIR", "TZ", "USER")


GRACE_SECONDS = 1.0


NUMBER = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


@dataclass
class ByteMeter:
    """A limit on received bytes."""

    most: int = 8_000_000
    """Bytes for one call."""
    line: int = 1_000_000
    """Longest message, in bytes."""
    left: int = 8_000_000
    """Bytes allowed before the next call."""

    def begin(self) -> None:
        self.left = self.most

    def take(self, size: int) -> bool:
        self.left -= size
        return self.left >= 0


def build_server_start(command: Sequence[str], variables: Mapping[str, str]) -> ProcessStart:
    """Build the start of a server in the person's folder. It gets its own variables and a few of the environment."""
    environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return ProcessStart(tuple(command), {**environment, **variables}, str(working_folder()))


@asynccontextmanager
async def connect_process(start: ProcessStart, meter: ByteMeter) -> AsyncIterator[TransportStreams]:
    """Start a process and open a transport to it. It ends if the process ends or sends more than allowed.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *start.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=start.environment,
        cwd=start.folder,
        limit=meter.line,
        start_new_session=True,
    )
    arrivals, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, departures = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(receive_messages, process, arrivals, meter)
            group.start_soon(send_messages, process, departures)
            yield reading, writing
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await end_process(process)
        for stream in (arrivals, reading, writing, departures):
            stream.close()


async def receive_messages(process: asyncio.subprocess.Process, arrivals: Any, meter: ByteMeter) -> None:
    """Send the messages from a process to the SDK.

    A line that is no message is skipped. An unreadable answer becomes an error, so that no call waits for it.
    """
    assert process.stdout is not None
    async with arrivals:
        with suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # ValueError: too long a line
            while (line := await process.stdout.readline()) and meter.take(len(line)):
                for message in parse_mcp_line(line):
                    await arrivals.send(message)
                # A server that floods must not keep the event loop to itself.
                await asyncio.sleep(0)


def parse_mcp_line(line: bytes) -> Iterator[SessionMessage]:
    """Yield the message of a line, or an error for an unreadable answer with an id; else nothing."""
    try:
        yield SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        if number := NUMBER.search(line):
            error = ErrorData(code=PARSE_ERROR, message="its answer cannot be read")
            yield SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(number[1]), error=error))


async def send_messages(process: asyncio.subprocess.Process, departures: Any) -> None:
    assert process.stdin is not None
    with suppress(OSError, anyio.ClosedResourceError):
        async with departures:
            async for one in departures:
                line = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Close the input of a process, and kill it and its children after a moment."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        # The whole group: npx and uvx start the server as a child of theirs.
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # a pipe that nobody reads any more keeps it open
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    await asyncio.sleep(0)


class MeteredStream(httpx2.AsyncByteStream):
    """A body that raises an error after more bytes than a meter allows."""

    def __init__(self, stream: httpx2.AsyncByteStream, meter: ByteMeter) -> None:
        self.stream, self.meter = stream, meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            if not self.meter.take(len(chunk)):
                raise httpx2.ReadError("The server sends more than it may.")
            yield chunk

    async def aclose(self) -> None:
        await self.stream.aclose()


class MeteredTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, meter: ByteMeter) -> None:
        super().__init__()
        self.meter = meter

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        # The meter counts bytes as they are sent; packed ones could unpack to any size.
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.ReadError("The server sends a body that is packed, which was not asked for.")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=MeteredStream(response.stream, self.meter),
            extensions=response.extensions,
        )


@asynccontextmanager
async def connect_address(url: str, key: str, meter: ByteMeter, seconds: float) -> AsyncIterator[TransportStreams]:
    """Open a transport to an address. ``key``: bearer token, empty for none."""
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    async with (
        httpx2.AsyncClient(
            headers=headers, transport=MeteredTransport(meter), timeout=seconds, trust_env=False
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=meter.line) as streams,
    ):
        yield streams
