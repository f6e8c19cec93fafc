"""A set of questions over documents as a benchmark: its settings, its cases, and the passages that all cases search.

A set is one value, ``QaSet``, in ``datasets.py``; everything that the sets have in common is here. Rows of a released
file are a JSON list, JSON lines, or tab-separated values, gzipped or not. Passages have stable ids; they are indexed
once, and the index is kept in the user's cache folder.

Settings of every set: ``data``, the folder of its files or the file; ``corpus``, an index or JSON lines with id, title
and text, instead of the set's own passages; ``mode``, how it is searched (dense and hybrid embed every passage the
first time); ``limit``, number of passages that a search returns; ``judge``, MODEL@URL of an LLM that says, as the
metric ``llm_eval``, whether an answer means the same as an accepted one.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

from decisor.documents.index import FORMAT, build_index, is_index, open_index, read_current_version, read_index_metadata
from decisor.documents.minilm import MiniLM
from decisor.documents.passage import Passage, read_passages
from decisor.documents.tool import PassagesTool
from decisor.errors import SetupError
from decisor.lab.benchmark import Case, Score, short_digest
from decisor.lab.judges import OwnLM, grade_by_llm_eval, open_judge_run
from decisor.lab.qa.score import Right, exact, score_qa_answer
from decisor.session.documents import embedder_closer, embedder_of_environment
from decisor.system.storage import cache_folder
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Decision, Environment, Question, Value

SHORT = "Answer with as few words as possible: a name, a date, a number, yes or no, or a short phrase."
YES_NO = "Answer yes or no."


def make_qa_case(
    id: str,
    text: str,
    gold: Sequence[str],
    passages: Sequence[str] = (),
    *,
    group: str = "",
    goal: str = SHORT,
    facts: Mapping[str, Value] | None = None,
) -> Case:
    """Make a case. gold: accepted answers, the main one first. passages: ids of the passages that the answer needs.

    Raises:
        ValueError: there is no question or no answer.
    """
    answers = tuple(dict.fromkeys(answer.strip() for answer in gold if answer.strip()))
    if not text.strip() or not answers:
        raise ValueError("the question or its answer is empty")
    all_facts: dict[str, Value] = {"passages": list(dict.fromkeys(passages)), **(facts or {})}
    return Case(id, Question(text.strip(), goal=goal), answers, group, all_facts)


def make_passage(title: str, text: str) -> Passage:
    """Make a passage with an id that is the same for equal paragraphs.

    The id is the title with eight digits of a hash.
    """
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]
    return Passage(f"{title}#{digest}", text, title)


def drop_repeated_passages(passages: Iterator[Passage]) -> Iterator[Passage]:
    """Yield each passage once."""
    ids: set[str] = set()
    for one in passages:
        if one.id not in ids:
            ids.add(one.id)
            yield one


Mode = Literal["bm25", "dense", "hybrid"]


@dataclass
class SharedTool:
    """The passages tool over an index, opened once; no tool if there is no index."""

    index: Callable[[], Path | None]
    mode: Mode
    limit: int
    tools: Sequence[PassagesTool] | None = None

    def open(self) -> Sequence[PassagesTool]:
        if self.tools is None:
            place = self.index()
            self.tools = [] if place is None else [open_passages_tool(place, self.mode, self.limit)]
        return self.tools

    async def close(self) -> None:
        for tool in self.tools or ():
            await tool.close()
        self.tools = None


def open_passages_tool(place: Path, mode: Mode, limit: int) -> PassagesTool:
    """Open the tool over an index, with the endpoint of DECISOR_EMBED if that made its vectors."""
    name = "" if mode == "bm25" else read_index_metadata(place / str(read_current_version(place))).embedder
    embedder = embedder_of_environment(name) if name else None
    return PassagesTool(open_index(place, mode, embedder), limit, end=embedder_closer(embedder))


def open_corpus_index(corpus: Path, mode: Mode) -> Path:
    """Return the index of a named corpus: the corpus itself, or an index of its JSON lines in the cache.

    Raises:
        SetupError: there is none, or it cannot be read.
    """
    if not corpus.exists():
        raise SetupError(f"There is no corpus {corpus}. Make one: decisor index SOURCE --out {corpus}")
    return build_cached_index(corpus.stem, corpus, lambda: read_passages(corpus), mode) if corpus.is_file() else corpus


def build_cached_index(name: str, source: Path, passages: Callable[[], Iterable[Passage]], mode: Mode) -> Path:
    """Return the index in the cache, built if it is missing.

    It is updated if a file beside ``source`` changed, and has vectors if ``mode`` needs them.
    """
    kind = "words" if mode == "bm25" else "vectors"
    place = cache_folder() / "corpora" / f"{name}-{kind}-{short_digest(str(source.resolve()))}"
    files = sorted(path for path in source.parent.iterdir() if path.is_file())
    state = short_digest(
        "\n".join(f"{FORMAT} {path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files)
    )
    state_file = place.with_name(f"{place.name}.state")
    if not is_index(place) or not state_file.is_file() or state_file.read_text() != state:
        place.parent.mkdir(parents=True, exist_ok=True)
        build_index(passages(), place, embedder=None if mode == "bm25" else MiniLM.open())
        state_file.write_text(state)
    return place


Row = Mapping[str, Any]


def find_questions_file(data: Path, folder: str, names: Sequence[str], what: str) -> Path:
    """Return the file itself or the first of ``names`` that exists.

    They are looked for in ``data``, in ``data/folder`` and in ``data/multihop/folder``.

    Raises:
        SetupError: there is none; it says which names would do.
    """
    if data.is_file():
        return data
    places = [data, data / folder, data / "multihop" / folder]
    for place in places:
        for name in names:
            if (place / name).is_file():
                return place / name
    raise SetupError(f"{data} holds no questions of {what}: there is no {' or '.join(names)}. Give the folder or file.")


def read_question_rows(path: Path) -> Iterator[Row]:
    """Yield every row of a file as a mapping.

    Raises:
        SetupError: the file cannot be read, or a line is not a JSON object.
    """
    try:
        with open_questions_file(path) as file:
            if path.name.removesuffix(".gz").endswith(".tsv"):
                csv.field_size_limit(2**24)
                yield from csv.DictReader(file, delimiter="\t")
            elif path.name.removesuffix(".gz").endswith(".json"):
                yield from parse_json_rows(file.read(), path)
            else:
                yield from parse_json_lines(file, path)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, csv.Error) as error:
        raise SetupError(f"{path} cannot be read: {error}.") from error


def open_questions_file(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8-sig", newline="")


def parse_json_lines(file: Iterable[str], path: Path) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield check_json_object(json.loads(line), path, number)


def parse_json_rows(text: str, path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON text.

    It is a list of objects, an object of objects by id, or JSON lines (some releases name them .json).
    """
    try:
        value = json.loads(text)
    except ValueError:
        yield from parse_json_lines(text.splitlines(), path)
        return
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        value = [{"id": key, **item} for key, item in value.items()]
    if not isinstance(value, list):
        raise SetupError(f"{path} holds no list of questions.")
    for number, item in enumerate(value, 1):
        yield check_json_object(item, path, number)


def check_json_object(item: object, path: Path, number: int) -> Row:
    if not isinstance(item, dict):
        raise SetupError(f"{path}, row {number}, is no JSON object.")
    return item


@contextmanager
def report_row_errors(path: Path, number: int, what: str) -> Iterator[None]:
    """Convert errors of a malformed row to a SetupError.

    Use: ``with report_row_errors(path, number, "HotpotQA"): ...``.
    """
    where = f"{path}, row {number}, is no question of {what}"
    try:
        yield
    except KeyError as error:
        raise SetupError(f"{where}: it has no {error}.") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise SetupError(f"{where}: {error}.") from error


def as_written(answer: str, case: Case) -> str:
    return answer


@dataclass(frozen=True)
class QaSet:
    """A set of questions: its files, how they are read, and which answers are right.

    ``files``: names of its files, the first that is there counts, in ``folder`` of the data. ``read_cases`` and
    ``read_passages`` get that file; a set without ``read_passages`` has no corpus of its own. ``read_answer``: the
    answer as it is scored (a letter, yes or no, '' where there is none). ``right``: whether that is right.
    ``option``: a setting of its own, yes or no, which leaves only the cases of ``part``.
    """

    name: str
    title: str
    folder: str
    files: tuple[str, ...]
    read_cases: Callable[[Path], list[Case]]
    read_passages: Callable[[Path], Iterator[Passage]] | None = None
    read_answer: Callable[[str, Case], str] = as_written
    right: Right = exact
    option: str = ""
    part: Callable[[list[Case]], list[Case]] = list

    def file(self, data: Path) -> Path:
        """Return the first of ``files`` that exists. Raise SetupError if ``data`` contains none of them."""
        return find_questions_file(data, self.folder, self.files, self.title)

    def cases(self, data: Path, only_part: bool = False) -> list[Case]:
        """Read the cases of the set. Raise SetupError if there is no such file or a row is no question of the set."""
        cases = self.read_cases(self.file(data))
        return self.part(cases) if only_part else cases

    def passages(self, data: Path) -> Iterator[Passage]:
        """Iterate over the set's own corpus, empty if it has none. Raise SetupError if it cannot be read."""
        return self.read_passages(self.file(data)) if self.read_passages else iter(())


class QaBench:
    """A benchmark of one set of questions (``Bench``).

    ``make_qa_bench`` makes the class of a set, a frozen dataclass with these fields.
    """

    questions: ClassVar[QaSet]
    name: str
    data: Path
    corpus: str
    mode: Mode
    limit: int
    judge: str

    @cached_property
    def own_lms(self) -> tuple[OwnLM, ...]:
        """The LM of the judge; empty if no judge is named."""
        return (OwnLM(self.judge),) if self.judge else ()

    @cached_property
    def tool(self) -> SharedTool:
        """The one tool that all cases share, opened when the first case needs it."""
        return SharedTool(self.index, self.mode, self.limit)

    def index(self) -> Path | None:
        if self.corpus:
            return open_corpus_index(Path(self.corpus), self.mode)
        if self.questions.read_passages is None:
            return None
        file = self.questions.file(self.data)
        return build_cached_index(self.name, file, lambda: self.questions.passages(self.data), self.mode)

    def cases(self) -> Sequence[Case]:
        option = self.questions.option
        return self.questions.cases(self.data, bool(option) and getattr(self, option))

    @asynccontextmanager
    async def environment(self, case: Case) -> AsyncIterator[Environment]:
        """Open an environment in which ids of records start from one. Without passages there is no tool in it.

        Raises:
            SetupError: the corpus cannot be read or indexed.
        """
        yield Toolbox(self.tool.open())

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        answer = self.questions.read_answer(decision.answer, case)
        return score_qa_answer(case, decision, events, self.questions.right, answer)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        """Add the metric ``llm_eval`` if a judge is named and its reply could be read.

        Raises:
            SetupError: the judge that is named cannot be used.
        """
        for judge in self.own_lms:
            lm = judge.for_case()
            verdict = await grade_by_llm_eval(case.question.text, case.gold, decision.answer, open_judge_run(lm))
            metrics = {} if verdict is None else {"llm_eval": float(verdict)}
            score = replace(score, metrics={**score.metrics, **metrics}, judging=lm.usage)
        return score

    async def close(self) -> None:
        await self.tool.close()
        for judge in self.own_lms:
            await judge.close()


def make_qa_bench(questions: QaSet, module: str) -> Callable[..., QaBench]:
    """Make the benchmark class of a set.

    Its fields are its settings, so it is built from text as every benchmark is; the set's own option stands before
    ``judge``. module: the module of the set, whose docstring describes the set.
    """
    option = [(questions.option, bool, False)] if questions.option else []
    settings: list[tuple[str, object] | tuple[str, object, object]] = [
        ("data", Path),
        ("corpus", str, ""),
        ("mode", Mode, "bm25"),
        ("limit", int, 10),
        *option,
        ("judge", str, ""),
        ("name", str, questions.name),
    ]
    own = {"questions": questions, "__module__": module}
    return make_dataclass("QaBench", settings, bases=(QaBench,), frozen=True, namespace=own)
