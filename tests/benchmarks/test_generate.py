"""Generated worlds: their state, their questions, their files."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from decisor.errors import SetupError
from decisor.lab.dqa import generator as g
from decisor.lab.dqa.generated_worlds import (
    Balance,
    Floats,
    Supply,
    Trade,
    compute_home_profit,
    compute_supply_prices,
    count_steps_home,
    simulate_supply,
    simulate_trade,
)
from decisor.lab.dqa.generator import WorldQuestion
from decisor.lab.dqa.worlds import Scenario


def by_hand(world: Supply, building: int | None) -> Floats:
    """Prices after the printed rules, line by line."""
    grow = np.ones(len(world.ids))
    if building is not None:
        grow[building] = (world.level[building] + 5) / world.level[building]
    makes = world.max_supply * grow[world.supplier]
    needs = world.max_demand * grow[world.demander]
    demand = world.pop_demand + np.bincount(world.demanded, needs, len(world.goods))
    supply = np.bincount(world.supplied, makes, len(world.goods))
    for _ in range(10):
        got = [need * supply[what] / demand[what] for need, what in zip(needs, world.demanded, strict=True)]
        mean = []
        for owner in range(len(world.ids)):
            rows = np.flatnonzero(world.demander == owner)
            mean.append(np.mean([min(got[row], needs[row]) / needs[row] for row in rows]) if len(rows) else 1.0)
        supply = np.bincount(world.supplied, makes * np.array(mean)[world.supplier], len(world.goods))
    return compute_supply_prices(world, demand, np.asarray(supply, dtype=np.float64))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_fast_prices_are_those_of_the_printed_rules(seed: int) -> None:
    world = g.make_world("building", g.parse_size("tiny"), seed)
    assert isinstance(world, Supply)
    assert world.current_price == pytest.approx(by_hand(world, None), rel=1e-12)
    every = np.arange(len(world.ids))
    demand, supply, _ = simulate_supply(world, Balance.of(world), every)
    expected = np.stack([by_hand(world, building) for building in every.tolist()])
    assert compute_supply_prices(world, demand, supply) == pytest.approx(expected, rel=1e-12)
    for found in g.find_world_questions(world, seed):
        assert world.ids[expected[:, found.subject].argmin()] == found.answer


def test_the_published_state_of_a_trade_world_obeys_its_rules() -> None:
    world = g.make_world("locating", g.parse_size("medium"), 5)
    assert isinstance(world, Trade)
    arrived = 1.05 * np.bincount(world.dest, world.flow, len(world.nodes))
    assert world.ingoing == pytest.approx(arrived, rel=1e-12)
    sent = np.bincount(world.source, world.flow, len(world.nodes))
    senders = np.unique(world.source)
    assert sent[senders] == pytest.approx(world.outgoing[senders], rel=1e-12)
    assert (world.source < world.dest).all()
    assert len(set(zip(world.at.tolist(), world.of.tolist(), strict=True))) == len(world.at)


def test_a_trade_answer_beats_every_other_node() -> None:
    world = g.make_world("locating", g.parse_size("small"), 9)
    assert isinstance(world, Trade)
    questions = list(g.find_world_questions(world, 9))
    assert len(questions) > 20
    for found in questions:
        assert all(profit_at(world, found, str(found.answer)) > value for value in others(world, found))


def profit_at(world: Trade, found: WorldQuestion, node: str) -> float:
    reaches = [steps >= 0 for steps in count_steps_home(world, int(world.home[found.subject]))]
    there = np.flatnonzero((world.of == found.subject) & (world.at == world.nodes.index(node)))
    return compute_home_profit(
        world, simulate_trade(world, int(there[0]) if len(there) else None, reaches), found.subject
    )


def others(world: Trade, found: WorldQuestion) -> list[float]:
    home = world.nodes[world.home[found.subject]]
    return [profit_at(world, found, node) for node in world.nodes if node not in (found.answer, home)]


@pytest.mark.parametrize("scenario", ["locating", "building"])
def test_the_files_have_the_released_layout(scenario: Scenario, tmp_path: Path) -> None:
    made = g.generate_dataset(scenario, "small", 3, tmp_path, 4)
    entries = json.loads(next((made.folder / "questions").iterdir()).read_text())
    assert [entry["question_num"] for entry in entries] == list(range(1, made.questions + 1))
    for entry in entries:
        name = f"q{entry['question_num']}" if scenario == "locating" else entry["country"]
        sql = made.folder / "queries" / "SQL_format" / f"{name}.sql"
        cypher = made.folder / "queries" / "LPG_format" / f"{name}.cql"
        assert sum(line.startswith("INSERT") for line in sql.read_text().splitlines()) == made.nodes + made.edges
        assert all("CREATE" in line and line.endswith(";") for line in cypher.read_text().splitlines())
        assert len(cypher.read_text().splitlines()) == made.nodes + made.edges
        assert {"differ", "margin", "hops", "inputs"} == entry["difficulty"].keys()
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(sql.read_text())


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    one, two = (g.generate_dataset("building", "tiny", 4, tmp_path / name).folder for name in ("one", "two"))
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    g.generate_dataset("building", "tiny", 4, tmp_path)
    with pytest.raises(SetupError, match="not empty"):
        g.generate_dataset("building", "tiny", 4, tmp_path)


@pytest.mark.parametrize("text", ["gigantic", "10x20", "100x100", "200000x1000000"])
def test_a_size_that_cannot_be_made_is_refused(text: str) -> None:
    with pytest.raises(SetupError):
        g.parse_size(text)
