"""Tables and figures of papers beside ours: published figures by benchmark, and tables made from outcomes.

Names of techniques are ours if we have the technique, with the model it ran on in brackets. Values are in percent
except ranks and seconds. A line of a table says whether it was published; a result that a paper prints only as a
picture is mentioned in ``note`` and has no line. None of the published figures was measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from decisor.lab.benchmark import Outcome
from decisor.lab.paper_figures import (
    normalize_benchmark_name,
)

TABLE_MAKERS = {
    "dqa": "decisor.lab.dqa.analysis:make_dqa_paper_tables",
    "toolbench": "decisor.lab.toolbench.bench:make_toolbench_paper_tables",
    **dict.fromkeys(
        ("hotpotqa", "twowiki", "musique", "strategyqa", "arc", "popqa", "parallelqa"),
        "decisor.lab.qa.score:make_qa_paper_tables",
    ),
}
"""The function that makes the paper tables of a benchmark, imported when it is called."""


Sides = Mapping[str, Sequence[Outcome]]
"""The outcomes of each technique, by what a report calls it."""


@dataclass(frozen=True, slots=True)
class PaperLine:
    """A line of a paper table. cells: the texts that are shown, the first one is the name of the line."""

    cells: tuple[str, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of a paper with our figures beside the printed ones. source: the paper and the number of the table or
    figure. note: how to read our figures beside the published ones.
    """

    title: str
    source: str
    head: tuple[str, ...]
    lines: tuple[PaperLine, ...]
    note: str = ""


def tables_for(benchmark: str, sides: Sides) -> tuple[PaperTable, ...]:
    """Return the paper tables of a benchmark, by its name in reports.

    Empty if it has no tables, or none for which our outcomes have data.
    """
    name = normalize_benchmark_name(benchmark)
    if name not in TABLE_MAKERS:
        return ()
    module, _, function = TABLE_MAKERS[name].partition(":")
    make: Callable[[str, Sides], Sequence[PaperTable]] = getattr(import_module(module), function)
    return tuple(table for table in make(benchmark, sides) if any(not line.published for line in table.lines))


def make_own_line(name: str, *cells: str) -> PaperLine:
    return PaperLine((name, *cells))


def make_published_line(name: str, *cells: str) -> PaperLine:
    return PaperLine((name, *cells), published=True)


def format_share_of(part: int, whole: int) -> str:
    """Format a part of a whole in percent, with the size of the whole; empty for nothing.

    >>> format_share_of(2, 8), format_share_of(0, 0)
    ('25.0 % of 8', '')
    """
    return f"{100 * part / whole:.1f} % of {whole}" if whole else ""
