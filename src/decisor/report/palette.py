"""Which number, and so which colour and shape, each technique has everywhere on the page."""

from __future__ import annotations

from dataclasses import dataclass

from decisor.report.charts import Series
from decisor.report.document import Report
from decisor.statistics.compare import Side


@dataclass(frozen=True, slots=True)
class Palette:
    names: tuple[str, ...]

    def __call__(self, series: Series) -> int | None:
        """None for what was published."""
        return None if series.published else self.of(series.name)

    def of(self, name: str) -> int:
        return self.names.index(name) if name in self.names else len(self.names)


def palette(report: Report) -> Palette:
    sides = (Side(row.technique, row.model) for one in report.benchmarks for row in one.rows)
    return Palette(tuple(dict.fromkeys(report.label(side) for side in sides)))
