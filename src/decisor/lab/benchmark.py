"""The protocol of a benchmark: cases, environments and scores, the list of our benchmarks, and the outcome of a
finished case.

A benchmark is a frozen dataclass. Its fields are its settings, on the command line too, and the first is ``data``: the
place of the released files. It joins loaders and environments to a scorer. An ``Outcome`` has plain values only: the
run store keeps them, and every report is made from them. ``compute_search_metrics`` and its neighbours read the trace
of a search, for every benchmark with an environment; ``read_question_rows`` reads the released files, whatever their
layout.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from decisor.errors import SetupError
from decisor.runtime.run import Run, Technique
from decisor.system.extras import find_plugins
from decisor.system.settings import build_from_settings, import_class, setting_fields
from decisor.trace.events import ActionResult, ActionStart, SearchNode, SearchTree, TraceEntry, events_of
from decisor.types import Decision, Environment, Question, Usage, Value

BENCHES: dict[str, str] = {
    "dqa": "decisor.lab.dqa.bench:DqaBench",
    "game24": "decisor.lab.game24:Game24Bench",
    "webshop": "decisor.lab.webshop.bench:WebShopBench",
    "toolbench": "decisor.lab.toolbench.bench:ToolBenchBench",
    "hotpotqa": "decisor.lab.qa.bench:HotpotQABench",
    "twowiki": "decisor.lab.qa.bench:TwoWikiBench",
    "musique": "decisor.lab.qa.bench:MuSiQueBench",
    "strategyqa": "decisor.lab.qa.bench:StrategyQABench",
    "arc": "decisor.lab.qa.bench:ArcBench",
    "popqa": "decisor.lab.qa.bench:PopQABench",
    "parallelqa": "decisor.lab.qa.bench:ParallelQABench",
    "own": "decisor.lab.own_questions:OwnBench",
}
"""Name on the command line -> module:Class. A module is imported when it is named."""
SUMMARIES: dict[str, str] = {
    "dqa": "Decision QA: which candidate an answer names, whether it is the released one, and what went wrong.",
    "game24": "Game of 24: right if the answer is made of exactly the four numbers and is exactly 24.",
    "webshop": "WebShop: the reward of the product that a technique bought, found and chosen apart.",
    "toolbench": "ToolBench: pass rate as ToolEval counts it, by a judging LLM, and what went wrong with calls.",
    "hotpotqa": "HotpotQA: two-hop questions over Wikipedia. Right is an exact match, normalised. distractor: only "
    "questions of the distractor setting.",
    "twowiki": "2WikiMultiHopQA: two to four hops over Wikipedia. Right is an exact match, with aliases if released.",
    "musique": "MuSiQue: two to four hops that cannot be cut short. Right is an exact match with any alias.",
    "strategyqa": "StrategyQA: yes-no questions whose steps are not stated. Right is the first yes or no.",
    "arc": "ARC-Challenge: science questions with choices. Right is the choice, named by letter or by text.",
    "popqa": "PopQA: one fact about a thing, often a rare one. Right is an answer that contains an accepted one. "
    "longtail: only rarely read subjects, as Self-RAG and Plan-RAG report.",
    "parallelqa": (
        "ParallelQA: figures of several things, compared. Right is a number within 10 %, else an exact match."
    ),
    "own": "Questions of your own over your own data: what `decisor history export` writes of marked runs, or JSON "
    "lines with question and answer, or with what else is expected.",
}
"""Description of each benchmark in lists."""

VERBS = ("cases", "environment", "score", "close")
"""What a benchmark can be asked for: see ``Bench``."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the data that are needed to score it.

    Neither ``gold`` nor ``facts`` reaches a technique: it gets ``question`` and an environment.
    """

    id: str
    """Unique in its benchmark."""
    question: Question
    gold: tuple[str, ...] = ()
    """Every accepted answer, the main one first."""
    group: str = ""
    """Key by which reports split: scenario, number of hops, category."""
    facts: Mapping[str, Value] = field(default_factory=dict)
    """Further values that scoring needs."""
    expects: tuple[str, ...] = ()
    """What is expected besides the answer, in words; part of the case, like the answer."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one case."""

    right: bool | None
    """None if no judge could read the answer: unscored, never wrong."""
    answer: str = ""
    """The answer as it was read."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers of this case (em, f1, reward, recall@5); higher is better unless the name says otherwise."""
    failure: str = ""
    """Failure class; '' if right."""
    tags: tuple[str, ...] = ()
    """Kinds to count by: SR, MR, hallucinated_tool."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Whole numbers to add up or plot: replans, retrievals, depth."""
    judging: Usage = field(default_factory=Usage)
    """Usage of an LLM that judged."""


class Bench(Protocol):
    """A benchmark that can be run.

    A benchmark with LLMs of its own lists them in ``own_llms``. If only the final answer is to be judged, that may be a
    method of its own, ``judged(score, case, decision) -> Score``.
    """

    @property
    def name(self) -> str: ...

    def cases(self) -> Sequence[Case]:
        """Return the cases. Raise SetupError, with advice, if the files are missing."""
        ...

    def environment(self, case: Case) -> AbstractAsyncContextManager[Environment]:
        """Open a separate environment for one run of one case. Many are open at once."""
        ...

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        """Score the decision, or another answer that the run had on the way."""
        ...

    async def close(self) -> None:
        """Close everything that cases shared."""
        ...


@runtime_checkable
class DecidingEnvironment(Protocol):
    """An environment that does more for a question than run a technique."""

    async def decide(self, technique: Technique, question: Question, run: Run) -> Decision: ...


def find_bench_class(name: str) -> type:
    """Return the class of a benchmark by its name, or of a foreign one by its path ``module:Class``.

    Raises:
        SetupError: there is no such benchmark, or the path names something else.
    """
    if name not in BENCHES and name in find_plugins("benchmarks"):
        name = find_plugins("benchmarks")[name].value
    if ":" in name:
        kind = import_class(name)
        if lacks := [verb for verb in VERBS if not callable(getattr(kind, verb, None))]:
            raise SetupError(f"{name} is no benchmark: it has no {', '.join(lacks)}.")
        return kind
    if name not in BENCHES:
        names = f"{', '.join(BENCHES)}, or one of your own as module:Class"
        raise SetupError(f"There is no benchmark {name!r}; there is {names}.")
    module, _, class_name = BENCHES[name].partition(":")
    ours: type = getattr(import_module(module), class_name)
    return ours


def open_bench(name: str, **settings: str) -> Bench:
    """Create a benchmark from settings as text, as in ``-b "dqa data=DIR form=graph"``. data: by default
    ``$DECISOR_DATA/NAME``, or ``$DECISOR_DATA`` itself if that has no such folder.

    Raises:
        SetupError: there is no such benchmark or setting, or the value does not fit it.
    """
    kind = find_bench_class(name)
    if "data" in setting_fields(kind) and set(settings) <= set(setting_fields(kind)) - {"data"}:
        shared = os.environ.get("DECISOR_DATA")
        if not shared:
            raise SetupError(f'{name} needs its files: write -b "{name} data=FOLDER", or set DECISOR_DATA.')
        settings["data"] = str(find_bench_data(Path(shared), name))
    instance: Bench = build_from_settings(kind, name, settings)
    return instance


def find_bench_data(shared: Path, name: str) -> Path:
    """Return the folder of a benchmark in a folder of all, or that one if it has none."""
    own = shared / name
    return own if own.exists() else shared


def compute_search_metrics(events: Sequence[TraceEntry]) -> dict[str, float]:
    """Return the metric ``elo``: the rating of the chosen sequence; empty without a comparison.

    >>> from decisor.trace.events import NodeRating
    >>> nodes = (NodeRating(0), NodeRating(1, 0, elo=40.0, matches=2))
    >>> compute_search_metrics([TraceEntry(1, 0, 0.0, SearchTree(nodes, chosen=1))])
    {'elo': 40.0}
    """
    # A technique may search several times; only the last tree is about the answer.
    for tree in reversed([*events_of(events, SearchTree)]):
        leaves = [node for node in tree.nodes if node.node == tree.chosen]
        return {"elo": leaves[0].elo} if leaves and leaves[0].matches else {}
    return {}


def find_chosen_path(events: Sequence[TraceEntry]) -> list[TraceEntry]:
    """Return the trace of the sequence that a search chose.

    It has the actions of the sequence with their observations, in order. It is the whole trace if nothing was searched,
    empty if no sequence was chosen.

    >>> from decisor.trace.events import NodeRating
    >>> from decisor.types import Action, Observation
    >>> def step(at, node, parent, input):
    ...     return [TraceEntry(at, 0, 0.0, ActionStart("f", input)),
    ...             TraceEntry(at + 1, 0, 0.0, ActionResult(at, Observation())),
    ...             TraceEntry(at + 2, 0, 0.0, SearchNode(node, parent, Action("f", input)))]
    >>> nodes = (NodeRating(0), NodeRating(1, 0), NodeRating(2, 0))
    >>> trace = [*step(1, 1, 0, "a"), *step(4, 2, 0, "b"), TraceEntry(7, 0, 0.0, SearchTree(nodes, chosen=2))]
    >>> [entry.id for entry in find_chosen_path(trace)]
    [4, 5]
    """
    trees = [*events_of(events, SearchTree)]
    if not trees:
        return list(events)
    parents = {node.node: node.parent for node in trees[-1].nodes}
    path: set[int] = set()
    node = trees[-1].chosen
    while node is not None:
        path.add(node)
        node = parents.get(node)
    # Keep the actions of those nodes, each with its result.
    starts: dict[int, TraceEntry] = {}
    results: dict[tuple[str, str], list[TraceEntry]] = {}
    chosen: list[TraceEntry] = []
    for entry in events:
        match entry.event:
            case ActionStart():
                starts[entry.id] = entry
            case ActionResult(action=at) if at in starts:
                start = starts[at].event
                assert isinstance(start, ActionStart)
                results.setdefault((start.tool, start.input), []).append(entry)
            # Searches run side by side, so a node is matched with its action by tool and input, not by place in the
            # trace.
            case SearchNode(node=number, action=action) if came := results.get((action.tool, action.input)):
                result = came.pop()
                assert isinstance(result.event, ActionResult)
                chosen += [starts[result.event.action], result] if number in path else []
    return chosen


def short_digest(text: str) -> str:
    """Return the first twelve hexadecimal digits of the SHA-256 hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


State = Literal["right", "wrong", "unscored", "crashed", "over_budget"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one finished case in a run."""

    benchmark: str
    case: str
    technique: str
    """Label with settings: ``plan_rag replan=no``."""
    model: str
    repeat: int
    """Counts from 0."""
    state: State
    """Kept apart: a wrong answer, one no judge could read, a crash, and a run over its budget."""
    group: str = ""
    answer: str = ""
    text: str = ""
    gold: tuple[str, ...] = ()
    stopped: str = ""
    reasons: tuple[str, ...] = ()
    failure: str = ""
    tags: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    """The technique's own usage."""
    seconds: float = 0.0
    critical: float = 0.0
    """Seconds along the longest chain of calls that waited for each other."""
    snapshots: Mapping[int, bool] = field(default_factory=dict)
    """Number of calls -> whether the answer at that time was right."""
    beside: Mapping[str, Usage] = field(default_factory=dict)
    """Usage of the benchmark's own LLMs, by role (judge, simulator)."""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The values that identify an outcome in a run."""
        return self.benchmark, self.case, self.technique, self.model, self.repeat


Row = Mapping[str, Any]
T = TypeVar("T")


def read_question_rows(path: Path) -> Iterator[Row]:
    """Yield every row of a file as a mapping.

    Raises:
        SetupError: the file cannot be read, or a line is not a JSON object.
    """
    # A released file may be packed; its kind is the ending before .gz.
    kind = path.name.removesuffix(".gz")
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="") as file
        ):
            if kind.endswith(".tsv"):
                # The csv module refuses fields of more than 128 KiB by default.
                csv.field_size_limit(2**24)
                yield from csv.DictReader(file, delimiter="\t")
                return
            rows = parse_json_rows(file.read()) if kind.endswith(".json") else parse_json_lines(file)
            for number, row in enumerate(rows, 1):
                if not isinstance(row, dict):
                    raise ValueError(f"row {number} is no JSON object")
                yield row
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, csv.Error) as error:
        raise SetupError(f"{path} cannot be read: {error}.") from error


def parse_json_lines(file: Iterable[str]) -> Iterator[object]:
    return (json.loads(line) for line in file if line.strip())


def parse_json_rows(text: str) -> Iterator[object]:
    """Yield the rows of a JSON text: a list, an object by id, or JSON lines (some releases name them .json)."""
    try:
        value = json.loads(text)
    except ValueError:
        yield from parse_json_lines(text.splitlines())
        return
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        value = [{"id": key, **item} for key, item in value.items()]
    if not isinstance(value, list):
        raise ValueError("it holds no list of questions")
    yield from value


def parse_question_rows(path: Path, what: str, parse: Callable[[Row], T]) -> Iterator[T]:
    """Parse every row of a file.

    Raises:
        SetupError: the file cannot be read, or a row is not of ``what``.
    """
    for number, row in enumerate(read_question_rows(path), 1):
        try:
            parsed = parse(row)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise SetupError(f"{path}, row {number}, is no question of {what}: {why}.") from error
        yield parsed
