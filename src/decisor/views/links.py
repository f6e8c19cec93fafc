"""Links from the figures and citations of an answer to the records and cells that they come from.

A citation leads to its record, a figure to the cell that supports it, a computed figure to the first cell of its
formula. Only records that the evidence shows can be reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from decisor.parsing.figures import CITATION, COMPUTED, interpret_number, iterate_numbers, rounds_to_reading
from decisor.system.text import format_number
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

    rows: Mapping[str, Record]
    """Records that the evidence shows, by id."""
    cells: Mapping[str, tuple[EvidenceCell, ...]]
    """Cells that support each figure, by the text of the figure."""
    figures: tuple[Figure, ...]

    @property
    def records(self) -> frozenset[str]:
        return frozenset(self.rows)

    def record(self, name: str) -> str:
        """Return the record that a citation leads to; '' if the evidence does not show it."""
        if name in self.rows:
            return name
        # A citation of a whole observation, such as o2, leads to its first record.
        rows = (one for one in self.rows if one.startswith(f"{name}."))
        return min(rows, key=lambda row: (len(row), row), default="")

    def describe_source(self, figure: Figure) -> str:
        """Describe where a figure comes from: the calculation, or the query with the row and column."""
        cells = self.cells.get(figure.text, ())
        if figure.support.startswith(COMPUTED):
            return name_queries(figure.support.removeprefix(COMPUTED))
        if not cells:
            return name_queries(figure.support)
        record, fields = self.rows[cells[0].record], list(self.rows[cells[0].record].fields.items())
        first = next((str(value) for _, value in fields if isinstance(value, str)), "")
        column = fields[cells[0].column][0] if cells[0].column >= 0 else "text"
        return ", ".join(part for part in (name_queries(record.id.partition(".")[0]), first[:40], column) if part)


def name_queries(text: str) -> str:
    """Write the ids of records as people read them.

    >>> name_queries("143627.3 [o2.r2] - 133310 [o2.r1]"), name_queries("o3")
    ('143627.3 [query 2, row 2] - 133310 [query 2, row 1]', 'Query 3')
    """
    words = re.sub(r"\bo(\d+)(?:\.r(\d+))?\b", lambda id: f"query {id[1]}{f', row {id[2]}' if id[2] else ''}", text)
    return words[:1].upper() + words[1:]


def row_anchor(record: str) -> str:
    """Return the id of a record's row in the evidence."""
    return f"e-{record}"


def cell_anchor(cell: EvidenceCell) -> str:
    return f"c-{cell.record}-{cell.column}"


def anchors_of(decision: Decision, records: Sequence[Record]) -> Anchors:
    by_id = {record.id: record for record in records}
    cells = {one.text: tuple(find_figure_cells(one, by_id)) for one in decision.evidence.figures}
    return Anchors(by_id, cells, decision.evidence.figures)


def link_text(text: str, anchors: Anchors) -> Html:
    """Return a text of the decision with figures linked to cells and citations to records.

    A citation of a record that a figure of the text leads to already is left out, as it says nothing more.
    """
    # The longest figure first, as alternatives are tried in order: 12.34 before 12. Letters beside it make it a word.
    figures = sorted({one.text for one in anchors.figures if one.text}, key=len, reverse=True)
    ends = [rf"(?<![0-9A-Za-z_.,]){re.escape(one)}(?![0-9A-Za-z_]|[.,]\d)" for one in figures]
    pattern = "|".join([re.sub(r"\((?!\?)", "(?:", CITATION.pattern), *ends])
    matches = list(re.finditer(pattern, text))
    texts = {match[0] for match in matches if not CITATION.match(match[0])}
    shown = {cell.record for one in texts for cell in anchors.cells.get(one, ())}
    parts: list[Html | str | None] = []
    end = 0
    for match in matches:
        before, is_citation = text[end : match.start()], CITATION.match(match[0]) is not None
        names = [name for name in NAME.findall(match[0]) if name not in shown] if is_citation else []
        parts.append(before.rstrip() if is_citation and not names else before)
        parts.append(citation_html(names, anchors) if is_citation else figure_html(match[0], anchors))
        end = match.end()
    return join(*parts, text[end:])


def citation_html(names: Sequence[str], anchors: Anchors) -> Html | None:
    """Link a citation; one of a whole observation leads to its first record."""
    links = (
        tag(
            "a",
            name.removeprefix("o").replace(".r", "."),
            href=f"#{row_anchor(record)}",
            cls="cite",
            aria_label=name_queries(name),
        )
        if record
        else tag("span", name, cls="cite")
        for name, record in ((name, anchors.record(name)) for name in names)
    )
    return tag("span", *links, cls="cites") if names else None


def figure_html(text: str, anchors: Anchors) -> Html:
    """Link a figure to its cell; one without a source is marked as such."""
    figure = next(one for one in anchors.figures if one.text == text)
    if not figure.support:
        return tag("span", text, cls="none")
    source, cells = anchors.describe_source(figure), anchors.cells.get(text, ())
    if not cells:
        return tag("span", text, cls="figure", title=source)
    label = f"{text}, {source}"
    return tag("a", text, cls="figure", href=f"#{cell_anchor(cells[0])}", data_from=source, aria_label=label)


def figures_html(anchors: Anchors) -> Html | None:
    """Return the computed figures with their formulas as HTML; None if there are none."""
    computed = [one for one in anchors.figures if one.support.startswith(COMPUTED)]
    lines = (
        tag("div", tag("dt", one.text), tag("dd", "= ", link_formula(one.support.removeprefix(COMPUTED), anchors)))
        for one in computed
    )
    return tag("dl", *lines, cls="figures") if computed else None


def link_formula(formula: str, anchors: Anchors) -> Html:
    """Link each number of a formula to the row that it is from, as the row has it: a formula holds rounded ones."""
    parts: list[Html | str] = []
    end = 0
    for match in re.finditer(r"(-?[\d.]+(?:e[+-]?\d+)?) \[(o\d+\.\w+)\]", formula):
        number, record = float(match[1]), anchors.rows.get(match[2])
        values = [one for value in record.fields.values() for one in iterate_numbers(value)] if record else []
        exact = min(values, key=lambda one: abs(one - number), default=number)
        text = format_number(exact if abs(exact - number) <= 1e-5 * max(1.0, abs(number)) else number)
        link = tag("a", text, href=f"#{row_anchor(match[2])}", title=name_queries(match[2]))
        parts += [formula[end : match.start()].replace(" - ", " − "), link if record else f"{text} [{match[2]}]"]
        end = match.end()
    return join(*parts, formula[end:])
