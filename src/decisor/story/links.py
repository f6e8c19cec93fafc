"""Where the figures and citations of an answer lead: to the record, and to the very cell, that they come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from decisor.render.markup import Html, join, tag
from decisor.replies.figures import CITATION, COMPUTED
from decisor.story.figure_cells import Cell, cells_of
from decisor.types import Decision, Figure, Record

NAME = re.compile(r"\bo\d+(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class Anchors:
    """The names of places in one piece of HTML, so that several on one page do not meet. ``entries``: those of the
    trace that have a place; ``records``: those that the evidence shows."""

    prefix: str
    entries: frozenset[int] = frozenset()
    records: frozenset[str] = frozenset()
    cells: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()

    def record(self, name: str) -> str:
        """The record that a citation leads to; '' where the evidence does not show it."""
        whole = f"{name}."
        return name if name in self.records else min((one for one in self.records if one.startswith(whole)),
                                                     key=lambda one: (len(one), one), default="")  # fmt: skip

    def row(self, record: str) -> str:
        """Of a record among the evidence."""
        return f"{self.prefix}-e-{record}"

    def origin(self, record: str) -> str:
        """Of a record where a query brought it."""
        return f"{self.prefix}-r-{record}"

    def cell(self, cell: Cell) -> str:
        return f"{self.prefix}-c-{cell.record}-{cell.column}"

    def step(self, entry: int) -> str:
        return f"{self.prefix}-s-{entry}"


def anchors_of(decision: Decision, records: Sequence[Record], entries: frozenset[int], seed: str) -> Anchors:
    """``seed``: what tells this run from others."""
    by_id = {record.id: record for record in records}
    cells = {one.text: tuple(cells_of(one, by_id)) for one in decision.evidence.figures}
    prefix = f"d{crc32(seed.encode()):08x}"
    return Anchors(prefix, entries, frozenset(by_id), cells, decision.evidence.figures)


def linked(text: str, anchors: Anchors) -> Html:
    """A text of the decision: citations lead to their record, figures to their cell."""
    parts: list[Html | str] = []
    end = 0
    for match in pieces(anchors.figures).finditer(text):
        parts.append(text[end : match.start()])
        parts.append(citation(match[0], anchors) if CITATION.match(match[0]) else figure(match[0], anchors))
        end = match.end()
    return join(*parts, text[end:])


def pieces(figures: Sequence[Figure]) -> re.Pattern[str]:
    """Citations, and the figures as they are written, the longest first. Latin letters beside one make it a word."""
    texts = sorted({one.text for one in figures if one.text and one.support}, key=len, reverse=True)
    ends = [rf"(?<![0-9A-Za-z_.,]){re.escape(text)}(?![0-9A-Za-z_]|[.,]\d)" for text in texts]
    return re.compile("|".join([re.sub(r"\((?!\?)", "(?:", CITATION.pattern), *ends]))


def citation(text: str, anchors: Anchors) -> Html:
    """Of an observation as a whole to the first of its records."""
    links = [tag("a", name, href=f"#{anchors.row(record)}") if (record := anchors.record(name)) else name
             for name in NAME.findall(text)]  # fmt: skip
    return join(*(tag("span", link, cls="cite") for link in links))


def figure(text: str, anchors: Anchors) -> Html:
    support = next((one.support for one in anchors.figures if one.text == text), "")
    title = support.removeprefix(COMPUTED) if support.startswith(COMPUTED) else f"from {support}"
    cells = anchors.cells.get(text, ())
    if not cells:
        return tag("span", text, cls="figure", title=title)
    return tag("a", text, cls="figure", href=f"#{anchors.cell(cells[0])}", title=title)
