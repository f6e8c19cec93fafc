"""Limits on connections: a deadline for each request head, and at most so many open ones per address."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS, GRACE_SECONDS = 10.0, 1
MOST_HEAD = 32_768
"""Bytes of a request's line and headers."""
BACKLOG = 128
"""Connections that wait to be accepted. asyncio accepts as many at once, before any of them can be counted."""
MOST_OF_ONE = 1_024
MOST = 4_096
SHARE_OF_FILES, SHARE_OF_ONE = 0.5, 0.75
"""Connections in the files that this process may have open, and those of one address in all connections."""


@dataclass(eq=False)
class Connections:
    """The open connections of one server."""

    most: int = MOST
    """Limit for all addresses."""
    most_of_one: int = MOST_OF_ONE
    """Limit for one address."""
    count_of_address: Counter[str] = field(default_factory=Counter)
    idle_of_address: dict[str, dict[HttpConnection, None]] = field(default_factory=dict)
    """Connections without a request by address, the longest waiting first."""

    def admit(self, connection: HttpConnection) -> bool:
        """Count a connection in; return False if there is no room and no idle connection to close."""
        address = connection.address
        # An address at its limit makes room among its own connections.
        if self.count_of_address[address] >= self.most_of_one and not self.evict(address):
            return False
        # At the limit of all, the address with the most connections gives up one that is idle.
        if self.count_of_address.total() >= self.most and not any(
            self.evict(name) for name, _ in self.count_of_address.most_common()
        ):
            return False
        self.count_of_address[address] += 1
        self.wait(connection)
        return True

    def evict(self, address: str) -> bool:
        """Close the idle connection of an address that has waited longest; return False if there is none."""
        oldest = next(iter(self.idle_of_address.get(address, ())), None)
        if oldest is not None:
            self.leave(oldest)
            oldest.transport.abort()
        return oldest is not None

    def wait(self, connection: HttpConnection) -> None:
        """Note that from now on no request of the connection is being answered."""
        self.idle_of_address.setdefault(connection.address, {}).setdefault(connection)

    def work(self, connection: HttpConnection) -> None:
        """Note that a request of the connection is being answered."""
        idle = self.idle_of_address.get(connection.address, {})
        idle.pop(connection, None)
        # Empty entries would pile up, one for each address that ever called.
        if not idle:
            self.idle_of_address.pop(connection.address, None)

    def leave(self, connection: HttpConnection) -> None:
        self.work(connection)
        if connection.is_counted:
            connection.is_counted = False
            self.count_of_address[connection.address] -= 1
            if not self.count_of_address[connection.address]:
                del self.count_of_address[connection.address]


class HttpConnection(H11Protocol):
    """A connection of uvicorn with a deadline for each head. A subclass names its ``crowd``."""

    crowd: Connections
    address = ""
    is_counted = False
    deadline: TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.is_counted = self.crowd.admit(self)
        if not self.is_counted:
            transport.abort()
            return
        self.begin_deadline()

    def data_received(self, data: bytes) -> None:
        # A byte now and then does not begin the deadline again: only a request that is whole ends it.
        if self.is_idle:
            self.begin_deadline()
        super().data_received(data)
        if not self.is_idle:
            self.end_deadline()
            self.crowd.work(self)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.is_idle and self.is_counted:
            self.crowd.wait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end_deadline()
        self.crowd.leave(self)
        super().connection_lost(exc)

    def begin_deadline(self) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def end_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def make_connection_class() -> type[HttpConnection]:
    """Return the class that uvicorn uses for each connection of one server."""
    most = connection_limit()
    crowd = Connections(most, min(MOST_OF_ONE, max(1, int(most * SHARE_OF_ONE))))

    # uvicorn makes the connections and hands them nothing: what one server shares stands in its class.
    class Own(HttpConnection):
        pass

    Own.crowd = crowd
    return Own


def connection_limit() -> int:
    """Return the most connections that leave enough files for databases and traces."""
    with suppress(ImportError):
        # Windows has no such module.
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return min(MOST, max(1, int(soft * SHARE_OF_FILES))) if soft > 0 else MOST
    return MOST


class ProcessConnection(HttpConnection):
    """A connection of the one server of a process; several processes are told of it by its name."""

    crowd = make_connection_class().crowd
