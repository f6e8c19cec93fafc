"""The tools over streamable HTTP, behind what every request to the page meets: is it for us, from us, small, whose?"""

from __future__ import annotations

import socket
from dataclasses import dataclass

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from decisor.mcp.tools import Server
from decisor.server.connections import BACKLOG, connection_class
from decisor.server.guard import Guard
from decisor.server.hosts import Hosts
from decisor.server.serve import GRACE_SECONDS, MOST_HEAD
from decisor.server.users import Users

PATH = "/mcp"
ENTER = "send the one that was printed for you"


@dataclass(frozen=True)
class Listening:
    """Where, under which names, and for whom."""

    socket: socket.socket
    hosts: Hosts
    users: Users


async def serve_http(server: Server, place: Listening) -> None:
    """Until it is interrupted. The guard has looked at Host and Origin."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    config = uvicorn.Config(
        Guard(app, place.hosts, place.users, ENTER), log_level="critical", access_log=False, server_header=False,
        date_header=False, ws="none", lifespan="on", timeout_graceful_shutdown=GRACE_SECONDS, proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEAD, http=connection_class(), backlog=BACKLOG,
    )  # fmt: skip
    await uvicorn.Server(config).serve(sockets=[place.socket])
