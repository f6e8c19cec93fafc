"""Fictional names, readable and each given once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

HEADS = "bel cor dun esk fal gar hol ist jor kel lor mar nor oss per quel ros sol tar ul vel wen yar zan"
MIDDLES = " a en i or um est ev al"
PLACES = "by dale fell ford gate ham haven holm mere mouth port stead thorpe wick"
REALMS = "ia mark land ria mora stan tania wen"
GOODS = (
    "grain timber iron coal clay wool flax hides salt copper tin lead tools furniture glass cloth paper dye bricks "
    "steel rope sails barrels lamps clocks boots bread beer cheese candles soap ink books pottery nails wagons "
    "engines pumps saddles carpets"
)
KINDS = "fine plain red blue old northern southern eastern western royal rough light heavy dry fresh"


def places(count: int, rng: np.random.Generator) -> list[str]:
    """``count`` names of trading nodes, such as velmere: letters and _ only."""
    return _some(("".join(parts) for parts in _crossed(HEADS, MIDDLES, PLACES)), count, rng)


def realms(count: int, rng: np.random.Generator) -> list[str]:
    """``count`` names of countries, such as Corria."""
    return _some(("".join(parts).capitalize() for parts in _crossed(HEADS, MIDDLES, REALMS)), count, rng)


def goods(count: int) -> list[str]:
    """``count`` names of goods, the plain ones first.

    >>> goods(2), goods(41)[-1]
    (['grain', 'timber'], 'fine_grain')
    """
    plain = GOODS.split()
    names = [*plain, *(f"{kind}_{name}" for kind, name in product(KINDS.split(), plain))]
    return _stretched(names, count)


def _crossed(*parts: str) -> Iterator[tuple[str, ...]]:
    return product(*(part.split(" ") for part in parts))


def _some(names: Iterator[str], count: int, rng: np.random.Generator) -> list[str]:
    pool = list(dict.fromkeys(names))
    rng.shuffle(pool)
    return _stretched(pool, count)


def _stretched(names: Sequence[str], count: int) -> list[str]:
    """The names, then again with _b, _c, ..."""
    rounds = -(-count // len(names))
    return [*names, *(f"{name}_{_letters(turn)}" for turn in range(1, rounds) for name in names)][:count]


def _letters(number: int) -> str:
    """
    >>> _letters(1), _letters(26)
    ('b', 'ba')
    """
    head, tail = divmod(number, 26)
    return (_letters(head) if head else "") + chr(ord("a") + tail)
