"""Rankings and what-if studies as bars: a ranking as HTML, studies as HTML and as text for a terminal.

A study shows a tornado, turning points, scenarios side by side or a Pareto front. A ranking has bars with the range of
each outcome, and the excluded candidates below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decisor.system.text import clean_one_line, format_number
from decisor.system.wording import (
    SHOWN_EXCLUDED,
    excluded_lines,
    format_amount,
    format_compared,
    format_count,
    format_robustness,
)
from decisor.trace.events import ActionResult, TraceEntry, events_of
from decisor.types import Goal, Option, Ranking, Study, Swing, Turn
from decisor.views.charts import AnswerChart, Axis, ChartMark, ChartSeries, begins_at_zero
from decisor.views.markup import Html, box_rect, join, stretched_svg, tag

WIDTH = 24
NAME = 28
MOST = 12


def studies_of(entries: Sequence[TraceEntry]) -> list[Study]:
    """Return the studies of a run; of those with one title, only the last."""
    every = [one.observation.study for one in events_of(entries, ActionResult)]
    # A study that was run again, with other settings, replaces the one before.
    return list({one.title: one for one in every if one is not None}.values())


def study_lines(study: Study) -> Iterator[str]:
    yield clean_one_line(study.title, 100)
    yield from (f"  {line}" for line in tornado_lines(study))
    yield from (f"  {line}" for line in turning_point_lines(study))
    yield from (f"  {line}" for line in scenario_lines(study))
    yield from (f"  {line}" for line in pareto_front_lines(study))


def tornado_lines(study: Study) -> Iterator[str]:
    """Yield one bar for each input, on one scale; the mark is where the best is overtaken."""
    if not study.swings:
        return
    low, high = swing_range(study.swings)
    unit = study.units[0]
    for one in study.swings[:MOST]:
        bar = span_bar(one.low, one.high, low, high, 0.0)
        words = f"{format_amount(one.low, unit)} to {format_amount(one.high, unit)}"
        yield f"{clean_one_line(f'{one.input} ({one.spread})', NAME):<{NAME}} {bar} {words}, stays {one.stays:.0%}"
    yield (
        f"The lead of {clean_one_line(study.best, 40)} in 90 % of the trials, by one input; left of | another one wins."
    )


def swing_range(swings: Sequence[Swing]) -> tuple[float, float]:
    """Return the ends of a scale that shows zero and all swings."""
    return min(0.0, *(one.low for one in swings)), max(0.0, *(one.high for one in swings))


def span_bar(start: float, end: float, low: float, high: float, mark: float) -> str:
    """Draw a bar from ``start`` to ``end``, and a mark, on a scale from ``low`` to ``high``.

    >>> span_bar(2.0, 6.0, -2.0, 8.0, 0.0)
    '     |   ██████████     '
    """
    scale = (WIDTH - 1) / (high - low or 1.0)
    cells = [" "] * WIDTH
    # The mark goes first: a bar that reaches it is drawn over it.
    cells[round((mark - low) * scale)] = "|"
    for at in range(round((start - low) * scale), round((end - low) * scale) + 1):
        cells[at] = "█"
    return "".join(cells)


def turning_point_lines(study: Study) -> Iterator[str]:
    """Yield the turning points, the smallest change first."""
    for one in turns_by_size(study)[:MOST]:
        why = f" ({one.why})" if one.why else ""
        wins = one.winner or "nothing is allowed"
        yield clean_one_line(f"{one.input} {percent_change(one)}: {wins}{' wins' if one.winner else ''}{why}", 160)
    still = {one.input.removesuffix(", falling") for one in study.turns} - {one.input for one in turns_by_size(study)}
    if still:
        yield f"No turning point from half to twice: {clean_one_line(', '.join(sorted(still)), 120)}"


def turns_by_size(study: Study) -> list[Turn]:
    hits = [one for one in study.turns if one.factor]
    # A factor of 0.5 is as large a change as one of 2.
    return sorted(hits, key=lambda one: max(one.factor or 1.0, 1 / (one.factor or 1.0)))


def percent_change(turn: Turn) -> str:
    """Format a turning point as the change of its input in percent.

    >>> percent_change(Turn("units", 1.0513))
    '+5.13 %'
    """
    return f"{((turn.factor or 1.0) - 1) * 100:+.3g} %"


def scenario_lines(study: Study) -> Iterator[str]:
    values = [value for one in study.scenes for value in (one.outcome, one.usual) if value is not None]
    top = max(map(abs, values), default=0.0) or 1.0
    for one in study.scenes[:MOST]:
        bar = "" if one.outcome is None else "█" * round(abs(one.outcome) / top * WIDTH)
        words = (
            "nothing is allowed" if one.outcome is None else f"{one.best} {format_amount(one.outcome, study.units[0])}"
        )
        usual = "" if one.best == study.best else f"; {study.best}: {usual_words(study, one.usual, one.why)}"
        yield f"{clean_one_line(one.name, NAME):<{NAME}} {bar:<{WIDTH}} {clean_one_line(words + usual, 120)}"


def usual_words(study: Study, usual: float | None, why: str) -> str:
    return f"ruled out by {why}" if usual is None else format_amount(usual, study.units[0])


def pareto_front_lines(study: Study) -> Iterator[str]:
    ends = [one for one in study.points if one.front]
    for one in ends[:MOST]:
        pairs = zip(study.measures, one.values, study.units, strict=True)
        yield f"{clean_one_line(one.name, NAME):<{NAME}} " + ", ".join(
            f"{name} {format_amount(v, unit)}" for name, v, unit in pairs
        )
    if len(ends) > MOST:
        yield f"and {len(ends) - MOST} more on the front"


def study_charts(study: Study) -> Iterator[AnswerChart]:
    """Yield the first two measures of every candidate as points; those of the Pareto front have a mark of their own."""
    if len(study.measures) < 2 or not study.points:
        return
    axes = []
    for at, (measure, unit, goal) in enumerate(zip(study.measures[:2], study.units, study.goals, strict=False)):
        zero = begins_at_zero([point.values[at] for point in study.points])
        axes.append(Axis(f"{measure}, {'less' if goal == 'min' else 'more'} is better", unit, zero=zero))
    series = []
    for name, is_front in (("on the Pareto front", True), ("not on it", False)):
        points = [point for point in study.points if point.front == is_front]
        marks = tuple(ChartMark("", point.values[0], point.values[1], point.name) for point in points)
        if marks:
            series.append(ChartSeries(f"{name} ({len(marks)})", marks))
    title = clean_one_line(f"{study.title}: {study.measures[1]} against {study.measures[0]}", 100)
    yield AnswerChart("points", title, axes[0], axes[1], tuple(series))


MOST_BARS = 10


def ranking_html(ranking: Ranking) -> Html | None:
    """Return a ranking with bars from the last candidate (nothing) to the first (full width)."""
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
    title = tag("h2", f"Ranking: {ranking.measure}, {word} first, {format_count(ranking.count, 'candidate')}")
    words = [tag("p", line, cls="soft") for line in ranking_summary(ranking)]
    return join(
        title, ranking_table([*rows[:MOST_BARS], *excluded_rows(ranking)]), rest, *words, tag("p", note, cls="soft")
    )


def ranking_summary(ranking: Ranking) -> list[str]:
    """Return the number of candidates that were compared, the exclusions, and how sure the first place is."""
    if ranking.candidates is None:
        return []
    return [one for one in (format_compared(ranking), *excluded_lines(ranking), format_robustness(ranking)) if one]


def ranking_rows(ranking: Ranking) -> list[Html]:
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    worst, best = ranking_range(options, ranking.goal)
    rows = []
    for place, option in enumerate(options, 1):
        share = share_of_range(option.outcome, worst, best)
        words = f"{share:.0%} of the way from the worst to the best"
        bar = stretched_svg("bar", words, box_rect("", 0, 100 * share, 0, 10), *range_html(option, worst, best))
        first = place == 1 or option.name in ranking.ties
        cells = (
            tag("td", place, cls="place"),
            tag("td", option.name),
            tag("td", bar, cls="track"),
            tag("td", format_number(option.outcome), cls="n"),
        )
        rows.append(tag("tr", *cells, cls="best" if first else None))
    return rows


def ranking_range(options: Sequence[Option], goal: Goal) -> tuple[float, float]:
    """Return the worst and the best number that is drawn, ranges included."""
    values = [value for one in options for value in (one.outcome, one.low, one.high) if value is not None]
    return (max(values), min(values)) if goal == "min" else (min(values), max(values))


def share_of_range(value: float, worst: float, best: float) -> float:
    return 1.0 if best == worst else (value - worst) / (best - worst)


def range_html(option: Option, worst: float, best: float) -> Iterator[Html]:
    """Yield a thin line over the bar: the range of the outcome while the inputs vary."""
    if option.low is not None and option.high is not None:
        start, end = sorted(100 * share_of_range(value, worst, best) for value in (option.low, option.high))
        yield box_rect("range", start, max(end - start, 0.5), 4, 2)


def excluded_rows(ranking: Ranking) -> list[Html]:
    """Return the nearest excluded candidates as rows, with the rules."""
    return [
        tag(
            "tr",
            tag("td", "–", cls="place"),
            tag("td", one.name),
            tag("td", f"{' and '.join(one.rules) or 'no outcome'}: {clean_one_line(one.why, 90)}", cls="soft"),
            tag("td", "" if one.outcome is None else format_number(one.outcome), cls="n soft"),
            cls="out",
        )
        for one in ranking.excluded[:SHOWN_EXCLUDED]
    ]


def ranking_table(rows: Sequence[Html]) -> Html:
    return tag("div", tag("table", tag("tbody", *rows)), cls="scroll rank")
