"""What a ranking says of today: the rows taken today, nothing taken, or what the books say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from decision_shops import MachineInProcess, model_in_process, source_of
from decisor.decision_models.checks import build_subject, check_present_values
from decisor.decision_models.ranking import rank_model
from decisor.errors import ToolError
from decisor.system.wording import format_ranking
from decisor.types import Table
from decisor.views.comparison import compare_ranking

TABLES = """CREATE TABLE supplier AS SELECT * FROM (VALUES ('Acme', 900.0, 2.0::DOUBLE), ('Bolt', 0.0, 3.5),
    ('Cog', 200.0, 3.0)) s(name, fee, price); CREATE TABLE need AS SELECT 500.0 AS units, 40.0 AS base"""
PICKED = """format = 3
decide = "the supplier"
[choice.pick]
rows = "supplier"
NOW
[measure.cost]
goal = "min"
unit = "EUR"
sql = "SELECT coalesce(sum(fee + price * units), 0) + any_value(base) FROM need LEFT JOIN pick ON true"
"""
# 900 + 2 x 500 + 40, 3.5 x 500 + 40, 200 + 3 x 500 + 40.
COST = {"Acme": 1940.0, "Bolt": 1790.0, "Cog": 1740.0}
CHANGED = """format = 3
decide = "the supplier whose fee is gone"
choice.pick.rows = "SELECT name FROM supplier"
change = "UPDATE supplier SET fee = 0 WHERE name IN (SELECT name FROM pick)"
[measure.fees]
goal = "min"
unit = "EUR"
sql = "SELECT sum(fee) FROM supplier"
"""


@pytest.mark.parametrize(
    ("now", "today", "words"),
    [
        ("", None, ""),
        ('now = ["Bolt"]', COST["Bolt"], "Today: 1,790 EUR; Cog is 50 EUR better."),
        ('now = ["Cog"]', COST["Cog"], "Today: 1,740 EUR; Cog is as good."),
        ("now = []", 40.0, "Today: 40 EUR; Cog is 1,700 EUR worse."),
    ],
)
async def test_today_is_the_candidate_that_is_named(now: str, today: float | None, words: str, tmp_path: Path) -> None:
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        model = await model_in_process(PICKED.replace("NOW", now), source)
        ranking = rank_model(model)
        model.close()
    assert ranking.options[0].outcome == COST["Cog"]
    assert ranking.today == today
    assert words in format_ranking(ranking) and ("Today" in format_ranking(ranking)) == bool(words)
    comparison = compare_ranking(ranking)
    assert comparison is not None and comparison.today == today


async def test_a_candidate_of_today_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[int] = []
    run = MachineInProcess.run

    def count(self: MachineInProcess, statement: str, parameters: Mapping[str, Any], seconds: float) -> Table:
        jobs.append(len(parameters.get("candidates", ())))
        return run(self, statement, parameters, seconds)

    monkeypatch.setattr(MachineInProcess, "run", count)
    computed = []
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        for now in ("", 'now = ["Bolt"]'):
            model = await model_in_process(PICKED.replace("NOW", now), source)
            jobs.clear()
            rank_model(model)
            computed.append(sum(jobs))
            # Beside candidates that it is not among, it is computed as well.
            assert rank_model(model, [0]).today == (COST["Bolt"] if now else None)
            model.close()
    assert computed[0] == computed[1] > 0


async def test_today_is_what_a_measure_is_with_nothing_changed(tmp_path: Path) -> None:
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        model = await model_in_process(CHANGED, source)
        ranking = rank_model(model)
        assert (ranking.today, ranking.options[0].outcome) == (1100.0, 200.0)
        assert "Acme is 900 EUR better" in format_ranking(ranking)
        # On changed data, today is that of the changed data.
        assert rank_model(model, changes="UPDATE supplier SET fee = fee * 2").today == 2200.0
        model.close()


async def test_the_books_are_held_against_what_is_taken_today(tmp_path: Path) -> None:
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        for books, faults in ((1790, 0), (1800, 1)):
            text = PICKED.replace("NOW", 'now = ["Bolt"]').replace('unit = "EUR"', f'unit = "EUR"\nnow = {books}')
            model = await model_in_process(text, source)
            assert len(list(check_present_values(build_subject(model)))) == faults
            model.close()


async def test_a_name_that_is_no_candidate_is_told_with_its_line(tmp_path: Path) -> None:
    async with source_of(TABLES, tmp_path / "t.duckdb") as source:
        model = await model_in_process(PICKED.replace("NOW", 'now = ["Bold"]'), source)
        with pytest.raises(ToolError, match=r"line 5: choice.pick.now: 'Bold' is no candidate; close to it: Bolt"):
            rank_model(model)
        model.close()
