"""The analyses of the PlanRAG paper from our outcomes, what it printed beside them.

Tables 3 and 8 tell of the data: ``statistics``. Tables 4 and 5 are accuracies (``paper_figures``). Figures 5 and 6 are
printed as bars without numbers, so they have no published line. Where a rate is "a % of n", n are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from decisor.benchmarks.dqa.paper_figures import (
    EARLY,
    EARLY_RESULTS,
    MISSED,
    OTHER_MODELS,
    PAPER,
    PROMPT_ORDERS,
    REPLAN_KINDS,
    REPLANS,
)
from decisor.benchmarks.dqa.questions import KINDS, kind_of, kinds
from decisor.benchmarks.dqa.summary import course
from decisor.benchmarks.paper_tables import Line, PaperTable, Sides, ours, published, share_of
from decisor.outcome import Outcome
from decisor.statistics.summary import percent_of_cases

SCENARIOS = ("locating", "building")
FIVE = ("CAN", "MIS", "DEEP", "QUR", "OTH")
OWN = ("RULES", "FORM")
NO_NUMBERS = "The paper prints this figure as bars without numbers."
MOST = 4


def tables(benchmark: str, sides: Sides) -> Sequence[PaperTable]:
    """The tables that are made from outcomes."""
    return (early(sides), other_models(benchmark, sides), prompt_orders(sides), missed(sides), by_replans(sides),
            replan_kinds(sides), retrieval_kinds(sides), failure_classes(sides))  # fmt: skip


def of(outcomes: Sequence[Outcome], scenario: str) -> list[Outcome]:
    return [one for one in outcomes if one.group == scenario]


def right(outcomes: Sequence[Outcome]) -> str:
    """Strict accuracy over cases with how many there are."""
    return percent_of_cases(outcomes, lambda one: one.state == "right")


def by_scenario(sides: Sides) -> list[Line]:
    return [ours(name, *(right(of(part, scenario)) for scenario in SCENARIOS)) for name, part in sides.items()]


def percents(values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else f"{value:g} %" for value in values]


def early(sides: Sides) -> PaperTable:
    lines = [published(technique, *percents(values)) for technique, values in EARLY_RESULTS.items()]
    return PaperTable(
        title="Accuracy, with the early version’s",
        source=EARLY,
        head=("Technique", "Locating", "Building"),
        lines=(*by_scenario(sides), *lines),
        note="The early version had 140 questions of its own; they are not in the release.",
    )


def other_models(benchmark: str, sides: Sides) -> PaperTable:
    """``benchmark``: its label says the form, so which two of the four columns are ours."""
    graph = "graph" in benchmark
    lines = []
    for name, part in sides.items():
        cells = [right(of(part, scenario)) for scenario in SCENARIOS]
        lines.append(ours(name, *(text for cell in cells for text in (("", cell) if graph else (cell, "")))))
    lines += [published(name, *percents(values)) for name, values in OTHER_MODELS.items()]
    return PaperTable(
        title="Other models",
        source=f"{PAPER}, table 11",
        head=("Technique", *(f"{scenario}, {form}" for scenario in SCENARIOS for form in ("sql", "graph"))),
        lines=tuple(lines),
        note="The rows of the published table were put in order again from a damaged copy of its text.",
    )


def prompt_orders(sides: Sides) -> PaperTable:
    lines = [published(order, *percents(values)) for order, values in PROMPT_ORDERS.items()]
    return PaperTable(
        title="Order of the parts of a reply",
        source=f"{PAPER}, table 10, a tenth of the questions",
        head=("Technique", "Locating", "Building"),
        lines=(*by_scenario(sides), *lines),
    )


def missed(sides: Sides) -> PaperTable:
    """Two readings, as the paper gives one word for both: any needed value missing, or all of them."""
    lines = []
    for name, part in sides.items():
        cells = []
        for scenario in SCENARIOS:
            courses = [course(one) for one in of(part, scenario)]
            gone = [len(one.missed) for one in courses if one.retrieved != "none"]
            cells += [share_of(sum(count > 0 for count in gone), len(gone)),
                      share_of(sum(count > 1 for count in gone), len(gone))]  # fmt: skip
        lines.append(ours(name, *cells))
    for technique in ("iter_rag", "plan_rag"):
        cells = [f"{MISSED[technique, scenario]:g} %" for scenario in SCENARIOS]
        lines.append(published(technique, cells[0], "", cells[1], ""))
    return PaperTable(
        title="Rate of missed data analysis",
        source=f"{PAPER}, table 6",
        head=("Technique", "Locating, any missing", "all missing", "Building, any missing", "all missing"),
        lines=tuple(lines),
        note="Of the questions that were retrieved for. The paper does not say which of the two readings it counts.",
    )


def by_replans(sides: Sides) -> PaperTable:
    lines = [ours(f"{name}, {scenario}", *(right([one for one in of(part, scenario) if replans(one) == count])
                                           for count in range(MOST + 1)))
             for name, part in sides.items() if any("replans" in one.counts and replans(one) for one in part)
             for scenario in SCENARIOS]  # fmt: skip
    lines += [published(f"plan_rag, {scenario}", *(f"{accuracy:g} % of {many}" for many, accuracy in cells))
              for scenario, cells in REPLANS.items()]  # fmt: skip
    return PaperTable(
        title="Accuracy by number of replans",
        source=f"{PAPER}, table 7, both forms",
        head=("Technique", "0", "1", "2", "3", "4 or more"),
        lines=tuple(lines),
    )


def replans(one: Outcome) -> int:
    return min(one.counts.get("replans", 0), MOST)


def replan_kinds(sides: Sides) -> PaperTable:
    """Share of the questions with a replan that had one of the kind; one question may count for several."""
    lines = []
    for name, part in sides.items():
        for scenario in SCENARIOS:
            with_any = [changes for one in of(part, scenario) if (changes := course(one).replans)]
            counts = Counter(kind for changes in with_any for kind in {kind for _, kind in changes})
            if with_any:
                lines.append(ours(f"{name}, {scenario}", *(share_of(counts[kind], len(with_any))
                                                           for kind in REPLAN_KINDS)))  # fmt: skip
    for at, scenario in enumerate(SCENARIOS):
        lines.append(published(f"plan_rag, {scenario}", *percents([rates[at] for rates in REPLAN_KINDS.values()])))
    return PaperTable(
        title="Kinds of replans",
        source=f"{PAPER}, table 12, both forms",
        head=("Technique", *REPLAN_KINDS),
        lines=tuple(lines),
        note="The rates of “reorder” and “replace” could not be told apart in the text at hand: one of the two is "
        "16.67 % and 0 %. “add both” and “others” are the paper’s own; our rule gives one kind to each replan.",
    )


def retrieval_kinds(sides: Sides) -> PaperTable:
    by_question = kinds(one for part in sides.values() for one in part)
    lines = [ours(name, *(right([one for one in part if kind_of(one, by_question) == kind]) for kind in KINDS))
             for name, part in sides.items() if by_question]  # fmt: skip
    return PaperTable(
        title="Questions of one retrieval (SR) and of several (MR)",
        source=f"{PAPER}, figure 5",
        head=("Technique", *KINDS[:2], "no retrieval"),
        lines=tuple(lines),
        note=f"Sorted by what iter_rag did with the question, for all techniques alike. {NO_NUMBERS} It counts 84 SR "
        "and 518 MR of its 602 questions.",
    )


def failure_classes(sides: Sides) -> PaperTable:
    lines = [ours(f"{name}, {scenario}", *(str(sum(one.failure == kind for one in of(part, scenario)))
                                           for kind in (*FIVE, *OWN)))
             for name, part in sides.items() for scenario in SCENARIOS if of(part, scenario)]  # fmt: skip
    return PaperTable(
        title="Failures by class",
        source=f"{PAPER}, figure 6",
        head=("Technique", *FIVE, *OWN),
        lines=tuple(lines),
        note=f"{NO_NUMBERS} RULES and FORM are ours: right by the printed rules; right in substance, wrong in form.",
    )
