"""The tables of the papers as data: printed figures, and the run and measure for each cell.

A paper is one file of ``lab/published``. Table, columns and rows give the subject of a cell (``Subject``): the row's
word counts before the column's, and that before the table's. So a row mostly names a technique, and a column a part of
the benchmark. Nothing here was measured by us.

The figures of a cell are measured from outcomes of a run store, and the sizes of Decision QA from its files. A measure
is a word, some with another behind it:

    accuracy             share of right answers
    mean METRIC          mean of a metric, in percent
    average COUNT        mean of a count; sum COUNT: its sum
    kind SR|MR|none      accuracy on the questions that IterRAG made one, several or no retrievals for
    kind_count ...       number of these questions
    missed any|all       share of questions whose needed values were not all, or not at all, queried
    failure CLASS        share of questions that failed so
    replans N|total      number of questions with so many replans (4: or more), and accuracy on them
    replan KIND          share of the replanned questions that had a replan of the kind
    depth N              number and share of questions with a plan of that depth (4: or more)
    documents one|several  share of the sub-queries with documents that kept one, or several
    incidence CLASS      share of judged runs that met a failure of calls; fix CLASS: share of these that passed
    by_calls N           accuracy had each run been cut at so many calls
    tenth N              accuracy on a tenth of the cases, by the rating of another technique's answer
    rank                 mean preference rank, which a judge gave
    size WHAT            questions, nodes, edges or rows of Decision QA, from its files

Shares and accuracies are in percent. A figure of several benchmarks, such as the two forms of Decision QA, is the mean
over them, on the cases that were run in each.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from decisor.errors import SetupError
from decisor.lab.benchmark import Outcome
from decisor.lab.dqa.bench import find_retrieval_kinds, retrieval_kind_of
from decisor.lab.dqa.worlds import SCENARIOS, Scenario, read_dqa_questions, read_dump
from decisor.lab.statistics import (
    COUNTED,
    METRIC_ROUNDS,
    Interval,
    bootstrap,
    mean,
    metric_by_case,
    share_over_cases,
    sort_into_tenths,
    tries_by_case,
    was_right_by,
    wilson,
)
from decisor.lab.toolbench.bench import compute_incidences

PAPERS = ("planrag", "planrag-early", "radagent", "furepa", "plan-rag")
PublishedCell = int | float | tuple[float, float] | str
"""A number, whole if the paper prints it so; a count and a share in percent; '' if the paper prints nothing there."""
CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Subject:
    """Subject of a cell, or of a row or column of cells. '' and () leave it open."""

    technique: str = ""
    """As an entry of a suite: a name with settings."""
    benches: tuple[str, ...] = ()
    """Entries of a suite whose outcomes count together: the mean over them."""
    group: str = ""
    """Group of cases, such as a scenario; '' means all."""
    measure: str | None = None
    """What is measured, see ``measures``; '' means that nothing of ours stands there."""
    model: str = ""
    """Pattern of the names of LLMs that belong here; '' means any."""
    never: str = ""
    """What it needs that nobody had who ran it here."""
    judge: bool = False
    """Whether a judging LLM is needed."""


@dataclass(frozen=True)
class PaperColumn(Subject):
    """A column of a table."""

    __pydantic_config__ = CLOSED
    head: str = ""


@dataclass(frozen=True)
class PaperRow(Subject):
    """A row of a table, with the paper's figures."""

    __pydantic_config__ = CLOSED
    head: str = ""
    published: tuple[PublishedCell, ...] = ()
    """By column; empty for a row of ours."""
    techniques: Mapping[str, str] = field(default_factory=dict)
    """By head of a column, where another technique than ``technique`` stands."""
    measures: Mapping[str, str] = field(default_factory=dict)
    """By head of a column, where another measure stands."""


@dataclass(frozen=True)
class PaperTable(Subject):
    """A table or figure as the paper prints it."""

    __pydantic_config__ = CLOSED
    name: str = ""
    """Such as "table 4"."""
    place: str = ""
    """Page or section."""
    title: str = ""
    row_head: str = ""
    columns: tuple[PaperColumn, ...] = ()
    rows: tuple[PaperRow, ...] = ()
    note: str = ""
    """How to read our figures beside the published ones."""
    share: float = 1.0
    """Share of the cases that the paper ran it on."""
    digits: int = 1
    splitter: str = ""
    """Technique whose runs sort the questions by number of retrievals."""
    rater: str = ""
    """Technique whose ratings sort the cases into tenths."""

    def subject(self, row: PaperRow, column: PaperColumn) -> Subject:
        """Return the subject of the cell of a row and a column."""
        return Subject(
            row.techniques.get(column.head) or row.technique or column.technique or self.technique,
            row.benches or column.benches or self.benches,
            row.group or column.group,
            next(
                (text for text in (row.measures.get(column.head), row.measure, column.measure) if text is not None),
                self.measure,
            ),
            row.model,
            row.never or column.never or self.never,
            row.judge or column.judge or self.judge,
        )

    def subjects(self) -> list[Subject]:
        """Return what our cells are about, row by row."""
        cells = (self.subject(row, column) for row in self.rows for column in self.columns)
        return [cell for cell in cells if cell.measure]


@dataclass(frozen=True)
class Paper:
    """A paper with its tables, as its file has them."""

    __pydantic_config__ = CLOSED
    title: str
    published_with: str
    """LLM and setting of the published figures."""
    tables: tuple[PaperTable, ...]
    left_out: str = ""
    """Tables and figures that are not here, and why."""

    def table(self, name: str) -> PaperTable:
        """Return a table by its name, or by its number if it is a table.

        Raises:
            SetupError: the paper has no such table.
        """
        named = {table.name: table for table in self.tables}
        for key in (name, f"table {name}"):
            if key in named:
                return named[key]
        close = get_close_matches(name, named, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise SetupError(f"{self.title} has no {name!r} here; it has {', '.join(named)}.{hint}")


@cache
def read_paper(name: str) -> Paper:
    """Read a paper by the name of its file.

    >>> read_paper("planrag").table("4").rows[2].published
    (64.3, 45.0)

    Raises:
        SetupError: there is no such paper.
    """
    if name not in PAPERS:
        close = get_close_matches(name.replace("_", "-"), PAPERS, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise SetupError(f"There is no paper {name!r}; there is {', '.join(PAPERS)}.{hint}")
    text = files("decisor.lab").joinpath("published", f"{name}.toml").read_text("utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    paper: Paper = TypeAdapter(Paper).validate_python(content)
    return paper


def list_published(table: PaperTable) -> Sequence[tuple[str, str, PublishedCell]]:
    """Return the printed figures of a table, as row, column and figure."""
    return [
        (row.head, column.head, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell != ""
    ]


MOST = 4
"""Replans and depths from here on count together, as in the papers."""
NODES = ("country", "trade_node", "goods", "building")


@dataclass(frozen=True, slots=True)
class CellFigure:
    """A measured figure."""

    value: float
    interval: Interval | None = None
    """At 95 %, in the figure's unit; None for a count."""
    count: int | None = None
    """Number of questions that a share is of, where the paper prints it beside the share."""
    is_whole: bool = False
    """Whether it is a number of things, which has no decimals."""


@dataclass(frozen=True)
class MeasuredRun:
    """The outcomes that the cells of one row may look at."""

    own: Sequence[Outcome]
    """Outcomes of the cell's technique, LLM, benchmarks and group."""
    splitting: Sequence[Outcome] = ()
    """Outcomes of the technique that sorts questions by retrievals."""
    rating: Sequence[Outcome] = ()
    """Outcomes of the technique whose ratings make the tenths."""
    ranks: Mapping[str, float] = field(default_factory=dict)
    """Mean preference rank by label of a technique."""


def measure_cell(measure: str, run: MeasuredRun) -> CellFigure | None:
    """Return the figure of a measure; None if the run has nothing to measure it from."""
    word, _, what = measure.partition(" ")
    part = run.own
    if not part:
        return None
    counted = [one for one in part if one.state in COUNTED]
    match word:
        case "accuracy":
            return figure_of_share(counted, is_right)
        case "mean":
            return figure_of_mean(part, what)
        case "average" | "sum":
            numbers = [one.counts[what] for one in part if what in one.counts]
            value = float(sum(numbers)) if word == "sum" else mean(numbers)
            return CellFigure(value, is_whole=word == "sum") if numbers else None
        case "kind" | "kind_count":
            if not run.splitting:
                return None
            some = []
            # Each benchmark is split by its own runs.
            for bench in {one.benchmark for one in counted}:
                kinds = find_retrieval_kinds(one for one in run.splitting if one.benchmark == bench)
                some += [one for one in counted if one.benchmark == bench and retrieval_kind_of(one, kinds) == what]
            return figure_of_share(some, is_right) if word == "kind" else CellFigure(float(len(some)), is_whole=True)
        case "missed":
            least = 1 if what == "any" else 2
            some = [one for one in counted if one.counts.get("retrievals")]
            return figure_of_share(some, lambda one: len(list_tags(one, "missed")) >= least)
        case "failure":
            return figure_of_share(counted, lambda one: one.failure == what)
        case "replans":
            some = [one for one in counted if what == "total" or count_up_to(one, "replans") == int(what)]
            return figure_with_count(some, figure_of_share(some, is_right))
        case "replan":
            some = [one for one in counted if list_tags(one, "replan")]
            return figure_of_share(some, lambda one: any(what in tag.split(", ") for tag in list_tags(one, "replan")))
        case "depth":
            planned = [one for one in part if "nodes" in one.counts]
            some = [one for one in planned if count_up_to(one, "depth") == int(what)]
            keys = {one.key for one in some}
            return figure_with_count(some, figure_of_share(planned, lambda one: one.key in keys))
        case "documents":
            single = sum(one.counts.get("nodes_one_document", 0) for one in part)
            several = sum(one.counts.get("nodes_documents", 0) for one in part)
            share = (single if what == "one" else several) / (single + several) if single + several else None
            return None if share is None else CellFigure(100 * share)
        case "incidence" | "fix":
            incidence = compute_incidences(part)[what]
            share = incidence.fix_ratio if word == "fix" else incidence.share if incidence.runs else None
            many = incidence.met if word == "fix" else incidence.runs
            return None if share is None else figure_of_count(round(share * many), many)
        case "by_calls":
            return figure_of_share(counted, lambda one: was_right_by(one, int(what)))
        case "tenth":
            tenths = sort_into_tenths(run.rating)
            cases = tenths[int(what) - 1] if len(tenths) >= int(what) else set()
            return figure_of_share([one for one in counted if one.case in cases], is_right)
        case "rank":
            rank = run.ranks.get(part[0].technique)
            return None if rank is None else CellFigure(rank)
    raise ValueError(f"There is no measure {measure!r}.")


def is_right(outcome: Outcome) -> bool:
    return outcome.state == "right"


def list_tags(outcome: Outcome, kind: str) -> list[str]:
    """Return the content of a kind's tags: "replan: KIND" or "missed: VALUE" without the kind."""
    return [tag.removeprefix(f"{kind}: ") for tag in outcome.tags if tag.startswith(f"{kind}: ")]


def count_up_to(outcome: Outcome, name: str) -> int:
    return min(outcome.counts.get(name, 0), MOST)


def figure_of_share(part: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> CellFigure | None:
    """Return the share of outcomes for which something holds, the mean over cases; None if there are none."""
    return percent_figure(*share_over_cases(tries_by_case(part, holds))) if part else None


def figure_of_count(some: int, total: int) -> CellFigure | None:
    return percent_figure(some / total, wilson(some, total)) if total else None


def percent_figure(share: float, interval: Interval) -> CellFigure:
    return CellFigure(100 * share, Interval(100 * interval.low, 100 * interval.high))


def figure_of_mean(part: Sequence[Outcome], metric: str) -> CellFigure | None:
    """Return the mean of a metric over cases; None if no outcome has it."""
    values = list(metric_by_case(part, metric).values())
    if not values:
        return None
    if set(values) <= {0.0, 1.0}:
        return figure_of_count(round(sum(values)), len(values))
    return percent_figure(mean(values), bootstrap(values, METRIC_ROUNDS))


def figure_with_count(some: Sequence[Outcome], figure: CellFigure | None) -> CellFigure:
    """Return a share with the number of outcomes that it is about; a share of nothing is 0."""
    if figure is None:
        return CellFigure(0.0, None, 0)
    # Repeats of a question are no further questions.
    return CellFigure(figure.value, figure.interval, len({(one.benchmark, one.case) for one in some}))


def keep_shared_cases(outcomes: Sequence[Outcome], benches: int) -> list[Outcome]:
    """Return the outcomes of the cases that were run on each of so many benchmarks.

    >>> one, other = (Outcome(bench, "c1", "t", "m", 0, "right") for bench in ("sql", "graph"))
    >>> len(keep_shared_cases([one, other], 2)), len(keep_shared_cases([one], 2))
    (2, 0)
    """
    places: dict[str, set[str]] = defaultdict(set)
    for one in outcomes:
        places[one.case].add(one.benchmark)
    return [one for one in outcomes if len(places[one.case]) == benches]


def measure_size(folder: Path, group: str, what: str) -> CellFigure | None:
    """Return a size of a scenario of Decision QA, a mean over its questions; the number of questions for "questions".

    In the graph form the rows of two tables are nodes, and those of two are edges. None if there is no such scenario.
    """
    scenario: Scenario | None = next((name for name in SCENARIOS if name == group), None)
    if scenario is None or not (folder / scenario / "questions").is_dir():
        return None
    dumps = Counter(question.database for question in read_dqa_questions(folder, scenario, "sql"))
    questions = dumps.total()
    if what == "questions":
        return CellFigure(float(questions), is_whole=True)
    total = 0
    for dump, many in dumps.items():
        for name, rows in read_dump(dump).tables.items():
            total += many * len(rows) * (what in ("rows", "nodes" if name in NODES else "edges"))
    return CellFigure(total / questions)
