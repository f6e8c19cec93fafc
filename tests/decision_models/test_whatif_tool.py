"""What if, on a model whose answers were worked out by hand: where to rent an office."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from decision_shops import opened
from decisor.decision_models.tool import ModelTool, describe_model
from decisor.errors import ToolError
from decisor.types import Observation

OFFICES = """
format = 3
decide = "the office to rent"
choice.pick.rows = "SELECT name, seats, metres FROM office"
[measure.rent]
goal = "min"
unit = "EUR"
sql = "SELECT o.rent * factor FROM pick JOIN office AS o USING (name), terms"
[measure.way]
goal = "min"
unit = "m"
sql = "SELECT (SELECT metres FROM pick)"
[rule.room]
text = "Everybody has a seat."
absent = "SELECT people, (SELECT seats FROM pick) AS seats FROM terms WHERE people > (SELECT seats FROM pick)"
because = "{seats} seats for {people} people"
[scenario.hiring]
text = "Five more people."
change = "UPDATE terms SET people = people + 5"
[scenario.hard_times]
change = "UPDATE terms SET factor = factor * 1.1"
[input]
"terms.people" = { unit = "people", spread = "20 % each" }
"terms.factor" = { raises = "rent" }
"office.rent" = { unit = "EUR", raises = "rent", spread = "10 % by name" }
"""
# north has no room for 12 people; east is the cheapest that has, west costs 100 more, hill is dearer and farther
TABLES = """CREATE TABLE office AS SELECT * FROM (VALUES ('north', 900.0, 8, 100), ('east', 1200.0, 14, 800),
    ('west', 1300.0, 20, 300), ('hill', 1500.0, 20, 900)) t(name, rent, seats, metres);
CREATE TABLE terms AS SELECT 12 AS people, 1.0 AS factor"""


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[ModelTool]:
    async with opened(tmp_path, OFFICES, TABLES) as model:
        yield ModelTool(model, describe_model(model))


def fields(observation: Observation, at: int = 0) -> dict[str, object]:
    return dict(observation.records[at].fields)


async def test_the_tool_tells_measure_goal_count_rules_and_what_is_certain(tool: ModelTool) -> None:
    text = tool.describe()
    assert "measure rent in EUR, as small as possible; it decides" in text
    assert "4 candidates, such as north and hill" in text
    assert "rule room: Everybody has a seat." in text
    assert "terms.people in people by 20 % each" in text and "taken as certain: terms.factor" in text
    assert "hiring (Five more people.)" in text and "terms (people, factor)" in text


async def test_why_gives_each_rule_with_its_rows_and_each_measure_against_the_best(tool: ModelTool) -> None:
    observation = await tool.call("Why not north?")
    assert "north is not allowed." in observation.note and "8 seats for 12 people" in observation.note
    assert fields(observation)["difference"] == -300.0 and fields(observation)["best"] == "east"
    assert fields(observation, 1)["difference"] == -700.0
    assert fields(observation, 2)["rows"] == [{"people": 12.0, "seats": 8}]
    assert "west is number 2 of 3" in (await tool.call('{"why": "WEST"}')).note


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "set terms.people = 15",
        "set terms.people to 15",
        "terms.people + 3",
        "UPDATE terms SET people = people + 3",
        "TERMS.People × 1.25",
        "terms.people * 1,25",
        "terms.people +25 %",
        "`set terms.people = 15 where people = 12`",
        '{"set": "terms.people = 15", "where": "people > 3"}',
        "set terms.people = 14; terms.people + 1",
    ],
)
async def test_a_change_is_read_in_many_forms_and_told_with_baseline_and_effect(text: str, tool: ModelTool) -> None:
    observation = await tool.call(text)
    record = fields(observation)
    assert (record["best now"], record["rent now"], record["best then"], record["rent then"]) == (
        "east",
        1200.0,
        "west",
        1300.0,
    )
    assert record["effect"] == 100.0 and record["east then"] == "room: 14 seats for 15 people"
    assert fields(observation, 1) == {"rule": "room", "candidates that break it now": 1, "then": 2}
    assert observation.ranking is None  # the decision rests on the data as they are
    assert (await tool.call("rank trials=0")).records[0].fields["candidate"] == "east"


async def test_a_change_that_moves_nothing_says_so(tool: ModelTool) -> None:
    assert "moves no measure and no rule" in (await tool.call("set terms.factor = 1")).note
    assert fields(await tool.call("set office.seats = 99"))["best then"] == "north"  # choice reads the seats anew
    assert "moves no measure" not in (await tool.call("office.rent + 1")).note


async def test_a_scenario_is_a_change_by_name_and_all_stand_side_by_side(tool: ModelTool) -> None:
    assert fields(await tool.call("scenario Hiring"))["best then"] == "west"
    assert (await tool.call("hiring")).note == (await tool.call("Scenario 'hiring'")).note
    assert fields(await tool.call("hard_times"))["effect"] == pytest.approx(120.0)
    observation = await tool.call("Worst case")
    assert [row.fields.get("best") for row in observation.records[:3]] == ["east", "west", "east"]
    assert "The best in the worst case is west: 1,430 EUR." in observation.note  # east has no room when five more come
    assert "Least regret has west: at most 110 EUR" in observation.note
    assert "Best for min rent: west (1,300 EUR)" in (await tool.call("rank scenario=hiring trials=0")).note


async def test_turning_points_are_those_worked_out_by_hand(tool: ModelTool) -> None:
    observation = await tool.call("turning points")
    turns = {(row.fields["input"], row.fields["wins"]): row.fields for row in observation.records}
    people = [fields for (name, _), fields in turns.items() if name == "terms.people"]
    assert {row["wins"]: row["times"] for row in people} == {
        "west": pytest.approx(14 / 12, rel=1e-3),
        "north": pytest.approx(8 / 12, rel=1e-3),
    }
    assert "room: 14 seats for 14" in str(turns["terms.people", "west"]["because"])
    assert turns["office.rent (name east)", "west"]["times"] == pytest.approx(1300 / 1200, rel=1e-3)
    assert turns["office.rent (name west)", "west"]["times"] == pytest.approx(1200 / 1300, rel=1e-3)
    assert "No such point by terms.factor" in observation.note


async def test_what_it_would_take_for_one_to_win(tool: ModelTool) -> None:
    observation = await tool.call("What would it take for north to win?")
    assert [(row.fields["input"], row.fields["wins"]) for row in observation.records] == [("terms.people", "north")]
    assert "As the data are north is ruled out by room: 8 seats for 12 people." in observation.note
    assert "hill is 300 EUR of rent behind" in (await tool.call("what would have to change for hill to win")).note
    assert (await tool.call("what would it take for east to win")).note == "east wins as the data are."


async def test_the_front_is_who_nobody_beats_in_rent_and_way(tool: ModelTool) -> None:
    observation = await tool.call("pareto front")
    assert [row.fields["candidate"] for row in observation.records] == ["east", "west"]
    assert observation.study and [point.front for point in observation.study.points] == [True, True, False]


async def test_sensitivity_varies_each_input_alone_as_its_spread_says(tool: ModelTool) -> None:
    observation = await tool.call("sensitivity")
    rows = {str(row.fields["input"]): row.fields for row in observation.records}
    assert rows["terms.people"]["lead from"] == rows["terms.people"]["lead to"] == 100.0
    assert rows["terms.people"]["best stays in front"] < 1  # type: ignore[operator]  # 14.4 people at most
    assert rows["office.rent"]["lead from"] < 0 < rows["office.rent"]["lead to"]  # type: ignore[operator]
    assert "terms.factor" not in rows


async def test_some_candidates_stand_beside_the_best_of_all(tool: ModelTool) -> None:
    observation = await tool.call('["west", "hill"]')
    assert "Compared: 2 of 4" in observation.note
    assert "Of all candidates the best is east (1,200 EUR rent)." in observation.note


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("why nort", "close to it: north"),
        ("set terms.poeple = 3", "close to it: people"),
        ("set team.people = 3", "no table of this model; close to it: terms"),
        ("set terms.people = 3 where people = 99", "changes nothing"),
        ("set office.rent = 3 where name = 'nord'", "name is one of north, east"),
        ("scenario war", "there is hiring, hard_times"),
        ("rank scenario=war", "hiring"),
        ("set terms.people = 3, factor = 2", "Only terms.people may be changed"),
        ("set terms.people = 3; DROP TABLE terms", "no change that can be read"),
        ("set terms.people = 3 where people = 12; DELETE FROM terms", "no change that can be read"),
        ("set terms.people = (SELECT count(*) FROM read_csv('/etc/passwd'))", "read_csv is not allowed"),
        ("set terms.people = 1 RETURNING people", "Returning is not allowed"),
        ("set terms.people = 1 FROM office", "Only terms.people"),
        ("terms.people × many", "is no number"),
        ("set terms.people = ", "no change that can be read"),
        ("rank speed=1", "no setting speed"),
        ("[1", "not JSON"),
        ("set terms.people = " + "(" * 900, "nested too deeply"),
        ("set terms.people = 1 -- x" + "y" * 3000, "at most"),
    ],
)
async def test_what_is_wrong_is_told_with_what_is_possible(text: str, complaint: str, tool: ModelTool) -> None:
    with pytest.raises(ToolError, match=complaint.replace("(", r"\(")):
        await tool.call(text)
