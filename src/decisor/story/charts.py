"""What-ifs as pictures of text, for a terminal: what each study holds, as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisor.rankings import amount
from decisor.render.text import one_line
from decisor.trace.events import ActionResult, Entry, events_of
from decisor.types import Study, Swing, Turn

WIDTH = 24
NAME = 28
MOST = 12


def studies_of(entries: Sequence[Entry]) -> list[Study]:
    """Those of a run, each once, the last of the same title."""
    every = [one.observation.study for one in events_of(entries, ActionResult)]
    return list({one.title: one for one in every if one is not None}.values())


def study_lines(study: Study) -> Iterator[str]:
    yield one_line(study.title, 100)
    yield from (f"  {line}" for line in tornado(study))
    yield from (f"  {line}" for line in turning(study))
    yield from (f"  {line}" for line in scenes(study))
    yield from (f"  {line}" for line in front(study))


def tornado(study: Study) -> Iterator[str]:
    """One bar an input, on one scale; the mark is where the best is overtaken."""
    if not study.swings:
        return
    low, high = ends_of(study.swings)
    unit = study.units[0]
    for one in study.swings[:MOST]:
        bar = span_bar(one.low, one.high, low, high, 0.0)
        words = f"{amount(one.low, unit)} to {amount(one.high, unit)}"
        yield f"{one_line(f'{one.input} ({one.spread})', NAME):<{NAME}} {bar} {words}, stays {one.stays:.0%}"
    yield f"The lead of {one_line(study.best, 40)} in 90 % of the trials, by one input; left of | another one wins."


def ends_of(swings: Sequence[Swing]) -> tuple[float, float]:
    """Of a scale that shows zero."""
    return min(0.0, *(one.low for one in swings)), max(0.0, *(one.high for one in swings))


def span_bar(start: float, end: float, low: float, high: float, mark: float) -> str:
    """
    >>> span_bar(2.0, 6.0, -2.0, 8.0, 0.0)
    '     |   ██████████     '
    """
    scale = (WIDTH - 1) / (high - low or 1.0)
    cells = [" "] * WIDTH
    cells[round((mark - low) * scale)] = "|"
    for at in range(round((start - low) * scale), round((end - low) * scale) + 1):
        cells[at] = "█"
    return "".join(cells)


def turning(study: Study) -> Iterator[str]:
    """The smallest change first."""
    for one in turns_of(study)[:MOST]:
        why = f" ({one.why})" if one.why else ""
        wins = one.winner or "nothing is allowed"
        yield one_line(f"{one.input} {percent(one)}: {wins}{' wins' if one.winner else ''}{why}", 160)
    still = {one.input.removesuffix(", falling") for one in study.turns} - {one.input for one in turns_of(study)}
    if still:
        yield f"No turning point from half to twice: {one_line(', '.join(sorted(still)), 120)}"


def turns_of(study: Study) -> list[Turn]:
    hits = [one for one in study.turns if one.factor]
    return sorted(hits, key=lambda one: max(one.factor or 1.0, 1 / (one.factor or 1.0)))


def percent(turn: Turn) -> str:
    """
    >>> percent(Turn("units", 1.0513))
    '+5.13 %'
    """
    return f"{((turn.factor or 1.0) - 1) * 100:+.3g} %"


def scenes(study: Study) -> Iterator[str]:
    values = [value for one in study.scenes for value in (one.outcome, one.usual) if value is not None]
    top = max(map(abs, values), default=0.0) or 1.0
    for one in study.scenes[:MOST]:
        bar = "" if one.outcome is None else "█" * round(abs(one.outcome) / top * WIDTH)
        words = "nothing is allowed" if one.outcome is None else f"{one.best} {amount(one.outcome, study.units[0])}"
        usual = "" if one.best == study.best else f"; {study.best}: {usual_words(study, one.usual, one.why)}"
        yield f"{one_line(one.name, NAME):<{NAME}} {bar:<{WIDTH}} {one_line(words + usual, 120)}"


def usual_words(study: Study, usual: float | None, why: str) -> str:
    return f"ruled out by {why}" if usual is None else amount(usual, study.units[0])


def front(study: Study) -> Iterator[str]:
    ends = [one for one in study.points if one.front]
    for one in ends[:MOST]:
        pairs = zip(study.measures, one.values, study.units, strict=True)
        yield f"{one_line(one.name, NAME):<{NAME}} " + ", ".join(f"{name} {amount(v, unit)}" for name, v, unit in pairs)
    if len(ends) > MOST:
        yield f"and {len(ends) - MOST} more on the front"
