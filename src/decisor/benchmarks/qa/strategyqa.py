"""StrategyQA (Geva et al., TACL 2021): ``strategyqa_train.json`` with ``strategyqa_train_paragraphs.json`` as released,
or dev.jsonl.gz with dev_corpus.jsonl.gz. Yes-no questions; each annotator marked their own evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.making import YES_NO, qa_case
from decisor.benchmarks.qa.rows import Row, Wrong, find, rows
from decisor.errors import SetupError
from decisor.tools.documents.passage import Passage, read_passages

FILES = ("dev.jsonl.gz", "strategyqa_dev.json", "strategyqa_train.json", "dev.json", "train.json")


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "strategyqa", FILES, "StrategyQA")


def cases(data: Path) -> list[Case]:
    """Raises SetupError where there is no such file, or a row is no question of StrategyQA."""
    path = file(data)
    found = []
    for number, row in enumerate(rows(path), 1):
        with Wrong(path, number, "StrategyQA"):
            answer = {True: "yes", False: "no"}.get(row["answer"], str(row["answer"]))
            annotators = [evidence_of(steps) for steps in row["evidence"]]
            facts = {"annotators": annotators, "decomposition": row["decomposition"], "facts": row["facts"]}
            passages = [id for evidence in annotators for id in evidence]
            id = str(row.get("qid") or row["id"])
            found.append(qa_case(id, row["question"], [answer], passages, goal=YES_NO, facts=facts))
    return found


def evidence_of(steps: object) -> list[str]:
    """Paragraph ids of one annotator: each step holds lists of ids, or the words operation or no_evidence."""
    if not isinstance(steps, list):
        raise ValueError("its evidence is no list")
    ids = [id for step in steps for group in step if isinstance(group, list) for id in group]
    return list(dict.fromkeys(ids))


def passages(data: Path) -> Iterator[Passage]:
    """Raises SetupError where the paragraphs are not beside the questions."""
    path = file(data)
    if path.name == "dev.jsonl.gz":
        yield from read_passages(path.with_name("dev_corpus.jsonl.gz"))
        return
    names = [f"{path.stem}_paragraphs.json", "strategyqa_train_paragraphs.json", "strategyqa_paragraphs.json"]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None:
        raise SetupError(f"There are no paragraphs beside {path}: {names[0]} is missing.")
    for number, row in enumerate(rows(beside), 1):
        with Wrong(beside, number, "the paragraphs of StrategyQA"):
            one = paragraph(row)
        yield one


def paragraph(row: Row) -> Passage:
    return Passage(str(row["id"]), str(row["content"]), str(row["title"]))
