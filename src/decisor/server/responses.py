"""What the server answers with."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from decisor.types import Usage

Json = dict[str, Any]
"""An object that is described elsewhere: a result, an entry of a trace, a ranking."""
State = Literal["waiting", "running", "finished", "stopped", "failed"]


class Reply(BaseModel):
    """What every response is."""

    model_config = ConfigDict(frozen=True)


class Fault(Reply):
    """One line that says what to do."""

    error: str


class Waiting(Reply):
    """A query that waits to be allowed."""

    number: int
    tool: str
    input: str


class Mark(Reply):
    mark: Literal["right", "wrong"]
    answer: str = ""
    note: str = ""


class RunLine(Reply):
    """A run as a list has it. ``began`` is UTC; ``seconds`` since then, in all; ``entries``: of its trace. ``owner``:
    whose it is, "" where the server knows no users."""

    id: str
    owner: str = ""
    state: State
    question: str
    rules: str = ""
    goal: str = ""
    connections: tuple[str, ...] = ()
    technique: str = ""
    lm: str = ""
    began: str
    seconds: float
    entries: int
    usage: Usage = Usage()
    answer: str = ""
    stopped: str = ""
    error: str = ""
    follows: str = ""
    changed_from: str = ""
    edit: dict[str, str] = Field(default_factory=dict)
    mark: Mark | None = None


class WaitingWords(Reply):
    """Words of the question that wait for what they mean. ``asks``: they are a question of their own."""

    number: int
    words: str
    choices: tuple[str, ...]
    asks: bool = False


class RunReply(RunLine):
    """``result`` has the keys of ``decisor ask --json``, null until it is over."""

    approvals: tuple[Waiting, ...] = ()
    readings: tuple[WaitingWords, ...] = ()
    result: Json | None = None


class RunList(Reply):
    runs: tuple[RunLine, ...]


class ChangeReply(Reply):
    """A step or node in both runs, in words."""

    at: str
    before: str
    after: str
    how: Literal["same", "changed", "added", "removed"]


class CompareReply(Reply):
    before: RunReply
    after: RunReply
    changes: tuple[ChangeReply, ...]


class ConnectionReply(Reply):
    """``label``: of the place, without where it lies. ``model``: it has a decision model."""

    name: str
    form: Literal["sql", "cypher", "passages", "tools"]
    label: str
    model: bool = False


class SettingReply(Reply):
    """``choices``: one of these words; ``kind``: what else it takes."""

    name: str
    kind: Literal["number", "yes or no", "choice", "lm"]
    default: bool | int | float | str | None
    choices: tuple[str, ...] = ()


class TechniqueReply(Reply):
    name: str
    about: str
    asks_lm: bool
    settings: tuple[SettingReply, ...]


class LimitsReply(Reply):
    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None
    actions: int | None = None


class Choices(Reply):
    """What may be asked of. ``user`` is "" where there is only one. ``lms``: the first is taken where none is named."""

    version: str
    user: str
    connections: tuple[ConnectionReply, ...]
    lms: tuple[str, ...]
    techniques: tuple[TechniqueReply, ...]
    limits: LimitsReply
    evaluations: tuple[str, ...]


class ColumnReply(Reply):
    """``references`` is a declared key, ``joins`` one that the values show; both are table.column."""

    name: str
    type: str
    nullable: bool
    key: bool
    references: str
    joins: str
    examples: tuple[str, ...]


class TableReply(Reply):
    name: str
    view: bool
    rows: int | None
    columns: tuple[ColumnReply, ...]


class SchemaReply(Reply):
    """``description``: what an LM is shown."""

    name: str
    form: str
    description: str
    tables: tuple[TableReply, ...] = ()
    notes: tuple[str, ...] = ()


class InputReply(Reply):
    """A column that a decision model uses. ``spread``: how far it varies, in words, "" where it is certain."""

    name: str
    unit: str
    spread: str
    raises: tuple[str, ...]
    lowers: tuple[str, ...]


class MeasureReply(Reply):
    name: str
    goal: Literal["min", "max"]
    unit: str


class ModelReply(Reply):
    """A decision model. ``lines``: it in words; ``forms``: how ``whatif`` is asked."""

    name: str
    decide: str
    lines: tuple[str, ...]
    forms: str
    measures: tuple[MeasureReply, ...] = ()
    inputs: tuple[InputReply, ...] = ()
    scenarios: tuple[str, ...] = ()


class RecordReply(Reply):
    id: str
    fields: Json
    text: str = ""
    source: str = ""


class WhatIfReply(Reply):
    """``ranking`` and ``study`` as in a result; null where the input gives none. ``changed``: the ranking of the data
    as a change or a scenario leaves them."""

    note: str
    records: tuple[RecordReply, ...]
    ranking: Json | None = None
    study: Json | None = None
    changed: Json | None = None


class CellReply(Reply):
    """A cell of the evidence: a record, and the number of its column; -1 is its text."""

    record: str
    column: int


class ChartReply(Reply):
    """``layouts``: for a wide and a narrow screen, with ``width``, ``height``, ``shapes`` and ``links``, in pixels.
    ``notes``: what is not drawn. ``vega_lite``: the chart as others draw it."""

    title: str
    description: str
    notes: tuple[str, ...]
    layouts: tuple[Json, ...]
    vega_lite: Json


class PictureReply(Reply):
    """``drawings``: ``form`` (dag, tree), ``title``, ``width``, ``height``, ``boxes`` and ``lines``, in pixels.
    ``cells``: of each figure of the answer. ``studies``: what-ifs, as in a result. ``charts``: of the answer."""

    drawings: tuple[Json, ...]
    cells: dict[str, tuple[CellReply, ...]]
    studies: tuple[Json, ...] = ()
    charts: tuple[ChartReply, ...] = ()


class ApprovalReply(Reply):
    """``standing``: whether it is of the record as it is. ``withdrawn``: when it was taken back, ``why``."""

    by: str
    at: str
    note: str
    withdrawn: str
    why: str
    standing: Literal["holds", "refused", "withdrawn", "of another content", "changed"]


class ApprovalList(Reply):
    """``digest``: of the content of the record, which an approval is of."""

    digest: str
    approvals: tuple[ApprovalReply, ...]


class ReaderList(Reply):
    """``readers``: those whom its owner shows the run; ``others``: those whom it could be shown to."""

    readers: tuple[str, ...]
    others: tuple[str, ...]


class DifferenceReply(Reply):
    """``after`` is "" where it is gone."""

    id: str
    before: str
    after: str


class VerifyReply(Reply):
    """As ``decisor verify --json`` prints it."""

    answer: str
    state: Literal["holds", "does not hold", "cannot be said"]
    why: str
    records: int
    changes: tuple[DifferenceReply, ...]
    best: str
    rules: tuple[Json, ...]
    others: tuple[str, ...]
    outcomes: tuple[DifferenceReply, ...]


class CaseReply(Reply):
    id: str
    benchmark: str
    case: str
    technique: str
    model: str
    repeat: int
    state: str
    answer: str
    gold: tuple[str, ...]
    seconds: float
    usage: Usage


class EvaluationReply(Reply):
    """``report``: tables, as ``decisor report --json`` has them; null while no case is finished."""

    name: str
    finished: int
    cases: tuple[CaseReply, ...] = ()
    report: Json | None = None


class EvaluationList(Reply):
    evaluations: tuple[str, ...]


class SessionReply(Reply):
    user: str
