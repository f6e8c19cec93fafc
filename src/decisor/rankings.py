"""A ranking in plain words: how many of how many, the margin in its unit, what was ruled out, what was varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from decisor.plurals import counted
from decisor.types import Excluded, Ranking

Z95 = 1.959963984540054
SHOWN_TIES = 10
SHOWN_WINNERS = 3
SHOWN_EXCLUDED = 3


def amount(value: float, unit: str = "") -> str:
    """
    >>> amount(225876.94, "EUR"), amount(0.00003), amount(11.0, "people")
    ('225,877 EUR', '3e-05', '11 people')
    """
    number = f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.6g}"
    return f"{number} {unit}".strip()


def share(value: float) -> str:
    """A relative distance; never 0 where it is not.

    >>> share(0.0213), share(0.00003), share(0.0)
    ('2.13 %', '0.003 %', '0 %')
    """
    return f"{value * 100:.3g} %"


def compared(ranking: Ranking) -> str:
    """
    >>> compared(Ranking("cost", "min", (), compared=2, candidates=79))
    'Compared: 2 of 79 candidates; the other 77 were not computed.'
    """
    if ranking.method:
        return f"{ranking.method}."
    if ranking.candidates is None:
        return f"Compared: {counted(ranking.count, 'candidate')}."
    left = ranking.candidates - ranking.count
    words = f"Compared: {ranking.count:,} of {counted(ranking.candidates, 'candidate')}"
    stopped = f" ({ranking.stopped})" if ranking.stopped else ""
    return f"{words}; the other {left:,} were not computed{stopped}." if left else f"{words}, all there are."


def margin(ranking: Ranking) -> str:
    """How far the first is ahead of the next that is not equally good; '' where there is none."""
    if ranking.margin is None:
        return ""
    if ranking.lead is None:
        return f"Margin to the next: {share(ranking.margin)}."
    return f"Margin to the next: {amount(ranking.lead, ranking.unit)} ({share(ranking.margin)})."


def varied(ranking: Ranking) -> str:
    """What was varied and how, who stayed in front, and who won in the other trials."""
    if ranking.robustness is None and ranking.stopped and ranking.count == ranking.candidates:
        return f"Nothing is said of how robust this is: {ranking.stopped}. More seconds or fewer trials would say it."
    if ranking.robustness is None and ranking.covered:
        return f"{ranking.covered}, so nothing is said of how robust this is."
    if ranking.robustness is None:
        return "Nothing was varied, so nothing is said of how robust this is." * (ranking.candidates is not None)
    how = "; ".join(ranking.varied) or f"every input by up to {ranking.varied_percent:g} %"
    times = f" of {counted(ranking.trials, 'trial')}" if ranking.trials else " of trials"
    others = [one for one in ranking.winners if one.name not in ranking.ties][:SHOWN_WINNERS]
    rest = f"; else {', '.join(f'{one.name} ({one.share:.0%})' for one in others)}" if others else ""
    ends = [f"{end:.0%}" for end in interval(ranking.robustness, ranking.trials)] if ranking.trials else []
    between = f" ({ends[0]} to {ends[1]} with 95 % confidence)" if ends else ""
    covered = f" {ranking.covered}." if ranking.covered else ""
    if ranking.stopped and ranking.count == ranking.candidates:
        covered += f" It ended early: {ranking.stopped}; more seconds give more."
    return f"Varied: {how}. It stays best in {ranking.robustness:.0%}{times}{between}{rest}.{covered}"


def interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share of ``count`` trials.

    >>> [round(end, 4) for end in interval(81 / 263, 263)]  # Newcombe 1998, table I
    [0.2553, 0.3662]
    """
    scale = 1 + Z95 * Z95 / count
    middle = (share + Z95 * Z95 / (2 * count)) / scale
    half = Z95 * math.sqrt(share * (1 - share) / count + Z95 * Z95 / (4 * count * count)) / scale
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def excluded(ranking: Ranking) -> Iterator[str]:
    """What was ruled out, by which rule, and the nearest of it."""
    if not ranking.excluded_count:
        return
    rules = ", ".join(f"{name} {count:,}" for name, count in ranking.excluded_by.items())
    yield f"Ruled out: {counted(ranking.excluded_count, 'candidate')}{f' (by rule: {rules})' if rules else ''}."
    for one in ranking.excluded[:SHOWN_EXCLUDED]:
        yield excluded_line(one, ranking)


def excluded_line(one: Excluded, ranking: Ranking) -> str:
    outcome = "no outcome" if one.outcome is None else amount(one.outcome, ranking.unit)
    better = ""
    if one.gain is not None:
        better = (
            f", {amount(abs(one.gain), ranking.unit)} {'better' if one.gain > 0 else 'worse'} than the best allowed"
        )
    return f"{one.name} ({outcome}{better}) is ruled out by {' and '.join(one.rules) or 'its outcome'}: {one.why}"


def note(ranking: Ranking) -> str:
    """A ranking in a few lines."""
    return "\n".join(lines(ranking))


def lines(ranking: Ranking) -> Sequence[str]:
    if not ranking.options:
        nothing = "No candidate is allowed." if ranking.excluded_count else "There is no candidate."
        cut = bool(ranking.stopped) and ranking.count < (ranking.candidates or 0)
        if cut:
            nothing = "No candidate that was computed is allowed." if ranking.count else "Nothing was computed."
        return [nothing, *([compared(ranking)] if ranking.count or cut else []), *excluded(ranking)]
    best = ranking.options[0]
    words = [f"Best for {ranking.goal} {ranking.measure}: {best.name} ({amount(best.outcome, ranking.unit)})."]
    if len(ranking.ties) > 1:
        words.append(f"Equally good: {', '.join(ranking.ties[:SHOWN_TIES])} ({len(ranking.ties):,} in all).")
    words += [line for line in (margin(ranking), compared(ranking)) if line]
    return [*words, *ranking.left_out, *excluded(ranking), *([line] if (line := varied(ranking)) else [])]
