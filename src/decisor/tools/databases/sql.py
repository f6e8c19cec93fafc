"""The tool ``sql``: a relational database behind the sandbox, for a model and for trusted loaders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from decisor.errors import SetupError, ToolError
from decisor.log import pass_over_faults
from decisor.max_scan import MaxScan
from decisor.replies.cleaning import strip_fence
from decisor.secrets import without_password
from decisor.tools.databases.hints import about_nothing, advice, brought_nothing
from decisor.tools.databases.lookup import parse_lookup
from decisor.tools.databases.pitfalls.rules import Pitfalls
from decisor.tools.databases.sandbox.audit import Audit, asker_of
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.engines import engine
from decisor.tools.databases.sandbox.policy import NO_POLICY, Policy, bare, notes_of
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.sandbox.urls import examples, parse_url
from decisor.tools.databases.scan import check_limits, check_scan, names_in
from decisor.tools.databases.sql_brief import Brief
from decisor.tools.databases.sql_cache import LARGE
from decisor.tools.databases.sql_literals import literals
from decisor.tools.databases.sql_schema import close_names, read_schema
from decisor.tools.databases.sql_tables import TableInfo
from decisor.tools.databases.sql_view import SchemaView
from decisor.types import Observation, Pitfall, Record, Table

BULK_SECONDS = 300.0
COUNT_SECONDS = 2.0


@dataclass(eq=False)
class SqlTool:
    """Open with ``await SqlTool.open(url)``. ``tables`` is the schema as it was then; ``view``, what a model is shown
    of it, for a ``question`` where it is long. ``notes``: what was read from files, where the data come from some.
    ``max_scans``: what one query may read, each of which holds."""

    worker: Worker
    tables: tuple[TableInfo, ...]
    name: str = "sql"
    form: Literal["sql"] = "sql"
    notes: tuple[str, ...] = ()
    pitfalls: Pitfalls | None = field(default=None, repr=False)
    view: SchemaView | None = None
    question: str = ""
    max_scans: tuple[MaxScan, ...] = ()

    @classmethod
    async def open(
        cls,
        url: str,
        name: str = "sql",
        caps: Caps | None = None,
        deny_tables: Sequence[str] = (),
        tables: Sequence[str] = (),
        policy: Policy = NO_POLICY,
        audit: Audit | None = None,
    ) -> SqlTool:
        """``caps``: None for what is usual. ``deny_tables`` may be neither read nor seen. Where ``tables`` names some,
        no other may be. ``policy``: rows and columns that are not for everybody. ``audit``: where each query is noted.

        Raises:
            SetupError: the URL names no database, or it cannot be opened. No file is ever made.
        """
        kind, address = parse_url(url)
        caps = caps or Caps(seconds=engine(kind).seconds)
        caps = replace(caps, deny=(*caps.deny, *lower(deny_tables)), only=(*caps.only, *lower(tables)), policy=policy)
        worker = Worker(kind, address, caps, audit=audit, source=name)
        try:
            if worker.description.dialect is None:
                raise SetupError(f"{without_password(url)} is no SQL database. Give {examples('sql')}.")
            await worker.start()
            schema = await read_schema(worker)
            there(tables, schema)
            await check_conditions(worker, policy, schema)
        except BaseException:
            await worker.close()
            raise
        dialect = worker.description.dialect
        pitfalls = Pitfalls.of(worker, dialect, schema) if dialect else None
        view = SchemaView(worker, schema)
        if len(schema) > LARGE:
            view.index.prepare()
        return cls(worker, schema, name, notes=notes_of(policy), pitfalls=pitfalls, view=view)

    def quoted(self, name: str) -> str:
        """A name of a table or column, as it stands in a query."""
        dialect = self.worker.description.dialect
        table = next((table for table in self.tables if table.schema and table.name == name), None)
        return name if dialect is None else table.place(dialect) if table else dialect.quoted(name)

    def limited(self, *limits: MaxScan) -> SqlTool:
        """The same tool, whose queries keep to these limits too. Raises SetupError where its engine does not tell."""
        check_limits(self.worker.description, self.name, limits)
        return replace(self, max_scans=(*self.max_scans, *limits))

    @property
    def is_restricted(self) -> bool:
        return self.worker.caps.is_restricted

    def examples(self) -> Sequence[str]:
        return [text for table in self.tables for column in table.columns for text in column.examples]

    async def about(self, question: str) -> SqlTool:
        """The same tool with a description for this question; itself where the schema is short."""
        if not await self.schema_view.look(question):
            return self
        return replace(self, view=self.schema_view, question=question)

    @property
    def schema_view(self) -> SchemaView:
        if self.view is None:
            self.view = SchemaView(self.worker, self.tables)
        return self.view

    @property
    def brief(self) -> Brief:
        """What is shown of the schema."""
        return self.schema_view.text(self.question)

    def describe(self) -> str:
        return self.described

    @cached_property
    def described(self) -> str:
        """Written once: a loop shows it with every call."""
        return "\n".join([self.brief.text, *self.notes])

    async def call(self, text: str) -> Observation:
        """One reading statement, or ``describe TABLE``, ``find WORDS``. Raises ToolError, with close names where a
        table or column is misspelt."""
        statement = strip_fence(text)
        if (lookup := parse_lookup(statement)) is not None:
            return await self.schema_view.look_up(lookup, self.name, self._within_scan)
        try:
            await self._within_scan(statement)
            table = await self.worker.run(statement, by=asker_of(text))
        except ToolError as error:
            dialect = self.worker.description.dialect
            hint = close_names(str(error), self.tables, dialect) if dialect and not error.refused else ""
            hint += advice(str(error))
            text = str(error).rstrip(".") + "." if hint else str(error)
            raise ToolError(f"{text}{hint}", refused=error.refused, outage=error.outage) from error
        records = tuple(
            Record(f"r{number}", dict(zip(table.columns, row, strict=True)), source=self.name)
            for number, row in enumerate(table.rows, 1)
        )
        total = await self._total(statement) if table.truncated else len(records)
        nothing = await self._nothing(statement, table) if brought_nothing(table) else ""
        pitfalls: tuple[Pitfall, ...] = ()
        if self.pitfalls:
            with pass_over_faults("pitfalls"):
                pitfalls = tuple(await self.pitfalls.look(statement, table, within=self._within_scan))
        note = " ".join(dict.fromkeys(filter(None, (nothing, table.note, *unsaid(pitfalls, nothing)))))
        return Observation(records, note, truncated=table.truncated, total=total, pitfalls=pitfalls)

    async def fetch(
        self, query: str, max_rows: int = 2_000_000, trusted: bool = False, max_bytes: int = 10**9
    ) -> Table:
        """Rows in bulk: the engine is as read-only, the caps are wide. Only our own queries are ``trusted``."""
        wide = replace(self.worker.caps, rows=max_rows, cell_chars=10**6, bytes=max_bytes, seconds=BULK_SECONDS)
        return await self.worker.run(query, caps=wide, trusted=trusted)

    async def close(self) -> None:
        await self.worker.close()

    async def _within_scan(self, query: str) -> None:
        """Raises ToolError (refused) where it would read more than a question may."""
        if self.max_scans and (dialect := self.worker.description.dialect):
            tables = await self.schema_view.counted({name for _, name in names_in(query, dialect)})
            await check_scan(self.worker, query, tables, self.max_scans)

    async def _nothing(self, statement: str, table: Table) -> str:
        """What is said of a result without rows."""

        async def read(query: str, caps: Caps) -> Table:
            await self._within_scan(query)
            return await self.worker.run(query, caps=caps)

        dialect = self.worker.description.dialect
        compared = literals(statement, self.tables, dialect) if dialect else ()
        return await about_nothing(table, compared, read, self.worker.caps)

    async def _total(self, statement: str) -> int | None:
        """How many rows there are in all, None where counting them takes too long or does not work."""
        count = f"SELECT count(*) AS n FROM ({statement.rstrip().rstrip(';')}\n) AS counted"
        try:
            table = await self.worker.run(count, caps=replace(self.worker.caps, seconds=COUNT_SECONDS))
        except ToolError:
            return None
        value = table.rows[0][0]
        return value if isinstance(value, int) else None


async def check_conditions(worker: Worker, policy: Policy, schema: Sequence[TableInfo]) -> None:
    """Raises SetupError where a condition of the policy does not run."""
    rules, dialect = policy.tables(), worker.description.dialect
    for table in schema if dialect else ():
        if dialect and table.bare.lower() in rules:
            try:
                await worker.run(f"SELECT 1 FROM {table.place(dialect)} WHERE 1 = 0")
            except ToolError as error:
                raise SetupError(f"The rows of {table.name} cannot be read with their condition: {error}") from error


def unsaid(pitfalls: Sequence[Pitfall], text: str) -> list[str]:
    """What of the pitfalls the text does not say already."""
    return [one.text for one in pitfalls if one.text not in text]


def lower(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def there(names: Sequence[str], schema: Sequence[TableInfo]) -> None:
    """Raises SetupError where one of the names is no table that may be read."""
    for name in names:
        if bare(name) not in {table.bare.lower() for table in schema}:
            raise SetupError(f"There is no table {name} to read.")
