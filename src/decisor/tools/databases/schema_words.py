"""The words of names, comments and questions, so that ``OrderLines`` and "lines of an order" meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from decisor.tools.databases.sandbox.names import words

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")
QUOTED = re.compile(r"'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|`([^`\n]{2,60})`")
STOP = words(
    """a about above according across after all along also among an and any are as ask at based be been before between
    both but by calculate can consider considering could define defined determine did display do does during each
    either ensure exact exclude excluding find following for from get give given had has have having here how i
    identify if in include including into is it its just least less let list many may me more most much must my need
    no not of on one only or order other our out over per please provide report respective respectively results
    return round rounded same should show so some such summarize table tell than that the their them then there
    these they this those through to two under until up use using was we were what when where whether which while
    who whose why will with within without would you your"""
)
"""Words of questions that say nothing of what they are about."""
INFLECTIONS = (
    ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ings", ""), ("ing", ""), ("ed", ""),
    ("es", ""), ("s", ""),
)  # fmt: skip
DERIVATIONS = (("ation", "ate"), ("er", ""), ("or", ""))


def words_of(text: str) -> Iterator[str]:
    """In order, with repetitions, by their stems.

    >>> list(words_of("tripHistory_ids")), list(words_of("the 3 cities of HTTPServers"))
    (['trip', 'histori', 'id'], ['the', '3', 'citi', 'of', 'http', 'serv'])
    """
    return (stem(part.lower()) for part in PART.findall(text))


@lru_cache(maxsize=65_536)
def name_words(name: str) -> frozenset[str]:
    """Each once. Names of columns come again and again."""
    return frozenset(words_of(name))


def question_words(text: str) -> tuple[str, ...]:
    """Those that say what it is about, each once; those within a quotation too.

    >>> question_words("Which of the drivers won the most races?")
    ('driv', 'won', 'rac')
    """
    return tuple(dict.fromkeys(stem(part) for part in map(str.lower, PART.findall(text)) if part not in STOP))


def quotations(text: str) -> tuple[str, ...]:
    """What stands in quotes: it is likely a value.

    >>> quotations("routes of 'manowars' and \\"Route A\\"")
    ('manowars', 'Route A')
    """
    return tuple(dict.fromkeys(next(filter(None, match)) for match in QUOTED.findall(text)))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A rough one: it need not be a word, only the same for its forms.

    >>> [stem(word) for word in ("cities", "city", "orders", "ordered", "rates", "rating", "bus", "address")]
    ['citi', 'citi', 'ord', 'ord', 'rat', 'rat', 'bus', 'address']
    """
    for endings in (INFLECTIONS, DERIVATIONS):
        if len(word) > 2 and not word.endswith(("ss", "us", "is")):
            for ending, rest in endings:
                if word.endswith(ending) and len(word) - len(ending) >= (2 if ending == "s" else 3):
                    word = word[: -len(ending)] + rest
                    break
    if len(word) > 3:
        word = word[:-1] if word.endswith("e") else word[:-1] + "i" if word.endswith("y") else word
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word
