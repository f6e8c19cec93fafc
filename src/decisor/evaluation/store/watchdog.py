"""Ends waits for a server that gives no sign of life: a thread that waits in a socket hears of nothing else."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LOOK_SECONDS = 0.5


class Watchdog:
    """``fileno``: of the connection. Where a wait takes longer than it may, the connection is shut down under it, so
    that the driver raises its own error at once."""

    def __init__(self, fileno: Callable[[], int]) -> None:
        self.fileno = fileno
        self.deadlines: list[float] = []
        self.closed = threading.Event()
        threading.Thread(target=self._watch, name="store watchdog", daemon=True).start()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """What is inside may wait for so long. Limits nest: the innermost counts, and each begins anew after it."""
        self.deadlines.append(time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadlines.pop()
            if self.deadlines:
                self.deadlines[-1] = time.monotonic() + seconds

    @contextmanager
    def pause(self) -> Iterator[None]:
        """What is inside does not wait for the server."""
        self.deadlines.append(float("inf"))
        try:
            yield
        finally:
            self.deadlines.pop()

    def interrupt(self) -> None:
        """Shut the connection down now; safe from any thread."""
        with suppress(Exception), socket.socket(fileno=os.dup(self.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.closed.set()

    def _watch(self) -> None:
        while not self.closed.wait(LOOK_SECONDS):
            deadlines = self.deadlines[-1:]
            if deadlines and time.monotonic() > deadlines[0]:
                self.interrupt()
