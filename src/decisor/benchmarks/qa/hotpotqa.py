"""HotpotQA (Yang et al., EMNLP 2018): ``hotpot_dev_distractor_v1.json`` or ``..._fullwiki_v1.json``, or
questions.jsonl.gz with its corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.paragraphs import paragraph_cases, paragraph_corpus
from decisor.benchmarks.qa.rows import find
from decisor.tools.documents.passage import Passage

FILES = ("questions.jsonl.gz", "hotpot_dev_distractor_v1.json", "hotpot_dev_fullwiki_v1.json")


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "hotpotqa", FILES, "HotpotQA")


def cases(data: Path, distractor: bool = False) -> list[Case]:
    """``distractor``: only questions from the distractor setting. In files that mix sources, a source with a question
    whose gold passages were not in its own context is of the fullwiki setting; its others are easier than average.

    Raises:
        SetupError: there is no such file, or a row is no question of HotpotQA.
    """
    found = paragraph_cases(file(data), "HotpotQA")
    if not distractor:
        return found
    open_ = {case.facts["source"] for case in found if case.facts["gold_by"] == "title-in-corpus"}
    return [case for case in found if case.facts["source"] not in open_]


def passages(data: Path) -> Iterator[Passage]:
    return paragraph_corpus(file(data), "HotpotQA")
