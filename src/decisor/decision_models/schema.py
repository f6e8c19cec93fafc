"""The JSON Schema of a model file, and a check against it that names the place of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
MAX_SECONDS = 3600
TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": ["string", "array"], "items": TEXT}
NUMBER: Schema = {"type": "number"}
BOUND: Schema = {"type": ["number", "string"], "description": "a number, or a query that gives one"}
NAME = r"[A-Za-z_]\w*"
SPREAD = r"\s*(\d+(\.\d+)?)\s*%\s*(each|together|by\s+\w+)\s*"
TAKE = r"\s*(\d+\s*-\s*\d+|one per \w+)\s*"


def fields(description: str, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "description": description, "properties": properties, "required": list(required),
            "additionalProperties": False}  # fmt: skip


def named(schema: Schema) -> Schema:
    """A table of tables, each under a name of one's own."""
    return {"type": "object", "additionalProperties": schema, "propertyNames": {"pattern": f"^{NAME}$"}}


MEASURE = fields(
    "What is computed. The first decides; several give the Pareto front.", ("goal",),
    goal={"enum": ["min", "max"]}, unit={"type": "string"}, sql={**TEXT, "description": "a query of one number"},
    metric={**TEXT, "description": "instead of sql: a metric of the definitions"},
    now={**NUMBER, "description": "what the books say today"}, sum={**TEXT, "description": "for the solver"},
)  # fmt: skip
RULE = fields(
    "What a candidate may not do.", (), text=TEXT, broken={**TEXT, "description": "a query of the rows that break it"},
    say={**TEXT, "description": "a sentence for each row, with {column}"}, measure=TEXT, at_most=BOUND, at_least=BOUND,
    testable={"type": "boolean", "description": "false where no data can test it"},
)  # fmt: skip
INPUT = fields(
    "A column that the outcome rests on.", (), unit={"type": "string"}, raises=TEXTS, lowers=TEXTS,
    spread={"type": "string", "pattern": f"^{SPREAD}$", "description": "10 % each | together | by COLUMN"},
)  # fmt: skip
REQUIRE = fields(
    "A linear requirement, one for each row of `each`.", ("sum",), text=TEXT, each=TEXT, sum=TEXT, at_most=BOUND,
    at_least=BOUND, equals=BOUND,
)  # fmt: skip
MODEL: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Decisor's decision model",
    **fields(
        "What may be chosen, what choosing it changes, and what is measured.", ("decide", "measure"),
        decide={**TEXT, "description": "what is chosen, in words"},
        choice={**TEXT, "description": "a query of the rows that may be chosen"},
        take={"type": ["integer", "string"], "minimum": 1, "pattern": f"^{TAKE}$",
              "description": "1, a number, \"0-2\", or \"one per COLUMN\""},
        change={**TEXTS, "description": "UPDATE, DELETE, INSERT: what choosing it does to the copy"},
        recompute=fields("Statements after the change.", ("sql",), sql=TEXTS,
                         times={"type": "integer", "minimum": 1, "maximum": 10_000}, until=TEXT),
        measure=named(MEASURE), rule=named(RULE),
        scenario=named(fields("A change before the choice.", ("change",), change=TEXTS, weight={**NUMBER, "minimum": 0},
                              text=TEXT)),
        input={"type": "object", "additionalProperties": INPUT,
               "propertyNames": {"pattern": r"^[^.]+\.[^.]+$"}},
        variable=named(fields("Unknowns of an integer program, one for each row.", ("each", "kind"), each=TEXT,
                              kind={"enum": ["yes or no", "whole", "amount"]}, most=NUMBER)),
        require=named(REQUIRE),
        example={"type": "array", "items": {"type": "object", "required": ["choice"], "properties": {
            "choice": {"type": "array", "items": {"type": ["string", "number"]}},
            "breaks": {"type": "array", "items": TEXT}}, "additionalProperties": NUMBER}},
        copy={"type": "object", "additionalProperties": TEXT, "description": "table -> query on the source"},
        parameter={"type": "object", "description": "$name in statements, and its value",
                   "additionalProperties": {"type": ["string", "number", "boolean"]},
                   "propertyNames": {"pattern": f"^{NAME}$"}},
        key={"type": "object", "additionalProperties": TEXTS, "description": "table -> what tells its rows apart"},
        seconds={**NUMBER, "exclusiveMinimum": 0, "maximum": MAX_SECONDS,
                 "description": "the longest a statement may take (20)"},
    ),
}  # fmt: skip
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,),
    "object": (dict,),
}  # fmt: skip
WORDS = {"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
         "array": "a list", "object": "a table"}  # fmt: skip


def faults(value: object, schema: Schema = MODEL, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Where in the file, and what is wrong there.

    >>> list(faults({"decide": "a site", "measure": {"cost": {"goal": "low"}}}))
    [(('measure', 'cost', 'goal'), 'is to be "min" or "max", not "low"')]
    """
    if "enum" in schema:
        if value not in schema["enum"]:
            words = " or ".join(f'"{one}"' for one in schema["enum"])
            yield path, f'is to be {words}, not "{value}"'
        return
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if kinds and not any(is_of(value, kind) for kind in kinds):
        yield path, f"is to be {' or '.join(WORDS[kind] for kind in kinds)}"
        return
    match value:
        case dict():
            yield from _faults_of_table(value, schema, path)
        case list():
            for number, item in enumerate(value, 1):
                yield from faults(item, schema.get("items", {}), (*path, str(number)))
        case str():
            if len(value.strip()) < schema.get("minLength", 0):
                yield path, "is empty"
            elif (pattern := schema.get("pattern")) and not re.search(pattern, value):
                yield path, f'"{value[:60]}" is not in the form {schema.get("description", pattern)}'
        case int() | float() if not isinstance(value, bool):
            yield from ((path, words) for words in _faults_of_number(value, schema))


def is_of(value: object, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _faults_of_table(
    value: Mapping[str, object], schema: Schema, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    if missing := [name for name in schema.get("required", ()) if name not in value]:
        yield path, f"needs {', '.join(missing)}"
    pattern = schema.get("propertyNames", {}).get("pattern", "")
    for name, item in value.items():
        if name in known:
            yield from faults(item, known[name], (*path, name))
        elif more is False:
            yield (*path, name), f"is not known here; there is {', '.join(known)}"
        elif not re.search(pattern, name):
            yield (*path, name), "is not a name that can stand here"
        elif more is not True:
            yield from faults(item, more, (*path, name))


def _faults_of_number(value: float, schema: Schema) -> Iterator[str]:
    if value - value != 0:
        yield "is to be a finite number"
    elif value < schema.get("minimum", value):
        yield f"is to be at least {schema['minimum']}"
    elif value > schema.get("maximum", value):
        yield f"is to be at most {schema['maximum']:,}"
    elif value <= schema.get("exclusiveMinimum", value - 1):
        yield f"is to be above {schema['exclusiveMinimum']}"
