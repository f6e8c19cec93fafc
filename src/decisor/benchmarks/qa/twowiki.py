"""2WikiMultiHopQA: two to four hops over Wikipedia. Right is an exact match, with other names if they are at hand.

Ho et al., COLING 2020: ``dev.json`` or ``train.json`` as released, or questions.jsonl.gz with its corpus.
``id_aliases.json`` beside it adds accepted names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.paragraphs import paragraph_cases, paragraph_corpus
from decisor.benchmarks.qa.rows import row_errors, rows
from decisor.tools.documents.passage import Passage


def read_cases(path: Path) -> list[Case]:
    names = aliases(path.with_name("id_aliases.json"))
    return [with_aliases(case, names) for case in paragraph_cases(path, "2WikiMultiHopQA")]


def read_corpus(path: Path) -> Iterator[Passage]:
    return paragraph_corpus(path, "2WikiMultiHopQA")


def aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Wikidata id to other names, from the released file."""
    if not path.is_file():
        return {}
    names = {}
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "the aliases"):
            names[str(row["Q_id"])] = (*row["aliases"], *row["demonyms"])
    return names


def with_aliases(case: Case, names: Mapping[str, tuple[str, ...]]) -> Case:
    """The case with what its answer is also called."""
    also = names.get(str(case.facts.get("answer_id")), ())
    return replace(case, gold=tuple(dict.fromkeys((*case.gold, *also)))) if also else case


TWOWIKI = QaSet(
    name="twowiki",
    title="2WikiMultiHopQA",
    folder="2wikimultihopqa",
    files=("questions.jsonl.gz", "dev.json", "train.json", "test.json"),
    read_cases=read_cases,
    read_passages=read_corpus,
)
TwoWikiBench = qa_bench(TWOWIKI, __name__)
