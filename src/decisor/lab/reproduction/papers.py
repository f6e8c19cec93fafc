"""The tables of the papers as data: printed figures, and the run and measure for each cell.

A paper is one file of ``lab/published``. Table, columns and rows give the subject of a cell (``Subject``): the
row's word counts before the column's, and that before the table's. So a row mostly names a technique, and a column a
part of the benchmark. Nothing here was measured by us.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from decisor.errors import SetupError

PAPERS = ("planrag", "planrag-early", "radagent", "furepa", "plan-rag")
PublishedCell = int | float | tuple[float, float] | str
"""A number, whole if the paper prints it so; a count and a share in percent; '' if the paper prints nothing there."""
CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Subject:
    """Subject of a cell, or of a row or column of cells. '' and () leave it open."""

    technique: str = ""
    """As an entry of a suite: a name with settings."""
    benches: tuple[str, ...] = ()
    """Entries of a suite whose outcomes count together: the mean over them."""
    group: str = ""
    """Group of cases, such as a scenario; '' means all."""
    measure: str | None = None
    """What is measured, see ``measures``; '' means that nothing of ours stands there."""
    model: str = ""
    """Pattern of the names of LLMs that belong here; '' means any."""
    never: str = ""
    """What it needs that nobody had who ran it here."""
    judge: bool = False
    """Whether a judging LLM is needed."""


@dataclass(frozen=True)
class PaperColumn(Subject):
    """A column of a table."""

    __pydantic_config__ = CLOSED
    head: str = ""


@dataclass(frozen=True)
class PaperRow(Subject):
    """A row of a table, with the paper's figures."""

    __pydantic_config__ = CLOSED
    head: str = ""
    published: tuple[PublishedCell, ...] = ()
    """By column; empty for a row of ours."""
    techniques: Mapping[str, str] = field(default_factory=dict)
    """By head of a column, where another technique than ``technique`` stands."""
    measures: Mapping[str, str] = field(default_factory=dict)
    """By head of a column, where another measure stands."""


@dataclass(frozen=True)
class PaperTable(Subject):
    """A table or figure as the paper prints it."""

    __pydantic_config__ = CLOSED
    name: str = ""
    """Such as "table 4"."""
    place: str = ""
    """Page or section."""
    title: str = ""
    row_head: str = ""
    columns: tuple[PaperColumn, ...] = ()
    rows: tuple[PaperRow, ...] = ()
    note: str = ""
    """How to read our figures beside the published ones."""
    share: float = 1.0
    """Share of the cases that the paper ran it on."""
    digits: int = 1
    splitter: str = ""
    """Technique whose runs sort the questions by number of retrievals."""
    rater: str = ""
    """Technique whose ratings sort the cases into tenths."""

    def subject(self, row: PaperRow, column: PaperColumn) -> Subject:
        """Return the subject of the cell of a row and a column."""
        return Subject(
            row.techniques.get(column.head) or row.technique or column.technique or self.technique,
            row.benches or column.benches or self.benches,
            row.group or column.group,
            next(
                (text for text in (row.measures.get(column.head), row.measure, column.measure) if text is not None),
                self.measure,
            ),
            row.model,
            row.never or column.never or self.never,
            row.judge or column.judge or self.judge,
        )

    def subjects(self) -> list[Subject]:
        """Return what our cells are about, row by row."""
        cells = (self.subject(row, column) for row in self.rows for column in self.columns)
        return [cell for cell in cells if cell.measure]


@dataclass(frozen=True)
class Paper:
    """A paper with its tables, as its file has them."""

    __pydantic_config__ = CLOSED
    title: str
    published_with: str
    """LLM and setting of the published figures."""
    tables: tuple[PaperTable, ...]
    left_out: str = ""
    """Tables and figures that are not here, and why."""

    def table(self, name: str) -> PaperTable:
        """Return a table by its name, or by its number if it is a table.

        Raises:
            SetupError: the paper has no such table.
        """
        named = {table.name: table for table in self.tables}
        for key in (name, f"table {name}"):
            if key in named:
                return named[key]
        close = get_close_matches(name, named, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise SetupError(f"{self.title} has no {name!r} here; it has {', '.join(named)}.{hint}")


@cache
def read_paper(name: str) -> Paper:
    """Read a paper by the name of its file.

    >>> read_paper("planrag").table("4").rows[2].published
    (64.3, 45.0)

    Raises:
        SetupError: there is no such paper.
    """
    if name not in PAPERS:
        close = get_close_matches(name.replace("_", "-"), PAPERS, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise SetupError(f"There is no paper {name!r}; there is {', '.join(PAPERS)}.{hint}")
    text = files("decisor.lab").joinpath("published", f"{name}.toml").read_text("utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    paper: Paper = TypeAdapter(Paper).validate_python(content)
    return paper


def list_published(table: PaperTable) -> Sequence[tuple[str, str, PublishedCell]]:
    """Return the printed figures of a table, as row, column and figure."""
    return [
        (row.head, column.head, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell != ""
    ]
