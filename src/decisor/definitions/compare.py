"""A query held against the metrics: which of them it computes, and which it computes differently."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from decisor.definitions.computations import Computation, computations
from decisor.definitions.expressions import summed
from decisor.definitions.format import Metric, title
from decisor.definitions.relations import Relation

AGGREGATES = re.compile(r"\b(sum|count|avg|min|max|median)\(")
SAME_SHARE = 0.5
PIECES = re.compile(r"\.\w*(quantity|qty|units|pieces|count|number)\w*$", re.I)


@dataclass(frozen=True)
class Match:
    """A metric that a query computes. ``how``: where it does so differently, what is said to who wrote it."""

    metric: Metric
    how: str = ""


def matches(
    statement: str,
    metrics: Sequence[Metric],
    dialect: str,
    relations: Sequence[Relation],
    meant: Sequence[Metric] = (),
) -> Sequence[Match]:
    """One for each metric at most: where any column of the query is exactly it, no other is held against it. ``meant``:
    those that the question is about."""
    own = [(metric, definition) for metric in metrics if (definition := defined(metric, dialect, relations))]
    outcome: dict[str, Match] = {}
    exact: set[int] = set()
    parts = list(computations(statement, dialect, relations))
    for metric, definition in own:
        for at, part in enumerate(parts):
            if whole(part) == whole(definition):
                exact.add(at)
                missing = definition.filters - part.conditions
                if metric.name not in outcome or not missing:
                    outcome[metric.name] = Match(metric, unfiltered(metric) if missing else "")
    for metric, definition in own:
        for at, part in enumerate(parts):
            if metric.name in outcome or at in exact:
                continue
            if recomputes(part, metric, definition, metric in meant):
                outcome[metric.name] = Match(metric, different(metric, part))
    return tuple(outcome.values())


@lru_cache(maxsize=500)
def _defined(query: str, dialect: str, relations: tuple[Relation, ...]) -> Computation | None:
    parts = list(computations(query, dialect, relations))
    return parts[0] if parts else None


def defined(metric: Metric, dialect: str, relations: Sequence[Relation]) -> Computation | None:
    """What its definition computes; None where that cannot be read."""
    return _defined(metric.whole(), dialect, tuple(relations))


def whole(part: Computation) -> object:
    """What is compared: of a value of one row, the sum over the rows."""
    return part.terms if part.aggregates else summed(part.terms)


def recomputes(part: Computation, metric: Metric, definition: Computation, meant: bool) -> bool:
    """Whether it seems to mean the metric: by its name, or as the same aggregate over most of its columns. Where the
    metric is ``meant``, one column of two is enough, but for one that counts pieces."""
    if any(plain(part.name) == plain(name) for name in (metric.name, *metric.synonyms)):
        return True
    shared = part.columns & definition.columns
    if len(shared) == 1 < len(definition.columns) and (not meant or PIECES.search(next(iter(shared)))):
        return False
    kinds = [set(AGGREGATES.findall(str(one.terms))) for one in (part, definition)]
    return (part.aggregates and kinds[0] == kinds[1] and bool(shared)
            and len(shared) >= SAME_SHARE * len(definition.columns))  # fmt: skip


def plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def different(metric: Metric, part: Computation) -> str:
    where = f", of rows where {' and '.join(metric.where)}" if metric.where else ""
    return (f"{part.written} is not {title(metric)}, which is {definition_text(metric)}{where}. Use that where it is "
            "meant, or say in Assumptions why not.")  # fmt: skip


def unfiltered(metric: Metric) -> str:
    return (f"This computes {title(metric)} without its filter: it is of rows where {' and '.join(metric.where)}. "
            "Add that, or say in Assumptions why not.")  # fmt: skip


def definition_text(metric: Metric) -> str:
    return " ".join((metric.query or f"{metric.sql} over {metric.source}").split())
