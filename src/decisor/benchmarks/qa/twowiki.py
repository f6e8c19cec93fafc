"""2WikiMultiHopQA (Ho et al., COLING 2020): ``dev.json`` or ``train.json`` as released, or questions.jsonl.gz with its
corpus. ``id_aliases.json`` beside it adds accepted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.paragraphs import paragraph_cases, paragraph_corpus
from decisor.benchmarks.qa.rows import Wrong, find, rows
from decisor.tools.documents.passage import Passage

FILES = ("questions.jsonl.gz", "dev.json", "train.json", "test.json")


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "2wikimultihopqa", FILES, "2WikiMultiHopQA")


def cases(data: Path) -> list[Case]:
    """Raises SetupError where there is no such file, or a row is no question of 2WikiMultiHopQA."""
    path = file(data)
    names = aliases(path.with_name("id_aliases.json"))
    return [with_aliases(case, names) for case in paragraph_cases(path, "2WikiMultiHopQA")]


def passages(data: Path) -> Iterator[Passage]:
    return paragraph_corpus(file(data), "2WikiMultiHopQA")


def aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Wikidata id to other names, from the released file."""
    if not path.is_file():
        return {}
    found = {}
    for number, row in enumerate(rows(path), 1):
        with Wrong(path, number, "the aliases"):
            found[str(row["Q_id"])] = (*row["aliases"], *row["demonyms"])
    return found


def with_aliases(case: Case, names: Mapping[str, tuple[str, ...]]) -> Case:
    """The case with what its answer is also called."""
    also = names.get(str(case.facts.get("answer_id")), ())
    return replace(case, gold=tuple(dict.fromkeys((*case.gold, *also)))) if also else case
