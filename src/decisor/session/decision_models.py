"""Decision models for programs: opened on a person's data, or drafted by an LLM.

``opened_model`` gives a model of a file or a text on a copy of the data. A draft is made from a question, its rules
and a database, and gives model files.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from decisor.decision_models.client import OpenModel, open_decision_model
from decisor.decision_models.file import read_model_file
from decisor.decision_models.schema import DecisionModel
from decisor.semantics.definitions import Definitions
from decisor.session.data import ask
from decisor.session.result import Result
from decisor.session.sources import Place
from decisor.trace.events import ActionStart, events_of
from decisor.types import Question

if TYPE_CHECKING:
    from decisor.session.request import Options
    from decisor.session.sources import Places
    from decisor.session.user_tools import Tools


@asynccontextmanager
async def opened_model(
    model: str | Path | DecisionModel,
    db: Place = "",
    graph: Place = "",
    definitions: Definitions | None = None,
    **parameters: str | float | bool,
) -> AsyncIterator[OpenModel]:
    """Open a decision model on a copy of the data at ``db`` or ``graph``.

    ``definitions`` are those of the metrics that its measures name.

    Its methods block: call them with ``asyncio.to_thread`` where other things run on the loop.

    Raises:
        SetupError: the file, the data or a statement do not fit; the message has the line.
    """
    from decisor.sandbox.process import start_machine
    from decisor.session.definitions import fill_metric_queries
    from decisor.session.open_sources import open_first_database

    parsed = model if isinstance(model, DecisionModel) else read_model_file(Path(model), **parameters)
    source = await open_first_database(db, graph)
    try:
        machine = await open_decision_model(fill_metric_queries(parsed, definitions, source), source, start_machine)
        try:
            yield machine
        finally:
            # close() waits for the machine's process, so it does not run on the loop.
            await asyncio.to_thread(machine.close)
    finally:
        await source.close()


TECHNIQUE, TOOL, SECOND = "model_first", "decision_model", "#### second"


@dataclass(frozen=True)
class DraftedModel:
    """A decision model that an LLM wrote, with the result of its run."""

    result: Result
    model: str = ""
    """Text of the model file that ranks, '' if none was agreed on."""
    models: Sequence[str] = ()
    """Both texts if two differ."""


def draft_model(
    question: Question,
    *,
    db: Place,
    docs: Places = (),
    tools: Tools = (),
    accept: bool = False,
    **options: Unpack[Options],
) -> DraftedModel:
    """Draft a decision model by an LLM, with ``docs`` and ``tools`` as sources where they are named.

    A person at the terminal is asked for points that the rules leave open, and whether a document's correction is
    right. ``accept``: it is adopted without asking.

    Raises:
        SetupError: there is no LLM, or the data cannot be opened.
        LLMError: the endpoint failed for good.
    """
    # The caller's settings go last: they may turn the questions to a person off.
    options["settings"] = {"asks_person": True, "accept": accept, **options.get("settings", {})}
    options["technique"] = TECHNIQUE
    result = ask(question, db=db, docs=docs, tools=tools, **options)
    jobs = [start.input.partition("\n") for start in events_of(result.trace, ActionStart) if start.tool == TOOL]
    ranked, compared = ([text for head, _, text in jobs if head == verb] for verb in ("rank", "compare"))
    texts = compared[-1].partition(SECOND)[::2] if compared and not result.answer else ()
    return DraftedModel(result, ranked[-1] if ranked else "", [f"{text.strip()}\n" for text in texts])
