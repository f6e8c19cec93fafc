"""Figures that others published for every benchmark, to stand beside ours. None of them was measured here.

A table's rows are ``technique: value value ...`` under its metrics, ``-`` where nothing was published. Names are ours
where we have the technique, with the model it ran on in brackets. Values are in percent but for ranks and seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from decisor.benchmarks.dqa import published

PLAN_STAR_RAG = "Plan*RAG (arXiv 2410.20753), table 3"
FLASHRAG = "FlashRAG's README, Llama-3-8B, E5, top 5"
RADAGENT = "RaD-Agent (arXiv 2308.12519), tables 1-2, GPT-3.5-turbo-0613, 100 calls a case"
COMPILER = "LLMCompiler (ICML 2024), tables 1-2"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One published figure. ``group``: the part of the benchmark it is about, '' for all of it."""

    benchmark: str
    technique: str
    metric: str
    value: float
    source: str
    group: str = ""


def _table(benchmark: str, source: str, metrics: str, rows: str, group: str = "") -> tuple[PublishedFigure, ...]:
    """
    >>> _table("b", "s", "acc f1", "cot: 6 -")
    (PublishedFigure(benchmark='b', technique='cot', metric='acc', value=6.0, source='s', group=''),)
    """
    figures = []
    for line in rows.strip().splitlines():
        technique, _, values = line.partition(":")
        for metric, value in zip(metrics.split(), values.split(), strict=True):
            if value != "-":
                figures.append(
                    PublishedFigure(
                        benchmark=benchmark,
                        technique=technique.strip(),
                        metric=metric,
                        value=float(value),
                        source=source,
                        group=group,
                    )
                )
    return tuple(figures)


_OPEN_DOMAIN = """
no retrieval (GPT-3.5-turbo): {}
no retrieval (Llama-3-8B): {}
rag (Llama-2-7B): {}
rag (Llama-2-13B): {}
rag (Llama-3-8B): {}
RQ-RAG: {}
Self-RAG 7B: {}
Self-RAG 13B: {}
reasoning_dag (Llama-3-8B): {}
"""


def _plan_star_rag(benchmark: str, *values: str) -> tuple[PublishedFigure, ...]:
    return _table(benchmark, PLAN_STAR_RAG, "acc f1", _OPEN_DOMAIN.format(*values))


# A technique that is here has the label that a run of it would have. CoT@3 counts as right where any of three chains
# is, which nothing here does; what StableToolBench calls DFS is ToolLLM's DFSDT, which goes back two levels.
TABLES: tuple[PublishedFigure, ...] = (
    *(PublishedFigure(benchmark="dqa", technique=row.technique, metric="accuracy", value=row.accuracy,
                      source=row.source, group=f"{row.scenario} {row.form}".strip())
      for row in published.PUBLISHED),
    *_plan_star_rag("hotpotqa", "27.15 37.97", "21.35 25.57", "16.60 24.71", "18.22 27.10", "25.49 31.22",
                    "23.20 20.11", "33.18 21.55", "33.93 21.83", "35.67 39.68"),
    *_plan_star_rag("strategyqa", "55.51 31.58", "48.42 21.24", "31.21 5.11", "43.98 29.46", "47.35 31.51",
                    "47.46 45.57", "60.5 13.55", "63.4 21.49", "69.49 64.03"),
    *_plan_star_rag("arc", "66.43 78.40", "71.40 79.99", "40.13 53.03", "53.33 64.54", "73.43 80.40",
                    "64.98 64.98", "67.32 52.81", "73.12 56.74", "74.12 81.30"),
    *_plan_star_rag("popqa", "27.45 28.28", "21.23 22.62", "22.76 19.22", "29.82 25.71", "36.52 35.23",
                    "32.66 31.68", "44.31 15.63", "44.53 16.34", "36.09 35.20"),
    *_table("popqa", "Plan*RAG, table 4", "llm_eval",
            "Self-RAG 7B: 44.83\nSelf-RAG 13B: 46.06\nreasoning_dag (Llama-3-8B): 42.74"),
    *_table("hotpotqa", FLASHRAG, "f1", "vanilla: 28.4\nrag: 35.3\niter_retgen: 38.3\nAdaptive-RAG: 39.1\nircot: 41.5\n"
            "RQ-RAG: 33.5\nSelf-RAG: 29.6"),
    *_table("twowiki", FLASHRAG, "f1", "vanilla: 33.9\nrag: 21.0\niter_retgen: 21.6\nAdaptive-RAG: 28.4\nircot: 32.4\n"
            "RQ-RAG: 35.8\nSelf-RAG: 25.1"),
    *_table("popqa", FLASHRAG, "f1", "vanilla: 21.7\nrag: 36.7\niter_retgen: 37.9\nAdaptive-RAG: 40.4\nircot: 45.6\n"
            "RQ-RAG: 46.4\nSelf-RAG: 32.7"),
    *_table("hotpotqa", COMPILER + ", GPT-3.5, 1,500 comparison questions", "accuracy seconds",
            "react: 62.47 7.12\nOpenAI parallel calls: 62.05 4.42\nLLMCompiler: 62.00 3.95", "comparison"),
    *_table("parallelqa", COMPILER + ", GPT-4-turbo", "accuracy seconds",
            "react: 89.09 35.90\nOpenAI parallel calls: 87.32 19.29\nLLMCompiler: 89.38 16.69"),
    *_table("game24", RADAGENT, "accuracy", "cot: 6\nCoT@3: 7\nreflexion: 7\nbfs: 11\ndfs: 14\ndfsdt: 29\n"
            "radagent: 43"),
    *_table("game24", "Tree of Thoughts (NeurIPS 2023), GPT-4", "accuracy",
            "cot (GPT-4): 4.0\nCoT-SC@100 (GPT-4): 9.0\ntot keep=1 (GPT-4): 45\ntot (GPT-4): 74"),
    *_table("webshop", RADAGENT, "reward", "cot: 56.23\nCoT@3: 56.45\nreflexion: 57.21\nbfs: 50.20\n"
            "dfs: 55.60\ndfsdt: 57.25\nradagent: 59.36"),
    *_table("webshop", "WebShop (NeurIPS 2022)", "reward accuracy",
            "people: 82.1 59.6\nrule: 45.6 9.6\nimitation and reinforcement: 62.4 28.7"),
    *_table("toolbench", RADAGENT, "accuracy", "cot: 16.60\nCoT@3: 31.20\nreflexion: 26.60\nbfs: 38.00\n"
            "dfs: 45.58\ndfsdt: 50.20\nradagent: 61.92"),
    *_table("toolbench", RADAGENT, "preference_rank", "CoT@3: 3.45\nreflexion: 3.48\nbfs: 3.25\ndfsdt: 2.91\n"
            "radagent, random choice: 3.24\nradagent: 2.19"),
    *_table("toolbench", "ToolLLM (ICLR 2024), ChatGPT", "accuracy win_rate",
            "ReACT: 40.2 -\ndfsdt back=2 calls=200: 64.8 64.3"),
    *_table("toolbench", "StableToolBench's README, GPT-3.5-0613", "sopr",
            "cot: 46.6\ndfsdt back=2 calls=200: 63.0"),
)  # fmt: skip

DEPTHS: Mapping[str, tuple[float, ...]] = {
    "hotpotqa": (0.5, 12.8, 79.5, 6.8, 0.4),
    "strategyqa": (0.9, 42.9, 51.2, 4.5, 0.3),
    "arc": (0.1, 72.1, 25.5, 2.1, 0.0),
    "popqa": (77.9, 0.8, 18.9, 2.4, 0.0),
}
"""Per cent of plans of depth 0, 1, 2, 3, 4 or more: Plan*RAG, table 2."""

TOOL_FAILURES: Mapping[str, Mapping[str, tuple[float, float | None]]] = {
    "CoT@3": {"hallucinated_tool": (14.2, 25.4), "tool_call_error": (41.2, 14.8),
                      "unavailable": (2.0, None), "decision_failure": (52.5, None)},
    "bfs": {"hallucinated_tool": (18.8, 25.5), "tool_call_error": (50.8, 31.1),
            "unavailable": (2.6, None), "decision_failure": (48.6, None)},
    "dfsdt": {"hallucinated_tool": (31.5, 38.9), "tool_call_error": (62.5, 41.0),
              "unavailable": (3.0, None), "decision_failure": (26.4, None)},
    "radagent": {"hallucinated_tool": (42.1, 53.3), "tool_call_error": (62.3, 54.0),
                 "unavailable": (3.0, None), "decision_failure": (14.8, None)},
}  # fmt: skip
"""Incidence and fix ratio in percent on ToolBench: RaD-Agent, table 3."""

NAMES = {"2wiki": "twowiki", "2wikimultihopqa": "twowiki", "arc_challenge": "arc", "hotpot": "hotpotqa"}


def figures_for(benchmark: str) -> tuple[PublishedFigure, ...]:
    """What was published for a benchmark, by the name it has here; a suffix after a colon, slash or space is left out
    (for Decision QA it may say sql or graph; without one the means of both forms are meant).

    >>> {figure.source for figure in figures_for("webshop small")} == {RADAGENT, "WebShop (NeurIPS 2022)"}
    True
    """
    folded = benchmark.casefold()
    name = re.split(r"[:/ ]", folded)[0]
    figures = [figure for figure in TABLES if figure.benchmark == NAMES.get(name, name)]
    if name == "dqa":  # by form where the name says which, else the means of both forms
        form = next((form for form in ("sql", "graph") if form in folded), "")
        figures = [figure for figure in figures if figure.group.partition(" ")[2] == form]
    return tuple(figures)
