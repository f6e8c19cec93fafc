"""What the sandbox says of statements, without running them on the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from decisor.errors import ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sandbox.urls import parse_url


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is '' where the statement may run."""

    allowed: bool
    reason: str = ""


async def check_statements(url: str, statements: Iterable[str], caps: Caps = Caps()) -> list[Verdict]:
    """A verdict for each statement, in order; SQL or Cypher by the URL.

    Raises:
        SetupError: the database cannot be opened.
    """
    engine, address = parse_url(url)
    worker = Worker(engine, address, caps)
    try:
        await worker.start()
        return await verdicts(worker, statements)
    finally:
        await worker.close()


async def verdicts(worker: Worker, statements: Iterable[str]) -> list[Verdict]:
    """One for each statement, in order."""
    return [await verdict(worker, statement) for statement in statements]


async def verdict(worker: Worker, statement: str) -> Verdict:
    try:
        await worker.check(statement)
    except ToolError as error:
        return Verdict(False, str(error))
    return Verdict(True)
