"""A decision record as a file, and as one page that needs nothing else, on a screen and on paper.

A file is written, read, and checked against its schema and its own digests. The page shows rules with the rows that
break them, queries with the cited rows, the means and data of the decision, and the digests. It has no scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from decisor.decision_record.build import decision_of, parse_recorded_model, restore_records
from decisor.decision_record.record import (
    FORMAT,
    Content,
    DecisionRecord,
    Query,
    check_approval,
    digest_of_json,
    parse_record,
    part_digests,
    row_digest,
)
from decisor.errors import SetupError
from decisor.system.serialization import finite_json_value
from decisor.system.storage import write_private
from decisor.system.text import fit_on_one_line
from decisor.system.wording import format_count
from decisor.trace.events import RowPolicy
from decisor.types import RuleTest, Usage
from decisor.views.comparison import compare_ranking, dot_plot_html
from decisor.views.links import Anchors, anchors_of, figures_html
from decisor.views.markup import Html, join, read_static, tag
from decisor.views.page import html_document, run_page_style
from decisor.views.rankings import plan_html
from decisor.views.results import decision_html, doubts_html, evidence_table, gain_chart_html, list_doubts
from decisor.views.terminal import format_table_value, group_records


def plain_table_html(names: Sequence[str], rows: Sequence[Sequence[str | Html]]) -> Html:
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), cls="scroll", tabindex=0, role="group")


def rule_html(rule: RuleTest) -> Html:
    names = list(dict.fromkeys(name for row in rule.rows for name in row))
    rows = [[format_table_value(row.get(name)) for name in names] for row in rule.rows]
    more = rule.count - len(rows)
    return tag(
        "div",
        tag("p", tag("b", rule.state, cls=f"state {rule.state.replace(' ', '-')}"), " ", rule.text or rule.name),
        tag("p", f"{rule.candidate}: {rule.why}" if rule.candidate else rule.why, cls="soft"),
        tag("pre", rule.test, tabindex=0) if rule.test else None,
        plain_table_html(names, rows) if rows else None,
        tag("p", f"and {more:,} more", cls="soft") if rows and more > 0 else None,
        cls="rule",
    )


def query_section_html(query: Query, anchors: Anchors) -> Html:
    of = f" of {query.total:,}" if query.total is not None and query.total != query.brought else ""
    count = f"{format_count(query.brought, 'row')}{of} brought, {len(query.rows):,} cited"
    return tag(
        "div",
        tag("p", tag("b", f"{query.name} {query.tool}".strip()), " ", tag("span", count, cls="soft")),
        tag("pre", query.input, tabindex=0) if query.input else None,
        *(evidence_table(group, anchors) for group in group_records(restore_records(query), passages_alone=False)),
        cls="query",
    )


def model_html(content: Content) -> Html | None:
    model = content.model
    if model is None:
        return None
    name = f"{model.path}{f' · SHA-256 {model.digest}' if model.digest else ''}"
    return join(
        plain_table_html(("part", "name", "what it says"), [*list_model_parts(model.text)]),
        tag("details", tag("summary", "The file"), tag("pre", model.text, tabindex=0)) if model.text else None,
        tag("p", name, cls="soft digest"),
    )


def list_model_parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a decision model in words: kind, name, and what it says."""
    if (model := parse_recorded_model(text)) is None:
        return  # its file stands below
    yield "to decide", "", model.decide
    for choice in model.choices:
        yield "choice", choice.name, f"{' and '.join(map(str, choice.takes))} of: {choice.says or choice.rows}"
    for unknown in model.unknowns:
        unit = f" in {unknown.unit}" if unknown.unit else ""
        yield "amount", unknown.name, f"{unknown.kind}{unit}, for each of: {unknown.says or unknown.per}"
    functions = {one.name: one for one in model.functions}
    yield from (("table", one.name, one.says) for one in model.tables if one.says and one.name not in functions)
    for one in model.measures:
        unit, books = (
            f", in {one.unit}" if one.unit else "",
            f"; the books say {one.now:,}" if one.now is not None else "",
        )
        yield ("measure", one.name, f"{one.aim}{unit}{': ' * bool(one.part)}{' + '.join(one.part)}{books}")
    for rule in model.rules:
        price = f" Breaking it costs {rule.price.price}." if rule.price else ""
        yield (
            "rule",
            rule.name,
            f"{rule.text or rule.test}{price}{'' if rule.testable else ' Not tested: no data say it.'}",
        )
    for column in model.inputs:
        effects = [
            f"{verb} {', '.join(names)}"
            for verb, names in (("raises", column.raises), ("lowers", column.lowers))
            if names
        ]
        spread = f"varies by {column.spread}" if column.spread else "taken as certain"
        yield "input", column.name, "; ".join(filter(None, [column.unit, *effects, spread]))
    for name, value in model.parameters.items():
        source = f" ({model.sources[name]})" if name in model.sources else ""
        yield "parameter", name, f"{value} {model.units.get(name, '')}".strip() + source
    for function in model.functions:
        yield "function", function.name, f"{function.table.says}: {function.table.sql.partition('VALUES ')[2]}"
    for fix in model.corrections:
        where = ", ".join(f"{key} {value}" for key, value in fix.key.items())
        yield "correction", f"{fix.table}.{fix.column} of {where}", f"{fix.becomes}, not {fix.was}. {fix.source}"
    for scenario in model.scenarios:
        yield "left open" if scenario.open else "scenario", scenario.name, f"{scenario.open} {scenario.words}".strip()
    yield from (("left open", "", one) for one in model.open)


def facts_html(content: Content) -> Html:
    means, usage = content.means, content.usage
    facts = {
        "LLM": means.lm or "none was asked",
        "It calls itself": ", ".join(one for one in means.lm_names if one != means.lm),
        "Technique": f"{means.technique}{f' ({means.chosen})' if means.chosen else ''}",
        "Decisor": means.version or "not known",
        **(usage_facts(usage) if means.lm else {}),
        "Actions": f"{usage.actions:,}",
        **{name.replace("_", " "): text for name, text in means.settings.items()},
    }
    rows = [
        (
            one.name,
            one.form,
            one.place or "a connection by that name",
            describe_policies(one.rows, one.mask) or "all of it",
        )
        for one in content.data.sources
    ]
    limits = {"Only these tables": content.data.tables, "Not these": content.data.deny_tables}
    return join(
        tag(
            "dl",
            *(tag("div", tag("dt", name), tag("dd", text)) for name, text in facts.items() if text),
            cls="facts card",
        ),
        plain_table_html(("data", "kind", "where", "what was to be read"), rows) if rows else None,
        *(tag("p", f"{name}: {', '.join(tables)}", cls="soft") for name, tables in limits.items() if tables),
    )


def usage_facts(usage: Usage) -> dict[str, str]:
    price = "unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    return {
        "LLM calls": f"{usage.calls:,}",
        "Tokens": f"{usage.tokens:,}",
        "Price": f"{price}, in part estimated" if usage.estimates else price,
    }


def describe_policies(rows: Sequence[RowPolicy], mask: Sequence[str]) -> str:
    """Describe the rows and masked columns that a source was restricted to.

    >>> describe_policies([RowPolicy("orders", "region = 'EU'")], ["customers.email"])
    "of orders only rows with region = 'EU'; of customers.email only tokens"
    """
    parts = [
        f"of {one.table} only rows {f'with {one.condition}' if one.condition else 'that are for who asked'}"
        for one in rows
    ]
    return "; ".join([*parts, *([f"of {', '.join(mask)} only tokens"] if mask else [])])


def digests_html(record: DecisionRecord) -> Html:
    words = f"SHA-256 of the content: {record.digest}. Each approval is of the content with the digest that it names."
    how = "To check it, and to compute the decision again: decisor history verify RECORD.json, with the same data."
    return join(tag("p", words, cls="soft digest"), tag("p", how, cls="soft"))


STATES = {
    "holds": "",
    "refused": "",
    "withdrawn": "withdrawn",
    "of another content": "The record was changed after this approval.",
    "changed": "This approval was changed after it was made.",
}
CHANGED = "This record was changed after it was made: its digest is not that of its content."


@cache
def record_style() -> str:
    return run_page_style() + read_static("record.css")


def render_record_page(record: DecisionRecord) -> str:
    """Return a record as a whole HTML document, without scripts."""
    style = tag("style", Html(record_style()))
    body = tag("main", style, *render_record_parts(record), cls="decisor record")
    title = f"Record: {record.content.request.question}"
    return html_document(title, body, record_style(), "script-src 'none'")


def render_record_parts(record: DecisionRecord) -> Iterator[Html | None]:
    content = record.content
    decision = decision_of(content)
    records = [one for query in content.evidence.queries for one in restore_records(query)]
    anchors = anchors_of(decision, records)
    yield tag("p", " · ".join(list_heading_parts(record)), cls="soft")
    yield tag("h1", content.request.question)
    yield tag("p", content.request.goal) if content.request.goal else None
    comparison = compare_ranking(content.alternatives) if content.alternatives else None
    yield decision_html(decision, anchors, comparison, content.request.question, content.rules)
    # The digest is computed anew: the one in the record may have been changed along with the content.
    yield approvals_html(record, digest_of_json(content))
    yield record_section_html(
        "Asked before", tag("ul", *(tag("li", one) for one in content.request.before)), content.request.before
    )
    yield record_section_html("Rules, in words", tag("p", content.request.rules), content.request.rules)
    yield record_section_html("Warnings", bullet_list_html(content.warnings, "fault"), content.warnings)
    yield record_section_html("What words mean", meanings_html(content), content.definitions or content.readings)
    yield plan_html(content.alternatives)
    yield dot_plot_html(comparison) if comparison else None
    # Assumptions and pitfalls have sections of their own here.
    told = replace(decision, assumptions=(), evidence=replace(decision.evidence, pitfalls=()))
    yield doubts_html(list_doubts((), told, anchors, comparison))
    yield gain_chart_html(content.alternatives)
    yield record_section_html("Rules, executed", join(*map(rule_html, content.rules)), content.rules)
    queries = content.evidence.queries
    evidence = join(*(query_section_html(one, anchors) for one in queries), figures_html(anchors))
    yield record_section_html("Evidence", evidence, queries)
    yield record_section_html("Taken as certain", bullet_list_html(content.assumptions), content.assumptions)
    points = [(one.what, one.settles) for one in content.open_points]
    heads = ("what is open", "what would settle it")
    yield record_section_html("Open points", plain_table_html(heads, points), points)
    yield record_section_html("The decision model", model_html(content), content.model)
    yield record_section_html("What decided, on which data", facts_html(content), True)
    yield record_section_html("Digests", digests_html(record), True)


def record_section_html(title: str, inside: Html | None, there: object) -> Html | None:
    return tag("section", tag("h2", title), inside) if there else None


def list_heading_parts(record: DecisionRecord) -> Iterator[str]:
    request = record.content.request
    yield "Record of a decision"
    yield f"asked by {request.by}" if request.by else "who asked is not known"
    if request.at:
        yield format_utc_minute(request.at)
    if record.run:
        yield f"run {record.run}"


def format_utc_minute(at: str) -> str:
    """Format an ISO 8601 time in UTC to the minute.

    >>> format_utc_minute("2026-11-22T10:46:57+00:00")
    '2026-11-22 10:46 UTC'
    """
    return f"{at[:10]} {at[11:16]} UTC"


def approvals_html(record: DecisionRecord, digest: str) -> Html:
    """Return the approvals as HTML. digest: of the content as it is now."""
    changed = tag("p", CHANGED, cls="fault") if digest != record.digest else None
    items = list(list_approval_items(record, digest))
    nobody = tag("p", "Nobody has approved this decision.", cls="soft")
    return tag("div", changed, tag("ul", *items, cls="approvals") if items else nobody, cls="signed")


def list_approval_items(record: DecisionRecord, digest: str) -> Iterator[Html]:
    for one in record.approvals:
        state = check_approval(one, digest)
        words = STATES[state]
        if state == "withdrawn":
            words = f"Withdrawn {format_utc_minute(one.withdrawn)}{f': {one.why}' if one.why else ''}"
        elif state in ("holds", "refused") and one.by == record.content.request.by:
            words = "The same person asked."
        yield tag(
            "li",
            tag("b", one.by),
            " ",
            tag("span", "approved" if state == "holds" else state, cls="state"),
            " ",
            tag("span", format_utc_minute(one.at), cls="soft"),
            tag("p", f"To be looked at again on {one.review}.") if one.review else None,
            tag("p", one.note) if one.note else None,
            tag("p", words, cls="soft" if state in ("holds", "refused", "withdrawn") else "fault") if words else None,
            cls=state.replace(" ", "-"),
        )


def bullet_list_html(texts: Sequence[str], cls: str | None = None) -> Html:
    return tag("ul", *(tag("li", one, cls=cls) for one in texts))


def meanings_html(content: Content) -> Html:
    rows = [
        (f"{one.name} [{one.id}]", one.says, " · ".join(part for part in (one.by, one.on, one.file) if part))
        for one in content.definitions
    ]
    for one in content.readings:
        other = f"It could mean {one.other}" if one.other else ""
        gives = f", which gives {one.gives}" if one.gives else f", not computed: {one.why}" if one.why else ""
        by = f"said by {one.by}" if one.by else "nobody was asked"
        rows.append((f"“{one.words}”", one.means, f"{by}. {other}{gives}.".replace(". .", ".")))
    return plain_table_html(("word", "means", "where from"), rows)


MOST_BYTES = 256 * 2**20
SIGN = re.compile(rb'"format"\s*:\s*"decisor decision record')


@dataclass(frozen=True)
class RecordFile:
    """A decision record read from a file."""

    record: DecisionRecord
    faults: tuple[str, ...] = ()
    """Parts that are not as they were when it was made."""


def record_to_json(record: DecisionRecord) -> str:
    """Return a record as JSON text."""
    text = json.dumps(finite_json_value(record), ensure_ascii=False, indent=2, allow_nan=False)
    # Half of a surrogate pair, which an LLM may write, fits in no file in UTF-8.
    return text.encode("utf-8", "replace").decode() + "\n"


def write_record(record: DecisionRecord, path: str | PathLike[str]) -> None:
    """Write a record as JSON, or as one page if the name ends with ``.html``.

    Raises:
        SetupError: the file cannot be written.
    """
    path = Path(path)
    text = render_record_page(record) if path.suffix in (".html", ".htm") else record_to_json(record)
    try:
        write_private(path, text)
    except OSError as error:
        raise SetupError(f"Cannot write {path}: {error.strerror}.") from error


def is_record_file(path: Path) -> bool:
    """Return whether a file begins like a record."""
    try:
        with path.open("rb") as file:
            return SIGN.search(file.read(4096)) is not None
    except OSError:
        return False


def read_record(path: Path) -> RecordFile:
    """Read a record; raise SetupError if it cannot be read or does not meet the schema."""
    try:
        # A file comes from strangers: its size is checked before it is read into memory.
        if path.stat().st_size > MOST_BYTES:
            raise SetupError(f"{path} is too large for the record of a decision.")
        return check_record(json.loads(path.read_bytes(), object_pairs_hook=refuse_repeated_names), str(path))
    except OSError as error:
        raise SetupError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{path} is no JSON of a record: {fit_on_one_line(str(error), 200)}") from error


def refuse_repeated_names(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; raise ValueError if a name stands twice. Two readers could take one value each."""
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return names


def check_record(plain: object, where: str = "This") -> RecordFile:
    """Check a record and list its faults; raise SetupError if it does not meet the schema.

    The message names the place.
    """
    if not isinstance(plain, Mapping) or plain.get("format") != FORMAT:
        version = plain.get("format") if isinstance(plain, Mapping) else None
        hint = f" of this version ({FORMAT})" if isinstance(version, str) else ""
        raise SetupError(f"{where} is no record of a decision{hint}. Make one: decisor history show last --record FILE")
    record = parse_record(plain, where)
    return RecordFile(record, tuple(find_record_faults(record, plain)))


def find_record_faults(record: DecisionRecord, plain: Mapping[str, Any]) -> Iterator[str]:
    """Yield each part, row and approval of a record that is not as it was."""
    # The file's own values, not the parsed record: parsing may fill in or drop fields.
    content = plain["content"]
    digests = part_digests(content)
    changed = [name for name, digest in digests.items() if record.digests.get(name) != digest]
    for name in changed:
        yield f"{name} was changed after the record was made: its digest is another."
    if set(record.digests) != set(digests):
        yield "Digests are not those of the parts of the content."
    if digest_of_json(content) != record.digest:
        yield "The digest is not that of the content."
    elif record.run_digest != digest_of_json([record.digest, record.run]):
        yield "The number of the run was changed after the record was made."
    for query in record.content.evidence.queries:
        yield from (
            f"The row {row.id} was changed after the record was made."
            for row in query.rows
            if row_digest(row.fields, row.text) != row.digest
        )
    for one in record.approvals:
        match check_approval(one, digest_of_json(content)):
            case "changed":
                yield f"The approval by {one.by} was changed after it was made."
            case "of another content":
                yield f"{one.by} approved another content of this record (digest {one.content[:12]}…), on {one.at}."
            case "holds" | "refused" | "withdrawn":
                pass
