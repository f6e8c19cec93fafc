"""What a decision says of what was computed, and what a wrong wish does: nothing but a line for the model."""

import sys
from pathlib import Path

import numpy as np
import pytest

from decision_shops import SITES, database, opened
from decisor.databases.sql import SqlTool
from decisor.decision_models.ranking import rank_what_if
from decisor.decision_models.tool import ModelTool
from decisor.errors import SetupError, ToolError
from decisor.session.model_tools import load_function_models
from decisor.techniques.shared.objections import describe_departure, find_fullest_ranking
from decisor.types import Observation, Option, Ranking, Record


@pytest.mark.slow
@pytest.mark.parametrize(
    "wish", ["rank semantics=wrong", "rank percent=x", "rank seconds=-1", "rank other=1", "Atlantis"]
)
async def test_a_wrong_wish_is_an_error_for_the_model(wish: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        with pytest.raises(ToolError):
            await ModelTool(model).call(wish)


async def test_a_statement_that_fails_is_an_error_for_the_model(tmp_path: Path) -> None:
    text = 'format = 3\ndecide = "x"\nchoice.pick.rows = "SELECT name FROM site"\n[measure.n]\n'
    text += 'goal = "min"\nsql = "SELECT nothing FROM site"\n'
    async with opened(tmp_path, text) as model:
        with pytest.raises(ToolError, match="line 6"):
            await ModelTool(model).call("rank")


async def test_some_names_are_compared_as_some_of_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as model:
        tool = ModelTool(model)
        observation = await tool.call('["Linz + Mainz", "Basel + Lyon"]')
    assert "Compared: 2 of 21 candidates; the other 19 were not computed" in observation.note
    assert "Basel + Lyon" in observation.note and "ruled out by capacity" in observation.note


RANKING = Ranking("cost", "min", tuple(Option(name, float(at)) for at, name in enumerate("abcd")), ties=("a",))
PART = Ranking("cost", "min", RANKING.options[2:], ties=("c",))
EMPTY = Ranking("cost", "min", ())


def test_the_fullest_ranking_is_kept_and_an_empty_one_replaces_none() -> None:
    seen = [Observation((Record(f"o{at}.r1"),), ranking=one) for at, one in enumerate((RANKING, PART, EMPTY), 1)]
    assert find_fullest_ranking(seen) is seen[0]
    assert find_fullest_ranking([seen[2]]) is seen[2] and find_fullest_ranking([Observation()]) is None
    assert describe_departure("c", find_fullest_ranking(seen)).endswith(
        "a has the smallest cost (0) [o1.r1]; c is number 3 (2)."
    )
    assert (
        describe_departure("A", find_fullest_ranking(seen)) == "" == describe_departure("", find_fullest_ranking(seen))
    )
    assert "z was not compared" in describe_departure("z", find_fullest_ranking(seen))


async def test_a_function_is_a_decision_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rents_of_a_person.py").write_text(
        "def cheap(tables):\n    return dict(zip(tables['site']['name'], tables['site']['rent']))\n"
        "cheap.measure, cheap.goal = 'rent', 'min'\ndef broken(tables):\n    return 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sql = await SqlTool.open(database(tmp_path, SITES))
    try:
        find = await load_function_models("rents_of_a_person:cheap", sql)
        ranking = rank_what_if(find(""), trials=10)
        assert (ranking.measure, ranking.options[0].name) == ("rent", "Metz") and ranking.robustness is not None
        assert np.isnan(find("").outcomes(["Atlantis"])).all()
        with pytest.raises(SetupError, match="there is no function"):
            await load_function_models("rents_of_a_person:dear", sql)
        with pytest.raises(SetupError, match="gives int"):
            await load_function_models("rents_of_a_person:broken", sql)
    finally:
        await sql.close()
        sys.modules.pop("rents_of_a_person", None)
