"""Everything a report says, as plain values. The page, Markdown, CSV and JSON are drawn from this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decisor.benchmarks.paper_figures import PublishedFigure, figures_for
from decisor.benchmarks.paper_tables import PaperTable, tables_for
from decisor.encoding import finite
from decisor.evaluation.failure_judge import Agreement
from decisor.evaluation.preference_ranks import Ranks
from decisor.evaluation.win_rates import WinRate
from decisor.outcome import Outcome
from decisor.report.charts import Chart, charts
from decisor.statistics.compare import Comparison, OutcomeChange, Side, against, all_pairs, changed, sides_of
from decisor.statistics.summary import SummaryRow, summarise
from decisor.types import Usage, Value

MOST_SIDES = 12
"""Every pair of more sides than these is not compared: the correction would leave nothing."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark of a run. ``rows``: of all groups and then of each, best first. ``metrics``: the names of the
    metrics that rows have. ``tables``: those of its papers, with what they printed."""

    name: str
    cases: int
    rows: tuple[SummaryRow, ...]
    metrics: tuple[str, ...]
    published: tuple[PublishedFigure, ...]
    comparisons: tuple[Comparison, ...]
    charts: tuple[Chart, ...]
    tables: tuple[PaperTable, ...] = ()


@dataclass(frozen=True, slots=True)
class Diff:
    """This run against an earlier one: each technique's difference (this minus earlier), and the cases that changed."""

    comparisons: tuple[Comparison, ...]
    changed: tuple[OutcomeChange, ...]
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A run. ``one_model``: its name where there is only one, so that techniques need not name it."""

    title: str
    about: Mapping[str, Value]
    benchmarks: tuple[Benchmark, ...]
    outcomes: tuple[Outcome, ...]
    usage: Usage
    one_model: str | None
    diff: Diff | None = None
    opinion: Agreement | None = None
    ranks: tuple[Ranks, ...] = ()
    wins: tuple[WinRate, ...] = ()

    def label(self, side: Side) -> str:
        return side.technique if self.one_model is not None else str(side)


def make(
    outcomes: Sequence[Outcome],
    about: Mapping[str, Value] | None = None,
    before: Sequence[Outcome] | None = None,
    opinion: Agreement | None = None,
    ranks: Sequence[Ranks] = (),
    wins: Sequence[WinRate] = (),
) -> Report:
    """The report of a run; ``before``: the outcomes of an earlier run to set it against; ``opinion``: how far a judge
    agrees on its failures; ``ranks``: how a judge ranks its techniques; ``wins``: how often they win over one."""
    models = {one.model for one in outcomes}
    one_model = models.pop() if len(models) == 1 else None
    names = tuple(dict.fromkeys(one.benchmark for one in outcomes))
    usage = Usage()
    for one in outcomes:
        usage = usage + one.usage
    report = Report(
        title=", ".join(names) or "empty run",
        about=about or {},
        benchmarks=(),
        outcomes=tuple(outcomes),
        usage=usage,
        one_model=one_model,
        diff=None if before is None else _diff(outcomes, before),
        opinion=opinion,
        ranks=tuple(ranks),
        wins=tuple(wins),
    )
    benchmarks = tuple(_benchmark(name, outcomes, report) for name in names)
    return replace(report, benchmarks=benchmarks)


def _benchmark(name: str, outcomes: Sequence[Outcome], report: Report) -> Benchmark:
    part = [one for one in outcomes if one.benchmark == name]
    rows = best_first(summarise(part, by_group=True))
    sides = len({(row.technique, row.model) for row in rows})
    published = figures_for(name)
    return Benchmark(
        name=name,
        cases=len({one.case for one in part}),
        rows=rows,
        metrics=tuple(sorted({name for row in rows for name in row.metrics})),
        published=published,
        comparisons=in_order(all_pairs(part), rows) if sides <= MOST_SIDES else (),
        charts=charts(name, part, rows, published, report.label),
        tables=tables_for(name, {report.label(side): one for side, one in sides_of(part, name).items()}),
    )


def best_first(rows: Sequence[SummaryRow]) -> tuple[SummaryRow, ...]:
    """By the accuracy of all groups together; the rows of a technique's groups stay with it."""
    overall = {(row.technique, row.model): row.accuracy for row in rows if not row.group}
    ranked = {key: -1.0 if accuracy is None else accuracy for key, accuracy in overall.items()}
    return tuple(sorted(rows, key=lambda row: (-ranked[row.technique, row.model], row.technique, row.model, row.group)))


def in_order(comparisons: Sequence[Comparison], rows: Sequence[SummaryRow]) -> tuple[Comparison, ...]:
    """As the rows stand."""
    places = {Side(row.technique, row.model): at for at, row in reversed(list(enumerate(rows)))}
    return tuple(sorted(comparisons, key=lambda one: (places[one.one], places[one.other])))


def _diff(outcomes: Sequence[Outcome], before: Sequence[Outcome]) -> Diff:
    here = {_name(one) for one in outcomes}
    there = {_name(one) for one in before}
    return Diff(
        against(outcomes, before), changed(outcomes, before), tuple(sorted(here - there)), tuple(sorted(there - here))
    )


def _name(one: Outcome) -> str:
    return f"{one.benchmark}: {Side(one.technique, one.model)}"


def as_json(report: Report) -> dict[str, Any]:
    """Plain values for ``--json``; numbers that JSON cannot hold are null."""
    values: dict[str, Any] = finite(report)
    if report.opinion:  # the name that readers of this JSON know
        values["opinion"]["asked"] = values["opinion"].pop("failures")
    return values
