"""Table 3 of the RaD-Agent paper from our outcomes: what calls met on the way, and how often it was mended."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.benchmarks.paper_figures import RADAGENT
from decisor.benchmarks.paper_tables import PaperTable, Sides, ours, published
from decisor.benchmarks.toolbench.failures import CLASSES, DECISION, Incidence, incidences
from decisor.benchmarks.toolbench.paper_figures import TOOL_FAILURES


def tables(benchmark: str, sides: Sides) -> Sequence[PaperTable]:
    names = (*CLASSES, DECISION)
    lines = []
    for name, part in sides.items():
        by_class = incidences(part)
        if by_class[DECISION].runs:
            lines.append(ours(name, *(cell(by_class[one]) for one in names)))
    for technique, classes in TOOL_FAILURES.items():
        lines.append(published(technique, *(text(*classes[one]) for one in CLASSES), NOT_OURS))
    return [
        PaperTable(
            title="Tool failures: incidence, and share of these runs that passed all the same",
            source=f"{RADAGENT}, table 3",
            head=("Technique", *(one.replace("_", " ") for one in names)),
            lines=tuple(lines),
            note="Of runs that a judge read. The paper’s decision failure is not shown: it has no printed rule, and "
            "ours, not passed and none of the other classes, leaves out runs that met one of them.",
        )
    ]


NOT_OURS = "counted otherwise"


def cell(one: Incidence) -> str:
    fix = one.fix_ratio
    return text(100 * one.share, None if fix is None else 100 * fix)


def text(share: float, fix: float | None) -> str:
    """
    >>> text(14.2, 25.4), text(2, None)
    ('14.2 %, 25.4 % passed', '2.0 %')
    """
    return f"{share:.1f} %" + (f", {fix:.1f} % passed" if fix is not None else "")
