"""The limits of a worker process: which of them a system enforces, and how much memory the process may hold.

The engine that only reads, the allow list and the caps on rows and bytes hold wherever Python runs. An engine keeps
addresses and memory that a heavy query took, to use them again; what another part of the process then asks for is
refused. So a process with little memory left answers and ends: the next query gets a new one.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from decisor.errors import SetupError
from decisor.system.extras import logger

NO_PROCESSES = ("emscripten", "wasi", "ios", "tvos", "watchos")
MEMORY_TOLD = ("linux", "android", "cygwin")
"""Systems whose /proc tells how much memory a process holds."""
STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class PlatformLimits:
    """The limits of worker processes that a system enforces."""

    time: bool
    """A worker can be killed, so that no query outlives its seconds."""
    memory: bool
    """A worker that holds too much is killed."""
    server: bool
    """A server ends the query of a killed worker at once; if False, at its own statement timeout."""

    @property
    def lines(self) -> list[str]:
        """Sentences for people about the limits that are not enforced."""
        missing = []
        if not self.time:
            missing.append("queries cannot be killed on this system, so databases are not opened")
        elif not self.memory:
            missing.append("memory limit not enforced on this system")
        if self.time and not self.server:
            missing.append("a server ends a query that is given up at its own time limit, not at once")
        return missing


def limits_on(platform: str, proc: bool) -> PlatformLimits:
    """Return the limits that a platform enforces. platform: as in ``sys.platform``. proc: whether /proc exists.

    >>> limits_on("darwin", proc=False).lines
    ['memory limit not enforced on this system']
    """
    if platform in NO_PROCESSES:
        return PlatformLimits(time=False, memory=False, server=False)
    # Windows tells a child nothing of its parent, and SIGTERM ends a worker before it could cancel a query.
    if platform == "win32":
        return PlatformLimits(time=True, memory=False, server=False)
    return PlatformLimits(time=True, memory=proc and platform in MEMORY_TOLD, server=True)


def limits_of_this_system() -> PlatformLimits:
    return limits_on(sys.platform, STATM.exists())


def check_platform(limits: PlatformLimits) -> None:
    """Warn once about each limit that this system does not enforce, before a worker starts.

    Raises:
        SetupError: nothing could end a query here.
    """
    if not limits.time:
        raise SetupError("Databases are not opened on this system: a query without end could not be killed. Use Linux.")
    for line in limits.lines:
        warn_once(line)


@cache
def warn_once(line: str) -> None:
    """Write a warning, once in a process."""
    logger.warning("sandbox: %s", line)


PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
VMSTAT = Path("/proc/vmstat")
LEAST_SHARE = 1 / 4
"""Share of the memory that a process had left at first; with less it is replaced."""


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process holds; 0 if the system does not tell."""
    return read_memory_sizes(Path(f"/proc/{pid}/statm"))[1]


def processes_killed_for_memory() -> int | None:
    """Return how many processes the system has killed for lack of memory; None if it does not tell."""
    try:
        words = VMSTAT.read_text().split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return None


def read_memory_sizes(statm: Path) -> tuple[int, int]:
    """Return the bytes of addresses and of memory that a process holds; 0 if the system does not tell."""
    try:
        addresses, memory = statm.read_text().split()[:2]
        return int(addresses) * PAGE, int(memory) * PAGE
    except (OSError, ValueError):
        return 0, 0


@dataclass(frozen=True, slots=True)
class MemoryRoom:
    """The memory that this process may have, in bytes."""

    addresses: int
    """Limit of its address space."""
    memory: int
    """Limit of what it holds in RAM."""
    first: int
    """Bytes that were left at first."""

    def is_short(self) -> bool:
        """Return whether too little memory is left for the next query."""
        addresses, memory = read_memory_sizes(STATM)
        # After a heavy query 43 of 96 were stopped for what it had taken (docs/measurements/sandbox.md).
        return min(self.addresses - addresses, self.memory - memory) < self.first * LEAST_SHARE


def limit_worker_memory(memory_mb: int) -> MemoryRoom | None:
    """Limit the addresses of this process to its present ones plus the cap. None if nothing is limited."""
    try:
        import resource
    except ImportError:
        return None
    addresses, memory = read_memory_sizes(STATM)
    cap = memory_mb * 2**20
    if not addresses:
        return None
    # RLIMIT_AS counts addresses, of which an engine and its libraries have taken many before the first query.
    resource.setrlimit(resource.RLIMIT_AS, (addresses + cap, addresses + cap))
    return MemoryRoom(addresses + cap, cap, max(0, cap - memory))
