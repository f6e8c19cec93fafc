"""The tools of an MCP server as tools of a technique: a connection, and a tool for each of them.

What the server says of itself is text from outside: it is cut, cleaned and shown as a description, and what it returns
stands in records. Tools that do not say that they only read are left out unless a person names them.
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
from decisor.extras import needs
from decisor.outside import clean_text, one_line, quoted
from decisor.secrets import Secret, redact_known, without_password
from decisor.tools.functions.arguments import Arguments
from decisor.tools.functions.openapi_call import listing
from decisor.tools.functions.results import Cut, clip, observe
from decisor.types import Observation, Record, Value

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp_types import CallToolResult

    from decisor.tools.functions.mcp_transport import Meter

SPEC = re.compile(r"mcp:(?P<place>.+?)(?:#(?P<names>[\w.,/-]+))?", re.S)
CUT = Cut()
MOST_TOOLS, MOST_PAGES, ABOUT = 60, 20, 1_000
START_SECONDS, CALL_SECONDS, LATE_CALLS = 30.0, 30.0, 2
"""``LATE_CALLS``: after so many calls that ran over their deadline the server is not called any more."""


@dataclass(eq=False)
class McpServer:
    """``place``: a command or an address. ``keys``: by the variable that holds each: a process gets them as variables,
    an address the first as its bearer token. ``seconds``: of a call;
    ``patience``: seconds until it is there. A task of its own holds the connection open."""

    place: str
    keys: Mapping[str, Secret] = field(default_factory=dict)
    seconds: float = CALL_SECONDS
    patience: float = START_SECONDS
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    client: Client | None = None
    late: int = 0
    """Number of calls that ran over their deadline."""

    @cached_property
    def meter(self) -> Meter:
        from decisor.tools.functions.mcp_transport import Meter

        return Meter()

    @property
    def label(self) -> str:
        return one_line(without_password(self.place), 100)

    async def open(self) -> None:
        """Raises SetupError where it does not answer."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self.live(ready))
        try:
            async with asyncio.timeout(self.patience):
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
        """Never raises: who waits for it hears what went wrong."""
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
            ready.exception() if not ready.cancelled() else None

    def transport(self) -> Any:
        from decisor.tools.functions.mcp_transport import pipe, start_of, web

        variables = {name: one.reveal() for name, one in self.keys.items()}
        if self.place.startswith(("http://", "https://")):
            return web(self.place, next(iter(variables.values()), ""), self.meter, self.seconds)
        return pipe(start_of(shlex.split(self.place), variables), self.meter)

    async def tools(self, names: Sequence[str] = ()) -> list[McpTool]:
        """Those that say that they only read, or those that are named.

        Raises:
            SetupError: one that is named is not there, there is none to use, or they are too many for a prompt.
        """
        every = await self.listed()
        there = {one.name for one in every}
        if unknown := [name for name in names if name not in there]:
            raise SetupError(f"{self.label} has no tool {unknown[0]!r}; it has {listing(there)}.")
        chosen = [one for one in every if (one.name in names if names else says_it_reads(one))]
        if not chosen:
            raise SetupError(f"No tool of {self.label} says that it only reads: name those that may be called, as "
                             f"mcp:{self.label}#NAME,NAME. It has {listing(there) or 'none'}.")  # fmt: skip
        if len(chosen) > MOST_TOOLS:
            raise SetupError(f"{self.label} has {len(chosen)} tools, too many for a prompt: name those that the "
                             f"question needs, as mcp:{self.label}#NAME,NAME. It has {listing(there)}.")  # fmt: skip
        return [McpTool(self, one.name, one.description or "", one.input_schema) for one in chosen]

    async def listed(self) -> list[mcp_types.Tool]:
        assert self.client is not None
        every: list[mcp_types.Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self.patience):
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
        """Raises ToolError where it does not answer, in time and in so many bytes."""
        if self.client is None:
            raise ToolError(f"{name}: its MCP server has ended. Do without it.", outage=True)
        if self.late >= LATE_CALLS:
            raise ToolError(f"{name}: its MCP server did not answer {self.late} calls in {self.seconds:g} s each, and "
                            "is not called any more. Do without it.")  # fmt: skip
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
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return one_line(redact_known(str(error) or type(error).__name__, self.keys.values()), 300).rstrip(".")

    async def close(self) -> None:
        self.closing.set()
        if self.task is not None:
            _, late = await asyncio.wait([self.task], timeout=5.0)
            for task in late:
                task.cancel()
                await asyncio.wait([task], timeout=5.0)


@dataclass(eq=False)
class McpTool:
    """Satisfies ``types.Tool``."""

    server: McpServer
    own_name: str
    about: str
    schema: Mapping[str, Value]
    cut: Cut = CUT

    @cached_property
    def name(self) -> str:
        return re.sub(r"\W+", "_", self.own_name)[:64].strip("_") or "tool"

    @cached_property
    def arguments(self) -> Arguments:
        return Arguments(self.schema, self.schema)

    def describe(self) -> str:
        about = one_line(self.about, ABOUT) or "(no description)"
        return f"{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the arguments do not fit, or the server fails or takes too long."""
        result = await self.server.call(self.own_name, self.arguments.read(text))
        texts = [redact_known(one, self.server.keys.values()) for one in texts_of(result)]
        if result.is_error:
            raise ToolError(f"{self.name} failed: {quoted(' '.join(texts))}")
        structured: object = result.structured_content
        if len(texts) == 1 and structured == {"result": texts[0]}:  # the SDK wraps a plain text so
            structured = None
        try:
            whole = texts[0] if structured is None and len(texts) == 1 else json.dumps(structured, ensure_ascii=False)
            structured = json.loads(redact_known(whole, self.server.keys.values()))
        except (ValueError, RecursionError):
            structured = None  # what is no JSON, or cannot be written, is shown as its texts
        if isinstance(structured, dict | list):
            return observe(structured, self.name, self.cut)
        passages = [Record(f"r{at}", text=clip(clean_text(one), self.cut.chars), source=self.name)
                    for at, one in enumerate(texts[: self.cut.rows], 1)]  # fmt: skip
        return Observation(tuple(passages), "" if passages else "(it returned nothing)", total=len(texts))

    async def close(self) -> None:
        await self.server.close()


def texts_of(result: CallToolResult) -> Iterator[str]:
    """What is no text is named."""
    for one in result.content:
        text = getattr(one, "text", None)
        yield text if isinstance(text, str) else f"({one.type}, which is not shown)"


def says_it_reads(tool: mcp_types.Tool) -> bool:
    return tool.annotations is not None and tool.annotations.read_only_hint is True


async def open_mcp(spec: str, keys: Mapping[str, Secret], patience: float = START_SECONDS) -> list[McpTool]:
    """The tools of ``mcp:COMMAND``, ``mcp:URL``, or of either with ``#NAME,NAME``. Only for what a person typed.

    Raises:
        SetupError: it cannot be used.
    """
    match = SPEC.fullmatch(spec.strip())
    if match is None:
        raise SetupError("--tools mcp: takes a command or an address, as mcp:COMMAND or mcp:https://HOST/mcp.")
    with needs("the MCP SDK", "mcp"):
        import mcp  # noqa: F401
    server = McpServer(match["place"].strip(), keys, patience=patience)
    await server.open()
    try:
        return await server.tools([name for name in (match["names"] or "").split(",") if name])
    except BaseException:
        await server.close()
        raise
