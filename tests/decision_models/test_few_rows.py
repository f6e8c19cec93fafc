"""A candidate that changes few rows of a large table is measured by what it changes, and gives what it gives alone."""

from pathlib import Path

import numpy as np
import pytest

from decision_shops import database
from decisor.databases.sql import SqlTool
from decisor.decision_models.candidates import Candidates
from decisor.decision_models.copies import build_machine_content, read_copies
from decisor.decision_models.file import parse_model
from decisor.decision_models.worker import execution as sparse
from decisor.decision_models.worker.engine import Machine, connect_machine
from decisor.decision_models.worker.program import parse_query
from decisor.decision_models.worker.worlds import Version, Worlds
from decisor.sandbox.engine import Caps

LANES = """CREATE TABLE lane AS SELECT i AS id, i % 100 AS carrier, (20 + (i * 37) % 90)::DOUBLE AS units,
    CASE WHEN i % 11 = 0 THEN NULL ELSE 2 + (i * 7919) % 900 / 100.0 END::DOUBLE AS cost FROM range(3000) t(i);
CREATE TABLE offer AS SELECT i AS carrier, 0.7 + (i * 131) % 97 / 200.0 AS factor FROM range(100) t(i);
CREATE TABLE toll AS SELECT i AS carrier, i / 10.0 AS fee FROM range(100) t(i);"""
MODEL = """
format = 3
decide = "the offer to take"
choice.pick.rows = "SELECT carrier, factor FROM offer"
change = "{change}"
[input]
"lane.cost" = {{ spread = "5 % each" }}
"toll.fee" = {{ spread = "5 % together" }}
"""
QUERIES = [
    "SELECT sum(units * cost) FROM lane",
    "SELECT sum(cost) / count(cost) + (SELECT max(fee) FROM toll) AS mean FROM lane WHERE units > 30",
    "SELECT sum(cost * fee) - count(*) FROM lane JOIN toll ON toll.carrier = lane.carrier",
    "SELECT sum(cost) FROM lane WHERE carrier = 7 AND cost > 5",
    "SELECT max(cost) FROM lane",
    "SELECT sum(cost) FILTER (WHERE units > 50) FROM lane",
    "SELECT sum(DISTINCT cost) FROM lane",
    "SELECT sum(cost) * (SELECT factor FROM pick) FROM lane",
    "SELECT sum(l.cost) FROM lane l JOIN pick c ON l.carrier = c.carrier + 1",
    "SELECT sum(cost) FROM lane WHERE cost < (SELECT avg(cost) FROM lane)",
    "SELECT sum(cost) FROM lane GROUP BY carrier ORDER BY carrier LIMIT 1",
    "SELECT sum(CASE WHEN carrier = 3 THEN 1e15 ELSE 1.0 END) FROM lane",
]
CHANGES = [
    "UPDATE lane SET cost = cost * (SELECT factor FROM pick) WHERE carrier = (SELECT carrier FROM pick)",
    "UPDATE lane SET cost = NULL, units = cost WHERE carrier IN (SELECT carrier FROM pick)",
    "DELETE FROM lane WHERE carrier = (SELECT carrier FROM pick) AND units < 100",
    "UPDATE lane SET cost = (SELECT fee FROM toll t WHERE t.carrier = lane.carrier) * (SELECT factor FROM pick) "
    "WHERE carrier = (SELECT carrier FROM pick)",
]


async def machine(folder: Path, change: str) -> tuple[Machine, Candidates]:
    text = MODEL.format(change=change) + "".join(
        f"[measure.m{at}]\ngoal = 'min'\nsql = '''{query}'''\n" for at, query in enumerate(QUERIES)
    )
    sql = await SqlTool.open(database(folder, LANES))
    model = parse_model(text)
    copies = await read_copies(model, sql)
    await sql.close()
    opened = connect_machine(build_machine_content(model, copies), Caps(memory_mb=1000))
    return opened, Candidates.of(opened.choice(), model.choices[0].takes)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seeds", [(), (5,)])
async def test_all_at_once_gives_what_one_by_one_gives(change: str, seeds: tuple[int, ...], tmp_path: Path) -> None:
    opened, candidates = await machine(tmp_path, change)
    together = opened.outcomes(candidates.places, seeds=seeds)
    assert (together.batched, opened.dense) == (True, set())
    some = [0, 3, 7, 99]
    alone = opened.outcomes([candidates.places[at] for at in some], seeds=seeds, single=True)
    for name, query in zip(together.parts, QUERIES, strict=True):
        np.testing.assert_allclose(together.parts[name][""][some], alone.parts[name][""], rtol=1e-9, err_msg=query)
    opened.close()


async def test_a_change_of_many_rows_is_computed_on_the_whole_table(tmp_path: Path) -> None:
    opened, candidates = await machine(
        tmp_path, "UPDATE lane SET cost = cost * (SELECT factor FROM pick) WHERE carrier > (SELECT carrier FROM pick)"
    )
    together = opened.outcomes(candidates.places)
    assert (together.batched, opened.dense) == (True, {"lane"})
    alone = opened.outcomes([candidates.places[50]], single=True)
    assert together.parts["m0"][""][50] == pytest.approx(alone.parts["m0"][""][0])
    opened.close()


async def test_only_sums_over_the_table_are_taken_apart(tmp_path: Path) -> None:
    opened, _ = await machine(tmp_path, CHANGES[0])
    worlds = Worlds(opened.db, opened.parts, opened.cache_of(""), (100, 1))
    worlds.now = {"lane": Version("x", ("__c",)), "pick": Version("y", ("__c",))}
    fit = [sparse.is_made_of_sums(worlds, parse_query("q", text, {}), "lane") for text in QUERIES]
    assert fit == [True, True, True, True, *[False] * 7, True]
    opened.close()


async def test_a_sum_that_loses_its_digits_is_computed_on_the_whole_table(tmp_path: Path) -> None:
    """Without carrier 3, of 1e15 a lane, what remains is small, and a difference would have rounded it."""
    opened, candidates = await machine(tmp_path, "DELETE FROM lane WHERE carrier = (SELECT carrier FROM pick)")
    assert opened.outcomes(candidates.places).parts["m11"][""][3] == 3000 - 30
    opened.close()
