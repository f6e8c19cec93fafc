"""The sets of questions over documents: how the released files of each are read, and which answers are right in it.

A set is one value, ``QaSet``, beside the functions that read it. Each is read as released, or as our own gzipped JSON
lines with their corpus. * HotpotQA (Yang et al., EMNLP 2018): two-hop questions over Wikipedia;
``hotpot_dev_distractor_v1.json`` or ``..._fullwiki_v1.json``. Right is a normalized exact match. ``distractor``: only
questions of the distractor setting. * 2WikiMultiHopQA (Ho et al., COLING 2020): two to four hops over Wikipedia;
``dev.json`` or ``train.json``. Right is an exact match; ``id_aliases.json`` beside it adds accepted names. * MuSiQue
(Trivedi et al., TACL 2022): two to four hops that cannot be shortened; ``musique_ans_v1.0_dev.jsonl``. Right is an
exact match with any alias. * StrategyQA (Geva et al., TACL 2021): yes-no questions with implicit steps;
``strategyqa_train.json`` with ``strategyqa_train_paragraphs.json``, or dev.jsonl.gz with dev_corpus.jsonl.gz. Right is
the first yes or no of the answer. Each annotator marked their own evidence; ``recall@10`` is the best over annotators,
as released. * ARC-Challenge (Clark et al., 2018): choices in science; ``ARC-Challenge-Test.jsonl`` (or with choices as
two lists). Right is the choice, named by letter or by text. Techniques that read passages need a ``corpus``. * PopQA
(Mallen et al., ACL 2023): one fact about a thing, often a rare one; ``popQA.tsv``. Right is an answer that contains an
accepted one. ``longtail``: only the rarely read subjects, as Self-RAG and Plan-RAG report. * ParallelQA (Kim et al.,
"LLMCompiler", ICML 2024): figures of several things, compared; ``parallelqa_dataset.json``. Right is a number within
10 %, else an exact match. Techniques that read passages need a ``corpus``.

HotpotQA and 2WikiMultiHopQA have one layout, and MuSiQue another:

    {"_id", "question", "answer", "type", "supporting_facts": [[title, sentence number]],
     "context": [[title, [sentence]]]}    and for 2WikiMultiHopQA "evidences": [[subject, relation, object]]
    {"id", "question", "answer", "answer_aliases", "answerable", "paragraphs": [{"idx", "title", "paragraph_text",
     "is_supporting"}], "question_decomposition": [{"question", "answer", "paragraph_support_idx"}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from decisor.documents.passage import Passage, read_passages
from decisor.errors import SetupError
from decisor.lab.benchmark import Case
from decisor.lab.qa.bench import (
    YES_NO,
    QaSet,
    Row,
    drop_repeated_passages,
    make_passage,
    make_qa_bench,
    make_qa_case,
    read_question_rows,
    report_row_errors,
)
from decisor.lab.qa.score import contains_gold, equals_main_gold, is_close_to_gold
from decisor.lab.text_match import read_choice_letter, read_first_yes_no
from decisor.types import Value


def read_arc_cases(path: Path) -> list[Case]:
    """Read the cases of ARC-Challenge. gold: the letter, then the text of the right choice.

    ``facts["choices"]``: letter to text.
    """
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "ARC-Challenge"):
            stem, choices = parse_arc_choices(row)
            answer = str(row.get("answerKey") or row["answer"])
            listed = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
            goal = f"Choices:\n{listed}\n\nAnswer with the letter of the right choice."
            gold = [answer, choices[answer]]
            cases.append(make_qa_case(str(row["id"]), stem, gold, goal=goal, facts={"choices": choices}))
    return cases


def parse_arc_choices(row: Row) -> tuple[str, dict[str, str]]:
    """Return the question without its choices, and the choices by letter."""
    question, choices = row["question"], row.get("choices")
    if isinstance(question, dict):
        question, choices = question["stem"], question["choices"]
    if isinstance(choices, list):
        return question, {str(choice["label"]): str(choice["text"]) for choice in choices}
    if not isinstance(choices, dict):
        raise ValueError("it has no choices")
    if set(choices) == {"label", "text"}:
        return question, dict(zip(map(str, choices["label"]), map(str, choices["text"]), strict=True))
    return question, {str(letter): str(text) for letter, text in choices.items()}


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
    read_cases=read_arc_cases,
    read_answer=read_arc_letter,
    right=equals_main_gold,
)
ArcBench = make_qa_bench(ARC, __name__)


def read_musique_cases(path: Path) -> list[Case]:
    """Read the answerable questions. ``group``: hops and shape (2hop, 3hop1, 3hop2, 4hop1, ...)."""
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "MuSiQue"):
            if row.get("answerable", True):
                cases.append(parse_own_musique_row(row) if "gold" in row else parse_released_musique_row(row))
    return cases


def parse_own_musique_row(row: Row) -> Case:
    group = str(row.get("type", ""))
    facts = {"decomposition": row["decomposition"], "source": row.get("source", "")}
    return make_qa_case(
        row["id"], row["question"], [row["answer"], *row["aliases"]], row["gold"], group=group, facts=facts
    )


def parse_released_musique_row(row: Row) -> Case:
    passages = musique_passages(row)
    ids = [one.id for one in passages]
    number = {paragraph["idx"]: at for at, paragraph in enumerate(row["paragraphs"])}
    gold = [id for id, paragraph in zip(ids, row["paragraphs"], strict=True) if paragraph["is_supporting"]]
    parts: list[Value] = [
        {"question": part["question"], "answer": part["answer"], "gold": ids[number[part["paragraph_support_idx"]]]}
        for part in row["question_decomposition"]
    ]
    group = row["id"].partition("__")[0]
    answers = [row["answer"], *row["answer_aliases"]]
    return make_qa_case(row["id"], row["question"], answers, gold, group=group, facts={"decomposition": parts})


def musique_passages(row: Row) -> list[Passage]:
    return [make_passage(paragraph["title"], paragraph["paragraph_text"]) for paragraph in row["paragraphs"]]


def read_musique_corpus(path: Path) -> Iterator[Passage]:
    """Read the corpus beside our own file, else every paragraph of every question, each once."""
    beside = path.with_name("corpus.jsonl.gz")
    return read_passages(beside) if beside.is_file() else drop_repeated_passages(iterate_musique_passages(path))


def iterate_musique_passages(path: Path) -> Iterator[Passage]:
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "MuSiQue"):
            passages = musique_passages(row)
        yield from passages


MUSIQUE = QaSet(
    name="musique",
    title="MuSiQue",
    folder="musique",
    files=("questions.jsonl.gz", "musique_ans_v1.0_dev.jsonl", "musique_ans_v1.0_train.jsonl"),
    read_cases=read_musique_cases,
    read_passages=read_musique_corpus,
)
MuSiQueBench = make_qa_bench(MUSIQUE, __name__)


def read_paragraph_cases(path: Path, what: str) -> list[Case]:
    """Read the cases in the order of the file. Raise SetupError if a row is no question of the set."""
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, what):
            gold = row["gold"] if "gold" in row else gold_paragraph_ids(row)
            cases.append(
                make_qa_case(
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
            )
    return cases


def gold_paragraph_ids(row: Row) -> list[str]:
    """Return the ids of the context's paragraphs that contain a supporting fact.

    In the fullwiki setting some may be missing.
    """
    titles = {title for title, _ in row["supporting_facts"]}
    return [one.id for one in context_passages(row) if one.title in titles]


def context_passages(row: Row) -> list[Passage]:
    return [make_passage(title, " ".join(part.strip() for part in sentences)) for title, sentences in row["context"]]


def read_paragraph_corpus(path: Path, what: str) -> Iterator[Passage]:
    """Read the corpus beside our own file, else every paragraph of every context, each once."""
    beside = path.with_name("corpus.jsonl.gz")
    if beside.is_file():
        return read_passages(beside)
    return drop_repeated_passages(
        one
        for number, row in enumerate(read_question_rows(path), 1)
        for one in read_context_passages(path, number, row, what)
    )


def read_context_passages(path: Path, number: int, row: Row, what: str) -> list[Passage]:
    with report_row_errors(path, number, what):
        passages = context_passages(row)
    return passages


def read_hotpotqa_cases(path: Path) -> list[Case]:
    return read_paragraph_cases(path, "HotpotQA")


def read_hotpotqa_corpus(path: Path) -> Iterator[Passage]:
    return read_paragraph_corpus(path, "HotpotQA")


def keep_distractor_cases(cases: list[Case]) -> list[Case]:
    """Keep only the cases of the distractor setting.

    In files that mix sources, a source with a question whose gold passages were not in its own context is of the
    fullwiki setting; its other questions are easier than average.
    """
    fullwiki = {case.facts["source"] for case in cases if case.facts["gold_by"] == "title-in-corpus"}
    return [case for case in cases if case.facts["source"] not in fullwiki]


HOTPOTQA = QaSet(
    name="hotpotqa",
    title="HotpotQA",
    folder="hotpotqa",
    files=("questions.jsonl.gz", "hotpot_dev_distractor_v1.json", "hotpot_dev_fullwiki_v1.json"),
    read_cases=read_hotpotqa_cases,
    read_passages=read_hotpotqa_corpus,
    option="distractor",
    part=keep_distractor_cases,
)
HotpotQABench = make_qa_bench(HOTPOTQA, __name__)


def read_parallelqa_cases(path: Path) -> list[Case]:
    """Read the cases of ParallelQA. ``group``: number of things that are looked up side by side."""
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "ParallelQA"):
            group = f"{int(row['branch'])} branches"
            cases.append(make_qa_case(str(row["id"]), row["question"], [str(row["answer"])], group=group))
    return cases


PARALLELQA = QaSet(
    name="parallelqa",
    title="ParallelQA",
    folder="llmcompiler",
    files=("parallelqa.jsonl.gz", "parallelqa_dataset.json"),
    read_cases=read_parallelqa_cases,
    right=is_close_to_gold,
)
ParallelQABench = make_qa_bench(PARALLELQA, __name__)


LONG_TAIL_VIEWS = 100
"""Page views a month; subjects with fewer are the part that is reported (1,399 of the released questions)."""


def read_popqa_cases(path: Path) -> list[Case]:
    """Read the cases of PopQA. ``group``: the relation asked for."""
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "PopQA"):
            answers = row["answers"] if "answers" in row else json.loads(row["possible_answers"])
            facts = {"views": int(row["s_pop"]), "subject": row["subj"]}
            gold = row.get("gold", ())
            cases.append(
                make_qa_case(str(row["id"]), row["question"], answers, gold, group=str(row["prop"]), facts=facts)
            )
    return cases


def read_popqa_corpus(path: Path) -> Iterator[Passage]:
    """Read the corpus beside the questions. Raise SetupError if there is none, as the release has no passages."""
    beside = path.with_name("corpus.jsonl.gz")
    if not beside.is_file():
        raise SetupError(f"PopQA is released without passages and there is no {beside}. Name a corpus: -o corpus=INDEX")
    return read_passages(beside)


def keep_long_tail_cases(cases: list[Case]) -> list[Case]:
    return [case for case in cases if int(str(case.facts["views"])) < LONG_TAIL_VIEWS]


POPQA = QaSet(
    name="popqa",
    title="PopQA",
    folder="popqa",
    files=("questions.jsonl.gz", "popQA.tsv", "popqa.tsv", "test.tsv"),
    read_cases=read_popqa_cases,
    read_passages=read_popqa_corpus,
    right=contains_gold,
    option="longtail",
    part=keep_long_tail_cases,
)
PopQABench = make_qa_bench(POPQA, __name__)


def read_strategyqa_cases(path: Path) -> list[Case]:
    cases = []
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "StrategyQA"):
            answer = {True: "yes", False: "no"}.get(row["answer"], str(row["answer"]))
            annotators = [evidence_of_annotator(steps) for steps in row["evidence"]]
            facts = {"annotators": annotators, "decomposition": row["decomposition"], "facts": row["facts"]}
            passages = [id for evidence in annotators for id in evidence]
            id = str(row.get("qid") or row["id"])
            cases.append(make_qa_case(id, row["question"], [answer], passages, goal=YES_NO, facts=facts))
    return cases


def evidence_of_annotator(steps: object) -> list[str]:
    """Return the paragraph ids of one annotator.

    Each step contains lists of ids, or the words operation or no_evidence.
    """
    if not isinstance(steps, list):
        raise ValueError("its evidence is no list")
    ids = [id for step in steps for group in step if isinstance(group, list) for id in group]
    return list(dict.fromkeys(ids))


def read_strategyqa_corpus(path: Path) -> Iterator[Passage]:
    """Read the paragraphs. Raise SetupError if they are not beside the questions."""
    if path.name == "dev.jsonl.gz":
        yield from read_passages(path.with_name("dev_corpus.jsonl.gz"))
        return
    names = [f"{path.stem}_paragraphs.json", "strategyqa_train_paragraphs.json", "strategyqa_paragraphs.json"]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None:
        raise SetupError(f"There are no paragraphs beside {path}: {names[0]} is missing.")
    for number, row in enumerate(read_question_rows(beside), 1):
        with report_row_errors(beside, number, "the paragraphs of StrategyQA"):
            one = parse_strategyqa_paragraph(row)
        yield one


def parse_strategyqa_paragraph(row: Row) -> Passage:
    return Passage(str(row["id"]), str(row["content"]), str(row["title"]))


def read_yes_no(answer: str, case: Case) -> str:
    return read_first_yes_no(answer)


STRATEGYQA = QaSet(
    name="strategyqa",
    title="StrategyQA",
    folder="strategyqa",
    files=("dev.jsonl.gz", "strategyqa_dev.json", "strategyqa_train.json", "dev.json", "train.json"),
    read_cases=read_strategyqa_cases,
    read_passages=read_strategyqa_corpus,
    read_answer=read_yes_no,
    right=equals_main_gold,
)
StrategyQABench = make_qa_bench(STRATEGYQA, __name__)


def read_twowiki_cases(path: Path) -> list[Case]:
    names = read_wikidata_aliases(path.with_name("id_aliases.json"))
    return [add_answer_aliases(case, names) for case in read_paragraph_cases(path, "2WikiMultiHopQA")]


def read_twowiki_corpus(path: Path) -> Iterator[Passage]:
    return read_paragraph_corpus(path, "2WikiMultiHopQA")


def read_wikidata_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the other names of each Wikidata id from the released file; empty if there is no file."""
    if not path.is_file():
        return {}
    names = {}
    for number, row in enumerate(read_question_rows(path), 1):
        with report_row_errors(path, number, "the aliases"):
            names[str(row["Q_id"])] = (*row["aliases"], *row["demonyms"])
    return names


def add_answer_aliases(case: Case, names: Mapping[str, tuple[str, ...]]) -> Case:
    """Return the case with the other names of its answer."""
    also = names.get(str(case.facts.get("answer_id")), ())
    return replace(case, gold=tuple(dict.fromkeys((*case.gold, *also)))) if also else case


TWOWIKI = QaSet(
    name="twowiki",
    title="2WikiMultiHopQA",
    folder="2wikimultihopqa",
    files=("questions.jsonl.gz", "dev.json", "train.json", "test.json"),
    read_cases=read_twowiki_cases,
    read_passages=read_twowiki_corpus,
)
TwoWikiBench = make_qa_bench(TWOWIKI, __name__)
