"""What if, on a decision that the solver makes: which crates go on the lorry."""

import asyncio
from pathlib import Path

import pytest

from decision_shops import opened
from decisor.decision_models.optimize import rank_or_solve
from decisor.decision_models.second_form import upgrade_text
from decisor.decision_models.tool import ModelTool, describe_model
from decisor.errors import ToolError
from decisor.system.wording import format_ranking

pytest.importorskip("highspy")

LORRY = upgrade_text("""
decide = "which crates go on the lorry"
[variable.load]
each = "SELECT crate, value, weight FROM crate"
kind = "yes or no"
[require.weight]
text    = "The lorry carries so much."
sum     = "weight * load"
at_most = "SELECT most FROM lorry"
[measure.value]
goal = "max"
unit = "EUR"
sum  = "value * load"
sql  = "SELECT sum(value) FROM load WHERE chosen"
""")
CRATES = """CREATE TABLE crate AS SELECT * FROM (VALUES ('a', 60.0, 10.0), ('b', 100.0, 20.0), ('c', 120.0, 30.0))
    t(crate, value, weight); CREATE TABLE lorry AS SELECT 50.0 AS most"""


async def test_a_change_is_solved_anew_beside_the_data_as_they_are(tmp_path: Path) -> None:
    async with opened(tmp_path, LORRY, CRATES) as model:
        tool = ModelTool(model, describe_model(model))
        assert "rule weight: The lorry carries so much." in tool.describe()
        assert (await tool.call("rank")).records[0].fields["candidate"] == "b + c"  # 220 of 50 kg
        record = (await tool.call("set lorry.most = 30")).records[0].fields
        assert (record["value now"], record["best then"], record["value then"]) == (220.0, "a + b", 160.0)
        assert record["effect"] == -60.0
        with pytest.raises(ToolError, match="for the solver"):
            await tool.call("turning points")


VARIED = """
[input]
"crate.value" = { unit = "EUR", raises = "value", spread = "30 % by crate" }
"""


async def test_trials_of_a_solver_model_are_solved_each_and_counted(tmp_path: Path) -> None:
    """b + c (220) is before a + c (180) and a + b (160), so crate a has to gain much and b to lose much."""
    async with opened(tmp_path, LORRY + VARIED, CRATES) as model:
        ranking = await asyncio.to_thread(rank_or_solve, model, trials=25)
    assert (ranking.trials, ranking.varied) == (25, ("crate.value 30 % by crate",))
    assert ranking.robustness is not None and 0.7 < ranking.robustness <= 1
    assert {one.name for one in ranking.winners} <= {"b + c", "a + c", "a + b"}
    assert "Each trial was solved anew." in format_ranking(ranking)
