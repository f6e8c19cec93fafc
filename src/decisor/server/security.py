"""The guard of the server: names, origins, bodies, tokens, and caps on connections.

Every request meets it before anything reads the request:

    Host      one of ours, else 421: a name that was made to lead here (DNS rebinding) gets nothing
    Origin    our own page or none, else 403
    body      JSON, plain, of one length, small, and soon there, else 415, 400, 413 or 408
    user      where there are users, by a token, a cookie or a proxy's header, else 401; only hashes of tokens are kept

Connections have deadlines and caps before the guard can judge anything of a request (``server.connections``):

    head      a request's line and headers are there within ``HEAD_SECONDS``, else the connection is closed
    address   one address has at most ``MOST_OF_ONE`` connections, and never all
    all       together they leave files for databases and traces

If there are too many, the one that has waited longest without a request makes room: half-sent heads never keep
somebody else out. A connection whose request is being answered is never closed for another.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from decisor.server.identity import LOGIN, Refusal
from decisor.server.users import User, Users
from decisor.trace.telemetry import continue_trace

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Hosts:
    """The names that a server answers to."""

    names: frozenset[str]
    """Names with their port."""
    proxied: frozenset[str] = frozenset()
    """Names that a proxy answers to, with any port, also over https."""
    numbers: int = 0
    """Port with which any numeric address is ours, 0 for none: nobody can have a name of that form."""

    def is_ours(self, host: str) -> bool:
        host = host.lower()
        name, _, port = host.rpartition(":")
        if host in self.names or host in self.proxied or (port.isdecimal() and name in self.proxied):
            return True
        return bool(self.numbers) and port == str(self.numbers) and is_ip_address(name)

    def is_same(self, origin: str, host: str) -> bool:
        """Return whether a page of ``origin`` is one of ours."""
        parts = urlsplit(origin)
        plain = f"{parts.scheme}://{parts.netloc}"
        # Browsers send an origin without path or user: anything else was made by hand.
        if origin != plain or parts.netloc.lower() != host.lower():
            return False
        name = host.lower().rpartition(":")[0] or host.lower()
        # https is what a proxy makes of us, so it counts only for the names of a proxy.
        is_proxied = host.lower() in self.proxied or name in self.proxied
        return parts.scheme == "http" or (parts.scheme == "https" and is_proxied)


def is_ip_address(name: str) -> bool:
    """Return whether a name is an address in numbers.

    >>> (is_ip_address("192.168.1.7"), is_ip_address("[fe80::1]"),
    ...     is_ip_address("2130706433"), is_ip_address("evil.example"))
    (True, True, False, False)
    """
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def is_local_host(host: str) -> bool:
    """Return whether a host is this machine alone.

    >>> is_local_host("127.0.0.1"), is_local_host("localhost"), is_local_host("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (is_ip_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def hosts_of(host: str, port: int, others: Sequence[str] = ()) -> Hosts:
    """Return the names of a server that listens on ``host``. others: names that a person allows besides its own."""
    proxied = frozenset(name.lower() for name in others)
    local = frozenset(f"{name}:{port}" for name in LOCAL)
    if is_local_host(host):
        return Hosts(local, proxied)
    own = {f"{name.lower()}:{port}" for name in (host, socket.gethostname(), socket.getfqdn())}
    return Hosts(local | own, proxied, numbers=port)


MOST_BYTES, MOST_FILE = 2**20, 100 * 2**20
"""Bytes of a body of JSON, and of an uploaded file."""
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
"""Headers of every response that has set none of the same name."""
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class RequestGuard:
    """An ASGI application that checks each request before another one gets it.

    The user of a request is in its scope, as ``decisor_user``.
    """

    app: ASGIApp
    hosts: Hosts
    users: Users
    enter: str
    """Sentence on how to come by a token."""
    inside: str | tuple[str, ...] = "/"
    """Beginnings of the paths that programs use and that need a token."""
    free: str = ""
    """Path below ``inside`` that needs none."""
    cookie: str = ""
    """Name of the session cookie, '' if none is taken."""
    files: str = ""
    """Beginning of the paths that take files with PUT, '' if none does. What takes them counts their bytes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        send = with_headers(send)
        if scope["type"] != "http":
            # No route speaks WebSocket; 1008 is a violation of policy (RFC 6455, section 7.4.1).
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            # Host and Origin go first: a stranger's page does not even learn whether a token is needed.
            heads = Headers(scope=scope)
            check_request_origin(scope, heads, self.hosts, self.inside)
            is_file = bool(self.files) and scope["method"] == "PUT" and scope["path"].startswith(self.files)
            check_body_headers(scope, heads, is_file)
            scope["decisor_user"] = await self.user_of(scope, heads)
            # The whole body is read here, so that its limits hold for every route but that of files.
            is_read = scope["method"] in CHANGING and not is_file
            body = await read_request_body(receive) if is_read else b""
        except Refusal as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        with continue_trace(heads.get("traceparent", "")):
            await self.app(scope, replay_body(body, receive) if is_read else receive, send)

    async def user_of(self, scope: Scope, heads: Headers) -> User | None:
        """Return the user of a request; None if it may be anybody's. Raise Refusal if the request needs a user."""
        if not scope["path"].startswith(self.inside) or scope["path"] == self.free:
            return None
        cookie = cookie_of(heads.get("cookie", ""), self.cookie) if self.cookie else ""
        user = await self.users.of(heads, cookie, (scope["client"] or ("",))[0])
        if user is None and self.users.login and self.cookie:
            raise Refusal(401, f"Sign in first, at {self.users.login.address}{LOGIN}.", LOGIN)
        if user is None:
            raise Refusal(401, f"This needs a token: {self.enter}, as Authorization: Bearer TOKEN.")
        return user


def check_request_origin(scope: Scope, heads: Headers, hosts: Hosts, inside: str | tuple[str, ...]) -> None:
    """Raise Refusal unless a request was sent to this server, and by no other page than its own."""
    if not scope["path"].startswith("/"):
        raise Refusal(400, "The target of a request is a path.")
    host = heads.get("host", "")
    # Two Host headers could be read in two ways.
    if len(heads.getlist("host")) != 1 or not hosts.is_ours(host):
        raise Refusal(421, "This server does not go by that name: start it with --allow-host NAME.")
    origins = heads.getlist("origin")
    if len(origins) > 1 or (origins and not hosts.is_same(origins[0], host)):
        raise Refusal(403, "Only this server's own page may ask.")
    # A GET of another site's page has no Origin, but browsers tell its site in Sec-Fetch-Site.
    if scope["path"].startswith(inside) and heads.get("sec-fetch-site", "") not in ("", "same-origin", "none"):
        raise Refusal(403, "Only this server's own page may ask.")


def check_body_headers(scope: Scope, heads: Headers, is_file: bool = False) -> None:
    # With two lengths one request can be smuggled within another (RFC 9112, section 6.1).
    if "transfer-encoding" in heads and "content-length" in heads:
        raise Refusal(400, "A body has one length.")
    if heads.get("content-encoding", "") not in ("", "identity"):
        raise Refusal(415, "A body is sent as it is, without Content-Encoding.")
    length = heads.get("content-length", "")
    # Cut first: int() refuses thousands of digits with an error of its own.
    most = MOST_FILE if is_file else MOST_BYTES
    if length and (not length.isdecimal() or int(length[:12]) > most):
        raise Refusal(413, f"A body has at most {most:,} bytes.")
    kind = heads.get("content-type", "").partition(";")[0].strip().lower()
    # No form of another site can send these types.
    wanted = "application/octet-stream" if is_file else "application/json"
    if scope["method"] in CHANGING and scope["method"] != "DELETE" and kind != wanted:
        raise Refusal(415, f"{'A file is bytes' if is_file else 'A body is JSON'}: send Content-Type: {wanted}.")


async def read_request_body(receive: Receive) -> bytes:
    """Read the whole body; raise Refusal if it is too large or does not come."""
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
                # Count what comes: the header with the length may be missing.
                if size > MOST_BYTES:
                    raise Refusal(413, f"A body has at most {MOST_BYTES:,} bytes.")
    except TimeoutError as error:
        raise Refusal(408, "The body did not come.") from error
    return b"".join(parts)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that gives the body once, then the later message that the client left."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def cookie_of(header: str, name: str) -> str:
    """Return the value of a cookie, '' if it is not there.

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


def refusal_response(refusal: Refusal) -> JSONResponse:
    # What is left of an unread body must not be taken for a request.
    headers = {"connection": "close"} | ({"www-authenticate": "Bearer"} if refusal.status == 401 else {})
    content = {"error": str(refusal)} | ({"login": refusal.login} if refusal.login else {})
    return JSONResponse(content, refusal.status, headers)
