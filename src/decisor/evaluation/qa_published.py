"""Figures that others published for questions over documents, to stand beside ours. None of them was measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PAPER = "Plan-RAG (arXiv 2410.20753)"
DEPTHS: Mapping[str, tuple[int, int, int, int, int]] = {
    "hotpotqa": (35, 939, 5848, 501, 29),
    "strategyqa": (22, 960, 1145, 101, 6),
    "arc": (2, 790, 279, 23, 1),
    "popqa": (1090, 11, 264, 34, 0),
}
"""How many of the paper's plans have depth 0, 1, 2, 3 and 4 or more (its table 2; the main question is at 0). HotpotQA
adds up to 7,352 of 7,405 questions: the paper does not say what became of the other 53."""


@dataclass(frozen=True, slots=True)
class Published:
    """Accuracy (the answer contains the gold one) and F1 in percent."""

    system: str
    benchmark: str
    acc: float
    f1: float
    source: str = PAPER


def _row(system: str, *pairs: tuple[float, float]) -> tuple[Published, ...]:
    return tuple(Published(system, name, *pair) for name, pair in zip(DEPTHS, pairs, strict=True))


PUBLISHED: tuple[Published, ...] = (
    *_row("GPT-3.5-turbo", (27.15, 37.97), (55.51, 31.58), (66.43, 78.40), (27.45, 28.28)),
    *_row("Llama3-instruct-8B", (21.35, 25.57), (48.42, 21.24), (71.40, 79.99), (21.23, 22.62)),
    *_row("RAG Llama3-8B", (25.49, 31.22), (47.35, 31.51), (73.43, 80.40), (36.52, 35.23)),
    *_row("RQ-RAG", (23.20, 20.11), (47.46, 45.57), (64.98, 64.98), (32.66, 31.68)),
    *_row("Self-RAG-7B", (33.18, 21.55), (60.5, 13.55), (67.32, 52.81), (44.31, 15.63)),
    *_row("Self-RAG-13B", (33.93, 21.83), (63.4, 21.49), (73.12, 56.74), (44.53, 16.34)),
    *_row("Plan-RAG-8B", (35.67, 39.68), (69.49, 64.03), (74.12, 81.30), (36.09, 35.20)),
)
"""The paper's table 3, without the Llama 2 rows. Its normalisation for accuracy is not stated."""
