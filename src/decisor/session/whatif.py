"""The tool ``whatif`` of a session: a decision model from a file, or the one that a question of Decision QA is on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from decisor.decision_models.format import Model
from decisor.definitions.format import Definitions
from decisor.errors import SetupError
from decisor.settings import IMPORT_PATH, import_named
from decisor.tools.abilities import Database
from decisor.types import Observation, Question, Tool, WhatIf

Find: TypeAlias = Callable[[str], WhatIf]
"""The decision model, for a semantics."""

NO_DEFINITIONS: Mapping[str, Definitions] = {}


async def from_file(
    path: Path,
    databases: Sequence[Database],
    stack: AsyncExitStack,
    definitions: Mapping[str, Definitions] = NO_DEFINITIONS,
) -> Tool | None:
    """Of a file, or of ``module:function``, on a copy of the first database; None where there is none. ``stack`` closes
    it.

    Raises:
        SetupError: the file or the data do not fit.
    """
    if not databases:
        return None
    from decisor.decision_models.parse import read

    source = databases[0]
    if IMPORT_PATH.fullmatch(str(path)) and not path.exists():
        return whatif(await from_function(str(path), source))
    return await from_model(read(path), source, stack, definitions)


async def from_model(
    parsed: Model, source: Database, stack: AsyncExitStack, definitions: Mapping[str, Definitions] = NO_DEFINITIONS
) -> Tool:
    """As ``from_file``, of what a file says."""
    from decisor.decision_models.machine import open_model
    from decisor.decision_models.model_tool import ModelTool, described
    from decisor.session.definitions_file import with_metrics
    from decisor.tools.databases.sandbox.blocking import start_machine

    whole = with_metrics(parsed, definitions.get(source.name), source)
    model = await open_model(whole, source, start_machine)
    stack.callback(model.close)
    return InTurn(ModelTool(model, await asyncio.to_thread(described, model)))


async def from_function(path: str, source: Database) -> Find:
    """Of ``module:function``, a person's own code.

    Raises:
        SetupError: there is no such function, or it does not fit.
    """
    from decisor.decision_models.functions import model_of

    function = getattr(import_named(path), path.partition(":")[2], None)
    if not callable(function):
        raise SetupError(f"{path}: there is no function {path.partition(':')[2]}.")
    model = await model_of(function, source)
    return lambda semantics: model


async def from_question(question: Question, databases: Sequence[Database]) -> Tool | None:
    """Where a database has the schema of a Decision QA world, and the question names what it is about."""
    from decisor.decision_models.recognise import recognise

    for database in databases:
        model = await recognise(database, names_in(database), str(question))
        if model is not None:
            return whatif(partial(with_semantics, model))
    return None


def with_semantics(model: Any, semantics: str) -> WhatIf:
    """Of a Decision QA world: one of its two models."""
    whole: WhatIf = replace(model, semantics=semantics)
    return whole


def has_world(database: Database) -> bool:
    """Whether it has the schema of a Decision QA world."""
    from decisor.decision_models.recognise import world

    return bool(world(names_in(database)))


def whatif(find: Find) -> Tool:
    from decisor.decision_models.ranking import rank
    from decisor.tools.whatif import WhatIfTool

    return WhatIfTool(find, rank)


@dataclass(frozen=True)
class InTurn:
    """A tool whose calls wait for each other: a scratch copy holds the change of one candidate at a time."""

    tool: Tool
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        return self.tool.name

    def describe(self) -> str:
        return self.tool.describe()

    async def call(self, text: str) -> Observation:
        async with self.turn:
            return await self.tool.call(text)

    async def close(self) -> None:
        await self.tool.close()


def names_in(tool: Database) -> list[str]:
    """The tables of a database; for a graph, the words of its schema, labels among them."""
    if tool.form == "sql":
        return [table.name for table in tool.tables]
    return re.findall(r"\w+", tool.describe())
