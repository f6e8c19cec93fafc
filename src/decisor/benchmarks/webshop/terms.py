"""Terms of a text as Lucene's English analyzer makes them: words, lower case, no stop words, Porter's stems.

Words are those of the Unicode standard's annex 29, near enough: a point or an apostrophe stays between two letters or
two digits, a colon between letters, a comma or semicolon between digits, an underscore anywhere; a pictograph or a
character of Chinese or Japanese stands alone. Checked against Lucene 10.5 (docs/measurements/search.md).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from decisor.extras import lacks

HAN = "\u3040-\u309f\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714"
    "\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)  # Unicode's Extended_Pictographic
LETTER, DIGIT = rf"[^\W\d_{HAN}]", "[0-9]"
INNER = rf"(?<={LETTER})[.:'\u2018\u2019\u00b7\uff1a](?={LETTER})|(?<={DIGIT})[.,;'\u2018\u2019](?={DIGIT})"
WORD = re.compile(
    rf"{PICTOGRAPH}\ufe0f?|[{HAN}]|(?:[^\W\u00b2\u00b3\u00b9\u00bc-\u00be\u2044\u2070-\u2089\u2150-\u218b{HAN}]|{INNER})+"
)
CHUNK = re.compile(rf"{PICTOGRAPH}\ufe0f?|\w+(?:[.:'\u2018\u2019\u00b7\uff1a,;]\w+)*")
STOPPED = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOP_WORDS = frozenset(STOPPED.split())
LONGEST = 255
VOWELS_THEN_OTHERS = re.compile(r"[aeiouy]+[^aeiouy]+")


def terms(text: str) -> list[str]:
    """
    >>> terms("The Women's shoes, size 8.5 and US:8")
    ['women', 'shoe', 'size', '8.5', 'us', '8']
    """
    words: list[str] = []
    for chunk in CHUNK.findall(text):
        if chunk.isascii() and chunk.isalnum():  # most are; only the others need the whole rule
            words.append(term(chunk))
        else:
            words += map(term, WORD.findall(chunk))
    return [one for one in words if one]


@lru_cache(maxsize=200_000)
def term(word: str) -> str:
    """'' for a stop word.

    >>> [term(word) for word in ("technology", "assembly", "incredibly", "doubly", "happily", "US")]
    ['technolog', 'assembl', 'incred', 'doubli', 'happili', 'us']
    """
    word = re.sub(r"['\u2019\uff07][sS]$", "", word)[:LONGEST].lower()
    if word in STOP_WORDS or not word.strip("_"):
        return ""
    return word if len(word) <= 2 else with_lucene_ending(_stemmer().stemWord(word))


def with_lucene_ending(stem: str) -> str:
    """With the two endings that Porter's own program, and Lucene's, treat otherwise than his paper: -bli and -logi."""
    if stem.endswith("ibli") and measure(stem[:-4]) > 1:
        return stem[:-4]
    if stem.endswith(("bli", "logi")) and measure(stem.removesuffix("bli").removesuffix("logi")) > 0:
        return stem[:-1]
    return stem


def measure(stem: str) -> int:
    """Porter's m: how many runs of vowels are followed by consonants."""
    return len(VOWELS_THEN_OTHERS.findall(stem))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise lacks("WebShop's search needs a stemmer", "benchmarks") from error
    return Stemmer.Stemmer("porter")
