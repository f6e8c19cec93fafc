"""Loaders of questions over documents: the files at hand, and small files in each released layout."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from data import DATA
from decisor.errors import SetupError
from decisor.lab.benchmark import Case
from decisor.lab.qa.bench import ARC, HOTPOTQA, MUSIQUE, PARALLELQA, POPQA, STRATEGYQA, TWOWIKI, QaSet

HAVE = pytest.mark.skipif(not (DATA / "multihop").is_dir(), reason=f"no test data in {DATA / 'multihop'}")
SETS = {one.name: one for one in (HOTPOTQA, TWOWIKI, MUSIQUE, STRATEGYQA, ARC, POPQA, PARALLELQA)}
CONTEXT = [
    ["Emma", ["Emma is a novel. ", "Jane Austen wrote it."]],
    ["Jane Austen", ["She was born in Steventon."]],
    ["Persuasion", ["A novel."]],
]
PARAGRAPHS = {
    "_id": "h1",
    "question": "Where was the author of Emma born?",
    "answer": "Steventon",
    "type": "bridge",
    "supporting_facts": [["Emma", 1], ["Jane Austen", 0]],
    "context": CONTEXT,
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@HAVE
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("hotpotqa", 354),
        ("twowiki", 910),
        ("musique", 658),
        ("strategyqa", 229),
        ("arc", 1172),
        ("popqa", 1000),
        ("parallelqa", 113),
    ],
)
def test_every_question_at_hand_is_read(name: str, count: int) -> None:
    cases = SETS[name].cases(DATA)
    assert len({case.id for case in cases}) == len(cases) == count
    assert all(case.gold and case.question.text and case.question.goal for case in cases)


@HAVE
@pytest.mark.parametrize("one", [HOTPOTQA, TWOWIKI, MUSIQUE, STRATEGYQA, POPQA], ids=lambda one: one.name)
def test_every_gold_passage_is_in_the_corpus(one: QaSet) -> None:
    known = {passage.id for passage in one.passages(DATA)}
    cases = one.cases(DATA)
    assert all(set(list_of(case, "passages")) <= known for case in cases)
    assert sum(bool(case.facts["passages"]) for case in cases) == len(cases)


@HAVE
def test_the_settings_leave_questions_out() -> None:
    assert len(HOTPOTQA.cases(DATA, only_part=True)) == 145
    assert len(POPQA.cases(DATA, only_part=True)) == 259


def test_hotpotqa_as_released(tmp_path: Path) -> None:
    write(tmp_path, "hotpot_dev_distractor_v1.json", [PARAGRAPHS, PARAGRAPHS | {"_id": "h2"}])
    first, second = HOTPOTQA.cases(tmp_path)
    passages = {passage.id: passage for passage in HOTPOTQA.passages(tmp_path)}
    assert (first.id, first.gold, first.group, second.id) == ("h1", ("Steventon",), "bridge", "h2")
    assert len(passages) == 3  # both questions have the same context
    gold = [passages[str(id)] for id in list_of(first, "passages")]
    assert [(one.title, one.text) for one in gold] == [
        ("Emma", "Emma is a novel. Jane Austen wrote it."),
        ("Jane Austen", "She was born in Steventon."),
    ]


def test_2wikimultihopqa_as_released_with_its_aliases(tmp_path: Path) -> None:
    row = PARAGRAPHS | {"evidences": [["Emma", "author", "Jane Austen"]], "answer_id": "Q1", "evidences_id": []}
    write(tmp_path, "dev.json", [row])
    write(
        tmp_path,
        "id_aliases.json",
        '{"Q_id": "Q1", "aliases": ["Steventon, Hampshire"], "demonyms": []}\n'
        '{"Q_id": "Q2", "aliases": [], "demonyms": ["Briton"]}\n',
    )
    (case,) = TWOWIKI.cases(tmp_path / "dev.json")
    assert case.gold == ("Steventon", "Steventon, Hampshire")
    assert case.facts["evidences"] == [["Emma", "author", "Jane Austen"]]


def test_musique_as_released_leaves_out_what_cannot_be_answered(tmp_path: Path) -> None:
    paragraphs = [
        {"idx": 0, "title": "Persuasion", "paragraph_text": "A novel.", "is_supporting": False},
        {"idx": 1, "title": "Emma", "paragraph_text": "By Jane Austen.", "is_supporting": True},
        {"idx": 2, "title": "Jane Austen", "paragraph_text": "Born in Steventon.", "is_supporting": True},
    ]
    parts = [
        {"id": 1, "question": "Emma >> author", "answer": "Jane Austen", "paragraph_support_idx": 1},
        {"id": 2, "question": "#1 >> born in", "answer": "Steventon", "paragraph_support_idx": 2},
    ]
    row = {
        "id": "2hop__1_2",
        "question": "Where was Emma's author born?",
        "answer": "Steventon",
        "answerable": True,
        "answer_aliases": ["Steventon, Hampshire"],
        "paragraphs": paragraphs,
        "question_decomposition": parts,
    }
    lines = [json.dumps(row), json.dumps(row | {"id": "2hop__3_4", "answerable": False}), ""]
    write(tmp_path, "musique_ans_v1.0_dev.jsonl", "\n".join(lines))
    (case,) = MUSIQUE.cases(tmp_path)
    titles = {passage.id: passage.title for passage in MUSIQUE.passages(tmp_path)}
    assert (case.group, case.gold) == ("2hop", ("Steventon", "Steventon, Hampshire"))
    assert [titles[str(id)] for id in list_of(case, "passages")] == ["Emma", "Jane Austen"]
    golds = [titles[part["gold"]] for part in list_of(case, "decomposition")]
    assert golds == ["Emma", "Jane Austen"]


def test_strategyqa_as_released_keeps_each_annotator_apart(tmp_path: Path) -> None:
    evidence = [[[["Emma-1"]], ["operation"]], [[["Emma-1", "Jane-2"]], ["no_evidence", "operation"]]]
    row = {
        "qid": "s1",
        "term": "Emma",
        "description": "novel",
        "question": "Is Emma older than film?",
        "answer": True,
        "facts": ["It is of 1815."],
        "decomposition": ["When is Emma from?", "Is #1 before film?"],
        "evidence": evidence,
    }
    write(tmp_path, "strategyqa_train.json", [row])
    with pytest.raises(SetupError, match=r"strategyqa_train_paragraphs\.json is missing"):
        list(STRATEGYQA.passages(tmp_path))
    paragraph = {"title": "Emma", "section": "", "content": "Emma is of 1815.", "para_index": 1}
    write(tmp_path, "strategyqa_train_paragraphs.json", {"Emma-1": paragraph})
    (case,) = STRATEGYQA.cases(tmp_path)
    assert case.gold == ("yes",)
    assert case.facts["annotators"] == [["Emma-1"], ["Emma-1", "Jane-2"]]
    assert [(one.id, one.title) for one in STRATEGYQA.passages(tmp_path)] == [("Emma-1", "Emma")]


@pytest.mark.parametrize(
    "row",
    [
        {
            "id": "a",
            "answerKey": "2",
            "question": {"stem": "Hot?", "choices": [{"text": "ice", "label": "1"}, {"text": "fire", "label": "2"}]},
        },
        {"id": "a", "answerKey": "2", "question": "Hot?", "choices": {"text": ["ice", "fire"], "label": ["1", "2"]}},
        {"id": "a", "answer": "2", "question": "Hot?", "choices": {"1": "ice", "2": "fire"}},
    ],
)
def test_arc_in_three_layouts(tmp_path: Path, row: dict[str, Any]) -> None:
    write(tmp_path, "ARC-Challenge-Test.jsonl", json.dumps(row))
    (case,) = ARC.cases(tmp_path)
    assert (case.question.text, case.gold, case.facts["choices"]) == ("Hot?", ("2", "fire"), {"1": "ice", "2": "fire"})
    assert "1. ice\n2. fire" in case.question.goal


def test_popqa_as_released(tmp_path: Path) -> None:
    rows = (
        "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n42\tEmma\tauthor\tJane Austen\t99\t5\t"
        '"Who wrote ""Emma""?"\t"[""Jane Austen"", ""Austen""]"\n'
    )
    write(tmp_path, "popQA.tsv", rows)
    (case,) = POPQA.cases(tmp_path, only_part=True)
    assert (case.question.text, case.gold, case.group) == ('Who wrote "Emma"?', ("Jane Austen", "Austen"), "author")
    with pytest.raises(SetupError, match="corpus=INDEX"):
        POPQA.passages(tmp_path)


@pytest.mark.parametrize("name", SETS)
def test_a_folder_without_the_files_says_which_are_wanted(name: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"holds no questions of .* there is no .* or "):
        SETS[name].cases(tmp_path)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("text", ["[1]", "[{}]", '{"a": 1}', "nonsense", '[{"id": 1, "question": "", "answer": ""}]'])
def test_a_wrong_file_is_told_in_one_line(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"wrong\.json"):
        SETS[name].cases(write(tmp_path, "wrong.json", text))


@pytest.mark.parametrize("name", ["broken.jsonl.gz", "broken.json.gz"])
def test_a_torn_archive_is_told(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, [PARAGRAPHS] * 50)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SetupError, match="cannot be read"):
        HOTPOTQA.cases(path)


def list_of(case: Case, name: str) -> list[Any]:
    value = case.facts[name]
    assert isinstance(value, list)
    return value
