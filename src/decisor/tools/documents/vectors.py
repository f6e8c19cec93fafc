"""Vectors of passages: exact search up to some ten thousand, a graph of neighbours (HNSW, by usearch) beyond."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from decisor.cache import stamp_of
from decisor.errors import SetupError
from decisor.extras import lacks
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.passage import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from usearch.index import Index as NeighbourIndex

EXACT = 50_000
BATCH = 256
CONNECTIVITY, ADDING, SEARCHING = 16, 128, 128


def engine() -> ModuleType:
    """The usearch module. Raises SetupError where it is not installed."""
    try:
        with suppress(ImportError):
            import onnxruntime  # noqa: F401 (importing it after usearch 2.26 ends the process)
        import usearch.index
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise lacks("Dense retrieval needs usearch", "documents") from error
        raise SetupError(f"Dense retrieval needs usearch: it cannot be loaded beside what is ({error}).") from error
    return usearch.index


@dataclass(frozen=True, eq=False)
class Vectors:
    """Half-precision vectors under the numbers of their passages, memory-mapped from one file."""

    index: NeighbourIndex

    @classmethod
    def open(cls, path: Path) -> Vectors:
        try:
            index = engine().Index.restore(str(path), view=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise SetupError(f"The vectors in {path} cannot be opened: {error}. Build the index again.") from error
        if index is None:
            raise SetupError(f"The vectors in {path} cannot be opened. Build the index again.")
        index.expansion_search = SEARCHING
        return cls(index)

    def search(self, vector: NDArray[np.float32], limit: int) -> list[tuple[int, float]]:
        """(number, cosine) of the nearest, nearest first; equal ones by number."""
        limit = min(limit, len(self.index))
        if limit < 1:
            return []
        matches = self.index.search(vector, limit, exact=len(self.index) <= EXACT)
        pairs = [(int(key), 1.0 - float(far)) for key, far in zip(matches.keys, matches.distances, strict=True)]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def cosines(self, vector: NDArray[np.float32], numbers: Sequence[int]) -> list[tuple[int, float]]:
        """Those of these passages, in their order; who has no vector is left out."""
        import numpy as np

        there = [number for number in numbers if number in self.index]
        if not there:
            return []
        near = np.asarray(self.index.get(np.array(there, np.uint64)), np.float32) @ vector
        return list(zip(there, near.tolist(), strict=True))


@dataclass
class VectorBuilder:
    """Collects passages and embeds them in batches; what is embedded is remembered in ``part`` until the build is done,
    so a build that was killed does not pay twice."""

    embedder: Embedder
    part: Path
    old: Path | None = None
    index: NeighbourIndex | None = None
    waiting: list[tuple[int, Passage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.old is not None:
            self.index = engine().Index.restore(str(self.old))
        self.memory = VectorMemory(self.part, self.embedder.name)

    def add(self, number: int, passage: Passage) -> None:
        self.waiting.append((number, passage))
        if len(self.waiting) >= BATCH:
            self.flush()

    def drop(self, numbers: Sequence[int]) -> None:
        import numpy as np

        if self.index is not None and numbers:
            self.index.remove(np.array(numbers, np.uint64))

    def flush(self) -> None:
        import numpy as np

        if not self.waiting:
            return
        texts = [passage.whole for _, passage in self.waiting]
        vectors = self.memory.embed(self.embedder, texts)
        if self.index is None:
            self.index = new_index(vectors.shape[1])
        if vectors.shape[1] != self.index.ndim:
            raise SetupError(f"{self.embedder.name} gives {vectors.shape[1]} numbers a text, not {self.index.ndim}.")
        self.index.add(np.array([number for number, _ in self.waiting], np.uint64), vectors)
        self.waiting.clear()

    def finish(self, path: Path) -> int:
        """Save; the dimension of the vectors."""
        self.flush()
        index = new_index(1) if self.index is None else self.index
        index.save(str(path))
        width: int = index.ndim
        return width

    def close(self) -> None:
        self.memory.file.close()


def new_index(width: int) -> NeighbourIndex:
    index: NeighbourIndex = engine().Index(
        ndim=width, metric="cos", dtype="f16", connectivity=CONNECTIVITY, expansion_add=ADDING,
        expansion_search=SEARCHING,
    )  # fmt: skip
    return index


class VectorMemory:
    """Vectors by the stamp of their text, in a SQLite file: what a build that was killed leaves to the next one."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = sqlite3.connect(path, isolation_level=None)
        self.file.execute("PRAGMA synchronous=OFF")
        self.file.execute("CREATE TABLE IF NOT EXISTS vectors (name, stamp, vector, PRIMARY KEY (name, stamp))")

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float16]:
        """Return vectors of shape (len(texts), width); those that are remembered are not embedded again."""
        import numpy as np

        stamps = [stamp_of(text) for text in texts]
        query = "SELECT vector FROM vectors WHERE name = ? AND stamp = ?"
        known = {stamp: row[0] for stamp in stamps if (row := self.file.execute(query, (self.name, stamp)).fetchone())}
        if new := {stamp: text for stamp, text in zip(stamps, texts, strict=True) if stamp not in known}:
            vectors = np.asarray(embedder.embed(list(new.values())), np.float16)
            rows = [(self.name, stamp, vector.tobytes()) for stamp, vector in zip(new, vectors, strict=True)]
            self.file.execute("BEGIN")
            self.file.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)
            self.file.execute("COMMIT")
            known |= {stamp: vector for _, stamp, vector in rows}
        return np.stack([np.frombuffer(known[stamp], np.float16) for stamp in stamps])
