"""The tools of an MCP server as tools of a technique, over a process that is started or an address.

Descriptions from the server are text from outside: they are cut and cleaned, and results stand in records. Tools that
do not declare themselves read-only are left out unless a person names them. Only a command that a person typed is
started. It gets a few variables of the environment and variables named for it, and is ended with all processes
that it started. No key goes to another server than the address.

The transports limit the bytes that a server may send. The SDK's own process transport holds a line of any length in
memory, and leaves a call waiting if its answer cannot be read.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, TextContent, jsonrpc_message_adapter

from decisor.errors import SetupError, ToolError
from decisor.system.extras import require_package
from decisor.system.processes import ProcessStart, working_folder
from decisor.system.secrets import Secret, hide_password, redact_known
from decisor.system.text import clean_text, fit_on_one_line, quote_on_one_line
from decisor.tools.arguments import ToolArguments
from decisor.tools.openapi_call import list_sorted_names
from decisor.tools.python_function import ResultLimits, clip_with_count, observe_result
from decisor.types import Observation, Record, Value

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult

SPEC = re.compile(r"mcp:(?P<place>.+?)(?:#(?P<names>[\w.,/-]+))?", re.S)
CUT = ResultLimits()
MOST_TOOLS, MOST_PAGES, ABOUT = 60, 20, 1_000
START_SECONDS, CALL_SECONDS, LATE_CALLS = 30.0, 30.0, 2
"""``LATE_CALLS``: after so many calls that ran over their deadline the server is not called any more."""


@dataclass(eq=False)
class McpServer:
    """A connection to an MCP server, held open by a task of its own."""

    place: str
    """Command or address of the server."""
    keys: Mapping[str, Secret] = field(default_factory=dict)
    """Secret by variable name; a process gets them as variables, an address gets the first as its bearer token."""
    seconds: float = CALL_SECONDS
    """Limit of one call."""
    patience: float = START_SECONDS
    """Seconds to wait for the connection."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    client: Client | None = None
    late: int = 0
    """Number of calls that ran over their deadline."""

    @cached_property
    def meter(self) -> ByteMeter:
        return ByteMeter()

    @property
    def label(self) -> str:
        return fit_on_one_line(hide_password(self.place), 100)

    async def open(self) -> None:
        """Open the connection. Raise SetupError if the server does not answer."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A task of its own: anyio wants a connection closed by the task that opened it, and callers come and go.
        self.task = asyncio.create_task(self.live(ready))
        try:
            async with asyncio.timeout(self.patience):
                # Shielded, or the timeout would cancel the future that the task still sets.
                await asyncio.shield(ready)
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise SetupError(f"The MCP server {self.label} did not answer in {self.patience:g} s.") from error
            if isinstance(error, asyncio.CancelledError | SetupError):
                raise
            why = self.words_of(error)
            raise SetupError(f"The MCP server {self.label} cannot be used: {why}. Try it by itself first.") from error

    async def live(self, ready: asyncio.Future[None]) -> None:
        """Hold the connection open until it is closed. It never raises; the waiting task receives the error."""
        from mcp import Client

        try:
            async with Client(self.transport(), cache=None) as client:
                self.client = client
                ready.set_result(None)
                await self.closing.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self.client = None
            if not ready.done():
                ready.set_exception(ToolError("it ended"))
            # Read once, so that asyncio does not log an error that nobody waited for.
            ready.exception() if not ready.cancelled() else None

    def transport(self) -> Any:
        variables = {name: one.reveal() for name, one in self.keys.items()}
        if self.place.startswith(("http://", "https://")):
            return connect_address(self.place, next(iter(variables.values()), ""), self.meter, self.seconds)
        # A server runs in the person's folder, and gets its own variables and a few of the environment.
        environment = {name: os.environ[name] for name in VARIABLES if name in os.environ} | variables
        return connect_process(
            ProcessStart(tuple(shlex.split(self.place)), environment, str(working_folder())), self.meter
        )

    async def tools(self, names: Sequence[str] = ()) -> list[McpTool]:
        """Return the named tools, or all that declare themselves read-only.

        Raises:
            SetupError: one that is named is not there, there is none to use, or they are too many for a prompt.
        """
        every = await self.listed()
        there = {one.name for one in every}
        if unknown := [name for name in names if name not in there]:
            raise SetupError(f"{self.label} has no tool {unknown[0]!r}; it has {list_sorted_names(there)}.")
        chosen = [
            one
            for one in every
            if (one.name in names if names else one.annotations and one.annotations.read_only_hint is True)
        ]
        if not chosen:
            raise SetupError(
                f"No tool of {self.label} says that it only reads: name those that may be called, as "
                f"mcp:{self.label}#NAME,NAME. It has {list_sorted_names(there) or 'none'}."
            )
        if len(chosen) > MOST_TOOLS:
            raise SetupError(
                f"{self.label} has {len(chosen)} tools, too many for a prompt: name those that the "
                f"question needs, as mcp:{self.label}#NAME,NAME. It has {list_sorted_names(there)}."
            )
        return [McpTool(self, one.name, one.description or "", one.input_schema) for one in chosen]

    async def listed(self) -> list[mcp_types.Tool]:
        assert self.client is not None
        every: list[mcp_types.Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self.patience):
                # A server may hand out a next page for ever.
                for _ in range(MOST_PAGES):
                    self.meter.begin()
                    page = await self.client.list_tools(cursor=cursor)
                    every += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        return every
        except TimeoutError as error:
            raise SetupError(f"The MCP server {self.label} did not list its tools in {self.patience:g} s.") from error
        except Exception as error:
            raise SetupError(f"The MCP server {self.label} does not list its tools: {self.words_of(error)}.") from error
        raise SetupError(f"The MCP server {self.label} lists tools without end.")

    async def call(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """Call a tool of the server. Raise ToolError if it does not answer within the limits of time and bytes."""
        if self.client is None:
            raise ToolError(f"{name}: its MCP server has ended. Do without it.", outage=True)
        # A server that hangs would cost its deadline at each call of the run.
        if self.late >= LATE_CALLS:
            raise ToolError(
                f"{name}: its MCP server did not answer {self.late} calls in {self.seconds:g} s each, and "
                "is not called any more. Do without it."
            )
        self.meter.begin()
        try:
            async with asyncio.timeout(self.seconds):
                return await self.client.call_tool(name, dict(arguments))
        except TimeoutError as error:
            self.late += 1
            raise ToolError(f"{name} took longer than {self.seconds:g} s.") from error
        except Exception as error:
            raise ToolError(f"{name} failed: {self.words_of(error)}") from error

    def words_of(self, error: BaseException) -> str:
        # anyio wraps what happened within its task groups.
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return fit_on_one_line(redact_known(str(error) or type(error).__name__, self.keys.values()), 300).rstrip(".")

    async def close(self) -> None:
        self.closing.set()
        if self.task is not None:
            _, late = await asyncio.wait([self.task], timeout=5.0)
            for task in late:
                task.cancel()
                await asyncio.wait([task], timeout=5.0)


@dataclass(eq=False)
class McpTool:
    """A tool of an MCP server. Satisfies ``types.Tool``."""

    server: McpServer
    own_name: str
    about: str
    schema: Mapping[str, Value]
    cut: ResultLimits = CUT

    @cached_property
    def name(self) -> str:
        return re.sub(r"\W+", "_", self.own_name)[:64].strip("_") or "tool"

    @cached_property
    def arguments(self) -> ToolArguments:
        return ToolArguments(self.schema, self.schema)

    def describe(self) -> str:
        about = fit_on_one_line(self.about, ABOUT) or "(no description)"
        return f"{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Call the tool. Raise ToolError if the arguments do not fit, the server fails or takes too long."""
        result = await self.server.call(self.own_name, self.arguments.read(text))
        # Other content than texts is only named.
        contents = [
            one.text if isinstance(one, TextContent) else f"({one.type}, which is not shown)" for one in result.content
        ]
        texts = [redact_known(one, self.server.keys.values()) for one in contents]
        if result.is_error:
            raise ToolError(f"{self.name} failed: {quote_on_one_line(' '.join(texts))}")
        structured: object = result.structured_content
        if len(texts) == 1 and structured == {"result": texts[0]}:  # the SDK wraps a plain text so
            structured = None
        try:
            whole = texts[0] if structured is None and len(texts) == 1 else json.dumps(structured, ensure_ascii=False)
            # Redacted as text, so that a key within any nested value is found.
            structured = json.loads(redact_known(whole, self.server.keys.values()))
        except (ValueError, RecursionError):
            structured = None  # what is no JSON, or cannot be written, is shown as its texts
        if isinstance(structured, dict | list):
            return observe_result(structured, self.name, self.cut)
        passages = [
            Record(f"r{at}", text=clip_with_count(clean_text(one), self.cut.chars), source=self.name)
            for at, one in enumerate(texts[: self.cut.rows], 1)
        ]
        return Observation(tuple(passages), "" if passages else "(it returned nothing)", total=len(texts))

    async def close(self) -> None:
        await self.server.close()


async def open_mcp_tools(spec: str, keys: Mapping[str, Secret], patience: float = START_SECONDS) -> list[McpTool]:
    """Open the tools of ``mcp:COMMAND`` or ``mcp:URL``, or those named by ``#NAME,NAME``.

    Only for specifications that a person typed.

    Raises:
        SetupError: it cannot be used.
    """
    match = SPEC.fullmatch(spec.strip())
    if match is None:
        raise SetupError("--tools mcp: takes a command or an address, as mcp:COMMAND or mcp:https://HOST/mcp.")
    with require_package("the MCP SDK", "mcp"):
        import mcp  # noqa: F401
    server = McpServer(match["place"].strip(), keys, patience=patience)
    await server.open()
    try:
        return await server.tools([name for name in (match["names"] or "").split(",") if name])
    except BaseException:
        await server.close()
        raise


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
