"""The analyses of the PlanRAG paper: its tables made from our outcomes and from the files, with the printed figures
beside them.

Tables 3 and 8, the size of the data, are counted from the files. Tables 4 and 5 are accuracies and stand in
``lab/paper_figures.py``. Figures 5 and 6 are printed as bars without numbers, so they have no published line. In a
rate "a % of n", n are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.lab.benchmark import Outcome
from decisor.lab.dqa.bench import KINDS, find_retrieval_kinds, retrieval_kind_of
from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.failures import course_of_outcome
from decisor.lab.dqa.locating import LocatingData
from decisor.lab.dqa.worlds import Scenario, read_dqa_questions, read_dump
from decisor.lab.paper_figures import (
    EARLY,
    EARLY_RESULTS,
    MISSED,
    OTHER_MODELS,
    PAPER,
    PROMPT_ORDERS,
    REPLAN_KINDS,
    REPLANS,
    ROWS,
)
from decisor.lab.paper_tables import PaperLine, PaperTable, Sides, format_share_of, make_own_line, make_published_line
from decisor.lab.statistics import percent_of_cases

SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
NODES = ("country", "trade_node", "goods", "building")


@dataclass(frozen=True, slots=True)
class ScenarioSize:
    """The size of a scenario. databases: for each database with questions its rows by table and the number of its
    questions. Databases of equal content count once.
    """

    scenario: Scenario
    databases: tuple[tuple[Counter[str], int], ...]

    @property
    def questions(self) -> int:
        return sum(many for _, many in self.databases)

    @property
    def rows(self) -> list[int]:
        return [rows.total() for rows, _ in self.databases]

    @property
    def rows_a_question(self) -> float:
        return sum(rows.total() * many for rows, many in self.databases) / self.questions

    def of_table(self, name: str) -> float:
        """Return the average number of rows of a table, over databases."""
        return sum(rows[name] for rows, _ in self.databases) / len(self.databases)

    @property
    def tables(self) -> list[str]:
        return list(dict.fromkeys(name for rows, _ in self.databases for name in rows))


def measure_scenarios(folder: Path) -> list[ScenarioSize]:
    """Return the size of each scenario in a folder. Raise SetupError if a file cannot be read."""
    here = [name for name in SCENARIOS if (folder / name / "questions").is_dir()]
    return [measure_scenario(folder, name) for name in here or SCENARIOS]


def measure_scenario(folder: Path, scenario: Scenario) -> ScenarioSize:
    dumps = Counter(case.database for case in read_dqa_questions(folder, scenario, "sql"))
    askers: Counter[LocatingData | BuildingData] = Counter()
    for dump, many in dumps.items():
        askers[read_dump(dump)] += many
    return ScenarioSize(scenario, tuple((count_rows_by_table(data), many) for data, many in askers.items()))


def count_rows_by_table(data: LocatingData | BuildingData) -> Counter[str]:
    if isinstance(data, LocatingData):
        return Counter(
            country=len(data.countries), trade_node=len(data.nodes), flow=len(data.flows), node_country=len(data.powers)
        )
    return Counter(
        goods=len(data.goods), building=len(data.buildings), supply=len(data.supply), demand=len(data.demand)
    )


def make_size_tables(all_sizes: Sequence[ScenarioSize]) -> list[PaperTable]:
    """Return the tables of sizes. The nodes and the edges of the graph form are the rows of two tables each."""
    by_table = [
        make_own_line(f"{one.scenario}, {name}", f"{one.of_table(name):.1f}")
        for one in all_sizes
        for name in one.tables
    ]
    lines = []
    for one in all_sizes:
        nodes = sum(one.of_table(name) for name in NODES if name in one.tables)
        mean = sum(one.rows) / len(one.rows)
        lines.append(
            make_own_line(
                one.scenario,
                str(one.questions),
                str(len(one.databases)),
                f"{mean:.1f}",
                f"{min(one.rows)} to {max(one.rows)}",
                f"{one.rows_a_question:.1f}",
                f"{nodes:.1f}",
                f"{mean - nodes:.1f}",
            )
        )
    lines += [make_published_line(one.scenario, "", "", f"{ROWS[one.scenario]:g}", "", "", "", "") for one in all_sizes]
    head = ("Scenario", "questions", "databases", "rows, mean", "rows", "rows, mean over questions", "nodes", "edges")
    return [
        PaperTable(
            "Databases",
            f"{PAPER}, tables 3 and 8",
            head,
            tuple(lines),
            "Databases of equal content count once, and only those with questions. Table 3 was not to be had.",
        ),
        PaperTable("Rows by table", f"{PAPER}, table 3", ("Table", "rows, mean"), tuple(by_table)),
    ]


PAPER_SCENARIOS = ("locating", "building")
FIVE = ("CAN", "MIS", "DEEP", "QUR", "OTH")
OWN = ("RULES", "FORM")
NO_NUMBERS = "The paper prints this figure as bars without numbers."
MOST = 4


def make_dqa_paper_tables(benchmark: str, sides: Sides) -> Sequence[PaperTable]:
    """Return the tables of the paper that can be made from outcomes."""
    return (
        make_early_version_table(sides),
        make_other_models_table(benchmark, sides),
        make_prompt_orders_table(sides),
        make_missed_data_table(sides),
        make_replan_count_table(sides),
        make_replan_kinds_table(sides),
        make_retrieval_kinds_table(sides),
        make_failure_classes_table(sides),
    )


def select_scenario(outcomes: Sequence[Outcome], scenario: str) -> list[Outcome]:
    return [one for one in outcomes if one.group == scenario]


def format_strict_accuracy(outcomes: Sequence[Outcome]) -> str:
    """Format the strict accuracy over cases, with the number of cases."""
    return percent_of_cases(outcomes, lambda one: one.state == "right")


def by_scenario(sides: Sides) -> list[PaperLine]:
    return [
        make_own_line(name, *(format_strict_accuracy(select_scenario(part, scenario)) for scenario in PAPER_SCENARIOS))
        for name, part in sides.items()
    ]


def percents(values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else f"{value:g} %" for value in values]


def make_early_version_table(sides: Sides) -> PaperTable:
    lines = [make_published_line(technique, *percents(values)) for technique, values in EARLY_RESULTS.items()]
    return PaperTable(
        title="Accuracy, with the early version’s",
        source=EARLY,
        head=("Technique", "Locating", "Building"),
        lines=(*by_scenario(sides), *lines),
        note="The early version had 140 questions of its own; they are not in the release.",
    )


def make_other_models_table(benchmark: str, sides: Sides) -> PaperTable:
    """Return the table of other models. benchmark: its label names the form, and so which two of the four columns are
    ours.
    """
    graph = "graph" in benchmark
    lines = []
    for name, part in sides.items():
        cells = [format_strict_accuracy(select_scenario(part, scenario)) for scenario in PAPER_SCENARIOS]
        lines.append(make_own_line(name, *(text for cell in cells for text in (("", cell) if graph else (cell, "")))))
    lines += [make_published_line(name, *percents(values)) for name, values in OTHER_MODELS.items()]
    return PaperTable(
        title="Other models",
        source=f"{PAPER}, table 11",
        head=("Technique", *(f"{scenario}, {form}" for scenario in PAPER_SCENARIOS for form in ("sql", "graph"))),
        lines=tuple(lines),
        note="The rows of the published table were put in order again from a damaged copy of its text.",
    )


def make_prompt_orders_table(sides: Sides) -> PaperTable:
    lines = [make_published_line(order, *percents(values)) for order, values in PROMPT_ORDERS.items()]
    return PaperTable(
        title="Order of the parts of a reply",
        source=f"{PAPER}, table 10, a tenth of the questions",
        head=("Technique", "Locating", "Building"),
        lines=(*by_scenario(sides), *lines),
    )


def make_missed_data_table(sides: Sides) -> PaperTable:
    """Return the table of the rate of missed data analysis.

    It has two readings, as the paper uses one word for both: any needed value is missing, or all of them.
    """
    lines = []
    for name, part in sides.items():
        cells = []
        for scenario in PAPER_SCENARIOS:
            courses = [course_of_outcome(one) for one in select_scenario(part, scenario)]
            gone = [len(one.missed) for one in courses if one.retrieved != "none"]
            cells += [
                format_share_of(sum(count > 0 for count in gone), len(gone)),
                format_share_of(sum(count > 1 for count in gone), len(gone)),
            ]
        lines.append(make_own_line(name, *cells))
    for technique in ("iter_rag", "plan_rag"):
        cells = [f"{MISSED[technique, scenario]:g} %" for scenario in PAPER_SCENARIOS]
        lines.append(make_published_line(technique, cells[0], "", cells[1], ""))
    return PaperTable(
        title="Rate of missed data analysis",
        source=f"{PAPER}, table 6",
        head=("Technique", "Locating, any missing", "all missing", "Building, any missing", "all missing"),
        lines=tuple(lines),
        note="Of the questions that were retrieved for. The paper does not say which of the two readings it counts.",
    )


def make_replan_count_table(sides: Sides) -> PaperTable:
    lines = [
        make_own_line(
            f"{name}, {scenario}",
            *(
                format_strict_accuracy(
                    [one for one in select_scenario(part, scenario) if count_replans_capped(one) == count]
                )
                for count in range(MOST + 1)
            ),
        )
        for name, part in sides.items()
        if any("replans" in one.counts and count_replans_capped(one) for one in part)
        for scenario in PAPER_SCENARIOS
    ]
    lines += [
        make_published_line(f"plan_rag, {scenario}", *(f"{accuracy:g} % of {many}" for many, accuracy in cells))
        for scenario, cells in REPLANS.items()
    ]
    return PaperTable(
        title="Accuracy by number of replans",
        source=f"{PAPER}, table 7, both forms",
        head=("Technique", "0", "1", "2", "3", "4 or more"),
        lines=tuple(lines),
    )


def count_replans_capped(one: Outcome) -> int:
    return min(one.counts.get("replans", 0), MOST)


def make_replan_kinds_table(sides: Sides) -> PaperTable:
    """Return the table of kinds of replans.

    A cell is the share of the questions with a replan that had one of that kind; one question may count for several.
    """
    lines = []
    for name, part in sides.items():
        for scenario in PAPER_SCENARIOS:
            with_any = [
                changes for one in select_scenario(part, scenario) if (changes := course_of_outcome(one).replans)
            ]
            counts = Counter(kind for changes in with_any for kind in {kind for _, kind in changes})
            if with_any:
                lines.append(
                    make_own_line(
                        f"{name}, {scenario}", *(format_share_of(counts[kind], len(with_any)) for kind in REPLAN_KINDS)
                    )
                )
    for at, scenario in enumerate(PAPER_SCENARIOS):
        lines.append(
            make_published_line(f"plan_rag, {scenario}", *percents([rates[at] for rates in REPLAN_KINDS.values()]))
        )
    return PaperTable(
        title="Kinds of replans",
        source=f"{PAPER}, table 12, both forms",
        head=("Technique", *REPLAN_KINDS),
        lines=tuple(lines),
        note="The rates of “reorder” and “replace” could not be told apart in the text at hand: one of the two is "
        "16.67 % and 0 %. “add both” and “others” are the paper’s own; our rule gives one kind to each replan.",
    )


def make_retrieval_kinds_table(sides: Sides) -> PaperTable:
    by_question = find_retrieval_kinds(one for part in sides.values() for one in part)
    lines = [
        make_own_line(
            name,
            *(
                format_strict_accuracy([one for one in part if retrieval_kind_of(one, by_question) == kind])
                for kind in KINDS
            ),
        )
        for name, part in sides.items()
        if by_question
    ]
    return PaperTable(
        title="Questions of one retrieval (SR) and of several (MR)",
        source=f"{PAPER}, figure 5",
        head=("Technique", *KINDS[:2], "no retrieval"),
        lines=tuple(lines),
        note=f"Sorted by what iter_rag did with the question, for all techniques alike. {NO_NUMBERS} It counts 84 SR "
        "and 518 MR of its 602 questions.",
    )


def make_failure_classes_table(sides: Sides) -> PaperTable:
    lines = [
        make_own_line(
            f"{name}, {scenario}",
            *(str(sum(one.failure == kind for one in select_scenario(part, scenario))) for kind in (*FIVE, *OWN)),
        )
        for name, part in sides.items()
        for scenario in PAPER_SCENARIOS
        if select_scenario(part, scenario)
    ]
    return PaperTable(
        title="Failures by class",
        source=f"{PAPER}, figure 6",
        head=("Technique", *FIVE, *OWN),
        lines=tuple(lines),
        note=f"{NO_NUMBERS} RULES and FORM are ours: right by the printed rules; right in substance, wrong in form.",
    )
