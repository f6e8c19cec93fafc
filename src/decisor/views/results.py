"""The result of a run as HTML: the decision, its checks, the compared choices, what speaks against it, the evidence.

Figures lead to the cells that support them; one that nothing supports stands among what speaks against the decision.
What a run lacks has no section. A page, a notebook, a record and the cases of a report show the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decisor.system.wording import format_count, format_robustness, format_share, list_ranking_facts, reading_lines
from decisor.trace.events import ActionResult, Conclusion, MeaningChoice, NodeResult, RunStart, TraceEntry, events_of
from decisor.types import Decision, Objection, Observation, Ranking, Record, RuleTest
from decisor.views.answer_charts import charts_of_decision
from decisor.views.chart_drawing import chart_html
from decisor.views.comparison import (
    NOT_CHOSEN,
    Comparison,
    dot_plot_html,
    find_comparison,
    name_inputs,
    split_sentences,
)
from decisor.views.links import Anchors, EvidenceCell, anchors_of, cell_anchor, figures_html, link_text, row_anchor
from decisor.views.markup import Html, join, tag
from decisor.views.rankings import gain_chart, plan_html, studies_of, study_html
from decisor.views.terminal import format_table_value, group_records
from decisor.views.transcript import describe_end

MOST_ROWS = 20
"""Rows of a result that stand in the evidence whole; of a longer one only those that are cited."""
LONG_ANSWER = 60
"""Characters of an answer that is a sentence of its own."""
ASKED = re.compile(
    r"^(?:which|what)\b[^?]*?\bshould (?:we|i|you)\s+([a-z]+)(?:\s+([a-z]+))?(?=\s*\?|\s+(?:to|if|so|when)\b|\s*,)",
    re.I,
)
PREPOSITIONS = frozenset(["in", "on", "at", "with", "from", "for", "to", "into", "of", "about"])
OBJECTED = {
    "unit": "Another unit",
    "scale": "Another scale",
    "candidate": "Another candidate",
    "rank": "Not the first",
    "row": "Another row",
    "period": "Another period",
    "direction": "Another direction",
    "runner_up": "Another runner-up",
    "count": "Another count",
    "ranking": "Another ranking",
}
NO_SOURCE = "No query returned {text}, and no sum or difference of the results gives it."


def decision_headline(question: str, answer: str) -> str:
    """Return an answer as a decision: the verb of the question and the name.

    >>> decision_headline("Which supplier should we drop?", "Tamsin & Co")
    'Drop Tamsin & Co'
    >>> decision_headline("Which market should we invest in?", "Norway"), decision_headline("Who moved?", "Ada")
    ('Invest in Norway', 'Ada')
    """
    match = ASKED.match(question.strip())
    if match is None or not answer or len(answer) > LONG_ANSWER or answer.casefold().startswith(match[1].casefold()):
        return answer
    verb, after = match[1].capitalize(), match[2] or ""
    if after.casefold() in ("to", "if", "so", "when"):
        after = ""
    return f"{verb} {after} {answer}" if after in PREPOSITIONS else f"{verb} {answer} {after}".strip()


@dataclass(frozen=True)
class Doubt:
    """What speaks against a decision."""

    title: Html | str
    text: Html | str = ""
    is_wrong: bool = False
    """Whether it does not hold, rather than being open."""


def result_html(entries: Sequence[TraceEntry], decision: Decision, records: Sequence[Record]) -> Html:
    """Return the result of a run, part by part. records: the cited ones, as the reader may see them."""
    anchors, comparison = anchors_of(decision, records), find_comparison(entries, decision)
    question = next((start.question.text for start in events_of(entries, RunStart)), "")
    charts = charts_of_decision(entries, decision, records)
    return join(
        decision_html(decision, anchors, comparison, question, rule_tests_of(entries)),
        plan_html(decision.ranking),
        dot_plot_html(comparison) if comparison else None,
        doubts_html(list_doubts(entries, decision, anchors, comparison)),
        gain_chart_html(decision.ranking),
        *map(study_html, studies_of(entries)),
        # The rows that the dots show need no bars beside them.
        *(chart_html(chart, anchors.records) for chart in charts if not (comparison and chart.kind == "bar")),
        evidence_html(entries, records, anchors),
    )


def decision_of_entries(entries: Sequence[TraceEntry]) -> tuple[Decision | None, list[Record]]:
    """Return the decision that a run came to, and the records that it cites; None if it came to none."""
    ends = [entry.event.decision for entry in entries if isinstance(entry.event, Conclusion) and entry.span == 0]
    decision = ends[-1] if ends else None
    records = {one.id: one for result in events_of(entries, ActionResult) for one in result.observation.records}
    records |= {one.id: one for node in events_of(entries, NodeResult) for one in node.answer.documents}
    ids = decision.evidence.ids if decision else ()
    return decision, [records[id] for id in ids if id in records]


def rule_tests_of(entries: Sequence[TraceEntry]) -> list[RuleTest]:
    """Return the tests of the rules on the chosen candidate; of one that was tested again, only the last."""
    tests = [one for result in events_of(entries, ActionResult) for one in result.observation.rules]
    return list({one.name: one for one in tests}.values())


def decision_html(
    decision: Decision,
    anchors: Anchors,
    comparison: Comparison | None = None,
    question: str = "",
    rules: Sequence[RuleTest] = (),
) -> Html:
    """Return the decision: headline, what it is worth, the reason, and the facts that a reviewer asks for first."""
    why, texts = describe_end(decision), list(supported_sentences(decision, anchors, comparison))
    rest = [tag("p", *join_sentences(group, anchors)) for group in texts[1:] if group]
    first = texts[0] if texts else []
    checks = list(list_checks(decision, anchors, comparison, rules))
    is_drawn = comparison is not None and any(one.name in decision.runner_up for one in comparison.allowed)
    return tag(
        "section",
        tag(
            "h2",
            decision_headline(question, decision.answer) or "No decision",
            cls="answer" if decision.answer else "answer none",
        ),
        gain_html(comparison) if comparison and decision.answer else None,
        tag("p", why, cls="soft") if why else None,
        tag("p", *join_sentences(first, anchors), cls="why") if first else None,
        tag("div", *rest, cls="more") if rest else None,
        tag("p", tag("b", "Runner-up: "), link_text(decision.runner_up, anchors), cls="soft")
        if decision.runner_up and not is_drawn
        else None,
        tag("ul", *checks, cls="checks", aria_label="Checks") if checks else None,
        cls="decision",
        aria_label="Decision",
    )


def supported_sentences(decision: Decision, anchors: Anchors, comparison: Comparison | None) -> Iterator[list[str]]:
    """Yield the sentences of the reasons, the first alone, without what stands in another place of the page."""
    ranking = comparison.ranking if comparison else None
    told = set(list_ranking_facts(ranking)) if ranking else set()
    unsupported = [figure.text for figure in anchors.figures if not figure.support]
    against = {choice.why for choice in comparison.choices if choice.why} if comparison and comparison.table else set()
    is_first = True
    for reason in decision.reasons:
        kept = [
            sentence
            for sentence in ([] if reason in told else split_sentences(reason))
            if not any(mentions_figure(sentence, text) for text in unsupported) and strip_links(sentence) not in against
        ]
        if is_first and kept:
            yield kept[:1]
            kept, is_first = kept[1:], False
        if kept:
            yield kept


def mentions_figure(sentence: str, text: str) -> bool:
    return re.search(rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)", sentence) is not None


def strip_links(sentence: str) -> str:
    return re.sub(r"\s*\[o\d+[^\]]*\]", "", sentence).strip()


def join_sentences(sentences: Sequence[str], anchors: Anchors) -> Iterator[Html | str]:
    for at, sentence in enumerate(sentences):
        yield from ((" ",) if at else ())
        yield link_text(sentence, anchors)


def gain_html(comparison: Comparison) -> Html:
    """Return what the decision is worth: against today if the data give it, else its outcome and its lead."""
    best, today, measure = comparison.best, comparison.today, comparison.measure.replace("_", " ")
    ranking = comparison.ranking
    if today is not None:
        figure = comparison.amount(best.value - today, signed=True, unit=True)
        words = f"{measure}, {comparison.amount(today)} → {comparison.amount(best.value)}"
    else:
        figure, words = comparison.amount(best.value, unit=True), measure
        if len(comparison.allowed) > 1 and len(comparison.ties) == 1 and not (ranking and ranking.near):
            words += f", {comparison.amount(abs(best.value - comparison.allowed[1].value))} ahead"
    unsure = comparison.ranking if comparison.is_unsure else None
    share = f"Too close to call: best in {format_share(unsure.robustness or 0.0)} of the trials" if unsure else None
    beside = tag("span", share, cls="bad") if share else None
    return tag("p", tag("b", figure), tag("small", words), beside, cls="gain unsure" if share else "gain")


def gain_chart_html(ranking: Ranking | None) -> Html | None:
    chart = gain_chart(ranking) if ranking else None
    return chart_html(chart) if chart else None


def list_checks(
    decision: Decision, anchors: Anchors, comparison: Comparison | None, rules: Sequence[RuleTest]
) -> Iterator[Html]:
    """Yield the facts that a reviewer asks for first, each as a line."""
    ranking = comparison.ranking if comparison else None
    if ranking is not None and ranking.candidates is not None:
        is_all = ranking.count >= ranking.candidates
        count = f"All {ranking.count:,}" if is_all else f"{ranking.count:,} of {ranking.candidates:,}"
        yield check_html(f"{count} choices compared", is_all)
        if ranking.excluded_count:
            yield check_html(f"Rules computed, {format_count(ranking.excluded_count, 'choice')} not allowed")
        if ranking.robustness is not None and ranking.trials:
            times = round(ranking.robustness * ranking.trials)
            yield check_html(
                f"Best in {times:,} of {ranking.trials:,} trials: {name_inputs(ranking.varied)}".rstrip(": "),
                not (comparison and comparison.is_unsure),
            )
    elif comparison is not None and comparison.table is not None:
        total = comparison.table.total
        words = format_count(len(comparison.choices), "choice")
        whole = total is not None and total <= len(comparison.choices)
        yield check_html(f"{words} compared by one query" if whole else f"{words} compared; the query was cut", whole)
    broken = [rule for rule in rules if rule.state != "kept"]
    if rules and not broken:
        yield check_html(f"{format_count(len(rules), 'rule')} tested and kept")
    figures = anchors.figures
    if found := sum(bool(figure.support) for figure in figures):
        yield check_html(f"{format_count(found, 'figure')} found in the data")
    if missing := sum(not figure.support for figure in figures):
        yield check_html(
            f"{format_count(missing, 'figure')} {'has' if missing == 1 else 'have'} no source", False, "#against"
        )
    if other := list(other_objections(decision, anchors)):
        yield check_html(f"{format_count(len(other), 'objection')}", False, "#against")
    if broken:
        yield check_html(f"{format_count(len(broken), 'rule')} not kept or not tested", False, "#against")
    if decision.evidence.pitfalls:
        yield check_html(f"{format_count(len(decision.evidence.pitfalls), 'warning')} about queries", False, "#against")


def check_html(words: str, is_good: bool = True, to: str = "") -> Html:
    return tag("li", tag("a", words, href=to) if to else words, cls=None if is_good else "bad")


def list_doubts(
    entries: Sequence[TraceEntry], decision: Decision, anchors: Anchors, comparison: Comparison | None
) -> Iterator[Doubt]:
    """Yield what speaks against a decision: what has no source first, what is only assumed last."""
    sentences = [sentence for text in decision.reasons for sentence in split_sentences(text)]
    missing = [figure.text for figure in anchors.figures if not figure.support]
    for text in missing:
        quoted = next((sentence for sentence in sentences if mentions_figure(sentence, text)), text)
        mark = tag("span", "No source. ", cls="bad")
        yield Doubt(join(mark, "“", link_text(quoted.rstrip("."), anchors), "”"), NO_SOURCE.format(text=text), True)
    for one in other_objections(decision, anchors):
        mark = tag("span", f"{OBJECTED.get(one.kind, 'No source')}. ", cls="bad")
        yield Doubt(join(mark, link_text(address_reader(one.text), anchors)), is_wrong=True)
    if comparison is not None and decision.answer:
        yield from doubts_of_choices(comparison, anchors, sentences)
    for pitfall in decision.evidence.pitfalls:
        yield Doubt("A query may not mean what it seems to", link_text(pitfall.text, anchors))
    for choice in events_of(entries, MeaningChoice):
        if choice.other:
            gives = (
                f"Then the answer is {choice.gives}."
                if choice.gives
                else f"Not computed: {choice.why}."
                if choice.why
                else ""
            )
            yield Doubt(f"“{choice.words}” could mean {choice.other}", gives)
    for rule in rule_tests_of(entries):
        if rule.state != "kept":
            yield Doubt(f"Rule {rule.state}: {rule.text or rule.name}", rule.why, rule.state == "broken")
    for text in decision.assumptions:
        yield Doubt(join("Assumed: ", link_text(text, anchors)))
    ranking = comparison.ranking if comparison else None
    if ranking is not None:
        yield from (Doubt(line) for line in reading_lines(ranking) if line not in decision.assumptions)
        yield from (Doubt(f"Without a value: {text}") for text in ranking.left_out)
        if ranking.stopped:
            yield Doubt("It ended early", ranking.stopped)


def other_objections(decision: Decision, anchors: Anchors) -> Iterator[Objection]:
    """Yield the objections that are not about a figure without a source."""
    missing = [figure.text for figure in anchors.figures if not figure.support]
    for one in decision.evidence.objections:
        if not any(mentions_figure(one.text, text) for text in missing):
            yield one


def doubts_of_choices(comparison: Comparison, anchors: Anchors, sentences: Sequence[str]) -> Iterator[Doubt]:
    """Yield the choices that are better and were not taken, each with the reason, and a lead that is no lead."""
    for choice in comparison.choices:
        if choice.why and comparison.is_better(choice.value, comparison.best.value):
            gap = abs(choice.value - comparison.best.value)
            title = f"{choice.name} would be {comparison.amount(gap, unit=True)} better"
            quoted = next((sentence for sentence in sentences if strip_links(sentence) == choice.why), "")
            text: Html | str = f"It is not allowed: {choice.why}"
            if comparison.table is not None:
                text = link_text(quoted, anchors) if quoted else "No reason is given why it is not chosen."
            yield Doubt(title, text, choice.why == NOT_CHOSEN)
    if comparison.is_unsure and comparison.ranking is not None:
        yield Doubt("The lead is smaller than what is uncertain", format_robustness(comparison.ranking))


def address_reader(text: str) -> str:
    """Return an objection in words for a reader; it was written to the LLM.

    >>> address_reader("You wrote 4,200 EUR; no row that you cite says so.")
    'The answer says 4,200 EUR; no row that it cites says so.'
    """
    text = re.sub(r"\bYou (?:wrote|write|say)\b", "The answer says", text)
    text = re.sub(r"\byou cite\b", "it cites", re.sub(r"\bYou cite\b", "The answer cites", text))
    return re.sub(r"\byour\b", "its", re.sub(r"\byou were\b", "it was", text))


def doubts_html(doubts: Iterator[Doubt]) -> Html | None:
    items = [
        tag("li", tag("h3", one.title), tag("p", one.text) if one.text else None, cls="wrong" if one.is_wrong else None)
        for one in doubts
    ]
    title = tag("h2", "What speaks against it")
    return tag("section", title, tag("ul", *items, cls="doubts"), cls="against", id="against") if items else None


def evidence_html(entries: Sequence[TraceEntry], records: Sequence[Record], anchors: Anchors) -> Html | None:
    """Return the rows behind a decision, query by query: all of a short result, of a longer one the cited ones."""
    results = {
        result.observation.records[0].id.partition(".")[0]: result.observation
        for result in events_of(entries, ActionResult)
        if result.observation.records
    }
    tables = []
    for group in group_records(records, passages_alone=False):
        name = group[0].id.partition(".")[0]
        tables.append(evidence_table(group, anchors, results.get(name), links=True))
    if not tables:
        return None
    return tag("section", tag("h2", "Evidence"), *tables, figures_html(anchors), cls="evidence", aria_label="Evidence")


def evidence_table(
    records: Sequence[Record], anchors: Anchors, result: Observation | None = None, links: bool = False
) -> Html:
    """Return cited records with the same columns as a table; columns that hold a figure of the decision come first.

    Args:
        result: What brought them. If it is short, all its rows stand there.
        links: Whether it leads to the query that brought them, which stands on the page too.
    """
    rows, cited = list(records), {record.id for record in records}
    fields = list(records[0].fields)
    if result is not None and len(result.records) <= MOST_ROWS:
        same = [one for one in result.records if list(one.fields) == fields and bool(one.text) == bool(records[0].text)]
        seen = {record.id: record for record in records}
        rows = [seen.get(one.id, one) for one in same] if len(same) >= len(records) else rows
    names = [*fields, *(["text"] if records[0].text else [])]
    # The exact type counts, for True and False are instances of int.
    numbers = {at for at, name in enumerate(names) if any(type(one.fields.get(name)) in (int, float) for one in rows)}
    # The text of a record has the number -1.
    columns = [-1 if at >= len(fields) else at for at in range(len(names))]
    hits = {cell for cells in anchors.cells.values() for cell in cells}
    marked = {at for at, column in enumerate(columns) if any(EvidenceCell(one.id, column) in hits for one in rows)}
    # The first column names the row.
    order = sorted(range(len(names)), key=lambda at: (at > 0, at not in marked, at))
    decimals = {at: most_decimals([row.fields.get(names[at]) for row in rows]) for at in numbers}
    head = (tag("th", names[at], scope="col", cls="n" if at in numbers else None) for at in order)
    body = []
    for record in rows:
        cells = []
        for at in order:
            cell = EvidenceCell(record.id, columns[at])
            value = record.text if columns[at] < 0 else record.fields[names[at]]
            places = decimals.get(at, 0)
            # A number is written as its column is, a whole one as it is, for it may be a year or a key.
            text = f"{value:,.{places}f}" if isinstance(value, float) and places else format_table_value(value)
            is_hit = cell in hits
            cls = " ".join(["n"] * (at in numbers) + ["hit"] * is_hit) or None
            cells.append(tag("td", text, id=cell_anchor(cell) if is_hit else None, cls=cls))
        body.append(tag("tr", *cells, id=row_anchor(record.id), cls="cited" if record.id in cited else None))
    caption = tag("caption", *caption_parts(records, rows, result, links), cls="soft")
    inner = tag("table", caption, tag("thead", tag("tr", *head)), tag("tbody", *body), cls="rows")
    name = records[0].id.partition(".")[0]
    return tag("div", inner, cls="scroll", tabindex=0, role="group", aria_label=f"Rows of {name}", data_result=name)


def caption_parts(
    records: Sequence[Record], rows: Sequence[Record], result: Observation | None, links: bool
) -> Iterator[Html | str]:
    name = records[0].id.partition(".")[0]
    number = name.removeprefix("o")
    total = result.total or len(result.records) if result else len(rows)
    query = f"Query {number}" if number.isdigit() else name
    yield tag("a", query, href=f"#r-{(result.records if result else rows)[0].id}") if links else query
    yield (
        f", {format_count(total, 'row')}" if len(rows) == total else f", {len(rows):,} of {format_count(total, 'row')}"
    )
    yield ", cut at its limit" if result is not None and result.truncated else ""
    yield ". Tinted cells are quoted above."


def most_decimals(values: Sequence[object]) -> int:
    """Return the digits after the point that all numbers of a column are padded to; 0 if one of them has too many.

    >>> most_decimals([151728.8, 143627.33]), most_decimals([1 / 3, 2.5])
    (2, 0)
    """
    floats = [format_table_value(value) for value in values if isinstance(value, float)]
    digits = [len(text.partition(".")[2]) if "e" not in text else 9 for text in floats]
    return max(digits, default=0) if max(digits, default=0) <= 4 else 0
