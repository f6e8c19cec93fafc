"""A question over documents with two readings: asked of a person, or both given; a clear one is not asked about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import decisor
from decisor.llms.scripted import ScriptedLLM
from decisor.semantics.readings import OpenReading
from decisor.session.data import Data
from decisor.types import Message

SUSPECT = re.compile(r"^- (.+?): (.+) or (as .+|what was .+)$", re.M)
DOCUMENTS = {
    "handbook": "# Sales handbook\n\nAn active customer means one who bought within the last twelve months. "
    "Net sales are defined as sales after discounts and returns.\n\nChurn refers to customers who left.",
    "support": "# Support guide\n\nAn active customer means anybody with an open contract, whether they buy or not. "
    "Response time is defined as the minutes until the first reply of a person.",
    "finance": "# Finance manual\n\nNet sales are defined as invoiced amounts without value added tax.\n\n"
    "Headcount refers to contracts of employment on the last day of the quarter.",
    "hr": "# People policy\n\n**Headcount**: full-time equivalents, averaged over the months of a quarter.\n\n"
    "Overtime means hours beyond forty in a week.",
    "ops": "# Operations\n\nResponse time refers to the hours until a fault is repaired. Overtime means hours beyond "
    "forty in a week, as in the people policy.",
    "risk": "# Risk report\n\nChurn denotes revenue lost by cancelled contracts, in euros. A major incident counts as "
    "any outage beyond an hour.",
    "it": "# IT rules\n\nA major incident is any event that more than a hundred users notice.",
    "flood": "# Floods in Linz\n\nPublished in March 2021. In 2019 the river flooded the warehouse twice.",
    "fire": "# Fire in Graz\n\nPublished in May 2019. In 2016 a fire closed the plant in Graz for a week.",
    "strike": "# Strikes at the port\n\nIssued 2022. The strikes of 2020 stopped the port for nine days.",
    "audit": "# Audit of the port\n\nIssued June 2020. In 2018 the audit of the port met two faults.",
    "lease": "# Leases\n\nThe lease of the site in Wels ends in 2025; the rent is 400 a month.",
}
OPEN = (
    "How many active customers do we have?",
    "Which region has the most active customers?",
    "What were net sales?",
    "Did net sales grow?",
    "What is our headcount?",
    "Which team has the largest headcount?",
    "How high is churn?",
    "Which product has the worst churn?",
    "What is the response time of the team in Wels?",
    "How many major incidents were there?",
    "What went wrong at the warehouse and the plant in 2019?",
    "Which troubles did the port have in 2020?",
)
CLEAR = (
    "When does the lease of the site in Wels end?",
    "What is the rent in Wels?",
    "How much overtime was there?",
    "How many active customers are there according to the sales handbook?",
    "What does the Finance manual call net sales?",
    "What happened at the warehouse in 2019?",
    "Which reports were published in 2019?",
    "Which audit took place in 2018?",
    "How often did the river flood the warehouse?",
    "Which customers left?",
    "What stopped the port?",
    "How long was the plant in Graz closed in 2016?",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("docs")
    for name, text in DOCUMENTS.items():
        (base / f"{name}.md").write_text(text)
    return base


def believer(messages: Sequence[Message]) -> str:
    """Holds for open what is suspected; then looks once, and answers by what it was told is meant."""
    text = "\n".join(message.content for message in messages)
    if "# How to judge" in text:
        match = SUSPECT.search(text)
        return f"Unclear: {match[1]} | {match[2]} | {match[3]}" if match else "Unclear: none"
    row = re.search(r"\[(o\d+\.r1)\]", text)
    if row is None:
        return "Thought: look\nAction: passages\nAction input: customers sales port"
    meant = re.search(r'- "[^"]+": (.{,40})', text)
    return f"Final answer: {meant[1] if meant else 'clear'}\nBecause: it says so [{row[1]}]"


async def asked(data: Data, question: str) -> tuple[list[OpenReading], decisor.Result]:
    heard: list[OpenReading] = []

    async def person(one: OpenReading) -> str:
        heard.append(one)
        return "2"

    llm = ScriptedLLM(believer)
    result = await data.ask(question, llm=llm, reader=person, technique="iter_rag", settings={"calling": "text"})
    return heard, result


async def test_what_documents_define_otherwise_is_asked_in_a_line_and_clear_questions_are_not(folder: Path) -> None:
    async with decisor.open(docs=folder) as data:
        missed = [question for question in OPEN if len((await asked(data, question))[0]) != 1]
        needless = [question for question in CLEAR if (await asked(data, question))[0]]
    assert (missed, needless) == ([], [])


async def test_a_persons_choice_is_followed_and_said(folder: Path) -> None:
    async with decisor.open(docs=folder) as data:
        heard, result = await asked(data, OPEN[0])
    assert "Sales handbook" in str(heard[0].choices) and "Support guide" in str(heard[0].choices)
    assert result.answer == heard[0].choices[1][:40].strip()
    assert result.decision.assumptions == (f'"active customer" means {heard[0].choices[1]} (by you)',)


async def test_where_nobody_can_be_asked_both_readings_are_given(folder: Path) -> None:
    async with decisor.open(docs=folder) as data:
        result = await data.ask(OPEN[10], llm=ScriptedLLM(believer), technique="iter_rag", settings={"calling": "text"})
    assert result.answer == "what happened in 2019"
    assert any("That gives what was published in 2019: the choice changes" in one for one in result.decision.reasons)
