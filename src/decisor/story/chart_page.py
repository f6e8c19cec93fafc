"""What-ifs as drawings of a page: tornado, turning points, scenarios side by side, Pareto front."""

from __future__ import annotations

from collections.abc import Iterator

from decisor.rankings import amount
from decisor.render.markup import Html, join, tag
from decisor.render.svg import Scale, caption, line, round_steps
from decisor.render.text import number, one_line
from decisor.story.charts import MOST, ends_of, percent, turns_of, usual_words
from decisor.types import Scene, Study

WIDE = 820
LEFT = 230
RIGHT = 150
ROW = 26


def study_html(study: Study) -> Html:
    parts = (tornado(study), turning(study), scenes(study), front(study))
    return join(tag("h2", study.title), *(part for part in parts if part is not None))


def drawing(words: str, height: float, *marks: str) -> Html:
    inner = Html("".join(marks))
    svg = tag("svg", tag("title", words), inner, viewBox=f"0 0 {WIDE} {height:g}", role="img", aria_label=words)
    return tag("div", svg, cls="chart")


def rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{height:g}" rx="2"/>'


def axis(scale: Scale, bottom: float, unit: str) -> Iterator[str]:
    """Round numbers below, and a line up from each."""
    for step in round_steps(scale.low, scale.high, 5):
        if scale.low <= step <= scale.high:
            yield line(scale(step), 4, scale(step), bottom, "grid")
            yield caption(scale(step), bottom + 16, number(step), "middle", "soft")
    yield caption(WIDE - 4, bottom + 16, unit, "end", "soft")


def tornado(study: Study) -> Html | None:
    if not study.swings:
        return None
    rows, unit = study.swings[:MOST], study.units[0]
    scale = Scale(*ends_of(rows), LEFT, WIDE - RIGHT)
    bottom = 8 + ROW * len(rows)
    marks = [*axis(scale, bottom, unit)]
    for at, one in enumerate(rows):
        y = 8 + ROW * at
        marks.append(caption(LEFT - 10, y + 16, one_line(f"{one.input}, {one.spread}", 36), "end"))
        if one.low < 0:
            marks.append(rect("bad", scale(one.low), y + 4, scale(min(one.high, 0)) - scale(one.low), ROW - 8))
        if one.high > 0:
            start = max(one.low, 0.0)
            marks.append(rect("s0", scale(start), y + 4, scale(one.high) - scale(start), ROW - 8))
        marks.append(caption(WIDE - 4, y + 16, f"stays best in {one.stays:.0%}", "end", "soft"))
    marks.append(line(scale(0), 4, scale(0), bottom, "zero"))
    words = f"The lead of {study.best}, while one input alone varies: 90 % of the trials lie in its bar."
    return join(drawing(words, bottom + 22, *marks), tag("p", f"{words} Below 0 another one wins.", cls="soft"))


def turning(study: Study) -> Html | None:
    turns = turns_of(study)[:MOST]
    if not turns:
        return tag("p", "No input alone, from half to twice its value, turns the decision.") if study.turns else None
    low, high = (pick(0.0, *((one.factor or 1.0) - 1 for one in turns)) for pick in (min, max))
    scale = Scale(low, high, LEFT, WIDE - RIGHT - 150)
    bottom = 8 + ROW * len(turns)
    marks = [line(scale(0), 4, scale(0), bottom, "zero")]
    for at, one in enumerate(turns):
        y, end = 8 + ROW * at, scale((one.factor or 1.0) - 1)
        marks.append(caption(LEFT - 10, y + 16, one_line(one.input, 36), "end"))
        marks.append(rect("s0", min(scale(0), end), y + 6, abs(end - scale(0)), ROW - 12))
        words = f"{percent(one)}: {f'{one.winner} wins' if one.winner else 'nothing is allowed'}"
        marks.append(caption(scale.end + 12, y + 16, one_line(words, 44), "start"))
    why = [
        tag("p", f"{one.input} {percent(one)}: {study.best} then breaks {one.why}.", cls="soft")
        for one in turns
        if one.why
    ]
    words = f"How far each input moves, alone, until {study.best} no longer wins."
    return join(drawing(words, bottom + 6, *marks), tag("p", words, cls="soft"), *why)


def scenes(study: Study) -> Html | None:
    """A bar for who wins there, a mark for who wins now."""
    if not study.scenes:
        return None
    rows, unit = study.scenes[:MOST], study.units[0]
    values = [value for one in rows for value in (one.outcome, one.usual) if value is not None]
    scale = Scale(min([0.0, *values]), max([0.0, *values]), LEFT, WIDE - RIGHT - 150)
    marks = []
    for at, one in enumerate(rows):
        y = 8 + ROW * at
        marks.append(caption(LEFT - 10, y + 16, one_line(one.name, 36), "end"))
        if one.outcome is not None:
            kind = "best" if one.best == study.best else "s1"
            start, end = sorted((scale(0), scale(one.outcome)))
            marks.append(rect(kind, start, y + 4, end - start, ROW - 8))
        if one.usual is not None and one.best != study.best:
            marks.append(line(scale(one.usual), y + 2, scale(one.usual), y + ROW - 2, "zero"))
        marks.append(caption(scale.end + 12, y + 16, one_line(scene_words(study, one), 44), "start"))
    why = [tag("p", f"{one.name}: {study.best} is ruled out by {one.why}.", cls="soft") for one in rows if one.why]
    words = f"{study.measures[0]} of who wins{f' in {unit}' if unit else ''}; a line stands where {study.best} is."
    return join(drawing(words, 12 + ROW * len(rows), *marks), tag("p", words, cls="soft"), *why)


def scene_words(study: Study, scene: Scene) -> str:
    if scene.outcome is None:
        return "nothing is allowed"
    usual = "" if scene.best == study.best or scene.usual is None else f" ({usual_words(study, scene.usual, '')})"
    return f"{scene.best}: {amount(scene.outcome, study.units[0])}{usual}"


def front(study: Study) -> Html | None:
    """The first two measures; a filled mark is on the front."""
    if len(study.measures) < 2 or not study.points:
        return None
    xs, ys = ([one.values[at] for one in study.points] for at in (0, 1))
    x, y = Scale(*wide(xs), 90, WIDE - 30), Scale(*wide(ys), 290, 16)
    marks = []
    for step in round_steps(x.low, x.high, 6):
        if x.low <= step <= x.high:
            marks += [line(x(step), 16, x(step), 290, "grid"), caption(x(step), 308, number(step), "middle", "soft")]
    for step in round_steps(y.low, y.high, 5):
        if y.low <= step <= y.high:
            marks += [
                line(90, y(step), WIDE - 30, y(step), "grid"),
                caption(82, y(step) + 4, number(step), "end", "soft"),
            ]
    for one in study.points:
        kind = "on" if one.front else "off"
        place = f'cx="{x(one.values[0]):.1f}" cy="{y(one.values[1]):.1f}"'
        marks.append(f'<circle class="{kind}" {place} r="{5 if one.front else 3}"/>')
    ends = [one for one in study.points if one.front]
    for one in ends[:8]:
        right = x(one.values[0]) > WIDE * 0.75
        at = x(one.values[0]) + (-9 if right else 9)
        marks.append(caption(at, y(one.values[1]) - 7, one_line(one.name, 30), "end" if right else "start"))
    names = [f"{name}{f' in {unit}' if unit else ''} ({'less' if goal == 'min' else 'more'} is better)"
             for name, unit, goal in zip(study.measures, study.units, study.goals, strict=True)]  # fmt: skip
    words = f"Across: {names[0]}. Up: {names[1]}. On the front: {len(ends)} of {len(study.points)}."
    return join(drawing(words, 314, *marks), tag("p", words, cls="soft"))


def wide(values: list[float]) -> tuple[float, float]:
    """With some room around."""
    low, high = min(values), max(values)
    room = (high - low or abs(high) or 1.0) * 0.06
    return low - room, high + room
