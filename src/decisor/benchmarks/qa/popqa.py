"""PopQA (Mallen et al., ACL 2023): ``popQA.tsv`` as released, or questions.jsonl.gz with its corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.making import qa_case
from decisor.benchmarks.qa.rows import Wrong, find, rows
from decisor.errors import SetupError
from decisor.tools.documents.passage import Passage, read_passages

FILES = ("questions.jsonl.gz", "popQA.tsv", "popqa.tsv", "test.tsv")
LONG_TAIL = 100


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "popqa", FILES, "PopQA")


def cases(data: Path, longtail: bool = False) -> list[Case]:
    """``group``: the relation asked for. ``longtail``: only subjects with fewer than 100 page views a month, the part
    that Self-RAG and Plan-RAG report (1,399 of the released questions).

    Raises:
        SetupError: there is no such file, or a row is no question of PopQA.
    """
    path = file(data)
    found = []
    for number, row in enumerate(rows(path), 1):
        with Wrong(path, number, "PopQA"):
            answers = row["answers"] if "answers" in row else json.loads(row["possible_answers"])
            views = int(row["s_pop"])
            facts = {"views": views, "subject": row["subj"]}
            gold = row.get("gold", ())
            case = qa_case(str(row["id"]), row["question"], answers, gold, group=str(row["prop"]), facts=facts)
            if views < LONG_TAIL or not longtail:
                found.append(case)
    return found


def passages(data: Path) -> Iterator[Passage]:
    """Raises SetupError where there is no corpus beside the questions: the release has none."""
    path = file(data).with_name("corpus.jsonl.gz")
    if not path.is_file():
        raise SetupError(f"PopQA is released without passages and there is no {path}. Name a corpus: -o corpus=INDEX")
    return read_passages(path)
