"""The charts of a run: of the records that its decision cites, as they were seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.story.answer_charts.chart import Chart
from decisor.story.answer_charts.choose import chart_of
from decisor.story.rows import groups_of
from decisor.trace.events import ActionResult, Entry, RunStart, events_of
from decisor.types import Decision, Observation, Record

MOST_CHARTS = 3
LONG = 50
"""First rows of an observation too long for a prompt: so many are cited by nobody one by one."""
DEFINITION = "definition"
UNIT = re.compile(r"(?:^|; )in ([^;]{1,20})(?:;|$)")


@dataclass(frozen=True, slots=True)
class CitedTable:
    """The records of an observation with the same fields, all of them cited, in its order. ``note``: what is not
    there."""

    records: tuple[Record, ...]
    note: str = ""


def charts_of(entries: Sequence[Entry], decision: Decision, records: Sequence[Record]) -> tuple[Chart, ...]:
    """Of an answer that is a table or a series; none of what a ranking shows already. ``records``: those cited, as the
    reader may see them."""
    if not decision.answer:
        return ()
    units = units_of(records)
    charts = []
    for table in tables_of(entries, records):
        chart = chart_of(table.records, units)
        if chart is not None and not (decision.ranking and chart.kind == "bar"):
            notes = (table.note, *chart.notes) if table.note else chart.notes
            charts.append(replace(chart, notes=notes))
    return tuple(charts[:MOST_CHARTS])


def tables_of(entries: Sequence[Entry], records: Sequence[Record]) -> Iterator[CitedTable]:
    """A decision that cites only some rows of a query compares candidates, and has no table."""
    observations = {name_of(one.records[0]): one for one in observations_of(entries) if one.records}
    for group in groups_of([record for record in records if record.fields and DEFINITION not in record.fields]):
        observation = observations.get(name_of(group[0]), Observation())
        ids = [record.id for record in observation.records]
        by_id = {record.id: record for record in group}
        rows = tuple(by_id[id] for id in ids if id in by_id)
        is_long = len(rows) >= LONG and all(id in by_id for id in ids[: len(rows)])
        if observation.ranking is None and (len(rows) == len(ids) or is_long):
            yield CitedTable(rows, note_of(len(rows), observation))


def observations_of(entries: Sequence[Entry]) -> Iterator[Observation]:
    """Of the run, and of the decision that it goes on from."""
    for start in events_of(entries, RunStart):
        yield from (step.observation for step in (start.question.earlier.steps if start.question.earlier else ()))
    yield from (result.observation for result in events_of(entries, ActionResult))


def name_of(record: Record) -> str:
    """Of its observation."""
    return record.id.partition(".")[0]


def note_of(rows: int, observation: Observation) -> str:
    """Said where the query has more than is drawn."""
    total = max(observation.total or 0, len(observation.records))
    if total > rows:
        return f"The first {rows:,} of the {total:,} rows that the query has."
    return f"The first {rows:,} rows; the query has more." if observation.truncated else ""


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
