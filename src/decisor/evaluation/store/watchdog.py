"""A connection to PostgreSQL that ends if the server is silent: a thread that waits in a socket hears nothing else."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")


def connect(address: str, seconds: float) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to a server that is given up after ``seconds`` without an answer."""
    import psycopg

    class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
        def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
            return super().wait(self.watch(gen), *arguments, **options)

        def watch(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
            deadline, event = time.monotonic() + seconds, None
            while True:
                try:
                    wanted = gen.send(event)
                except StopIteration as end:
                    result: T = end.value
                    return result
                event = yield wanted  # psycopg resumes it every 0.1 s, with 0 if nothing came
                if not event and time.monotonic() > deadline:
                    shut_down(self)

    return WatchedConnection.connect(address, autocommit=True, prepare_threshold=2, client_encoding="UTF8")


def shut_down(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """End a wait for the server, from any thread: the driver raises its own error at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)
