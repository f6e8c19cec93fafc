"""The passages that all cases of a set search: indexed once, and kept in the user's cache folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decisor.benchmarks.digest import digest
from decisor.cache import cache_folder
from decisor.errors import SetupError
from decisor.session.documents import embedder_of, ending
from decisor.tools.documents.index import open_index
from decisor.tools.documents.index_build import build_index
from decisor.tools.documents.index_files import FORMAT, current, is_index, read_about
from decisor.tools.documents.minilm import MiniLM
from decisor.tools.documents.passage import Passage, read_passages
from decisor.tools.documents.passages_tool import PassagesTool

Mode = Literal["bm25", "dense", "hybrid"]


@dataclass
class SharedTool:
    """The tool over an index, opened once; no tool where there is no index."""

    index: Callable[[], Path | None]
    mode: Mode
    limit: int
    tools: Sequence[PassagesTool] | None = None

    def open(self) -> Sequence[PassagesTool]:
        if self.tools is None:
            place = self.index()
            self.tools = [] if place is None else [tool_at(place, self.mode, self.limit)]
        return self.tools

    async def close(self) -> None:
        for tool in self.tools or ():
            await tool.close()
        self.tools = None


def tool_at(place: Path, mode: Mode, limit: int) -> PassagesTool:
    """Over an index, with the endpoint of DECISOR_EMBED where that made its vectors."""
    name = "" if mode == "bm25" else read_about(place / str(current(place))).embedder
    embedder = embedder_of(name) if name else None
    return PassagesTool(open_index(place, mode, embedder), limit, end=ending(embedder))


def corpus_index(corpus: Path, mode: Mode) -> Path:
    """The index of a corpus that a person named: itself, or one of its JSON lines in the cache.

    Raises:
        SetupError: there is none, or it cannot be read.
    """
    if not corpus.exists():
        raise SetupError(f"There is no corpus {corpus}. Make one: decisor index SOURCE --out {corpus}")
    return own_index(corpus.stem, corpus, lambda: read_passages(corpus), mode) if corpus.is_file() else corpus


def own_index(name: str, source: Path, passages: Callable[[], Iterable[Passage]], mode: Mode) -> Path:
    """The index in the cache. It is built where there is none, and updated where a file beside ``source`` changed. It
    holds vectors where ``mode`` needs them."""
    kind = "words" if mode == "bm25" else "vectors"
    place = cache_folder() / "corpora" / f"{name}-{kind}-{digest(str(source.resolve()))}"
    files = sorted(path for path in source.parent.iterdir() if path.is_file())
    state = digest("\n".join(f"{FORMAT} {path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))
    state_file = place.with_name(f"{place.name}.state")
    if not is_index(place) or not state_file.is_file() or state_file.read_text() != state:
        place.parent.mkdir(parents=True, exist_ok=True)
        build_index(passages(), place, embedder=None if mode == "bm25" else MiniLM.open())
        state_file.write_text(state)
    return place
