"""Why a candidate is ruled out, in the words of its file."""

from __future__ import annotations

import re

from decisor.decision_models.format import Model
from decisor.decision_models.outcomes import Reason
from decisor.plurals import counted
from decisor.rankings import amount
from decisor.types import Value

PLACE = re.compile(r"\{(\w+)\}")


def say(model: Model, name: str, reason: Reason | None) -> str:
    """The sentence of the first row that breaks a rule, and how many more there are."""
    rule = next(one for one in model.rules if one.name == name)
    if reason is None or not reason.rows:
        return rule.text or name
    row = {key.lower(): value for key, value in reason.rows[0].items()}
    if rule.say:
        sentence = PLACE.sub(
            lambda match: word(row[match[1].lower()]) if match[1].lower() in row else match[0], rule.say
        )
    elif rule.measure:
        unit = next((one.unit for one in model.measures if one.name == rule.measure), "")
        side = "over" if rule.at_most is not None else "under"
        sentence = f"{rule.measure} is {word(row[rule.measure.lower()], unit)}, {side} {word(row['limit'], unit)}"
    else:
        cells = ", ".join(f"{key} {word(value)}" for key, value in row.items())
        sentence = f"{rule.text} ({cells})" if rule.text else cells
    return f"{sentence} (and {counted(reason.count - 1, 'more row')})" if reason.count > 1 else sentence


def word(value: Value, unit: str = "") -> str:
    """
    >>> word(2907.0), word(2800), word("Metz"), word(None)
    ('2,907', '2,800', 'Metz', 'nothing')
    """
    if value is None:
        return "nothing"
    return amount(value, unit) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
