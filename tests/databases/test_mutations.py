"""Variations of the hostile statements have no effect; variations of the harmless ones still run."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from databases.mutation_check import Report, check_harmless, check_hostile, leaks, outcome, session
from databases.mutation_shops import ENGINES, hostile, rows, shop
from databases.mutations import CYPHER_STEPS, SQL_STEPS, Mutant, Seed, mutants

HOSTILE_SECONDS = 2.0
HARMLESS_SECONDS = 2.0
SEED = 1312


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_no_hostile_statement_has_an_effect(engine: str) -> None:
    report = Report()
    with shop(engine) as target:
        expected = {row["id"]: row["expected"] for row in rows("hostile", target.dialect)}
        before, settings = target.state(), await session(target)
        for seed in hostile(engine):
            kind, detail = await outcome(target, Mutant(seed, target.place(seed.text), ()), report)
            assert kind == "refused" or expected[seed.id] not in ("refuse", "policy"), (seed, kind, detail)
            if kind != "refused":
                assert await session(target) == settings and target.state() == before, (seed, kind, detail)
        assert target.state() == before
        await target.worker.close()
    assert report.effects == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_no_variation_of_a_hostile_statement_has_an_effect(engine: str) -> None:
    with shop(engine) as target:
        report = await check_hostile(target, Random(SEED), HOSTILE_SECONDS)
        await target.worker.close()
    assert report.effects == []
    assert report.counts["refused"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("comments", [False, True], ids=["without comments", "with comments"])
async def test_harmless_statements_in_other_letters_and_white_space_run(engine: str, comments: bool) -> None:
    with shop(engine) as target:
        report = await check_harmless(target, Random(SEED), HARMLESS_SECONDS, comments)
        await target.worker.close()
    assert report.effects == []
    assert report.counts["same"] == report.counts["legal"] > 3


def test_a_seed_gives_the_same_variations_by_every_step() -> None:
    for cypher, steps in ((False, SQL_STEPS), (True, CYPHER_STEPS)):
        first, again = (
            list(islice(mutants([Seed("a", "DELETE FROM t WHERE x = 'y'")], ["SELECT 1"], cypher, Random(7)), 400))
            for _ in range(2)
        )
        assert first == again
        assert {name for mutant in first for name in mutant.steps} == {step.__name__ for step in steps}


def test_a_leak_is_noticed() -> None:
    assert leaks("SELECT 1", "(('CANARY-TOKEN-51c0ffee',),)") and leaks("SELECT 1", "43414e415259")
    assert leaks("SELECT * FROM pg_class", "api_tokens") and not leaks("SELECT * FROM api_tokens", "no api_tokens")


async def test_an_effect_is_noticed() -> None:
    with shop("sqlite") as target:
        before = target.state()
        import apsw

        path = target.worker.url.removeprefix("sqlite:///")
        with apsw.Connection(path) as lite:
            lite.execute("DELETE FROM edges")
        lite.close()
        assert target.state() != before
