"""ParallelQA: figures of several things, compared. Right is a number within 10 %, else an exact match (LLMCompiler).
Techniques that read passages need a ``corpus``.

Kim et al., "LLMCompiler", ICML 2024: ``parallelqa_dataset.json`` as released, or parallelqa.jsonl.gz.
"""

from __future__ import annotations

from pathlib import Path

from decisor.benchmarks.protocol import Case
from decisor.benchmarks.qa.bench import QaSet, qa_bench
from decisor.benchmarks.qa.cases import qa_case
from decisor.benchmarks.qa.rows import row_errors, rows
from decisor.benchmarks.qa.score import close_to


def read_cases(path: Path) -> list[Case]:
    """``group``: how many things are looked up side by side."""
    cases = []
    for number, row in enumerate(rows(path), 1):
        with row_errors(path, number, "ParallelQA"):
            group = f"{int(row['branch'])} branches"
            cases.append(qa_case(str(row["id"]), row["question"], [str(row["answer"])], group=group))
    return cases


PARALLELQA = QaSet(
    name="parallelqa",
    title="ParallelQA",
    folder="llmcompiler",
    files=("parallelqa.jsonl.gz", "parallelqa_dataset.json"),
    read_cases=read_cases,
    right=close_to,
)
ParallelQABench = qa_bench(PARALLELQA, __name__)
