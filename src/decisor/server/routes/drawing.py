"""What of a run is drawn: graphs and trees laid out, the cells that figures come from, what-ifs."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from decisor.encoding import finite
from decisor.server.here import HereNow, Who
from decisor.server.responses import CellReply, ChartReply, PictureReply
from decisor.server.showing import read
from decisor.session.recorded import recorded_result
from decisor.story.answer_charts.chart import Chart
from decisor.story.answer_charts.layout import layouts
from decisor.story.charts import studies_of
from decisor.story.drawings import drawings
from decisor.story.figure_cells import cells_of
from decisor.trace.events import Conclusion

router = APIRouter(prefix="/api", tags=["runs"])


@router.get("/runs/{id}/picture")
async def picture(id: str, here: HereNow, who: Who) -> PictureReply:
    """As far as the run has come."""
    entries = (await read(here.runs, who, id)).entries
    cells: dict[str, tuple[CellReply, ...]] = {}
    charts: tuple[ChartReply, ...] = ()
    if any(isinstance(entry.event, Conclusion) and entry.span == 0 for entry in entries):
        result = recorded_result(entries)
        by_id = {record.id: record for record in result.records}
        cells = {
            one.text: tuple(CellReply(**asdict(cell)) for cell in cells_of(one, by_id))
            for one in result.evidence.figures
        }
        charts = tuple(chart_reply(one) for one in result.charts)
    return PictureReply(
        drawings=tuple(finite(one) for one in drawings(entries)), cells=cells,
        studies=tuple(finite(one) for one in studies_of(entries)), charts=charts,
    )  # fmt: skip


def chart_reply(chart: Chart) -> ChartReply:
    return ChartReply(
        title=chart.title, description=chart.description, notes=chart.notes,
        layouts=tuple(finite(one) for one in layouts(chart)), vega_lite=chart.vega_lite(),
    )  # fmt: skip
