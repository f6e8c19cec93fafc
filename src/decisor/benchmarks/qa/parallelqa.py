"""ParallelQA (Kim et al., "LLMCompiler", ICML 2024): ``parallelqa_dataset.json`` as released, or parallelqa.jsonl.gz.
It has no corpus of its own: name one with ``corpus``."""

from __future__ import annotations

from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.making import qa_case
from decisor.benchmarks.qa.rows import Wrong, find, rows

FILES = ("parallelqa.jsonl.gz", "parallelqa_dataset.json")


def file(data: Path) -> Path:
    """Raises SetupError where ``data`` holds none of these files."""
    return find(data, "llmcompiler", FILES, "ParallelQA")


def cases(data: Path) -> list[Case]:
    """``group``: how many things are looked up side by side.

    Raises:
        SetupError: there is no such file, or a row is no question of ParallelQA.
    """
    path = file(data)
    found = []
    for number, row in enumerate(rows(path), 1):
        with Wrong(path, number, "ParallelQA"):
            group = f"{int(row['branch'])} branches"
            found.append(qa_case(str(row["id"]), row["question"], [str(row["answer"])], group=group))
    return found
