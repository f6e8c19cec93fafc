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
    verdicts = []
    try:
        await worker.start()
        for statement in statements:
            try:
                await worker.check(statement)
                verdicts.append(Verdict(True))
            except ToolError as error:
                verdicts.append(Verdict(False, str(error)))
    finally:
        await worker.close()
    return verdicts
