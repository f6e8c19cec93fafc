"""Call operations of an OpenAPI document: the request that arguments make, and the reply as an observation.

Calls go to the operation's own server only: a redirect to another is not followed. Keys come from the environment, go
to the document's own server only, as the document says, and are taken out of whatever comes back. A reply is data: it
stands in records or in quotes, and its texts hide nothing.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from decisor.errors import SetupError, ToolError
from decisor.system.secrets import Secret, redact_known
from decisor.system.text import clean_text, find_text_codec, fit_on_one_line, quote_on_one_line
from decisor.tools.arguments import ToolArguments
from decisor.tools.openapi import FORM, OpenApiDocument, Operation, OperationParameter, parse_origin
from decisor.tools.python_function import ResultLimits, clip_with_count, observe_result
from decisor.types import Observation, Record, Value

if TYPE_CHECKING:
    import aiohttp

MOST_HOPS = 3
CUT = ResultLimits()
Pairs = list[tuple[str, str]]


@dataclass
class OpenApiClient:
    """The document, keys, limits and session that its operations share."""

    document: OpenApiDocument
    keys: Mapping[str, Secret] = field(default_factory=dict)
    """By security scheme; '' for any."""
    seconds: float = 30.0
    max_bytes: int = 1_000_000
    cut: ResultLimits = CUT
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
        """Return whether keys are withheld because the operation is not on the document's own server."""
        return bool(self.keys) and parse_origin(operation.server) != parse_origin(self.document.server)

    def credentials(self, operation: Operation) -> tuple[dict[str, str], Pairs]:
        """Return the headers and query parameters that authorize a call."""
        # A document of a stranger could name a server of theirs for one operation, to be sent the key.
        if self.withholds_keys(operation):
            return {}, []
        if not self.document.schemes and "" in self.keys:
            return {"Authorization": f"Bearer {self.keys[''].reveal()}"}, []
        headers, query = dict[str, str](), Pairs()
        open_ways = [way for way in operation.ways if "" in self.keys or set(way) <= self.keys.keys()]
        for name in (open_ways or operation.ways or ((),))[0]:
            if (secret := self.keys.get(name, self.keys.get(""))) is None:
                continue
            key, scheme = secret.reveal(), self.document.schemes.get(name, {})
            sent_as = str(scheme.get("name"))
            if scheme.get("type") != "apiKey":
                is_basic = str(scheme.get("scheme", "")).lower() == "basic"
                token = f"Basic {base64.b64encode(key.encode()).decode()}" if is_basic else f"Bearer {key}"
                headers["Authorization"] = token
            elif scheme.get("in") == "query":
                query.append((sent_as, key))
            elif scheme.get("in") == "cookie":
                headers["Cookie"] = f"{sent_as}={quote(key)}"
            else:
                headers[sent_as] = key
        return headers, query


@dataclass
class OperationTool:
    """One operation as a tool. Satisfies ``types.Tool``."""

    operation: Operation
    client: OpenApiClient

    @property
    def name(self) -> str:
        return self.operation.name

    @cached_property
    def arguments(self) -> ToolArguments:
        return ToolArguments(self.operation.schema, self.client.document.root)

    def describe(self) -> str:
        operation = self.operation
        about = f": {operation.about}" if operation.about else ""
        return f"{operation.method.upper()} {fit_on_one_line(operation.path, 200)}{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Call the operation. Raise ToolError if the arguments do not fit or the API does not succeed."""
        import aiohttp

        arguments, keys = self.arguments.read(text), self.client.keys.values()
        try:
            async with asyncio.timeout(self.client.seconds):
                return await self._send(arguments)
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.client.seconds:g} s.") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            why = fit_on_one_line(redact_known(str(error) or type(error).__name__, keys), 300)
            raise ToolError(f"{self.name} could not be called: {why}") from error

    async def close(self) -> None:
        await self.client.close()

    async def _send(self, arguments: Mapping[str, Value]) -> Observation:
        from yarl import URL

        key_headers, key_query = self.client.credentials(self.operation)
        address, headers, body = build_http_request(self.operation, arguments, key_query)
        url, method = URL(address, encoded=True), self.operation.method
        # A second defence: whatever an argument holds, the call stays on the operation's server.
        if parse_origin(str(url)) != parse_origin(self.operation.server):
            raise ToolError(f"{self.name} would be called on another server: not done.")
        for _ in range(MOST_HOPS + 1):
            async with self.client.open().request(
                method.upper(), url, headers={**headers, **key_headers}, data=body, allow_redirects=False
            ) as reply:
                if reply.status not in (301, 302, 303, 307, 308) or "Location" not in reply.headers:
                    return await self._observe(reply)
                target = url.join(URL(reply.headers["Location"]))
            # Whether the first server acted on it is not known.
            if method not in ("get", "head"):
                raise ToolError(f"{self.name} was redirected; a {method.upper()} is not sent again.")
            if target.origin() != url.origin():
                host = fit_on_one_line(target.host or "", 100)
                raise ToolError(f"{self.name} was redirected to {host}, which is another server: not followed.")
            url = target
        raise ToolError(f"{self.name} was redirected more than {MOST_HOPS} times.")

    async def _observe(self, reply: aiohttp.ClientResponse) -> Observation:
        """Convert a reply to records of its JSON, else of its text. Raise ToolError if the status is an error."""
        most, media, cut = self.client.max_bytes, reply.content_type, self.client.cut
        # read() returns what has arrived, which may be a part.
        data = await reply.content.read(most + 1)
        while len(data) <= most and (more := await reply.content.read(65_536)):
            data += more
        raw = redact_known(decode_reply(data[:most], reply.charset), self.client.keys.values())
        text, is_whole = clean_text(raw), len(data) <= most
        if reply.status >= 400:
            server = fit_on_one_line(self.operation.server, 100)
            withheld = f" (It is on {server}, not on the document's own server: no key is sent.)"
            raise ToolError(
                f"{self.name} answered with status {reply.status}: {quote_on_one_line(text.strip())}"
                f"{withheld if self.client.withholds_keys(self.operation) else ''}"
            )
        if not raw.strip():
            return Observation(note=f"(status {reply.status}, an empty reply)")
        if is_whole and (media.endswith("json") or text.lstrip()[:1] in ("{", "[")):
            try:
                return observe_result(json.loads(raw), self.name, cut)
            except (ValueError, RecursionError, ToolError):
                pass  # shown as text
        if "\x00" in raw[:1000] or (not media.startswith("text") and "\ufffd" in text[:1000]):
            size = f"{len(data):,} bytes of {fit_on_one_line(media, 80)}"
            return Observation(note=f"(status {reply.status}, {size}, which is no text)")
        note = "" if is_whole else f"The reply is over {most:,} bytes: ask for less."
        return Observation(
            (Record("r1", text=clip_with_count(text, cut.chars), source=self.name),), note, truncated=not is_whole
        )


def decode_reply(data: bytes, charset: str | None) -> str:
    """Decode a reply by its charset if that is a text encoding, else as UTF-8.

    >>> (decode_reply("Köln".encode("latin-1"), "ISO-8859-1"),
    ...     decode_reply(b"K\\xc3\\xb6ln", "hex"), decode_reply(b"ok", None))
    ('Köln', 'Köln', 'ok')
    """
    return data.decode(find_text_codec(charset or "") or "utf-8", "replace")


def build_http_request(
    operation: Operation, arguments: Mapping[str, Value], key_query: Pairs
) -> tuple[str, dict[str, str], bytes | None]:
    """Return the percent-encoded address, the headers and the body. Raise ToolError if an argument cannot be sent."""
    path, query, body = operation.path, list[str](), None
    headers = {"User-Agent": "decisor", "Accept": "application/json, */*;q=0.5"}
    for name, value in arguments.items():
        if value is None:
            continue
        if name == operation.body:
            fields = value.items() if isinstance(value, Mapping) else ()
            form = urlencode([(key, format_url_value(item)) for key, item in fields])
            body = (form if operation.media == FORM else json.dumps(value, ensure_ascii=False)).encode()
            headers["Content-Type"] = operation.media
            continue
        parameter = operation.parameters[name]
        if parameter.as_json:
            value = json.dumps(value)
        if parameter.place == "header":
            text = ",".join(format_url_value(item) for item in (value if isinstance(value, list) else [value]))
            # A line end would begin a header of the LLM's choice.
            if not text.isascii() or not text.isprintable():
                raise ToolError(f"{name} cannot hold line ends or characters beyond ASCII: it is sent as a header.")
            headers[parameter.wire] = text
        elif parameter.place == "query":
            query += [f"{quote(key, safe='[]')}={text}" for key, text in encode_query_parameter(parameter, value)]
        else:
            text = join_encoded_values(value, parameter.explode)
            # A segment of dots would call another operation of the server, encoded or not.
            if text.lower().replace("%2e", ".") in ("", ".", ".."):
                raise ToolError(f"{name} cannot be {text!r}: it is a part of the path.")
            path = path.replace(f"{{{parameter.wire}}}", text)
    ending = "&".join(filter(None, [*query, urlencode(key_query)]))
    return f"{operation.server}{path}{'?' if ending else ''}{ending}", headers, body


def encode_query_parameter(parameter: OperationParameter, value: Value) -> Pairs:
    """Encode a query parameter in the style form or deepObject."""
    is_deep = parameter.style == "deepObject"
    if isinstance(value, Mapping) and (is_deep or parameter.explode):
        return [(f"{parameter.wire}[{key}]" if is_deep else key, escape_url_value(item)) for key, item in value.items()]
    if isinstance(value, list) and parameter.explode:
        return [(parameter.wire, escape_url_value(item)) for item in value]
    return [(parameter.wire, join_encoded_values(value))]


def join_encoded_values(value: Value, explode: bool = False) -> str:
    """Join percent-encoded values by commas, so that each stays one segment of a path.

    >>> join_encoded_values(["a b", 2]), join_encoded_values({"x": 1}, explode=True), join_encoded_values("../etc")
    ('a%20b,2', 'x=1', '..%2Fetc')
    """
    if isinstance(value, Mapping):
        return ",".join(("=" if explode else ",").join(map(escape_url_value, pair)) for pair in value.items())
    return ",".join(map(escape_url_value, value if isinstance(value, list) else [value]))


def escape_url_value(value: Value) -> str:
    return quote(format_url_value(value), safe="")


def format_url_value(value: Value) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def build_operation_tools(client: OpenApiClient, names: Sequence[str] = (), most: int = 60) -> list[OperationTool]:
    """Build a tool for each operation, or for each that ``names`` selects by operationId or tag.

    Raises:
        SetupError: a name is not there, nothing can be called, or it is too many for a prompt.
    """
    operations, title = client.document.operations, client.document.title
    choices = {name for operation in operations for name in (operation.name, *operation.tags)}
    if unknown := [name for name in names if name not in choices]:
        raise SetupError(f"{title} has no operation or tag {unknown[0]!r}; it has {list_sorted_names(choices)}.")
    tools = [OperationTool(one, client) for one in operations if not names or {one.name, *one.tags} & set(names)]
    if not tools:
        why = (*client.document.left_out, "it describes no operation")[0]
        raise SetupError(f"Nothing in {title} can be called: {why}.")
    if len(tools) > most:
        raise SetupError(
            f"{title} has {len(tools)} operations, too many for a prompt: name those "
            "that the question needs, by operationId or tag, as FILE#NAME,NAME. "
            f"It has {list_sorted_names(choices)}."
        )
    return tools


def list_sorted_names(names: set[str]) -> str:
    first = [fit_on_one_line(name, 64) for name in sorted(names)[:12]]
    return ", ".join(first) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
