"""PopQA: one fact about a thing, often a rare one. Right is an answer that contains an accepted one. ``longtail``: only
the rarely read subjects, as Self-RAG and Plan-RAG report.

Mallen et al., ACL 2023: ``popQA.tsv`` as released, or questions.jsonl.gz with its corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.cases import qa_case
from decisor.benchmarks.qa.rows import row_errors, rows
from decisor.benchmarks.qa.score import contains_gold
from decisor.errors import SetupError
from decisor.tools.documents.passage import Passage, read_passages

LONG_TAIL_VIEWS = 100
"""Page views a month; subjects with fewer are the part that is reported (1,399 of the released questions)."""


def read_cases(path: Path) -> list[Case]:
    """``group``: the relation asked for."""
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "PopQA"):
            answers = row["answers"] if "answers" in row else json.loads(row["possible_answers"])
            facts = {"views": int(row["s_pop"]), "subject": row["subj"]}
            gold = row.get("gold", ())
            cases.append(qa_case(str(row["id"]), row["question"], answers, gold, group=str(row["prop"]), facts=facts))
    return cases


def read_corpus(path: Path) -> Iterator[Passage]:
    """Raises SetupError where there is no corpus beside the questions: the release has none."""
    beside = path.with_name("corpus.jsonl.gz")
    if not beside.is_file():
        raise SetupError(f"PopQA is released without passages and there is no {beside}. Name a corpus: -o corpus=INDEX")
    return read_passages(beside)


def long_tail(cases: list[Case]) -> list[Case]:
    return [case for case in cases if int(str(case.facts["views"])) < LONG_TAIL_VIEWS]


POPQA = QaSet(
    name="popqa",
    title="PopQA",
    folder="popqa",
    files=("questions.jsonl.gz", "popQA.tsv", "popqa.tsv", "test.tsv"),
    read_cases=read_cases,
    read_passages=read_corpus,
    right=contains_gold,
    option="longtail",
    part=long_tail,
)
PopQABench = qa_bench(POPQA, __name__)
