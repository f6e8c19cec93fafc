"""Operations of an OpenAPI document as tools: the request that arguments make, and the reply as an observation.

Calls go to the operation's own server only: a redirect to another is not followed. Keys come from the environment, are
sent where the document says, and are taken out of whatever comes back.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote

from decisor.errors import SetupError, ToolError
from decisor.secrets import Secret, redact_known
from decisor.tools.functions.arguments import Arguments
from decisor.tools.functions.openapi import Document, Operation
from decisor.tools.functions.openapi_request import Request, build
from decisor.tools.functions.results import Cut, clipped, observed
from decisor.types import Observation, Record

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

    def credentials(self, operation: Operation) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Headers and query parameters that let the call in."""
        headers: dict[str, str] = {}
        query: list[tuple[str, str]] = []
        if not self.document.schemes and "" in self.keys:
            return {"Authorization": f"Bearer {self.keys[''].reveal()}"}, query
        known = [way for way in operation.ways if "" in self.keys or set(way) <= self.keys.keys()]
        for name in (known or operation.ways or ((),))[0]:
            key = self.keys.get(name, self.keys.get(""))
            if key is None:
                continue
            scheme = self.document.schemes.get(name, {})
            if scheme.get("type") == "apiKey" and scheme.get("in") == "query":
                query.append((str(scheme.get("name")), key.reveal()))
            elif scheme.get("type") == "apiKey":
                cookie = scheme.get("in") == "cookie"
                told = f"{scheme.get('name')}={quote(key.reveal())}" if cookie else key.reveal()
                headers["Cookie" if cookie else str(scheme.get("name"))] = told
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
        what = self.operation
        about = f": {clipped(what.about, 400)}" if what.about else ""
        return f"{what.method.upper()} {what.path}{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the arguments do not fit, or the API does not answer with success."""
        import aiohttp

        arguments = self.arguments.read(text)
        request = build(self.operation, arguments, *self.client.credentials(self.operation))
        try:
            async with asyncio.timeout(self.client.seconds):
                return await self._send(request)
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.client.seconds:g} s.") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            told = redact_known(str(error) or type(error).__name__, self.client.keys.values())
            raise ToolError(f"{self.name} could not be called: {told}") from error

    async def close(self) -> None:
        await self.client.close()

    async def _send(self, request: Request) -> Observation:
        from yarl import URL

        url = URL(request.url, encoded=True)
        for _ in range(MOST_HOPS + 1):
            async with self.client.open().request(
                request.method, url, headers=request.headers, data=request.body, allow_redirects=False
            ) as reply:
                if reply.status in (301, 302, 303, 307, 308) and "Location" in reply.headers:
                    url = self._followed(url, reply.headers["Location"])
                    continue
                held = await reply.content.read(self.client.max_bytes + 1)
                while len(held) <= self.client.max_bytes and (more := await reply.content.read(65_536)):
                    held += more
                return self._observed(reply.status, reply.content_type, reply.get_encoding(), held)
        raise ToolError(f"{self.name} was redirected more than {MOST_HOPS} times.")

    def _followed(self, url: URL, location: str) -> URL:
        from yarl import URL

        target = url.join(URL(location))
        if self.operation.method not in ("get", "head"):
            raise ToolError(f"{self.name} was redirected; a {self.operation.method.upper()} is not sent again.")
        if target.origin() != url.origin():
            raise ToolError(f"{self.name} was redirected to {target.host}, which is another server: not followed.")
        return target

    def _observed(self, status: int, media: str, encoding: str, held: bytes) -> Observation:
        cut = len(held) > self.client.max_bytes
        text = redact_known(held[: self.client.max_bytes].decode(encoding, "replace"), self.client.keys.values())
        if status >= 400:
            raise ToolError(f"{self.name} answered with status {status}: {clipped(text.strip(), 500)}")
        if not text.strip():
            return Observation(note=f"(status {status}, an empty reply)")
        if not cut and (media.endswith("json") or text.lstrip()[:1] in ("{", "[")):
            try:
                return observed(json.loads(text), self.name, self.client.cut)
            except (ValueError, RecursionError):
                pass  # shown as it is
        if "\x00" in text[:1000] or (not media.startswith("text") and "\ufffd" in text[:1000]):
            return Observation(note=f"(status {status}, {len(held):,} bytes of {media}, which is no text)")
        note = f"The reply is over {self.client.max_bytes:,} bytes: ask for less." if cut else ""
        return Observation(
            (Record("r1", text=clipped(text, self.client.cut.chars), source=self.name),), note, truncated=cut
        )


def tools_of(client: Client, named: Sequence[str] = (), most: int = 60) -> list[OperationTool]:
    """A tool for each operation, or for those ``named`` by operationId or tag.

    Raises:
        SetupError: a name is not there, nothing can be called, or it is too many for a prompt.
    """
    held = client.document.operations
    known = {name for one in held for name in (one.name, *one.tags)}
    if unknown := [name for name in named if name not in known]:
        raise SetupError(f"{client.document.title} has no operation or tag {unknown[0]!r}; it has {listed(known)}.")
    wanted = [one for one in held if not named or {one.name, *one.tags} & set(named)]
    if not wanted:
        why = client.document.left_out[0] if client.document.left_out else "it describes no operation"
        raise SetupError(f"Nothing in {client.document.title} can be called: {why}.")
    if len(wanted) > most:
        raise SetupError(f"{client.document.title} has {len(wanted)} operations, too many for a prompt: name those "
                         "that the question needs, by operationId or tag, as FILE#NAME,NAME. "
                         f"It has {listed(known)}.")  # fmt: skip
    return [OperationTool(one, client) for one in wanted]


def listed(names: set[str], most: int = 12) -> str:
    shown = sorted(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
