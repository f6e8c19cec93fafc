"""New Decision QA worlds of any size, with questions, rules and answers in the layout of the release.

    world <- make_world(scenario, size, seed); simulate once and publish
    for each country or goods: keep the question if one decision is best by a margin
    write both dumps and the question file

Each question says how hard it is. The rules describe the simulation exactly, so a reader who follows them to the
letter finds the right answer every time. A world is written as the two released kinds of dump, as an SQLite file, or
as an embedded graph. Two small ones are the examples of ``decisor ask --example``, written on first use.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from decisor.errors import SetupError
from decisor.lab.dqa.generated_worlds import (
    Balance,
    Floats,
    Ints,
    Supply,
    Trade,
    compute_home_profit,
    compute_supply_prices,
    count_steps_home,
    find_rows_of_owners,
    make_supply,
    make_trade,
    simulate_supply,
    simulate_trade,
)
from decisor.lab.dqa.rows import WORLD_TABLES
from decisor.lab.dqa.worlds import Scenario, WorldData, build_world_schema
from decisor.system.storage import cache_folder
from decisor.types import Question

CELLS = 4_000_000  # numbers per array while candidates are computed


@dataclass(frozen=True)
class Difficulty:
    """The difficulty of a generated question."""

    differ: int
    """Number of candidates that change the outcome."""
    margin: float
    """Distance from the best to the second, relative to the larger one."""
    hops: int
    """Edges from the best node to home, or stages of inputs behind the goods."""
    inputs: int
    """Number of rows that matter."""


@dataclass(frozen=True)
class WorldQuestion:
    """A question about a generated world."""

    subject: int
    """Number of the country or goods."""
    answer: str | int
    """The best decision: a node's name or a building's id."""
    difficulty: Difficulty


def find_trade_questions(world: Trade, rng: np.random.Generator) -> Iterator[WorldQuestion]:
    """Yield one question per country, in random order, if one node is best by a margin of 1e-6."""
    for country in rng.permutation(len(world.countries)).tolist():
        home = int(world.home[country])
        steps = count_steps_home(world, home)
        reaches = [step >= 0 for step in steps]
        rows = [int(r) for r in np.flatnonzero(world.of == country) if world.at[r] != home]
        still = compute_home_profit(world, simulate_trade(world), country)
        profits = [compute_home_profit(world, simulate_trade(world, row, reaches), country) for row in rows]
        # One candidate is no choice, and a relative margin needs a positive profit.
        if len(rows) < 2 or still <= 0:
            continue
        ranked = sorted(zip(profits, rows, strict=True), reverse=True)
        # Placing it where nothing changes is a decision too, so it competes for the second place.
        best, second = ranked[0], max(ranked[1][0], still)
        gap = (best[0] - second) / best[0]
        if gap < 1e-6:
            continue
        upstream = np.array(reaches)
        node = int(world.at[best[1]])
        inputs = int(upstream[world.at].sum() + upstream[world.source].sum())
        differ = sum(abs(value - still) > 1e-9 * still for value in profits)
        yield WorldQuestion(country, world.nodes[node], Difficulty(differ, gap, steps[node], inputs))


def find_supply_questions(world: Supply, rng: np.random.Generator) -> Iterator[WorldQuestion]:
    """Yield one question per goods, in random order, if one building is best by a margin of 1e-8.

    The building must make the goods.
    """
    best, second, who, differ = _find_two_lowest_prices(world)
    for goods in rng.permutation(len(world.goods)).tolist():
        building = int(who[goods])
        makers = world.supplier[world.supplied == goods]
        gap = float((second[goods] - best[goods]) / second[goods])
        # As in the release: the winner supplies the goods and brings its price below the published one.
        if len(makers) < 2 or building not in makers or gap < 1e-8 or best[goods] >= world.current_price[goods]:
            continue
        hops, inputs = _count_inputs(world, goods)
        yield WorldQuestion(goods, int(world.ids[building]), Difficulty(int(differ[goods]), gap, hops, inputs))


def _find_two_lowest_prices(world: Supply) -> tuple[Floats, Floats, Ints, Ints]:
    """Return per goods the two lowest prices, the building of the lowest and the effective buildings.

    The last is the number of buildings that change the price.
    """
    count, buildings = len(world.goods), len(world.ids)
    # All goods are computed at once, for as many buildings as fit into CELLS.
    balance, step = Balance.of(world), max(CELLS // len(world.goods), 1)
    now = world.current_price
    two, who = np.full((2, count), np.inf), np.zeros((2, count), dtype=np.int64)
    differ = np.zeros(count, dtype=np.int64)
    for first in range(0, buildings, step):
        some = np.arange(first, min(first + step, buildings))
        demand, supply, _ = simulate_supply(world, balance, some)
        price = compute_supply_prices(world, demand, supply)
        differ += (np.abs(price - now) > 1e-9 * now).sum(0)
        every = np.concatenate([two, price])
        names = np.concatenate([who, np.broadcast_to(some[:, None], price.shape)])
        # Keep two of each column, so that memory does not grow with the number of buildings.
        lowest = np.argpartition(every, 1, axis=0)[:2]
        # argpartition leaves the order of the two open.
        order = np.argsort(np.take_along_axis(every, lowest, 0), axis=0, kind="stable")
        lowest = np.take_along_axis(lowest, order, 0)
        two, who = np.take_along_axis(every, lowest, 0), np.take_along_axis(names, lowest, 0)
    return two[0], two[1], who[0], differ


def _count_inputs(world: Supply, goods: int) -> tuple[int, int]:
    """Count the stages of inputs behind one goods and the supply and demand rows in them.

    There are at most ten stages, as there are ten rounds.
    """
    front, hops = np.array([goods]), 0
    visits, rows = {goods}, set[tuple[str, int]]()
    while len(front) and hops < 10:
        makes = find_rows_of_owners(world.supplied, front)[1]
        uses = find_rows_of_owners(world.demander, np.unique(world.supplier[makes]))[1]
        rows.update(("supply", row) for row in makes.tolist())
        rows.update(("demand", row) for row in uses.tolist())
        new = sorted(set(world.demanded[uses].tolist()) - visits)
        visits.update(new)
        front, hops = np.array(new, dtype=np.int64), hops + bool(new)
    return hops, len(rows)


TRADE_RULES = """\
A trading node has a local_value (made there), an ingoing value (from upstream), an outgoing value, a total_power, \
and is inland or not.
An edge leads from its source (upstream) to its dest (downstream) and carries a flow. No chain of edges leads back to \
where it began.
A country has a development and one home_node. Where it is present at a node, it has a base_trading_power there.

Everything is computed anew after a merchant is placed, upstream nodes before downstream ones:
1. The trading power of a country at a node is its base_trading_power there. With its merchant at the node, it is \
1.05 * (base_trading_power + 2), or, if the node is inland, 1.05 * (base_trading_power + 2 + max(development / 3, 50)).
A merchant at a node where its country is not present changes nothing at all.
2. The total_power of a node is the sum of the trading powers of all countries present there.
3. The outgoing value of a node is (local_value + ingoing) * F / total_power. F is the sum of the trading powers there \
of the countries whose home node is another node. With no power at a node, its outgoing value is 0.
4. The outgoing value is divided evenly over the edges that leave the node. But where a country has its merchant at a \
node that is not its home, the whole outgoing value takes a single edge: the edge straight to the country's home node \
if there is one, else the first edge, in alphabetical order of dest, from which the home node can be reached. If the \
home node cannot be reached from there, the value is divided evenly.
5. The ingoing value of a node is 1.05 times the sum of the flows that arrive there.
6. The profit of a country is (local_value + ingoing) of its home node, times its own trading power there, \
divided by total_power there.
The merchant cannot be placed at the home node. No other country has a merchant. The data show the state without one."""

TRADE_QUESTION = """\
You rule the country {country}. You have one merchant, and your home node is {home}. \
At which trading node should the merchant be placed?"""

TRADE_GOAL = "The goal is the largest profit of {country} at {home}."

SUPPLY_RULES = """\
Goods have a name, a code, a base_price, a current_price and a pop_demand. Buildings have an id, a name and a level.
A supply row says how much of a goods a building makes at most (max_supply) and makes now (current_output). A demand \
row says how much of a goods a building uses at most (max_demand) and gets now (current_input).
When a building of level L gains 5 levels, its max_supply and its max_demand of every goods are \
multiplied by (L + 5) / L.

Everything is computed anew after the expansion:
1. The demand TD of a goods is its pop_demand plus the sum of max_demand over all its demand rows.
2. Its supply TS is at first the sum of max_supply over all its supply rows.
3. Then ten rounds. In each round, first for every demand row current_input = max_demand * TS / TD; then for every \
supply row current_output = max_supply * A, where A is the mean, over the demand rows of the same building, of \
min(current_input, max_demand) / max_demand (A is 1 for a building without demand rows); then TS of every goods is the \
sum of current_output over its supply rows.
4. The price of a goods is base_price * (1 + 0.75 * (TD - TS) / max(TD, TS)), or base_price where TD and TS are both 0.
The data show the state before any expansion."""

SUPPLY_QUESTION = "Which building id should we increase a level by 5 to maximally decrease the market price of {goods}?"
SUPPLY_GOAL = "The goal is the lowest market price of {goods}."


DUMP_TYPES = {"str": "VARCHAR(80)", "float": "FLOAT", "int": "INT", "bool": "BOOLEAN"}


def write_sql(world: WorldData, path: Path) -> None:
    """Write a world in the released SQL format: one statement per line, strings in double quotes."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{statement};\n\n" for statement in build_world_schema(world, DUMP_TYPES))
        for name, rows in world.tables.items():
            head = f"INSERT INTO {name}({', '.join(WORLD_TABLES[name].types)}) VALUES ("
            file.writelines(f"{head}{', '.join(map(sql_literal, row))});\n" for row in rows)


def write_cypher(world: WorldData, path: Path) -> None:
    """Write a world in the released graph format: one CREATE per line."""
    with path.open("w", encoding="utf-8") as file:
        for name, rows in world.tables.items():
            table = WORLD_TABLES[name]
            for row in rows:
                texts = (str(cell).lower() if isinstance(cell, bool) else sql_literal(cell) for cell in row)
                values = dict(zip(table.types, texts, strict=True))
                properties = ", ".join(f"{to}: {values[column]}" for column, to in table.properties.items())
                if not table.ends:
                    file.write(f"CREATE (:{table.label} {{{properties}}});\n")
                    continue
                start, end = (
                    f"({variable}:{WORLD_TABLES[of].label} {{{WORLD_TABLES[of].key_property}: {values[column]}}})"
                    for variable, (column, of) in zip("ab", table.ends, strict=True)
                )
                file.write(f"MATCH {start}, {end} CREATE (a)-[:{table.label} {{{properties}}}]->(b);\n")


def sql_literal(value: object) -> str:
    """Format a value as a literal of the released SQL format.

    >>> sql_literal("velmere"), sql_literal(True), sql_literal(0.1)
    ('"velmere"', 'TRUE', '0.1')
    """
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).upper() if isinstance(value, bool) else repr(value)


YEAR = "1500"


@dataclass(frozen=True)
class WorldSize:
    """The size of a world: nodes and edges of its graph form.

    Trading nodes and countries, or goods and buildings, count as nodes.
    """

    nodes: int
    edges: int


SIZES = {
    "tiny": WorldSize(24, 80),
    "small": WorldSize(100, 400),
    "medium": WorldSize(300, 2_000),
    "large": WorldSize(10_000, 60_000),
    "huge": WorldSize(100_000, 1_000_000),
}


@dataclass(frozen=True)
class QuestionedWorld:
    """A world with the questions about it."""

    world: Trade | Supply
    questions: tuple[WorldQuestion, ...]
    label: str
    """The year (Locating) or the name of the database (Building)."""


@dataclass(frozen=True)
class Dataset:
    """The folder and the size of worlds that were written."""

    folder: Path
    nodes: int
    edges: int
    questions: int


def parse_size(text: str) -> WorldSize:
    """Parse the size of a world: the name of a size, or NODESxEDGES.

    >>> parse_size("small"), parse_size("500x3000")
    (WorldSize(nodes=100, edges=400), WorldSize(nodes=500, edges=3000))
    """
    if text in SIZES:
        return SIZES[text]
    nodes, _, edges = text.partition("x")
    if not (nodes.isdecimal() and edges.isdecimal()):
        raise SetupError(f"There is no size {text!r}; there is {', '.join(SIZES)}, or NODESxEDGES such as 500x3000.")
    size = WorldSize(int(nodes), int(edges))
    if not (20 <= size.nodes <= 100_000 and 2 * size.nodes <= size.edges <= 1_000_000):
        raise SetupError("A world has 20 to 100,000 nodes, and at least twice as many edges, at most 1,000,000.")
    return size


def make_world(scenario: Scenario, size: WorldSize, seed: int) -> Trade | Supply:
    """Make a new world. The same seed gives the same world."""
    rng = np.random.default_rng(seed)
    if scenario == "locating":
        nodes = max(size.nodes * 3 // 10, 8)
        return make_trade(nodes, size.nodes - nodes, max(size.edges - 17 * nodes // 10, size.nodes), rng)
    goods = min(max(size.nodes // 20, 5), 500)
    return make_supply(goods, size.nodes - goods, size.edges, rng)


def generate_dataset(scenario: Scenario, size: WorldSize | str, seed: int, out: Path, questions: int = 20) -> Dataset:
    """Write a new world below ``out``/``scenario``, with up to ``questions`` questions.

    Raises:
        SetupError: the size cannot be read, the folder holds something else, or no question has one best decision.
    """
    size = parse_size(size) if isinstance(size, str) else size
    world = make_world(scenario, size, seed)
    some = tuple(islice(find_world_questions(world, seed), questions))
    if not some:
        raise SetupError(f"No question on this world has one best decision; try another seed than {seed}.")
    return write_worlds(
        [QuestionedWorld(world, some, YEAR if scenario == "locating" else f"GEN{seed}")], out / scenario
    )


def write_worlds(worlds: Sequence[QuestionedWorld], folder: Path) -> Dataset:
    """Write worlds of one scenario with their questions, numbered consecutively.

    Raise SetupError as ``generate_dataset`` does.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SetupError(f"{folder} is not empty; name a new folder.")
    for form in ("questions", "queries/SQL_format", "queries/LPG_format"):
        (folder / form).mkdir(parents=True)
    entries: list[Mapping[str, object]] = []
    sizes: Counter[str] = Counter()  # of the graph form
    for each in worlds:
        rows = each.world.rows()
        for name, table in rows.tables.items():
            sizes["edges" if WORLD_TABLES[name].ends else "nodes"] += len(table)
        numbers = range(len(entries) + 1, len(entries) + len(each.questions) + 1)
        entries += [
            make_question_entry(each, question, number)
            for question, number in zip(each.questions, numbers, strict=True)
        ]
        trade = isinstance(each.world, Trade)
        _write_databases(rows, folder / "queries", [f"q{n}" for n in numbers] if trade else [each.label])
    name = "simulated_question.json" if isinstance(worlds[0].world, Trade) else "simulated_questions.json"
    (folder / "questions" / name).write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return Dataset(folder, sizes["nodes"], sizes["edges"], len(entries))


def find_world_questions(world: Trade | Supply, seed: int) -> Iterator[WorldQuestion]:
    """Yield the questions with one best decision, in an order fixed by the seed."""
    # A stream of its own: the world of a seed stays the same however many questions are drawn.
    rng = np.random.default_rng([seed, 1])
    if isinstance(world, Trade):
        return find_trade_questions(world, rng)
    return find_supply_questions(world, rng)


def write_world_question(world: Trade | Supply, question: WorldQuestion) -> Question:
    """Return a question in words, with its rules and its goal."""
    if isinstance(world, Trade):
        names = {"country": world.countries[question.subject], "home": world.nodes[int(world.home[question.subject])]}
        return Question(TRADE_QUESTION.format(**names), TRADE_RULES, TRADE_GOAL.format(**names))
    goods = world.goods[question.subject]
    return Question(SUPPLY_QUESTION.format(goods=goods), SUPPLY_RULES, SUPPLY_GOAL.format(goods=goods))


def make_question_entry(each: QuestionedWorld, question: WorldQuestion, number: int) -> Mapping[str, object]:
    """Return a question as an entry of the released question file, with its difficulty."""
    world, text = each.world, write_world_question(each.world, question)
    shared = {
        "business_rules": text.rules,
        "question": text.text,
        "goal": text.goal,
        "answer": question.answer,
        "question_num": number,
        "difficulty": asdict(question.difficulty),
    }
    if isinstance(world, Trade):
        home = world.nodes[int(world.home[question.subject])]
        return shared | {"home": home, "country": world.countries[question.subject], "year": each.label}
    return shared | {"goods": world.goods[question.subject], "country": each.label}


def _write_databases(world: WorldData, folder: Path, names: list[str]) -> None:
    """Write both dumps of a world once.

    Further names of the same world are links, or copies if links are impossible.
    """
    for form, ending, write in (("SQL_format", "sql", write_sql), ("LPG_format", "cql", write_cypher)):
        first, *others = dict.fromkeys(folder / form / f"{name}.{ending}" for name in names)
        write(world, first)
        for other in others:
            try:
                os.link(first, other)
            # Some file systems have no hard links.
            except OSError:
                shutil.copyfile(first, other)


FORMAT = 2  # raised when the worlds or their files change, so that old files are not used


@dataclass(frozen=True)
class WorldExample:
    """A question with its world, as an SQLite file and as a file of the embedded graph (kglite).

    ``graph``: its place; ``graph_url`` writes it, since nothing else needs kglite.
    """

    name: str
    scenario: Scenario
    subject: str
    question: Question
    database: Path
    graph: Path
    world: WorldData = field(repr=False)

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.database}"

    @property
    def graph_url(self) -> str:
        """URL of the graph file, which is written if it is missing. Raises SetupError if the file cannot be written."""
        from decisor.graphs.load import load_nodes_and_edges
        from decisor.lab.dqa.worlds import build_world_graph

        write_file_once(
            self.graph, lambda path: load_nodes_and_edges(f"kglite:///{path}", *build_world_graph(self.world))
        )
        return f"kglite:///{self.graph}"


SEEDS: dict[str, tuple[Scenario, str, int]] = {
    "supply": ("building", "60x170", 11),
    "trade": ("locating", "60x320", 11),
}
"""Scenario, size and seed of each example; its first question is asked."""


def make_example(name: str, folder: Path | None = None) -> WorldExample:
    """Return the example ``supply`` or ``trade``; its files are written once. folder: the parent of the files, by
    default the user's cache.

    Raises:
        SetupError: there is no such example, or its files cannot be written.
    """
    from decisor.lab.dqa.databases import to_sqlite

    if name not in SEEDS:
        raise SetupError(f"There is no example {name!r}; there is {', '.join(SEEDS)}.")
    scenario, size, seed = SEEDS[name]
    if folder is None:
        folder = cache_folder()
        # The cache may not exist yet: what counts is whether it can be made.
        if not os.access(folder.parent if folder.parent.exists() else folder.parent.parent, os.W_OK):
            folder = Path(tempfile.gettempdir()) / f"decisor-{os.environ.get('USER', 'examples')}"
    world = make_world(scenario, parse_size(size), seed)
    question = next(find_world_questions(world, seed))
    database, graph = folder / f"{name}-{FORMAT}.db", folder / f"{name}-{FORMAT}.kgl"
    write_file_once(database, lambda path: to_sqlite(world.rows(), f"sqlite:///{path}"))
    names = world.countries if isinstance(world, Trade) else world.goods
    asked = write_world_question(world, question)
    return WorldExample(name, scenario, names[question.subject], asked, database, graph, world.rows())


def write_file_once(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file unless it exists.

    It is written beside its place and then moved, so it exists completely or not at all.

    Raises:
        SetupError: it cannot be written.
    """
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, as a rename works within one file system only.
        with tempfile.TemporaryDirectory(dir=path.parent) as beside:
            fresh = Path(beside) / path.name
            write(fresh)
            # A rename is atomic: another process that makes the same example sees the old state or the whole file.
            fresh.replace(path)
    except OSError as error:
        raise SetupError(f"The example cannot be written to {path.parent}: {error}.") from error
