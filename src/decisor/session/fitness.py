"""Which techniques an LM is enough for, by what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from decisor.lms.measure import Measurement
from decisor.techniques import TECHNIQUES, asks_lm, kind_of

Fit = Literal["enough", "tight", "unknown", "not"]
LONG_PROMPTS, SHORT_PROMPTS = 8_192, 2_048
"""Tokens of context for a technique whose prompt holds the steps so far, and for one that reads little."""
LEAST_SHARE = 4
"""With less than one in so many of these tokens not even the tools and the question have room."""
SHORT = ("vanilla", "rag", "single_rag", "self_ask")
WANT_TOKENS = ("self_rag", "rq_rag")
"""These read the log-probabilities of control tokens that only fine-tuned weights know."""
CALLS, REPLY_TOKENS = 8, 250
"""Of an ordinary question of plan_rag."""


@dataclass(frozen=True, slots=True)
class Fitness:
    """``why`` says what is missing, '' where nothing is."""

    technique: str
    fit: Fit
    why: str = ""


def fitness(measurement: Measurement) -> list[Fitness]:
    """Of every technique that asks an LM."""
    return [fit_of(name, measurement) for name in TECHNIQUES if name != "auto" and asks_lm(kind_of(name))]


def fit_of(technique: str, measurement: Measurement) -> Fitness:
    context = measurement.context
    if technique in WANT_TOKENS:
        if measurement.heeds.get("logprobs") != "yes":
            return Fitness(technique, "not", "it gives no log-probabilities")
        return Fitness(technique, "unknown", "it needs weights that were fine-tuned for it")
    need = SHORT_PROMPTS if technique in SHORT else LONG_PROMPTS
    if not context:
        return Fitness(technique, "unknown", "it does not tell its context: say context=TOKENS with --lm")
    if context >= need:
        return Fitness(technique, "enough")
    if context * LEAST_SHARE >= need:
        return Fitness(technique, "tight", "records will be left out of long prompts")
    return Fitness(technique, "not", f"its prompts want {need:,} tokens of context")


def seconds_of_a_question(measurement: Measurement) -> float:
    """About how long plan_rag takes with it; 0 where its speed is not known."""
    return CALLS * (measurement.seconds + REPLY_TOKENS / measurement.speed) if measurement.speed else 0.0


def by_fit(all_of_them: list[Fitness]) -> Mapping[tuple[Fit, str], list[str]]:
    """The techniques, by how they fit and why."""
    groups: dict[tuple[Fit, str], list[str]] = {}
    for one in all_of_them:
        groups.setdefault((one.fit, one.why), []).append(one.technique)
    return groups
