"""Figures that others published for Decision QA, to stand beside ours. None of them was measured here."""

from __future__ import annotations

from dataclasses import dataclass

PAPER = "PlanRAG paper (NAACL 2024), GPT-4, zero shot"


@dataclass(frozen=True, slots=True)
class Published:
    """Accuracy in percent for a scenario. ``form`` is sql, graph, or '' for the mean of both."""

    technique: str
    scenario: str
    form: str
    accuracy: float
    source: str = PAPER


def _both(technique: str, scenario: str, sql: float, graph: float, mean: float) -> tuple[Published, ...]:
    values = (("sql", sql), ("graph", graph), ("", mean))
    return tuple(Published(technique, scenario, form, accuracy) for form, accuracy in values)


PUBLISHED: tuple[Published, ...] = (
    *_both("single_rag", "locating", 25.5, 35.5, 30.5),
    *_both("iter_rag", "locating", 37.5, 59.5, 48.5),
    *_both("plan_rag", "locating", 64.5, 64.0, 64.3),
    Published("plan_rag replan=no", "locating", "", 53.5),
    *_both("single_rag", "building", 2.0, 3.0, 2.5),
    *_both("iter_rag", "building", 34.7, 40.6, 37.6),
    *_both("plan_rag", "building", 40.6, 49.5, 45.0),
    Published("plan_rag replan=no", "building", "", 44.1),
)

MISSED = {("iter_rag", "locating"): 3.3, ("iter_rag", "building"): 33.2,
          ("plan_rag", "locating"): 1.3, ("plan_rag", "building"): 21.8}  # fmt: skip
"""Missed-data-analysis rate in percent, by technique and scenario, from the same paper."""

CEILING = {"locating": "87.0 (91.5 with the published total power)", "building": "93.1"}
"""What a perfect reasoner that follows the printed rules reaches on the released questions, in percent (ours)."""


def published(scenario: str, form: str) -> tuple[Published, ...]:
    """The figures for a scenario and form, and the means where no figure by form was published.

    >>> [(row.technique, row.accuracy) for row in published("building", "graph")]
    [('single_rag', 3.0), ('iter_rag', 40.6), ('plan_rag', 49.5), ('plan_rag replan=no', 44.1)]
    """
    rows = [row for row in PUBLISHED if row.scenario == scenario]
    by_form = {row.technique for row in rows if row.form == form}
    return tuple(row for row in rows if row.form == form or (not row.form and row.technique not in by_form))
