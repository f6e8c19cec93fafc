"""How often a brief schema shows all tables that a question needs, at several budgets of tokens.

    python performance/schema_linking.py [--budget 2000] [--folds 6] [--misses]

A minute.

The questions are those of Spider 2.0-lite over real warehouse schemas (``schema_linking/`` of the test data). A table
counts as shown where it stands with columns, in full or on a line; one that stands there by name alone does not. Tables
whose names differ in digits only count as one. Gold tables that the schema does not have are left out.

``--folds N`` chooses what stands in GRID on all schemas but an N-th, and scores on that N-th, in turn.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decisor.databases import schema_search as schema_index
from decisor.databases.schema import ColumnInfo, TableInfo
from decisor.databases.schema_search import SchemaIndex, mask_digits, question_words, stemmed_words
from decisor.databases.schema_text import Brief, describe_schema_briefly
from decisor.runtime.prompt import estimate_tokens
from decisor.sandbox.engines import load_engine

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from data import DATA

FOLDER = DATA / "schema_linking"
BUDGETS = (1_000, 2_000, 4_000)
GRID = {"HUB": (0.0, 0.3, 0.8), "NEIGHBOUR": (0.1, 0.3), "VALUE": (0.1, 0.4)}


@dataclass(frozen=True)
class Question:
    """``gold``: masked names of the tables that it needs, as the schema has them."""

    id: str
    db: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """Of one question: whether all its tables were shown, and all columns that it names of them; the tokens."""

    question: Question
    missing: frozenset[str]
    columns: int
    columns_missing: int
    tokens: int
    whole: bool


def schemas() -> dict[str, SchemaIndex]:
    with gzip.open(FOLDER / "schemas.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["db"]: SchemaIndex([table_of(one) for one in row["tables"]]) for row in map(json.loads, lines)}


def table_of(row: Mapping[str, object]) -> TableInfo:
    """The name is SCHEMA.TABLE where the schema is known, as of a table outside the default schema."""
    samples = row["samples"]
    assert isinstance(samples, list) and isinstance(row["columns"], list)
    columns = tuple(
        ColumnInfo(
            name, kind, comment=comment or "", examples=tuple(json.dumps(one[name]) for one in samples if name in one)
        )
        for name, kind, comment in row["columns"]
    )
    return TableInfo(".".join(str(row["table"]).split(".")[-2:]), columns)


def questions(indexes: Mapping[str, SchemaIndex]) -> Iterator[Question]:
    for line in (FOLDER / "questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        names = {
            mask_digits(table.name).rpartition(".")[2]: mask_digits(table.name) for table in indexes[row["db"]].tables
        }
        exact = set(names.values()) | {mask_digits(table.name) for table in indexes[row["db"]].tables}
        gold = set()
        for name in row["gold_tables"]:
            own = mask_digits(".".join(name.split(".")[-2:]))
            gold.add(own if own in exact else names.get(own.rpartition(".")[2], ""))
        if gold - {""}:
            yield Question(row["id"], row["db"], row["question"], frozenset(gold - {""}))


def outcome(question: Question, index: SchemaIndex, budget: int) -> Outcome:
    view: Brief = describe_schema_briefly(load_engine("sqlite"), index, question.text, budget)
    columns = {mask_digits(one.table): set(one.columns) for one in view.tables}
    words = set(question_words(question.text))
    named = missing = 0
    for table in index.tables:
        mask = mask_digits(table.name)
        if mask in question.gold and mask in columns and any(one.table == table.name for one in view.tables):
            for column in table.columns:
                own = set(stemmed_words(column.name))
                if own <= words and any(not word.isdigit() for word in own):
                    named += 1
                    missing += column.name not in columns[mask]
    whole = question.gold <= {mask_digits(one.table) for one in view.tables if one.whole}
    return Outcome(question, question.gold - columns.keys(), named, missing, estimate_tokens(view.text), whole)


def outcomes(indexes: Mapping[str, SchemaIndex], asked: Sequence[Question], budget: int) -> list[Outcome]:
    return [outcome(one, indexes[one.db], budget) for one in asked]


def line(budget: int, results: Sequence[Outcome]) -> str:
    good = sum(not one.missing for one in results)
    columns, missing = sum(one.columns for one in results), sum(one.columns_missing for one in results)
    return (
        f"{budget:>6,} tokens: all tables {good} of {len(results)} ({good / len(results):.1%}), in full "
        f"{sum(one.whole for one in results) / len(results):.1%}; columns named {columns - missing} of {columns} "
        f"({1 - missing / max(columns, 1):.1%}); at most {max(one.tokens for one in results):,} tokens used"
    )


def folds(indexes: Mapping[str, SchemaIndex], asked: Sequence[Question], budget: int, number: int) -> str:
    """Held-out schemas, with the settings that did best on the others."""
    names = sorted(indexes)
    good: dict[tuple[float, ...], set[str]] = {}
    for values in itertools.product(*GRID.values()):
        for name, value in zip(GRID, values, strict=True):
            setattr(schema_index, name, value)
        fresh = {db: SchemaIndex(index.tables) for db, index in indexes.items()}
        good[values] = {one.question.id for one in outcomes(fresh, asked, budget) if not one.missing}
    total = 0
    for fold in range(number):
        held = {db for at, db in enumerate(names) if at % number == fold}
        best = max(good, key=lambda values: sum(one.db not in held for one in asked if one.id in good[values]))
        total += sum(one.db in held for one in asked if one.id in good[best])
        print(f"fold {fold + 1}: {dict(zip(GRID, best, strict=True))}")
    return f"held out, {number} folds: all tables {total} of {len(asked)} ({total / len(asked):.1%}) at {budget:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    indexes = schemas()
    asked = list(questions(indexes))
    print(f"{len(asked)} questions over {len(indexes)} schemas")
    for budget in options.budget or BUDGETS:
        results = outcomes(indexes, asked, budget)
        print(line(budget, results))
        for one in results if options.misses else ():
            if one.missing:
                print(
                    f"  {one.question.id} {one.question.db}: {', '.join(sorted(one.missing))}: {one.question.text[:99]}"
                )
    if options.folds:
        print(folds(indexes, asked, (options.budget or [2_000])[0], options.folds))


if __name__ == "__main__":
    main()
