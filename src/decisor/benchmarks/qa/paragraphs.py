"""HotpotQA and 2WikiMultiHopQA: the same released layout, a JSON list with ``context`` and ``supporting_facts``.

{"_id", "question", "answer", "type", "supporting_facts": [[title, sentence number]],
 "context": [[title, [sentence]]]}    and for 2WikiMultiHopQA "evidences": [[subject, relation, object]]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.cases import distinct, passage, qa_case
from decisor.benchmarks.qa.rows import Row, row_errors, rows
from decisor.tools.documents.passage import Passage, read_passages


def paragraph_cases(path: Path, what: str) -> list[Case]:
    """In the order of the file. Raises SetupError where a row is no question of the set."""
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, what):
            gold = row["gold"] if "gold" in row else gold_of(row)
            cases.append(
                qa_case(
                    str(row.get("_id") or row["id"]),
                    row["question"],
                    [row["answer"], *row.get("aliases", ())],
                    gold,
                    group=str(row.get("type", "")),
                    facts={
                        "supporting_facts": row["supporting_facts"],
                        "evidences": row.get("evidences", []),
                        "evidences_id": row.get("evidences_id", []),
                        "answer_id": row.get("answer_id"),
                        "source": row.get("source", ""),
                        "gold_by": row.get("gold_by", ""),
                    },
                )
            )
    return cases


def gold_of(row: Row) -> list[str]:
    """Ids of the context's paragraphs that hold a supporting fact. In the fullwiki setting some may be missing."""
    titles = {title for title, _ in row["supporting_facts"]}
    return [one.id for one in context(row) if one.title in titles]


def context(row: Row) -> list[Passage]:
    return [passage(title, " ".join(part.strip() for part in sentences)) for title, sentences in row["context"]]


def paragraph_corpus(path: Path, what: str) -> Iterator[Passage]:
    """The corpus beside our own file, else every paragraph of every question's context, each once."""
    beside = path.with_name("corpus.jsonl.gz")
    if beside.is_file():
        return read_passages(beside)
    return distinct(one for number, row in enumerate(rows(path), 1) for one in read_context(path, number, row, what))


def read_context(path: Path, number: int, row: Row, what: str) -> list[Passage]:
    with row_errors(path, number, what):
        passages = context(row)
    return passages
