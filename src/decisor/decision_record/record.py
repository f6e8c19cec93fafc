"""The format of a decision record, its JSON schema, and its digests.

The classes hold the parts of a record in the order of its page. The published schema, ``schema.json``, is derived from
them: a change of these classes is a change of the format, so raise ``FORMAT`` and write the schema anew (``decisor
record --schema``).

Digests are SHA-256 over canonical JSON (keys sorted, no blanks, UTF-8), in hexadecimal. Rows are compared with the
rows that the same query brings another day, so their digests leave out differences between sessions: a token of a
masked column counts as ``masked``, and a decimal number has 12 digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from decisor.errors import SetupError
from decisor.history.store import Approval
from decisor.sandbox.engine import TOKEN
from decisor.system.serialization import DecodeError, DocumentFormat, dataclass_field_names, finite_json_value
from decisor.system.text import fit_on_one_line
from decisor.trace.events import DataSource, MeaningChoice, UsedFile
from decisor.types import Figure, Objection, Pitfall, Ranking, Record, Replan, RuleTest, Usage

FORMAT: Literal["decisor decision record 1"] = "decisor decision record 1"


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a decision: the question, rules in words, the goal, and earlier questions.

    Each question that it goes on from comes with its answer. by: who asked, '' if not known. at: time in UTC (ISO
    8601), or ''.
    """

    question: str
    rules: str = ""
    goal: str = ""
    before: tuple[str, ...] = ()
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a run: the answer, reasons in plain words, and why the run ended.

    The answer is '' if there is none. Also the next best candidate, the plan that led to the answer, and the changes of
    the plan.
    """

    answer: str
    stopped: Literal["answered", "budget", "steps", "no_answer", "failed"]
    reasons: tuple[str, ...] = ()
    runner_up: str = ""
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """A definition that the decision used, as the cited record ``id`` tells it.

    It says its words, its author, its day and its file. digest: SHA-256 of that file as it was.
    """

    id: str
    name: str
    says: str
    by: str = ""
    on: str = ""
    file: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, node or passage that the decision cites. digest: of its cells and text."""

    id: str
    fields: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    source: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a tool and its cited rows. brought: number of rows that came back; rows: those of them that the
    decision cites. total: number of all rows, None if not known. cut: only the first rows were brought. digest: of
    all rows brought, in any order, '' if cut. ranks: whether it computed the alternatives.
    """

    name: str
    tool: str
    input: str
    rows: tuple[Row, ...] = ()
    brought: int = 0
    total: int | None = None
    cut: bool = False
    digest: str = ""
    ranks: bool = False


@dataclass(frozen=True, slots=True)
class Grounds:
    """The grounds of a decision: queries with their rows, and figures with their support.

    Also pitfalls of the queries, cited ids that no query brought, and claims that the rows do not support.
    """

    queries: tuple[Query, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()
    missing: tuple[str, ...] = ()
    objections: tuple[Objection, ...] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """The means of a decision:

    LLM, technique, settings, and the version of Decisor. lm: '' if no LLM was asked. lm_names: names that the LLM gave
    itself. chosen: technique that ran in its place, since the LLM takes no tool calls.
    """

    lm: str = ""
    lm_names: tuple[str, ...] = ()
    technique: str = ""
    chosen: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """The data that were read. tables: the only tables that might be read, all if empty. deny_tables: tables that might
    not be read.
    """

    sources: tuple[DataSource, ...] = ()
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """A point that is not settled, and the thing that would settle it."""

    what: str
    settles: str


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a record: everything that a digest and an approval cover. alternatives: candidates with their
    outcomes, None if none were computed. rules: rules that were executed, with the rows that break them. readings:
    words that could mean two things. model: the whole decision model. assumptions: statements taken as certain.
    """

    request: Request
    decision: Conclusion
    definitions: tuple[DefinitionUse, ...] = ()
    readings: tuple[MeaningChoice, ...] = ()
    alternatives: Ranking | None = None
    rules: tuple[RuleTest, ...] = ()
    evidence: Grounds = Grounds()
    model: UsedFile | None = None
    means: Means = Means()
    data: Data = Data()
    usage: Usage = field(default_factory=Usage)
    assumptions: tuple[str, ...] = ()
    open_points: tuple[OpenPoint, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A record of a decision: its content, digests and approvals. digests: of each part of the content; digest: of the
    whole content. run: number in the history of who asked, or 0. approvals: each is of the content whose digest it
    names. run_digest: of the digest and the run, '' in records of earlier versions.
    """

    format: Literal["decisor decision record 1"]
    content: Content
    digests: Mapping[str, str]
    digest: str
    run: int = 0
    approvals: tuple[Approval, ...] = ()
    run_digest: str = ""


ID = "urn:decisor:decision-record:1"
LATER = (
    "Approval.refuses",
    "Approval.review",
    "DecisionRecord.run_digest",
    "Ranking.plan",
    "Ranking.today",
    "Ranking.parts",
    "Ranking.readings",
)
"""Fields that came after the first records, which may do without them."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def published_schema() -> str:
    """Return the text of ``schema.json``."""
    return files("decisor.decision_record").joinpath("schema.json").read_text("utf-8")


def derive_schema() -> str:
    """Derive the text of ``schema.json`` from the classes."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(DecisionRecord).json_schema(mode="serialization")
    tighten_schema(schema)
    whole = {"$schema": DIALECT, "$id": ID, **schema}
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def tighten_schema(part: Any) -> None:
    """Require all fields of every object and allow no others; remove titles and defaults.

    Titles only repeat names. Fields in ``LATER`` are not required.
    """
    if isinstance(part, list):
        for one in part:
            tighten_schema(one)
    if not isinstance(part, dict):
        return
    if isinstance(fields := part.get("properties"), dict):
        required = [name for name in fields if f"{part.get('title')}.{name}" not in LATER]
        part |= {"required": required, "additionalProperties": False}
    for name in ("title", "default"):
        part.pop(name, None)
    if "description" in part:
        part["description"] = " ".join(part["description"].replace("``", "`").split())
    for name, inside in part.items():
        for one in inside.values() if name in ("properties", "$defs") else [inside]:
            tighten_schema(one)


RECORD_FILE = DocumentFormat(DecisionRecord, is_closed=True)


def parse_record(plain: Mapping[str, object], where: str) -> DecisionRecord:
    """Parse a record; raise SetupError if it does not meet the schema."""
    try:
        record = RECORD_FILE.decode_value(plain)
    except DecodeError as error:
        raise SetupError(f"{where} does not meet the schema: {fit_on_one_line(str(error), 400)}.") from error
    # The format fills in defaults; a record must have all fields.
    if missing := next(find_missing_fields(plain, record), ""):
        raise SetupError(f"{where} does not meet the schema: {missing}.")
    return record


def find_missing_fields(plain: Any, value: Any, place: str = "") -> Iterator[str]:
    """Yield a complaint of each field of a record that its JSON lacks."""
    if names := dataclass_field_names(type(value)):
        for name in names:
            if name in plain:
                yield from find_missing_fields(plain[name], getattr(value, name), f"{place}.{name}".lstrip("."))
            elif f"{type(value).__name__}.{name}" not in LATER:
                yield f"{place or 'it'} needs {name}"
    elif isinstance(value, tuple | list) and isinstance(plain, list):
        for at, (written, item) in enumerate(zip(plain, value, strict=True)):
            yield from find_missing_fields(written, item, f"{place}[{at}]")


MASKED = "masked"


def canonical_json(value: object) -> str:
    """Return a value as canonical JSON: keys sorted, no blanks, no NaN.

    >>> canonical_json({"b": (1, 2.5), "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    return json.dumps(
        finite_json_value(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def digest_of_json(value: object) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8", "replace")).hexdigest()


def part_digests(content: Mapping[str, object]) -> dict[str, str]:
    """Return the digest of each part of a content, given as JSON values."""
    return {name: digest_of_json(part) for name, part in content.items()}


def row_digest(fields: Mapping[str, object], text: str = "", has_same_tokens: bool = False) -> str:
    """Return the digest of a row. has_same_tokens: all tokens are of one key, so another token is another value.

    >>> row_digest({"rent": 0.1 + 0.2}) == row_digest({"rent": 0.3})
    True
    """
    cells = {name: normalize_digits(value) for name, value in fields.items()}
    words = canonical_json([cells, text])
    return hashlib.sha256(
        # Tokens are made anew in each session, so they would change the digest of the same row.
        (words if has_same_tokens else TOKEN.sub(MASKED, words)).encode("utf-8", "replace")
    ).hexdigest()


def rows_digest(records: Sequence[Record]) -> str:
    """Return the digest of all rows of a query, in any order."""
    return digest_of_json(sorted(row_digest(one.fields, one.text) for one in records))


def normalize_digits(value: object) -> object:
    if isinstance(value, float):
        # Databases and drivers differ in the last digits of a sum.
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        return {key: normalize_digits(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normalize_digits(item) for item in value]
    return value
