"""Tables and figures of papers, made from outcomes, with what the paper printed beside ours in the same table.

A benchmark's tables are made by ``tables`` in the module ``paper_tables`` of its room. A line says whether it was
published; what a paper prints only as a picture is said in ``note`` and has no line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from decisor.benchmarks.paper_figures import name_of
from decisor.benchmarks.protocol import BENCHES
from decisor.outcome import Outcome

Sides = Mapping[str, Sequence[Outcome]]
"""The outcomes of each technique, by what a report calls it."""


@dataclass(frozen=True, slots=True)
class Line:
    """``cells`` as they are shown, the first the name of the line."""

    cells: tuple[str, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One table. ``source``: the paper and the number of the table or figure; ``note``: how to read ours beside it."""

    title: str
    source: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    note: str = ""


def tables_for(benchmark: str, sides: Sides) -> tuple[PaperTable, ...]:
    """Of a benchmark, by the name it has in reports; none where it has no tables, or none that ours have data for."""
    name = name_of(benchmark)
    module = f"{BENCHES[name].rpartition('.')[0]}.paper_tables" if name in BENCHES else ""
    if not module or find_spec(module) is None:
        return ()
    make: Callable[[str, Sides], Sequence[PaperTable]] = import_module(module).tables
    return tuple(table for table in make(benchmark, sides) if any(not line.published for line in table.lines))


def ours(name: str, *cells: str) -> Line:
    return Line((name, *cells))


def published(name: str, *cells: str) -> Line:
    return Line((name, *cells), published=True)


def share_of(part: int, whole: int) -> str:
    """
    >>> share_of(2, 8), share_of(0, 0)
    ('25.0 % of 8', '')
    """
    return f"{100 * part / whole:.1f} % of {whole}" if whole else ""
