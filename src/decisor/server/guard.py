"""What every request meets before anything reads it: is it for us, from us, small, and whose is it?

Host          one of ours, else 421: a name that was made to lead here (DNS rebinding) gets nothing
Origin        our own page or none, else 403
body          JSON, plain, of one length, small, and soon there, else 415, 400, 413 or 408
token         where there are users: in a header or a cookie, else 401
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from decisor.server.hosts import Hosts
from decisor.server.users import User, Users

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 2**20
BODY_SECONDS = 10.0
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[bytes, bytes] = {
    b"content-security-policy": CSP.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"no-store",
}
"""Of every response that has none of its own by the name."""
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
Heads = Mapping[str, list[str]]


class Refusal(Exception):
    """A request that goes no further: status and one line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Guard:
    """An ASGI application around another one. The user of a request is in its scope, as ``decisor_user``. ``inside``:
    how the paths begin that programs use and that need a token, but for ``free``; ``enter``: how to come by one.
    ``cookie``: the name of ours, '' where none is taken."""

    app: ASGIApp
    hosts: Hosts
    users: Users
    enter: str
    inside: str = "/"
    free: str = ""
    cookie: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        send = with_headers(send)
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            heads = heads_of(scope)
            check_place(scope, heads, self.hosts, self.inside)
            check_body_headers(scope, heads)
            scope["decisor_user"] = self.user_of(scope["path"], heads)
            body = await read_body(receive) if scope["method"] in CHANGING else b""
        except Refusal as refusal:
            await refuse(send, refusal)
            return
        await self.app(scope, replaying(body, receive) if scope["method"] in CHANGING else receive, send)

    def user_of(self, path: str, heads: Heads) -> User | None:
        """Whose request it is; None where it may be anybody's. Raises Refusal where it has to say so."""
        cookie = cookie_of(first(heads, "cookie"), self.cookie) if self.cookie else ""
        user = self.users.of(first(heads, "authorization"), cookie)
        if user is None and path.startswith(self.inside) and path != self.free:
            raise Refusal(401, f"This needs a token: {self.enter}, as Authorization: Bearer TOKEN.")
        return user


def heads_of(scope: Scope) -> Heads:
    heads: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        heads.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return heads


def first(heads: Heads, name: str) -> str:
    return heads.get(name, [""])[0]


def check_place(scope: Scope, heads: Heads, hosts: Hosts, inside: str) -> None:
    """Whether it was sent to us, by nobody else's page."""
    if not scope["path"].startswith("/"):
        raise Refusal(400, "The target of a request is a path.")
    host = first(heads, "host")
    if len(heads.get("host", [])) != 1 or not hosts.is_ours(host):
        raise Refusal(421, "This server does not go by that name: start it with --allow-host NAME.")
    origins = heads.get("origin", [])
    if len(origins) > 1 or (origins and not hosts.is_same(origins[0], host)):
        raise Refusal(403, "Only this server's own page may ask.")
    if scope["path"].startswith(inside) and first(heads, "sec-fetch-site") not in ("", "same-origin", "none"):
        raise Refusal(403, "Only this server's own page may ask.")


def check_body_headers(scope: Scope, heads: Heads) -> None:
    if "transfer-encoding" in heads and "content-length" in heads:
        raise Refusal(400, "A body has one length.")
    if first(heads, "content-encoding") not in ("", "identity"):
        raise Refusal(415, "A body is sent as it is, without Content-Encoding.")
    length = first(heads, "content-length")
    if length and (not length.isdecimal() or int(length[:12]) > MOST_BYTES):
        raise Refusal(413, f"A body has at most {MOST_BYTES:,} bytes.")
    kind = first(heads, "content-type").partition(";")[0].strip().lower()
    if scope["method"] in CHANGING and scope["method"] != "DELETE" and kind != "application/json":
        raise Refusal(415, "A body is JSON: send Content-Type: application/json.")


async def read_body(receive: Receive) -> bytes:
    """All of it. Raises Refusal where it is too large or does not come."""
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "The body ended early.")
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > MOST_BYTES:
                    raise Refusal(413, f"A body has at most {MOST_BYTES:,} bytes.")
    except TimeoutError as error:
        raise Refusal(408, "The body did not come.") from error
    return b"".join(parts)


def replaying(body: bytes, receive: Receive) -> Receive:
    """The body once, then what comes: that the client left."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def cookie_of(header: str, name: str) -> str:
    """
    >>> cookie_of("a=1; decisor-8765=xyz", "decisor-8765")
    'xyz'
    """
    try:
        cookies = SimpleCookie(header)
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in own]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sending


async def refuse(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": str(refusal)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close")]  # fmt: skip
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
