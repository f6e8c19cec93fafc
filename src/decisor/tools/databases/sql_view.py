"""What a model is shown of a database: the whole schema, or the part that fits its question, and more when it asks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from decisor.errors import ToolError
from decisor.tools.databases.lookup import Lookup, description, find, named_tables
from decisor.tools.databases.pitfalls.stored import Within
from decisor.tools.databases.sandbox.dialect import Dialect
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.databases.schema_index import SchemaIndex
from decisor.tools.databases.sql_brief import BUDGET, Brief, schema_text
from decisor.tools.databases.sql_lookup import language_of
from decisor.tools.databases.sql_schema import sampled
from decisor.tools.databases.sql_tables import TableInfo
from decisor.types import Observation, Table

LOOK_SECONDS = 1.0
"""For the values of the tables that fit a question, where none were looked at before."""
MOST_LOOKS = 12
MOST_TEXTS = 512
"""Questions at once, with room to spare: an open database may be asked for years."""


@dataclass(eq=False)
class SchemaView:
    """One for an open database, whatever the questions. ``budget``: tokens."""

    worker: Worker
    tables: tuple[TableInfo, ...]
    budget: int = BUDGET
    texts: dict[str, Brief] = field(default_factory=dict)
    whole: Brief | None = None

    @cached_property
    def index(self) -> SchemaIndex:
        return SchemaIndex(list(self.tables))

    def text(self, question: str = "") -> Brief:
        """For a question, written once; one for all of them where the whole schema is shown."""
        if self.whole is not None:
            return self.whole
        if question not in self.texts:
            text = schema_text(self.worker.description, self.index, question, self.budget)
            if text.complete:
                self.whole = text
                return text
            if len(self.texts) >= MOST_TEXTS:
                del self.texts[next(iter(self.texts))]
            self.texts[question] = text
        return self.texts[question]

    async def look(self, question: str) -> bool:
        """Sample the tables that the question needs, where that was not done at opening. Whether the schema is long."""
        brief = self.text(question)
        if brief.complete:
            return False
        if await self._sample({one.table for one in brief.tables[:MOST_LOOKS] if one.whole}):
            self.texts.pop(question, None)
        return True

    async def counted(self, names: set[str]) -> Sequence[TableInfo]:
        """All tables; those of ``names`` (lower case, without schema) with their number of rows, where there is time to
        count them."""
        await self._sample({one.name for one in self.index.tables if one.rows is None and one.bare.lower() in names})
        return self.index.tables

    async def look_up(self, lookup: Lookup, source: str, within: Within) -> Observation:
        """Values are searched by queries that ``within`` lets through.

        Raises:
            ToolError: there is no such table.
        """
        language = language_of(self.dialect)
        if lookup.verb == "describe":
            names = {table.name for table in named_tables(lookup.words, self.index.tables, language)}
            await self._sample(names)
            there = [table for table in self.index.tables if table.name in names]
            return Observation(note=description(there, self.index, language))

        async def read(query: str, caps: Caps) -> Table:
            await within(query)
            return await self.worker.run(query, caps=caps)

        return await find(lookup.words, self.index, language, read, self.worker.caps, source)

    @property
    def dialect(self) -> Dialect:
        dialect = self.worker.description.dialect
        if dialect is None:
            raise ToolError(f"{self.worker.description.title} has no SQL.")
        return dialect

    async def _sample(self, names: set[str]) -> bool:
        """Whether any table was looked at that had not been."""
        until = time.monotonic() + LOOK_SECONDS
        changed = False
        for number, table in enumerate(self.index.tables):
            if table.name in names and not table.sampled:
                self.index.tables[number] = await sampled(self.worker, table, until, [])
                changed = changed or self.index.tables[number].sampled
        return changed
