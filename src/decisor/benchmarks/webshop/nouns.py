"""The nouns of a product's name, for WebShop's reward: by spaCy where its English model is installed, as the release
does it, else by a rule of thumb. A result says which.

The rule: names of products are written with capitals, and almost every word with one is part of a proper name; so
these words count, but for those of closed classes. Where a name has none, all its words count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

Nouns = Callable[[str], Sequence[str]]
MODELS = ("en_core_web_sm", "en_core_web_lg")
KINDS = ("PNOUN", "NOUN", "PROPN")
WORD = re.compile(r"\b[^\W\d_]{2,}")
CLOSED_CLASSES = (
    "a about after all also an and any are as at be before both but by can each every few for from has have how if in "
    "into is it its more most no non not of off on one only or other our out over per so some such than that the "
    "their them these they this those through to under up use used very via was we when which while who will with "
    "without you your"
)
CLOSED = frozenset(CLOSED_CLASSES.split())


@cache
def nouns() -> tuple[str, Nouns]:
    """What finds them: its name (spacy:MODEL or heuristic), and the function."""
    model = _model()
    if model is None:
        return "heuristic", by_rule

    @lru_cache(maxsize=20_000)
    def by_model(text: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in model(text) if token.pos_ in KINDS)

    return f"spacy:{model.meta['name']}", by_model


def _model() -> Any:
    try:
        import spacy
    except ImportError:
        return None
    for name in MODELS:
        if spacy.util.is_package(name):
            return spacy.load(name)
    return None


@lru_cache(maxsize=20_000)
def by_rule(text: str) -> tuple[str, ...]:
    """
    >>> by_rule("Rubber Boots for Men, 2 Pack, with wide Calf"), by_rule("rubber boots for men")
    (('rubber', 'boots', 'men', 'pack', 'calf'), ('rubber', 'boots', 'men'))
    """
    words = [word for word in WORD.findall(text) if word.lower() not in CLOSED]
    return tuple(word.lower() for word in [word for word in words if word[0].isupper()] or words)
