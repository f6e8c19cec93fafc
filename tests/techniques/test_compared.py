"""Answers whose citation is true and shows no choice, as transcripts."""

from __future__ import annotations

import pytest

from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.labelled import LabelledReply
from decisor.runtime.run import Run
from decisor.techniques import build_technique
from decisor.techniques.shared.answer import Trajectory
from decisor.techniques.shared.review import list_objections
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import LLMCall, UnreadableReply, events_of
from decisor.types import Action, Decision, Observation, Question, Record, Step
from techniques.documents import Passages
from techniques.table import TableTool

SITES = (
    ("Haverfield", "Haverfield is 14 km from the port. The rent is 31,000 crowns a month."),
    ("Stanbrook", "Stanbrook is 11 km from the port. The rent is 36,000 crowns a month."),
    ("Heating", "Heating cost 2,100 crowns a month in Haverfield and 1,400 in Stanbrook."),
)
SITE = Question("Which site should we rent?", rules="The cheapest is best.", goal="Choose one site.")
RIVER = Question("Which river is the longest?")
PLAN = "Plan: [Step 1: find the candidates, Step 2: compare]\nCurrent step: Step 1\n"


def search(words: str) -> str:
    return f"{PLAN}Thought: look\nAction: passages\nAction input: {words}"


def query(sql: str) -> str:
    return f"{PLAN}Thought: look\nAction: sql\nAction input: {sql}"


async def play(
    name: str, question: Question, replies: list[str], tool: Passages | TableTool
) -> tuple[Decision, Run, ScriptedLLM]:
    llm = ScriptedLLM(replies)
    box = Toolbox([tool])
    run = Run(llm, box)
    decision = await build_technique(name)(question, run)
    await box.close()
    return decision, run, llm


def complaints(run: Run) -> list[str]:
    return [event.reason for event in events_of(run.trace.entries, UnreadableReply)]


def table() -> TableTool:
    tool = TableTool()
    tool.db.executemany("insert into river values (?, ?, '')", [("caro", 210.0), ("dane", 95.0)])
    return tool


@pytest.mark.parametrize("name", ["iter_rag", "plan_rag"])
async def test_who_looked_up_one_candidate_is_asked_for_the_others(name: str) -> None:
    one = query("select name, km from river where name = 'caro'")
    rank = query("select name, km from river order by km desc")
    caro, bel = (
        "Final answer: caro\nBecause: it is 210 km long [o1.r1].",
        "Final answer: bel\nBecause: 340.25 km [o2.r1].",
    )
    decision, run, llm = await play(name, RIVER, [one, caro, rank, bel], table())
    assert "Each query that brought caro named it, and no other candidate was looked at." in llm.seen[2]
    assert "Action input: SELECT " in llm.seen[2].partition("could not be used")[2], "the example is an action"
    assert complaints(run) == ["not_compared"] and decision.answer == "bel"
    assert not any("named it" in reason for reason in decision.reasons)


@pytest.mark.parametrize("name", ["iter_rag", "plan_rag"])
async def test_who_insists_is_asked_once_and_the_decision_says_what_is_weak(name: str) -> None:
    one = query("select name, km from river where name = 'caro'")
    caro = "Final answer: caro\nBecause: it is 210 km long [o1.r1]."
    decision, run, _ = await play(name, RIVER, [one, caro, caro], table())
    assert complaints(run) == ["not_compared"] and decision.answer == "caro"
    assert "Each query that brought caro named it, and no other candidate was looked at." in decision.reasons


async def test_a_candidate_from_the_middle_of_every_column_is_marked_for_who_reads_the_decision() -> None:
    listing = query("select name, km from river order by name")
    caro = "Final answer: caro\nBecause: it is 210 km long [o1.r3]."
    decision, run, _ = await play("iter_rag", RIVER, [listing, caro], table())
    weak = "caro is not the first row of o1, nor does any column there have its largest or smallest figure in it."
    assert decision.reasons == ("it is 210 km long [o1.r3].", weak) and not complaints(run)


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("select name, km from river order by km desc limit 1", 1),
        ("select name, km from river", 2),
        ("select name from river where name in ('bel', 'caro')", 1),
        ("select max(km), name from river", 1),
    ],
)
async def test_a_query_that_compares_is_enough(sql: str, row: int) -> None:
    answer = f"Final answer: bel\nBecause: it is the longest [o1.r{row}]."
    decision, run, _ = await play("iter_rag", RIVER, [query(sql), answer], table())
    assert not complaints(run) and decision.reasons == (f"it is the longest [o1.r{row}].",)


async def test_candidates_that_the_question_names_may_be_looked_up_one_by_one() -> None:
    one = query("select name, km from river where name = 'caro'")
    caro = "Final answer: caro\nBecause: it is 210 km long [o1.r1]."
    _, run, _ = await play("iter_rag", Question("Is caro longer than dane?"), [one, caro], table())
    assert not complaints(run)


@pytest.mark.parametrize("name", ["iter_rag", "plan_rag"])
async def test_a_site_that_alone_was_searched_for_goes_back(name: str) -> None:
    wrong = "Final answer: Stanbrook\nBecause: its rent is 36,000 [o1.r1]."
    right = "Final answer: Haverfield\nBecause: 31,000 + 2,100 = 33,100 [o2.r1, o2.r3], not 36,000 + 1,400 = 37,400."
    replies = [search("Stanbrook rent"), wrong, search("site rent port heating"), right]
    decision, run, llm = await play(name, SITE, replies, Passages(SITES))
    assert "Each query that brought Stanbrook named it" in llm.seen[2]
    assert complaints(run) == ["not_compared"] and decision.answer == "Haverfield"
    assert decision.evidence.objections == ()


async def test_a_choice_among_passages_cites_what_it_was_compared_with() -> None:
    wrong = "Final answer: Stanbrook\nBecause: its rent is 36,000 [o1.r2]."
    right = "Final answer: Haverfield\nBecause: its rent is 31,000 [o1.r1].\nRunner-up: Stanbrook with 36,000 [o1.r2]"
    decision, run, llm = await play("iter_rag", SITE, [search("rent of each site"), wrong, right], Passages(SITES))
    assert "[o1.r2] alone is cited, and no passage with what Stanbrook was compared with." in llm.seen[2]
    assert complaints(run) == ["not_compared"] and decision.evidence.ids == ("o1.r1", "o1.r2")


async def test_a_fact_from_one_passage_is_no_choice() -> None:
    answer = "Final answer: 31,000 crowns\nBecause: it says so [o1.r1]."
    question = Question("What is the rent of Haverfield?")
    _, run, _ = await play("iter_rag", question, [search("Haverfield rent"), answer], Passages(SITES))
    assert not complaints(run)


async def test_where_passages_are_all_there_is_no_query_is_spoken_of() -> None:
    _, run, _ = await play("iter_rag", SITE, [search("rent"), "Final answer: none"], Passages(SITES))
    system = run.trace.of(LLMCall)[0].messages[0].content
    assert "look for each figure that they need, of every candidate" in system and "join on keys" not in system
    _, run, _ = await play("iter_rag", RIVER, [query("select 1 as one"), "Final answer: none"], table())
    assert "join on keys" in run.trace.of(LLMCall)[0].messages[0].content


FEWEST = "SELECT site, faults FROM sites ORDER BY faults"


def compared(query: str) -> Trajectory:
    rows = sorted([("Ash", 4), ("Elm", 2), ("Oak", 3)], key=lambda row: row[1], reverse="DESC" in query)
    records = (Record(f"o1.r{at}", {"site": name, "faults": faults}) for at, (name, faults) in enumerate(rows, 1))
    step = Step(Action("sql", query), Observation(tuple(records)))
    return Trajectory(Question("Which site that is open has the fewest faults?"), steps=(step,))


@pytest.mark.parametrize(
    ("answer", "query", "runner_up", "found"),
    [
        ("Elm", FEWEST, "Oak", []),
        ("Elm, 2 faults", FEWEST, "Oak, 3", []),
        ("Elm", FEWEST, "Ash", ["Ash (4) is number 3 by faults; the next after Elm is Oak (3)."]),
        (
            "Ash",
            f"{FEWEST} DESC",
            "",
            ["Ash has the largest faults [o1.r1], and the question asks for the other extreme."],
        ),
    ],
)
def test_a_wrong_runner_up_and_the_wrong_end_of_a_list_go_back(
    answer: str, query: str, runner_up: str, found: list[str]
) -> None:
    reply = LabelledReply(answer=answer, because="See [o1.r1].", runner_up=runner_up)
    texts = [one.text.partition(" Answer")[0] for one in list_objections(reply, compared(query))]
    assert texts == found
