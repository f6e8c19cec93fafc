"""ToolBench's test instructions and recorded calls, from the released files.

A folder holds ``test_queries.jsonl.gz`` (one instruction a line, with its ``split``), or the release's own
``G1_instruction.json``, ``G2_category.json`` and so on (lists). StableToolBench's solvable queries have that form too.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisor.benchmarks.toolbench.functions import Api, Parameter
from decisor.errors import SetupError
from decisor.types import Value

Row = Mapping[str, Any]
QUERIES, CALLS = "test_queries.jsonl.gz", "recorded_calls.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Task:
    """``relevant``: (tool, API) pairs that its author had in mind; for reports only."""

    id: str
    split: str
    query: str
    apis: tuple[Api, ...]
    relevant: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was made in June 2023, and what came back. ``tool`` is written ``name_for_Category`` there."""

    category: str
    tool: str
    api: str
    input: str
    output: Value


def load_tasks(folder: Path, split: str = "all") -> list[Task]:
    """In file order.

    Raises:
        SetupError: no file is there, one is not of the released form, or there is no such split.
    """
    rows = list(_rows(folder))
    splits = Counter(name for name, _ in rows)
    if split != "all" and split not in splits:
        raise SetupError(f"{folder} has no split {split!r}; it has all, {', '.join(sorted(splits))}.")
    tasks, counts = [], Counter[str]()
    for name, row in rows:
        if split in ("all", name):
            try:
                task = _task(name, row)
            except (KeyError, TypeError, AttributeError) as error:
                raise SetupError(f"An instruction of {folder} is not of the released form: {error!r}.") from error
            counts[task.id] += 1
            again = f"-{counts[task.id]}" if counts[task.id] > 1 else ""
            tasks.append(Task(task.id + again, task.split, task.query, task.apis, task.relevant))
    return tasks


def load_calls(folder: Path) -> list[Call]:
    """What is recorded; empty where the file is not there."""
    path = folder / CALLS
    if not path.is_file():
        return []
    return [Call(row["category"], row["tool"], row["api"], row["input"], row["output"]) for row in _lines(path)]


def _rows(folder: Path) -> Iterator[tuple[str, Row]]:
    if (folder / QUERIES).is_file():
        for row in _lines(folder / QUERIES):
            yield str(row.get("split", "test")), row
        return
    files = sorted(folder.glob("G[123]_*.json"))
    if not files:
        raise SetupError(
            f"{folder} holds neither {QUERIES} nor G1_instruction.json and the like: they are in "
            "data/test_instruction of ToolBench's released data."
        )
    for file in files:
        try:
            for row in json.loads(file.read_text("utf-8")):
                yield file.stem, row
        except ValueError as error:
            raise SetupError(f"{file} is not JSON: {error}.") from error


def _lines(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SetupError(f"{path}, line {number} is not JSON: {error}.") from error
            if not isinstance(row, dict):
                raise SetupError(f"{path}, line {number} holds no object.")
            yield row


def _task(split: str, row: Row) -> Task:
    apis = tuple(_api(one) for one in row["api_list"])
    relevant = tuple((str(tool), str(api)) for tool, api in row.get("relevant APIs", ()))
    return Task(f"{split}-{row['query_id']}", split, str(row["query"]).strip(), apis, relevant)


def _api(row: Row) -> Api:
    return Api(
        row["category_name"], row["tool_name"], row["api_name"], row.get("api_description") or "",
        tuple(_parameter(one) for one in row["required_parameters"]),
        tuple(_parameter(one) for one in row["optional_parameters"]),
    )  # fmt: skip


def _parameter(row: Row) -> Parameter:
    return Parameter(row["name"], row["type"], row.get("description") or "", row.get("default", ""))
