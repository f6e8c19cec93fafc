"""The figures of a paper's cell, measured from outcomes of a run store, and the sizes of Decision QA from its files.

A measure is a word, some with another behind it:

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

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decisor.lab.benchmark import Outcome
from decisor.lab.curves import sort_into_tenths, was_right_by
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
    tries_by_case,
    wilson,
)
from decisor.lab.toolbench.bench import compute_incidences

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
