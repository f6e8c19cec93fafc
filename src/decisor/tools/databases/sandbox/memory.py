"""How much memory a worker process holds, may hold, and has left for the next query.

An engine keeps addresses and memory that a heavy query took, to use them again; what another part of the process then
asks for is refused. So a process that little is left of answers, and goes: the next query gets a new one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from decisor.tools.databases.sandbox.platforms import STATM

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
VMSTAT = Path("/proc/vmstat")
LEAST_SHARE = 1 / 4
"""Of what a process had left at first: with less it goes."""


def memory_of(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    return sizes(Path(f"/proc/{pid}/statm"))[1]


def processes_killed_for_memory() -> int | None:
    """How many the system has killed so far because memory was short; None where it does not tell."""
    try:
        words = VMSTAT.read_text().split()
        return int(words[words.index("oom_kill") + 1])
    except (OSError, ValueError):
        return None


def sizes(statm: Path) -> tuple[int, int]:
    """Bytes of addresses and of memory that a process holds; 0 where the system does not tell."""
    try:
        addresses, memory = statm.read_text().split()[:2]
        return int(addresses) * PAGE, int(memory) * PAGE
    except (OSError, ValueError):
        return 0, 0


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes of ``addresses`` and of ``memory`` that this process may have. ``first``: what was left of them then."""

    addresses: int
    memory: int
    first: int

    def is_short(self) -> bool:
        """Whether the next query may lack what those before it took."""
        addresses, memory = sizes(STATM)
        return min(self.addresses - addresses, self.memory - memory) < self.first * LEAST_SHARE


def limit_memory(memory_mb: int) -> Room | None:
    """From here on this process gets no more addresses than now plus the cap. None where nothing is limited."""
    try:
        import resource
    except ImportError:
        return None
    addresses, memory = sizes(STATM)
    cap = memory_mb * 2**20
    if not addresses:
        return None
    resource.setrlimit(resource.RLIMIT_AS, (addresses + cap, addresses + cap))
    return Room(addresses + cap, cap, max(0, cap - memory))
