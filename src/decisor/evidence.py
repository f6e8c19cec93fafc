"""What a decision rests on: records by id, figures, and what may be wrong with the queries that brought them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ObjectionKind = Literal[
    "figure", "unit", "scale", "candidate", "rank", "row", "period", "direction", "runner_up", "count", "ranking"
]


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A query that runs and may not mean what it seems to. ``kind``: the rule that noticed it; ``text``: what is wrong
    and what to do; ``records``: those of its rows that a decision cites."""

    kind: str
    text: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A number quoted in an answer, and the record or calculation that supports it ('' = none was found)."""

    text: str
    support: str = ""


@dataclass(frozen=True, slots=True)
class Objection:
    """A claim of an answer that does not stand on the rows it cites."""

    kind: ObjectionKind
    """The part of the claim that is contradicted."""
    text: str
    """The claim, and the record that says otherwise."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ids of the records that a decision rests on, the figures quoted from them, the pitfalls of the queries that
    brought them, and what does not stand on them."""

    ids: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()
    objections: tuple[Objection, ...] = ()
