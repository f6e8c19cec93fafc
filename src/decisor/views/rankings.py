"""Rankings for a terminal, and what-if studies as charts and sentences.

A ranking has bars with the range of each outcome; a page draws dots (``comparison``). A study has the range of each
input (a tornado), turning points, scenarios side by side, or a Pareto front.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from decisor.system.text import clean_for_terminal, clean_one_line
from decisor.system.wording import (
    excluded_lines,
    format_amount,
    format_compared,
    format_count,
    format_robustness,
    format_share,
    turn_distance,
    turn_percent,
)
from decisor.trace.events import ActionResult, TraceEntry, events_of
from decisor.types import PlanTable, Ranking, ScenarioOutcome, Study
from decisor.views.chart_drawing import chart_html, chart_lines
from decisor.views.charts import Axis, Chart, ChartMark, ChartSeries, begins_at_zero
from decisor.views.comparison import describe_turn, format_value, turning_points_html
from decisor.views.markup import Html, tag

MOST = 12
"""Lines of a kind in a study."""
RANGES = "The line at a value: 90 % of the outcomes lie between its ends while the inputs vary."
BREAK = "The axis does not begin at 0."


def ranking_chart(ranking: Ranking, known: Sequence[str] = ()) -> Chart | None:
    """Return the chart of a ranking for a terminal; None if it has no candidate with an outcome, or is of plans.

    Args:
        known: Texts that stand above already; what they say is no note.
    """
    options = [option for option in ranking.options if math.isfinite(option.outcome)]
    if not options or ranking.plan:
        return None
    ties, marks = list[ChartMark](), list[ChartMark]()
    for place, option in enumerate(options, 1):
        group = ties if len(ranking.ties) > 1 and option.name in ranking.ties else marks
        group.append(ChartMark("", place, option.outcome, f"{place} {option.name}", option.low, option.high))
    names = ("equally good", "not as good" if ties else "")
    series = (ChartSeries(name, tuple(group)) for name, group in zip(names, (ties, marks), strict=True) if group)
    word = "largest" if ranking.goal == "max" else "smallest"
    # How many candidates were compared, the exclusions, and how sure the first place is.
    facts = (format_compared(ranking), *excluded_lines(ranking), format_robustness(ranking))
    unsaid = [one for one in facts if one and ranking.candidates is not None and not any(one in text for text in known)]
    axis = Axis(ranking.measure, ranking.unit)
    chart = Chart(
        "bar",
        f"Ranking: {clean_for_terminal(ranking.measure)}, {word} first, {format_count(ranking.count, 'candidate')}",
        Axis("", scale="name"),
        axis,
        tuple(series),
        tuple(unsaid),
    )
    return with_honest_axis(chart)


def with_honest_axis(chart: Chart) -> Chart:
    """Return a bar chart whose axis begins at 0 unless its values lie close together, and says what it shows."""
    values = chart.values()
    notes = (*chart.notes, *([RANGES] if len(values) > len(list(chart.marks())) else []))
    if begins_at_zero(values):
        return replace(chart, notes=notes)
    return replace(chart, y=replace(chart.y, zero=False), notes=(*notes, BREAK))


def plan_html(ranking: Ranking | None) -> Html | None:
    """Return the solver's plan: a table for each kind of amount, and what limits it; None without one."""
    if ranking is None or ranking.plan is None:
        return None
    limits = [tag("li", line) for line in ranking.plan.rules]
    trials = format_robustness(ranking) if ranking.held else ""
    return tag(
        "section",
        tag("h2", "The plan"),
        *map(plan_table_html, ranking.plan.tables),
        *([tag("h3", "What limits it"), tag("ul", *limits)] if limits else []),
        *([tag("h3", "If the inputs vary"), tag("p", trials)] if trials else []),
        cls="evidence",
        aria_label="The plan",
    )


def plan_table_html(table: PlanTable) -> Html:
    name = table.name.replace("_", " ")
    left = f"; the first {len(table.rows):,} stand here" if len(table.rows) < table.used else ""
    caption = tag("caption", f"{name}: {table.used:,} of {format_count(table.count, 'row')} not 0{left}", cls="soft")
    has_today = any(row.now is not None for row in table.rows)
    heads = ("", "amount", *(["today"] if has_today else []))
    rows = [
        tag(
            "tr",
            tag("td", row.label),
            tag("td", format_amount(row.amount, table.unit), cls="n"),
            tag("td", "" if row.now is None else format_amount(row.now, table.unit), cls="n") if has_today else None,
        )
        for row in table.rows
    ]
    head = tag("tr", *(tag("th", text, scope="col", cls="n" if text else None) for text in heads))
    inner = tag("table", caption, tag("thead", head), tag("tbody", *rows), cls="rows")
    return tag("div", inner, cls="scroll", tabindex=0, role="group", aria_label=f"Amounts of {name}")


def gain_chart(ranking: Ranking) -> Chart | None:
    """Return the parts of what the best is better than today, else than the runner-up, as a waterfall, largest first.

    None if fewer than two parts differ.
    """
    known = [part for part in ranking.parts if part.against is not None]
    changes = {part.name: part.value - part.against for part in known if part.against not in (None, part.value)}
    if len(known) < len(ranking.parts) or len(changes) < 2:
        return None
    base, total = math.fsum(part.against or 0.0 for part in known), math.fsum(changes.values())
    is_today = ranking.today is not None and math.isclose(base, ranking.today, rel_tol=1e-9, abs_tol=1e-9)
    other = "today" if is_today else clean_one_line(ranking.options[len(ranking.ties)].name, 40)
    digits = digits_of_sum([*changes.values()], total)
    marks, end = list[ChartMark](), 0.0
    for name, change in sorted(changes.items(), key=lambda pair: -abs(pair[1])):
        start, end = end, end + change
        marks.append(step_mark(len(marks), name, (start, end), digits))
    marks.append(step_mark(len(marks), ranking.measure, (0.0, total), digits))
    first = marks[0].label
    is_one_way = min(changes.values()) * max(changes.values()) > 0
    share = format_share(max(map(abs, changes.values())) / abs(total)) if is_one_way else "the largest part"
    axis = Axis(f"{ranking.measure} against {other}", ranking.unit)
    title = f"{first[:1].upper()}{first[1:]}: {share} of the difference to {other}"
    return Chart("steps", title, Axis("part", scale="name"), axis, (ChartSeries("", tuple(marks)),))


def digits_of_sum(parts: Sequence[float], total: float) -> int:
    """Return the fewest digits after the point, cents at least, with which rounded parts add up to their total.

    >>> digits_of_sum([2.0, 3.0], 5.0), digits_of_sum([0.5, 0.25], 0.75), digits_of_sum([0.333, 0.333], 0.666)
    (0, 2, 3)
    """
    if all(part == round(part) for part in parts):
        return 0
    fits = (sum(round(part * 10**at) for part in parts) == round(total * 10**at) for at in range(2, 9))
    return next((at for at, is_sum in enumerate(fits, 2) if is_sum), 9)


def step_mark(place: int, name: str, ends: tuple[float, float], digits: int) -> ChartMark:
    change = ends[1] - ends[0]
    return ChartMark(
        "", place, change, name.replace("_", " "), min(ends), max(ends), format_value(change, digits, signed=True)
    )


def studies_of(entries: Sequence[TraceEntry]) -> list[Study]:
    """Return the studies of a run; of those with one title, only the last."""
    studies = (result.observation.study for result in events_of(entries, ActionResult))
    # A study that was run again, with other settings, replaces the one before.
    return list({study.title: study for study in studies if study is not None}.values())


def study_html(study: Study) -> Html:
    """Return a study with its charts. Turning points are a chart of their own, so they are no sentences."""
    turning = turning_points_html(study)
    lines = [tag("li", line) for line in study_sentences(replace(study, turns=()))]
    return tag(
        "section",
        turning,
        tag("h2", clean_one_line(study.title)) if turning is None else None,
        *map(chart_html, study_charts(study)),
        tag("ul", *lines) if lines else None,
        cls="study",
    )


def study_lines(study: Study, width: int = 100) -> Iterator[str]:
    """Yield the title of a study, its charts and its sentences, as text. width: characters of a line of notes."""
    yield clean_one_line(study.title, 100)
    for chart in study_charts(study):
        yield from (f"  {line}" for line in chart_lines(chart, width - 2))
    yield from (f"  {line}" for line in study_sentences(study))


def study_charts(study: Study) -> Iterator[Chart]:
    """Yield the tornado, the scenarios and the Pareto front, as far as the study has them."""
    unit, best = (study.units or ("",))[0], clean_one_line(study.best, 40)
    if study.swings:
        swings = tuple(
            ChartMark(
                "", at, one.high, f"{one.input} ({one.spread})", one.low, one.high, f"stays best in {one.stays:.0%}"
            )
            for at, one in enumerate(study.swings)
        )
        note = "90 % of the trials by one input lie in its range; below 0 another one wins."
        axis = Axis(f"lead of {best}", unit)
        yield Chart("span", f"Lead of {best}", Axis("input", scale="name"), axis, (ChartSeries("", swings),), (note,))
    scenes = tuple(
        ChartMark("", at, scene.outcome, scene.name, note=f"{scene.best}{usual_words(study, scene)}")
        for at, scene in enumerate(study.scenes)
        if scene.outcome is not None
    )
    if scenes:
        axis = Axis(study.measures[0], unit)
        series = (ChartSeries("", scenes),)
        yield with_honest_axis(Chart("bar", "The best in each scenario", Axis("scenario", scale="name"), axis, series))
    if len(study.measures) > 1 and study.points:
        yield pareto_chart(study)


def usual_words(study: Study, scene: ScenarioOutcome) -> str:
    """Describe the present winner where another one wins."""
    if scene.best == study.best:
        return ""
    usual = f"ruled out by {scene.why}" if scene.usual is None else format_amount(scene.usual, study.units[0])
    return f"; {study.best}: {usual}"


def pareto_chart(study: Study) -> Chart:
    """Return the first two measures of every candidate; those of the Pareto front have a mark of their own."""
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
    title = clean_one_line(f"{study.measures[1]} against {study.measures[0]}".capitalize())
    return Chart("points", title, axes[0], axes[1], tuple(series))


def study_sentences(study: Study) -> Iterator[str]:
    """Yield the turning points, the smallest change first, scenarios without a winner, and the Pareto front."""
    turns = [turn for turn in study.turns if turn.factor]
    for turn in sorted(turns, key=turn_distance)[:MOST]:
        yield clean_one_line(f"{turn.input} {turn_percent(turn):+.3g} %: {describe_turn(study, turn)}", 160)
    still = {turn.input.removesuffix(", falling") for turn in study.turns} - {turn.input for turn in turns}
    if still:
        yield f"No turning point from half to twice: {clean_one_line(', '.join(sorted(still)), 120)}"
    yield from (
        clean_one_line(f"{scene.name}: nothing is allowed", 120) for scene in study.scenes if scene.outcome is None
    )
    front = [point for point in study.points if point.front]
    for point in front[:MOST]:
        values = zip(study.measures, point.values, study.units, strict=True)
        yield clean_one_line(
            f"{point.name}: {', '.join(f'{name} {format_amount(value, unit)}' for name, value, unit in values)}", 160
        )
    if len(front) > MOST:
        yield f"and {len(front) - MOST} more on the front"
