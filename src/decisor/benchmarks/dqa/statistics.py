"""How large Decision QA is: tables 3 and 8 of the PlanRAG paper, counted from the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.benchmarks.dqa.cases import Scenario, cases
from decisor.benchmarks.dqa.dumps import read
from decisor.benchmarks.dqa.paper_figures import PAPER, ROWS
from decisor.benchmarks.paper_tables import PaperTable, ours, published
from decisor.decision_models.building import BuildingData
from decisor.decision_models.locating import LocatingData

SCENARIOS: tuple[Scenario, ...] = ("locating", "building")
NODES = ("country", "trade_node", "goods", "building")


@dataclass(frozen=True, slots=True)
class Size:
    """Of a scenario. ``databases``: rows by table of each database with questions, and how many ask it. Databases of
    equal content count once."""

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
        """Average rows, over databases."""
        return sum(rows[name] for rows, _ in self.databases) / len(self.databases)

    @property
    def tables(self) -> list[str]:
        return list(dict.fromkeys(name for rows, _ in self.databases for name in rows))


def sizes(folder: Path) -> list[Size]:
    """Of each scenario that the folder has. Raises SetupError where a file cannot be read."""
    here = [name for name in SCENARIOS if (folder / name / "questions").is_dir()]
    return [size(folder, name) for name in here or SCENARIOS]


def size(folder: Path, scenario: Scenario) -> Size:
    dumps = Counter(case.database for case in cases(folder, scenario, "sql"))
    askers: Counter[LocatingData | BuildingData] = Counter()
    for dump, many in dumps.items():
        askers[read(dump)] += many
    return Size(scenario, tuple((rows_of(data), many) for data, many in askers.items()))


def rows_of(data: LocatingData | BuildingData) -> Counter[str]:
    if isinstance(data, LocatingData):
        return Counter(country=len(data.countries), trade_node=len(data.nodes), flow=len(data.flows),
                       node_country=len(data.powers))  # fmt: skip
    return Counter(goods=len(data.goods), building=len(data.buildings), supply=len(data.supply),
                   demand=len(data.demand))  # fmt: skip


def tables(all_sizes: Sequence[Size]) -> list[PaperTable]:
    """Nodes and edges of the graph form are the rows of two tables each."""
    by_table = [
        ours(f"{one.scenario}, {name}", f"{one.of_table(name):.1f}") for one in all_sizes for name in one.tables
    ]
    lines = []
    for one in all_sizes:
        nodes = sum(one.of_table(name) for name in NODES if name in one.tables)
        mean = sum(one.rows) / len(one.rows)
        lines.append(ours(one.scenario, str(one.questions), str(len(one.databases)), f"{mean:.1f}",
                          f"{min(one.rows)} to {max(one.rows)}", f"{one.rows_a_question:.1f}", f"{nodes:.1f}",
                          f"{mean - nodes:.1f}"))  # fmt: skip
    lines += [published(one.scenario, "", "", f"{ROWS[one.scenario]:g}", "", "", "", "") for one in all_sizes]
    head = ("Scenario", "questions", "databases", "rows, mean", "rows", "rows, mean over questions", "nodes", "edges")
    return [
        PaperTable("Databases", f"{PAPER}, tables 3 and 8", head, tuple(lines),
                   "Databases of equal content count once, and only those with questions. Table 3 was not to be had."),
        PaperTable("Rows by table", f"{PAPER}, table 3", ("Table", "rows, mean"), tuple(by_table)),
    ]  # fmt: skip
