"""Queries that mean what they seem to, and such that do not, on five engines. Of each set one half was out of sight
while the rules were written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.pitfall_world import ENGINES, FOLDER, graph, kinds, queries, world
from decisor.errors import ToolError
from decisor.tools.databases.cypher import CypherTool
from decisor.tools.databases.graph_load import load
from decisor.tools.databases.pitfalls.fan_out import fan_out
from decisor.tools.databases.sql import SqlTool

FEWEST = 60
MISSES, FALSE_ALARMS = 3, 1
MEANT = 9


@pytest.fixture(scope="module", params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The engine, and the URL of a database there."""
    folder: Path = tmp_path_factory.mktemp("pitfalls")
    with world(request.param, folder) as url:
        yield request.param, url


async def runs(tool: SqlTool, query: str) -> bool:
    """MariaDB has no LATERAL."""
    try:
        await tool.worker.run(query)
    except ToolError:
        if "LATERAL" not in query:
            raise
        return False
    return True


@pytest.mark.slow
async def test_sums_over_multiplied_rows_are_noticed_and_others_are_not(place: tuple[str, str]) -> None:
    engine, url = place
    tool = await SqlTool.open(url)
    assert tool.pitfalls is not None
    wrong: dict[str, list[str]] = {"inflating": [], "harmless": []}
    for kind, mistakes in wrong.items():
        texts = [query for query in queries(kind, engine) if await runs(tool, query)]
        assert len(texts) >= FEWEST
        for query in texts:
            pitfalls = await tool.pitfalls.look(query, rules=(fan_out,))
            if bool(pitfalls) != (kind == "inflating"):
                mistakes.append(query)
    await tool.close()
    assert len(wrong["inflating"]) <= MISSES, wrong["inflating"]
    assert len(wrong["harmless"]) <= FALSE_ALARMS, wrong["harmless"]


@pytest.mark.slow
async def test_each_kind_of_wrong_query_is_noticed_nine_times_of_ten(place: tuple[str, str]) -> None:
    engine, url = place
    tool = await SqlTool.open(url)
    assert tool.pitfalls is not None
    right: dict[tuple[str, bool], list[bool]] = {}
    for rule, wrong, query in kinds(engine):
        table = await tool.worker.run(query)
        pitfalls = await tool.pitfalls.look(query, table)
        right.setdefault((rule, wrong), []).append(any(one.kind == rule for one in pitfalls) == wrong)
    await tool.close()
    assert {key: sum(marks) for key, marks in right.items() if len(marks) != 10 or sum(marks) < MEANT} == {}


async def test_paths_that_multiply_are_noticed_in_a_graph_and_others_are_not(tmp_path: Path) -> None:
    load(f"kglite:///{tmp_path}/shop.kgl", *graph())
    tool = await CypherTool.open(f"kglite:///{tmp_path}/shop.kgl")
    for kind in ("inflating", "harmless"):
        for query in (FOLDER / f"{kind}.cypher").read_text().splitlines():
            observation = await tool.call(query)
            assert bool(observation.pitfalls) == (kind == "inflating"), query
            assert all(pitfall.text in observation.note for pitfall in observation.pitfalls)
    await tool.close()


async def test_a_value_that_rows_came_back_for_is_not_looked_up(tmp_path: Path) -> None:
    with world("sqlite", tmp_path) as url:
        tool = await SqlTool.open(url)
        assert tool.pitfalls is not None
        names = [
            str(record.fields["name"]) for record in (await tool.call("SELECT name FROM customers LIMIT 2")).records
        ]
        looks = len(tool.pitfalls.stored.results)
        assert (await tool.call(f"SELECT * FROM customers WHERE name = '{names[0]}' AND id > 0")).records
        assert len(tool.pitfalls.stored.results) == looks
        either = await tool.call(f"SELECT * FROM customers WHERE name = '{names[0]}' OR name = 'Nobody at all'")
        assert [one.kind for one in either.pitfalls] == ["unstored_value"]
        counted = await tool.call("SELECT COUNT(*) AS n FROM customers WHERE name = 'Nobody at all'")
        assert [one.kind for one in counted.pitfalls] == ["unstored_value"]
        await tool.close()
