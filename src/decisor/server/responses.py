"""What the server answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from decisor.runtime.budget import Limits
from decisor.session.result import ResultDocument
from decisor.session.verify import Verification
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
