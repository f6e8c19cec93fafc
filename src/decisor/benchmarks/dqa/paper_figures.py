"""What others published for Decision QA. ``group`` of a figure is its scenario and form; without a form it is the mean
of both."""

from __future__ import annotations

from decisor.benchmarks.paper_figures import PublishedFigure

PAPER = "PlanRAG paper (NAACL 2024), GPT-4, zero shot"


def both(technique: str, scenario: str, sql: float, graph: float, mean: float) -> tuple[PublishedFigure, ...]:
    groups = {f"{scenario} sql": sql, f"{scenario} graph": graph, scenario: mean}
    return tuple(PublishedFigure("dqa", technique, "accuracy", value, PAPER, group) for group, value in groups.items())


FIGURES: tuple[PublishedFigure, ...] = (
    *both("single_rag", "locating", 25.5, 35.5, 30.5),
    *both("iter_rag", "locating", 37.5, 59.5, 48.5),
    *both("plan_rag", "locating", 64.5, 64.0, 64.3),
    PublishedFigure("dqa", "plan_rag replan=no", "accuracy", 53.5, PAPER, "locating"),
    *both("single_rag", "building", 2.0, 3.0, 2.5),
    *both("iter_rag", "building", 34.7, 40.6, 37.6),
    *both("plan_rag", "building", 40.6, 49.5, 45.0),
    PublishedFigure("dqa", "plan_rag replan=no", "accuracy", 44.1, PAPER, "building"),
)

MISSED = {("iter_rag", "locating"): 3.3, ("iter_rag", "building"): 33.2,
          ("plan_rag", "locating"): 1.3, ("plan_rag", "building"): 21.8}  # fmt: skip
"""Missed-data-analysis rate in percent, by technique and scenario, from the same paper."""

CEILING = {"locating": "87.0 (91.5 with the published total power)", "building": "93.1"}
"""What a perfect reasoner that follows the printed rules reaches on the released questions, in percent (ours)."""


def paper_figures(scenario: str, form: str) -> tuple[PublishedFigure, ...]:
    """The figures for a scenario and form, and the means where no figure by form was published.

    >>> [(figure.technique, figure.value) for figure in paper_figures("building", "graph")]
    [('single_rag', 3.0), ('iter_rag', 40.6), ('plan_rag', 49.5), ('plan_rag replan=no', 44.1)]
    """
    by_form = {figure.technique for figure in FIGURES if figure.group == f"{scenario} {form}"}
    return tuple(
        figure for figure in FIGURES
        if figure.group == f"{scenario} {form}" or (figure.group == scenario and figure.technique not in by_form)
    )  # fmt: skip
