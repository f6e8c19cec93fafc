"""Which limits of a worker process hold on which system.

The engine that only reads, the allow list and the caps on rows and bytes hold wherever Python runs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from decisor.errors import SetupError
from decisor.log import logger

NO_PROCESSES = ("emscripten", "wasi", "ios", "tvos", "watchos")
MEMORY_TOLD = ("linux", "android", "cygwin")
"""Systems whose /proc tells how much memory a process holds."""
STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Limits:
    """``time``: a worker can be killed, so no query outlives its seconds. ``memory``: so is one that holds too much.
    ``alone``: a worker ends itself where its parent is gone. ``server``: a server ends what a killed worker ran at
    once, else at the statement timeout (PostgreSQL, MySQL) or when it notices.
    """

    time: bool
    memory: bool
    alone: bool
    server: bool

    @property
    def lines(self) -> list[str]:
        """For people: what does not hold."""
        missing = []
        if not self.time:
            missing.append("queries cannot be killed on this system, so databases are not opened")
        elif not self.memory:
            missing.append("memory limit not enforced on this system")
        if self.time and not self.server:
            missing.append("a server ends a query that is given up at its own time limit, not at once")
        return missing


def limits_on(platform: str, proc: bool) -> Limits:
    """``platform`` as ``sys.platform`` has it; ``proc``: /proc is there.

    >>> limits_on("darwin", proc=False).lines
    ['memory limit not enforced on this system']
    """
    if platform in NO_PROCESSES:
        return Limits(time=False, memory=False, alone=False, server=False)
    if platform == "win32":
        return Limits(time=True, memory=False, alone=False, server=False)
    return Limits(time=True, memory=proc and platform in MEMORY_TOLD, alone=True, server=True)


def here() -> Limits:
    return limits_on(sys.platform, STATM.exists())


def ready(limits: Limits) -> None:
    """Before a worker starts: warns once of what does not hold.

    Raises:
        SetupError: nothing could end a query here.
    """
    if not limits.time:
        raise SetupError("Databases are not opened on this system: a query without end could not be killed. Use Linux.")
    for line in limits.lines:
        warn(line)


@cache
def warn(line: str) -> None:
    """Once in a process."""
    logger.warning("sandbox: %s", line)
