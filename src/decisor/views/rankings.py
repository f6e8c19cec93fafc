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
from decisor.types import Goal, Option, Ranking, ScenarioOutcome, Study, Swing, Turn
from decisor.views.markup import Html, Scale, box_rect, caption_svg, join, line_svg, round_steps, stretched_svg, tag

WIDTH = 24
NAME = 28
MOST = 12


def studies_of(entries: Sequence[TraceEntry]) -> list[Study]:
    """Return the studies of a run; of those with one title, only the last."""
    every = [one.observation.study for one in events_of(entries, ActionResult)]
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


WIDE = 820
LEFT = 230
RIGHT = 150
ROW = 26


def study_html(study: Study) -> Html:
    parts = (tornado_html(study), turning_points_html(study), scenarios_html(study), pareto_front_html(study))
    return join(tag("h2", study.title), *(part for part in parts if part is not None))


def study_drawing_html(words: str, height: float, *marks: str) -> Html:
    inner = Html("".join(marks))
    svg = tag("svg", tag("title", words), inner, viewBox=f"0 0 {WIDE} {height:g}", role="img", aria_label=words)
    return tag("div", svg, cls="chart")


def bar_rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{height:g}" rx="2"/>'


def axis_svg(scale: Scale, bottom: float, unit: str) -> Iterator[str]:
    """Yield round numbers below a drawing, and a line up from each."""
    for step in round_steps(scale.low, scale.high, 5):
        if scale.low <= step <= scale.high:
            yield line_svg(scale(step), 4, scale(step), bottom, "grid")
            yield caption_svg(scale(step), bottom + 16, format_number(step), "middle", "soft")
    yield caption_svg(WIDE - 4, bottom + 16, unit, "end", "soft")


def tornado_html(study: Study) -> Html | None:
    if not study.swings:
        return None
    rows, unit = study.swings[:MOST], study.units[0]
    scale = Scale(*swing_range(rows), LEFT, WIDE - RIGHT)
    bottom = 8 + ROW * len(rows)
    marks = [*axis_svg(scale, bottom, unit)]
    for at, one in enumerate(rows):
        y = 8 + ROW * at
        marks.append(caption_svg(LEFT - 10, y + 16, clean_one_line(f"{one.input}, {one.spread}", 36), "end"))
        if one.low < 0:
            marks.append(bar_rect("bad", scale(one.low), y + 4, scale(min(one.high, 0)) - scale(one.low), ROW - 8))
        if one.high > 0:
            start = max(one.low, 0.0)
            marks.append(bar_rect("s0", scale(start), y + 4, scale(one.high) - scale(start), ROW - 8))
        marks.append(caption_svg(WIDE - 4, y + 16, f"stays best in {one.stays:.0%}", "end", "soft"))
    marks.append(line_svg(scale(0), 4, scale(0), bottom, "zero"))
    words = f"The lead of {study.best}, while one input alone varies: 90 % of the trials lie in its bar."
    return join(
        study_drawing_html(words, bottom + 22, *marks), tag("p", f"{words} Below 0 another one wins.", cls="soft")
    )


def turning_points_html(study: Study) -> Html | None:
    turns = turns_by_size(study)[:MOST]
    if not turns:
        return tag("p", "No input alone, from half to twice its value, turns the decision.") if study.turns else None
    low, high = (pick(0.0, *((one.factor or 1.0) - 1 for one in turns)) for pick in (min, max))
    scale = Scale(low, high, LEFT, WIDE - RIGHT - 150)
    bottom = 8 + ROW * len(turns)
    marks = [line_svg(scale(0), 4, scale(0), bottom, "zero")]
    for at, one in enumerate(turns):
        y, end = 8 + ROW * at, scale((one.factor or 1.0) - 1)
        marks.append(caption_svg(LEFT - 10, y + 16, clean_one_line(one.input, 36), "end"))
        marks.append(bar_rect("s0", min(scale(0), end), y + 6, abs(end - scale(0)), ROW - 12))
        words = f"{percent_change(one)}: {f'{one.winner} wins' if one.winner else 'nothing is allowed'}"
        marks.append(caption_svg(scale.end + 12, y + 16, clean_one_line(words, 44), "start"))
    why = [
        tag("p", f"{one.input} {percent_change(one)}: {study.best} then breaks {one.why}.", cls="soft")
        for one in turns
        if one.why
    ]
    words = f"How far each input moves, alone, until {study.best} no longer wins."
    return join(study_drawing_html(words, bottom + 6, *marks), tag("p", words, cls="soft"), *why)


def scenarios_html(study: Study) -> Html | None:
    """Draw a bar for the winner of each scenario, and a mark for the present winner."""
    if not study.scenes:
        return None
    rows, unit = study.scenes[:MOST], study.units[0]
    values = [value for one in rows for value in (one.outcome, one.usual) if value is not None]
    scale = Scale(min([0.0, *values]), max([0.0, *values]), LEFT, WIDE - RIGHT - 150)
    marks = []
    for at, one in enumerate(rows):
        y = 8 + ROW * at
        marks.append(caption_svg(LEFT - 10, y + 16, clean_one_line(one.name, 36), "end"))
        if one.outcome is not None:
            kind = "best" if one.best == study.best else "s1"
            start, end = sorted((scale(0), scale(one.outcome)))
            marks.append(bar_rect(kind, start, y + 4, end - start, ROW - 8))
        if one.usual is not None and one.best != study.best:
            marks.append(line_svg(scale(one.usual), y + 2, scale(one.usual), y + ROW - 2, "zero"))
        marks.append(caption_svg(scale.end + 12, y + 16, clean_one_line(scene_words(study, one), 44), "start"))
    why = [tag("p", f"{one.name}: {study.best} is ruled out by {one.why}.", cls="soft") for one in rows if one.why]
    words = f"{study.measures[0]} of who wins{f' in {unit}' if unit else ''}; a line stands where {study.best} is."
    return join(study_drawing_html(words, 12 + ROW * len(rows), *marks), tag("p", words, cls="soft"), *why)


def scene_words(study: Study, scene: ScenarioOutcome) -> str:
    if scene.outcome is None:
        return "nothing is allowed"
    usual = "" if scene.best == study.best or scene.usual is None else f" ({usual_words(study, scene.usual, '')})"
    return f"{scene.best}: {format_amount(scene.outcome, study.units[0])}{usual}"


def pareto_front_html(study: Study) -> Html | None:
    """Draw the first two measures; a filled mark is on the Pareto front."""
    if len(study.measures) < 2 or not study.points:
        return None
    xs, ys = ([one.values[at] for one in study.points] for at in (0, 1))
    x, y = Scale(*widen_range(xs), 90, WIDE - 30), Scale(*widen_range(ys), 290, 16)
    marks = []
    for step in round_steps(x.low, x.high, 6):
        if x.low <= step <= x.high:
            marks += [
                line_svg(x(step), 16, x(step), 290, "grid"),
                caption_svg(x(step), 308, format_number(step), "middle", "soft"),
            ]
    for step in round_steps(y.low, y.high, 5):
        if y.low <= step <= y.high:
            marks += [
                line_svg(90, y(step), WIDE - 30, y(step), "grid"),
                caption_svg(82, y(step) + 4, format_number(step), "end", "soft"),
            ]
    for one in study.points:
        kind = "on" if one.front else "off"
        place = f'cx="{x(one.values[0]):.1f}" cy="{y(one.values[1]):.1f}"'
        marks.append(f'<circle class="{kind}" {place} r="{5 if one.front else 3}"/>')
    ends = [one for one in study.points if one.front]
    for one in ends[:8]:
        right = x(one.values[0]) > WIDE * 0.75
        at = x(one.values[0]) + (-9 if right else 9)
        marks.append(caption_svg(at, y(one.values[1]) - 7, clean_one_line(one.name, 30), "end" if right else "start"))
    names = [
        f"{name}{f' in {unit}' if unit else ''} ({'less' if goal == 'min' else 'more'} is better)"
        for name, unit, goal in zip(study.measures, study.units, study.goals, strict=True)
    ]
    words = f"Across: {names[0]}. Up: {names[1]}. On the front: {len(ends)} of {len(study.points)}."
    return join(study_drawing_html(words, 314, *marks), tag("p", words, cls="soft"))


def widen_range(values: list[float]) -> tuple[float, float]:
    """Return the range of values with some room around it."""
    low, high = min(values), max(values)
    room = (high - low or abs(high) or 1.0) * 0.06
    return low - room, high + room


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
    lines = (
        (format_compared(ranking), *excluded_lines(ranking), format_robustness(ranking))
        if ranking.candidates is not None
        else ()
    )
    words = [tag("p", line, cls="soft") for line in lines if line]
    return join(
        title, ranking_table([*rows[:MOST_BARS], *excluded_rows(ranking)]), rest, *words, tag("p", note, cls="soft")
    )


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
        yield tag("g", box_rect("", start, max(end - start, 0.5), 4, 2), cls="span")


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
