"""Retrieval beside the engines used by themselves, in the same run.

    python performance/retrieval.py quality --data DATA [--vectors FOLDER]
    python performance/retrieval.py speed [--passages 100000] [--alone]

`speed --passages 5000 --alone` takes a minute. `quality` embeds 38,000 passages the first time: half an hour, and the
weights that `decisor doctor` names.

quality: Recall@2/5/10, all gold passages in the first 5 and 10, and MRR, in percent, on three multi-hop sets. The last
column is the difference in Recall@5 to the first row, paired by question, with its 95 % interval; below each table is
said where we are below an engine by itself. Vectors come from FOLDER where they are (SET.corpus.npy, SET.questions.npy:
rows in the order of the files) and are made there where not.
speed: generated passages of 100 words; seconds to build, milliseconds a query, peak resident memory. ``--alone`` leaves
the peers out. Needs bm25s and PyStemmer.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decisor.documents.index import DocumentIndex, IndexMetadata, Mode, build_index, open_index, update_index
from decisor.documents.passage import Passage, read_passages
from decisor.documents.reader import FolderReader

SETS = ("musique", "2wikimultihopqa", "hotpotqa")
NAMES = ("R@2", "R@5", "R@10", "all@5", "all@10", "MRR")
FREQUENT = re.findall(
    r"\w+",
    "the of and a to in is was that for it with as on be at by this had not are but from or have an they which one "
    "you were all her she there would their we him been has when who will no more if out so up said what its about",
)
Ranked = Sequence[Sequence[str]]
"""For each question, ids of passages, best first."""


class Given:
    """An embedder whose vectors were made before, by the text."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self.rows = {text: row for row, text in enumerate(texts)}
        self.vectors = vectors

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self.vectors[[self.rows[text] for text in texts]], np.float32)


def vectors_of(path: Path, texts: Sequence[str]) -> NDArray[np.float32]:
    if not path.exists():
        from decisor.documents.minilm import MiniLM

        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, MiniLM.open().embed(texts))
    vectors: NDArray[np.float32] = np.load(path)
    assert len(vectors) == len(texts), f"{path} has {len(vectors)} rows for {len(texts)} texts"
    return vectors


def ours(index: DocumentIndex, asked: Sequence[str]) -> Ranked:
    async def all_of_them() -> Ranked:
        return [[record.id for record in await index.find(text, 10)] for text in asked]

    return asyncio.run(all_of_them())


def by_bm25s(passages: Sequence[Passage], asked: Sequence[str]) -> Ranked:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    searcher = bm25s.BM25()
    texts = [passage.whole for passage in passages]
    searcher.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(asked), stopwords="en", stemmer=stemmer, show_progress=False)
    found, _ = searcher.retrieve(tokens, k=10, show_progress=False)
    return [[passages[int(at)].id for at in row] for row in found]


def tantivy_alone(passages: Sequence[Passage]) -> Callable[[str], list[str]]:
    """Its English analyser, one field, its query parser on words in lower case."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    index = tantivy.Index(schema.add_integer_field("n", stored=True).build())
    writer = index.writer(200_000_000, 1)
    for number, passage in enumerate(passages):
        writer.add_document(tantivy.Document(text=passage.whole, n=number))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def find(text: str) -> list[str]:
        query = index.parse_query(" ".join(re.findall(r"\w+", text.lower())), ["text"])
        hits = searcher.search(query, 10, count=False).hits
        return [passages[searcher.doc(address)["n"][0]].id for _, address in hits]

    return find


def exact(passages: Sequence[Passage], vectors: NDArray[np.float32], asked: NDArray[np.float32]) -> Ranked:
    """The whole matrix in single precision."""
    best = np.argsort(-(asked @ vectors.T), axis=1, kind="stable")[:, :10]
    return [[passages[at].id for at in row] for row in best]


def scores(ranked: Ranked, gold: Sequence[set[str]]) -> NDArray[np.float64]:
    """Shape (questions, 6), in the order of NAMES."""
    rows = []
    for ids, wanted in zip(ranked, gold, strict=True):
        hits = [[one in wanted for one in ids[:k]] for k in (2, 5, 10)]
        recall = [sum(hit) / len(wanted) for hit in hits]
        first = next((1 / rank for rank, one in enumerate(ids, 1) if one in wanted), 0.0)
        rows.append([*recall, float(recall[1] == 1), float(recall[2] == 1), first])
    return np.array(rows)


def questions_of(data: Path, name: str, most: int = 0) -> tuple[list[Passage], list[str], list[set[str]]]:
    """Passages, questions, and for each question the ids of its gold passages. ``most``: of the questions, with their
    gold passages and ten times as many others; 0 for all.
    """
    passages = list(read_passages(data / "multihop" / name / "corpus.jsonl.gz"))
    with gzip.open(data / "multihop" / name / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions: list[dict[str, Any]] = [json.loads(line) for line in lines]
    if most:
        questions = questions[:most]
        wanted = {id for one in questions for id in one["gold"]}
        others = [one for one in passages if one.id not in wanted][: 10 * most]
        passages = [one for one in passages if one.id in wanted] + others
    return passages, [one["question"] for one in questions], [set(one["gold"]) for one in questions]


def embedded(
    folder: Path, name: str, passages: Sequence[Passage], asked: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of passages and of questions, shape (how many, width) each."""
    texts = [passage.whole for passage in passages]
    return vectors_of(folder / f"{name}.corpus.npy", texts), vectors_of(folder / f"{name}.questions.npy", asked)


def quality(data: Path, folder: Path) -> None:
    for name in SETS:
        passages, asked, gold = questions_of(data, name)
        known, wanted = embedded(folder, name, passages, asked)
        given = Given([*(one.whole for one in passages), *asked], np.concatenate([known, wanted]))
        alone = tantivy_alone(passages)
        engines: dict[str, Ranked] = {"bm25s": by_bm25s(passages, asked), "tantivy": [alone(text) for text in asked]}
        engines["exact dense (numpy)"] = exact(passages, known, wanted)
        with tempfile.TemporaryDirectory() as place:
            build_index(passages, place, embedder=given)
            modes: tuple[Mode, ...] = ("bm25", "dense", "hybrid")
            rows: dict[str, Ranked] = {mode: ours(open_index(place, mode, given), asked) for mode in modes}
        print(f"\n{name}: {len(passages):,} passages, {len(asked):,} questions")
        table(
            {label: scores(ranked, gold) for label, ranked in engines.items()},
            {label: scores(ranked, gold) for label, ranked in rows.items()},
        )


def table(engines: dict[str, NDArray[np.float64]], rows: dict[str, NDArray[np.float64]]) -> None:
    print(f"{'':26}" + "".join(f"{column:>8}" for column in NAMES) + "   R@5 - bm25s")
    first = engines["bm25s"]
    for label, these in ({f"{name} alone": one for name, one in engines.items()} | rows).items():
        apart = 100 * (these[:, 1] - first[:, 1])
        half = 1.96 * apart.std(ddof=1) / len(apart) ** 0.5
        cells = "".join(f"{100 * value:8.1f}" for value in these.mean(axis=0))
        mark = "" if label.endswith("alone") else "decisor "
        print(f"{mark + label:26}{cells}   {apart.mean():+.1f} ± {half:.1f}", flush=True)
    rivals = {"bm25": ("bm25s", "tantivy"), "dense": ("exact dense (numpy)",)}
    for label, these in rows.items():
        for rival in rivals.get(label, tuple(engines)):
            apart = these.mean(axis=0) - engines[rival].mean(axis=0)
            below = [f"{name} {100 * less:.2f}" for name, less in zip(NAMES, apart, strict=True) if less < -1e-9]
            print(f"decisor {label} below {rival} alone: {', '.join(below) or 'nowhere'}")


def generated(path: Path, count: int, words: int = 100, vocabulary: int = 200_000, seed: int = 7) -> None:
    """Words by Zipf's law, the most frequent ones English stop words, the rest made up from syllables."""
    rng = np.random.default_rng(seed)
    parts = np.array([f"{a}{b}" for a in "bdfgklmnprstvz" for b in "aeiou"])
    made = ["".join(row) for row in parts[rng.integers(0, len(parts), (vocabulary, 4))]]
    made[: len(FREQUENT)] = FREQUENT
    chance = 1 / np.arange(1, vocabulary + 1)
    heap = np.cumsum(chance / chance.sum())
    with path.open("w") as file:
        for start in range(0, count, 1000):
            rows = np.searchsorted(heap, rng.random((min(1000, count - start), words)))
            for number, row in enumerate(rows, start):
                text = " ".join([made[min(at, vocabulary - 1)] for at in row])
                file.write(json.dumps({"id": f"g{number}", "title": text[:20], "text": text}) + "\n")


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def speed(count: int, alone: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        generated(place / "p.jsonl", count)
        wall, cpu = timed(lambda: build_index(read_passages(place / "p.jsonl"), place / "index"))
        again, used = timed(
            lambda: update_index(FolderReader(place / "p.jsonl").documents(), place / "read", IndexMetadata())
        )
        size = sum(file.stat().st_size for file in (place / "index").rglob("*") if file.is_file())
        print(f"{count:,} passages, load average {os.getloadavg()[0]:.1f}")
        print(f"decisor  build {wall:6.1f} s wall {cpu:6.1f} s CPU, {size / 1e6:,.0f} MB on disk")
        print(f"decisor  build {again:6.1f} s wall {used:6.1f} s CPU, read as decisor index reads JSON lines")
        rng = np.random.default_rng(1)
        with (place / "p.jsonl").open() as lines:
            sample = [json.loads(line)["text"].split() for line, _ in zip(lines, range(2000), strict=False)]
        asked = [" ".join(rng.choice(words, 10, replace=False)) for words in sample[:500]]
        opened, _ = timed(lambda: open_index(place / "index"))
        index = open_index(place / "index")
        print(
            f"decisor  query {told(lambda text: asyncio.run(index.find(text, 10)), asked)} (with a new event loop each)"
        )
        print(f"decisor  query {inside(index, asked)}; opened in {1000 * opened:.1f} ms")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"decisor  peak resident memory {peak:,.0f} MB")
        if not alone:
            peers(list(read_passages(place / "p.jsonl")), asked)


def inside(index: DocumentIndex, asked: Sequence[str]) -> str:
    async def each() -> list[float]:
        times = []
        for text in asked:
            began = time.perf_counter()
            await index.find(text, 10)
            times.append(1000 * (time.perf_counter() - began))
        return times

    before = time.process_time()
    times = asyncio.run(each())
    return f"{percentiles(times)}, {1000 * (time.process_time() - before) / len(times):.2f} ms CPU"


def told(find: Callable[[str], object], asked: Sequence[str]) -> str:
    both = [timed(lambda text=text: find(text)) for text in asked]  # type: ignore[misc]
    cpu = 1000 * statistics.fmean(cpu for _, cpu in both)
    return f"{percentiles([1000 * wall for wall, _ in both])}, {cpu:.2f} ms CPU"


def percentiles(times: list[float]) -> str:
    return f"p50 {statistics.median(times):6.2f} ms, p95 {statistics.quantiles(times, n=20)[-1]:6.2f} ms"


def peers(passages: Sequence[Passage], asked: Sequence[str]) -> None:
    import bm25s

    held: dict[str, Any] = {}

    def build() -> None:
        held["bm25s"] = bm25s.BM25()
        tokens = bm25s.tokenize([passage.whole for passage in passages], stopwords="en", show_progress=False)
        held["bm25s"].index(tokens, show_progress=False)

    wall, cpu = timed(build)
    print(f"bm25s    build {wall:6.1f} s wall {cpu:6.1f} s CPU (in memory, no stemming)")

    def find(text: str) -> object:
        tokens = bm25s.tokenize([text], stopwords="en", show_progress=False)
        return held["bm25s"].retrieve(tokens, k=10, show_progress=False)

    print(f"bm25s    query {told(find, asked)}")
    wall, cpu = timed(lambda: held.update(tantivy=tantivy_alone(passages)))
    print(f"tantivy  build {wall:6.1f} s wall {cpu:6.1f} s CPU (in memory, no texts stored)")
    print(f"tantivy  query {told(held['tantivy'], asked)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("quality", "speed"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    if given.what == "quality":
        quality(given.data, given.vectors)
    else:
        speed(given.passages, given.alone)


if __name__ == "__main__":
    main()
