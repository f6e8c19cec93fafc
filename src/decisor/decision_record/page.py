"""A record of a decision as one page that needs nothing else, on a screen and on paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from decisor.decision_record.approving import standing
from decisor.decision_record.digests import digest_of
from decisor.decision_record.format import Content, DecisionRecord
from decisor.decision_record.page_evidence import evidence_html, rules_html, table
from decisor.decision_record.page_facts import digests_html, facts_html, model_html
from decisor.decision_record.restored import decision_of, records_of
from decisor.render.markup import Html, hashed, join, tag
from decisor.render.text import one_line
from decisor.story.decision import ended
from decisor.story.links import Anchors, anchors_of, linked
from decisor.story.run_page import style as run_style
from decisor.story.run_ranking import ranking_html

STATES = {
    "holds": "",
    "refused": "",
    "withdrawn": "withdrawn",
    "of another content": "The record was changed after this approval.",
    "changed": "This approval was changed after it was made.",
}
CHANGED = "This record was changed after it was made: its digest is not that of its content."


@cache
def style() -> str:
    return run_style() + files("decisor.decision_record").joinpath("page.css").read_text("utf-8")


def page_of(record: DecisionRecord) -> str:
    """A whole document, without scripts."""
    policy = f"default-src 'none'; style-src '{hashed(style())}'; base-uri 'none'; form-action 'none'"
    head = join(
        tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", one_line(f"Record: {record.content.request.question}", 100)), tag("style", Html(style())),
    )  # fmt: skip
    body = tag("main", *parts(record), cls="decisor record")
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def parts(record: DecisionRecord) -> Iterator[Html | None]:
    content = record.content
    decision = decision_of(content)
    records = [one for query in content.evidence.queries for one in records_of(query)]
    anchors = anchors_of(decision, records, frozenset(), record.digest)
    yield tag("p", " · ".join(heading(record)), cls="head")
    yield tag("h1", content.request.question)
    yield tag("p", content.request.goal) if content.request.goal else None
    yield decision_html(content, anchors)
    yield approvals_html(record, digest_of(content))
    yield section(
        "Asked before", tag("ul", *(tag("li", one) for one in content.request.before)), content.request.before
    )
    yield section("Rules, in words", tag("p", content.request.rules), content.request.rules)
    yield section("Warnings", listed(content.warnings, "failed"), content.warnings)
    yield section("What words mean", meanings_html(content), content.definitions or content.readings)
    yield ranking_html(content.alternatives) if content.alternatives else None
    yield section("Rules, executed", rules_html(content.rules), content.rules)
    yield section("Evidence", evidence_html(content, anchors), content.evidence.queries)
    yield section("Taken as certain", listed(content.assumptions), content.assumptions)
    yield section("Open points", open_html(content), content.open_points)
    yield section("The decision model", model_html(content), content.model)
    yield section("What decided, on which data", facts_html(content), True)
    yield section("Digests", digests_html(record), True)


def section(title: str, inside: Html | None, there: object) -> Html | None:
    return tag("section", tag("h2", title), inside) if there else None


def heading(record: DecisionRecord) -> Iterator[str]:
    request = record.content.request
    yield "Record of a decision"
    yield f"asked by {request.by}" if request.by else "who asked is not known"
    if request.at:
        yield moment(request.at)
    if record.run:
        yield f"run {record.run}"


def moment(at: str) -> str:
    """
    >>> moment("2026-11-22T10:46:57+00:00")
    '2026-11-22 10:46 UTC'
    """
    return f"{at[:10]} {at[11:16]} UTC"


def decision_html(content: Content, anchors: Anchors) -> Html:
    decision = content.decision
    why = ended(decision_of(content))
    return tag(
        "div", tag("div", "Decision", cls="head"),
        tag("p", decision.answer or "None", cls="answer" if decision.answer else "answer none"),
        tag("p", why, cls="cut") if why else None,
        *(tag("p", linked(text, anchors)) for text in decision.reasons),
        tag("p", f"Runner-up: {decision.runner_up}", cls="beside") if decision.runner_up else None,
        cls="box decision",
    )  # fmt: skip


def approvals_html(record: DecisionRecord, digest: str) -> Html:
    """``digest``: of the content as it is here."""
    changed = tag("p", CHANGED, cls="failed") if digest != record.digest else None
    if not record.approvals:
        return join(changed, tag("p", "Nobody has approved this decision.", cls="soft"))
    return join(changed, tag("ul", *lines_of(record, digest), cls="approvals"))


def lines_of(record: DecisionRecord, digest: str) -> Iterator[Html]:
    for one in record.approvals:
        state = standing(one, digest)
        words = STATES[state]
        if state == "withdrawn":
            words = f"Withdrawn {moment(one.withdrawn)}{f': {one.why}' if one.why else ''}"
        elif state in ("holds", "refused") and one.by == record.content.request.by:
            words = "The same person asked."
        yield tag(
            "li", tag("b", one.by), " ", tag("span", "approved" if state == "holds" else state, cls="state"), " ",
            tag("span", moment(one.at), cls="soft"), tag("p", one.note) if one.note else None,
            tag("p", words, cls="soft" if state in ("holds", "refused", "withdrawn") else "failed") if words else None,
            cls=state.replace(" ", "-"),
        )  # fmt: skip


def listed(texts: Sequence[str], cls: str | None = None) -> Html:
    return tag("ul", *(tag("li", one, cls=cls) for one in texts))


def meanings_html(content: Content) -> Html:
    rows = [(f"{one.name} [{one.id}]", one.says, " · ".join(part for part in (one.by, one.on, one.file) if part))
            for one in content.definitions]  # fmt: skip
    for one in content.readings:
        other = f"It could mean {one.other}" if one.other else ""
        gives = f", which gives {one.gives}" if one.gives else f", not computed: {one.why}" if one.why else ""
        by = f"said by {one.by}" if one.by else "nobody was asked"
        rows.append((f"“{one.words}”", one.means, f"{by}. {other}{gives}.".replace(". .", ".")))
    return table(("word", "means", "where from"), rows)


def open_html(content: Content) -> Html:
    return table(("what is open", "what would settle it"), [(one.what, one.settles) for one in content.open_points])
