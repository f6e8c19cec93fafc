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

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, make_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from decisor.documents.index import FORMAT, build_index, is_index, open_index, read_current_version, read_index_metadata
from decisor.documents.minilm import MiniLM
from decisor.documents.passage import Passage, read_passages
from decisor.documents.tool import PassagesTool
from decisor.errors import SetupError
from decisor.lab.benchmark import Case, Row, Score, parse_question_rows, short_digest
from decisor.lab.judges import OwnLLM, grade_by_llm_eval, open_judge_run
from decisor.lab.qa.score import Right, exact, score_qa_answer
from decisor.session.documents import embedder_closer, embedder_of_environment
from decisor.system.storage import cache_folder
from decisor.tools.toolbox import Toolbox
from decisor.trace.events import TraceEntry
from decisor.types import Decision, Environment, Question, Value

SHORT = "Answer with a name, a date, a number, yes or no, or a short phrase, in the words of the passages."
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


Mode = Literal["bm25", "dense", "hybrid"]


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
    # Size and time of the files, not their content: a corpus may have gigabytes.
    state = short_digest(
        "\n".join(f"{FORMAT} {path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files)
    )
    state_file = place.with_name(f"{place.name}.state")
    if not is_index(place) or not state_file.is_file() or state_file.read_text() != state:
        place.parent.mkdir(parents=True, exist_ok=True)
        build_index(passages(), place, embedder=None if mode == "bm25" else MiniLM.open())
        # Written last: an index that was cut off has no state and is built again.
        state_file.write_text(state)
    return place


@dataclass(frozen=True)
class QaSet:
    """A set of questions: its files, how their rows are parsed, and which answers are right."""

    name: str
    title: str
    folder: str
    """Folder of the data with the files."""
    files: tuple[str, ...]
    """Names of its files; the first one that exists counts."""
    parse_case: Callable[[Row], Case | None]
    """Makes a case of a row; None if the row is no question that counts."""
    complete: Callable[[list[Case], Path], list[Case]] = lambda cases, path: cases
    """Adds to the cases what stands beside their file."""
    parse_passages: Callable[[Row], Iterable[Passage]] | None = None
    """Makes the passages of a row, if the questions bring their own."""
    read_passages: Callable[[Path], Iterator[Passage]] | None = None
    """Reads the corpus that belongs to a file of questions."""
    read_answer: Callable[[str, Case], str] = lambda answer, case: answer
    """Reads what is scored out of an answer (a letter, yes or no); '' if it contains none."""
    right: Right = exact
    option: str = ""
    """Name of a setting of its own, yes or no, which leaves only the cases of ``part``."""
    part: Callable[[list[Case]], list[Case]] = list

    def file(self, data: Path) -> Path:
        """Return ``data`` if it is a file, else the first of ``files`` in it or in the set's folder.

        Raises:
            SetupError: there is none.
        """
        if data.is_file():
            return data
        for folder in (data, data / self.folder, data / "multihop" / self.folder):
            for name in self.files:
                if (folder / name).is_file():
                    return folder / name
        names = " or ".join(self.files)
        raise SetupError(f"{data} holds no questions of {self.title}: there is no {names}. Give the folder or file.")

    def cases(self, data: Path, only_part: bool = False) -> list[Case]:
        """Read the cases of the set. Raise SetupError if there is no such file or a row is no question of the set."""
        path = self.file(data)
        cases = [case for case in parse_question_rows(path, self.title, self.parse_case) if case is not None]
        cases = self.complete(cases, path)
        return self.part(cases) if only_part else cases

    @property
    def has_corpus(self) -> bool:
        return bool(self.read_passages or self.parse_passages)

    def passages(self, data: Path) -> Iterator[Passage]:
        """Iterate over the set's own corpus, empty if it has none. Raise SetupError if it cannot be read."""
        if self.read_passages:
            return self.read_passages(self.file(data))
        return iter(()) if self.parse_passages is None else self.context_passages(self.file(data), self.parse_passages)

    def context_passages(self, path: Path, parse: Callable[[Row], Iterable[Passage]]) -> Iterator[Passage]:
        """Iterate over the corpus beside our own file, else over every passage of every question, each once."""
        beside = path.with_name("corpus.jsonl.gz")
        if beside.is_file():
            yield from read_passages(beside)
            return
        ids: set[str] = set()
        for context in parse_question_rows(path, self.title, parse):
            for passage in context:
                if passage.id not in ids:
                    ids.add(passage.id)
                    yield passage


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
    def own_llms(self) -> tuple[OwnLLM, ...]:
        """The LLM of the judge; empty if no judge is named."""
        return (OwnLLM(self.judge),) if self.judge else ()

    @cached_property
    def tools(self) -> Sequence[PassagesTool]:
        """The one tool that all cases share, opened when the first case needs it; none without passages."""
        place = self.index()
        return [] if place is None else [open_passages_tool(place, self.mode, self.limit)]

    def index(self) -> Path | None:
        if self.corpus:
            return open_corpus_index(Path(self.corpus), self.mode)
        if not self.questions.has_corpus:
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
        yield Toolbox(self.tools)

    async def score(self, case: Case, decision: Decision, events: Sequence[TraceEntry]) -> Score:
        answer = self.questions.read_answer(decision.answer, case)
        return score_qa_answer(case, decision, events, self.questions.right, answer)

    async def judged(self, score: Score, case: Case, decision: Decision) -> Score:
        """Add the metric ``llm_eval`` if a judge is named and its reply could be read.

        Raises:
            SetupError: the judge that is named cannot be used.
        """
        for judge in self.own_llms:
            llm = judge.for_case()
            verdict = await grade_by_llm_eval(case.question.text, case.gold, decision.answer, open_judge_run(llm))
            metrics = {} if verdict is None else {"llm_eval": float(verdict)}
            score = replace(score, metrics={**score.metrics, **metrics}, judging=llm.usage)
        return score

    async def close(self) -> None:
        # Only if it was opened; whoever goes on opens it again.
        for tool in self.__dict__.pop("tools", ()):
            await tool.close()
        for judge in self.own_llms:
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
