"""What a process started, and whether it ended with it."""

import socket
import time
from collections.abc import Sequence
from pathlib import Path


def children(process: int) -> list[int]:
    """Find the processes that it started, and those that they started: a worker is a child of a fork server."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(word) for path in tasks for word in path.read_text().split()]
    return [*found, *(one for child in found for one in children(child))]


def end(processes: Sequence[int], seconds: float = 60.0) -> bool:
    """Waits until none of them runs; whether it came to that. One that nobody has waited for yet has ended."""
    ends = time.monotonic() + seconds
    while any(map(runs, processes)):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
