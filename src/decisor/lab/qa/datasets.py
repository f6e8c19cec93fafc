"""The sets of questions over documents: how the released files of each are read, and which answers are right in it.

A set is one value, ``QaSet``, beside the functions that parse its rows. Each is read as released, or as our own gzipped
JSON lines with their corpus; ``SUMMARIES`` (``benchmark.py``) and docs/papers.md say when an answer is right.

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
from decisor.lab.benchmark import Case, Row, parse_question_rows
from decisor.lab.qa.bench import YES_NO, QaSet, make_passage, make_qa_bench, make_qa_case
from decisor.lab.qa.score import contains_gold, equals_main_gold, is_close_to_gold
from decisor.lab.text_match import read_choice_letter, read_first_yes_no
from decisor.types import Value


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
    right=is_close_to_gold,
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
    right=contains_gold,
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
