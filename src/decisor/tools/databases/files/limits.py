"""What a process that reads files may take, and how large the tables in a file may be."""

from __future__ import annotations

import signal
import sys

from decisor.outside import one_line
from decisor.secrets import redact

MOST_MEMORY = 2**30
"""Bytes of memory of its own, of one process that reads files."""
ENGINE_MEMORY = "400MB"
"""Of DuckDB within it; beyond that it writes to disk."""
ENGINE_THREADS = 4
MOST_CELLS = 20_000_000
"""Of a sheet, with those that are empty between others; Python holds them all at once."""
MOST_LEVELS = 16
"""Of objects within objects of JSON; what lies deeper stays JSON."""


TOO_LARGE = (f"it takes more memory than a reader of files may have ({MOST_MEMORY >> 20:,} MB): "
             "split it, or save tables as CSV or Parquet")  # fmt: skip
SIGNS_OF_MEMORY = (
    "MemoryError", "memory allocation", "Out of Memory", "bad_alloc", "Is a directory", "Cannot allocate",
)  # fmt: skip
"""In what Python, its libraries and DuckDB say where they get no more."""


def reason_of(error: Exception) -> str:
    """Return the first sentence of a complaint: what follows is advice for who sets up a database."""
    first = " ".join(str(error).splitlines()[0].split()) if str(error) else type(error).__name__
    if "maximum_object_size" in first:
        return "an object in it has more than 16 MB: if that is a list of rows, save the list as a file of its own"
    return TOO_LARGE if any(sign in first for sign in SIGNS_OF_MEMORY) else first[:300]


def reason_of_end(returncode: int, complaint: str = "") -> str:
    """Return why a reader ended without a reply."""
    # Rust and C++ abort where they get no memory, DuckDB has crashed too; a reader of documents complains to nobody.
    if -returncode in (signal.SIGABRT, signal.SIGSEGV) or any(sign in complaint for sign in SIGNS_OF_MEMORY):
        return TOO_LARGE
    if returncode < 0:
        return f"its reader was ended by {signal.Signals(-returncode).name}: try again, or split it"
    return redact(one_line(complaint.strip().splitlines()[-1], 300)) if complaint.strip() else TOO_LARGE


def limit_memory(size_bytes: int = MOST_MEMORY) -> None:
    """Let this process have no more, where the system can say so, and write no image of its memory.

    The limit is on writable memory (RLIMIT_DATA, which Linux holds for malloc and private maps alike). One on addresses
    alone would count libraries, the stacks of threads and what allocators reserve and never touch, which is several
    times what is used; it stands above as a second fence.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))
        resource.setrlimit(resource.RLIMIT_AS, (4 * size_bytes, 4 * size_bytes))
