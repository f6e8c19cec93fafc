"""The TOML files that a person writes, checked by a JSON Schema, with the line of every fault.

The parser of the standard library does not tell where a key stands, so the lines of keys are found here. ``MODEL`` is
the schema of a decision model's file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from decisor.errors import ModelMistake, SetupError
from decisor.system.serialization import SECTION_NAME, DecodeError, DocumentFormat, DocumentPath
from decisor.system.text import fit_on_one_line

HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
PIECE = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
Lines = Mapping[tuple[str, ...], int]
T = TypeVar("T")


def find_line_numbers(text: str) -> Lines:
    """Find the line, from 1, of every table and key of a TOML text.

    A list of tables counts from 1: ("example", "2", "choice").

    >>> numbers = find_line_numbers('a = 1\\n[measure.cost]\\nsql = \"\"\"\\nb = 2\"\"\"\\ngoal = "min"')
    >>> numbers[("measure", "cost", "goal")]
    5
    """
    places: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not quote:
            if header := HEADER.match(line):
                table = split_key(header[2])
                # Each [[table]] begins a new item of its list.
                if header[1] == "[[":
                    counts[table] = counts.get(table, 0) + 1
                    table = (*table, str(counts[table]))
                places.setdefault(table, number)
            elif key := KEY.match(line):
                places.setdefault((*table, *split_key(key[1])), number)
        # SQL in triple quotes has lines that look like keys.
        quote = track_open_quote(line, quote)
    return places


def split_key(name: str) -> tuple[str, ...]:
    return tuple(one.strip("\"'") for one in PIECE.findall(name))


def track_open_quote(line: str, quote: str) -> str:
    """Return the triple quotes that are open at the end of a line; '' if none are."""
    for mark in re.findall(r'"""|\'\'\'', line):
        if not quote:
            quote = mark
        elif mark == quote:
            quote = ""
    return quote


def find_line_number(lines: Lines, path: tuple[str, ...]) -> int:
    """Return the line of a key, or of the nearest part around it; 0 if the text has neither."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def find_fault_line(lines: Lines, path: tuple[str, ...]) -> int:
    """Return the line of a key, or of the first thing in it.

    If there is neither, it is the line of the part around it.
    """
    # A table that only has subtables ([measure.cost] without [measure]) has no line of its own.
    inner = [line for key, line in lines.items() if key[: len(path)] == path]
    return min(inner) if path and inner else find_line_number(lines, path)


MAX_CHARS = 1_000_000
SHOWN_FAULTS = 8
LONGEST_FAULT = 400
"""Characters."""


class FileFault(ModelMistake):
    """The faults of a file that a person or an LLM wrote: line (from 1, 0 if unknown) and complaint of each."""

    def __init__(self, faults: Sequence[tuple[int, str]]) -> None:
        super().__init__(format_faults(faults))
        self.faults = tuple(faults)


class TomlFile:
    """A TOML text with the lines of its keys."""

    def __init__(self, text: str) -> None:
        """Parse the text; raise FileFault if it is not TOML."""
        try:
            self.content = parse_toml(text)
        except TomlFault as error:
            raise FileFault([(error.line, str(error))]) from error
        self.lines = find_line_numbers(text)

    def name_sections(self, *groups: str) -> None:
        """Tell each section of these groups its name ([metric.revenue]), for a field marked ``SectionName``."""
        for group in groups:
            sections = self.content.get(group)
            for name, section in sections.items() if isinstance(sections, dict) else ():
                if isinstance(section, dict):
                    section[SECTION_NAME] = name

    def decode(self, layout: DocumentFormat[T], document: str = "") -> T:
        """Decode the content; raise FileFault with all faults. document: its kind in words, for complaints."""
        try:
            return layout.decode_value(self.content)
        except DecodeError as error:
            raise FileFault(sorted(self.locate(path, words, document) for path, words in error.faults)) from error

    def locate(self, path: DocumentPath, words: str, document: str = "") -> tuple[int, str]:
        """Return the line of a fault, and its complaint with the keys that lead to it."""
        keys = tuple(str(step + 1) if isinstance(step, int) else step for step in path)
        return find_fault_line(self.lines, keys), f"{'.'.join(keys) or document} {words}".lstrip()


class TomlFault(ModelMistake):
    """A fault of a text that is no TOML. line: from 1."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


def read_text_file(path: Path, what: str) -> str:
    """Read the text of a file that a person wrote; raise SetupError if it cannot be read. what: its kind, such as a
    decision model.
    """
    try:
        # Editors of Windows put a byte order mark first, which is no TOML.
        with path.open(encoding="utf-8-sig") as file:
            # One more than allowed tells that it is too long, whatever the file's size.
            text = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{path} is not UTF-8: {error.reason}.") from error
    if len(text) > MAX_CHARS:
        raise SetupError(f"{path}: {what} has at most {MAX_CHARS:,} characters.")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raise TomlFault if it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        words = re.sub(r" \(at (line \d+.*|end of document)\)$", "", str(error))
        raise TomlFault(int(match[1]) if match else text.count("\n") + 1, f"this is not TOML: {words}") from error


def format_faults(faults: Sequence[tuple[int, str]]) -> str:
    """Format faults with their lines as one line of text.

    >>> format_faults([(3, "no name"), (0, "no measure")])
    'line 3: no name; no measure.'
    """
    # A fault quotes what was found there, which may be long or have several lines.
    lines = [(f"line {line}: " if line else "") + fit_on_one_line(words, LONGEST_FAULT) for line, words in faults]
    more = [f"and {len(faults) - SHOWN_FAULTS} more"] if len(faults) > SHOWN_FAULTS else []
    return "; ".join([*lines[:SHOWN_FAULTS], *more]) + "."


Schema = Mapping[str, Any]
MAX_SECONDS = 3600
TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": ["string", "array"], "items": TEXT}
NUMBER: Schema = {"type": "number"}
BOUND: Schema = {"type": ["number", "string"], "description": "a number, or a query that gives one"}
NAME = r"[A-Za-z_]\w*"
SPREAD = r"\s*(\d+(\.\d+)?)\s*%\s*(each|together|by\s+\w+)\s*"
TAKE = r"\s*(\d+\s*-\s*\d+|one per \w+)\s*"


def object_schema(description: str, required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def named_tables_schema(schema: Schema) -> Schema:
    """Return the schema of a table of tables, each under a name of one's own."""
    return {"type": "object", "additionalProperties": schema, "propertyNames": {"pattern": f"^{NAME}$"}}


MEASURE = object_schema(
    "What is computed. The first decides; several give the Pareto front.",
    ("goal",),
    goal={"enum": ["min", "max"]},
    unit={"type": "string"},
    sql={**TEXT, "description": "a query of one number"},
    metric={**TEXT, "description": "instead of sql: a metric of the definitions"},
    now={**NUMBER, "description": "what the books say today"},
    sum={**TEXT, "description": "for the solver"},
)
RULE = object_schema(
    "What a candidate may not do.",
    (),
    text=TEXT,
    broken={**TEXT, "description": "a query of the rows that break it"},
    say={**TEXT, "description": "a sentence for each row, with {column}"},
    measure=TEXT,
    at_most=BOUND,
    at_least=BOUND,
    testable={"type": "boolean", "description": "false where no data can test it"},
)
INPUT = object_schema(
    "A column that the outcome rests on.",
    (),
    unit={"type": "string"},
    raises=TEXTS,
    lowers=TEXTS,
    spread={"type": "string", "pattern": f"^{SPREAD}$", "description": "10 % each | together | by COLUMN"},
)
REQUIRE = object_schema(
    "A linear requirement, one for each row of `each`.",
    ("sum",),
    text=TEXT,
    each=TEXT,
    sum=TEXT,
    at_most=BOUND,
    at_least=BOUND,
    equals=BOUND,
)
MODEL: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Decisor's decision model",
    **object_schema(
        "What may be chosen, what choosing it changes, and what is measured.",
        ("decide", "measure"),
        decide={**TEXT, "description": "what is chosen, in words"},
        choice={**TEXT, "description": "a query of the rows that may be chosen"},
        take={
            "type": ["integer", "string"],
            "minimum": 1,
            "pattern": f"^{TAKE}$",
            "description": '1, a number, "0-2", or "one per COLUMN"',
        },
        change={**TEXTS, "description": "UPDATE, DELETE, INSERT: what choosing it does to the copy"},
        recompute=object_schema(
            "Statements after the change.",
            ("sql",),
            sql=TEXTS,
            times={"type": "integer", "minimum": 1, "maximum": 10_000},
            until=TEXT,
        ),
        measure=named_tables_schema(MEASURE),
        rule=named_tables_schema(RULE),
        scenario=named_tables_schema(
            object_schema(
                "A change before the choice.", ("change",), change=TEXTS, weight={**NUMBER, "minimum": 0}, text=TEXT
            )
        ),
        input={"type": "object", "additionalProperties": INPUT, "propertyNames": {"pattern": r"^[^.]+\.[^.]+$"}},
        variable=named_tables_schema(
            object_schema(
                "Unknowns of an integer program, one for each row.",
                ("each", "kind"),
                each=TEXT,
                kind={"enum": ["yes or no", "whole", "amount"]},
                most=NUMBER,
            )
        ),
        require=named_tables_schema(REQUIRE),
        example={
            "type": "array",
            "items": {
                "type": "object",
                "required": ["choice"],
                "properties": {
                    "choice": {"type": "array", "items": {"type": ["string", "number"]}},
                    "breaks": {"type": "array", "items": TEXT},
                },
                "additionalProperties": NUMBER,
            },
        },
        copy={"type": "object", "additionalProperties": TEXT, "description": "table -> query on the source"},
        parameter={
            "type": "object",
            "description": "$name in statements, and its value",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
            "propertyNames": {"pattern": f"^{NAME}$"},
        },
        key={"type": "object", "additionalProperties": TEXTS, "description": "table -> what tells its rows apart"},
        seconds={
            **NUMBER,
            "exclusiveMinimum": 0,
            "maximum": MAX_SECONDS,
            "description": "the longest a statement may take (20)",
        },
    ),
}
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
WORDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
}


def find_schema_faults(
    value: object, schema: Schema = MODEL, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find the faults of a value by a schema: the path and a complaint of each.

    >>> list(find_schema_faults({"decide": "a site", "measure": {"cost": {"goal": "low"}}}))
    [(('measure', 'cost', 'goal'), 'is to be "min" or "max", not "low"')]
    """
    if "enum" in schema:
        if value not in schema["enum"]:
            words = " or ".join(f'"{one}"' for one in schema["enum"])
            yield path, f'is to be {words}, not "{value}"'
        return
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if kinds and not any(is_json_kind(value, kind) for kind in kinds):
        yield path, f"is to be {' or '.join(WORDS[kind] for kind in kinds)}"
        return
    match value:
        case dict():
            yield from _faults_of_table(value, schema, path)
        case list():
            for number, item in enumerate(value, 1):
                yield from find_schema_faults(item, schema.get("items", {}), (*path, str(number)))
        case str():
            if len(value.strip()) < schema.get("minLength", 0):
                yield path, "is empty"
            elif (pattern := schema.get("pattern")) and not re.search(pattern, value):
                yield path, f'"{value[:60]}" is not in the form {schema.get("description", pattern)}'
        case int() | float() if not isinstance(value, bool):
            yield from ((path, words) for words in _faults_of_number(value, schema))


def is_json_kind(value: object, kind: str) -> bool:
    # To Python true is a whole number.
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
            yield from find_schema_faults(item, known[name], (*path, name))
        elif more is False:
            yield (*path, name), f"is not known here; there is {', '.join(known)}"
        elif not re.search(pattern, name):
            yield (*path, name), "is not a name that can stand here"
        elif more is not True:
            yield from find_schema_faults(item, more, (*path, name))


def _faults_of_number(value: float, schema: Schema) -> Iterator[str]:
    # nan and both infinities; math.isfinite would overflow at a whole number that no float holds.
    if value - value != 0:
        yield "is to be a finite number"
    elif value < schema.get("minimum", value):
        yield f"is to be at least {schema['minimum']}"
    elif value > schema.get("maximum", value):
        yield f"is to be at most {schema['maximum']:,}"
    elif value <= schema.get("exclusiveMinimum", value - 1):
        yield f"is to be above {schema['exclusiveMinimum']}"
