"""What is said where the seconds end before the work does."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from decision_shops import CLOSE, opened_in_worker
from decisor.decision_models.checks import check_model, compare_models
from decisor.decision_models.ranking import add_trials, rank_outcomes
from decisor.decision_models.tool import ModelTool
from decisor.errors import ToolError
from decisor.system.wording import format_ranking


async def test_trials_that_were_cut_off_are_told_with_their_number_and_what_to_do(tmp_path: Path) -> None:
    async with opened_in_worker(tmp_path, CLOSE) as model:
        outcomes = model.outcomes()
        ranking, whole = rank_outcomes(model, outcomes), model.trials(outcomes.candidates, 2)
        none = format_ranking(
            add_trials(model, ranking, model.trials(outcomes.candidates, 2, seconds=0), ("rent 5 %",))
        )
        known = whole.known.copy()
        known[:, 1] = False
        half = replace(whole, known=known, stopped="the limit of seconds is reached")
        some = format_ranking(add_trials(model, ranking, half, ("rent 5 %",)))
    assert "the limit of seconds is reached after 0 of 2 trials. Give more seconds or fewer trials." in none
    assert "of 1 trial (" in some
    assert "It ended early: the limit of seconds is reached after 1 of 2 trials; more seconds give more." in some


@pytest.mark.slow
async def test_checks_that_were_not_made_are_a_doubt_that_says_what_took_so_long(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with opened_in_worker(tmp_path, CLOSE) as one, opened_in_worker(tmp_path / "other", CLOSE) as two:
        cut, both = list(check_model(one, seconds=0)), compare_models(one, two, 0)
        whole = compare_models(one, two, 600)
    assert [finding.kind for finding in cut[:1]] == ["doubt"] and cut[0].words.startswith("0 s were over")
    assert both is not None and both.finding.words == cut[0].words
    assert whole is None


ENDLESS = """
format = 3
decide = "a site"
choice.pick.rows = "SELECT name FROM site"
[measure.cost]
goal = "min"
sql = '''WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 - 1 FROM n)
SELECT count(*) + length((SELECT name FROM pick)) FROM n, site'''
[measure.rent]
goal = "min"
sql = "SELECT rent FROM site WHERE name = (SELECT name FROM pick)"
[scenario.dear]
change = "UPDATE site SET rent = rent * 2"
[input]
"site.rent" = { spread = "5 % each" }
"""


@pytest.mark.slow
async def test_whatever_the_tool_is_asked_ends_at_its_seconds(tmp_path: Path) -> None:
    async with opened_in_worker(tmp_path, ENDLESS) as model:
        tool = ModelTool(model, seconds=0.5)
        site = model.candidates.name(0)
        for wish in (
            "rank",
            "rank seconds=1",
            f"{site}, {site}",
            f"why {site}",
            "scenario dear",
            "scenarios",
            "pareto",
            "set site.rent = 3",
            "sensitivity",
            "turning points",
        ):
            began = time.monotonic()
            try:
                said = (await tool.call(wish)).note
            except ToolError as error:
                said = str(error)
            assert "limit of seconds" in said, wish
            assert time.monotonic() - began < 6, wish
