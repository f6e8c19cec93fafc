"""What is kept of one finished case, as plain values: the run store holds these, and every report is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from decisor.types import Usage

State = Literal["right", "wrong", "unscored", "crashed", "over_budget"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``technique`` is its label with settings (``plan_rag replan=no``); ``repeat`` counts from 0.

    ``state`` keeps apart what must never be merged: a wrong answer, an answer no judge could read, a run that crashed
    and one that ran over its budget. ``critical``: seconds along the longest chain of calls that waited for each other.
    ``snapshots``: calls -> whether the answer held at that many calls was right. ``usage`` is the technique's own;
    ``beside``: what LMs cost that the benchmark asked itself, by who was asked (judge, simulator).
    """

    benchmark: str
    case: str
    technique: str
    model: str
    repeat: int
    state: State
    group: str = ""
    answer: str = ""
    text: str = ""
    gold: tuple[str, ...] = ()
    stopped: str = ""
    reasons: tuple[str, ...] = ()
    failure: str = ""
    tags: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    critical: float = 0.0
    snapshots: Mapping[int, bool] = field(default_factory=dict)
    beside: Mapping[str, Usage] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What makes it unique in a run."""
        return self.benchmark, self.case, self.technique, self.model, self.repeat
