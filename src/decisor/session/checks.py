"""Checks of ``decisor doctor``: the LLM, a database, the verdicts of its sandbox, and tools as an LLM is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisor.errors import Error
from decisor.llms.choose import Measurement, measure_llm, probe_llm
from decisor.runtime.prompt import estimate_tokens
from decisor.session.open_sources import open_first_of_sources
from decisor.session.run_setup import LLMs
from decisor.session.sources import Sources
from decisor.session.user_tools import build_tool_specs, open_tools_of_spec
from decisor.system.secrets import redact
from decisor.system.tasks import run_in_thread

if TYPE_CHECKING:
    from decisor.databases.schema_text import TableView
    from decisor.sandbox.process import StatementVerdict


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """The outcome of opening and describing a database."""

    url: str
    """URL without user and password."""
    ok: bool
    error: str = ""
    schema: str = ""
    """Schema as an LLM is shown it, for the question if one was named; '' if the database does not open."""
    tokens: int = 0
    """Estimated tokens of the schema."""
    tables: tuple[TableView, ...] = ()
    """Tables shown with columns."""
    others: int = 0
    """Number of further tables."""
    layers: tuple[str, ...] = ()
    """Limits of a warehouse that hold, and how."""
    role: tuple[str, ...] = ()
    """Statements that make an account which only reads the warehouse."""


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """A tool as an LLM is shown it."""

    name: str
    description: str


def measure_named_llm(spec: str | None) -> Measurement | None:
    """Measure an LLM; return None if there is none.

    An LLM that is named is measured by a few small calls, another by one. Raises SetupError if the named LLM cannot be
    used.
    """

    async def check() -> Measurement | None:
        llms = LLMs()
        try:
            llm = await llms.get(spec)
            if llm is None:
                return None
            return await measure_llm(llm) if spec else Measurement(await probe_llm(llm))
        finally:
            await llms.close()

    return run_in_thread(check())


def check_database(sources: Sources, question: str = "") -> DatabaseCheck:
    """Open the first database in its sandbox and describe it, for a question if one is given.

    Errors are returned, not raised.
    """

    from decisor.databases.schema_text import Brief
    from decisor.databases.sql import SqlTool

    source = sources.databases[0]

    async def check() -> DatabaseCheck:
        tool = await open_first_of_sources(sources)
        try:
            described = await tool.about(question) if question else tool
            schema = described.describe()
            # Only a SQL database knows which tables are shown; a graph is its text alone.
            brief = described.brief if isinstance(described, SqlTool) else Brief(schema, (), 0)
            return DatabaseCheck(
                source.label,
                True,
                "",
                schema,
                estimate_tokens(schema),
                brief.tables,
                brief.others,
                *warehouse_protection(source.place),
            )
        finally:
            await tool.close()

    try:
        return run_in_thread(check())
    except Error as error:
        layers, role = warehouse_protection(source.place)
        # The text of an error may hold the password of the URL.
        return DatabaseCheck(source.label, False, redact(str(error)), layers=layers, role=role)


def warehouse_protection(place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the protecting layers and the role statements of a warehouse, nothing for other places."""
    from decisor.sandbox.engines import engine_of

    try:
        engine = engine_of(place)
    except Error:
        return (), ()
    warehouse, dialect = engine.warehouse, engine.dialect
    if warehouse is None or dialect is None:
        return (), ()
    return warehouse.layers(bool(dialect.token), bool(dialect.fence), dialect.plan), warehouse.role


def judge_statements(sources: Sources, statements: Sequence[str]) -> list[StatementVerdict]:
    """Return a verdict for each statement, in order, without running any.

    Raises SetupError if the database cannot be opened.
    """
    from decisor.sandbox.process import check_all_statements

    async def judge() -> list[StatementVerdict]:
        tool = await open_first_of_sources(sources)
        try:
            return await check_all_statements(tool.worker, statements)
        finally:
            await tool.close()

    return run_in_thread(judge())


def check_tools(specs: list[str]) -> tuple[list[ToolCheck], list[str], list[str]]:
    """Return the tools, the operations of documents left out with reasons, and the servers that are sent keys."""
    from decisor.tools.openapi_call import OperationTool

    own = build_tool_specs(specs)
    tools = [tool for spec in own.specs for tool in open_tools_of_spec(spec, own)]
    documents = [tool.client.document for tool in tools if isinstance(tool, OperationTool)]
    return (
        [ToolCheck(tool.name, tool.describe()) for tool in tools],
        list(dict.fromkeys(line for document in documents for line in document.left_out)),
        sorted({document.server for document in documents if document.server}),
    )
