"""What others published for the sets of questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from decisor.benchmarks.paper_figures import PublishedFigure, figure_table

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


def of_sets(names: Sequence[str], source: str, metrics: str, rows: str) -> Iterator[PublishedFigure]:
    """From a table of several sets, which stand side by side with the same metrics."""
    columns = " ".join(f"{name}/{metric}" for name in names for metric in metrics.split())
    for one in figure_table("", source, columns, rows):
        name, _, metric = one.metric.partition("/")
        yield PublishedFigure(name, one.technique, metric, one.value, source)


FIGURES: tuple[PublishedFigure, ...] = (
    *of_sets(("hotpotqa", "strategyqa", "arc", "popqa"), "Plan*RAG (arXiv 2410.20753), table 3", "acc f1", OPEN_DOMAIN),
    *figure_table("popqa", "Plan*RAG, table 4", "llm_eval",
                  "Self-RAG 7B: 44.83\nSelf-RAG 13B: 46.06\nreasoning_dag (Llama-3-8B): 42.74"),
    *of_sets(("hotpotqa", "twowiki", "popqa"), "FlashRAG's README, Llama-3-8B, E5, top 5", "f1", FLASHRAG),
    *figure_table("hotpotqa", "LLMCompiler (ICML 2024), tables 1-2, GPT-3.5, 1,500 comparison questions",
                  "accuracy seconds",
                  "react: 62.47 7.12\nOpenAI parallel calls: 62.05 4.42\nLLMCompiler: 62.00 3.95", "comparison"),
    *figure_table("parallelqa", "LLMCompiler (ICML 2024), tables 1-2, GPT-4-turbo", "accuracy seconds",
                  "react: 89.09 35.90\nOpenAI parallel calls: 87.32 19.29\nLLMCompiler: 89.38 16.69"),
)  # fmt: skip

DEPTHS: Mapping[str, tuple[float, ...]] = {
    "hotpotqa": (0.5, 12.8, 79.5, 6.8, 0.4),
    "strategyqa": (0.9, 42.9, 51.2, 4.5, 0.3),
    "arc": (0.1, 72.1, 25.5, 2.1, 0.0),
    "popqa": (77.9, 0.8, 18.9, 2.4, 0.0),
}
"""Per cent of plans of depth 0, 1, 2, 3, 4 or more: Plan*RAG, table 2."""
