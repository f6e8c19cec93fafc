"""What a model copies of a source: the queries of ``[copy]``, and the tables that its statements name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from decisor.decision_models.schema import DecisionModel
from decisor.errors import SetupError, ToolError
from decisor.types import BulkSource, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class ColumnOf(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def key(self) -> bool: ...


class TableOf(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def view(self) -> bool: ...
    @property
    def columns(self) -> Sequence[ColumnOf]: ...


FRACTIONS = r"float|double|real|decimal|numeric"
"""Types of what is added up: whole numbers are as often keys."""


@runtime_checkable
class Schema(Protocol):
    """A source that lists its tables and quotes names for its queries."""

    @property
    def tables(self) -> Sequence[TableOf]: ...

    def quoted(self, name: str) -> str: ...


@dataclass(frozen=True)
class CopyColumn:
    """A column of a copied table."""

    name: str
    values: Sequence[Value]
    type: str = ""
    """Type at the source; '' if unknown."""
    key: bool = False
    """True if it is part of the primary key at the source."""


@dataclass(frozen=True)
class Copy:
    """A table of the scratch copy, by columns."""

    name: str
    columns: tuple[CopyColumn, ...]
    query: str
    """The query that the source ran."""

    @property
    def rows(self) -> int:
        return len(self.columns[0].values) if self.columns else 0


@cache
def model_adapter() -> TypeAdapter[DecisionModel]:
    from pydantic import TypeAdapter

    return TypeAdapter(DecisionModel)


def build_machine_content(model: DecisionModel, copies: Mapping[str, Copy]) -> str:
    """Build the JSON text of the model and its tables that a worker opens on."""
    # Cells go by json: to pydantic each is a union, and a table has millions.
    tables = {name: [vars(column) for column in copy.columns] for name, copy in copies.items()}
    text = json.dumps({"model": write_machine_model(model), "tables": tables}, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def write_machine_model(model: DecisionModel) -> str:
    """Write what the worker needs of a model as JSON text."""
    written = model_adapter().dump_python(
        model, mode="json", exclude={"text", "lines", "examples"}, exclude_defaults=True
    )
    text = json.dumps(written, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()  # lone surrogates, which no database takes, become question marks


def parse_machine_content(text: str) -> tuple[DecisionModel, dict[str, list[CopyColumn]]]:
    content = json.loads(text)
    tables = {name: [CopyColumn(**column) for column in columns] for name, columns in content["tables"].items()}
    return model_adapter().validate_json(content["model"]), tables


async def read_copies(model: DecisionModel, source: BulkSource) -> dict[str, Copy]:
    """Read the tables that a model works on.

    Raises SetupError, with the line, if a query is refused or fails, or there is nothing to copy.
    """
    queries: dict[str, tuple[str, dict[str, ColumnOf]]] = {name: (query, {}) for name, query in model.copy.items()}
    if isinstance(source, Schema):
        # A query of [copy] goes before the table of that name.
        queries = {**dict(find_named_tables(model, source)), **queries}
    elif not queries:
        raise SetupError("On a graph, a decision model needs [copy]: a query for each table it works on.")
    return {name: await copy_table(model, name, *query, source) for name, query in queries.items()}


def find_named_tables(model: DecisionModel, source: Schema) -> Iterator[tuple[str, tuple[str, dict[str, ColumnOf]]]]:
    """Find each table that a statement names and ``[copy]`` lacks, with its query and columns.

    Raises SetupError for a view if the model changes data: a copy of a view cannot follow.
    """
    # Any word of a statement may be a table: rather copy one too many than miss one.
    words = model.statement_words()
    words |= {one.table.lower() for one in model.inputs} | {one.table.lower() for one in model.corrections}
    texts = " ".join(model.statements().values()).lower()
    covered = {name.lower() for name in model.copy}
    own = {name.lower() for name in model.own_tables}
    changes = bool(model.change or model.scenarios or model.inputs)
    for table in source.tables:
        lower = table.name.lower()
        # A name with blanks or signs is no single word, so it is searched for in all of the text.
        if lower in covered or (lower not in words and (lower.isidentifier() or lower not in texts)):
            continue
        if lower in own:
            raise SetupError(
                f"There is a table {table.name} in the data: what is decided and named tables are tables of their own. "
                f"Call it another name, such as {table.name}_taken."
            )
        if table.view and changes:
            raise SetupError(
                f"{table.name} is a view: its copy does not follow what the model changes. Name its tables instead, or "
                f'say in [copy] what of it is copied: {table.name} = "SELECT * FROM {table.name}".'
            )
        columns = {column.name.lower(): column for column in table.columns}
        yield table.name, (f"SELECT * FROM {source.quoted(table.name)}", columns)


async def copy_table(
    model: DecisionModel, name: str, query: str, columns: Mapping[str, ColumnOf], source: BulkSource
) -> Copy:
    line = model.line("copy", name)
    place = f"line {line}: " if line else ""
    try:
        table = await source.fetch(query)
    except ToolError as error:
        raise SetupError(f"{place}{name} cannot be copied: {' '.join(str(error).split())}") from error
    if table.truncated:
        raise SetupError(f"{place}{explain_too_large(model, name, columns, source, len(table.rows))}")
    cells: list[tuple[Value, ...]] = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
    known = [columns.get(column.lower()) for column in table.columns]
    kinds = [(one.type, one.key) if one else ("", False) for one in known]
    parts = zip(table.columns, cells, kinds, strict=True)
    return Copy(name, tuple(CopyColumn(column, values, *kind) for column, values, kind in parts), query)


def explain_too_large(
    model: DecisionModel, name: str, columns: Mapping[str, ColumnOf], source: BulkSource, rows: int
) -> str:
    """Explain that a table is too large to copy, with a smaller query to write instead."""
    if name in model.copy:
        return (
            f"{name} is too large to copy: its query in [copy] gives more than {rows:,} rows. Let it add up "
            "(GROUP BY), or leave out what the model does not need."
        )
    words = model.statement_words()
    inputs = {one.column.lower() for one in model.inputs if one.table.lower() == name.lower()}
    quoted = source.quoted if isinstance(source, Schema) else str
    own = [one for lower, one in columns.items() if lower in words | inputs] or [*columns.values()]
    numbers = [one for one in own if one.name.lower() in inputs or re.match(FRACTIONS, one.type, re.IGNORECASE)]
    groups = ", ".join(quoted(one.name) for one in own if one not in numbers)
    sums = ", ".join(f"sum({quoted(one.name)}) AS {quoted(one.name)}" for one in numbers)
    query = f"SELECT {', '.join(filter(None, (groups, sums)))} FROM {quoted(name)}"
    grouped = f" GROUP BY {groups}" if groups and sums else " WHERE ..." if groups else ""
    example = f"{name} = '''{query}{grouped}'''"
    return (
        f"{name} is too large to copy whole: it has more than {rows:,} rows. Write in the table [copy] a query, "
        f"which the source runs, for what the model needs of it, such as {example}"
    )
