"""An MCP server as a process: lines of JSON on its standard input and output, with caps on what it may send.

Only a command that a person typed is started. It gets a few variables of the environment and those that are named for
it, and is ended with all that it started.
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
