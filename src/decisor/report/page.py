"""A report as one HTML file that needs nothing else: no network, no server, no build.

Its content policy lets run only the one script that is named by its hash, and load nothing. What models and data said
lies in JSON blocks, which no browser runs, and is shown as text. A case's story is read when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import TextIO

from decisor.encoding import finite, json_value
from decisor.evaluation.store.protocol import Key
from decisor.outcome import Outcome
from decisor.render.markup import Html, colours, hashed, join, tag
from decisor.report.document import Report
from decisor.report.formatting import counted, money, percent, short, spoken
from decisor.report.palette import palette
from decisor.report.sections import (
    benchmark_section,
    diff_section,
    opinion_section,
    ranks_section,
    slug,
    wins_section,
)
from decisor.statistics.summary import STATES
from decisor.story.html import cut, story
from decisor.trace.events import Entry
from decisor.types import Usage

TOTAL_CHARS = 40_000_000
"""About what all stories together may take."""
LEAST_CHARS, MOST_CHARS = 4_000, 60_000
SORTS = (("", "as in the run"), ("9", "most calls"), ("10", "most tokens"), ("12", "slowest"))
STORY = (
    "Each opens its story: the plan, what was asked of the data, what came back, and the decision with its evidence."
)
CHANGES = (("", "all"), ("gained", "gained"), ("lost", "lost"), ("other", "changed otherwise"), ("new", "not in it"))


def write_page(report: Report, trace: Callable[[Outcome], Sequence[Entry]], out: TextIO,
               before: Mapping[Key, str] | None = None) -> None:  # fmt: skip
    """Write the page. ``trace``: the events of an outcome, asked for one at a time, so memory stays flat. ``before``:
    the states of an earlier run by key."""
    style, script = (files("decisor.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    style = colours() + style
    out.write("<!doctype html>\n")
    out.write('<html lang="en">')
    out.write(head(report, style, script))
    out.write("<body>")
    out.write(body(report, before is not None))
    out.write(block("rows", rows(report.outcomes, before)))
    most = min(MOST_CHARS, max(LEAST_CHARS, TOTAL_CHARS // max(1, len(report.outcomes))))
    for at, outcome in enumerate(report.outcomes):
        out.write(block(f"s{at}", case_data(outcome, trace(outcome), most)))
    out.write(tag("script", Html(script)))
    out.write("</body></html>\n")


def head(report: Report, style: str, script: str) -> Html:
    policy = (f"default-src 'none'; script-src '{hashed(script)}'; style-src '{hashed(style)}'; img-src data:; "
              "base-uri 'none'; form-action 'none'")  # fmt: skip
    return tag(
        "head", tag("meta", charset="utf-8"), tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"), tag("link", rel="icon", href="data:,"),
        tag("title", f"{report.title}: Decisor report"), tag("style", Html(style)),
    )  # fmt: skip


def body(report: Report, compared: bool) -> Html:
    colours = palette(report)
    several = len(report.benchmarks) > 1
    links = [tag("a", one.name if several else "Results", href=f"#{slug(one.name)}") for one in report.benchmarks]
    if report.diff:
        links.append(tag("a", "Against the earlier run", href="#diff"))
    links.append(tag("a", "Cases", href="#cases"))
    diff = diff_section(report.diff, report) if report.diff else Html()
    opinion = opinion_section(report.opinion) if report.opinion else Html()
    ranks = ranks_section(report.ranks) if report.ranks else Html()
    wins = wins_section(report.wins) if report.wins else Html()
    sections = (benchmark_section(one, report, colours) for one in report.benchmarks)
    return join(
        tag("header", tag("p", tag("b", "Decisor"), " report", cls="brand"), tag("h1", report.title), tiles(report),
            cls="wrap"),
        tag("nav", tag("div", *links, cls="wrap"), aria_label="Parts of this report"),
        tag("main", diff, *sections, ranks, wins, opinion, cases(report, compared), cls="wrap"),
        tag("footer", settings(report), cls="wrap"),
    )  # fmt: skip


def tiles(report: Report) -> Html:
    """The run in figures."""
    many = len(report.outcomes)
    sides = {(row.technique, row.model) for one in report.benchmarks for row in one.rows}
    best = [row for one in report.benchmarks for row in one.rows if not row.group and row.accuracy is not None]
    top = max(best, key=lambda row: row.accuracy or 0.0, default=None)
    models = sorted({row.model for one in report.benchmarks for row in one.rows})
    usage = report.usage
    figures = [
        ("Cases", f"{sum(one.cases for one in report.benchmarks):,}", counted(many, "outcome")),
        ("Techniques", str(len({technique for technique, _ in sides})), ", ".join(models) or "no model"),
        ("Best accuracy", percent(top.accuracy, 1) if top and top.accuracy is not None else "none",
         top.technique if top else ""),
        ("LM calls", short(usage.calls), f"{short(usage.calls / many)} an outcome" if many else ""),
        ("Tokens", short(usage.tokens), in_and_out(usage)),
        ("Cost", money(usage.dollars), "a price is not known" if usage.dollars is None else "all outcomes"),
    ]  # fmt: skip
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value, tag("small", small, title=small)))
                       for name, value, small in figures), cls="tiles")  # fmt: skip


def in_and_out(usage: Usage) -> str:
    """
    >>> in_and_out(Usage(2, 1_000, 50)), in_and_out(Usage(2, 1_000, 50, cache_reads=600))
    ('1,000 in, 50 out', '1,000 in (600 from a cache), 50 out')
    """
    cached = f" ({short(usage.cache_reads)} from a cache)" if usage.cache_reads else ""
    return f"{short(usage.prompt_tokens)} in{cached}, {short(usage.completion_tokens)} out"


def settings(report: Report) -> Html:
    """How the run was set up, folded away."""
    if not report.about:
        return join("Made by decisor report.")
    text = json.dumps(json_value(report.about), ensure_ascii=False, indent=2, default=str)
    return join(tag("details", tag("summary", "Settings of the run"), tag("pre", text)), "Made by decisor report.")


def cases(report: Report, compared: bool) -> Html:
    """The list's filters; the list itself is filled by the script."""
    states = [tag("button", spoken(state), " ", tag("small", ""), type="button", data_state=at, cls=state)
              for at, state in enumerate(STATES)]  # fmt: skip
    every = tag("button", "all ", tag("small", ""), type="button", data_state="")
    names = naming(report.outcomes)
    failures = sorted({one.failure for one in report.outcomes if one.failure})
    inputs = [
        tag("input", id="text", type="search", placeholder="Find in id, answer, gold, failure, group …",
            aria_label="Find cases by text"),
        choose("bench", "Benchmark", indexed(names["bench"])), choose("who", "Technique", indexed(names["who"])),
        choose("group", "Group", indexed(names["group"])),
        choose("failure", "Failure", [(name, spoken(name)) for name in failures]),
    ]  # fmt: skip
    if compared:
        inputs.append(select("change", "Against the earlier run", CHANGES, ""))
    inputs.append(select("sort", "Order", SORTS, ""))
    return tag(
        "section", tag("h2", "Cases"),
        tag("p", STORY, cls="lead"),
        tag("div", every, *states, cls="chips", role="group", aria_label="Outcome"),
        tag("div", *inputs, cls="filters"), tag("p", id="count", cls="count", role="status"),
        tag("ul", id="list", cls="cases panel"),
        tag("div", tag("button", "Show more", type="button"), id="more", cls="pager", hidden=True), id="cases",
    )  # fmt: skip


def choose(id: str, label: str, options: Sequence[tuple[str, str]]) -> Html:
    """A filter; nothing where there is only one thing to choose."""
    if len(options) < 2:
        return Html()
    return select(id, label, (("", f"{label}: all"), *options), "")


def select(id: str, label: str, options: Sequence[tuple[str, str]], selection: str) -> Html:
    items = [tag("option", name, value=value, selected=value == selection) for value, name in options]
    return tag("select", *items, id=id, aria_label=label)


def indexed(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(str(at), name or "none") for at, name in enumerate(names)]


def naming(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """The names that rows refer to by number."""
    one_model = len({one.model for one in outcomes}) < 2
    return {
        "bench": list(dict.fromkeys(one.benchmark for one in outcomes)),
        "who": list(dict.fromkeys(who(one, one_model) for one in outcomes)),
        "state": list(STATES),
        "group": sorted({one.group for one in outcomes}),
    }


def who(one: Outcome, one_model: bool) -> str:
    return one.technique if one_model else f"{one.technique}, {one.model}"


def rows(outcomes: Sequence[Outcome], before: Mapping[Key, str] | None) -> str:
    """The list of cases as JSON: short, as it is read at once."""
    names = naming(outcomes)
    one_model = len({one.model for one in outcomes}) < 2
    place = {kind: {name: at for at, name in enumerate(column)} for kind, column in names.items()}
    table_rows = []
    for one in outcomes:
        was = (before or {}).get(one.key)
        table_rows.append([
            place["bench"][one.benchmark], cut(one.case, 200), place["who"][who(one, one_model)], one.repeat,
            place["state"][one.state], place["group"][one.group], cut(one.answer, 160), cut(" | ".join(one.gold), 160),
            one.failure, one.usage.calls, one.usage.tokens, one.usage.dollars, round(one.seconds, 3),
            None if was is None else place["state"][was],
        ])  # fmt: skip
    return json.dumps({"names": names, "rows": table_rows}, ensure_ascii=False, separators=(",", ":"))


def case_data(outcome: Outcome, events: Sequence[Entry], most: int) -> str:
    """What a case's story adds to its row, as JSON."""
    extra = json.dumps(
        finite({
            "text": cut(outcome.text, 2000), "stopped": outcome.stopped, "critical": outcome.critical,
            "reasons": [cut(reason, 1000) for reason in outcome.reasons], "tags": list(outcome.tags),
            "metrics": dict(outcome.metrics),
            "counts": {**outcome.counts, **{f"{name}_calls": used.calls for name, used in outcome.beside.items()}},
        }),
        ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str,
    )  # fmt: skip
    return extra if not events else extra[:-1] + "," + story(events, most)[1:]


def block(id: str, text: str) -> Html:
    """A block of data. Nothing in it can end the block or begin another: < is written as an escape."""
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    safe = safe.encode("utf-8", "replace").decode()
    return tag("script", Html(safe), type="application/json", id=id)
