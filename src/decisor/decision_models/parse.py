"""A model file's text as a Model. Every fault is named with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from decisor.decision_models.format import (
    Example,
    Input,
    Measure,
    Model,
    Recompute,
    Require,
    Rule,
    Scenario,
    Spread,
    Take,
    Variable,
)
from decisor.decision_models.lines import Lines, line_of, lines_of
from decisor.decision_models.schema import SPREAD, faults
from decisor.decision_models.toml_text import MAX_CHARS, TomlFault, faults_in_words, file_text, toml_of
from decisor.errors import ModelMistake, SetupError

SIDES = ("at_most", "at_least", "equals")


class ModelFault(ModelMistake):
    """A text is no decision model. ``faults``: line (0 where it has none) and complaint."""

    def __init__(self, faults: list[tuple[int, str]]) -> None:
        super().__init__(faults_in_words(faults))
        self.faults = tuple(faults)


def text_of(path: Path) -> str:
    """Raises SetupError where it cannot be read."""
    return file_text(path, "a decision model")


def read(path: Path, **parameters: str | float | bool) -> Model:
    """Raises SetupError, with lines, where the file is missing or is no decision model."""
    try:
        return parse(text_of(path), **parameters)
    except ModelFault as error:
        raise SetupError(f"{path}: {error}") from error


def parse(text: str, **parameters: str | float | bool) -> Model:
    """The model. ``parameters`` take the place of the file's own.

    >>> parse('decide = "a site"\\n[measure.cost]\\ngoal = "low"\\nsql = "SELECT 1"')
    Traceback (most recent call last):
    decisor.decision_models.parse.ModelFault: line 3: measure.cost.goal is to be "min" or "max", not "low".

    Raises:
        ModelFault: all faults, with their lines.
    """
    content = toml(text)
    lines = lines_of(text)
    wrong = [
        (line_of(lines, path), f"{'.'.join(path) or 'a decision model'} {words}") for path, words in faults(content)
    ]
    if wrong:
        raise ModelFault(wrong)
    model = model_of(content, text, lines, parameters)
    wrong = [(line_of(lines, path), words) for path, words in contradictions(model)]
    if wrong:
        raise ModelFault(wrong)
    return model


def toml(text: str) -> dict[str, Any]:
    """Raises ModelFault where it is no TOML."""
    if len(text) > MAX_CHARS:
        raise ModelFault([(0, f"a decision model has at most {MAX_CHARS:,} characters")])
    try:
        return toml_of(text)
    except TomlFault as error:
        raise ModelFault([(error.line, str(error))]) from error


def model_of(content: Mapping[str, Any], text: str, lines: Lines, parameters: Mapping[str, Any]) -> Model:
    recompute = content.get("recompute")
    return Model(
        decide=" ".join(content["decide"].splitlines()),
        measures=tuple(Measure(name, **one) for name, one in content["measure"].items()),
        choice=content.get("choice", ""),
        take=take_of(content.get("take", 1)),
        change=joined(content.get("change", "")),
        recompute=Recompute(joined(recompute["sql"]), recompute.get("times", 0), recompute.get("until", ""))
        if recompute else None,
        rules=tuple(Rule(name, **one) for name, one in content.get("rule", {}).items()),
        scenarios=tuple(
            Scenario(name, **(one | {"change": joined(one["change"])}))
            for name, one in content.get("scenario", {}).items()
        ),
        inputs=tuple(input_of(name, one) for name, one in content.get("input", {}).items()),
        variables=tuple(Variable(name, **one) for name, one in content.get("variable", {}).items()),
        requires=tuple(require_of(name, one) for name, one in content.get("require", {}).items()),
        examples=tuple(map(example_of, content.get("example", ()))),
        copy=content.get("copy", {}),
        parameters={**content.get("parameter", {}), **parameters},
        keys={name: texts(columns) for name, columns in content.get("key", {}).items()},
        seconds=content.get("seconds", 20.0),
        text=text,
        lines=lines,
    )  # fmt: skip


def joined(sql: str | list[str]) -> str:
    return sql if isinstance(sql, str) else ";\n".join(sql)


def texts(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def take_of(take: int | str) -> Take:
    """
    >>> take_of("0-2"), take_of("one per month"), take_of(3)
    (Take(low=0, high=2, per=''), Take(low=1, high=1, per='month'), Take(low=3, high=3, per=''))
    """
    if isinstance(take, int):
        return Take(take, take)
    if take.strip().startswith("one per "):
        return Take(per=take.strip().removeprefix("one per ").strip())
    low, high = (int(word) for word in take.split("-"))
    return Take(low, high)


def input_of(name: str, one: Mapping[str, Any]) -> Input:
    table, _, column = name.partition(".")
    spread = None
    if match := re.fullmatch(SPREAD, one.get("spread", "")):
        spread = Spread(float(match[1]) / 100, match[3].removeprefix("by").strip())
    return Input(table, column, one.get("unit", ""), texts(one.get("raises", [])), texts(one.get("lowers", [])), spread)


def require_of(name: str, one: Mapping[str, Any]) -> Require:
    side = next((side for side in SIDES if side in one), "equals")
    return Require(name, one["sum"], side, one.get(side, 0.0), one.get("each", ""), one.get("text", ""))  # type: ignore[arg-type]


def example_of(one: Mapping[str, Any]) -> Example:
    outcomes = {name: float(value) for name, value in one.items() if name not in ("choice", "breaks")}
    breaks = tuple(one["breaks"]) if "breaks" in one else None
    return Example(tuple(map(str, one["choice"])), outcomes, breaks)


def contradictions(model: Model) -> Iterator[tuple[tuple[str, ...], str]]:
    """What no schema says: names that are nowhere, and parts that need each other."""
    measures, rules = [one.name for one in model.measures], [one.name for one in model.rules]
    if not model.measures:
        yield ("measure",), "measure needs at least one [measure.NAME]"
    if not model.choice and not model.variables:
        yield (), "a decision model needs choice, or [variable.NAME] for the solver"
    if not model.take.per and model.take.low > model.take.high:
        yield ("take",), f"take goes from {model.take.low} to {model.take.high}; the first is to be the smaller"
    for measure in model.measures:
        if bool(measure.sql) == bool(measure.metric):
            words = "has sql and metric: one is enough" if measure.sql else "needs sql, a query that gives one number"
            yield ("measure", measure.name), f"measure.{measure.name} {words}"
    for rule in model.rules:
        yield from ((("rule", rule.name), f"rule.{rule.name} {words}") for words in faults_of_rule(rule, measures))
    for one in model.inputs:
        for name in (*one.raises, *one.lowers):
            if name not in measures:
                yield (
                    ("input", one.name),
                    f'input."{one.name}" names {name}, which is no measure; there is {", ".join(measures)}',
                )
    for require in model.requires:
        sides = [side for side in SIDES if ("require", require.name, side) in model.lines]
        if len(sides) != 1:
            yield ("require", require.name), f"require.{require.name} needs one of {', '.join(SIDES)}"
    for number, example in enumerate(model.examples, 1):
        for name in (*example.outcomes, *(example.breaks or ())):
            if name not in (measures if name in example.outcomes else rules):
                yield (
                    ("example", str(number)),
                    f"example {number} names {name}, which is no measure or rule of this file",
                )


def faults_of_rule(rule: Rule, measures: list[str]) -> Iterator[str]:
    if not rule.testable:
        if rule.broken or rule.measure or not rule.text:
            yield "is not testable: then it has its text, and no query"
    elif bool(rule.broken) == bool(rule.measure):
        yield "needs either broken, or a measure with at_most or at_least"
    elif rule.measure and (rule.at_most is None) == (rule.at_least is None):
        yield "needs one of at_most, at_least"
    elif rule.measure and rule.measure not in measures:
        yield f"names {rule.measure}, which is no measure; there is {', '.join(measures)}"
