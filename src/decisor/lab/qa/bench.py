"""A set of questions over documents as a benchmark: its settings, its cases, and the passages that all cases search.

A set is one value, ``QaSet``, beside the functions that parse its rows. Rows of a released file are a JSON list, JSON
lines, or tab-separated values, gzipped or not. Passages have stable ids; they are indexed once, and the index is kept
in the user's cache folder.

Settings of every set: ``data``, the folder of its files or the file; ``corpus``, an index or JSON lines with id, title
and text, instead of the set's own passages; ``mode``, how it is searched (dense and hybrid embed every passage the
first time); ``limit``, number of passages that a search returns; ``judge``, MODEL@URL of an LLM that says, as the
metric ``llm_eval``, whether an answer means the same as an accepted one.

Each set is read as released, or as our own gzipped JSON lines with their corpus; ``SUMMARIES`` (``benchmark.py``) and
docs/papers.md say when an answer is right.

HotpotQA and 2WikiMultiHopQA have one layout, and MuSiQue another:

    {"_id", "question", "answer", "type", "supporting_facts": [[title, sentence number]],
     "context": [[title, [sentence]]]}    and for 2WikiMultiHopQA "evidences": [[subject, relation, object]]
    {"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"idx", "title", "paragraph_text",
     "is_supporting"}], "question_decomposition": [{"question", "answer", "paragraph_support_idx"}]}
"""

from __future__ import annotations

import hashlib
import json
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
from decisor.lab.qa.score import Right, equals_main_gold, exact, score_qa_answer
from decisor.lab.text_match import acc, is_near_answer, read_choice_letter, read_first_yes_no
from decisor.session.open_sources import embedder_closer, embedder_of_environment
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
        if not (self.questions.read_passages or self.questions.parse_passages):
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


def parse_arc_case(row: Row) -> Case:
    """Make a case of ARC-Challenge. gold: the letter, then the text of the right choice.

    ``facts["choices"]``: letter to text.
    """
    stem, listed = row["question"], row.get("choices")
    if isinstance(stem, dict):  # as released; a copy on Hugging Face has the choices beside the question, as two lists
        stem, listed = stem["stem"], stem["choices"]
    if isinstance(listed, list):
        choices = {str(choice["label"]): str(choice["text"]) for choice in listed}
    elif not isinstance(listed, dict):
        raise ValueError("it has no choices")
    elif set(listed) == {"label", "text"}:
        choices = dict(zip(map(str, listed["label"]), map(str, listed["text"]), strict=True))
    else:
        choices = {str(letter): str(text) for letter, text in listed.items()}
    answer = str(row.get("answerKey") or row["answer"])
    lines = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
    goal = f"Choices:\n{lines}\n\nAnswer with the letter of the right choice."
    return make_qa_case(str(row["id"]), stem, [answer, choices[answer]], goal=goal, facts={"choices": choices})


def read_arc_letter(answer: str, case: Case) -> str:
    """Return the letter that an answer names, or an empty text."""
    choices = case.facts["choices"]
    assert isinstance(choices, Mapping)
    return read_choice_letter(answer, {letter: str(text) for letter, text in choices.items()})


ARC = QaSet(
    name="arc",
    title="ARC-Challenge",
    folder="arc_challenge",
    files=("test.jsonl.gz", "ARC-Challenge-Test.jsonl", "ARC-Challenge-Dev.jsonl", "dev.jsonl.gz"),
    parse_case=parse_arc_case,
    read_answer=read_arc_letter,
    right=equals_main_gold,
)
ArcBench = make_qa_bench(ARC, __name__)


def parse_musique_case(row: Row) -> Case | None:
    """Make a case of an answerable question. ``group``: hops and shape (2hop, 3hop1, 3hop2, 4hop1, ...)."""
    if not row.get("answerable", True):
        return None
    if "gold" in row:  # our own file
        facts = {"decomposition": row["decomposition"], "source": row.get("source", "")}
        answers, group = [row["answer"], *row["aliases"]], str(row.get("type", ""))
        return make_qa_case(row["id"], row["question"], answers, row["gold"], group=group, facts=facts)
    ids = [passage.id for passage in parse_musique_passages(row)]
    number = {paragraph["idx"]: at for at, paragraph in enumerate(row["paragraphs"])}
    gold = [id for id, paragraph in zip(ids, row["paragraphs"], strict=True) if paragraph["is_supporting"]]
    parts: list[Value] = [
        {"question": part["question"], "answer": part["answer"], "gold": ids[number[part["paragraph_support_idx"]]]}
        for part in row["question_decomposition"]
    ]
    answers, group = [row["answer"], *row["answer_aliases"]], row["id"].partition("__")[0]
    return make_qa_case(row["id"], row["question"], answers, gold, group=group, facts={"decomposition": parts})


def parse_musique_passages(row: Row) -> list[Passage]:
    return [make_passage(paragraph["title"], paragraph["paragraph_text"]) for paragraph in row["paragraphs"]]


MUSIQUE = QaSet(
    name="musique",
    title="MuSiQue",
    folder="musique",
    files=("questions.jsonl.gz", "musique_ans_v1.0_dev.jsonl", "musique_ans_v1.0_train.jsonl"),
    parse_case=parse_musique_case,
    parse_passages=parse_musique_passages,
)
MuSiQueBench = make_qa_bench(MUSIQUE, __name__)


def parse_hotpotqa_case(row: Row) -> Case:
    """Make a case of HotpotQA or 2WikiMultiHopQA.

    Gold are the paragraphs of the context that contain a supporting fact; in the fullwiki setting some may be missing.
    """
    gold = row.get("gold")
    if gold is None:
        # Facts name sentences; the unit of retrieval is the paragraph.
        titles = {title for title, _ in row["supporting_facts"]}
        gold = [passage.id for passage in parse_context_passages(row) if passage.title in titles]
    return make_qa_case(
        str(row.get("_id") or row["id"]),
        row["question"],
        [row["answer"], *row.get("aliases", ())],
        gold,
        group=str(row.get("type", "")),
        facts={
            "supporting_facts": row["supporting_facts"],
            "evidences": row.get("evidences", []),
            "evidences_id": row.get("evidences_id", []),
            "answer_id": row.get("answer_id"),
            "source": row.get("source", ""),
            "gold_by": row.get("gold_by", ""),
        },
    )


def parse_context_passages(row: Row) -> list[Passage]:
    return [make_passage(title, " ".join(part.strip() for part in sentences)) for title, sentences in row["context"]]


def keep_distractor_cases(cases: list[Case]) -> list[Case]:
    """Keep only the cases of the distractor setting.

    In files that mix sources, a source with a question whose gold passages were not in its own context is of the
    fullwiki setting; its other questions are easier than average.
    """
    # Seen by what is missing: in the distractor setting every gold passage is in the context.
    fullwiki = {case.facts["source"] for case in cases if case.facts["gold_by"] == "title-in-corpus"}
    return [case for case in cases if case.facts["source"] not in fullwiki]


HOTPOTQA = QaSet(
    name="hotpotqa",
    title="HotpotQA",
    folder="hotpotqa",
    files=("questions.jsonl.gz", "hotpot_dev_distractor_v1.json", "hotpot_dev_fullwiki_v1.json"),
    parse_case=parse_hotpotqa_case,
    parse_passages=parse_context_passages,
    option="distractor",
    part=keep_distractor_cases,
)
HotpotQABench = make_qa_bench(HOTPOTQA, __name__)


def add_wikidata_aliases(cases: list[Case], path: Path) -> list[Case]:
    """Add the other names of each answer's Wikidata id, if the released file of them is beside the questions."""
    beside = path.with_name("id_aliases.json")
    if not beside.is_file():
        return cases
    names = dict(
        parse_question_rows(beside, "the aliases", lambda row: (str(row["Q_id"]), (*row["aliases"], *row["demonyms"])))
    )
    return [
        replace(case, gold=tuple(dict.fromkeys((*case.gold, *names.get(str(case.facts["answer_id"]), ())))))
        for case in cases
    ]


TWOWIKI = QaSet(
    name="twowiki",
    title="2WikiMultiHopQA",
    folder="2wikimultihopqa",
    files=("questions.jsonl.gz", "dev.json", "train.json", "test.json"),
    parse_case=parse_hotpotqa_case,
    complete=add_wikidata_aliases,
    parse_passages=parse_context_passages,
)
TwoWikiBench = make_qa_bench(TWOWIKI, __name__)


def parse_parallelqa_case(row: Row) -> Case:
    """Make a case of ParallelQA. ``group``: number of things that are looked up side by side."""
    group = f"{int(row['branch'])} branches"
    return make_qa_case(str(row["id"]), row["question"], [str(row["answer"])], group=group)


PARALLELQA = QaSet(
    name="parallelqa",
    title="ParallelQA",
    folder="llmcompiler",
    files=("parallelqa.jsonl.gz", "parallelqa_dataset.json"),
    parse_case=parse_parallelqa_case,
    right=lambda answer, case: is_near_answer(answer, case.gold[0]),
)
ParallelQABench = make_qa_bench(PARALLELQA, __name__)


LONG_TAIL_VIEWS = 100
"""Page views a month; subjects with fewer are the part that is reported (1,399 of the released questions)."""


def parse_popqa_case(row: Row) -> Case:
    """Make a case of PopQA. ``group``: the relation asked for."""
    answers = row["answers"] if "answers" in row else json.loads(row["possible_answers"])
    facts = {"views": int(row["s_pop"]), "subject": row["subj"]}
    gold = row.get("gold", ())
    return make_qa_case(str(row["id"]), row["question"], answers, gold, group=str(row["prop"]), facts=facts)


def read_popqa_corpus(path: Path) -> Iterator[Passage]:
    """Read the corpus beside the questions. Raise SetupError if there is none, as the release has no passages."""
    beside = path.with_name("corpus.jsonl.gz")
    if not beside.is_file():
        raise SetupError(f"PopQA is released without passages and there is no {beside}. Name a corpus: -o corpus=INDEX")
    return read_passages(beside)


POPQA = QaSet(
    name="popqa",
    title="PopQA",
    folder="popqa",
    files=("questions.jsonl.gz", "popQA.tsv", "popqa.tsv", "test.tsv"),
    parse_case=parse_popqa_case,
    read_passages=read_popqa_corpus,
    right=lambda answer, case: acc(answer, case.gold) == 1,
    option="longtail",
    part=lambda cases: [case for case in cases if int(str(case.facts["views"])) < LONG_TAIL_VIEWS],
)
PopQABench = make_qa_bench(POPQA, __name__)


def parse_strategyqa_case(row: Row) -> Case:
    answer = {True: "yes", False: "no"}.get(row["answer"], str(row["answer"]))
    annotators = []
    for steps in row["evidence"]:
        if not isinstance(steps, list):
            raise ValueError("its evidence is no list")
        # A step has lists of paragraph ids, or the words operation or no_evidence.
        ids = [id for step in steps for group in step if isinstance(group, list) for id in group]
        annotators.append(list(dict.fromkeys(ids)))
    facts = {"annotators": annotators, "decomposition": row["decomposition"], "facts": row["facts"]}
    passages = [id for evidence in annotators for id in evidence]
    return make_qa_case(str(row.get("qid") or row["id"]), row["question"], [answer], passages, goal=YES_NO, facts=facts)


def read_strategyqa_corpus(path: Path) -> Iterator[Passage]:
    """Read the paragraphs. Raise SetupError if they are not beside the questions."""
    if path.name == "dev.jsonl.gz":
        yield from read_passages(path.with_name("dev_corpus.jsonl.gz"))
        return
    names = [f"{path.stem}_paragraphs.json", "strategyqa_train_paragraphs.json", "strategyqa_paragraphs.json"]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None:
        raise SetupError(f"There are no paragraphs beside {path}: {names[0]} is missing.")
    yield from parse_question_rows(
        beside,
        "the paragraphs of StrategyQA",
        lambda row: Passage(str(row["id"]), str(row["content"]), str(row["title"])),
    )


STRATEGYQA = QaSet(
    name="strategyqa",
    title="StrategyQA",
    folder="strategyqa",
    files=("dev.jsonl.gz", "strategyqa_dev.json", "strategyqa_train.json", "dev.json", "train.json"),
    parse_case=parse_strategyqa_case,
    read_passages=read_strategyqa_corpus,
    read_answer=lambda answer, case: read_first_yes_no(answer),
    right=equals_main_gold,
)
StrategyQABench = make_qa_bench(STRATEGYQA, __name__)
