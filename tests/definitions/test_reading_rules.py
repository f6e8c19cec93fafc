"""What the rules suspect of a question, on a real schema; and how an LLM's judgement is read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from decisor.databases.sql import SqlTool
from decisor.errors import ParseError
from decisor.semantics.definitions import parse_definitions
from decisor.semantics.readings import FORM, parse_readings, suspect_readings
from decisor.semantics.relevant import find_relevant_definitions
from decisor.types import Question
from definition_shops import DEFINITIONS, shop


@pytest.fixture
async def rows(tmp_path: Path) -> AsyncIterator[SqlTool]:
    tool = await SqlTool.open(shop(tmp_path))
    yield tool
    await tool.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "words", "first", "second"),
    [
        ("What did Ann spend?", "spend", "after discount", "before discount"),
        ("Which product sells best?", "sells", "by money", "by pieces, the sum of quantity"),
        ("How many cups did we sell?", "sell", "pieces, the sum of quantity", "how many different ones"),
        ("Who is our best customer?", "best", "by money", "by number"),
        ("Which customer should we visit?", "visit", "by money", "by number"),
        ("How many purchases in May 2023?", "may", "by ordered_on", "by shipped_on"),
        (
            "How many purchases in fiscal 2024?",
            "fiscal",
            "the calendar year",
            "July to June, the year in which it ends",
        ),
        (
            "How many purchases last year?",
            "last year",
            "counted back from the last day in the data",
            "counted back from today",
        ),
        ("How many purchases do we have?", "purchases", "all, whatever their status", "only those with status closed"),
        (
            "How many loyal customers are there?",
            "loyal",
            "loyal by the last year of the data",
            "loyal in any other sense",
        ),
    ],
)
async def test_words_with_two_readings_are_suspected(
    rows: SqlTool, question: str, words: str, first: str, second: str
) -> None:
    suspects = {one.words: tuple(one.choices) for one in suspect_readings(Question(question), rows.tables)}
    assert suspects[words] == (first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "What did Ann spend after discounts?",
        "What is the gross revenue?",
        "Which product sells most units?",
        "Which product brings the most pieces?",
        "Which customer has the most orders?",
        "Which customer is best by revenue after discounts?",
        "How many purchases were shipped in May 2023?",
        "How many purchases were ordered in 2023?",
        "How many purchases are open?",
        "How many purchases are there in total?",
        "Which customers live in Norway?",
        "What is the highest price?",
        "Which product is in purchase 3?",
        "Which customers never bought tea?",
    ],
)
async def test_what_a_question_says_itself_is_not_suspected(rows: SqlTool, question: str) -> None:
    assert suspect_readings(Question(question), rows.tables) == []


async def test_rules_and_a_goal_say_by_what_is_decided(rows: SqlTool) -> None:
    question = "Which customer should we visit?"
    assert suspect_readings(Question(question), rows.tables)
    assert not suspect_readings(Question(question, rules="Visit the one with the most purchases."), rows.tables)
    assert not suspect_readings(Question(question, goal="Reach whom we lost."), rows.tables)


@pytest.mark.parametrize(
    "question",
    [
        "Who is our best customer?",
        "What was the turnover in 2023?",
        "How many orders in fiscal 2024?",
        "Which country brings the most revenue?",
    ],
)
async def test_what_is_defined_is_not_suspected(rows: SqlTool, question: str) -> None:
    words = {word for one in suspect_readings(Question(question), rows.tables) for word in one.words.split()}
    needs = find_relevant_definitions(question, parse_definitions(DEFINITIONS))
    left = {word for one in suspect_readings(Question(question), rows.tables, needs) for word in one.words.split()}
    assert words and not left & {"best", "turnover", "fiscal", "2023", "brings", "revenue"}


def test_an_llms_judgement_reads_the_same_as_text_and_as_an_object() -> None:
    text = "Thought: dates.\nUnclear: in May | by ordered_on | by shipped_on"
    value = (
        '{"thought": "dates.", "unclear": [{"words": "in May", "first": "by ordered_on", "second": "by shipped_on"}]}'
    )
    assert FORM.read(text) == FORM.read(value) != ()
    assert FORM.read('{"thought": "clear", "unclear": []}') == FORM.read("Unclear: none") == ()
    three = "\n".join(f"Unclear: {word} | a | b" for word in ("x", "y", "z"))
    assert [one.words for one in parse_readings(three)] == ["x", "y"]
    assert parse_readings("Unclear: x | the same | The same") == ()


@pytest.mark.parametrize(
    "reply", ["", "It is clear.", "Unclear: revenue", "Unclear: revenue | net", "Unclear: a | | c"]
)
def test_a_judgement_that_cannot_be_used_goes_back_to_the_llm(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_readings(reply)


async def test_almost_is_no_most(rows: SqlTool) -> None:
    asked = "Which {} have almost nothing? We have purchases."
    assert not any(
        one.words == "purchases" for one in suspect_readings(Question(asked.format("purchases")), rows.tables)
    )
