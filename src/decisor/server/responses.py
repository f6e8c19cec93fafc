"""What the server answers with, and the questions that a database can answer, by rules and without an LLM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from decisor.runtime.budget import Limits
from decisor.session.result import ResultDocument
from decisor.session.verify import Verification
from decisor.system.wording import plural
from decisor.types import Ranking, Record, Study, Usage

Json = dict[str, Any]
"""An object that is described elsewhere: a drawing, the tables of an evaluation."""


@dataclass(frozen=True)
class JsonOf:
    """The mark of a dataclass that ``finite_json_value`` has made JSON of: it has its schema, and is sent as it is."""

    kind: type

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            lambda value, _: value,
            handler.generate_schema(self.kind),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(schema)
        allow_null_numbers(found, handler, [])
        return found


def allow_null_numbers(part: Any, handler: GetJsonSchemaHandler, seen: list[str]) -> None:
    """Let each number of a JSON Schema be null, as infinite numbers are in JSON."""
    if isinstance(part, list):
        for item in part:
            allow_null_numbers(item, handler, seen)
    elif isinstance(part, dict) and "$ref" in part:
        if part["$ref"] not in seen:
            seen.append(part["$ref"])
            allow_null_numbers(handler.resolve_ref_schema(part), handler, seen)
    elif isinstance(part, dict):
        if part.get("type") == "number":
            part["type"] = ["number", "null"]
        allow_null_numbers(list(part.values()), handler, seen)


ResultJson = Annotated[Json, JsonOf(ResultDocument)]
RankingJson = Annotated[Json, JsonOf(Ranking)]
StudyJson = Annotated[Json, JsonOf(Study)]
RecordJson = Annotated[Json, JsonOf(Record)]
VerificationJson = Annotated[Json, JsonOf(Verification)]
State = Literal["waiting", "running", "finished", "stopped", "failed"]


class ServerReply(BaseModel):
    """A response of the server."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Fault(ServerReply):
    """An error: one line that says what to do. login: path at which a person signs in, if that is what to do."""

    error: str
    login: str = ""


class HealthReply(ServerReply):
    """A state of the server, for whoever starts and watches it."""

    status: Literal["ok", "busy"]
    missing: str = ""
    """What it lacks to take a question, in words."""


class Waiting(ServerReply):
    """A query that waits to be allowed."""

    number: int
    tool: str
    input: str


class Mark(ServerReply):
    mark: Literal["right", "wrong"]
    answer: str = ""
    note: str = ""


class RunLine(ServerReply):
    """A run in a list. began: in UTC. seconds: since then, in all. entries: number of entries of its trace. owner: its
    user, "" if the server knows no users. headline: the answer as a decision, such as "Drop Veltra".
    """

    id: str
    owner: str = ""
    state: State
    question: str
    rules: str = ""
    goal: str = ""
    connections: tuple[str, ...] = ()
    technique: str = ""
    llm: str = ""
    began: str
    seconds: float
    entries: int
    usage: Usage = Usage()
    answer: str = ""
    headline: str = ""
    stopped: str = ""
    error: str = ""
    follows: str = ""
    changed_from: str = ""
    edit: dict[str, str] = Field(default_factory=dict)
    mark: Mark | None = None


class WaitingWords(ServerReply):
    """Words of the question that wait for their meaning. asks: whether they are a question of their own."""

    number: int
    words: str
    choices: tuple[str, ...]
    asks: bool = False


class RunReply(RunLine):
    """A run with its result. result: the keys of ``decisor ask --json``, null until the run is over."""

    approvals: tuple[Waiting, ...] = ()
    readings: tuple[WaitingWords, ...] = ()
    result: ResultJson | None = None


class TraceRow(ServerReply):
    """An entry of the trace, as the trace file has it. at: seconds since the start. data: fields of the event."""

    id: int
    span: int
    at: float
    event: str
    data: Json


class StoryReply(ServerReply):
    """What a page draws of a run; long texts are cut. result: decision, ranking and evidence as HTML."""

    question: str
    goal: str
    rules: str
    entries: tuple[TraceRow, ...]
    result: str


class RunList(ServerReply):
    runs: tuple[RunLine, ...]


class ChangeReply(ServerReply):
    """A step or node as it is in both runs, in words."""

    at: str
    before: str
    after: str
    how: Literal["same", "changed", "added", "removed"]


class CompareReply(ServerReply):
    before: RunReply
    after: RunReply
    changes: tuple[ChangeReply, ...]


class ConnectionReply(ServerReply):
    """A connection. label: of its place, without saying where it lies. model: whether it has a decision model. mine: a
    file that you brought, and can remove.
    """

    name: str
    form: Literal["sql", "cypher", "passages", "tools"]
    label: str
    model: bool = False
    mine: bool = False


class SettingReply(ServerReply):
    """A setting of a technique. choices: it takes one of these words. kind: type of any other value."""

    name: str
    kind: Literal["number", "yes or no", "choice", "llm"]
    default: bool | int | float | str | None
    choices: tuple[str, ...] = ()


class TechniqueReply(ServerReply):
    name: str
    about: str
    asks_llm: bool
    settings: tuple[SettingReply, ...]


class BudgetLine(ServerReply):
    """A budget and what is spent of it. warns: whether that is 80 % or more."""

    name: str
    dollars: float | None
    spent_dollars: float
    tokens: int | None
    spent_tokens: int
    warns: bool


class Choices(ServerReply):
    """The choices of a client: connections, LLMs, techniques, limits and evaluations. user:

    "" if there is only one. llms: the first is taken if none is named. takes_files: whether you may bring files.
    """

    version: str
    user: str
    connections: tuple[ConnectionReply, ...]
    llms: tuple[str, ...]
    techniques: tuple[TechniqueReply, ...]
    limits: Limits
    evaluations: tuple[str, ...]
    takes_files: bool = False
    budgets: tuple[BudgetLine, ...] = ()


class SuggestedQuestion(ServerReply):
    """A question that the data can answer, and the tables that it uses."""

    question: str
    uses: tuple[str, ...]


class QuestionList(ServerReply):
    questions: tuple[SuggestedQuestion, ...]


class ColumnReply(ServerReply):
    """A column of a table. references: a declared key. joins: one that the values show. Both are table.column."""

    name: str
    type: str
    nullable: bool
    key: bool
    references: str
    joins: str
    examples: tuple[str, ...]


class TableReply(ServerReply):
    name: str
    view: bool
    rows: int | None
    columns: tuple[ColumnReply, ...]


class SchemaReply(ServerReply):
    """The schema of a connection. description: the text that an LLM is shown."""

    name: str
    form: str
    description: str
    tables: tuple[TableReply, ...] = ()
    notes: tuple[str, ...] = ()


class InputReply(ServerReply):
    """A column that a decision model uses. spread: how far it varies, in words, "" if it is certain."""

    name: str
    unit: str
    spread: str
    raises: tuple[str, ...]
    lowers: tuple[str, ...]
    groups: Mapping[str, str]
    """Condition of the rows of each group, by its name, where rows of a group vary alike."""


class ParameterReply(ServerReply):
    name: str
    value: float
    unit: str


class MeasureReply(ServerReply):
    name: str
    goal: Literal["min", "max"]
    unit: str


class ModelReply(ServerReply):
    """A decision model. lines: the model in words. forms: the inputs of ``whatif``."""

    name: str
    decide: str
    lines: tuple[str, ...]
    forms: str
    measures: tuple[MeasureReply, ...] = ()
    inputs: tuple[InputReply, ...] = ()
    parameters: tuple[ParameterReply, ...] = ()
    """Those that are numbers."""
    scenarios: tuple[str, ...] = ()


class WhatIfReply(ServerReply):
    """An answer to a what-if question. ranking, study: as in a result; null if the input gives none. changed: the
    ranking of the data as a change or a scenario leaves them. charts: these as HTML, the changed beside the unchanged.
    """

    note: str
    records: tuple[RecordJson, ...]
    ranking: RankingJson | None = None
    study: StudyJson | None = None
    changed: RankingJson | None = None
    charts: str = ""


class PictureReply(ServerReply):
    """The pictures of a run. drawings:

    ``form`` (dag, tree), ``title``, ``width``, ``height``, ``boxes`` and ``lines``, in pixels. result: its decision,
    ranking, studies, charts and evidence, as HTML; '' while there is none.
    """

    drawings: tuple[Json, ...]
    result: str = ""


class ApprovalReply(ServerReply):
    """An approval of a record. standing: whether it is of the record as it is. withdrawn: when it was taken back,
    ``why``. review: day on which who approved looks at it again, or ''.
    """

    by: str
    at: str
    note: str
    review: str
    withdrawn: str
    why: str
    standing: Literal["holds", "refused", "withdrawn", "of another content", "changed"]


class ApprovalList(ServerReply):
    """The approvals of a record. digest: of the content of the record, which an approval is of."""

    digest: str
    approvals: tuple[ApprovalReply, ...]


class ReaderList(ServerReply):
    """The readers of a run. readers: users to whom its owner shows the run. others: users to whom it could be shown."""

    readers: tuple[str, ...]
    others: tuple[str, ...]


class SessionReply(ServerReply):
    user: str


class SignOutReply(ServerReply):
    """The end of a session. address: where the person is signed out of the identity provider too, '' for nowhere."""

    address: str


MOST = 6
NUMBER = re.compile(r"int|real|double|float|numeric|decimal|money|number", re.I)
NAME = re.compile(r"^(?:name|title|label|\w*_name|\w*name)$", re.I)
COST = re.compile(r"cost|price|rent|fee|expense|wage|salary", re.I)
GAIN = re.compile(r"revenue|sales|profit|income|margin|turnover|amount|total|quantity", re.I)
LOSS = re.compile(r"return|refund|complaint|defect|fault|delay|claim|incident|recall", re.I)
PLACE = re.compile(r"^(?:city|town|region|country|state|district)$", re.I)


def suggest_questions(tables: Sequence[TableReply]) -> list[SuggestedQuestion]:
    """Return questions that the tables can answer: the first of each thing, then the next of each; at most ``MOST``.

    Things that fewer rows name come first: a supplier is chosen, a customer seldom.
    """
    by_thing = [list(questions_of_table(table, tables)) for table in sorted(tables, key=lambda table: table.rows or 0)]
    found = [question for turn in zip_longest(*by_thing) for question in turn if question is not None]
    return list({question.question: question for question in found}.values())[:MOST]


def questions_of_table(table: TableReply, tables: Sequence[TableReply]) -> Iterator[SuggestedQuestion]:
    """Yield the questions about the things that a table names: which to drop, which is best, which place."""
    named = next((column for column in table.columns if NAME.match(column.name)), table.columns[0])
    if not NAME.match(named.name) and (NUMBER.search(named.type) or named.references):
        return
    # The names of a list are of the things in one of its columns, or of its rows.
    of_column = (
        re.sub(r"_?name$", "", named.name, flags=re.I) if not re.fullmatch("title|label", named.name, re.I) else ""
    )
    thing = of_column.replace("_", " ").lower() or noun_of_table(
        table.name.rpartition(".")[2].replace("_", " ").lower()
    )
    near = [other for other in tables if other is not table and refers_to(other, table)]
    # Purchases and their returns: what refers to what refers to the thing.
    far = [other for other in tables if other not in (table, *near) and any(refers_to(other, one) for one in near)]
    about = [table, *near, *far]
    uses = tuple(one.name for one in about[:4])
    words = " ".join([*(one.name for one in about), *(column.name for one in about for column in one.columns)])
    if near and COST.search(words):
        yield SuggestedQuestion(question=f"Which {thing} should we drop?", uses=uses)
    if near and LOSS.search(words):
        yield SuggestedQuestion(question=f"Which {thing} costs us the most in {loss_of(words)}?", uses=uses)
    numbers = [column.name for column in table.columns if is_measure(column)]
    for name in numbers[:2]:
        measure = name.replace("_", " ").lower()
        end = "lowest" if COST.search(name) else "highest"
        yield SuggestedQuestion(question=f"Which {thing} has the {end} {measure}?", uses=(table.name,))
    place = next((column.name for column in table.columns if PLACE.match(column.name)), "")
    if place and near and GAIN.search(words):
        yield SuggestedQuestion(question=f"Which {place.lower()} matters most among our {plural(2, thing)}?", uses=uses)


def noun_of_table(noun: str) -> str:
    """Return the singular of a noun, as tables are often called in the plural.

    >>> noun_of_table("offers"), noun_of_table("companies"), noun_of_table("status"), noun_of_table("address")
    ('offer', 'company', 'status', 'address')
    """
    return re.sub(r"(?<![sui])s$", "", re.sub(r"ies$", "y", noun))


def refers_to(table: TableReply, other: TableReply) -> bool:
    return any((column.references or column.joins).rpartition(".")[0] == other.name for column in table.columns)


def is_measure(column: ColumnReply) -> bool:
    is_key = bool(column.references or column.joins) or column.name.lower() in ("id", "since", "year")
    return (
        NUMBER.search(column.type) is not None
        and not is_key
        and not re.search(r"(?:_|^)(?:id|key|code)$|Id$", column.name)
    )


def loss_of(words: str) -> str:
    """Return the word for what is lost, in the plural.

    >>> loss_of("purchase product_return refund")
    'returns'
    """
    match = LOSS.search(words)
    return f"{match[0].lower()}s" if match else "losses"
