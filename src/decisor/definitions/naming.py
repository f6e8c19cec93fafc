"""Names that can stand in a section of the definitions file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from decisor.definitions.format import Dimension, Entity, Join, Metric

Named = TypeVar("Named", Metric, Dimension, Entity, Join)


def name_of(text: str) -> str:
    """A name that can stand in a section.

    >>> name_of("net revenue (EUR)"), name_of("7 days")
    ('net_revenue_EUR', '_7_days')
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "one"
    return f"_{name}" if name[0].isdigit() else name


def named_once(several: Iterable[Named]) -> list[Named]:
    """Names that come again get a number."""
    names: set[str] = set()
    whole: list[Named] = []
    for one in several:
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name}_{number}", number + 1
        names.add(name)
        whole.append(one if name == one.name else replace(one, name=name))
    return whole
