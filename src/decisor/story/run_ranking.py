"""A ranking as HTML: bars with the range of each outcome, those ruled out below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decisor.plurals import counted
from decisor.rankings import SHOWN_EXCLUDED, compared, excluded, varied
from decisor.render.markup import Html, join, tag
from decisor.render.svg import box, strip
from decisor.render.text import number, one_line
from decisor.types import Goal, Option, Ranking

MOST_BARS = 10


def ranking_html(ranking: Ranking) -> Html | None:
    """Bars from the last candidate (nothing) to the first (full width)."""
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    if not options:
        return None
    word = "largest" if ranking.goal == "max" else "smallest"
    rows = ranking_rows(ranking)
    more = len(rows) - MOST_BARS
    rest = tag("details", tag("summary", f"{more} more"), ranking_table(rows[MOST_BARS:])) if more > 0 else None
    note = "A bar's length: how far from the worst (none) to the best (full)."
    if any(option.low is not None for option in options):
        note += " The line in it: between its ends lie 90 % of the outcomes while the inputs vary."
    title = tag("h2", f"Ranking: {ranking.measure}, {word} first, {counted(ranking.count, 'candidate')}")
    lines = (compared(ranking), *excluded(ranking), varied(ranking)) if ranking.candidates is not None else ()
    words = [tag("p", line, cls="soft") for line in lines if line]
    return join(
        title, ranking_table([*rows[:MOST_BARS], *excluded_rows(ranking)]), rest, *words, tag("p", note, cls="soft")
    )


def ranking_rows(ranking: Ranking) -> list[Html]:
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    worst, best = ends(options, ranking.goal)
    rows = []
    for place, option in enumerate(options, 1):
        share = share_of(option.outcome, worst, best)
        words = f"{share:.0%} of the way from the worst to the best"
        bar = strip("bar", words, box("", 0, 100 * share, 0, 10), *span(option, worst, best))
        first = place == 1 or option.name in ranking.ties
        cells = (tag("td", place, cls="place"), tag("td", option.name), tag("td", bar, cls="track"),
                 tag("td", number(option.outcome), cls="n"))  # fmt: skip
        rows.append(tag("tr", *cells, cls="best" if first else None))
    return rows


def ends(options: Sequence[Option], goal: Goal) -> tuple[float, float]:
    """The worst and the best number that is drawn, ranges too."""
    values = [value for one in options for value in (one.outcome, one.low, one.high) if value is not None]
    return (max(values), min(values)) if goal == "min" else (min(values), max(values))


def share_of(value: float, worst: float, best: float) -> float:
    return 1.0 if best == worst else (value - worst) / (best - worst)


def span(option: Option, worst: float, best: float) -> Iterator[Html]:
    """A thin line over the bar: where the outcome lies while the inputs vary."""
    if option.low is not None and option.high is not None:
        start, end = sorted(100 * share_of(value, worst, best) for value in (option.low, option.high))
        yield tag("g", box("", start, max(end - start, 0.5), 4, 2), cls="span")


def excluded_rows(ranking: Ranking) -> list[Html]:
    """The nearest of those ruled out, with the rules."""
    return [
        tag("tr", tag("td", "–", cls="place"), tag("td", one.name),
            tag("td", f"{' and '.join(one.rules) or 'no outcome'}: {one_line(one.why, 90)}", cls="soft"),
            tag("td", "" if one.outcome is None else number(one.outcome), cls="n soft"), cls="out")
        for one in ranking.excluded[:SHOWN_EXCLUDED]
    ]  # fmt: skip


def ranking_table(rows: Sequence[Html]) -> Html:
    return tag("div", tag("table", tag("tbody", *rows)), cls="scroll rank")
