"""The child process: opens one engine and answers frames until its input ends.

The first frame names the engine, the URL and the caps. File
descriptor 1 is taken away from the engine before it is loaded: whatever a driver prints cannot reach the pipe.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import PROBES, Caps, ConnectionLost, Engine, connect
from decisor.tools.databases.sandbox.wire import caps_of, receive, send, table_to

GRACE_SECONDS = 5.0
"""The parent kills at the limit; after this much longer the worker ends itself (the parent may be gone)."""


def main() -> None:
    source, sink = _take_pipes()
    hello = receive(source)
    if hello is None:
        return
    caps = caps_of(hello["caps"])
    try:
        engine = connect(hello["engine"], hello["url"], caps)
    except (Exception, SystemExit) as error:
        send(sink, {"error": _line(error), "kind": "setup"})
        return
    _limit(hello["engine"], caps.memory_mb)
    send(sink, {"ok": True})
    while (request := receive(source)) is not None:
        send(sink, answer(engine, request, PROBES.get(hello["engine"], "")))
    with contextlib.suppress(Exception):
        engine.close()


def answer(engine: Engine, request: dict[str, Any], probe: str = "") -> dict[str, Any]:
    """A frame for a frame: a table, or an error with its kind (refused, tool, outage, setup). Where a statement loses
    the connection twice and ``probe`` works, the server is there: it is the statement's own failure."""
    caps = caps_of(request["caps"])
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, caps.seconds + GRACE_SECONDS)
    try:
        statement = request["statement"]
        if not request["trusted"]:
            statement = engine.check(statement)
        if request["op"] == "check":
            return {"ok": True}
        try:
            found = engine.run(statement, request["parameters"], caps)
        except ConnectionLost:  # once more: every statement that comes here only reads
            found = engine.run(statement, request["parameters"], caps)
        return {"table": table_to(found)}
    except ToolError as error:
        outage = error.outage and not (probe and works(engine, probe, caps))
        return {"error": str(error), "kind": "refused" if error.refused else "outage" if outage else "tool"}
    except RecursionError:
        return {"error": "The statement is nested too deeply.", "kind": "refused"}
    except MemoryError:
        return {"error": f"The query needs more than {caps.memory_mb} MB of memory.", "kind": "tool"}
    except Exception as error:
        return {"error": _line(error), "kind": "setup" if isinstance(error, SetupError) else "tool"}
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def works(engine: Engine, statement: str, caps: Caps) -> bool:
    """Whether the server runs it."""
    try:
        engine.run(statement, {}, caps)
    except Exception:
        return False
    return True


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(nothing, fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    return source, sink


def _limit(engine: str, memory_mb: int) -> None:
    """No core files; no more address space than now plus the cap. A JVM reserves its heap ahead: it is watched only."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    statm = Path("/proc/self/statm")
    if engine != "arcadedb" and statm.exists():
        now = int(statm.read_text().split()[0]) * resource.getpagesize()
        limit = now + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, SetupError | ToolError) else text or type(error).__name__
