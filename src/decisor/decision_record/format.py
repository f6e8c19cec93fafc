"""What a record of a decision holds, in the order of its page. The published schema, ``schema.json``, is made of these.

A change of these classes is a change of the format: raise ``FORMAT``, and write the schema anew
(``decisor record --schema``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from decisor.history.past_run import Approval
from decisor.trace.events import MeaningChoice
from decisor.trace.provenance import DataSource, UsedFile
from decisor.types import Figure, Objection, Pitfall, Ranking, Replan, RuleTest, Usage

FORMAT: Literal["decisor decision record 1"] = "decisor decision record 1"


@dataclass(frozen=True, slots=True)
class Request:
    """What was to be decided: the question, the rules in words, the goal, and the questions that it goes on from, each
    with its answer. ``by``: who asked, '' where that is not known. ``at``: when, in UTC (ISO 8601), or ''."""

    question: str
    rules: str = ""
    goal: str = ""
    before: tuple[str, ...] = ()
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The answer, '' where there is none; why, in plain words; why the run ended; the next best candidate; the plan
    that led there, and how it was changed."""

    answer: str
    stopped: Literal["answered", "budget", "steps", "no_answer", "failed"]
    reasons: tuple[str, ...] = ()
    runner_up: str = ""
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """A definition that the decision used, as the cited record ``id`` tells it: what it says, who wrote it, on which
    day, and in which file; ``digest``: SHA-256 of that file as it was."""

    id: str
    name: str
    says: str
    by: str = ""
    on: str = ""
    file: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row, node or passage that the decision cites. ``digest``: of its cells and text."""

    id: str
    fields: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    source: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What was asked of a tool. ``rows``: those that the decision cites, of ``brought``; ``total``: of how many, None
    where that is not known. ``cut``: only the first were brought. ``digest``: of all that it brought, in any order, ''
    where it was cut. ``ranks``: it computed the alternatives."""

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
    """What the decision rests on: queries with their rows, the figures of the answer with what supports each, what the
    queries may have got wrong, ids that are cited and nowhere to be seen, and claims that do not stand on the rows."""

    queries: tuple[Query, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()
    missing: tuple[str, ...] = ()
    objections: tuple[Objection, ...] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """What decided: the LM ('' where none was asked) with the names that it gave itself, the technique (``chosen``: the
    one that ``auto`` took), its settings, and the version of Decisor."""

    lm: str = ""
    lm_names: tuple[str, ...] = ()
    technique: str = ""
    chosen: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """What was read. ``tables``: only these might be, all where it is empty; ``deny_tables``: these might not."""

    sources: tuple[DataSource, ...] = ()
    tables: tuple[str, ...] = ()
    deny_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """What is not settled, and what would settle it."""

    what: str
    settles: str


@dataclass(frozen=True, slots=True)
class Content:
    """All that a digest and an approval are about. ``alternatives``: the candidates with their outcomes, None where
    none were computed; ``rules``: those that were executed, with the rows that break them; ``readings``: words that
    could mean two things; ``model``: the decision model, whole; ``assumptions``: what was taken as certain."""

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
    """``digests``: of each part of the content; ``digest``: of all of it. ``run``: its number in the history of who
    asked, or 0. ``approvals``: each is of the content whose digest it names. ``run_digest``: of the digest and the run;
    '' in records of earlier versions."""

    format: Literal["decisor decision record 1"]
    content: Content
    digests: Mapping[str, str]
    digest: str
    run: int = 0
    approvals: tuple[Approval, ...] = ()
    run_digest: str = ""
