"""A decision model opened on a person's data: the front door of ``decision_models``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from decisor.decision_models.format import Model
from decisor.decision_models.machine import OpenModel
from decisor.definitions.format import Definitions
from decisor.session.sources import Place


@asynccontextmanager
async def opened_model(
    model: str | Path | Model, db: Place = "", graph: Place = "", definitions: Definitions | None = None,
    **parameters: str | float | bool,
) -> AsyncIterator[OpenModel]:  # fmt: skip
    """A model file, its text's Model, or the path of one, on a copy of the data at ``db`` or ``graph``.
    ``definitions``: of the metrics that its measures name.

    Its methods block: call them with ``asyncio.to_thread`` where other things run on the loop.

    Raises:
        SetupError: the file, the data or a statement do not fit; the message has the line.
    """
    from decisor.decision_models.machine import open_model
    from decisor.decision_models.parse import read
    from decisor.session.definitions_file import with_metrics
    from decisor.session.opening import open_first
    from decisor.tools.databases.sandbox.blocking import start_machine

    parsed = model if isinstance(model, Model) else read(Path(model), **parameters)
    source = await open_first(db, graph)
    try:
        machine = await open_model(with_metrics(parsed, definitions, source), source, start_machine)
        try:
            yield machine
        finally:
            await asyncio.to_thread(machine.close)
    finally:
        await source.close()
