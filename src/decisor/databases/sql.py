"""The tool ``sql``: a relational database behind the sandbox, for a model and for trusted loaders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from decisor.databases.combine import fetch_in_bulk, records_of_table
from decisor.databases.hints import advise_after_failure
from decisor.databases.scan_limits import check_limits, check_scan, list_table_aliases
from decisor.databases.schema import LARGE, TableInfo, close_names, read_sql_schema
from decisor.databases.schema_search import parse_lookup
from decisor.databases.schema_text import Brief, SchemaView
from decisor.errors import SetupError, ToolError
from decisor.parsing.cleaning import strip_fence
from decisor.runtime.budget import MaxScan
from decisor.sandbox.engine import NO_POLICY, Caps, Policy, bare_table_name, policy_notes
from decisor.sandbox.engines import example_urls, load_engine, parse_url
from decisor.sandbox.process import Asker, Audit, Worker, asker_of
from decisor.system.extras import pass_over_faults
from decisor.system.secrets import hide_password
from decisor.types import Observation, Pitfall, Table

if TYPE_CHECKING:
    from decisor.databases.pitfalls.question import AskedQuestion, QuestionLog
    from decisor.databases.pitfalls.rules import Pitfalls

COUNT_SECONDS = 2.0


@dataclass(eq=False)
class SqlTool:
    """A tool that queries a relational database in SQL. Open it with ``await SqlTool.open(url)``."""

    worker: Worker
    tables: tuple[TableInfo, ...]
    """The schema when it was opened."""
    view: SchemaView
    """The part of the schema that an LLM is shown, for a ``question`` if the schema is long."""
    name: str = "sql"
    form: Literal["sql"] = "sql"
    notes: tuple[str, ...] = ()
    """On the files that the data come from, and on rows and columns that are hidden."""
    pitfalls: Pitfalls | None = field(default=None, repr=False)
    log: QuestionLog | None = field(default=None, repr=False)
    """The question that the queries are for; None if it is not known."""
    question: str = ""
    max_scans: tuple[MaxScan, ...] = ()
    """Limits on the rows or bytes that one query may read; every one applies."""

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
        """Open the database at a URL and read its schema.

        Args:
            caps: None for the usual ones of the engine.
            deny_tables: tables that may be neither read nor seen.
            tables: the only tables that may be read, unless empty.
            policy: rows and columns that are not for everybody.
            audit: the file that notes each query.

        Raises:
            SetupError: if the URL names no database, or it cannot be opened. No file is ever made.
        """
        # The rules need sqlglot, which takes 0.1 s to import; the worker needs it too.
        from decisor.databases.pitfalls.rules import Pitfalls

        kind, address = parse_url(url)
        caps = caps or Caps(seconds=load_engine(kind).seconds)
        deny, only = (
            (*names, *map(str.lower, more)) for names, more in ((caps.deny, deny_tables), (caps.only, tables))
        )
        caps = replace(caps, deny=deny, only=only, policy=policy)
        worker = Worker(kind, address, caps, audit=audit, source=name)
        try:
            dialect = worker.description.dialect
            if dialect is None:
                raise SetupError(f"{hide_password(url)} is no SQL database. Give {example_urls('sql')}.")
            await worker.start()
            schema = await read_sql_schema(worker)
            for allowed in tables:
                if bare_table_name(allowed) not in {table.bare.lower() for table in schema}:
                    raise SetupError(f"There is no table {allowed} to read.")
            for table in schema:
                if table.bare.lower() in policy.tables():
                    try:
                        await worker.run(f"SELECT 1 FROM {table.place(dialect)} WHERE 1 = 0")
                    except ToolError as error:
                        text = f"The rows of {table.name} cannot be read with their condition: {error}"
                        raise SetupError(text) from error
        except BaseException:
            await worker.close()
            raise
        view = SchemaView(worker, schema)
        if len(schema) > LARGE:
            view.index.prepare()
        pitfalls = Pitfalls.of(worker, dialect, schema)
        return cls(worker, schema, view, name, notes=policy_notes(policy), pitfalls=pitfalls)

    def quoted(self, name: str) -> str:
        """Return the name of a table or column as a query spells it."""
        dialect = self.worker.description.dialect
        table = next((table for table in self.tables if table.schema and table.name == name), None)
        return name if dialect is None else table.place(dialect) if table else dialect.quoted(name)

    def limited(self, *limits: MaxScan) -> SqlTool:
        """Return a copy of the tool whose queries keep to these limits too.

        Raises SetupError if the engine does not estimate the rows or bytes that a query reads.
        """
        check_limits(self.worker.description, self.name, limits)
        return replace(self, max_scans=(*self.max_scans, *limits))

    def compare_with(self, asked: AskedQuestion) -> SqlTool:
        """Return a copy of the tool whose queries are compared with a question."""
        from decisor.databases.pitfalls.question import QuestionLog

        return replace(self, log=QuestionLog(asked))

    @property
    def is_restricted(self) -> bool:
        return self.worker.caps.is_restricted

    def examples(self) -> Sequence[str]:
        return [text for table in self.tables for column in table.columns for text in column.examples]

    async def about(self, question: str) -> SqlTool:
        """Return the tool with a description for this question, or the same tool if the schema is short."""
        return replace(self, question=question) if await self.view.sample_for(question) else self

    @property
    def brief(self) -> Brief:
        """Part of the schema that is shown."""
        return self.view.brief(self.question)

    def describe(self) -> str:
        return self.described

    @cached_property
    def described(self) -> str:
        """Description of the database. It is computed once, for a loop shows it with every call."""
        return "\n".join([self.brief.text, *self.notes])

    async def call(self, text: str) -> Observation:
        """Run one reading statement, or ``describe TABLE`` or ``find WORDS``.

        Raises ToolError, with close names if a table or column is misspelt.
        """
        statement = strip_fence(text)
        if (lookup := parse_lookup(statement)) is not None:
            return await self.view.look_up(lookup, self.name, self._read)
        with self.log.beside(statement) if self.log else nullcontext():
            return await self._query(statement, by=asker_of(text))

    async def _query(self, statement: str, by: Asker) -> Observation:
        """Run a statement, and say of its result what a reader should know."""
        dialect = self.worker.description.dialect
        try:
            await self._check_scan(statement)
            table = await self.worker.run(statement, by=by)
        except ToolError as error:
            hint = close_names(str(error), self.tables, dialect) if dialect and not error.refused else ""
            hint += advise_after_failure(str(error))
            text = str(error).rstrip(".") + "." if hint else str(error)
            raise ToolError(f"{text}{hint}", refused=error.refused, outage=error.outage) from error
        records = records_of_table(table, self.name)
        total = await self._total(statement) if table.truncated else len(records)
        pitfalls: tuple[Pitfall, ...] = ()
        if self.pitfalls:
            with pass_over_faults("pitfalls"):
                pitfalls = tuple(await self.pitfalls.look(statement, table, check=self._check_scan, log=self.log))
        texts = ("" if table.rows else "No rows.", table.note, *(pitfall.text for pitfall in pitfalls))
        note = " ".join(dict.fromkeys(filter(None, texts)))
        return Observation(records, note, truncated=table.truncated, total=total, pitfalls=pitfalls)

    async def fetch(
        self, query: str, max_rows: int = 2_000_000, trusted: bool = False, max_bytes: int = 10**9
    ) -> Table:
        return await fetch_in_bulk(self.worker, query, max_rows, max_bytes, trusted)

    async def close(self) -> None:
        await self.worker.close()

    async def _check_scan(self, query: str) -> None:
        """Raise ToolError (refused) if a query would read more than a question may."""
        if self.max_scans and (dialect := self.worker.description.dialect):
            tables = await self.view.count_tables({name for _, name in list_table_aliases(query, dialect)})
            await check_scan(self.worker, query, self.max_scans, tables)

    async def _read(self, query: str, caps: Caps) -> Table:
        await self._check_scan(query)
        return await self.worker.run(query, caps=caps)

    async def _total(self, statement: str) -> int | None:
        """Return the number of all rows of a query, None if counting them fails or takes too long."""
        count = f"SELECT count(*) AS n FROM ({statement.rstrip().rstrip(';')}\n) AS counted"
        try:
            table = await self.worker.run(count, caps=replace(self.worker.caps, seconds=COUNT_SECONDS))
        except ToolError:
            return None
        value = table.rows[0][0]
        return value if isinstance(value, int) else None
