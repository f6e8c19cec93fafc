"""The index in PostgreSQL beside the one on disk: the same figures, and how long a query takes among a million.

    python performance/retrieval_table.py quality --data DATA [--vectors FOLDER]
    python performance/retrieval_table.py speed [--passages 1000000] [--keep] [--again]

`speed --passages 2000` takes a minute; a million an hour. Needs decisor[postgres] and pgvector.

quality: Recall@2/5/10, all gold passages in the first 5 and 10, and MRR, in percent, on three multi-hop sets, of both
indexes and the difference (bar: 1 point), and how many of 10 passages are the same. Vectors as in retrieval.py.
speed: generated passages of 100 words with generated vectors of 384 numbers around 1,000 centres; seconds to build, and
milliseconds a query of ten words (bar: 300 at p95), by words, by vectors, and by both. ``--keep`` leaves the tables
there, and ``--again`` asks those that are there.

--server names where databases may be made, postgresql://postgres@127.0.0.1:5432 unless said; --database the one to use.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

import retrieval
from decisor.documents.index import Mode, build_index, open_index
from decisor.documents.passage import Embedder, read_passages
from decisor.documents.postgres import TablePlace, build_table_index, open_table_index, parse_table_place
from decisor.system.storage import stamp_of

WIDTH, CENTRES, QUERIES = 384, 1_000, 300
MODES: tuple[Mode, ...] = ("bm25", "dense", "hybrid")


class Generated:
    """A vector for any text, from its digest: near one of the centres."""

    name = "generated"

    def __init__(self) -> None:
        self.centres = np.random.default_rng(7).standard_normal((CENTRES, WIDTH)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.stack([self._one(text) for text in texts])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def _one(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(stamp_of(text)[:8], "little")
        centre: NDArray[np.float32] = self.centres[seed % CENTRES]
        return centre + np.random.default_rng(seed).standard_normal(WIDTH, np.float32)


@contextmanager
def database(server: str, name: str, keep: bool) -> Iterator[str]:
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchall():
            admin.execute(f'CREATE DATABASE "{name}"'.encode())
        yield f"{server}/{name}"
        if not keep:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


async def ranked(place: str, mode: Mode, embedder: Embedder, asked: Sequence[str]) -> list[list[str]]:
    index = await open_table_index(parse_table_place(place), mode, embedder)
    try:
        return [[record.id for record in await index.find(text, 10)] for text in asked]
    finally:
        await index.close()


def quality(data: Path, folder: Path, url: str) -> None:
    for name in retrieval.SETS:
        passages, asked, gold = retrieval.questions_of(data, name)
        known, wanted = retrieval.embedded(folder, name, passages, asked)
        given = retrieval.Given([*(one.whole for one in passages), *asked], np.concatenate([known, wanted]))
        place = f"{url}/{name[:1].replace('2', 'w')}{name[1:]}"
        build_table_index(passages, place, embedder=given)
        print(f"\n{name}: {len(passages):,} passages, {len(asked):,} questions")
        print(f"{'':26}" + "".join(f"{column:>8}" for column in retrieval.NAMES))
        with tempfile.TemporaryDirectory() as local:
            build_index(passages, local, embedder=given)
            for mode in MODES:
                here = retrieval.ours(open_index(local, mode, given), asked)
                there = asyncio.run(ranked(place, mode, given, asked))
                rows = [retrieval.scores(one, gold).mean(axis=0) for one in (here, there)]
                same = np.mean(
                    [len(set(one) & set(other)) / max(1, len(one)) for one, other in zip(here, there, strict=True)]
                )
                for label, row in ((f"{mode}, on disk", rows[0]), (f"{mode}, PostgreSQL", rows[1])):
                    print(f"{label:26}" + "".join(f"{100 * value:8.1f}" for value in row))
                print(f"{'  apart':26}" + "".join(f"{100 * value:+8.2f}" for value in rows[1] - rows[0]))
                print(f"  the same passages among ten: {same:.1%}", flush=True)


def build(count: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        file = Path(name) / "p.jsonl"
        retrieval.generated(file, count)
        print(f"{count:,} passages, load average {os.getloadavg()[0]:.1f}", flush=True)
        embedder = Generated()
        wall, cpu = retrieval.timed(
            lambda: print(build_table_index(read_passages(file), f"{url}/generated", embedder=embedder), flush=True)
        )
        print(f"build {wall:.0f} s wall, {cpu:.0f} s CPU on our side (with making the vectors)", flush=True)


def ask(url: str) -> None:
    with psycopg.connect(url) as db:
        row = db.execute("SELECT pg_size_pretty(pg_database_size(current_database()))").fetchone()
        texts = db.execute("SELECT text FROM generated WHERE number < %s ORDER BY number", (QUERIES,)).fetchall()
    print(f"on disk {row[0] if row else '?'}; load average {os.getloadavg()[0]:.1f}")
    rng = np.random.default_rng(1)
    asked = [" ".join(rng.choice(str(text).split(), 10, replace=False)) for (text,) in texts]
    asyncio.run(times(parse_table_place(f"{url}/generated"), Generated(), asked))


async def times(place: TablePlace, embedder: Embedder, asked: Sequence[str]) -> None:
    for mode in MODES:
        began = time.perf_counter()
        index = await open_table_index(place, mode, embedder)
        opened = 1000 * (time.perf_counter() - began)
        spent = []
        for text in asked:
            began = time.perf_counter()
            await index.find(text, 10)
            spent.append(1000 * (time.perf_counter() - began))
        load = os.getloadavg()[0]
        print(f"{mode:8} {retrieval.percentiles(spent)}; opened in {opened:.0f} ms; load {load:.1f}", flush=True)
        await index.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "speed"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DECISOR_DATA", "../shared/data")))
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432")
    parser.add_argument("--database", default="decisor_retrieval")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    with database(given.server, given.database, given.keep) as url:
        if given.what == "quality":
            quality(given.data, given.vectors, url)
        else:
            if not given.again:
                build(given.passages, url)
            ask(url)


if __name__ == "__main__":
    main()
