"""What is missing, infinite or too long is said or stays as it is: never a 0, never a winner."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from decision_shops import opened
from decisor.decision_models.checks import check_model
from decisor.decision_models.optimize import solve_model
from decisor.decision_models.ranking import rank_model
from decisor.errors import ToolError
from decisor.system.wording import format_ranking

OFFERS = """CREATE TABLE offer AS SELECT * FROM (VALUES ('Ahorn', 12.5, 2), ('Buche', NULL, 3), ('Cedar', 9.0, 0))
    t(name, price, share)"""
CHEAPEST = """format = 3
decide = "x"
choice.pick.rows = "SELECT name, price, share FROM offer"
[measure.cost]
goal = "min"
sql = "SELECT (SELECT price FROM pick)"
"""


async def test_a_supplier_without_a_price_is_out_and_its_row_and_column_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path, CHEAPEST, OFFERS) as model:
        ranking = rank_model(model)
    assert [one.name for one in ranking.options] == ["Cedar", "Ahorn"]
    assert "cost is NULL or not a number: price is NULL in the chosen row name Buche" in format_ranking(ranking)


async def test_the_row_of_another_table_that_lacks_a_number_is_named(tmp_path: Path) -> None:
    text = CHEAPEST.replace(
        "SELECT (SELECT price FROM pick)", "SELECT price + 0 FROM offer WHERE name = (SELECT name FROM pick)"
    ).replace("SELECT name, price, share FROM", "SELECT name FROM")
    async with opened(tmp_path, text, OFFERS) as model:
        assert "offer.price is NULL in the row name Buche" in format_ranking(rank_model(model))


async def test_an_infinite_outcome_does_not_win(tmp_path: Path) -> None:
    text = CHEAPEST.replace(
        "SELECT (SELECT price FROM pick)", "SELECT (SELECT price FROM pick) / (SELECT share FROM pick)"
    ).replace('"min"', '"max"')
    async with opened(tmp_path, text, OFFERS) as model:
        ranking = rank_model(model)
    assert [one.name for one in ranking.options] == ["Ahorn"] and "nan" not in format_ranking(ranking)
    assert "cost is infinite" in format_ranking(ranking)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "SELECT sum(price) FROM offer WHERE name <> (SELECT name FROM pick)",
            "SUM(price) passes over rows of offer whose price is NULL (1 of 3)",
        ),
        ("SELECT avg(o.price) FROM offer AS o, pick AS c WHERE o.name <> c.name", "whose price is NULL (1 of 3)"),
        ("SELECT min(price) FROM pick", "MIN(price) passes over rows of pick whose price is NULL (1 of 3)"),
        ("SELECT sum(coalesce(price, 0)) FROM offer WHERE name <> (SELECT name FROM pick)", ""),
        ("SELECT sum(price) FROM offer WHERE price IS NOT NULL AND name <> (SELECT name FROM pick)", ""),
        ("SELECT sum(share) FROM offer WHERE name <> (SELECT name FROM pick)", ""),
        ("SELECT count(price) FROM offer", ""),
    ],
)
async def test_a_cell_that_a_sum_passes_over_is_told(sql: str, told: str, tmp_path: Path) -> None:
    async with opened(tmp_path, CHEAPEST.replace("SELECT (SELECT price FROM pick)", sql), OFFERS) as model:
        notes = [line for line in format_ranking(rank_model(model)).splitlines() if "passes over" in line]
        found = [str(one) for one in check_model(model) if "passes over" in one.words]
    assert len(notes) == len(found) == bool(told)
    assert all(told in line for line in (*notes, *found))


async def test_all_ties_are_counted(tmp_path: Path) -> None:
    text = (
        'format = 3\ndecide = "x"\nchoice.pick.rows = "SELECT n FROM many"\n[measure.a]\ngoal = "min"\nsql = "SELECT 1"'
    )
    async with opened(tmp_path, text, "CREATE TABLE many AS SELECT range AS n FROM range(2500)") as model:
        assert "(2,500 in all)" in format_ranking(rank_model(model))


LIMITED = f"""{CHEAPEST}[rule.most]
rows = "SELECT cost, (SELECT max(price) FROM offer WHERE price < 0) AS most FROM measured"
"""


async def test_a_limit_that_is_null_is_met_by_nobody_and_told(tmp_path: Path) -> None:
    async with opened(tmp_path, f'{LIMITED}must = "cost <= most"\nbecause = "{{cost}} is over"', OFFERS) as model:
        assert model.outcomes().broken.all()
        words = format_ranking(rank_model(model))
    assert "rule.most: cost <= most is NULL for Cedar in the row cost 9, most nothing, and counts as broken" in words
    assert "Ahorn (12.5) is ruled out by most: 12.5 is over (most is NULL, which meets no condition)" in words


async def test_a_limit_that_is_null_keeps_nobody_out_by_never_and_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path, f'{LIMITED}never = "cost > most"', OFFERS) as model:
        ranking = rank_model(model)
    assert ranking.options[0].name == "Cedar"
    told = "rule.most: cost > most is NULL for Cedar in the row cost 9, most nothing, and counts as kept"
    assert told in format_ranking(ranking)


NAN = LIMITED.replace("(SELECT max(price) FROM offer WHERE price < 0)", "CAST('inf' AS DOUBLE) - CAST('inf' AS DOUBLE)")


@pytest.mark.parametrize("must", ["cost <= most", "cost >= most", "most >= cost", "cost BETWEEN most AND 99"])
async def test_what_is_not_a_number_meets_no_limit(must: str, tmp_path: Path) -> None:
    # To DuckDB it is above every number.
    async with opened(tmp_path, f'{NAN}must = "{must}"', OFFERS) as model:
        assert model.outcomes().broken.all()
        assert "is NULL for Cedar" in format_ranking(rank_model(model))


async def test_what_is_not_a_number_keeps_nobody_out_by_never_and_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path, f'{NAN}never = "most > cost"', OFFERS) as model:
        ranking = rank_model(model)
    assert ranking.options[0].name == "Cedar"
    assert "rule.most: most > cost is NULL for Cedar in the row cost 9, most NaN" in format_ranking(ranking)


async def test_a_missing_cell_of_a_candidate_that_is_ruled_out_is_in_its_reason(tmp_path: Path) -> None:
    text = f'{CHEAPEST}[rule.most]\nrows = "pick"\nmust = "price <= 12"\nbecause = "{{name}} is dear"'
    async with opened(tmp_path, text, OFFERS) as model:
        words = format_ranking(rank_model(model))
    assert "most: Buche is dear (price is NULL, which meets no condition)" in words and "Ahorn is dear\n" in words
    assert "is NULL for" not in words


async def test_ids_of_thirty_digits_are_told_apart(tmp_path: Path) -> None:
    ids = "123456789012345678901234567890", "123456789012345678901234567891"
    table = f"CREATE TABLE offer AS SELECT unnest([{ids[0]}, {ids[1]}])::DECIMAL(38, 0) AS id, unnest([1, 2]) AS price"
    text = 'format = 3\ndecide = "x"\nchoice.pick.rows = "SELECT id FROM offer"\n[measure.a]\ngoal = "min"\n'
    async with opened(
        tmp_path, text + 'sql = "SELECT sum(price) FROM offer WHERE id = (SELECT id FROM pick)"', table
    ) as model:
        assert model.outcomes().values[:, 0].tolist() == [1, 2] and model.candidates.name(1) == ids[1]
        with pytest.raises(ToolError, match="no candidate"):
            model.candidates.find("123456789012345678901234567899")


@pytest.mark.parametrize("kind", ["BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(9, 2)", "BOOLEAN", "DATE", "VARCHAR"])
async def test_null_stays_null_in_every_type(kind: str, tmp_path: Path) -> None:
    table = f"CREATE TABLE t AS SELECT NULL::{kind} AS x, 1 AS n UNION ALL SELECT NULL, 2"
    text = 'format = 3\ndecide = "x"\nchoice.pick.rows = "SELECT n FROM t"\n[measure.a]\n'
    text += 'goal = "min"\nsql = "SELECT count(x) FROM t"'
    async with opened(tmp_path, text, table) as model:
        assert model.outcomes().values[:, 0].tolist() == [0, 0]


BUY = """format = 3
decide = "what to buy"
[unknown.buy]
per = "SELECT name, price, most FROM part"
kind = "integer"
[rule.enough]
rows = "SELECT sum(amount) AS number FROM buy"
must = "number >= 3"
[rule.most]
rows = "buy"
must = "amount <= most"
[measure.cost]
goal = "min"
sql = "SELECT sum(price * amount) FROM buy"
"""


@pytest.mark.parametrize(
    ("text", "rows", "complaint"),
    [
        (BUY, "('a', 1.0, 2), ('b', NULL, 5)", "a coefficient is NULL; mend the data"),
        (BUY, "('a', 1.0, 2), ('b', 2.0, NULL)", r"rule\.most: in 1 of 2 rows one side is NULL.*such as name b"),
        (BUY.replace("price", "amount"), "('a', 1.0, 2)", "a column may not be called amount"),
    ],
)
async def test_a_program_with_a_missing_number_is_no_program(
    text: str, rows: str, complaint: str, tmp_path: Path
) -> None:
    pytest.importorskip("highspy")
    name = "amount" if "amount, most" in text else "price"
    table = f"CREATE TABLE part AS SELECT * FROM (VALUES {rows}) t(name, {name}, most)"
    async with opened(tmp_path, text, table) as model:
        with pytest.raises(ToolError, match=complaint):
            await asyncio.to_thread(solve_model, model)


@pytest.mark.slow
async def test_small_programs_are_solved_as_well_as_by_trying_every_plan(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    from itertools import product

    rng = np.random.default_rng(5)
    for number in range(12):
        prices, most = (rng.integers(1, 40, 4) / 10).tolist(), rng.integers(0, 4, 4).tolist()
        rows = ", ".join(f"('p{at}', {price}, {top})" for at, (price, top) in enumerate(zip(prices, most, strict=True)))
        plans = [plan for plan in product(*(range(top + 1) for top in most)) if sum(plan) >= 3]
        best = min((sum(p * n for p, n in zip(prices, plan, strict=True)) for plan in plans), default=None)
        table = f"CREATE TABLE part AS SELECT * FROM (VALUES {rows}) t(name, price, most)"
        (tmp_path / str(number)).mkdir()
        async with opened(tmp_path / str(number), BUY, table) as model:
            proposal = solve_model(model)
        assert (proposal.status == "infeasible") == (best is None)
        assert best is None or proposal.measures["cost"] == pytest.approx(best)
