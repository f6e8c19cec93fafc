"""What others published for ToolBench. CoT@3 counts as right where any of three chains is: ours is ``found`` of
``cot chains=3`` where the bench has ``every_answer=yes``. What StableToolBench calls DFS is ToolLLM's DFSDT, which goes
back two levels."""

from __future__ import annotations

from collections.abc import Mapping

from decisor.benchmarks.paper_figures import RADAGENT, PublishedFigure, figure_table

FIGURES: tuple[PublishedFigure, ...] = (
    *figure_table(
        "toolbench",
        RADAGENT,
        "accuracy",
        "cot: 16.60\nCoT@3: 31.20\nreflexion: 26.60\nbfs: 38.00\ndfs: 45.58\ndfsdt: 50.20\n"
        "radagent preset=paper: 61.92",
    ),
    *figure_table(
        "toolbench",
        RADAGENT,
        "preference_rank",
        "CoT@3: 3.45\nreflexion: 3.48\nbfs: 3.25\ndfsdt: 2.91\n"
        "radagent preset=paper select=random: 3.24\nradagent preset=paper: 2.19",
    ),
    *figure_table(
        "toolbench",
        "ToolLLM (ICLR 2024), ChatGPT",
        "accuracy win_rate",
        "ReACT: 40.2 -\ndfsdt back=2 calls=200: 64.8 64.3",
    ),
    *figure_table(
        "toolbench", "StableToolBench's README, GPT-3.5-0613", "sopr", "cot: 46.6\ndfsdt back=2 calls=200: 63.0"
    ),
)

TOOL_FAILURES: Mapping[str, Mapping[str, tuple[float, float | None]]] = {
    "CoT@3": {"hallucinated_tool": (14.2, 25.4), "tool_call_error": (41.2, 14.8),
                      "unavailable": (2.0, None), "decision_failure": (52.5, None)},
    "bfs": {"hallucinated_tool": (18.8, 25.5), "tool_call_error": (50.8, 31.1),
            "unavailable": (2.6, None), "decision_failure": (48.6, None)},
    "dfsdt": {"hallucinated_tool": (31.5, 38.9), "tool_call_error": (62.5, 41.0),
              "unavailable": (3.0, None), "decision_failure": (26.4, None)},
    "radagent preset=paper": {"hallucinated_tool": (42.1, 53.3), "tool_call_error": (62.3, 54.0),
                 "unavailable": (3.0, None), "decision_failure": (14.8, None)},
}  # fmt: skip
"""Incidence and fix ratio in percent on ToolBench: RaD-Agent, table 3."""
