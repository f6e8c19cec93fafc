"""The tool ``combine``: SQL over the results that a run has fetched, by any tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from decisor.databases.hints import advise_after_failure
from decisor.errors import SetupError, ToolError
from decisor.parsing.cleaning import strip_fence
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.sandbox.wire import number_repeated_names
from decisor.system.text import fit_on_one_line
from decisor.types import Action, Observation, Record, Table, Tool, Value

NAME = "combine"
BULK_SECONDS = 300.0
MAX_ROWS = 100_000
"""Of one observation."""
MAX_CELLS, MAX_BYTES = 4_000_000, 64_000_000
# An o1 before a bracket is a call of a function and no observation.
REFERENCE = re.compile(r"\bo(\d+)\b(?!\s*\()", re.I)
ABOUT = (
    "Joins and computes over rows that other tools brought: SQL (DuckDB's dialect, one SELECT or WITH) in which o1, "
    "o2, ... are the rows of those observations, all of them, with the columns that they came with. Fetch from each "
    "source first. Example: SELECT a.city, b.price * a.tons AS cost FROM o1 AS a JOIN o2 AS b ON a.goods = b.goods"
)


@runtime_checkable
class Fetching(Protocol):
    """A tool that can run its statement again for more rows than an LLM is shown."""

    async def fetch(self, query: str, max_rows: int = ..., trusted: bool = ..., max_bytes: int = ...) -> Table: ...


@dataclass(frozen=True, slots=True)
class Fetched:
    """An action with its observation."""

    action: Action
    observation: Observation
    tool: Tool
    """The tool that can fetch the remaining rows."""


@dataclass(eq=False)
class CombineTool:
    """A tool that runs SQL over the observations of one run. Each run has its own."""

    sources: Sequence[str] = ()
    """A line for each source, which says what the source holds."""
    caps: Caps = field(default_factory=Caps)
    name: str = NAME
    fetched: dict[int, Fetched] = field(default_factory=dict)
    complete_tables: dict[int, Table] = field(default_factory=dict)
    """All rows of observations that a statement has named."""

    def describe(self) -> str:
        return "\n".join([ABOUT, *(["The sources:"] if self.sources else []), *self.sources])

    def remember(self, number: int, action: Action, observation: Observation, tool: Tool) -> None:
        """Store the observation ``o<number>`` if it has records; the environment calls this for each one."""
        if observation.records:
            self.fetched[number] = Fetched(action, observation, tool)

    async def call(self, text: str) -> Observation:
        """Run one SQL statement over the observations that it names.

        Raises ToolError if an observation is missing or has no rows, or if the statement is refused or fails.
        """
        statement = strip_fence(text)
        numbers = sorted({int(match) for match in REFERENCE.findall(statement)})
        missing = [number for number in numbers if number not in self.fetched]
        if missing or not numbers:
            there = "Nothing was fetched so far: use the other tools first."
            if self.fetched:
                names = (f"o{number} ({fetched.action.tool})" for number, fetched in self.fetched.items())
                there = f"There is {', '.join(names)}."
            if not numbers:
                raise ToolError(f"Name the observations to read as tables, such as o1. {there}")
            raise ToolError(f"There is no observation o{missing[0]} with rows. {there}")
        tables = {f"o{number}": await self._fetch_all(number) for number in numbers}
        if sum(len(table.rows) * len(table.columns) for table in tables.values()) > MAX_CELLS:
            raise ToolError("These rows are too many to combine: fetch fewer rows or columns, or sums of them.")
        content = {name: {"columns": table.columns, "rows": table.rows} for name, table in tables.items()}
        # The worker is a process of its own: the statement of an LLM can read these rows and nothing else.
        worker = Worker(NAME, json.dumps(content, ensure_ascii=False), self.caps)
        try:
            table = await worker.run(statement)
        except SetupError as error:
            raise ToolError(str(error)) from error
        except ToolError as error:
            columns = (f"{name} has {fit_on_one_line(', '.join(part.columns), 300)}" for name, part in tables.items())
            hint = advise_after_failure(str(error)) or ("" if error.refused else f" {'; '.join(columns)}.")
            raise ToolError(f"{error}{hint}", refused=error.refused) from error
        finally:
            await worker.close()
        records = records_of_table(table, f"{NAME} {', '.join(tables)}")
        # A total over cut rows would look complete, so the LLM is told.
        cut = [name for name, part in tables.items() if part.truncated]
        note = f"Of {', '.join(cut)} only the first rows are in it ({MAX_ROWS:,} at most)." if cut else ""
        total = None if table.truncated else len(records)
        return Observation(
            records, " ".join(filter(None, (note, "" if records else "No rows."))), False, table.truncated, total
        )

    async def close(self) -> None:
        """Do nothing: the tool holds nothing open."""

    async def _fetch_all(self, number: int) -> Table:
        """Return all rows of an observation. Rows that were cut off are fetched, through the same checks."""
        if number not in self.complete_tables:
            fetched = self.fetched[number]
            table = table_of_records(fetched.observation.records, fetched.observation.truncated)
            # The tool may be wrapped in another one.
            tool = getattr(fetched.tool, "tool", fetched.tool)
            if fetched.observation.truncated and isinstance(tool, Fetching):
                table = await tool.fetch(strip_fence(fetched.action.input), MAX_ROWS, max_bytes=MAX_BYTES)
            self.complete_tables[number] = table
        return self.complete_tables[number]


async def fetch_in_bulk(worker: Worker, query: str, max_rows: int, max_bytes: int, trusted: bool) -> Table:
    """Return the rows of a query in bulk.

    The engine is as read-only as ever; only the caps are wide. Only queries of this package may be ``trusted``.
    """
    wide = replace(worker.caps, rows=max_rows, cell_chars=10**6, bytes=max_bytes, seconds=BULK_SECONDS)
    return await worker.run(query, caps=wide, trusted=trusted)


def records_of_table(table: Table, source: str) -> tuple[Record, ...]:
    """Return the rows of a result as citable records r1, r2, ..."""
    return tuple(
        Record(f"r{number}", dict(zip(table.columns, row, strict=True)), source=source)
        for number, row in enumerate(table.rows, 1)
    )


def table_of_records(records: Sequence[Record], truncated: bool) -> Table:
    """Convert records to a table. A passage has the columns ``text`` and ``source`` beside its fields.

    >>> table_of_records([Record("o1.r1", {"a": 1}), Record("o1.r2", {"b": 2}, "hello", "page 1")], False).rows
    ((1, None, '', ''), (None, 2, 'hello', 'page 1'))
    """
    passages = any(record.text for record in records)
    names = list(dict.fromkeys(name for record in records for name in record.fields))
    more = [name for name in ("text", "source") if passages and name not in names]
    rows = []
    for record in records:
        added: Mapping[str, Value] = {"text": record.text, "source": record.source}
        rows.append((*(record.fields.get(name) for name in names), *(added[name] for name in more)))
    return Table(number_repeated_names((*names, *more), str.lower), tuple(rows), truncated)
