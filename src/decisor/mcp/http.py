"""The tools over streamable HTTP, behind what every request to the page meets: is it for us, from us, small, whose?"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from decisor.server.guard import (
    CHANGING,
    Refusal,
    check_body_headers,
    check_place,
    first,
    heads_of,
    read_body,
    refuse,
    replaying,
    with_headers,
)
from decisor.server.hosts import Hosts
from decisor.server.serve import GRACE_SECONDS, MOST_HEAD
from decisor.server.users import Users

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"


@dataclass(frozen=True)
class Listening:
    """Where, under which names, and for whom."""

    socket: socket.socket
    hosts: Hosts
    users: Users


@dataclass(frozen=True)
class McpGuard:
    """An ASGI application around the protocol's."""

    app: ASGIApp
    hosts: Hosts
    users: Users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        send = with_headers(send)
        try:
            heads = heads_of(scope)
            check_place(scope, heads, self.hosts)
            check_body_headers(scope, heads)
            if self.users.of(first(heads, "authorization"), "") is None:
                raise Refusal(401, "This needs a token: send the one that decisor mcp printed, as "
                                   "Authorization: Bearer TOKEN.")  # fmt: skip
            if scope["method"] in CHANGING:
                receive = replaying(await read_body(receive), receive)
        except Refusal as refusal:
            await refuse(send, refusal)
            return
        await self.app(scope, receive, send)


async def serve_http(server: MCPServer[Any], place: Listening) -> None:
    """Until it is interrupted. The guard has looked at Host and Origin."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    config = uvicorn.Config(
        McpGuard(app, place.hosts, place.users), log_level="critical", access_log=False, server_header=False,
        date_header=False, ws="none", lifespan="on", timeout_graceful_shutdown=GRACE_SECONDS, proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEAD,
    )  # fmt: skip
    await uvicorn.Server(config).serve(sockets=[place.socket])
