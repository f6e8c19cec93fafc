"""What ``decisor doctor`` says of an LM that it measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from decisor.lms.measure import Measurement
from decisor.plurals import counted
from decisor.render.text import one_line
from decisor.session.fitness import by_fit, fitness, seconds_of_a_question

NO_LM = "None is used: questions are decided by exact where there is a decision model. Name one with --lm."
WORDS = {
    "max_tokens": "a cap on replies (max_tokens)", "stop": "stop words", "seed": "seeds", "n": "several texts (n)",
    "logprobs": "log-probabilities", "streaming": "streaming", "response_format": "JSON schemas (calling=json)",
    "tools": "calls of functions (calling=tools)",
}  # fmt: skip
MOST_NAMED = 5
FITS = {"enough": "Enough for", "tight": "Tight for", "unknown": "Not sure for", "not": "Not enough for"}


def as_object(measurement: Measurement) -> dict[str, object]:
    """For JSON: the probe's fields, what was measured, and how each technique fits."""
    values = asdict(measurement)
    probe = values.pop("probe")
    fits = [asdict(one) for one in fitness(measurement)] if measurement.heeds else []
    return {**probe, **values, "techniques": fits}


def lines_of(measurement: Measurement | None) -> Iterator[str]:
    if measurement is None:
        yield NO_LM
        return
    probe = measurement.probe
    if measurement.busy:
        slots = f"all of its {counted(measurement.slots, 'slot')} are at work" if measurement.slots else probe.error
        yield f"It is busy, not broken: {one_line(slots, 200)}. Ask again later."
    elif not probe.ok:
        yield f"It does not work: {one_line(probe.error, 200)}"
    if not probe.ok:
        return
    yield f"It answers in {probe.seconds:.1f} s: {one_line(probe.text, 60)}"
    if not measurement.heeds:
        return
    yield speed_line(measurement)
    for verdict, begin in (("yes", "It takes"), ("ignored", "It ignores"), ("refused", "It refuses")):
        if names := [WORDS[name] for name, heed in measurement.heeds.items() if heed == verdict]:
            yield f"{begin} {', '.join(names)}"
    for (fit, why), names in by_fit(fitness(measurement)).items():
        yield f"{FITS[fit]} {first_of(names)}{f' ({why})' if why else ''}"


def first_of(names: Sequence[str]) -> str:
    """All of a few; --json has every one.

    >>> first_of(list("abcdef"))
    'a, b, c and 3 more'
    """
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{', '.join(names[:3])} and {len(names) - 3} more"


def speed_line(measurement: Measurement) -> str:
    parts = [f"It writes {measurement.speed:,.0f} tokens a second"]
    if seconds := seconds_of_a_question(measurement):
        minutes = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"
        parts.append(f"a question of plan_rag takes about {minutes}")
    parts.append(f"its context is {measurement.context:,} tokens" if measurement.context else "its context is not told")
    if measurement.slots:
        parts.append(f"it has {counted(measurement.slots, 'slot')}")
    return ", ".join(parts)
