"""Figures that others published for our benchmarks; none of them was measured here.

Each figure names its source. The ``group`` of a figure for Decision QA is its scenario and form; without a form it is
the mean of both. CoT@3 counts as right if any of three chains is: for Game of 24 and ToolBench ours is ``found`` of
``cot chains=3`` (for ToolBench with ``every_answer=yes``), for WebShop ``best_reward``. The technique that
StableToolBench calls DFS is ToolLLM's DFSDT, which goes back two levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

RADAGENT = "RaD-Agent (arXiv 2308.12519), tables 1-2, GPT-3.5-turbo-0613, 100 calls a case"


NAMES = {"2wiki": "twowiki", "2wikimultihopqa": "twowiki", "arc_challenge": "arc", "hotpot": "hotpotqa"}


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure that others published. group: the part of the benchmark that it is about, empty for all of it."""

    benchmark: str
    technique: str
    metric: str
    value: float
    source: str
    group: str = ""


def parse_figure_table(
    benchmark: str, source: str, metrics: str, rows: str, group: str = ""
) -> tuple[PublishedFigure, ...]:
    """Parse figures from a table of lines ``technique: value value ...`` under its metrics.

    ``-`` means that nothing was published.

    >>> parse_figure_table("b", "s", "acc f1", "cot: 6 -")
    (PublishedFigure(benchmark='b', technique='cot', metric='acc', value=6.0, source='s', group=''),)
    """
    table = []
    for line in rows.strip().splitlines():
        technique, _, values = line.partition(":")
        for metric, value in zip(metrics.split(), values.split(), strict=True):
            if value != "-":
                table.append(PublishedFigure(benchmark, technique.strip(), metric, float(value), source, group))
    return tuple(table)


GAME24_FIGURES: tuple[PublishedFigure, ...] = (
    *parse_figure_table(
        "game24",
        RADAGENT,
        "accuracy",
        "cot: 6\nCoT@3: 7\nreflexion: 7\nbfs: 11\ndfs: 14\ndfsdt: 29\nradagent preset=paper: 43",
    ),
    *parse_figure_table(
        "game24",
        "Tree of Thoughts (NeurIPS 2023), GPT-4",
        "accuracy",
        "cot (GPT-4): 4.0\nCoT-SC@100 (GPT-4): 9.0\ntot keep=1 (GPT-4): 45\ntot (GPT-4): 74",
    ),
)


PAPER = "PlanRAG paper (NAACL 2024), GPT-4, zero shot"
EARLY = "PlanRAG, early version of the release, GPT-4, 140 questions"


def figures_of_both_forms(
    technique: str, scenario: str, sql: float, graph: float, mean: float
) -> tuple[PublishedFigure, ...]:
    groups = {f"{scenario} sql": sql, f"{scenario} graph": graph, scenario: mean}
    return tuple(PublishedFigure("dqa", technique, "accuracy", value, PAPER, group) for group, value in groups.items())


DQA_FIGURES: tuple[PublishedFigure, ...] = (
    *figures_of_both_forms("single_rag", "locating", 25.5, 35.5, 30.5),
    *figures_of_both_forms("iter_rag", "locating", 37.5, 59.5, 48.5),
    *figures_of_both_forms("plan_rag", "locating", 64.5, 64.0, 64.3),
    PublishedFigure("dqa", "plan_rag replan=no", "accuracy", 53.5, PAPER, "locating"),
    *figures_of_both_forms("single_rag", "building", 2.0, 3.0, 2.5),
    *figures_of_both_forms("iter_rag", "building", 34.7, 40.6, 37.6),
    *figures_of_both_forms("plan_rag", "building", 40.6, 49.5, 45.0),
    PublishedFigure("dqa", "plan_rag replan=no", "accuracy", 44.1, PAPER, "building"),
)

MISSED = {
    ("iter_rag", "locating"): 3.3,
    ("iter_rag", "building"): 33.2,
    ("plan_rag", "locating"): 1.3,
    ("plan_rag", "building"): 21.8,
}
"""Missed-data-analysis rate in percent, by technique and scenario, from the same paper."""

REPLANS = {
    "locating": ((376, 66.8), (0, 0.0), (12, 41.7), (5, 20.0), (7, 0.0)),
    "building": ((125, 57.6), (0, 0.0), (24, 41.7), (23, 21.7), (30, 13.3)),
}
"""Questions with 0, 1, 2, 3, and 4 or more replans, and the accuracy on them in percent: table 7, both forms."""

REPLAN_KINDS: Mapping[str, tuple[float | None, float | None]] = {
    "reorder": (None, None),
    "replace": (None, None),
    "change target": (25.0, 34.92),
    "add lookup": (66.67, 41.27),
    "add calculation": (16.67, 38.1),
    "add both": (8.33, 4.76),
    "divide": (8.33, 77.78),
    "others": (4.17, 6.35),
    "delete": (4.17, 12.7),
    "merge": (4.17, 0.0),
}
"""Occurrence of each kind among the questions with replans, in percent, Locating and Building: table 12."""

PROMPT_ORDERS = {
    "iter_rag": (37.5, 30.0),
    "plan_rag (Plan-Thought-Action-Observation-Replan)": (57.5, 50.0),
    "plan_rag order=paor (Plan-Action-Observation-Replan)": (40.0, 40.0),
    "plan_rag order=tpaor (Thought-Plan-Action-Observation-Replan)": (27.5, 30.0),
}
"""Accuracy on Locating and Building: table 10."""

OTHER_MODELS = {
    "iter_rag (GPT-3.5)": (8.0, 2.5, 22.8, 3.96),
    "plan_rag (GPT-3.5)": (4.0, 1.0, 1.0, 1.0),
    "iter_rag, plan_rag (Llama 2 70B, Llama 2 13B, Phi-2)": (0.0, 0.0, 0.0, 0.0),
}
"""Accuracy in percent on Locating with SQL and graph, Building with SQL and graph: table 11."""

EARLY_RESULTS = {
    "single_rag": (25.9, 30.5),
    "iter_rag": (43.2, 54.2),
    "plan_rag": (55.6, 55.9),
    "plan_rag replan=no": (50.6, 49.2),
}
"""Accuracy on Locating and Building in percent."""

ROWS = {"building": 579.0, "locating": 2038.8}
"""Average number of rows of a database: table 8, with RDB."""

CEILING = {"locating": "87.0 (91.5 with the published total power)", "building": "93.1"}
"""What a perfect reasoner that follows the printed rules reaches on the released questions, in percent (ours)."""


def figures_of_scenario(scenario: str, form: str) -> tuple[PublishedFigure, ...]:
    """Return the figures for a scenario and form, or the mean if no figure by form was published.

    >>> [(figure.technique, figure.value) for figure in figures_of_scenario("building", "graph")]
    [('single_rag', 3.0), ('iter_rag', 40.6), ('plan_rag', 49.5), ('plan_rag replan=no', 44.1)]
    """
    by_form = {figure.technique for figure in DQA_FIGURES if figure.group == f"{scenario} {form}"}
    return tuple(
        figure
        for figure in DQA_FIGURES
        if figure.group == f"{scenario} {form}" or (figure.group == scenario and figure.technique not in by_form)
    )


OPEN_DOMAIN = """
no retrieval (GPT-3.5-turbo): 27.15 37.97 55.51 31.58 66.43 78.4 27.45 28.28
no retrieval (Llama-3-8B): 21.35 25.57 48.42 21.24 71.4 79.99 21.23 22.62
rag (Llama-2-7B): 16.6 24.71 31.21 5.11 40.13 53.03 22.76 19.22
rag (Llama-2-13B): 18.22 27.1 43.98 29.46 53.33 64.54 29.82 25.71
rag (Llama-3-8B): 25.49 31.22 47.35 31.51 73.43 80.4 36.52 35.23
RQ-RAG: 23.2 20.11 47.46 45.57 64.98 64.98 32.66 31.68
Self-RAG 7B: 33.18 21.55 60.5 13.55 67.32 52.81 44.31 15.63
Self-RAG 13B: 33.93 21.83 63.4 21.49 73.12 56.74 44.53 16.34
reasoning_dag (Llama-3-8B): 35.67 39.68 69.49 64.03 74.12 81.3 36.09 35.2
"""
"""accuracy and F1 on HotpotQA, then on StrategyQA, ARC-Challenge and PopQA."""

FLASHRAG = """
vanilla: 28.4 33.9 21.7
rag: 35.3 21 36.7
iter_retgen: 38.3 21.6 37.9
Adaptive-RAG: 39.1 28.4 40.4
ircot: 41.5 32.4 45.6
RQ-RAG: 33.5 35.8 46.4
Self-RAG: 29.6 25.1 32.7
"""
"""F1 on HotpotQA, 2WikiMultiHopQA and PopQA."""


def figures_of_sets(names: Sequence[str], source: str, metrics: str, rows: str) -> Iterator[PublishedFigure]:
    """Yield the figures of a table of several sets, which stand side by side with equal metrics."""
    columns = " ".join(f"{name}/{metric}" for name in names for metric in metrics.split())
    for one in parse_figure_table("", source, columns, rows):
        name, _, metric = one.metric.partition("/")
        yield PublishedFigure(name, one.technique, metric, one.value, source)


QA_FIGURES: tuple[PublishedFigure, ...] = (
    *figures_of_sets(
        ("hotpotqa", "strategyqa", "arc", "popqa"), "Plan*RAG (arXiv 2410.20753), table 3", "acc f1", OPEN_DOMAIN
    ),
    *parse_figure_table(
        "popqa",
        "Plan*RAG, table 4",
        "llm_eval",
        "Self-RAG 7B: 44.83\nSelf-RAG 13B: 46.06\nreasoning_dag (Llama-3-8B): 42.74",
    ),
    *figures_of_sets(("hotpotqa", "twowiki", "popqa"), "FlashRAG's README, Llama-3-8B, E5, top 5", "f1", FLASHRAG),
    *parse_figure_table(
        "hotpotqa",
        "LLMCompiler (ICML 2024), tables 1-2, GPT-3.5, 1,500 comparison questions",
        "accuracy seconds",
        "react: 62.47 7.12\nOpenAI parallel calls: 62.05 4.42\nLLMCompiler: 62.00 3.95",
        "comparison",
    ),
    *parse_figure_table(
        "parallelqa",
        "LLMCompiler (ICML 2024), tables 1-2, GPT-4-turbo",
        "accuracy seconds",
        "react: 89.09 35.90\nOpenAI parallel calls: 87.32 19.29\nLLMCompiler: 89.38 16.69",
    ),
)

DEPTHS: Mapping[str, tuple[float, ...]] = {
    "hotpotqa": (0.5, 12.8, 79.5, 6.8, 0.4),
    "strategyqa": (0.9, 42.9, 51.2, 4.5, 0.3),
    "arc": (0.1, 72.1, 25.5, 2.1, 0.0),
    "popqa": (77.9, 0.8, 18.9, 2.4, 0.0),
}
"""Per cent of plans of depth 0, 1, 2, 3, 4 or more: Plan*RAG, table 2."""


TOOLBENCH_FIGURES: tuple[PublishedFigure, ...] = (
    *parse_figure_table(
        "toolbench",
        RADAGENT,
        "accuracy",
        "cot: 16.60\nCoT@3: 31.20\nreflexion: 26.60\nbfs: 38.00\ndfs: 45.58\ndfsdt: 50.20\n"
        "radagent preset=paper: 61.92",
    ),
    *parse_figure_table(
        "toolbench",
        RADAGENT,
        "preference_rank",
        "CoT@3: 3.45\nreflexion: 3.48\nbfs: 3.25\ndfsdt: 2.91\n"
        "radagent preset=paper select=random: 3.24\nradagent preset=paper: 2.19",
    ),
    *parse_figure_table(
        "toolbench",
        "ToolLLM (ICLR 2024), ChatGPT",
        "accuracy win_rate",
        "ReACT: 40.2 -\ndfsdt back=2 calls=200: 64.8 64.3",
    ),
    *parse_figure_table(
        "toolbench", "StableToolBench's README, GPT-3.5-0613", "sopr", "cot: 46.6\ndfsdt back=2 calls=200: 63.0"
    ),
)

TOOL_FAILURES: Mapping[str, Mapping[str, tuple[float, float | None]]] = {
    "CoT@3": {
        "hallucinated_tool": (14.2, 25.4),
        "tool_call_error": (41.2, 14.8),
        "unavailable": (2.0, None),
        "decision_failure": (52.5, None),
    },
    "bfs": {
        "hallucinated_tool": (18.8, 25.5),
        "tool_call_error": (50.8, 31.1),
        "unavailable": (2.6, None),
        "decision_failure": (48.6, None),
    },
    "dfsdt": {
        "hallucinated_tool": (31.5, 38.9),
        "tool_call_error": (62.5, 41.0),
        "unavailable": (3.0, None),
        "decision_failure": (26.4, None),
    },
    "radagent preset=paper": {
        "hallucinated_tool": (42.1, 53.3),
        "tool_call_error": (62.3, 54.0),
        "unavailable": (3.0, None),
        "decision_failure": (14.8, None),
    },
}
"""Incidence and fix ratio in percent on ToolBench: RaD-Agent, table 3."""


WEBSHOP_FIGURES: tuple[PublishedFigure, ...] = (
    *parse_figure_table(
        "webshop",
        RADAGENT,
        "reward",
        "cot: 56.23\nCoT@3: 56.45\nreflexion: 57.21\nbfs: 50.20\ndfs: 55.60\ndfsdt: 57.25\n"
        "radagent preset=paper: 59.36",
    ),
    *parse_figure_table(
        "webshop",
        "WebShop (NeurIPS 2022)",
        "reward accuracy",
        "people: 82.1 59.6\nrule: 45.6 9.6\nimitation and reinforcement: 62.4 28.7",
    ),
)

FIGURES = DQA_FIGURES + QA_FIGURES + GAME24_FIGURES + TOOLBENCH_FIGURES + WEBSHOP_FIGURES


def figures_for(benchmark: str) -> tuple[PublishedFigure, ...]:
    """Return the published figures of a benchmark, by its name here.

    A suffix after a colon, slash or space is left out; for Decision QA it may say sql or graph, and without one the
    means of both forms are meant.

    >>> {figure.source for figure in figures_for("webshop small")} == {RADAGENT, "WebShop (NeurIPS 2022)"}
    True
    """
    text = benchmark.casefold()
    name = normalize_benchmark_name(benchmark)
    own = [figure for figure in figures_of_room(name) if figure.benchmark == name]
    if name == "dqa":  # by form where the name says which, else the means of both forms
        form = next((form for form in ("sql", "graph") if form in text), "")
        own = [figure for figure in own if figure.group.partition(" ")[2] == form]
    return tuple(own)


def normalize_benchmark_name(benchmark: str) -> str:
    """Return the name of a benchmark here for its name in a report.

    >>> normalize_benchmark_name("2Wiki:dev"), normalize_benchmark_name("dqa form=graph")
    ('twowiki', 'dqa')
    """
    name = re.split(r"[:/ ]", benchmark.casefold())[0]
    return NAMES.get(name, name)


def figures_of_room(name: str) -> tuple[PublishedFigure, ...]:
    """Return all published figures of a benchmark."""
    return tuple(figure for figure in FIGURES if figure.benchmark == name)
