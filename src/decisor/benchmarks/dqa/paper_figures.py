"""What others published for Decision QA. ``group`` of a figure is its scenario and form; without a form it is the mean
of both."""

from __future__ import annotations

from collections.abc import Mapping

from decisor.benchmarks.paper_figures import PublishedFigure

PAPER = "PlanRAG paper (NAACL 2024), GPT-4, zero shot"
EARLY = "PlanRAG, early version of the release, GPT-4, 140 questions"


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

REPLANS = {
    "locating": ((376, 66.8), (0, 0.0), (12, 41.7), (5, 20.0), (7, 0.0)),
    "building": ((125, 57.6), (0, 0.0), (24, 41.7), (23, 21.7), (30, 13.3)),
}
"""Questions with 0, 1, 2, 3, and 4 or more replans, and the accuracy on them in percent: table 7, both forms."""

REPLAN_KINDS: Mapping[str, tuple[float | None, float | None]] = {
    "reorder": (None, None), "replace": (None, None), "change target": (25.0, 34.92), "add lookup": (66.67, 41.27),
    "add calculation": (16.67, 38.1), "add both": (8.33, 4.76), "divide": (8.33, 77.78), "others": (4.17, 6.35),
    "delete": (4.17, 12.7), "merge": (4.17, 0.0),
}  # fmt: skip
"""Occurrence of each kind among the questions with replans, in percent, Locating and Building: table 12."""

PROMPT_ORDERS = {
    "iter_rag": (37.5, 30.0), "plan_rag (Plan-Thought-Action-Observation-Replan)": (57.5, 50.0),
    "plan_rag order=paor (Plan-Action-Observation-Replan)": (40.0, 40.0),
    "plan_rag order=tpaor (Thought-Plan-Action-Observation-Replan)": (27.5, 30.0),
}  # fmt: skip
"""Accuracy on Locating and Building: table 10."""

OTHER_MODELS = {
    "iter_rag (GPT-3.5)": (8.0, 2.5, 22.8, 3.96), "plan_rag (GPT-3.5)": (4.0, 1.0, 1.0, 1.0),
    "iter_rag, plan_rag (Llama 2 70B, Llama 2 13B, Phi-2)": (0.0, 0.0, 0.0, 0.0),
}  # fmt: skip
"""Accuracy in percent on Locating with SQL and graph, Building with SQL and graph: table 11."""

EARLY_RESULTS = {
    "single_rag": (25.9, 30.5), "iter_rag": (43.2, 54.2), "plan_rag": (55.6, 55.9), "plan_rag replan=no": (50.6, 49.2),
}  # fmt: skip
"""Accuracy on Locating and Building in percent."""

ROWS = {"building": 579.0, "locating": 2038.8}
"""Average number of rows of a database: table 8, with RDB."""

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
