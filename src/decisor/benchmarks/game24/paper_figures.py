"""What others published for Game of 24. CoT@3 counts as right where any of three chains is: ours is ``found`` of
``cot chains=3``."""

from __future__ import annotations

from decisor.benchmarks.paper_figures import RADAGENT, PublishedFigure, figure_table

FIGURES: tuple[PublishedFigure, ...] = (
    *figure_table(
        "game24",
        RADAGENT,
        "accuracy",
        "cot: 6\nCoT@3: 7\nreflexion: 7\nbfs: 11\ndfs: 14\ndfsdt: 29\nradagent preset=paper: 43",
    ),
    *figure_table(
        "game24",
        "Tree of Thoughts (NeurIPS 2023), GPT-4",
        "accuracy",
        "cot (GPT-4): 4.0\nCoT-SC@100 (GPT-4): 9.0\ntot keep=1 (GPT-4): 45\ntot (GPT-4): 74",
    ),
)
