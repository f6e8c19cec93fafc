"""Checks 2 to 5: numbers, the present, and what was worked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from decisor.decision_models.checks.subject import Subject
from decisor.decision_models.explain import say
from decisor.decision_models.no_outcome import cells_left_out
from decisor.errors import ToolError
from decisor.finding import Finding
from decisor.plurals import counted
from decisor.rankings import amount


def numbers(subject: Subject) -> Iterator[Finding]:
    model, outcomes = subject.model.model, subject.outcomes
    for at, measure in enumerate(model.measures):
        missing = np.flatnonzero(np.isnan(outcomes.values[:, at]))
        if len(missing):
            names = ", ".join(subject.name(int(place)) for place in missing[:3])
            words = (f"measure.{measure.name} gives no number for {counted(len(missing), 'candidate')} of "
                     f"{len(outcomes.candidates):,}, such as {names}: a join is empty, or there is no row")  # fmt: skip
            yield Finding(2, model.line("measure", measure.name, "sql"), words)
    for part, words in cells_left_out(subject.model):
        yield Finding(2, model.line(*part.split(".")), f"{part}: {words}", "doubt")


def present(subject: Subject) -> Iterator[Finding]:
    model = subject.model.model
    books = [one for one in model.measures if one.now is not None]
    values = subject.model.present() if books else {}
    for measure in books:
        value, now = values.get(measure.name), measure.now
        if now is not None and (value is None or not near(value, now)):
            measured = "nothing" if value is None else amount(value, measure.unit)
            words = f"measure.{measure.name} measures {measured} at present; the books say {amount(now, measure.unit)}"
            yield Finding(3, model.line("measure", measure.name, "now"), words)


def examples(subject: Subject) -> Iterator[Finding]:
    """Outcomes (4) and rules (5) of candidates worked by hand."""
    model = subject.model.model
    for number, example in enumerate(model.examples, 1):
        line = model.line("example", str(number), "choice")
        try:
            candidate = subject.model.candidates.find(example.choice)
        except ToolError as error:
            yield Finding(4, line, str(error))
            continue
        outcomes = subject.model.outcomes([candidate])
        name = subject.model.candidates.name(candidate)
        for measure, value in example.outcomes.items():
            here = float(outcomes.of(measure)[0])
            if not near(here, value):
                words = f"for {name} the model gives {measure} {amount(here)}; your example says {amount(value)}"
                yield Finding(4, model.line("example", str(number), measure), words)
        broken = {rule: outcomes.reasons.get((candidate, rule)) for at, rule in enumerate(outcomes.rules)
                  if outcomes.broken[0, at]}  # fmt: skip
        for rule in [] if example.breaks is None else [one.name for one in model.rules]:
            wanted = rule in (example.breaks or ())
            if wanted != (rule in broken):
                why = f": {say(model, rule, broken[rule])}" if rule in broken else ""
                words = (f"for {name} rule {rule} is {'broken' if rule in broken else 'kept'}{why}; your example says "
                         f"it is {'broken' if wanted else 'kept'}")  # fmt: skip
                yield Finding(5, model.line("example", str(number), "breaks"), words)


def near(value: float, written: float) -> bool:
    """Within half of the last digit that was written.

    >>> near(12.603, 12.6), near(12.7, 12.6), near(315499.744, 315499.74)
    (True, False, True)
    """
    exponent = Decimal(repr(written)).as_tuple().exponent
    half = 0.5 * 10.0 ** min(0, int(exponent)) if isinstance(exponent, int) else 0.0
    whole = half if written != int(written) else 0.005
    return abs(value - written) <= max(whole * 1.001, 1e-6 * abs(written))
