"""The charts of a run: of the records that its decision cites, as they were seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.story.answer_charts.chart import Chart
from decisor.story.answer_charts.choose import chart_of
from decisor.trace.events import ActionResult, Entry, events_of
from decisor.types import Decision, Observation, Record

MOST_CHARTS = 3
DEFINITION = "definition"
UNIT = re.compile(r"(?:^|; )in ([^;]{1,20})(?:;|$)")


@dataclass(frozen=True, slots=True)
class CitedTable:
    """Records of one observation with the same fields, in its order. ``total``: how many rows the query has, 0 where
    that is not known; ``truncated``: it has more than came back."""

    records: tuple[Record, ...]
    total: int = 0
    truncated: bool = False


def charts_of(entries: Sequence[Entry], decision: Decision, records: Sequence[Record]) -> tuple[Chart, ...]:
    """Of an answer; none of what a ranking shows already. ``records``: those cited, as the reader may see them."""
    if not decision.answer:
        return ()
    units = units_of(records)
    charts = []
    for table in tables_of(entries, records):
        chart = chart_of(table.records, units)
        if chart is not None and not (decision.ranking and chart.kind == "bar"):
            charts.append(replace(chart, notes=(*part_of(table), *chart.notes)))
    return tuple(charts[:MOST_CHARTS])


def tables_of(entries: Sequence[Entry], records: Sequence[Record]) -> Iterator[CitedTable]:
    observations: dict[str, Observation] = {}
    for result in events_of(entries, ActionResult):
        if result.observation.records:
            observations.setdefault(name_of(result.observation.records[0]), result.observation)
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        if record.fields and not record.text and DEFINITION not in record.fields:
            groups.setdefault((name_of(record), *record.fields), []).append(record)
    for (name, *_), group in groups.items():
        observation = observations.get(name, Observation())
        place = {record.id: at for at, record in enumerate(observation.records)}
        in_order = tuple(sorted(group, key=lambda record: place.get(record.id, len(place))))
        if observation.ranking is None:
            yield CitedTable(in_order, observation.total or len(place), observation.truncated)


def name_of(record: Record) -> str:
    """Of its observation."""
    return record.id.partition(".")[0]


def part_of(table: CitedTable) -> tuple[str, ...]:
    """Said where there are more rows than the decision cites."""
    cited = len(table.records)
    if table.truncated and table.total <= cited:
        return (f"The first {cited:,} rows: the query has more.",)
    if table.total <= cited:
        return ()
    return (f"Of the {table.total:,} rows that the query has, the {cited:,} that the answer cites.",)


def units_of(records: Sequence[Record]) -> Mapping[str, str]:
    """Of the metrics whose definitions a decision cites, by name.

    >>> units_of([Record("o1.r1", {"definition": "metric.revenue", "says": "sum(x) over sale; in USD"})])
    {'revenue': 'USD'}
    """
    units = {}
    for record in records:
        kind, _, name = str(record.fields.get(DEFINITION, "")).partition(".")
        if kind == "metric" and (unit := UNIT.search(str(record.fields.get("says", "")))):
            units[name] = unit[1]
    return units
