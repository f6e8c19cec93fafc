"""The nouns of a ranking: what a decision model makes of its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Goal = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate and the outcome that the decision model predicts for it. ``low``, ``high``: between them lie 90 % of
    its outcomes while the inputs vary; None where they did not."""

    name: str
    outcome: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """A candidate that may not be chosen: the rules that it breaks, and why in words.

    ``outcome`` is None where it has none; ``gain``: how much better it is than the best allowed one, in the measure's
    unit (below 0 where it is worse), None where that cannot be said.
    """

    name: str
    outcome: float | None
    rules: tuple[str, ...]
    why: str = ""
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class Winner:
    """A candidate, and the share of the trials in which it came first."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates from best to worst (equal ones in data order); of very many, the best.

    ``ties``: the candidates within a relative 1e-9 of the best. ``margin``: relative distance from the best to the
    first candidate outside the tie set, None where there is none; ``lead``: the same in the measure's unit.
    ``robustness``: share of ``trials`` in which the best stayed in front while the inputs varied, None where it was not
    measured; ``varied`` says which and how (``varied_percent``: all alike). ``winners``: who came first in the trials.
    ``compared`` of ``candidates`` were computed (None: not known), ``excluded_count`` of them may not be chosen;
    ``excluded`` are the nearest of these, ``excluded_by`` counts them by rule. ``stopped``: what ended it early.
    ``method``: how it was computed, where not by computing every candidate. ``covered``: what the trials computed,
    where not every candidate in every trial. ``left_out``: cells without a value that a sum or a mean passes over.
    """

    measure: str
    goal: Goal
    options: tuple[Option, ...]
    ties: tuple[str, ...] = ()
    margin: float | None = None
    robustness: float | None = None
    varied_percent: float | None = None
    unit: str = ""
    lead: float | None = None
    trials: int = 0
    varied: tuple[str, ...] = ()
    winners: tuple[Winner, ...] = ()
    compared: int | None = None
    candidates: int | None = None
    excluded_count: int = 0
    excluded: tuple[Excluded, ...] = ()
    excluded_by: Mapping[str, int] = field(default_factory=dict)
    stopped: str = ""
    method: str = ""
    covered: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many candidates were computed."""
        return len(self.options) + self.excluded_count if self.compared is None else self.compared


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A rule, executed for one ``candidate``. ``test``: the query, or the bound; ``rows``: the first that break it;
    ``count``: all of them."""

    name: str
    text: str
    state: Literal["kept", "broken", "not testable"]
    why: str
    test: str = ""
    count: int = 0
    rows: Sequence[Mapping[str, object]] = ()
    candidate: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A candidate by all measures. ``front``: no allowed candidate is better by one measure and as good by the rest."""

    name: str
    values: tuple[float, ...]
    front: bool


@dataclass(frozen=True, slots=True)
class Swing:
    """How far one input alone moves the lead of the best over the next, in the measure's unit: 90 % of the trials are
    between ``low`` and ``high`` (below 0: another is in front). ``stays``: the share in which the best stays it."""

    input: str
    spread: str
    low: float
    high: float
    stays: float


@dataclass(frozen=True, slots=True)
class Turn:
    """At ``factor`` times its value an input lets ``winner`` win ('' = nothing is allowed). A factor of None: nothing
    in the range that was tried does. ``why``: the rule that the former best breaks, with the row, or ''."""

    input: str
    factor: float | None
    winner: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """Data as they are ('now'), in a scenario, or changed. ``best``: who wins ('' = nothing is allowed) with
    ``outcome``; ``usual``: the outcome of who wins now, None where a rule or its outcome shuts it out."""

    name: str
    best: str
    outcome: float | None
    usual: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Study:
    """What a what-if tells beyond a ranking. ``best``: who wins as the data are, ``lead``: by how much (None: nobody
    else is there). ``measures``, ``units``, ``goals`` belong to the values of ``points``; the first is what ``swings``
    and ``scenes`` are in."""

    title: str
    measures: tuple[str, ...]
    units: tuple[str, ...]
    goals: tuple[str, ...]
    best: str = ""
    lead: float | None = None
    points: tuple[Point, ...] = ()
    swings: tuple[Swing, ...] = ()
    turns: tuple[Turn, ...] = ()
    scenes: tuple[Scene, ...] = ()
