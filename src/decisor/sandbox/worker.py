"""The child process: opens one engine and answers frames until its input ends.

The first frame names the engine, the URL and the caps. File
descriptor 1 is taken away from the engine before it is loaded: whatever a driver prints cannot reach the pipe.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping
from functools import partial
from typing import BinaryIO, Protocol, runtime_checkable

from decisor.errors import SetupError, ToolError
from decisor.sandbox.access import Access, reveal_tokens
from decisor.sandbox.engine import STOPPED, Cancellable, Caps, ConnectionLost, EngineDatabase, Planning
from decisor.sandbox.engines import load_engine, open_engine_database
from decisor.sandbox.limits import limit_worker_memory
from decisor.sandbox.sql_guard import SqlGuard, match_schema_statement, remove_comments
from decisor.sandbox.wire import Frame, caps_from_frame, receive_frame, send, table_to
from decisor.types import Table, Value

GRACE_SECONDS = 5.0
"""The parent kills at the limit; after this much longer the worker ends itself (the parent may be gone)."""
CANCEL_SECONDS = 6.0
ADVICE = re.compile(r"(Out of Memory Error: [^(\n]*\([^)]*\))\s.*", re.DOTALL)
"""DuckDB goes on with settings for whoever administers it."""


@runtime_checkable
class GuardedDatabase(Protocol):
    """A database with a SQL guard."""

    @property
    def guard(self) -> SqlGuard: ...


def main() -> None:
    # Before any driver is loaded: what it prints must not end up between two frames.
    source, sink = _take_pipes()
    hello = receive_frame(source)
    if hello is None:
        return
    caps, description = caps_from_frame(hello["caps"]), load_engine(hello["engine"])
    if description.form == "jobs":  # DuckDB imports pandas, where it is there, at the first array: 0.2 s for nothing
        sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        database = open_engine_database(hello["engine"], hello["url"], caps)
    except (Exception, SystemExit) as error:
        send(sink, {"error": _line(error), "kind": "setup"})
        return
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold the rows of a query
    # After opening: the limit comes on top of the addresses that driver and database have taken by then.
    room = None if description.heap else limit_worker_memory(caps.memory_mb)
    if isinstance(database, Cancellable):
        signal.signal(signal.SIGTERM, partial(_cancel_and_end, database))
    access = access_of(database)
    # The parent describes the schema to an LLM, so it learns what must not be named.
    hidden, closed = (sorted(access.naming.spellings(names)) for names in (access.hidden, access.closed))
    send(sink, {"ok": True, "hidden": hidden, "closed": closed})
    while (request := receive_frame(source)) is not None:
        reply = answer_request(database, request, description.probe, description.warehouse is not None)
        last = description.form != "jobs" and room is not None and room.is_short()
        send(sink, {**reply, "last": True} if last else reply)
    with contextlib.suppress(Exception):
        database.close()


def access_of(database: EngineDatabase) -> Access:
    """Return the access rules of a database; without a guard, they allow everything."""
    return database.guard.access if isinstance(database, GuardedDatabase) else Access()


def _cancel_and_end(database: Cancellable, *_: object) -> None:
    """Cancel the query on the server and end this process, when the parent stops it."""
    # The server may not answer: then the alarm ends this process.
    signal.setitimer(signal.ITIMER_REAL, CANCEL_SECONDS)
    with contextlib.suppress(BaseException):
        database.cancel()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # so that who waits for this process sees by what it ended
    signal.raise_signal(signal.SIGTERM)


def answer_request(database: EngineDatabase, request: Frame, probe: str = "", ends: bool = False) -> Frame:
    """Return the reply to a request: a table, or an error with its kind (refused, tool, outage, setup).

    If a statement loses the connection twice and ``probe`` works, the server is there: it is the statement's own
    failure. ends: this process ends a query that takes too long, before the parent does.
    """
    caps = caps_from_frame(request["caps"])
    if hasattr(signal, "setitimer"):
        # SIGALRM ends this process if nobody else does, even in the middle of C code.
        signal.setitimer(signal.ITIMER_REAL, caps.seconds + GRACE_SECONDS)
    try:
        statement = request["statement"]
        if request["op"] == "reveal":
            if not isinstance(database, GuardedDatabase):
                raise ToolError("Nothing is masked here.")
            guard, read = database.guard, partial(database.run, parameters={}, caps=caps)
            return {"table": table_to(reveal_tokens(statement, guard.access.restricted, guard.dialect, read))}
        if request["op"] == "plan":
            return plan_frame(database, statement, caps)
        if not request["trusted"]:
            statement = database.check(statement)
        elif isinstance(database, GuardedDatabase):
            statement = database.guard.own(statement)
        if request["op"] == "check":
            return {"ok": True}
        run = partial(run_within_time, database) if ends and isinstance(database, Cancellable) else database.run
        try:
            result = run(statement, request["parameters"], caps)
        except ConnectionLost:  # once more: every statement that comes here only reads
            result = run(statement, request["parameters"], caps)
        if isinstance(database, GuardedDatabase) and not request["trusted"]:
            result = database.guard.without_hidden(result, statement, request["statement"])
        return {"table": table_to(result)}
    except ToolError as error:
        outage = error.outage and not (probe and is_server_there(database, probe, caps))
        complaint = access_of(database).without_hidden(without_advice(str(error)), request["statement"])
        return {"error": complaint, "kind": "refused" if error.refused else "outage" if outage else "tool"}
    except RecursionError:
        return {"error": "The statement is nested too deeply.", "kind": "refused"}
    except MemoryError:
        return {"error": f"The query needs more than {caps.memory_mb} MB of memory.", "kind": "tool"}
    except Exception as error:
        return {
            "error": access_of(database).restricted.without_key(_line(error)),
            "kind": "setup" if isinstance(error, SetupError) else "tool",
        }
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def run_within_time(database: EngineDatabase, statement: str, parameters: Mapping[str, Value], caps: Caps) -> Table:
    """Run a statement and let its server cancel it after its seconds.

    So the connection, which is slow to open, lasts. Raises ToolError.
    """
    assert isinstance(database, Cancellable)
    over = threading.Event()

    def end() -> None:
        over.set()
        with contextlib.suppress(Exception):
            database.cancel()

    clock = threading.Timer(caps.seconds, end)
    clock.daemon = True
    clock.start()
    try:
        result = database.run(statement, parameters, caps)
    except ToolError:
        if not over.is_set():
            raise
    finally:
        clock.cancel()
        if over.is_set():  # else it would end the next query
            clock.join()
    if over.is_set():
        raise ToolError(STOPPED.format(caps.seconds))
    return result


def plan_frame(database: EngineDatabase, text: str, caps: Caps) -> Frame:
    """Return the plan of a query as a frame, without a table if the statement reads no rows."""
    if isinstance(database, Planning):
        return {"table": table_to(database.plan(database.check(text), caps))}
    if not isinstance(database, GuardedDatabase):
        raise ToolError("Nothing is planned here.")
    checked, dialect = database.check(text), database.guard.dialect
    form = match_schema_statement(dialect, remove_comments(text, dialect.name))
    if form is not None and not form.reads_rows:
        return {"ok": True}
    return {"table": table_to(database.run(f"{dialect.plan} {checked}", {}, caps))}


def is_server_there(database: EngineDatabase, probe: str, caps: Caps) -> bool:
    try:
        database.run(probe, {}, caps)
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


def without_advice(complaint: str) -> str:
    """Return an engine's complaint without advice on settings that nobody here may change.

    >>> without_advice("measure.cost: Out of Memory Error: no room (47 MiB/48 MiB used) Or set SET temp_directory='/x'")
    'measure.cost: Out of Memory Error: no room (47 MiB/48 MiB used). Ask for fewer rows or columns.'
    """
    return ADVICE.sub(r"\1. Ask for fewer rows or columns.", complaint)


def _line(error: BaseException) -> str:
    text = without_advice(" ".join(str(error).split()))
    return text if isinstance(error, SetupError | ToolError) else text or type(error).__name__
