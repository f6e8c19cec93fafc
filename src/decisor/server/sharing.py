"""A run to hand on: one page, or Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decisor.render.text import number
from decisor.session.recorded import recorded_result
from decisor.session.result import Result
from decisor.story.html import story
from decisor.story.run_page import document, run_html
from decisor.trace.events import Entry

MOST = 2_000_000
Item = Mapping[str, Any]


def html_of(entries: Sequence[Entry]) -> str:
    result = recorded_result(entries)
    return document(
        result.question.text, run_html(entries, result.decision, result.records, result.usage, is_page=True)
    )


def markdown_of(entries: Sequence[Entry]) -> str:
    result = recorded_result(entries)
    items: Sequence[Item] = json.loads(story(entries, MOST))["items"]
    return "\n".join([*head(result), "", "## What happened", "", *steps(items), "", result.summary(), ""])


def head(result: Result) -> Iterator[str]:
    decision = result.decision
    yield f"# {flat(result.question.text)}"
    yield ""
    yield f"**{flat(decision.answer)}**" if decision.answer else f"No answer ({decision.stopped})."
    for text in (*decision.reasons, *decision.assumptions):
        yield f"\n{flat(text)}"
    if result.ranking is not None:
        yield f"\n## Ranking: {flat(result.ranking.measure)}\n"
        for place, one in enumerate(result.ranking.options[:20], 1):
            yield f"{place}. {flat(one.name)}: {number(one.outcome)}"
    if result.records:
        yield "\n## Evidence\n"
        for record in result.records:
            cells = ", ".join(f"{name} {value}" for name, value in record.fields.items())
            yield f"- `{record.id}` {flat(record.text or cells)}"


def steps(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        match item["kind"]:
            case "plan" | "replan":
                yield f"**{item['kind'].capitalize()}**{': ' + flat(item['why']) if item.get('why') else ''}\n"
                yield from (f"{at}. {flat(step)}" for at, step in enumerate(item["plan"], 1))
                yield ""
            case "acts":
                yield f"**{flat(item['tool'])}**\n"
                yield from (f"    {line}" for line in str(item["input"]).splitlines())
                yield ""
                yield from (f"{flat(item['note'])}\n" for _ in range(bool(item["note"])))
                for table in item.get("tables", ()):
                    yield from rows(table)
            case "span":
                yield f"**{flat(item.get('node') or item['name'])}** {flat(item.get('ask', ''))}\n"
                yield from steps(item["items"])


def rows(table: Item) -> Iterator[str]:
    yield line(["id", *table["columns"]])
    yield line(["---"] * (1 + len(table["columns"])))
    yield from (line(row) for row in table["rows"])
    yield ""


def line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(flat(str(cell)) for cell in cells)} |"


def flat(text: str) -> str:
    r"""One line in which nothing is markup.

    >>> flat("<b> [x](javascript:1)\n| *y*")
    '\\<b> \\[x\\](javascript:1) \\| \\*y\\*'
    """
    line = "".join(f"\\{letter}" if letter in "\\`*_[]<|#&~" else letter for letter in " ".join(text.split()))
    return re.sub(r"^(\d*)(>|[-+=.)](?=[-=]*( |$)))", r"\1\\\2", line)  # a quote, a list, a line, a heading
