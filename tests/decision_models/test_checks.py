"""The checks of a decision model: right files pass, planted mistakes are named by line."""

import asyncio
from pathlib import Path

import pytest

from decision_shops import CLOSE, SITES, database, opened
from decisor.cli import run_command_line
from decisor.decision_models.checks import check_model, compare_models
from decisor.decision_models.file import parse_model
from decisor.decision_models.tool import explain_decision_model
from decisor.session.decision_models import opened_model
from decisor.system.structured_files import Finding

RIGHT = (
    CLOSE
    + """
[[example]]
choice.pick = ["Mainz", "Linz"]
measure.cost = 228613.86
breaks = []

[[example]]
choice.pick = ["Basel", "Lyon"]
breaks = ["capacity"]
"""
)
MISTAKES = {  # what is written instead, and the checks that see it
    "sum(units * cheapest)": ("sum(cheapest)", {4, 9, 10}),
    "min(cost) AS cheapest": ("avg(cost) AS cheapest", {4}),
    'raises = "cost", spread = "20': ('lowers = "cost", spread = "20', {9}),
    "HAVING sum(units) > capacity": ("HAVING sum(units) > 100 * capacity", {5, 11}),
    "sum(units) AS load, capacity": ("sum(units) AS load, capcity", {1}),
    "WHERE name IN (SELECT name FROM pick)": ("WHERE name = 'Basel'", {4, 5, 6}),
    "(SELECT sum(rent) FROM site)": ("(SELECT rent FROM site LIMIT 1)", {4, 13}),
    "WHERE site IN (SELECT name FROM site) GROUP BY customer) ON customer = id'''\n\n[rule": (
        "WHERE site IN (SELECT name FROM site) AND cost < 0 GROUP BY customer) ON customer = id'''\n\n[rule",
        {2, 4},
    ),
    'goal = "min"': ('goal = "max"', {12}),
    "No warehouse may hold": ("No warehouse may hold 17 % of", {18}),
}


async def findings(folder: Path, text: str) -> list[Finding]:
    async with opened(folder, text) as model:
        return await asyncio.to_thread(lambda: list(check_model(model)))


async def test_a_right_model_is_not_complained_about(tmp_path: Path) -> None:
    assert await findings(tmp_path, RIGHT) == []


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "useless"), [(60_000, False), (10_000_000, True)])
async def test_a_statement_is_useless_only_where_it_is_so_on_other_data_too(
    limit: int, useless: bool, tmp_path: Path
) -> None:
    capped = f"UPDATE site SET rent = {limit} WHERE rent > {limit}; DELETE FROM site WHERE name IN"
    seen = await findings(tmp_path, RIGHT.replace("DELETE FROM site WHERE name IN", capped))
    assert any(one.number == 7 and "statement 1 of change" in one.words for one in seen) == useless


@pytest.mark.slow
@pytest.mark.parametrize("part", MISTAKES)
async def test_a_mistake_is_seen_by_a_check_and_named_by_its_line(part: str, tmp_path: Path) -> None:
    instead, numbers = MISTAKES[part]
    assert part in RIGHT
    seen = await findings(tmp_path, RIGHT.replace(part, instead, 1))
    assert {one.number for one in seen} & numbers, seen
    assert all(one.line or "line" in one.words for one in seen if one.number not in (13, 14)), seen


MILLS = "CREATE TABLE mill AS SELECT * FROM (VALUES ('a', 30.0), ('b', 0.0), ('c', 0.0), ('d', 9.0)) t(name, gain)"
PRICE = """
format = 3
decide = "the mill to extend"
choice.pick.rows = "SELECT name FROM mill"
[measure.price]
goal = "min"
sql = "SELECT 100 - gain FROM mill WHERE name = (SELECT name FROM pick)"
"""


async def test_of_candidates_on_which_two_models_differ_the_easiest_to_work_by_hand_is_named(tmp_path: Path) -> None:
    url = database(tmp_path, MILLS)
    async with (
        opened_model(parse_model(PRICE), url) as one,
        opened_model(parse_model(PRICE.replace("100 - gain", "101 - 2 * gain")), url) as two,
    ):
        difference = await asyncio.to_thread(lambda: compare_models(one, two, float("inf")))
        assert difference is not None and difference.candidate is not None
        assert one.candidates.name(difference.candidate) == "b"


@pytest.mark.slow
async def test_a_second_model_that_differs_is_named_with_the_candidate(tmp_path: Path) -> None:
    url = database(tmp_path, SITES)
    async with (
        opened_model(parse_model(RIGHT), url) as one,
        opened_model(parse_model(RIGHT.replace("sum(units * cheapest)", "sum(units * cheapest * 1.01)")), url) as two,
        opened_model(parse_model(RIGHT), url) as same,
    ):
        seen = await asyncio.to_thread(lambda: [f for f in check_model(one, two) if f.number == 16])
        assert len(seen) == 1 and "this model gives" in seen[0].words
        assert await asyncio.to_thread(lambda: [f for f in check_model(one, same) if f.number == 16]) == []


async def test_a_model_is_said_in_plain_words_with_real_rows(tmp_path: Path) -> None:
    async with opened(tmp_path, RIGHT) as model:
        text = "\n".join(await asyncio.to_thread(lambda: list(explain_decision_model(model))))
    for words in (
        "21 candidates",
        "it changes site (7 rows): 2 go",
        "cost, as small as possible",
        "Broken by 18 of 21",
        "lane.cost by 15 % together",
        "would hold",
    ):
        assert words in text, text


@pytest.mark.slow
def test_the_command_checks_shows_ranks_and_tells_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database(tmp_path, SITES)
    file = tmp_path / "close.toml"
    file.write_text(RIGHT)
    assert run_command_line(["model", "check", str(file), "--db", url]) == 0
    assert "no faults found" in capsys.readouterr().out
    assert run_command_line(["model", "rank", str(file), "--db", url, "--trials", "5", "--scenario", "dear_fuel"]) == 0
    assert "Best for min cost" in capsys.readouterr().out
    assert run_command_line(["model", "show", str(file), "--db", url]) == 0
    assert "To decide: the two warehouses to close" in capsys.readouterr().out
    assert run_command_line(["model", "schema"]) == 0
    assert '"decide"' in capsys.readouterr().out
    file.write_text(RIGHT.replace("sum(units * cheapest)", "sum(cheapest)"))
    assert run_command_line(["model", "check", str(file), "--db", url]) == 1
    assert "your example says 228,614" in capsys.readouterr().out
    assert run_command_line(["model", "rank", str(file), "--db", url, "--scenario", "war"]) == 2
    assert "there is no scenario war; there is dear_fuel" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CASE WHEN gain > 100 THEN gain END", "price of a is a number, and was none"),
        ("CASE WHEN gain < 100 THEN gain END", "price of a is no number any more"),
    ],
)
async def test_a_number_that_appears_or_is_lost_in_another_unit_is_seen(sql: str, words: str, tmp_path: Path) -> None:
    model = PRICE.replace("100 - gain", sql).replace('goal = "min"', 'goal = "min"\nunit = "EUR"')
    model = model.replace("FROM mill", "FROM mill WHERE gain > 20", 1)
    model += '[input]\n"mill.gain" = { unit = "EUR", raises = "price" }\n'
    async with opened_model(parse_model(model), database(tmp_path, MILLS)) as machine:
        seen = await asyncio.to_thread(lambda: [one.words for one in check_model(machine) if one.number == 10])
    assert len(seen) == 1 and words in seen[0]


async def test_a_unit_that_is_mixed_is_seen_where_the_outcome_is_0(tmp_path: Path) -> None:
    model = PRICE.replace("100 - gain", "gain - 30").replace('goal = "min"', 'goal = "min"\nunit = "EUR"')
    model += '[input]\n"mill.gain" = { unit = "EUR", raises = "price" }\n'
    async with opened_model(parse_model(model), database(tmp_path, MILLS)) as machine:
        seen = await asyncio.to_thread(lambda: [one.words for one in check_model(machine) if one.number == 10])
    assert len(seen) == 1 and "price of a is no longer 0: a column" in seen[0]


SECOND_MEASURE = """
[measure.sites]
goal = "max"
sql = "SELECT {} FROM site"

[rule.rent]
absent = "SELECT 1 FROM pick WHERE {}"
"""


async def test_a_second_model_is_compared_by_every_measure_and_rule(tmp_path: Path) -> None:
    head, mark, rest = CLOSE.partition("[input]")
    texts = [
        f"{head}{SECOND_MEASURE.format(*cells)}{mark}{rest}"
        for cells in (("count(*)", "false"), ("count(*) + 1", "false"), ("count(*)", "name = 'Basel'"))
    ]
    async with opened(tmp_path, texts[0]) as one:
        found = [await asyncio.to_thread(compare_models, one, one.lay_over(parse_model(text)), 600) for text in texts]
    assert found[0] is None
    assert found[1] is not None and found[1].finding.words.startswith("measure.sites of ")
    assert found[1].finding.kind == "doubt" and found[2] is not None and "ruled out" in found[2].finding.words
