"""ARC-Challenge (Clark et al., 2018): ``ARC-Challenge-Test.jsonl`` as released (or with choices as two lists), or
test.jsonl.gz. It has no corpus of its own: name one with ``corpus``."""

from __future__ import annotations

from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.making import qa_case
from decisor.benchmarks.qa.rows import Row, Wrong, find, rows

FILES = ("test.jsonl.gz", "ARC-Challenge-Test.jsonl", "ARC-Challenge-Dev.jsonl", "dev.jsonl.gz")


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "arc_challenge", FILES, "ARC-Challenge")


def cases(data: Path) -> list[Case]:
    """``gold``: the letter, then the text of the right choice. ``facts["choices"]``: letter to text.

    Raises:
        SetupError: there is no such file, or a row is no question of ARC.
    """
    path = file(data)
    found = []
    for number, row in enumerate(rows(path), 1):
        with Wrong(path, number, "ARC-Challenge"):
            stem, choices = read_choices(row)
            answer = str(row.get("answerKey") or row["answer"])
            listed = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
            goal = f"Choices:\n{listed}\n\nAnswer with the letter of the right choice."
            gold = [answer, choices[answer]]
            found.append(qa_case(str(row["id"]), stem, gold, goal=goal, facts={"choices": choices}))
    return found


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
