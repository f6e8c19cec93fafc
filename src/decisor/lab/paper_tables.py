"""Tables and figures of papers beside ours: published figures by benchmark, and tables made from outcomes.

Names of techniques are ours if we have the technique, with the model it ran on in brackets. Values are in percent
except ranks and seconds. A line of a table says whether it was published; a result that a paper prints only as a
picture is mentioned in ``note`` and has no line. None of the published figures was measured here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from decisor.lab.benchmark import Outcome

RADAGENT = "RaD-Agent (arXiv 2308.12519), tables 1-2, GPT-3.5-turbo-0613, 100 calls a case"
TABLE_MAKERS = {
    "dqa": "decisor.lab.dqa.analysis:make_dqa_paper_tables",
    "toolbench": "decisor.lab.toolbench.bench:make_toolbench_paper_tables",
    **dict.fromkeys(
        ("hotpotqa", "twowiki", "musique", "strategyqa", "arc", "popqa", "parallelqa"),
        "decisor.lab.qa.score:make_qa_paper_tables",
    ),
}
"""The function that makes the paper tables of a benchmark, imported when it is called."""
NAMES = {"2wiki": "twowiki", "2wikimultihopqa": "twowiki", "arc_challenge": "arc", "hotpot": "hotpotqa"}


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure that others published. group: the part of the benchmark that it is about, empty for all of it."""

    benchmark: str
    technique: str
    metric: str
    value: float
    source: str
    group: str = ""


def parse_figure_table(
    benchmark: str, source: str, metrics: str, rows: str, group: str = ""
) -> tuple[PublishedFigure, ...]:
    """Parse figures from a table of lines ``technique: value value ...`` under its metrics.

    ``-`` means that nothing was published.

    >>> parse_figure_table("b", "s", "acc f1", "cot: 6 -")
    (PublishedFigure(benchmark='b', technique='cot', metric='acc', value=6.0, source='s', group=''),)
    """
    table = []
    for line in rows.strip().splitlines():
        technique, _, values = line.partition(":")
        for metric, value in zip(metrics.split(), values.split(), strict=True):
            if value != "-":
                table.append(PublishedFigure(benchmark, technique.strip(), metric, float(value), source, group))
    return tuple(table)


def figures_for(benchmark: str) -> tuple[PublishedFigure, ...]:
    """Return the published figures of a benchmark, by its name here.

    A suffix after a colon, slash or space is left out; for Decision QA it may say sql or graph, and without one the
    means of both forms are meant.

    >>> {figure.source for figure in figures_for("webshop small")} == {RADAGENT, "WebShop (NeurIPS 2022)"}
    True
    """
    text = benchmark.casefold()
    name = normalize_benchmark_name(benchmark)
    own = [figure for figure in figures_of_room(name) if figure.benchmark == name]
    if name == "dqa":  # by form where the name says which, else the means of both forms
        form = next((form for form in ("sql", "graph") if form in text), "")
        own = [figure for figure in own if figure.group.partition(" ")[2] == form]
    return tuple(own)


def normalize_benchmark_name(benchmark: str) -> str:
    """Return the name of a benchmark here for its name in a report.

    >>> normalize_benchmark_name("2Wiki:dev"), normalize_benchmark_name("dqa form=graph")
    ('twowiki', 'dqa')
    """
    name = re.split(r"[:/ ]", benchmark.casefold())[0]
    return NAMES.get(name, name)


def figures_of_room(name: str) -> tuple[PublishedFigure, ...]:
    """Return all published figures of a benchmark."""
    from decisor.lab.paper_figures import FIGURES

    return tuple(figure for figure in FIGURES if figure.benchmark == name)


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
