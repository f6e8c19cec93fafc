"""Tables of the Plan*RAG paper from our outcomes: depth of plans, documents of a sub-query, what the critic and the
relevance expert are worth, and attribution. Tables 3 and 4 are accuracies (``paper_figures``)."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.benchmarks.paper_figures import name_of
from decisor.benchmarks.paper_tables import Line, PaperTable, Sides, ours, published, share_of
from decisor.benchmarks.qa.paper_figures import DEPTHS
from decisor.outcome import Outcome
from decisor.statistics.summary import percent_of_cases

PAPER = "Plan*RAG (arXiv 2410.20753)"
ON_HOTPOTQA, ON_POPQA = "hotpotqa", "popqa"


def tables(benchmark: str, sides: Sides) -> Sequence[PaperTable]:
    name = name_of(benchmark)
    planned_by = {side: part for side, part in sides.items() if any("nodes" in one.counts for one in part)}
    return depths(name, planned_by), documents(name, planned_by), experts(name, planned_by), attribution(name, sides)


def depths(name: str, sides: Sides) -> PaperTable:
    """The main question is at depth 0, so 0 is: no plan."""
    lines = []
    for side, part in sides.items():
        deep = [min(one.counts.get("depth", 0), 4) for one in part]
        lines.append(ours(side, *(share_of(deep.count(depth), len(deep)) for depth in range(5))))
    if name in DEPTHS:
        lines.append(published("reasoning_dag", *(f"{share:g} %" for share in DEPTHS[name])))
    return PaperTable(
        title="Depth of plans",
        source=f"{PAPER}, table 2",
        head=("Technique", "0", "1", "2", "3", "4 or more"),
        lines=tuple(lines),
    )


def documents(name: str, sides: Sides) -> PaperTable:
    """For ``relevance=many``: of the sub-queries that kept documents, how many kept just one."""
    lines: list[Line] = []
    for side, part in sides.items():
        nodes = sum(max(one.counts["nodes"], 1) for one in part if "nodes" in one.counts)
        one_document = sum(one.counts.get("nodes_one_document", 0) for one in part)
        several = sum(one.counts.get("nodes_documents", 0) for one in part)
        with_any = one_document + several
        lines.append(ours(side, f"{nodes} ({nodes / len(part):.2f} a question)", metric(part, "acc"),
                          share_of(one_document, with_any), share_of(several, with_any)))  # fmt: skip
    if name == ON_HOTPOTQA:
        lines.append(published("reasoning_dag relevance=many (1,500 questions)", "3978 (2.65 a question)", "39.73 %",
                               "88.5 %", "11.5 %"))  # fmt: skip
    return PaperTable(
        title="Documents of a sub-query",
        source=f"{PAPER}, table 5",
        head=("Technique", "sub-queries", "Acc", "one document", "several"),
        lines=tuple(lines),
        note="Run it with relevance=many; with relevance=one each has one at most.",
    )


def experts(name: str, sides: Sides) -> PaperTable:
    lines = []
    for side, part in sides.items():
        retrievals = sum(one.counts.get("retrievals", 0) for one in part)
        lines.append(ours(side, metric(part, "acc"), metric(part, "f1"), str(retrievals)))
    if name == ON_HOTPOTQA:
        for side, acc, f1, many in EXPERTS:
            lines.append(published(side, f"{acc:g} %", f"{f1:g} %", many))
    return PaperTable(
        title="What the critic and the relevance expert are worth",
        source=f"{PAPER}, table 6",
        head=("Technique", "Acc", "F1", "retrievals"),
        lines=tuple(lines),
        note="Ours come of -t with critic=yes, critic=no and relevance=none.",
    )


def attribution(name: str, sides: Sides) -> PaperTable:
    """Of right answers, found by one function for all techniques."""
    kinds = ("attributed", "declared", "unattributed")
    lines = [ours(side, *(metric(part, kind) for kind in kinds)) for side, part in sides.items()
             if any("attributed" in one.metrics for one in part)]  # fmt: skip
    if name == ON_POPQA:
        lines.append(published("reasoning_dag (Llama-3-8B)", "76 %", "12 %", "12 %"))
    return PaperTable(
        title="Attribution of right answers",
        source=f"{PAPER}, section 4",
        head=("Technique", *kinds),
        lines=tuple(lines),
        note="Attributed: a cited document holds the answer as whole words; declared: none is cited. Yes and no are "
        "never attributed.",
    )


def metric(part: Sequence[Outcome], name: str) -> str:
    return percent_of_cases([one for one in part if name in one.metrics], lambda one: one.metrics[name])


EXPERTS = (
    ("reasoning_dag critic=yes", 36.6, 40.72, "2530 of 3926 sub-queries"),
    ("reasoning_dag critic=no", 37.13, 41.52, "3163"),
    ("reasoning_dag critic=yes relevance=one", 39.33, 42.01, ""),
    ("reasoning_dag critic=yes relevance=none", 31.6, 36.18, ""),
)
"""Technique, Acc, F1 and retrievals on 1,500 questions of HotpotQA: table 6."""
