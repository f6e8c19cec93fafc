"""StrategyQA: yes-no questions whose steps are not said. Right is the first yes or no of the answer. ``recall@10`` is
the best over annotators, as released.

Geva et al., TACL 2021: ``strategyqa_train.json`` with ``strategyqa_train_paragraphs.json`` as released, or dev.jsonl.gz
with dev_corpus.jsonl.gz. Each annotator marked their own evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.cases import YES_NO, qa_case
from decisor.benchmarks.qa.rows import Row, row_errors, rows
from decisor.benchmarks.qa.score import same
from decisor.errors import SetupError
from decisor.judging.text_match import yes_no
from decisor.tools.documents.passage import Passage, read_passages


def read_cases(path: Path) -> list[Case]:
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "StrategyQA"):
            answer = {True: "yes", False: "no"}.get(row["answer"], str(row["answer"]))
            annotators = [evidence_of(steps) for steps in row["evidence"]]
            facts = {"annotators": annotators, "decomposition": row["decomposition"], "facts": row["facts"]}
            passages = [id for evidence in annotators for id in evidence]
            id = str(row.get("qid") or row["id"])
            cases.append(qa_case(id, row["question"], [answer], passages, goal=YES_NO, facts=facts))
    return cases


def evidence_of(steps: object) -> list[str]:
    """Paragraph ids of one annotator: each step holds lists of ids, or the words operation or no_evidence."""
    if not isinstance(steps, list):
        raise ValueError("its evidence is no list")
    ids = [id for step in steps for group in step if isinstance(group, list) for id in group]
    return list(dict.fromkeys(ids))


def read_corpus(path: Path) -> Iterator[Passage]:
    """Raises SetupError where the paragraphs are not beside the questions."""
    if path.name == "dev.jsonl.gz":
        yield from read_passages(path.with_name("dev_corpus.jsonl.gz"))
        return
    names = [f"{path.stem}_paragraphs.json", "strategyqa_train_paragraphs.json", "strategyqa_paragraphs.json"]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None:
        raise SetupError(f"There are no paragraphs beside {path}: {names[0]} is missing.")
    for number, row in enumerate(rows(beside), 1):
        with row_errors(beside, number, "the paragraphs of StrategyQA"):
            one = paragraph(row)
        yield one


def paragraph(row: Row) -> Passage:
    return Passage(str(row["id"]), str(row["content"]), str(row["title"]))


def read_yes_no(answer: str, case: Case) -> str:
    return yes_no(answer)


STRATEGYQA = QaSet(
    name="strategyqa",
    title="StrategyQA",
    folder="strategyqa",
    files=("dev.jsonl.gz", "strategyqa_dev.json", "strategyqa_train.json", "dev.json", "train.json"),
    read_cases=read_cases,
    read_passages=read_corpus,
    read_answer=read_yes_no,
    right=same,
)
StrategyQABench = qa_bench(STRATEGYQA, __name__)
