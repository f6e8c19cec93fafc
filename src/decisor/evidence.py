"""What a decision rests on: records by id, figures, and what may be wrong with the queries that brought them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pitfall:
    """A query that runs and may not mean what it seems to. ``kind``: the rule that noticed it; ``text``: what is wrong
    and what to do; ``records``: those of its rows that a decision cites."""

    kind: str
    text: str
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A number quoted in an answer, and the record or calculation that supports it ('' = unsupported)."""

    text: str
    support: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The ids of the records that a decision rests on, the figures quoted from them, and the pitfalls of the queries
    that brought them."""

    ids: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    pitfalls: tuple[Pitfall, ...] = ()

    @property
    def unsupported(self) -> tuple[str, ...]:
        return tuple(figure.text for figure in self.figures if not figure.support)
