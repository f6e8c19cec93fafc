"""The tool ``cypher``: a property graph behind the sandbox, for a model and for trusted loaders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from decisor.errors import SetupError, ToolError
from decisor.max_scan import MaxScan
from decisor.replies.cleaning import strip_fence
from decisor.secrets import without_password
from decisor.tools.databases.cypher_brief import brief
from decisor.tools.databases.cypher_literals import literals
from decisor.tools.databases.cypher_lookup import label_tables, language_of, type_tables
from decisor.tools.databases.cypher_names import near_names, wrong_ways
from decisor.tools.databases.cypher_schema import GraphSchema, read_schema
from decisor.tools.databases.hints import about_nothing, advice, brought_nothing
from decisor.tools.databases.lookup import Lookup, description, find, named_tables, parse_lookup
from decisor.tools.databases.sandbox.audit import Audit, asker_of
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.policy import NOT_ON_GRAPHS
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sandbox.urls import examples, parse_url
from decisor.tools.databases.scan import check_graph_scan, check_limits
from decisor.tools.databases.schema_index import SchemaIndex
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Observation, Record, Table

BULK_SECONDS = 300.0


@dataclass(eq=False)
class CypherTool:
    """Open with ``await CypherTool.open(url)``. ``schema`` is the graph's as it was then; ``index``, its labels and
    relationship types as tables: where both have a name, it means the label. ``max_scans``: what one query may read,
    each of which holds."""

    worker: Worker
    schema: GraphSchema
    name: str = "cypher"
    form: Literal["cypher"] = "cypher"
    question: str = ""
    max_scans: tuple[MaxScan, ...] = ()
    index: SchemaIndex = field(default_factory=lambda: SchemaIndex([]), repr=False)

    @classmethod
    async def open(
        cls,
        url: str,
        name: str = "cypher",
        caps: Caps = Caps(),
        deny: Sequence[str] = (),
        only: Sequence[str] = (),
        audit: Audit | None = None,
    ) -> CypherTool:
        """kglite:///PATH, bolt://USER:PASSWORD@HOST:PORT/DATABASE (or neo4j://, with +s for TLS).

        ``deny``: labels and relationship types that may be neither read nor seen. Where ``only`` names some, no other
        may be. ``audit``: where each query is noted.

        Raises:
            SetupError: the URL names no graph, or it cannot be opened. No file is ever made.
        """
        engine, address = parse_url(url)
        if caps.policy:
            raise SetupError(NOT_ON_GRAPHS)
        caps = replace(caps, deny=(*caps.deny, *map(label_of, deny)))
        worker = Worker(engine, address, caps, audit=audit, source=name)
        try:
            if worker.description.form != "cypher":
                raise SetupError(f"{without_password(url)} names no graph. Give {examples('cypher')}.")
            await worker.start()
            schema = await read_schema(worker)
            if only:
                await worker.close()
                caps = replace(caps, deny=(*caps.deny, *all_but(only, schema)))
                worker = Worker(engine, address, caps, audit=audit, source=name)
                await worker.start()
                schema = await read_schema(worker)
        except BaseException as error:
            await worker.close()
            if isinstance(error, ToolError):
                raise SetupError(f"The graph cannot be read: {error}") from error
            raise
        return cls(worker, schema, name, index=SchemaIndex([*type_tables(schema), *label_tables(schema)]))

    @property
    def is_restricted(self) -> bool:
        return self.worker.caps.is_restricted

    def examples(self) -> Sequence[str]:
        return [text for properties in self.schema.properties.values() for one in properties for text in one.samples]

    async def about(self, question: str) -> CypherTool:
        """The same tool with a description for this question; itself where the schema is short."""
        other = replace(self, question=question)
        return self if other.described == self.described else other

    def limited(self, *limits: MaxScan) -> CypherTool:
        """The same tool, whose queries keep to these limits too. Raises SetupError where its engine does not tell."""
        check_limits(self.worker.description, self.name, limits)
        return replace(self, max_scans=(*self.max_scans, *limits))

    def describe(self) -> str:
        return self.described

    @cached_property
    def described(self) -> str:
        """Written once: a loop shows it with every call."""
        return brief(self.schema, self.index, self.question)

    async def call(self, text: str) -> Observation:
        """One reading statement, or ``describe LABEL``, ``find WORDS``. Raises ToolError, with close names where one is
        misspelt."""
        statement = strip_fence(text)
        if (lookup := parse_lookup(statement)) is not None:
            return await self._look_up(lookup)
        try:
            await check_graph_scan(self.worker, statement, self.max_scans)
            table = await self.worker.run(statement, by=asker_of(text))
        except ToolError as error:
            near = "" if error.refused else near_names(statement, self.schema)
            raise ToolError(
                f"{error} {near}".strip() + advice(str(error)), refused=error.refused, outage=error.outage
            ) from error
        records = tuple(
            Record(f"r{number}", dict(zip(table.columns, row, strict=True)), source=self.name)
            for number, row in enumerate(table.rows, 1)
        )
        near = near_names(statement, self.schema)
        nothing = await self._nothing(statement, table) if brought_nothing(table) else ""
        note = " ".join(filter(None, (nothing, near)))
        total = None if table.truncated else len(records)
        return Observation(records, note, truncated=table.truncated, total=total)

    @cached_property
    def tables(self) -> Sequence[TableInfo]:
        """Its labels, with their properties and ties."""
        return [table for table in self.index.tables if table.name in self.schema.labels]

    async def _look_up(self, lookup: Lookup) -> Observation:
        language = language_of(self.schema)
        if lookup.verb == "describe":
            labels = named_tables(lookup.words, self.index.tables, language)
            return Observation(note=description(labels, self.index, language))
        return await find(lookup.words, self.index, language, self._read, self.worker.caps, self.name)

    async def _read(self, query: str, caps: Caps) -> Table:
        await check_graph_scan(self.worker, query, self.max_scans)
        return await self.worker.run(query, caps=caps)

    async def _nothing(self, statement: str, table: Table) -> str:
        """What is said of a result without rows."""
        about = await about_nothing(table, literals(statement, self.schema), self._read, self.worker.caps)
        return f"{about} {wrong_ways(statement, self.schema)}".strip()

    async def fetch(
        self, query: str, max_rows: int = 2_000_000, trusted: bool = False, max_bytes: int = 10**9
    ) -> Table:
        """Rows in bulk: the engine is as read-only, the caps are wide. Only our own queries are ``trusted``."""
        wide = replace(self.worker.caps, rows=max_rows, cell_chars=10**6, bytes=max_bytes, seconds=BULK_SECONDS)
        return await self.worker.run(query, caps=wide, trusted=trusted)

    async def close(self) -> None:
        await self.worker.close()


def label_of(name: str) -> str:
    """Return a label or type in lower case, without the quotes that a person wrote around it.

    >>> label_of("`Person`"), label_of("hr.Person")
    ('person', 'hr.person')
    """
    return name.strip('"`').lower()


def all_but(names: Sequence[str], schema: GraphSchema) -> tuple[str, ...]:
    """The other labels and types, in lower case. Raises SetupError where the graph has not what a name says.

    >>> all_but(["City"], GraphSchema({"City": 2, "Secret": 1}))
    ('secret',)
    """
    there = {name.lower() for name in (*schema.labels, *schema.types)}
    wishes = {label_of(name) for name in names}
    if missing := sorted(wishes - there):
        raise SetupError(f"The graph has no label or relationship type {', '.join(missing)} to read.")
    return tuple(sorted(there - wishes))
