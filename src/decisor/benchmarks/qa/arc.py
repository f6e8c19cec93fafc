"""ARC-Challenge: choices in science. Right is the choice, named by letter or by text. Techniques that read passages
need a ``corpus``.

Clark et al., 2018: ``ARC-Challenge-Test.jsonl`` as released (or with choices as two lists), or test.jsonl.gz.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.cases import qa_case
from decisor.benchmarks.qa.rows import Row, row_errors, rows
from decisor.benchmarks.qa.score import same
from decisor.judging.text_match import choice


def read_cases(path: Path) -> list[Case]:
    """``gold``: the letter, then the text of the right choice. ``facts["choices"]``: letter to text."""
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "ARC-Challenge"):
            stem, choices = read_choices(row)
            answer = str(row.get("answerKey") or row["answer"])
            listed = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
            goal = f"Choices:\n{listed}\n\nAnswer with the letter of the right choice."
            gold = [answer, choices[answer]]
            cases.append(qa_case(str(row["id"]), stem, gold, goal=goal, facts={"choices": choices}))
    return cases


def read_choices(row: Row) -> tuple[str, dict[str, str]]:
    """The question without its choices, and the choices by letter."""
    question, choices = row["question"], row.get("choices")
    if isinstance(question, dict):
        question, choices = question["stem"], question["choices"]
    if isinstance(choices, list):
        return question, {str(choice["label"]): str(choice["text"]) for choice in choices}
    if not isinstance(choices, dict):
        raise ValueError("it has no choices")
    if set(choices) == {"label", "text"}:
        return question, dict(zip(map(str, choices["label"]), map(str, choices["text"]), strict=True))
    return question, {str(letter): str(text) for letter, text in choices.items()}


def read_letter(answer: str, case: Case) -> str:
    """The letter that an answer names, or ''."""
    choices = case.facts["choices"]
    assert isinstance(choices, Mapping)
    return choice(answer, {letter: str(text) for letter, text in choices.items()})


ARC = QaSet(
    name="arc",
    title="ARC-Challenge",
    folder="arc_challenge",
    files=("test.jsonl.gz", "ARC-Challenge-Test.jsonl", "ARC-Challenge-Dev.jsonl", "dev.jsonl.gz"),
    read_cases=read_cases,
    read_answer=read_letter,
    right=same,
)
ArcBench = qa_bench(ARC, __name__)
