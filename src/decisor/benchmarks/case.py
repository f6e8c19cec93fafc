"""One question of any benchmark, with what is needed to score it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from decisor.types import Question, Value


@dataclass(frozen=True, slots=True)
class Case:
    """``id`` is unique in its benchmark. ``group`` is what reports split by (scenario, number of hops, category).

    ``gold``: every accepted answer, the first the main one. ``facts``: what else scoring needs, as plain values.
    Neither reaches a technique: it gets ``question`` and an environment.
    """

    id: str
    question: Question
    gold: tuple[str, ...] = ()
    group: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict)
