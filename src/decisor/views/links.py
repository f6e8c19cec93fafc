"""Links from the figures and citations of an answer to the records and cells that they come from.

A citation leads to its record, a figure to the cell that supports it, a computed figure to the first cell of its
formula. Only records that the evidence shows can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.parsing.figures import CITATION, COMPUTED, interpret_number, iterate_numbers, rounds_to_reading
from decisor.types import Decision, Figure, Record
from decisor.views.markup import Html, join, tag

RECORD = re.compile(r"\bo\d+\.\w+")


@dataclass(frozen=True, slots=True)
class EvidenceCell:
    """A place in the evidence: a record and the number of its column, -1 for its text."""

    record: str
    column: int


def find_figure_cells(figure: Figure, records: Mapping[str, Record]) -> Iterator[EvidenceCell]:
    """Yield the cells that hold a figure; for a calculation, the cells that it starts from."""
    for name in dict.fromkeys(RECORD.findall(figure.support)):
        if name in records:
            column = find_figure_column(figure, records[name])
            if column is not None:
                yield EvidenceCell(name, column)


def find_figure_column(figure: Figure, record: Record) -> int | None:
    """Return the number of the column that supports a figure; -1 for the text, None if there is none.

    >>> find_figure_column(Figure("12.3", "o1.r1"), Record("o1.r1", {"name": "elm", "rent": 12.34}))
    1
    """
    wanted = interpret_number(figure.text)
    terms = [
        float(term) for term in re.findall(rf"(-?[\d.]+(?:e[+-]?\d+)?) \[{re.escape(record.id)}\]", figure.support)
    ]
    # 12.3 % may be written of a cell that holds 0.123.
    percent = figure.text.endswith("%")
    for at, value in enumerate(record.fields.values()):
        for one in iterate_numbers(value):
            near = any(abs(one - term) <= 1e-6 * max(1.0, abs(term)) for term in terms)
            if near or any(
                rounds_to_reading(one, each) or (percent and rounds_to_reading(100 * one, each)) for each in wanted
            ):
                return at
    return -1 if record.text else None


NAME = re.compile(r"\bo\d+(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class Anchors:
    """Places on a page that figures and citations of a decision lead to."""

    records: frozenset[str]
    """Records that the evidence shows."""
    cells: Mapping[str, tuple[EvidenceCell, ...]]
    """Cells that support each figure, by the text of the figure."""
    figures: tuple[Figure, ...]

    def record(self, name: str) -> str:
        """Return the record that a citation leads to; '' if the evidence does not show it."""
        if name in self.records:
            return name
        # A citation of a whole observation, such as o2, leads to its first record.
        rows = (one for one in self.records if one.startswith(f"{name}."))
        return min(rows, key=lambda row: (len(row), row), default="")


def row_anchor(record: str) -> str:
    """Return the id of a record's row in the evidence."""
    return f"e-{record}"


def cell_anchor(cell: EvidenceCell) -> str:
    return f"c-{cell.record}-{cell.column}"


def anchors_of(decision: Decision, records: Sequence[Record]) -> Anchors:
    by_id = {record.id: record for record in records}
    cells = {one.text: tuple(find_figure_cells(one, by_id)) for one in decision.evidence.figures}
    return Anchors(frozenset(by_id), cells, decision.evidence.figures)


def link_text(text: str, anchors: Anchors) -> Html:
    """Return a text of the decision with citations linked to records and figures to cells."""
    parts: list[Html | str] = []
    end = 0
    for match in link_pattern(anchors.figures).finditer(text):
        parts.append(text[end : match.start()])
        parts.append(citation_html(match[0], anchors) if CITATION.match(match[0]) else figure_html(match[0], anchors))
        end = match.end()
    return join(*parts, text[end:])


def link_pattern(figures: Sequence[Figure]) -> re.Pattern[str]:
    """Build the pattern of citations and figures as they are written, the longest figure first.

    Latin letters beside a figure make it a word.
    """
    # The longest first, as alternatives are tried in order: 12.34 before 12.
    texts = sorted({one.text for one in figures if one.text and one.support}, key=len, reverse=True)
    ends = [rf"(?<![0-9A-Za-z_.,]){re.escape(text)}(?![0-9A-Za-z_]|[.,]\d)" for text in texts]
    return re.compile("|".join([re.sub(r"\((?!\?)", "(?:", CITATION.pattern), *ends]))


def citation_html(text: str, anchors: Anchors) -> Html:
    """Link a citation; one of a whole observation leads to its first record."""
    names = ((name, anchors.record(name)) for name in NAME.findall(text))
    links = (
        tag("a", name, href=f"#{row_anchor(record)}", cls="cite") if record else tag("span", name, cls="cite")
        for name, record in names
    )
    return tag("span", *links, cls="cites")


def figure_html(text: str, anchors: Anchors) -> Html:
    support = next((one.support for one in anchors.figures if one.text == text), "")
    title = support.removeprefix(COMPUTED) if support.startswith(COMPUTED) else f"from {support}"
    cells = anchors.cells.get(text, ())
    if not cells:
        return tag("span", text, cls="figure", title=title)
    return tag("a", text, cls="figure", href=f"#{cell_anchor(cells[0])}", title=title)


def figures_html(anchors: Anchors) -> Html | None:
    """Return the computed figures with their formulas as HTML; None if there are none."""
    computed = [one for one in anchors.figures if one.support.startswith(COMPUTED)]
    lines = (
        tag("div", tag("dt", one.text), tag("dd", link_formula(one.support.removeprefix(COMPUTED), anchors)))
        for one in computed
    )
    return tag("dl", *lines, cls="figures") if computed else None


def link_formula(formula: str, anchors: Anchors) -> Html:
    """Link each record in a formula to its row."""
    parts: list[Html | str] = []
    end = 0
    for match in RECORD.finditer(formula):
        link = tag("a", match[0], href=f"#{row_anchor(match[0])}") if match[0] in anchors.records else match[0]
        parts += [formula[end : match.start()], link]
        end = match.end()
    return join(*parts, formula[end:])
