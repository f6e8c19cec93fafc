"""The result of a run as HTML: the decision, its ranking, what-ifs and charts, and the evidence.

Citations lead to records, and figures to the cells that support them. A page, a notebook, a record and the cases of a
report show the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from decisor.trace.events import ActionResult, Conclusion, NodeResult, TraceEntry, events_of
from decisor.types import Decision, Record
from decisor.views.answer_charts import charts_of_decision
from decisor.views.chart_drawing import chart_html
from decisor.views.links import Anchors, EvidenceCell, anchors_of, cell_anchor, figures_html, link_text, row_anchor
from decisor.views.markup import Html, join, tag
from decisor.views.rankings import ranking_html, studies_of, study_html
from decisor.views.terminal import format_table_value
from decisor.views.transcript import describe_end, pitfall_lines


def result_html(entries: Sequence[TraceEntry], decision: Decision, records: Sequence[Record]) -> Html:
    """Return the result of a run, part by part. records: the cited ones, as the reader may see them."""
    anchors = anchors_of(decision, records)
    tables = [evidence_table(group, anchors, links=True) for group in group_by_columns(records)]
    evidence = tag("section", tag("h2", "Evidence"), *tables, figures_html(anchors), aria_label="Evidence")
    return join(
        decision_html(decision, anchors),
        ranking_html(decision.ranking) if decision.ranking else None,
        *map(study_html, studies_of(entries)),
        *(chart_html(chart, anchors.records) for chart in charts_of_decision(entries, decision, records)),
        evidence if tables else None,
    )


def decision_of_entries(entries: Sequence[TraceEntry]) -> tuple[Decision | None, list[Record]]:
    """Return the decision that a run came to, and the records that it cites; None if it came to none."""
    ends = [entry.event.decision for entry in entries if isinstance(entry.event, Conclusion) and entry.span == 0]
    decision = ends[-1] if ends else None
    records = {one.id: one for result in events_of(entries, ActionResult) for one in result.observation.records}
    records |= {one.id: one for node in events_of(entries, NodeResult) for one in node.answer.documents}
    ids = decision.evidence.ids if decision else ()
    return decision, [records[id] for id in ids if id in records]


def decision_html(decision: Decision, anchors: Anchors) -> Html:
    why = describe_end(decision)
    assumptions = (tag("li", link_text(text, anchors)) for text in decision.assumptions)
    return tag(
        "section",
        tag("h2", "Decision"),
        tag("p", decision.answer or "None", cls="answer" if decision.answer else "answer none"),
        tag("p", why, cls="soft") if why else None,
        *(tag("p", link_text(text, anchors)) for text in decision.reasons),
        tag("p", tag("b", "Runner-up: "), link_text(decision.runner_up, anchors), cls="beside")
        if decision.runner_up
        else None,
        tag("div", tag("b", "Assumptions"), tag("ul", *assumptions), cls="beside") if decision.assumptions else None,
        *(tag("p", link_text(one.text, anchors), cls="fault objection") for one in decision.evidence.objections),
        *(tag("p", link_text(line, anchors), cls="fault") for line in pitfall_lines(decision)),
        cls="card decision" if decision.answer else "card decision open",
        aria_label="Decision",
    )


def group_by_columns(records: Sequence[Record]) -> list[list[Record]]:
    """Group records that have the same columns."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*record.fields, *(("text",) if record.text else ())), []).append(record)
    return list(groups.values())


def evidence_table(records: Sequence[Record], anchors: Anchors, links: bool = False) -> Html:
    """Return records with the same columns as a table; those that hold a figure of the decision come first.

    Args:
        links: Whether each leads to the query that brought it, which stands on the page too.
    """
    names = [*records[0].fields, *(["text"] if records[0].text else [])]
    numbers = {at for at, name in enumerate(names) if any(is_numeric_cell(one.fields.get(name)) for one in records)}
    # The text of a record has the number -1.
    columns = [-1 if at >= len(records[0].fields) else at for at in range(len(names))]
    hits = {cell for cells in anchors.cells.values() for cell in cells}
    marked = {at for at, column in enumerate(columns) if any(EvidenceCell(one.id, column) in hits for one in records)}
    # The first column names the row.
    order = sorted(range(len(names)), key=lambda at: (at > 0, at not in marked, at))
    head = (tag("th", names[at], scope="col", cls="n" if at in numbers else None) for at in order)
    rows = []
    for record in records:
        cells = []
        for at in order:
            cell = EvidenceCell(record.id, columns[at])
            text = record.text if columns[at] < 0 else format_table_value(record.fields[names[at]])
            cls = " ".join(["n"] * (at in numbers) + ["hit"] * (cell in hits)) or None
            cells.append(tag("td", text, id=cell_anchor(cell) if cell in hits else None, cls=cls))
        name = tag("a", record.id, href=f"#r-{record.id}") if links else record.id
        source = tag("small", f" {record.source}") if links and record.source else None
        rows.append(tag("tr", tag("td", name, source, cls="id"), *cells, id=row_anchor(record.id)))
    inner = tag("table", tag("thead", tag("tr", tag("th", "record", scope="col"), *head)), tag("tbody", *rows))
    return tag("div", inner, cls="scroll", tabindex=0, role="group", aria_label="Evidence")


def is_numeric_cell(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
