"""MuSiQue: two to four hops that cannot be cut short. Right is an exact match with any alias.

Trivedi et al., TACL 2022: ``musique_ans_v1.0_dev.jsonl`` as released, or questions.jsonl.gz with its corpus.

{"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"idx", "title", "paragraph_text",
 "is_supporting"}], "question_decomposition": [{"question", "answer", "paragraph_support_idx"}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.cases import distinct, passage, qa_case
from decisor.benchmarks.qa.rows import Row, row_errors, rows
from decisor.tools.documents.passage import Passage, read_passages
from decisor.types import Value


def read_cases(path: Path) -> list[Case]:
    """The answerable questions. ``group``: hops and shape (2hop, 3hop1, 3hop2, 4hop1, ...)."""
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "MuSiQue"):
            if row.get("answerable", True):
                cases.append(ours(row) if "gold" in row else released(row))
    return cases


def ours(row: Row) -> Case:
    group = str(row.get("type", ""))
    facts = {"decomposition": row["decomposition"], "source": row.get("source", "")}
    return qa_case(row["id"], row["question"], [row["answer"], *row["aliases"]], row["gold"], group=group, facts=facts)


def released(row: Row) -> Case:
    passages = paragraphs(row)
    ids = [one.id for one in passages]
    number = {paragraph["idx"]: at for at, paragraph in enumerate(row["paragraphs"])}
    gold = [id for id, paragraph in zip(ids, row["paragraphs"], strict=True) if paragraph["is_supporting"]]
    parts: list[Value] = [
        {"question": part["question"], "answer": part["answer"], "gold": ids[number[part["paragraph_support_idx"]]]}
        for part in row["question_decomposition"]
    ]
    group = row["id"].partition("__")[0]
    answers = [row["answer"], *row["answer_aliases"]]
    return qa_case(row["id"], row["question"], answers, gold, group=group, facts={"decomposition": parts})


def paragraphs(row: Row) -> list[Passage]:
    return [passage(paragraph["title"], paragraph["paragraph_text"]) for paragraph in row["paragraphs"]]


def read_corpus(path: Path) -> Iterator[Passage]:
    """The corpus beside our own file, else every paragraph of every question, each once."""
    beside = path.with_name("corpus.jsonl.gz")
    return read_passages(beside) if beside.is_file() else distinct(released_passages(path))


def released_passages(path: Path) -> Iterator[Passage]:
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "MuSiQue"):
            passages = paragraphs(row)
        yield from passages


MUSIQUE = QaSet(
    name="musique",
    title="MuSiQue",
    folder="musique",
    files=("questions.jsonl.gz", "musique_ans_v1.0_dev.jsonl", "musique_ans_v1.0_train.jsonl"),
    read_cases=read_cases,
    read_passages=read_corpus,
)
MuSiQueBench = qa_bench(MUSIQUE, __name__)
