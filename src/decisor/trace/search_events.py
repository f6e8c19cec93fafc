"""Events of searches: trees of actions, ratings, and queries that a scorer chose among."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from decisor.types import Action

Ended = Literal["", "answered", "gave_up", "steps"]


@dataclass(frozen=True, slots=True)
class SearchNode:
    """A node that a search tree grew: what was done there, and the beginning of what came of it."""

    node: int
    parent: int
    action: Action
    thought: str = ""
    text: str = ""
    error: bool = False
    ended: Ended = ""


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """Two leaves were compared. ``score``: 1 where the first won, 0 where the second; ``elos``: ratings after it."""

    nodes: tuple[int, int]
    score: float
    elos: tuple[float, float]


@dataclass(frozen=True, slots=True)
class AnswerSnapshot:
    """The answer that a run of so many LM calls would have given; '' for none."""

    calls: int
    answer: str


@dataclass(frozen=True, slots=True)
class NodeRating:
    """A node of a finished tree. ``parent`` is None for the root; ``matches``: how often its ``elo`` was updated."""

    node: int
    parent: int | None = None
    elo: float = 0.0
    matches: int = 0
    value: float = 0.0
    ended: Ended = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class SearchTree:
    """The whole tree at the end of a search, root first, and the node whose sequence was chosen."""

    nodes: tuple[NodeRating, ...]
    chosen: int | None = None


@dataclass(frozen=True, slots=True)
class QueryScores:
    """What a scorer gave each of several queries; the best one is run."""

    queries: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What a search could not do better, such as repeated_queries, low_score, many_rounds."""

    problem: str
    text: str
