"""Rankings, amounts, counts and durations in plain words for people.

A ranking tells how many candidates of how many were computed, the margin in its unit, what was ruled out, and what was
varied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from decisor.types import Ranking, Turn


def plural(number: int, what: str) -> str:
    return what if number == 1 else f"{what}s"


def format_count(number: int, what: str) -> str:
    """Format a number with its noun, in the plural unless it is 1.

    >>> format_count(1, "sequence"), format_count(0, "sequence"), format_count(1200, "row")
    ('1 sequence', '0 sequences', '1,200 rows')
    """
    return f"{number:,} {plural(number, what)}"


Z95 = 1.959963984540054
SHOWN_TIES = 10
SHOWN_WINNERS = 3
SHOWN_EXCLUDED = 3


def format_amount(value: float, unit: str = "") -> str:
    """Format an amount with its unit.

    >>> format_amount(225876.94, "EUR"), format_amount(0.00003), format_amount(11.0, "people")
    ('225,877 EUR', '3e-05', '11 people')
    """
    # Six significant digits, but never an exponent for a large amount.
    number = f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.6g}"
    return f"{number} {unit}".strip()


def format_share(value: float) -> str:
    """Format a relative distance in percent; 0 only for 0.

    >>> format_share(0.0213), format_share(0.00003), format_share(0.0)
    ('2.13 %', '0.003 %', '0 %')
    """
    return f"{value * 100:.3g} %"


def format_compared(ranking: Ranking) -> str:
    """Format how many of the candidates were computed.

    >>> format_compared(Ranking("cost", "min", (), compared=2, candidates=79))
    'Compared: 2 of 79 candidates; the other 77 were not computed.'
    """
    if ranking.method:
        return f"{ranking.method}."
    if ranking.candidates is None:
        return f"Compared: {format_count(ranking.count, 'candidate')}."
    left = ranking.candidates - ranking.count
    words = f"Compared: {ranking.count:,} of {format_count(ranking.candidates, 'candidate')}"
    stopped = f" ({ranking.stopped})" if ranking.stopped else ""
    return f"{words}; the other {left:,} were not computed{stopped}." if left else f"{words}, all there are."


def format_margin(ranking: Ranking) -> str:
    """Format the lead of the first over the next that is not equally good; '' without one."""
    if ranking.margin is None:
        return ""
    if ranking.lead is None:
        return f"Margin to the next: {format_share(ranking.margin)}."
    return f"Margin to the next: {format_amount(ranking.lead, ranking.unit)} ({format_share(ranking.margin)})."


def format_gain(ranking: Ranking) -> str:
    """Format by how much the best is better or worse than today; '' if today's outcome is not known.

    >>> from decisor.types import Option
    >>> format_gain(Ranking("cost", "min", (Option("Ulm", 90.0),), unit="EUR", today=120.0))
    'Today: 120 EUR; Ulm is 30 EUR better.'
    """
    if ranking.today is None:
        return ""
    best, today = ranking.options[0], ranking.today
    gain = (today - best.outcome) * (1 if ranking.goal == "min" else -1)
    words = f"{format_amount(abs(gain), ranking.unit)} {'better' if gain > 0 else 'worse'}" if gain else "as good"
    return f"Today: {format_amount(today, ranking.unit)}; {best.name} is {words}."


def format_robustness(ranking: Ranking) -> str:
    """Format the varied inputs, the share in which the best stayed, and the other winners."""
    if ranking.robustness is None and ranking.stopped and ranking.count == ranking.candidates:
        return f"Robustness is unknown: {ranking.stopped}. Give more seconds or fewer trials."
    if ranking.robustness is None and ranking.covered:
        return f"{ranking.covered}, so robustness is unknown."
    if ranking.robustness is None:
        return "Nothing was varied, so robustness is unknown." * (ranking.candidates is not None)
    how = "; ".join(ranking.varied) or f"every input by up to {ranking.varied_percent:g} %"
    times = f" of {format_count(ranking.trials, 'trial')}" if ranking.trials else " of trials"
    others = [one for one in ranking.winners if one.name not in ranking.ties][:SHOWN_WINNERS]
    rest = f"; else {', '.join(f'{one.name} ({one.share:.0%})' for one in others)}" if others else ""
    # Few trials say little: the interval shows how little.
    ends = [f"{end:.0%}" for end in wilson_interval_95(ranking.robustness, ranking.trials)] if ranking.trials else []
    between = f" ({ends[0]} to {ends[1]} with 95 % confidence)" if ends else ""
    covered = f" {ranking.covered}." if ranking.covered else ""
    if ranking.stopped and ranking.count == ranking.candidates:
        covered += f" It ended early: {ranking.stopped}; more seconds give more."
    # Of a plan, rows win and not amounts, which nearly every trial changes.
    stays = f"Its rows of {ranking.plan.tables[0].name} stay best" if ranking.plan else "It stays best"
    words = f"Varied: {how}. {stays} in {ranking.robustness:.0%}{times}{between}{rest}.{covered}"
    return f"{words} {format_held_plan(ranking)}".rstrip()


def format_held_plan(ranking: Ranking) -> str:
    """Format the cost of holding to the best plan in trials, and the rules that it breaks there; '' without trials.

    >>> from decisor.types import HeldPlan
    >>> held = HeldPlan(12, {"room": 8}, 9, 40)
    >>> format_held_plan(Ranking("cost", "min", (), unit="EUR", trials=20, held=held))
    'Held to, this plan keeps every rule in 12 of 20 trials. There it costs 9 EUR more than the best plan of the trial \
on average, and at most 40 EUR more in 95 % of them. It breaks room in 8.'
    """
    held = ranking.held
    if held is None:
        return ""
    kept = f"all {ranking.trials:,}" if held.kept == ranking.trials else f"{held.kept:,} of {ranking.trials:,}"
    words = [f"Held to, this plan keeps every rule in {kept} trials."]
    if held.mean == 0:
        words.append("There no other plan is better.")
    elif held.mean is not None and held.high is not None:
        verb, more = ("costs", "more") if ranking.goal == "min" else ("brings", "less")
        mean, high = format_amount(held.mean, ranking.unit), format_amount(held.high, ranking.unit)
        words.append(
            f"There it {verb} {mean} {more} than the best plan of the trial on average, and at most {high} {more} in "
            "95 % of them."
        )
    if held.broken:
        words.append(f"It breaks {', '.join(f'{name} in {count:,}' for name, count in held.broken.items())}.")
    return " ".join(words)


def wilson_interval_95(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a share of ``count`` trials.

    >>> [round(end, 4) for end in wilson_interval_95(81 / 263, 263)]  # Newcombe 1998, table I
    [0.2553, 0.3662]
    """
    # Wilson 1927; unlike the normal interval it holds for shares near 0 and 1.
    scale = 1 + Z95 * Z95 / count
    middle = (share + Z95 * Z95 / (2 * count)) / scale
    half = Z95 * math.sqrt(share * (1 - share) / count + Z95 * Z95 / (4 * count * count)) / scale
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def excluded_lines(ranking: Ranking) -> Iterator[str]:
    """Yield the number of excluded candidates by rule, and the nearest of them."""
    if not ranking.excluded_count:
        return
    rules = ", ".join(f"{name} {count:,}" for name, count in ranking.excluded_by.items())
    yield f"Ruled out: {format_count(ranking.excluded_count, 'candidate')}{f' (by rule: {rules})' if rules else ''}."
    for candidate in ranking.excluded[:SHOWN_EXCLUDED]:
        facts = "no outcome" if candidate.outcome is None else format_amount(candidate.outcome, ranking.unit)
        if candidate.gain is not None:
            gain = format_amount(abs(candidate.gain), ranking.unit)
            facts += f", {gain} {'better' if candidate.gain > 0 else 'worse'} than the best allowed"
        rules = " and ".join(candidate.rules) or "its outcome"
        yield f"{candidate.name} ({facts}) is ruled out by {rules}: {candidate.why}"


def reading_lines(ranking: Ranking) -> Iterator[str]:
    """Yield for each open question whether the winner is the same when it is read the other way."""
    best = ranking.options[0].name if ranking.options else ""
    for one in ranking.readings:
        outcome = "" if one.outcome is None else format_amount(one.outcome, ranking.unit)
        stands = f"has {format_amount(one.usual, ranking.unit)}" if one.usual is not None else "is ruled out"
        if one.usual is None and one.why:
            stands += f" by {one.why}"
        if not one.computed:
            words = f"The other reading was not computed: {one.why}."
        elif one.is_same:
            words = f"{best} is best either way; read the other way it has {outcome}."
        elif not one.best:
            words = "Read the other way, nothing is allowed."
        else:
            words = f"Read the other way, {one.best} wins with {outcome}{f', and {best} {stands}' if best else ''}."
        yield f"Left open: {one.name} {words}"


def list_ranking_facts(ranking: Ranking) -> list[str]:
    """List what a ranking tells beside its first places: today, what was compared, ruled out and varied."""
    facts = (format_gain(ranking), format_compared(ranking), *excluded_lines(ranking), format_robustness(ranking))
    return [fact for fact in facts if fact]


SHOWN_AMOUNTS = 12


def format_plan_lines(ranking: Ranking) -> Iterator[str]:
    """Yield the amounts of the best plan as tables, and its rules."""
    plan = ranking.plan
    if plan is None:
        return
    for table in plan.tables:
        yield f"{table.name}: {table.used:,} of {format_count(table.count, 'row')} not 0."
        for row in table.rows[:SHOWN_AMOUNTS]:
            today = "" if row.now is None else f" (today {format_amount(row.now, table.unit)})"
            yield f"  {row.label}: {format_amount(row.amount, table.unit)}{today}"
        if table.used > SHOWN_AMOUNTS:
            yield f"  and {table.used - SHOWN_AMOUNTS:,} more"
    yield from plan.rules


def format_ranking(ranking: Ranking) -> str:
    """Format a ranking in a few lines."""
    if not ranking.options:
        nothing = "No candidate is allowed." if ranking.excluded_count else "There is no candidate."
        cut = bool(ranking.stopped) and ranking.count < (ranking.candidates or 0)
        if cut:
            nothing = "No candidate that was computed is allowed." if ranking.count else "Nothing was computed."
        compared = [format_compared(ranking)] if ranking.count or cut else []
        return "\n".join([nothing, *compared, *ranking.left_out, *excluded_lines(ranking), *reading_lines(ranking)])
    best = ranking.options[0]
    words = [f"Best for {ranking.goal} {ranking.measure}: {best.name} ({format_amount(best.outcome, ranking.unit)})."]
    words += [f"{ranking.near}."] if ranking.near else []
    if len(ranking.ties) > 1:
        words.append(f"Equally good: {', '.join(ranking.ties[:SHOWN_TIES])} ({len(ranking.ties):,} in all).")
    if ranking.parts:
        parts = " + ".join(f"{part.name} {format_amount(part.value, ranking.unit)}" for part in ranking.parts)
        words.append(f"{ranking.measure} = {parts}.")
    words += [*format_plan_lines(ranking), format_gain(ranking), format_margin(ranking), format_compared(ranking)]
    words += [*ranking.left_out, *excluded_lines(ranking), *reading_lines(ranking)]
    return "\n".join(filter(None, [*words, format_robustness(ranking)]))


def turn_percent(turn: Turn) -> float:
    """Return the change of the input of a turning point.

    >>> from decisor.types import Turn
    >>> round(turn_percent(Turn("units", 1.0513)), 2)
    5.13
    """
    return ((turn.factor or 1.0) - 1) * 100


def turn_distance(turn: Turn) -> float:
    """Return the size of the change: half and double are equally far from 1."""
    return abs(math.log(turn.factor or 1.0))


def format_duration(seconds: float) -> str:
    """Format a duration in seconds, in two parts at most; '' for none.

    >>> (format_duration(0), format_duration(0.0123), format_duration(1.5),
    ...     format_duration(57.4), format_duration(912.3), format_duration(10800))
    ('', '12 ms', '1.50 s', '57 s', '15 min 12 s', '3 h 0 min')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms" if seconds > 0 else ""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    return format_whole_seconds(round(seconds))


def format_whole_seconds(seconds: int) -> str:
    """Format a duration of whole seconds.

    >>> format_whole_seconds(0), format_whole_seconds(100), format_whole_seconds(5999), format_whole_seconds(6000)
    ('0 s', '1 min 40 s', '99 min 59 s', '1 h 40 min')
    """
    if seconds < 100:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if seconds < 6000 else f"{minutes // 60} h {minutes % 60} min"
