"""HotpotQA: two-hop questions over Wikipedia. Right is an exact match, normalised. ``distractor``: only questions of
the distractor setting.

Yang et al., EMNLP 2018: ``hotpot_dev_distractor_v1.json`` or ``..._fullwiki_v1.json``, or questions.jsonl.gz with its
corpus.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.paragraphs import paragraph_cases, paragraph_corpus
from decisor.tools.documents.passage import Passage


def read_cases(path: Path) -> list[Case]:
    return paragraph_cases(path, "HotpotQA")


def read_corpus(path: Path) -> Iterator[Passage]:
    return paragraph_corpus(path, "HotpotQA")


def distractor_only(cases: list[Case]) -> list[Case]:
    """In files that mix sources, a source with a question whose gold passages were not in its own context is of the
    fullwiki setting; its others are easier than average."""
    fullwiki = {case.facts["source"] for case in cases if case.facts["gold_by"] == "title-in-corpus"}
    return [case for case in cases if case.facts["source"] not in fullwiki]


HOTPOTQA = QaSet(
    name="hotpotqa",
    title="HotpotQA",
    folder="hotpotqa",
    files=("questions.jsonl.gz", "hotpot_dev_distractor_v1.json", "hotpot_dev_fullwiki_v1.json"),
    read_cases=read_cases,
    read_passages=read_corpus,
    option="distractor",
    part=distractor_only,
)
HotpotQABench = qa_bench(HOTPOTQA, __name__)
