"""Published figures and tables beside ours; none of them was measured here.

They stand in ``published/*.toml``, each with its source. A figure is one number of a technique, in percent except
ranks and seconds; a table is printed beside lines that are made from our outcomes. Names of techniques are ours if we
have the technique, with the model it ran on in brackets. A result that a paper prints only as a picture has no line;
``note`` says so.

The ``group`` of a figure for Decision QA is its scenario and form; without a form it is the mean of both.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files

from pydantic import TypeAdapter

from decisor.lab.benchmark import Outcome

NAMES = {"2wiki": "twowiki", "2wikimultihopqa": "twowiki", "arc_challenge": "arc", "hotpot": "hotpotqa"}
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
class PublishedFigure:
    """A figure that others published."""

    benchmark: str
    technique: str
    metric: str
    value: float
    source: str
    group: str = ""
    """Part of the benchmark that it is about, '' for all of it."""


@dataclass(frozen=True, slots=True)
class PaperLine:
    """A line of a paper table."""

    cells: tuple[str, ...]
    """Texts that are shown; the first one is the name of the line."""
    published: bool = False


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of a paper with our figures beside the printed ones."""

    title: str
    source: str
    """The paper and the number of the table or figure."""
    head: tuple[str, ...]
    lines: tuple[PaperLine, ...]
    note: str = ""
    """How to read our figures beside the published ones."""


@dataclass(frozen=True)
class FigureTable:
    """Figures of one source as ``published/*.toml`` has them."""

    source: str
    columns: tuple[str, ...]
    """Benchmark, metric and group of each column, in one text; most have no group."""
    values: dict[str, tuple[float, ...]]
    """A value for each column, by technique; NaN means that nothing was published."""


@dataclass(frozen=True)
class PublishedLine:
    """A printed line of a table."""

    cells: tuple[str | float, ...]
    """Name of the line, then texts, or numbers in percent."""
    about: str = ""
    """The benchmark or scenario that it is about; '' if the table has no other."""


@dataclass(frozen=True)
class PublishedTable:
    """A table as a paper prints it."""

    title: str
    source: str
    head: tuple[str, ...]
    note: str = ""
    lines: tuple[PublishedLine, ...] = ()


@dataclass(frozen=True)
class Published:
    """Content of one file of ``published``."""

    figures: tuple[FigureTable, ...] = ()
    tables: Mapping[str, PublishedTable] | None = None


@cache
def read_published() -> tuple[tuple[PublishedFigure, ...], Mapping[str, PublishedTable]]:
    """Read all published figures, and all published tables by their names in the files."""
    figures: list[PublishedFigure] = []
    tables: dict[str, PublishedTable] = {}
    # Sorted by name, so that reports list sources in the same order everywhere.
    for path in sorted(files("decisor.lab").joinpath("published").iterdir(), key=lambda path: path.name):
        content = TypeAdapter(Published).validate_python(tomllib.loads(path.read_text("utf-8")))
        tables |= content.tables or {}
        for table in content.figures:
            for technique, values in table.values.items():
                for column, value in zip(table.columns, values, strict=True):
                    benchmark, metric, *group = column.split(" ", 2)
                    # TOML has no null; nan stands where the paper has no figure.
                    if not math.isnan(value):
                        figures.append(
                            PublishedFigure(benchmark, technique, metric, value, table.source, "".join(group))
                        )
    return tuple(figures), tables


def figures_for(benchmark: str) -> tuple[PublishedFigure, ...]:
    """Return the published figures of a benchmark, by its name in a report.

    For Decision QA the name may say sql or graph; without one the means of both forms are meant.

    >>> {figure.source for figure in figures_for("webshop small")} >= {"WebShop (NeurIPS 2022)"}
    True
    """
    name = normalize_benchmark_name(benchmark)
    form = next((form for form in ("sql", "graph") if form in benchmark.casefold()), "")
    return tuple(
        figure
        for figure in read_published()[0]
        if figure.benchmark == name and (name != "dqa" or figure.group.partition(" ")[2] == form)
    )


def normalize_benchmark_name(benchmark: str) -> str:
    """Return the name of a benchmark here for its name in a report, which may go on after a colon, slash or space.

    >>> normalize_benchmark_name("2Wiki:dev"), normalize_benchmark_name("dqa form=graph")
    ('twowiki', 'dqa')
    """
    name = re.split(r"[:/ ]", benchmark.casefold())[0]
    return NAMES.get(name, name)


def figures_of_scenario(scenario: str, form: str) -> tuple[PublishedFigure, ...]:
    """Return the figures for a scenario and form of Decision QA, or the mean if none by form was published.

    >>> [(figure.technique, figure.value) for figure in figures_of_scenario("building", "graph")]
    [('single_rag', 3.0), ('iter_rag', 40.6), ('plan_rag', 49.5), ('plan_rag replan=no', 44.1)]
    """
    figures = [*figures_for("dqa"), *figures_for(f"dqa {form}")]  # one by form takes the place of the mean
    of_scenario = {figure.technique: figure for figure in figures if figure.group.split(" ")[0] == scenario}
    return tuple(of_scenario.values())


def tables_for(benchmark: str, sides: Sides) -> tuple[PaperTable, ...]:
    """Return the paper tables of a benchmark, by its name in reports.

    Empty if it has no tables, or none for which our outcomes have data.
    """
    name = normalize_benchmark_name(benchmark)
    if name not in TABLE_MAKERS:
        return ()
    module, _, function = TABLE_MAKERS[name].partition(":")
    make: Callable[[str, Sides], Sequence[PaperTable]] = getattr(import_module(module), function)
    # A table with printed lines alone compares nothing.
    return tuple(table for table in make(benchmark, sides) if any(not line.published for line in table.lines))


def published_table(name: str) -> PublishedTable:
    return read_published()[1][name]


def make_paper_table(name: str, own: Iterable[PaperLine], about: Collection[str] = ()) -> PaperTable:
    """Return a published table with our lines before its own. about: the benchmarks or scenarios of our lines.

    >>> make_paper_table("qa_attribution", [], ["popqa"]).lines[0].cells
    ('reasoning_dag (Llama-3-8B)', '76 %', '12 %', '12 %')
    """
    table = published_table(name)
    printed = [
        PaperLine(tuple(cell if isinstance(cell, str) else f"{cell:g} %" for cell in line.cells), published=True)
        for line in table.lines
        if not line.about or line.about in about
    ]
    return PaperTable(table.title, table.source, table.head, (*own, *printed), table.note)


def make_own_line(name: str, *cells: str) -> PaperLine:
    return PaperLine((name, *cells))


def format_share_of(part: int, whole: int) -> str:
    """Format a part of a whole in percent, with the size of the whole; empty for nothing.

    >>> format_share_of(2, 8), format_share_of(0, 0)
    ('25.0 % of 8', '')
    """
    return f"{100 * part / whole:.1f} % of {whole}" if whole else ""
