"""What if in a session: beside the data for every technique, and its pictures at the end."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import decisor
from decision_shops import database
from decisor.lab.dqa.generator import make_example
from decisor.llms.scripted import ScriptedLLM
from decisor.types import Message
from report.browser import FOUND, browser, page_data

MODEL = """
format = 3
decide = "the office to rent"
choice.pick.rows = "SELECT name, seats, metres FROM office"
[measure.rent]
goal = "min"
unit = "EUR"
sql = "SELECT o.rent FROM pick JOIN office AS o USING (name)"
[measure.way]
goal = "min"
unit = "m"
sql = "SELECT (SELECT metres FROM pick)"
[rule.room]
text = "Everybody has a seat."
absent = "SELECT people, (SELECT seats FROM pick) AS seats FROM terms WHERE people > (SELECT seats FROM pick)"
because = "{seats} seats for {people} people"
[scenario.hiring]
change = "UPDATE terms SET people = people + 5"
[input]
"terms.people" = { spread = "30 % each" }
"office.rent" = { unit = "EUR", raises = "rent", spread = "10 % by name" }
"""
TABLES = """CREATE TABLE office AS SELECT * FROM (VALUES ('north', 900.0, 8, 100), ('east', 1200.0, 14, 800),
    ('west', 1300.0, 20, 300)) t(name, rent, seats, metres);
CREATE TABLE terms AS SELECT 12 AS people"""
PLAN = "Plan: [Step 1: rank]\nThought: Start.\nAction: whatif\nAction input: "
NEXT = "Re-plan: N\nThought: Go on.\nAction: whatif\nAction input: "


def about_offices(folder: Path) -> decisor.Result:
    (folder / "model.toml").write_text(MODEL)
    wishes = ("sensitivity", "turning points", "scenarios", "pareto", "terms.people + 3")
    last = "Re-plan: N\nFinal answer: east\nBecause: it costs 1,200 EUR [o1.r1] [o6.r1]."
    replies = [PLAN + "rank trials=20", *(NEXT + wish for wish in wishes), last]
    return decisor.ask(
        "Which office?",
        db=database(folder, TABLES),
        model=folder / "model.toml",
        llm=ScriptedLLM(replies),
        technique="plan_rag",
        settings={"calling": "text"},
    )


@pytest.mark.slow
def test_what_ifs_are_cited_and_do_not_take_the_place_of_the_ranking(tmp_path: Path) -> None:
    result = about_offices(tmp_path)
    assert result.evidence.ids == ("o1.r1", "o6.r1") and not result.evidence.objections
    assert result.records[1].fields["effect"] == 100.0
    assert result.ranking is not None and result.ranking.options[0].name == "east"
    assert not any("departs" in reason for reason in result.decision.reasons)


@pytest.mark.slow
def test_the_end_of_a_run_shows_ranges_tornado_turning_points_scenarios_and_front(tmp_path: Path) -> None:
    result = about_offices(tmp_path)
    text = str(result)
    parts = """1 east|The line at a value: 90 %|What moves the lead|office.rent (10 % by name)|Turning points
        |Pareto front|terms.people +16.7 %: west wins; east then breaks room: 14 seats|Scenarios side by side|hiring
        |What if terms.people + 3"""
    for part in map(str.strip, parts.split("|")):
        assert part in text, part
    result.html(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text("utf-8")
    assert page.count('<svg class="wide"') == 4, "tornado, both sides of two what-ifs, the Pareto front"
    assert page.count('class="plot"') == 2, "the ranking, the turning points"
    data = page_data(page)
    assert [bool(one["low"]) for one in data["result"]["ranking"]["options"]] == [True, True]
    assert "8 seats for 12 people" in str(data["result"]["ranking"]["excluded"])
    if not FOUND:
        return
    with browser() as window:
        window.open((tmp_path / "run.html").as_uri())
        words = window.run("return document.querySelector('main').textContent")
        for part in (
            "then breaks room: 14 seats for 14",
            "hiring",
            "stays best in",
            "on the Pareto front",
            "room: 8 seats",
        ):
            assert part in words, part
        assert window.run("return document.querySelectorAll('.plot .spread').length") == 2


def test_a_saved_run_has_its_what_ifs(tmp_path: Path) -> None:
    from decisor.trace.file import read_trace
    from decisor.views.rankings import studies_of

    result = about_offices(tmp_path)
    result.save(tmp_path / "run.jsonl")
    assert studies_of(read_trace(tmp_path / "run.jsonl")) == studies_of(result.trace)


def test_the_model_of_a_recognised_world_stands_beside_its_database_for_an_llm(tmp_path: Path) -> None:
    trade, prompts = make_example("trade", tmp_path), list[str]()

    def plays(messages: Sequence[Message]) -> str:
        prompts.append("".join(message.content for message in messages))
        best = "Re-plan: N\nFinal answer: the first\nBecause: it ranks first [o1.r1]"
        return PLAN + "rank trials=0" if len(prompts) == 1 else best

    result = decisor.ask(
        trade.question, db=trade.database, llm=ScriptedLLM(plays), technique="plan_rag", settings={"calling": "text"}
    )
    assert "### Tool: sql" in prompts[0] and "### Tool: whatif" in prompts[0]
    assert "candidates, such as" in prompts[0]
    assert result.ranking is not None and result.evidence.ids == ("o1.r1",)
