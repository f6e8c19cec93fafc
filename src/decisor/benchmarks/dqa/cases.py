"""The questions of a folder in the released layout, each with its database and its released answer.

Two layouts are read: the release's own (one dump per question under its own name), and one that keeps identical
dumps once with a ``MANIFEST.tsv`` of ``released name <tab> file``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from decisor.errors import SetupError
from decisor.types import Question

Scenario = Literal["locating", "building"]
Form = Literal["sql", "graph"]
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "locating": ("simulated_question.json", "simulated_questions.json"),
    "building": ("simulated_questions.json", "simulated_question.json"),
}
PLACES = {"sql": ("SQL_format", "sql"), "graph": ("LPG_format", "cql")}


@dataclass(frozen=True)
class DqaCase:
    """One question. ``subject`` is the country that asks, or the goods; ``gold`` is for scoring and nothing else."""

    id: str
    question: Question
    database: Path
    scenario: Scenario
    form: Form
    subject: str
    gold: str


def cases(folder: Path, scenario: Scenario, form: Form) -> list[DqaCase]:
    """In the order of the file. Raises SetupError where a file is missing or no question file."""
    manifest = _manifest(folder)
    return [_case(item, folder, scenario, form, manifest) for item in _questions(folder, scenario)]


def databases(folder: Path, scenario: Scenario, form: Form) -> list[Path]:
    """The distinct databases behind the questions, in the order of first use."""
    return list(dict.fromkeys(case.database for case in cases(folder, scenario, form)))


def _questions(folder: Path, scenario: Scenario) -> list[Mapping[str, Any]]:
    for name in QUESTIONS[scenario]:
        path = folder / scenario / "questions" / name
        if path.is_file():
            try:
                items = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SetupError(f"{path} is not JSON: {error}.") from error
            if not isinstance(items, list):
                raise SetupError(f"{path} holds no list of questions.")
            return items
    raise SetupError(f"{folder} holds no questions: there is no {scenario}/questions/{QUESTIONS[scenario][0]}.")


def _case(
    item: Mapping[str, object], folder: Path, scenario: Scenario, form: Form, manifest: Mapping[str, str]
) -> DqaCase:
    try:
        trade = scenario == "locating"
        name = f"q{item['question_num']}" if trade else str(item["country"])
        question = Question(
            str(item["question"]).strip(), str(item["business_rules"]).strip(), str(item.get("goal", "")).strip()
        )
        subject = str(item["country"] if trade else item["goods"])
        return DqaCase(
            f"{scenario}-{item['question_num']}",
            question,
            _dump(folder, scenario, form, name, manifest),
            scenario,
            form,
            subject,
            str(item["answer"]),
        )
    except KeyError as missing:
        raise SetupError(f"A question of {scenario} has no {missing}.") from None


def _dump(folder: Path, scenario: Scenario, form: Form, name: str, manifest: Mapping[str, str]) -> Path:
    place, ending = PLACES[form]
    released = f"{scenario}/queries/{place}/{name}.{ending}"
    path = folder / manifest.get(released, released)
    if not path.is_file():
        raise SetupError(f"There is no {path}.")
    return path.resolve()


def _manifest(folder: Path) -> dict[str, str]:
    path = folder / "MANIFEST.tsv"
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.split("\t")[0]: line.split("\t")[1] for line in lines if "\t" in line}
