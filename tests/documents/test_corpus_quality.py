"""Retrieval on a released corpus is as good as docs/measurements says (bm25s by itself: 0.51 on these questions)."""

import gzip
import json
from statistics import fmean

import pytest

from data import DATA
from decisor.documents.index import build_memory_index
from decisor.documents.passage import read_passages

MUSIQUE = DATA / "multihop" / "musique"


@pytest.mark.skipif(not MUSIQUE.exists(), reason="needs the shared data, see tests/data.py")
async def test_words_find_more_than_half_of_the_gold_passages_of_musique() -> None:
    index = build_memory_index(read_passages(MUSIQUE / "corpus.jsonl.gz"))
    with gzip.open(MUSIQUE / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    recall = []
    for question in questions:
        found = {record.id for record in await index.find(question["question"], 5)}
        recall.append(len(found & set(question["gold"])) / len(question["gold"]))
    assert fmean(recall) > 0.54
