"""What others published for WebShop. CoT@3 counts as right where any of three chains is: ours is ``best_reward``
of ``cot chains=3``."""

from __future__ import annotations

from decisor.benchmarks.paper_figures import RADAGENT, PublishedFigure, figure_table

FIGURES: tuple[PublishedFigure, ...] = (
    *figure_table(
        "webshop",
        RADAGENT,
        "reward",
        "cot: 56.23\nCoT@3: 56.45\nreflexion: 57.21\nbfs: 50.20\ndfs: 55.60\ndfsdt: 57.25\n"
        "radagent preset=paper: 59.36",
    ),
    *figure_table(
        "webshop",
        "WebShop (NeurIPS 2022)",
        "reward accuracy",
        "people: 82.1 59.6\nrule: 45.6 9.6\nimitation and reinforcement: 62.4 28.7",
    ),
)
