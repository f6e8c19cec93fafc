"""What a decision rests on, as HTML: the records as tables, and how each figure follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.render.markup import Html, join, tag
from decisor.render.text import number
from decisor.replies.figures import COMPUTED
from decisor.story.figure_cells import RECORD, Cell
from decisor.story.links import Anchors
from decisor.types import Record, Value


def evidence_html(records: Sequence[Record], anchors: Anchors) -> Html:
    """Records of the same columns in one table. Columns that hold a figure of the answer come first, and each such cell
    is marked."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*record.fields, *(("text",) if record.text else ())), []).append(record)
    marked = {cell for cells in anchors.cells.values() for cell in cells}
    tables = [table_html(names, group, marked, anchors) for names, group in groups.items()]
    return join(tag("h2", "Evidence"), *tables, figures_html(anchors))


def table_html(names: Sequence[str], records: Sequence[Record], marked: set[Cell], anchors: Anchors) -> Html:
    ids = {record.id for record in records}
    deciding = {cell.column for cell in marked if cell.record in ids}
    texts = {at for at, name in enumerate(names) if not any(is_number(one.fields.get(name)) for one in records)}
    order = sorted(range(len(names)), key=lambda at: (at > 0, at not in deciding, at))
    head = (tag("th", names[at], cls=None if at in texts else "n", scope="col") for at in order)
    body = (tag("tr", *row_html(one, names, order, texts, marked, anchors), id=anchors.row(one.id)) for one in records)
    inner = tag("table", tag("thead", tag("tr", tag("th", "record", scope="col"), *head)), tag("tbody", *body))
    return tag("div", inner, cls="scroll evidence", tabindex=0, role="group", aria_label="Evidence")


def row_html(
    record: Record, names: Sequence[str], order: Sequence[int], texts: set[int], marked: set[Cell], anchors: Anchors
) -> Iterator[Html]:
    source = tag("small", f" {record.source}") if record.source else None
    yield tag("td", tag("a", record.id, href=f"#{anchors.origin(record.id)}"), source, cls="id")
    for at in order:
        is_text = at >= len(record.fields)
        cell = Cell(record.id, -1 if is_text else at)
        value = record.text if is_text else record.fields[names[at]]
        hit = cell in marked
        classes = " ".join(part for part in ("" if at in texts else "n", "hit" if hit else "") if part)
        yield tag("td", cell_text(value), cls=classes or None, id=anchors.cell(cell) if hit else None)


def cell_text(value: Value) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else str(value)


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def figures_html(anchors: Anchors) -> Html | None:
    """Those that are computed."""
    rows = [
        (one.text, one.support.removeprefix(COMPUTED)) for one in anchors.figures if one.support.startswith(COMPUTED)
    ]
    lines = (tag("div", tag("dt", tag("span", text, cls="figure")), tag("dd", with_links(formula, anchors)))
             for text, formula in rows)  # fmt: skip
    return tag("dl", *lines, cls="figures") if rows else None


def with_links(formula: str, anchors: Anchors) -> Html:
    """Each record in a formula leads to its row."""
    parts: list[Html | str] = []
    end = 0
    for match in RECORD.finditer(formula):
        link = tag("a", match[0], href=f"#{anchors.row(match[0])}") if match[0] in anchors.records else match[0]
        parts += [formula[end : match.start()], link]
        end = match.end()
    return join(*parts, formula[end:])
