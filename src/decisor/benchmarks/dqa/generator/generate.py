"""New Decision QA worlds of any size, with questions, rules and answers in the layout of the release.

world <- make(scenario, size, seed); simulate once and publish
for each country or goods: keep the question where one decision is best by a margin
write both dumps and the question file
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from decisor.benchmarks.dqa.generator import rules as text
from decisor.benchmarks.dqa.generator.questions import WorldQuestion, supply_questions, trade_questions
from decisor.benchmarks.dqa.generator.supply import Supply, make_supply
from decisor.benchmarks.dqa.generator.trade import Trade, make_trade
from decisor.benchmarks.dqa.generator.write import write_cypher, write_sql
from decisor.errors import SetupError
from decisor.types import Question

Scenario = Literal["locating", "building"]
MARGIN = {"locating": 1e-6, "building": 1e-8}
YEAR = "1500"


@dataclass(frozen=True)
class Size:
    """Nodes and edges of the graph form: trading nodes and countries, or goods and buildings, count as nodes."""

    nodes: int
    edges: int


SIZES = {
    "tiny": Size(24, 80), "small": Size(100, 400), "medium": Size(300, 2_000),
    "large": Size(10_000, 60_000), "huge": Size(100_000, 1_000_000),
}  # fmt: skip


@dataclass(frozen=True)
class QuestionedWorld:
    """A world and the questions about it. ``label``: the year (Locating) or the name of the database (Building)."""

    world: Trade | Supply
    questions: tuple[WorldQuestion, ...]
    label: str


@dataclass(frozen=True)
class Dataset:
    """What was made, and where."""

    folder: Path
    nodes: int
    edges: int
    questions: int


def parse_size(text: str) -> Size:
    """A name, or nodes x edges.

    >>> parse_size("small"), parse_size("500x3000")
    (Size(nodes=100, edges=400), Size(nodes=500, edges=3000))
    """
    if text in SIZES:
        return SIZES[text]
    nodes, _, edges = text.partition("x")
    if not (nodes.isdecimal() and edges.isdecimal()):
        raise SetupError(f"There is no size {text!r}; there is {', '.join(SIZES)}, or NODESxEDGES such as 500x3000.")
    size = Size(int(nodes), int(edges))
    if not (20 <= size.nodes <= 100_000 and 2 * size.nodes <= size.edges <= 1_000_000):
        raise SetupError("A world has 20 to 100,000 nodes, and at least twice as many edges, at most 1,000,000.")
    return size


def make(scenario: Scenario, size: Size, seed: int) -> Trade | Supply:
    """The same world for the same seed."""
    rng = np.random.default_rng(seed)
    if scenario == "locating":
        nodes = max(size.nodes * 3 // 10, 8)
        return make_trade(nodes, size.nodes - nodes, max(size.edges - 17 * nodes // 10, size.nodes), rng)
    goods = min(max(size.nodes // 20, 5), 500)
    return make_supply(goods, size.nodes - goods, size.edges, rng)


def generate(scenario: Scenario, size: Size | str, seed: int, out: Path, questions: int = 20) -> Dataset:
    """Write a new world below ``out``/``scenario``, with up to ``questions`` questions.

    Raises:
        SetupError: the size cannot be read, the folder holds something else, or no question has one best decision.
    """
    size = parse_size(size) if isinstance(size, str) else size
    world = make(scenario, size, seed)
    some = tuple(islice(find(world, seed), questions))
    if not some:
        raise SetupError(f"No question on this world has one best decision; try another seed than {seed}.")
    return publish([QuestionedWorld(world, some, YEAR if scenario == "locating" else f"GEN{seed}")], out / scenario)


def publish(worlds: Sequence[QuestionedWorld], folder: Path) -> Dataset:
    """Write worlds of one scenario with their questions, numbered through. Raises SetupError as ``generate`` does."""
    if folder.exists() and any(folder.iterdir()):
        raise SetupError(f"{folder} is not empty; name a new folder.")
    for form in ("questions", "queries/SQL_format", "queries/LPG_format"):
        (folder / form).mkdir(parents=True)
    entries: list[Mapping[str, object]] = []
    for each in worlds:
        numbers = range(len(entries) + 1, len(entries) + len(each.questions) + 1)
        entries += [entry(each, question, number) for question, number in zip(each.questions, numbers, strict=True)]
        trade = isinstance(each.world, Trade)
        _write_databases(each.world, folder / "queries", [f"q{n}" for n in numbers] if trade else [each.label])
    name = "simulated_question.json" if isinstance(worlds[0].world, Trade) else "simulated_questions.json"
    (folder / "questions" / name).write_text(json.dumps(entries, indent=1), encoding="utf-8")
    sizes = [extent(each.world) for each in worlds]
    return Dataset(folder, sum(nodes for nodes, _ in sizes), sum(edges for _, edges in sizes), len(entries))


def find(world: Trade | Supply, seed: int, margin: float | None = None) -> Iterator[WorldQuestion]:
    """Questions with one best decision, in an order fixed by the seed."""
    rng = np.random.default_rng([seed, 1])
    if isinstance(world, Trade):
        return trade_questions(world, rng, MARGIN["locating"] if margin is None else margin)
    return supply_questions(world, rng, MARGIN["building"] if margin is None else margin)


def extent(world: Trade | Supply) -> tuple[int, int]:
    """Nodes and edges of the graph form."""
    if isinstance(world, Trade):
        return len(world.nodes) + len(world.countries), len(world.source) + len(world.at)
    return len(world.goods) + len(world.ids), len(world.supplied) + len(world.demanded)


def subject(world: Trade | Supply, question: WorldQuestion) -> str:
    """The country or the goods that a question is about."""
    return (world.countries if isinstance(world, Trade) else world.goods)[question.subject]


def ask(world: Trade | Supply, question: WorldQuestion) -> Question:
    """The question with its rules and its goal."""
    if isinstance(world, Trade):
        names = {"country": world.countries[question.subject], "home": world.nodes[int(world.home[question.subject])]}
        return Question(text.TRADE_QUESTION.format(**names), text.TRADE_RULES, text.TRADE_GOAL.format(**names))
    goods = world.goods[question.subject]
    return Question(text.SUPPLY_QUESTION.format(goods=goods), text.SUPPLY_RULES, text.SUPPLY_GOAL.format(goods=goods))


def entry(each: QuestionedWorld, question: WorldQuestion, number: int) -> Mapping[str, object]:
    """One entry of the released question file, with its difficulty."""
    world, text = each.world, ask(each.world, question)
    shared = {
        "business_rules": text.rules, "question": text.text, "goal": text.goal, "answer": question.answer,
        "question_num": number, "difficulty": asdict(question.difficulty),
    }  # fmt: skip
    if isinstance(world, Trade):
        home = world.nodes[int(world.home[question.subject])]
        return shared | {"home": home, "country": world.countries[question.subject], "year": each.label}
    return shared | {"goods": world.goods[question.subject], "country": each.label}


def _write_databases(world: Trade | Supply, folder: Path, names: list[str]) -> None:
    """Both dumps once; further names of the same world are links, or copies where links are not to be had."""
    for form, ending, write in (("SQL_format", "sql", write_sql), ("LPG_format", "cql", write_cypher)):
        first, *others = dict.fromkeys(folder / form / f"{name}.{ending}" for name in names)
        write(world, first)
        for other in others:
            try:
                os.link(first, other)
            except OSError:
                shutil.copyfile(first, other)
