"""Events of a reasoning DAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from decisor.replies.attribution import Attribution
from decisor.replies.plan_graph import PlanGraph
from decisor.types import Record

Status = Literal["answered", "unknown", "failed", "blocked", "budget"]


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node: the question as it was put (tags filled in), its answer, and what that rests on.

    ``documents``: those that were kept for it, each citable by its id. ``document`` is the one that the answer stands
    in and ``support`` the words there; ``also``: other documents that it rests on. ``why``: of a failure. ``sure`` is
    False where a parent's answer was unknown. ``query``: the question as it was planned, with its tags.
    """

    node: str
    question: str
    answer: str = ""
    status: Status = "answered"
    attribution: Attribution = "unattributed"
    document: str = ""
    support: str = ""
    documents: tuple[Record, ...] = ()
    why: str = ""
    retrievals: int = 0
    sure: bool = True
    query: str = ""
    also: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        return self.status in ("failed", "blocked", "budget")


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A plan of sub-questions; ``steps`` are its lines for people. ``why``: no plan could be read."""

    steps: tuple[str, ...]
    graph: PlanGraph
    why: str = ""


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A stretch of the run in which one node is answered. ``question`` still has its tags."""

    node: str
    question: str
    parents: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A node's answer, whole: a later run may take it from here. ``reused``: it was taken from the run before."""

    answer: NodeAnswer
    reused: bool = False


@dataclass(frozen=True, slots=True)
class GraphResult:
    """What is counted of one question, and what its answer rests on."""

    counts: Mapping[str, int] = field(default_factory=dict)
    attribution: Attribution = "unattributed"
    document: str = ""
