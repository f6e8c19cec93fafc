"""What ``decisor doctor`` tries: which LM there is and whether it answers, whether a database opens, what its sandbox
lets run, and how tools are shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.calls.estimates import tokens_in
from decisor.errors import Error
from decisor.lms.choose import places_of_lms
from decisor.lms.measure import Measurement, measure
from decisor.lms.probe import probe
from decisor.secrets import redact
from decisor.session.lms import LMs
from decisor.session.opening import open_first_of
from decisor.session.sources import Sources
from decisor.session.sync import in_thread
from decisor.session.tools import left_out, open_tools, servers, tool_specs

if TYPE_CHECKING:
    from decisor.lms.choose import Place
    from decisor.tools.databases.sandbox.report import Verdict
    from decisor.tools.databases.sql_brief import TableView


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """``url``: without user and password. ``schema``: as an LM is shown it for the question that was named, if any; ''
    where it does not open. ``tokens``: what it costs, by estimate. ``tables``: those that it shows with columns;
    ``others``: how many more there are. ``layers``: of a warehouse, which limits hold, and how; ``role``: statements
    that make an account which only reads it."""

    url: str
    ok: bool
    error: str = ""
    schema: str = ""
    tokens: int = 0
    tables: tuple[TableView, ...] = ()
    others: int = 0
    layers: tuple[str, ...] = ()
    role: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """A tool as an LM is shown it."""

    name: str
    description: str


def find_lms(spec: str | None) -> tuple[Place, ...]:
    """Every place that an LM is looked for at, in order, with what is there; one is ``chosen`` at most."""
    return places_of_lms(os.environ, spec)


def check_lm(spec: str | None) -> Measurement | None:
    """None where there is no LM; one that is named is measured by a few small calls, another by one. Raises SetupError
    where what is named cannot be used."""

    async def check() -> Measurement | None:
        lms = LMs()
        try:
            lm = await lms.get(spec)
            if lm is None:
                return None
            return await measure(lm) if spec else Measurement(await probe(lm))
        finally:
            await lms.close()

    return in_thread(check())


def check_database(sources: Sources, question: str = "") -> DatabaseCheck:
    """Opens the first database in its sandbox and describes it, for a question where one is named. Never raises for
    what it finds."""

    from decisor.tools.databases.sql import SqlTool
    from decisor.tools.databases.sql_brief import Brief

    source = sources.databases[0]

    async def check() -> DatabaseCheck:
        tool = await open_first_of(sources)
        try:
            described = await tool.about(question) if question else tool
            schema = described.describe()
            brief = described.brief if isinstance(described, SqlTool) else Brief(schema, (), 0)
            return DatabaseCheck(
                source.label, True, "", schema, tokens_in(schema), brief.tables, brief.others, *care_of(source.place)
            )
        finally:
            await tool.close()

    try:
        return in_thread(check())
    except Error as error:
        layers, role = care_of(source.place)
        return DatabaseCheck(source.label, False, redact(str(error)), layers=layers, role=role)


def care_of(place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The layers and the role of a warehouse; nothing of another place."""
    from decisor.tools.databases.sandbox.urls import engine_of

    try:
        engine = engine_of(place)
    except Error:
        return (), ()
    warehouse, dialect = engine.warehouse, engine.dialect
    if warehouse is None or dialect is None:
        return (), ()
    return warehouse.layers(bool(dialect.token), bool(dialect.fence), dialect.plan), warehouse.role


def judge_statements(sources: Sources, statements: Sequence[str]) -> list[Verdict]:
    """Whether each may run, in order; nothing runs. Raises SetupError where the database cannot be opened."""
    from decisor.tools.databases.sandbox.report import verdicts

    async def judge() -> list[Verdict]:
        tool = await open_first_of(sources)
        try:
            return await verdicts(tool.worker, statements)
        finally:
            await tool.close()

    return in_thread(judge())


def check_tools(specs: list[str]) -> tuple[list[ToolCheck], list[str], list[str]]:
    """The tools, the operations that are left out, with why, and the servers that keys are sent to."""
    tools = open_tools(tool_specs(specs))
    return [ToolCheck(tool.name, tool.describe()) for tool in tools], left_out(tools), list(servers(tools))
