"""The JSON Schema of a definitions file; ``decision_models.schema.faults`` checks against it."""

from __future__ import annotations

from decisor.decision_models.schema import TEXT, TEXTS, Schema, fields, named

ORIGIN: dict[str, Schema] = {
    "by": {"type": "string", "description": "who wrote it"},
    "on": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "description": "YYYY-MM-DD"},
    "why": {"type": "string", "description": "the reason"},
}
WORDS: dict[str, Schema] = {
    "synonyms": {**TEXTS, "description": "what people call it too"},
    "about": {"type": "string", "description": "what it says, in words"},
}
METRIC = fields(
    "A number, as an expression over rows, or as a whole query.", (),
    sql={**TEXT, "description": "an expression, such as SUM(price * quantity)"},
    **{"from": {**TEXT, "description": "the rows: what stands after FROM"}},
    where={**TEXTS, "description": "filters that always hold"},
    query={**TEXT, "description": "instead of sql and from"},
    unit={"type": "string"}, grain={**TEXTS, "description": "the columns that tell the rows apart"},
    date={**TEXT, "description": "the column that a period is about"}, **WORDS, **ORIGIN,
)  # fmt: skip
DIMENSION = fields("What is grouped and filtered by.", ("sql",), sql=TEXT, **{"from": TEXT}, **WORDS, **ORIGIN)
CALENDAR = fields(
    "A year that starts on another day.", ("starts",),
    starts={"type": "string", "pattern": r"^(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$", "description": "MM-DD"},
    named_by={"enum": ["start", "end"]}, default={"type": "boolean"}, **WORDS, **ORIGIN,
)  # fmt: skip
ENTITY = fields("What a row is one of.", ("table", "key"), table=TEXT, key=TEXTS, **WORDS, **ORIGIN)
PLACE: Schema = {"type": ["string", "array"], "items": TEXT, "pattern": r"^.+\..+$", "description": "TABLE.COLUMN"}
JOIN = fields(
    "How two tables belong together.", ("left", "right"), left=PLACE, right=PLACE,
    cardinality={"enum": ["many to one", "one to one", "one to many", "many to many"]}, **ORIGIN,
)  # fmt: skip
VALUE: Schema = {"type": "object", "additionalProperties": TEXTS}
READING = fields(
    "What words of a question mean.", ("words", "means"), words=TEXTS, means=TEXT,
    metric={**TEXT, "description": "a metric of this file"}, **ORIGIN,
)  # fmt: skip
EXAMPLE = fields("A question with its query or its answer.", ("question",), question=TEXT, sql=TEXT, answer=TEXT,
                 **ORIGIN)  # fmt: skip
DEFINITIONS: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Decisor's definitions",
    **fields(
        "What the words of a question mean in these data.",
        metric=named(METRIC), dimension=named(DIMENSION), calendar=named(CALENDAR), entity=named(ENTITY),
        join=named(JOIN), reading=named(READING), example=named(EXAMPLE),
        value={"type": "object", "additionalProperties": VALUE, "propertyNames": {"pattern": r"^.+\..+$"}},
    ),
}  # fmt: skip
