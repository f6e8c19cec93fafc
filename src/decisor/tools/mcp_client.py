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
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from decisor.errors import SetupError, ToolError
from decisor.system.extras import require_package
from decisor.system.secrets import Secret, hide_password, redact_known
from decisor.system.text import clean_text, fit_on_one_line, quote_on_one_line
from decisor.tools.arguments import ToolArguments
from decisor.tools.openapi_call import list_sorted_names
from decisor.tools.python_function import ResultLimits, clip_with_count, observe_result
from decisor.types import Observation, Record, Value

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp_types import CallToolResult

    from decisor.tools.mcp_transport import ByteMeter


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
        from decisor.tools.mcp_transport import ByteMeter

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
        from decisor.tools.mcp_transport import build_server_start, connect_address, connect_process

        variables = {name: one.reveal() for name, one in self.keys.items()}
        if self.place.startswith(("http://", "https://")):
            return connect_address(self.place, next(iter(variables.values()), ""), self.meter, self.seconds)
        return connect_process(build_server_start(shlex.split(self.place), variables), self.meter)

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
        texts = [redact_known(one, self.server.keys.values()) for one in iterate_result_texts(result)]
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


def iterate_result_texts(result: CallToolResult) -> Iterator[str]:
    """Iterate over the texts of a result; other content is only named."""
    for one in result.content:
        text = getattr(one, "text", None)
        yield text if isinstance(text, str) else f"({one.type}, which is not shown)"


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
