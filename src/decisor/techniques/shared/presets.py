"""What ``preset=paper`` sets: a technique as its paper has it, and where ours still differs.

A setting that is given beside the preset counts before it. ``radagent`` has presets of its own, as fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from decisor.errors import SetupError


@dataclass(frozen=True)
class PaperPreset:
    """The settings of a paper, and its parts that they do not set."""

    settings: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    """Prompts of ours that the paper has nothing of, by the names of ``decisor prompts``."""
    deviations: tuple[str, ...] = field(default=())
    """Differences that stay, and choices where the paper says nothing."""


ANALYST = ("shared.analyst.HOW_TO_WORK",)
OWN_WORDS = "The prompts have the paper's parts in our words, not its text."
BARE_SCHEMA = 'The bare schema without examples, row counts and joins is a setting of the data: -b "dqa schema=bare".'
PAPER_PRESETS: Mapping[str, PaperPreset] = {
    "plan_rag": PaperPreset(
        {"evidence": "free", "temperature": "0"},
        ANALYST,
        (
            OWN_WORDS,
            BARE_SCHEMA,
            "A reply that cannot be read goes back to the LLM with what was wrong; the release ends there.",
            "Queries run in the sandbox: only reading, with limits on rows and time.",
        ),
    ),
    "iter_rag": PaperPreset(
        {"evidence": "free", "temperature": "0"},
        ANALYST,
        (OWN_WORDS, BARE_SCHEMA, "A reply that cannot be read goes back to the LLM with what was wrong."),
    ),
    "single_rag": PaperPreset(
        {"evidence": "free", "again": "no", "temperature": "0"},
        (),
        (OWN_WORDS, BARE_SCHEMA, "The prompt for the query says how to write it; the paper's says less."),
    ),
    "reasoning_dag": PaperPreset(
        {
            "critic": "yes",
            "relevance": "one",
            "dynamic": "always",
            "aggregator": "always",
            "schedule": "levels",
            "literal": "yes",
        },
        (),
        (
            OWN_WORDS,
            "The plan is JSON with ids and needs, not a list of pairs of texts for eval().",
            "The paper gives no k, the tokens of a chunk: ours is a sentence (chunk=K changes it).",
            "Of a document that does not help, the query is rewritten twice at most; the paper gives no limit.",
            "One LLM for all parts, unless planner_llm and its like name others; the paper's planner is GPT-4o.",
        ),
    ),
    "furepa": PaperPreset(
        {"assess": "before"},
        (),
        (
            "The paper's text was not to be had: rounds, samples, passages kept and examples are our choice.",
            "Temperature 0.2 raised by 0.8, or (temperature=sampled) 1.0 by 0.5: the paper has both, not when.",
            "The scorer is trained on a made-up encyclopaedia; decisor train query-scorer trains one on your corpus.",
            "BM25 stands in for the retriever TART.",
        ),
    ),
}
RADAGENT_DEVIATIONS = (
    "tau is 173.72, as r: the paper gives the temperature no number, and the release has one parameter for both.",
    "A comparison whose two orders disagree is a half for each (equation 6); the judge may also call two equal.",
    "Equal ratings: the earlier sequence is taken.",
    "Only sequences with an answer may be chosen; the release may choose one that gave up.",
)


def find_deviations(name: str) -> tuple[str, ...]:
    """Return where the paper's preset of a technique still differs from the paper; empty for a technique without.

    >>> len(find_deviations("radagent")) > 0, find_deviations("exact")
    (True, ())
    """
    if name == "radagent":
        return RADAGENT_DEVIATIONS
    return PAPER_PRESETS[name].deviations if name in PAPER_PRESETS else ()


def get_paper_preset(name: str, preset: str) -> PaperPreset:
    """Return the preset of a technique. Raise SetupError if it has none of that name."""
    if name not in PAPER_PRESETS:
        raise SetupError(f"{name} has no preset; {', '.join(PAPER_PRESETS)} and radagent have.")
    if preset != "paper":
        raise SetupError(f"preset of {name} is paper, not {preset!r}.")
    return PAPER_PRESETS[name]
