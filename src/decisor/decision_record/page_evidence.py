"""Rules and evidence of a record as HTML: queries with the rows that are cited, rules with the rows that break them."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.decision_record.format import Content, Query
from decisor.decision_record.restored import records_of
from decisor.plurals import counted
from decisor.render.markup import Html, join, tag
from decisor.story.links import Anchors
from decisor.story.query_words import query_html
from decisor.story.run_evidence import cell_text, figures_html, is_number
from decisor.types import Record, RuleTest


def table(names: Sequence[str], rows: Sequence[Sequence[str | Html]]) -> Html:
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), cls="scroll", tabindex=0, role="group")


def rules_html(rules: Sequence[RuleTest]) -> Html:
    return join(*(rule_html(one) for one in rules))


def rule_html(rule: RuleTest) -> Html:
    names = list(dict.fromkeys(name for row in rule.rows for name in row))
    rows = [[show(row.get(name)) for name in names] for row in rule.rows]
    more = rule.count - len(rows)
    return tag(
        "div", tag("p", tag("b", rule.state, cls=f"state {rule.state.replace(' ', '-')}"), " ", rule.text or rule.name),
        tag("p", f"{rule.candidate}: {rule.why}" if rule.candidate else rule.why, cls="soft"),
        query_html(rule.test) if rule.test else None,
        table(names, rows) if rows else None,
        tag("p", f"and {more:,} more", cls="soft") if rows and more > 0 else None,
        cls="rule",
    )  # fmt: skip


def evidence_html(content: Content, anchors: Anchors) -> Html:
    return join(*(one_query(one, anchors) for one in content.evidence.queries), figures_html(anchors))


def one_query(query: Query, anchors: Anchors) -> Html:
    of = f" of {query.total:,}" if query.total is not None and query.total != query.brought else ""
    count = f"{counted(query.brought, 'row')}{of} brought, {len(query.rows):,} cited"
    return tag(
        "div", tag("p", tag("b", f"{query.name} {query.tool}".strip()), " ", tag("span", count, cls="soft")),
        query_html(query.input) if query.input else None,
        *(rows_html(group, anchors) for group in alike(records_of(query))),
        cls="query",
    )  # fmt: skip


def alike(records: Sequence[Record]) -> list[list[Record]]:
    """Records of the same columns together."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((*record.fields, *(("text",) if record.text else ())), []).append(record)
    return list(groups.values())


def rows_html(records: Sequence[Record], anchors: Anchors) -> Html:
    names = [*records[0].fields, *(["text"] if records[0].text else [])]
    numeric = [any(is_number(one.fields.get(name)) for one in records) for name in names]
    marked = {(cell.record, cell.column): anchors.cell(cell) for cells in anchors.cells.values() for cell in cells}
    head = (
        tag("th", name, scope="col", cls="n" if right else None) for name, right in zip(names, numeric, strict=True)
    )
    rows = []
    for one in records:
        values = [*one.fields.values(), *([one.text] if one.text else [])]
        columns = [at if at < len(one.fields) else -1 for at in range(len(values))]
        cells = (
            tag("td", cell_text(value), id=marked.get((one.id, at)),
                cls=" ".join(["n"] * right + ["hit"] * ((one.id, at) in marked)) or None)
            for value, at, right in zip(values, columns, numeric, strict=True)
        )  # fmt: skip
        rows.append(tag("tr", tag("td", one.id, cls="id"), *cells, id=anchors.row(one.id)))
    whole = tag("table", tag("thead", tag("tr", tag("th", "record", scope="col"), *head)), tag("tbody", *rows))
    return tag("div", whole, cls="scroll", tabindex=0, role="group", aria_label="Rows")


def show(value: object) -> str:
    return cell_text(value) if isinstance(value, str | int | float | None) else str(value)
