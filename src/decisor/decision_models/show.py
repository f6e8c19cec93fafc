"""A decision model in plain words, with real rows: what a person approves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from decisor.decision_models.explain import say, word
from decisor.decision_models.machine import OpenModel
from decisor.plurals import counted
from decisor.rankings import amount

SHOWN = 12


def show(model: OpenModel) -> Iterator[str]:
    """Lines. Raises ToolError where a statement does not run."""
    file = model.model
    if file.choice:
        yield from chosen_by_rows(model)
    else:
        yield f"To decide: {file.decide}, by the solver."
    for variable in file.variables:
        yield f"Unknown: {variable.name}, {variable.kind}, one for each row of: {flat(variable.each)}."
    for require in file.requires:
        side = require.side.replace("_", " ")
        yield f"Required: {require.text or require.name} ({flat(require.sum)} {side} {require.bound})"
    yield from certainty(model)


def chosen_by_rows(model: OpenModel) -> Iterator[str]:
    """What is chosen, what that changes for the candidate in the middle, what is measured, and the rules."""
    file, candidates = model.model, model.candidates
    count = len(candidates)
    middle, names = count // 2, [candidates.name(at) for at in (0, count - 1)]
    yield f"To decide: {file.decide}. {counted(count, 'candidate')}, such as {' and '.join(dict.fromkeys(names))}."
    name = candidates.name(middle)
    for _, table, rows, gone, first_gone, come, first_come in model.job(
        "effects", {"candidate": candidates.places[middle]}, 60
    ).rows:
        what = [f"{int(str(number)):,} {verb}" for number, verb in ((gone, "go"), (come, "come")) if number]
        examples = " -> ".join(cells(row) for row in (first_gone, first_come) if row)
        rows_in_all = counted(int(str(rows)), "row")
        yield (f"For {name} it changes {table} ({rows_in_all}): {' and '.join(what) or 'nothing'}"
               f"{': ' if examples else ''}{examples}.")  # fmt: skip
    outcomes, now = model.outcomes(), model.present()
    for at, measure in enumerate(file.measures):
        here, present = float(outcomes.values[middle, at]), now[measure.name]
        extreme = "small" if measure.goal == "min" else "large"
        books = f"; the books say {amount(measure.now, measure.unit)}" if measure.now is not None else ""
        at_present = "made of the choice" if present is None else amount(present, measure.unit)
        yield (f"Measured: {measure.name}, as {extreme} as possible. For {name}: {amount(here, measure.unit)}. "
               f"At present: {at_present}{books}.")  # fmt: skip
    for rule in file.rules:
        if not rule.testable:
            yield f"Rule {rule.name}: {rule.text} Not tested: nothing in the data says it."
            continue
        at = outcomes.rules.index(rule.name)
        broken = [int(place) for place in outcomes.candidates[outcomes.broken[:, at]]]
        example = ""
        if broken:
            why = say(file, rule.name, outcomes.reasons.get((broken[0], rule.name)))
            example = f", such as {candidates.name(broken[0])}: {why}"
        yield f"Rule {rule.name}: {rule.text or flat(rule.broken)} Broken by {len(broken):,} of {count:,}{example}."
    for scenario in file.scenarios:
        yield f"Scenario {scenario.name}: {scenario.text or flat(scenario.change)}."


def certainty(model: OpenModel) -> Iterator[str]:
    """What varies, what is taken as certain, and which columns no statement names."""
    inputs = model.model.inputs
    varied = [f"{one.name} by {one.spread}" for one in inputs if one.spread]
    certain = [one.name for one in inputs if not one.spread]
    yield f"Uncertain: {', '.join(varied) or 'nothing'}."
    yield f"Taken as certain: {', '.join(certain) or 'all the rest'}."
    words = set(re.findall(r"\w+", " ".join(model.model.statements().values()).lower()))
    unused = [f"{copy.name}.{column.name}" for copy in model.copies.values() for column in copy.columns
              if column.name.lower() not in words]  # fmt: skip
    more = f" and {len(unused) - SHOWN} more" if len(unused) > SHOWN else ""
    yield f"In no statement: {', '.join(unused[:SHOWN]) or 'no column of these tables'}{more}."


def cells(row: object) -> str:
    return ", ".join(f"{key} {word(value)}" for key, value in row.items()) if isinstance(row, dict) else str(row)


def flat(sql: str) -> str:
    return " ".join(sql.split())
