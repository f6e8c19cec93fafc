"""The analyses of the PlanRAG paper: its tables made from our outcomes and from the files, with the printed figures
beside them.

Tables 3 and 8, the size of the data, are counted from the files. Tables 4 and 5 are accuracies, the
figures in ``lab/published/dqa.toml``. Figures 5 and 6 are printed as bars without numbers, so they have no published
line. In a rate "a % of n", n are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.lab.benchmark import Outcome
from decisor.lab.dqa.bench import KINDS, find_retrieval_kinds, retrieval_kind_of
from decisor.lab.dqa.failures import course_of_outcome
from decisor.lab.dqa.worlds import SCENARIOS, Scenario, WorldData, read_dqa_questions, read_dump
from decisor.lab.papers import PaperTable, Sides, format_share_of, make_own_line, make_paper_table, published_table
from decisor.lab.statistics import percent_of_cases

NODES = ("country", "trade_node", "goods", "building")


@dataclass(frozen=True, slots=True)
class ScenarioSize:
    """The size of a scenario."""

    scenario: Scenario
    databases: tuple[tuple[Counter[str], int], ...]
    """For each database with questions, its rows by table and the number of its questions; equal content counts
    once."""

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
    askers: Counter[WorldData] = Counter()
    for dump, many in dumps.items():
        # Dumps of equal content are one database: the release has 200 files of 3 Locating worlds.
        askers[read_dump(dump)] += many
    counts = (Counter({name: len(rows) for name, rows in data.tables.items()}) for data in askers)
    return ScenarioSize(scenario, tuple(zip(counts, askers.values(), strict=True)))


def make_size_tables(all_sizes: Sequence[ScenarioSize]) -> list[PaperTable]:
    """Return the tables of sizes. The nodes and the edges of the graph form are the rows of two tables each."""
    by_table = [
        make_own_line(f"{size.scenario}, {name}", f"{size.of_table(name):.1f}")
        for size in all_sizes
        for name in size.tables
    ]
    lines = []
    for size in all_sizes:
        # In the graph form two tables are nodes and two are relationships.
        nodes = sum(size.of_table(name) for name in NODES if name in size.tables)
        mean = sum(size.rows) / len(size.rows)
        lines.append(
            make_own_line(
                size.scenario,
                str(size.questions),
                str(len(size.databases)),
                f"{mean:.1f}",
                f"{min(size.rows)} to {max(size.rows)}",
                f"{size.rows_a_question:.1f}",
                f"{nodes:.1f}",
                f"{mean - nodes:.1f}",
            )
        )
    scenarios = [size.scenario for size in all_sizes]
    return [make_paper_table("dqa_databases", lines, scenarios), make_paper_table("dqa_rows_by_table", by_table)]


MOST_REPLANS = 4


def make_dqa_paper_tables(benchmark: str, sides: Sides) -> Sequence[PaperTable]:
    """Return the tables of the paper that can be made from outcomes.

    benchmark: its label names the form, and so which two of the four columns of table 11 are ours.
    """
    accuracies = {
        name: [format_strict_accuracy(select_scenario(part, scenario)) for scenario in SCENARIOS]
        for name, part in sides.items()
    }
    by_scenario = [make_own_line(name, *cells) for name, cells in accuracies.items()]
    graph = "graph" in benchmark
    by_form = [
        make_own_line(name, *(text for cell in cells for text in (("", cell) if graph else (cell, ""))))
        for name, cells in accuracies.items()
    ]
    # IterRAG's runs sort the questions for all techniques, as in the paper.
    by_question = find_retrieval_kinds(outcome for part in sides.values() for outcome in part)
    by_retrieval = [
        make_own_line(
            name,
            *(
                format_strict_accuracy([outcome for outcome in part if retrieval_kind_of(outcome, by_question) == kind])
                for kind in KINDS
            ),
        )
        for name, part in sides.items()
        if by_question
    ]
    classes = published_table("dqa_failure_classes").head[1:]
    by_class = [
        make_own_line(
            f"{name}, {scenario}", *(str(sum(outcome.failure == kind for outcome in chosen)) for kind in classes)
        )
        for name, part in sides.items()
        for scenario in SCENARIOS
        if (chosen := select_scenario(part, scenario))
    ]
    return (
        make_paper_table("dqa_early_version", by_scenario),
        make_paper_table("dqa_other_models", by_form),
        make_paper_table("dqa_prompt_orders", by_scenario),
        make_missed_data_table(sides),
        make_replan_count_table(sides),
        make_replan_kinds_table(sides),
        make_paper_table("dqa_retrieval_kinds", by_retrieval),
        make_paper_table("dqa_failure_classes", by_class),
    )


def select_scenario(outcomes: Sequence[Outcome], scenario: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.group == scenario]


def format_strict_accuracy(outcomes: Sequence[Outcome]) -> str:
    """Format the strict accuracy over cases, with the number of cases."""
    return percent_of_cases(outcomes, lambda outcome: outcome.state == "right")


def make_missed_data_table(sides: Sides) -> PaperTable:
    """Return the table of the rate of missed data analysis.

    It has two readings, as the paper uses one word for both: any needed value is missing, or all of them.
    """
    lines = []
    for name, part in sides.items():
        cells = []
        for scenario in SCENARIOS:
            courses = [course_of_outcome(outcome) for outcome in select_scenario(part, scenario)]
            gone = [len(course.missed) for course in courses if course.retrieved != "none"]
            cells += [
                format_share_of(sum(count > 0 for count in gone), len(gone)),
                # Both scenarios need two values, so more than one missing is all missing.
                format_share_of(sum(count > 1 for count in gone), len(gone)),
            ]
        lines.append(make_own_line(name, *cells))
    return make_paper_table("dqa_missed_data", lines)


def make_replan_count_table(sides: Sides) -> PaperTable:
    lines = []
    for name, part in sides.items():
        if not any(outcome.counts.get("replans") for outcome in part):
            continue
        for scenario in SCENARIOS:
            by_count: dict[int, list[Outcome]] = {count: [] for count in range(MOST_REPLANS + 1)}
            for outcome in select_scenario(part, scenario):
                by_count[min(outcome.counts.get("replans", 0), MOST_REPLANS)].append(outcome)
            lines.append(make_own_line(f"{name}, {scenario}", *map(format_strict_accuracy, by_count.values())))
    return make_paper_table("dqa_replan_count", lines)


def make_replan_kinds_table(sides: Sides) -> PaperTable:
    """Return the table of kinds of replans.

    A cell is the share of the questions with a replan that had one of that kind; one question may count for several.
    """
    kinds = published_table("dqa_replan_kinds").head[1:]
    lines = []
    for name, part in sides.items():
        for scenario in SCENARIOS:
            courses = map(course_of_outcome, select_scenario(part, scenario))
            with_any = [course.replans for course in courses if course.replans]
            counts = Counter(kind for changes in with_any for kind in {kind for _, kind in changes})
            if with_any:
                shares = (format_share_of(counts[kind], len(with_any)) for kind in kinds)
                lines.append(make_own_line(f"{name}, {scenario}", *shares))
    return make_paper_table("dqa_replan_kinds", lines)
