"""Operations of an OpenAPI document as tools: the request that arguments make, and the reply as an observation.

Calls go to the operation's own server only: a redirect to another is not followed. Keys come from the environment, go
to the document's own server only, as the document says, and are taken out of whatever comes back.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from decisor.errors import SetupError, ToolError
from decisor.outside import one_line
from decisor.secrets import Secret, redact_known
from decisor.tools.functions.arguments import Arguments
from decisor.tools.functions.openapi import Document, Operation, origin
from decisor.tools.functions.openapi_reply import Reply, decode
from decisor.tools.functions.openapi_request import Request, build
from decisor.tools.functions.results import Cut
from decisor.types import Observation

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MOST_HOPS = 3
CUT = Cut()


@dataclass
class Client:
    """What the operations of a document share. ``keys``: by security scheme; '' for any. Sizes in bytes."""

    document: Document
    keys: Mapping[str, Secret] = field(default_factory=dict)
    seconds: float = 30.0
    max_bytes: int = 1_000_000
    cut: Cut = CUT
    session: aiohttp.ClientSession | None = None

    def open(self) -> aiohttp.ClientSession:
        import aiohttp

        if self.session is None or self.session.closed:
            self.session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True)
        return self.session

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()

    def withholds_keys(self, operation: Operation) -> bool:
        """Whether there are keys that it is not sent, because its server is not the document's own."""
        return bool(self.keys) and origin(operation.server) != origin(self.document.server)

    def credentials(self, operation: Operation) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Headers and query parameters that let the call in."""
        headers: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        if self.withholds_keys(operation):
            return headers, query
        if not self.document.schemes and "" in self.keys:
            return {"Authorization": f"Bearer {self.keys[''].reveal()}"}, query
        open_ways = [way for way in operation.ways if "" in self.keys or set(way) <= self.keys.keys()]
        for name in (open_ways or operation.ways or ((),))[0]:
            key = self.keys.get(name, self.keys.get(""))
            if key is None:
                continue
            scheme = self.document.schemes.get(name, {})
            if scheme.get("type") == "apiKey" and scheme.get("in") == "query":
                query.append((str(scheme.get("name")), key.reveal()))
            elif scheme.get("type") == "apiKey":
                cookie = scheme.get("in") == "cookie"
                value = f"{scheme.get('name')}={quote(key.reveal())}" if cookie else key.reveal()
                headers["Cookie" if cookie else str(scheme.get("name"))] = value
            elif str(scheme.get("scheme", "")).lower() == "basic":
                headers["Authorization"] = f"Basic {base64.b64encode(key.reveal().encode()).decode()}"
            else:
                headers["Authorization"] = f"Bearer {key.reveal()}"
        return headers, query


@dataclass
class OperationTool:
    """Satisfies ``types.Tool``."""

    operation: Operation
    client: Client

    @property
    def name(self) -> str:
        return self.operation.name

    @cached_property
    def arguments(self) -> Arguments:
        return Arguments(self.operation.schema, self.client.document.root)

    def describe(self) -> str:
        operation = self.operation
        about = f": {operation.about}" if operation.about else ""
        return f"{operation.method.upper()} {one_line(operation.path, 200)}{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the arguments do not fit, or the API does not answer with success."""
        import aiohttp

        arguments = self.arguments.read(text)
        try:
            request = build(self.operation, arguments, *self.client.credentials(self.operation))
            async with asyncio.timeout(self.client.seconds):
                return await self._send(request)
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.client.seconds:g} s.") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            why = redact_known(str(error) or type(error).__name__, self.client.keys.values())
            raise ToolError(f"{self.name} could not be called: {one_line(why, 300)}") from error

    async def close(self) -> None:
        await self.client.close()

    async def _send(self, request: Request) -> Observation:
        from yarl import URL

        url = URL(request.url, encoded=True)
        if origin(str(url)) != origin(self.operation.server):
            raise ToolError(f"{self.name} would be called on another server: not done.")
        for _ in range(MOST_HOPS + 1):
            async with self.client.open().request(
                request.method, url, headers=request.headers, data=request.body, allow_redirects=False
            ) as reply:
                if reply.status in (301, 302, 303, 307, 308) and "Location" in reply.headers:
                    url = self._next_url(url, reply.headers["Location"])
                    continue
                data = await reply.content.read(self.client.max_bytes + 1)
                while len(data) <= self.client.max_bytes and (more := await reply.content.read(65_536)):
                    data += more
                text = decode(data[: self.client.max_bytes], reply.charset)
                safe = redact_known(text, self.client.keys.values())
                return self._observe(Reply(reply.status, reply.content_type, safe, len(data)))
        raise ToolError(f"{self.name} was redirected more than {MOST_HOPS} times.")

    def _next_url(self, url: URL, location: str) -> URL:
        from yarl import URL

        target = url.join(URL(location))
        if self.operation.method not in ("get", "head"):
            raise ToolError(f"{self.name} was redirected; a {self.operation.method.upper()} is not sent again.")
        if target.origin() != url.origin():
            host = one_line(target.host or "", 100)
            raise ToolError(f"{self.name} was redirected to {host}, which is another server: not followed.")
        return target

    def _observe(self, reply: Reply) -> Observation:
        try:
            return reply.observe(self.name, self.client.max_bytes, self.client.cut)
        except ToolError as error:
            if not self.client.withholds_keys(self.operation):
                raise
            server = one_line(self.operation.server, 100)
            raise ToolError(
                f"{error} (It is on {server}, not on the document's own server: no key is sent.)"
            ) from error


def tools_of(client: Client, names: Sequence[str] = (), most: int = 60) -> list[OperationTool]:
    """A tool for each operation, or for those that ``names`` has, by operationId or tag.

    Raises:
        SetupError: a name is not there, nothing can be called, or it is too many for a prompt.
    """
    operations, title = client.document.operations, client.document.title
    choices = {name for one in operations for name in (one.name, *one.tags)}
    if unknown := [name for name in names if name not in choices]:
        raise SetupError(f"{title} has no operation or tag {unknown[0]!r}; it has {listing(choices)}.")
    tools = [OperationTool(one, client) for one in operations if not names or {one.name, *one.tags} & set(names)]
    if not tools:
        why = client.document.left_out[0] if client.document.left_out else "it describes no operation"
        raise SetupError(f"Nothing in {title} can be called: {why}.")
    if len(tools) > most:
        raise SetupError(f"{title} has {len(tools)} operations, too many for a prompt: name those "
                         "that the question needs, by operationId or tag, as FILE#NAME,NAME. "
                         f"It has {listing(choices)}.")  # fmt: skip
    return tools


def listing(names: set[str], most: int = 12) -> str:
    first = [one_line(name, 64) for name in sorted(names)[:most]]
    return ", ".join(first) + (f" and {len(names) - most} more" if len(names) > most else "")
