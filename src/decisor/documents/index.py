"""An index of passages on disk: build, update, open and search it.

    INDEX/CURRENT        the number of the current version, replaced by one rename
    INDEX/lock           held while an index is built; the system releases it when the builder dies
    INDEX/7/             a version: about.json, words/ (tantivy), documents.db, vectors (if dense)

A builder works in a new version, into which the files of the old one are linked, and switches CURRENT at the end. If
it is killed before, the old version stays current, and the next builder removes the remains.

    for each document: unchanged stamp -> keep; else delete its old passages, add its new ones
    delete the passages of documents that are gone;  commit;  switch

``update_store`` does this for any ``PassageStore``. An open ``DocumentIndex`` reads any ``PassageSource``: an index on
disk, in memory, or in PostgreSQL (``postgres``).
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from decisor.documents.formats import UnreadableDocument
from decisor.documents.passage import Embedder, Passage, Reranker
from decisor.documents.search import (
    BATCH,
    TITLE_TIMES,
    LocalPassages,
    Ranked,
    VectorMemory,
    build_analyzer,
    build_index_entry,
    build_word_schema,
    create_neighbour_index,
    fuse_ranks,
    import_tantivy,
    import_usearch,
)
from decisor.errors import SetupError
from decisor.system.storage import stamp_of, write_private
from decisor.types import Record, Value

if TYPE_CHECKING:
    import numpy as np
    import tantivy
    from numpy.typing import NDArray
    from usearch.index import Index as NeighbourIndex


FORMAT = 2
OURS = ("lock", "embedded.db", "embedded.db-journal", "CURRENT.new")


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """The facts about an index."""

    passages: int = 0
    documents: int = 0
    next_number: int = 0
    """Number of the next passage."""
    language: str = "english"
    embedder: str = ""
    """Name of the model; '' without vectors."""
    width: int = 0
    """Dimension of the vectors."""
    words: int = 100
    """Length of a passage."""
    terms: int = 0
    """Number of terms of all passages; 0 on disk, where tantivy counts them."""
    format: int = FORMAT


def is_index(path: Path) -> bool:
    return (path / "CURRENT").is_file()


def read_current_version(path: Path) -> int:
    """Read the number of the current version of an index, 0 if none exists."""
    try:
        return int((path / "CURRENT").read_text("ascii"))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise SetupError(f"The index in {path} is damaged: remove {path} and build it again.") from error


def read_index_metadata(folder: Path) -> IndexMetadata:
    """Read the metadata of an index. Raise SetupError if it is damaged or has another format."""
    try:
        about = IndexMetadata(**json.loads((folder / "about.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(f"The index in {folder} cannot be read: {error}. Build it again.") from error
    if about.format != FORMAT:
        raise SetupError(f"The index in {folder} has format {about.format}, not {FORMAT}: build it again.")
    return about


def write_durably(path: Path, text: str) -> None:
    """Write a file so that after a crash it has either the old or the new content."""
    write_private(path, text)
    # The rename itself is on the disk when its folder is.
    sync_to_disk(path.parent)


def sync_to_disk(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def lock_index(path: Path) -> Iterator[None]:
    """Lock an index for one builder. Raise SetupError if another one is at work or the folder is no index."""
    import fcntl

    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {"a file"} if path.exists() else set()
    # The remains of a killed first build are no reason to refuse.
    is_free = not names or ("lock" in names and all(name.isdigit() or name in OURS for name in names))
    if not is_free and not is_index(path):
        raise SetupError(f"{path} holds something that is no index: name another place for it with --out.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = (path / "lock").open("a")
    except OSError as error:
        raise SetupError(f"No index can be made in {path}: {error.strerror}.") from error
    with file:
        try:
            # flock ends with its process, so a killed builder leaves no lock behind.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SetupError(f"{path} is being built by another process: wait for it to end.") from error
        yield


def remove_old_versions(path: Path, keep: int) -> None:
    """Remove every version but one. Readers that have an old one open can continue."""
    for entry in path.iterdir():
        if entry.is_dir() and entry.name.isdigit() and int(entry.name) != keep:
            shutil.rmtree(entry, ignore_errors=True)


def switch_version(path: Path, number: int) -> None:
    """Make a version the current one, after all its files are on disk."""
    for folder, _, names in os.walk(path / str(number)):
        for name in (*names, ""):
            sync_to_disk(Path(folder) / name)
    write_durably(path / "CURRENT", f"{number}\n")


MOST_SKIPPED = 1_000

Progress: TypeAlias = Callable[[str, int], None]
"""Hears of each document that was looked at: its key, and how many passages were indexed so far."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A unit that is added, changed and deleted as a whole: a file, a line of JSON, a row."""

    key: str
    """Its name for good."""
    stamp: bytes
    """Digest of its content."""
    cut: Callable[[], Iterable[Passage]]
    """Returns its passages; called only if the document is new or changed."""


def wrap_passages(passages: Iterable[Passage]) -> Iterator[SourceDocument]:
    """Yield each passage as a document of its own."""
    for passage in passages:
        stamp = stamp_of(passage.title, passage.section, passage.text)
        yield SourceDocument(passage.id, stamp, partial(tuple, (passage,)))


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """The numbers of documents added, updated, deleted and so on by an update."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    passages: int = 0
    """Number in the index now."""
    unread: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    """The first thousand of the unread documents, each with the reason."""
    anew: str = ""
    """Reason why nothing of the old index could be kept."""

    @property
    def any(self) -> bool:
        return bool(self.added or self.updated or self.deleted)


class StoredDocument(NamedTuple):
    """A document of an index: the stamp of its content, and the numbers of its passages, which are consecutive."""

    stamp: bytes
    first: int
    size: int
    """Number of its passages."""

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.size)


class PassageStore(Protocol):
    """A store of numbered passages and of the documents that they come from."""

    def documents(self) -> Mapping[str, StoredDocument]:
        """Return the documents stored before, by key."""
        ...

    def put(self, number: int, passage: Passage) -> None: ...

    def drop(self, numbers: range) -> None: ...

    def finish(self, changed: Mapping[str, StoredDocument | None], next_number: int) -> IndexMetadata:
        """Write everything with the metadata of the index, and return the metadata. changed: None for deleted ones."""
        ...


def update_store(
    store: PassageStore, next_number: int, documents: Iterable[SourceDocument], progress: Progress
) -> IndexChanges:
    """Bring a store to hold exactly the given documents.

    A key that came before is skipped, and so is an unreadable one, whose earlier passages are removed.
    """
    stored, first_number, number = store.documents(), next_number, next_number
    stamps: dict[str, bytes] = {}
    changed: dict[str, StoredDocument | None] = {}
    counts, skipped = Counter[str](), list[tuple[str, str]]()
    for key, stamp, cut in ((document.key, document.stamp, document.cut) for document in documents):
        earlier = stored.get(key)
        try:
            if stamps.get(key, stamp) != stamp:
                raise UnreadableDocument("another one before it has this name or id")
            if key not in stamps and earlier is not None and earlier.stamp == stamp:
                counts["unchanged"] += 1
            elif key not in stamps:
                passages = tuple(cut())
                if earlier is not None:
                    store.drop(earlier.numbers)
                for at, passage in enumerate(passages, number):
                    store.put(at, passage)
                changed[key] = StoredDocument(stamp, number, len(passages))
                number += len(passages)
                counts["added" if earlier is None else "updated"] += 1
            stamps[key] = stamp
        except UnreadableDocument as error:
            counts["unread"] += 1
            if len(skipped) < MOST_SKIPPED:
                skipped.append((key, str(error)))
        progress(key, number - first_number)
    for key, earlier in stored.items():
        if key not in stamps:
            store.drop(earlier.numbers)
            changed[key] = None
            counts["deleted"] += 1
    about = store.finish(changed, number)
    return replace(IndexChanges(**counts), passages=about.passages, skipped=tuple(skipped))  # type: ignore[arg-type]


def explain_rebuild(before: IndexMetadata, about: IndexMetadata) -> str:
    """Explain why an existing index cannot be updated; empty if it can."""
    settings = (
        ("language", before.language, about.language),
        ("embedder", before.embedder, about.embedder),
        ("words of a passage", before.words, about.words),
    )
    changed = [f"{name} {was or 'none'}, now {now or 'none'}" for name, was, now in settings if was != now]
    return f"it had other settings ({'; '.join(changed)})" if changed else ""


WRITER_BYTES = 200_000_000
THREADS = 2
DEPTH = 100
"""Number of hits of each ranking that are fused or reranked."""
VECTORS, EMBEDDED = "vectors.usearch", "embedded.db"


def build_index(passages: Iterable[Passage], path: Path | str, embedder: Embedder | None = None) -> IndexChanges:
    """Build an index of the given passages; an index in ``path`` is updated to hold exactly these.

    Raises:
        SetupError: the place cannot be written, holds something else, or another builder is at work.
        OSError: the disk is full.
    """
    return update_index(wrap_passages(passages), Path(path), IndexMetadata(), embedder)


def update_index(
    documents: Iterable[SourceDocument],
    path: Path,
    about: IndexMetadata,
    embedder: Embedder | None = None,
    fresh: bool = False,
    progress: Progress = lambda key, passages: None,
    may_be_empty: bool = True,
) -> IndexChanges:
    """Update an index to hold exactly the given documents.

    ``fresh``: rebuild everything, as also happens if the language, the embedder or the length of passages changed.
    ``may_be_empty``: if False, a source without passages leaves the index unchanged.
    """
    about = replace(about, embedder=embedder.name if embedder else "")
    with lock_index(path):
        old = read_current_version(path)
        # 1. Remains of a killed build go; the current version stays for its readers.
        remove_old_versions(path, old)
        before, anew = _check_updatable(path / str(old), about) if old and not fresh else (None, "")
        folder = path / str(old + 1)
        (folder / "words").mkdir(parents=True)
        # 2. The new version begins with the files of the old one.
        if before is not None:
            _link_files(path / str(old) / "words", folder / "words")
            shutil.copyfile(path / str(old) / "documents.db", folder / "documents.db")
            about = replace(about, next_number=before.next_number)
        older = path / str(old) / VECTORS if before and embedder is not None else None
        memory = VectorMemory(path / EMBEDDED, embedder) if embedder is not None else None
        try:
            with raise_disk_errors(), closing(LocalStore(folder, about, memory, older)) as store:
                changes = update_store(store, about.next_number, documents, progress)
            # A source that is empty by mistake must not empty the index.
            if not changes.passages and not may_be_empty:
                return IndexChanges(unread=changes.unread, skipped=changes.skipped)
            # 3. Unchanged documents need no new version.
            if before is None or changes.any:
                switch_version(path, old + 1)
            (path / EMBEDDED).unlink(missing_ok=True)
        finally:
            remove_old_versions(path, read_current_version(path))
        return replace(changes, anew=anew)


OS_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def raise_disk_errors() -> Iterator[None]:
    """Raise OSError if the disk is full or does not answer, whichever library noticed it."""
    try:
        yield
    except ValueError as error:
        number = OS_ERROR.search(str(error))
        # A thread of tantivy that could not write may end before its error comes here.
        if number is None and "index writer was killed" not in str(error):
            raise
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code)) from error
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _check_updatable(folder: Path, about: IndexMetadata) -> tuple[IndexMetadata | None, str]:
    """Return the metadata of the old index, or None and the reason why it cannot be updated."""
    try:
        before = read_index_metadata(folder)
        import_tantivy().Index.open(str(folder / "words"))
    except (SetupError, ValueError, OSError):
        return None, "it was damaged, or made by another version"
    why = explain_rebuild(before, about)
    return (None, why) if why else (before, "")


def _link_files(source: Path, target: Path) -> None:
    """Link files instead of copying them. Tantivy never changes a written file: it writes new ones and renames."""
    for file in source.iterdir():
        if file.name.startswith(".tantivy") and file.suffix == ".lock":
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copyfile(file, target / file.name)


class LocalStore:
    """The folder of an index version while it is built. Satisfies the protocol ``PassageStore``."""

    def __init__(
        self, folder: Path, about: IndexMetadata, memory: VectorMemory | None = None, older: Path | None = None
    ) -> None:
        self.folder, self.about, self.memory = folder, about, memory
        self.waiting: list[tuple[int, Passage]] = []
        self.vectors: NeighbourIndex | None = import_usearch().Index.restore(str(older)) if older else None
        self.index: tantivy.Index = import_tantivy().Index(build_word_schema(), str(folder / "words"))
        self.index.register_tokenizer("words", build_analyzer(about.language))
        self.writer: tantivy.IndexWriter = self.index.writer(WRITER_BYTES, THREADS)
        self.rows = sqlite3.connect(folder / "documents.db", isolation_level=None)
        self.rows.executescript(
            # The file is a copy that a crash may spoil; ``switch_version`` flushes it before anybody reads it.
            "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
            "CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY, stamp BLOB, first INTEGER, count INTEGER)"
            " WITHOUT ROWID;"
        )

    def documents(self) -> dict[str, StoredDocument]:
        rows = self.rows.execute("SELECT key, stamp, first, count FROM documents")
        return {key: StoredDocument(*values) for key, *values in rows}

    def put(self, number: int, passage: Passage) -> None:
        self.writer.add_document(build_index_entry(number, passage))
        if self.memory is not None:
            self.waiting.append((number, passage))
            if len(self.waiting) >= BATCH:
                self.embed_waiting(self.memory)

    def embed_waiting(self, memory: VectorMemory) -> None:
        import numpy as np

        if self.waiting:
            numbers, passages = zip(*self.waiting, strict=True)
            # An index without passages knows no width yet.
            width = self.vectors.ndim if self.vectors is not None and len(self.vectors) else 0
            vectors = memory.embed(passages, width)
            if self.vectors is None or not width:
                self.vectors = create_neighbour_index(vectors.shape[1])
            self.vectors.add(np.array(numbers, np.uint64), vectors)
            self.waiting.clear()

    def drop(self, numbers: range) -> None:
        import numpy as np

        for number in numbers:
            self.writer.delete_documents_by_term("number", number)
        if self.vectors is not None and numbers:
            self.vectors.remove(np.array(numbers, np.uint64))

    def finish(self, changed: Mapping[str, StoredDocument | None], next_number: int) -> IndexMetadata:
        self.writer.commit()
        # Merges write files after the commit; the version must not be switched under them.
        self.writer.wait_merging_threads()
        self.rows.execute("BEGIN")
        self.rows.executemany("DELETE FROM documents WHERE key = ?", ((key,) for key in changed))
        rows = ((key, *document) for key, document in changed.items() if document is not None)
        self.rows.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
        documents, passages = self.rows.execute("SELECT count(*), coalesce(sum(count), 0) FROM documents").fetchone()
        self.rows.execute("COMMIT")
        about = replace(self.about, passages=passages, documents=documents, next_number=next_number)
        if self.memory is not None:
            self.embed_waiting(self.memory)
            vectors = self.vectors if self.vectors is not None else create_neighbour_index(1)
            vectors.save(str(self.folder / VECTORS))
            about = replace(about, width=vectors.ndim)
        write_durably(self.folder / "about.json", json.dumps(asdict(about), indent=1))
        return about

    def close(self) -> None:
        self.rows.close()
        if self.memory is not None:
            self.memory.close()
        with suppress(RuntimeError):  # it has been committed
            self.writer.rollback()


Mode = Literal["bm25", "dense", "hybrid"]
LOOKED_AT = 400
"""Passages that are read for the titles of an index."""
MODES = ("bm25", "dense", "hybrid")


class PassageSource(Protocol):
    """The passages of an index, found by words or by vectors. Rankings are best first, equal ones by number."""

    async def by_words(self, text: str, limit: int) -> Ranked:
        """Return the passages with terms of a text, with their scores by BM25."""
        ...

    async def by_meaning(self, vector: NDArray[np.float32], limit: int) -> Ranked:
        """Return the passages whose vectors are nearest, with their cosines."""
        ...

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Passage]:
        """Return passages by number; deleted ones are missing."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, eq=False)
class DocumentIndex:
    """An open index of passages. Open it with ``open_index``, ``open_table_index`` or ``build_memory_index``.

    Satisfies ``types.Retriever``.
    """

    source: PassageSource
    about: IndexMetadata
    mode: Mode = "bm25"
    embedder: Embedder | None = None
    reranker: Reranker | None = None

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """Return the best passages, best first. By words alone the result is empty if no word of the query occurs.

        A record's id is its passage's, its source the document's; fields: title, section, position. The score is
        BM25's, the cosine, their fusion (hybrid), or the reranker's. A server may raise ToolError.
        """
        # A passage that both rankings have far down may come first when they are fused.
        wide = max(limit, DEPTH) if self.reranker or self.mode == "hybrid" else limit
        ranked = await self.rank(query, wide)
        ranked = ranked[: wide if self.reranker else limit]
        passages = await self.source.read([number for number, _ in ranked])
        records = [build_passage_record(passages[at], score) for at, score in ranked if at in passages]
        if self.reranker is not None:
            scores = zip(records, await self.reranker.score(query, records), strict=True)
            records = [
                replace(record, score=float(score)) for record, score in sorted(scores, key=lambda pair: -pair[1])
            ]
        return tuple(records[:limit])

    async def rank(self, query: str, wide: int) -> Ranked:
        """Rank passages by words or by meaning, or fuse both rankings."""
        words = await self.source.by_words(query, wide) if self.mode != "dense" else []
        if self.mode == "bm25":
            return words
        assert self.embedder is not None
        vector = (await asyncio.to_thread(self.embedder.embed, [query]))[0]
        near = await self.source.by_meaning(vector, wide)
        if self.mode == "dense":
            return near
        return fuse_ranks([number for number, _ in words], [number for number, _ in near])

    async def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """Return different titles of documents, and whether these are all.

        A large index is sampled at evenly spread passages.
        """
        step = max(1, self.about.next_number // LOOKED_AT)
        passages = await self.source.read(range(0, self.about.next_number + 1, step))
        return sample_titles((passages[number].title for number in sorted(passages)), step == 1, most)

    async def close(self) -> None:
        await self.source.close()

    def __len__(self) -> int:
        """Return the number of passages."""
        return self.about.passages


def sample_titles(titles: Iterable[str], whole: bool, most: int) -> tuple[tuple[str, ...], bool]:
    """Return at most ``most`` different titles, and whether these are all. ``whole``: True if no passage was left out.

    >>> sample_titles(["Genua", "", "Genua", "Oslo", "Rome"], True, 2)
    (('Genua', 'Rome'), False)
    """
    names = [name for name in dict.fromkeys(title.strip() for title in titles) if name]
    sample = names[:: max(1, -(-len(names) // most))]
    return tuple(sample), whole and len(sample) == len(names)


def build_passage_record(passage: Passage, score: float) -> Record:
    fields: dict[str, Value] = {"title": passage.title} if passage.title else {}
    if passage.section:
        fields["section"] = passage.section
    if passage.position:
        fields["position"] = passage.position
    source = passage.id.rpartition("#")[0] if passage.position else passage.id
    return Record(passage.id, fields, passage.text, source, float(f"{score:.6g}"))


FindEmbedder: TypeAlias = Callable[[str], Embedder | None]
"""Returns the embedder of a name, None if it is not known."""


def open_index(
    path: Path | str,
    mode: Mode | None = "bm25",
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    by_name: FindEmbedder = lambda name: None,
) -> DocumentIndex:
    """Open an index by memory-mapping, which takes milliseconds at any size.

    ``mode``: None means hybrid if the index has vectors, else bm25. ``embedder``: the one that built the index; if none
    is given, the one that ``by_name`` finds, or MiniLM where that was the one.

    Raises:
        SetupError: there is no index, it is damaged, or it holds no vectors of ``embedder`` for ``mode``.
    """
    path = Path(path)
    if mode not in (None, *MODES):
        raise SetupError(f"There is no mode {mode!r}; there is {', '.join(MODES)}.")
    if not is_index(path):
        raise SetupError(f"There is no index in {path}: make one with decisor index SOURCE --out {path}.")
    number = read_current_version(path)
    while True:
        folder = path / str(number)
        try:
            about = read_index_metadata(folder)
            vectors = folder / VECTORS if mode != "bm25" and about.embedder else None
            source = LocalPassages.open(folder / "words", about.language, vectors)
            break
        except SetupError:  # a builder may have removed this version since its number was read
            if (newer := read_current_version(path)) == number:
                raise
            number = newer
    chosen, embedder = choose_index_mode(path, about, mode, embedder, by_name)
    return DocumentIndex(source, about, chosen, embedder, reranker)


def choose_index_mode(
    place: object, about: IndexMetadata, mode: Mode | None, embedder: Embedder | None, by_name: FindEmbedder
) -> tuple[Mode, Embedder | None]:
    """Choose the mode of an index, and the embedder that made its vectors.

    Raise SetupError if the index has no vectors or another embedder made them.
    """
    from decisor.documents.minilm import NAME, MiniLM

    mode = mode or ("hybrid" if about.embedder else "bm25")
    if mode == "bm25":
        return mode, embedder
    if not about.embedder:
        raise SetupError(f"The index {place} holds no vectors: build it again with --dense.")
    embedder = embedder or by_name(about.embedder)
    if embedder is None and about.embedder == NAME:
        return mode, MiniLM.open()
    if embedder is None:
        raise SetupError(
            f"The index was made by the embedder {about.embedder}: give it, with --embed {about.embedder}@URL."
        )
    if embedder.name != about.embedder:
        raise SetupError(f"The index {place} was made by the embedder {about.embedder}, not {embedder.name}.")
    return mode, embedder


def build_memory_index(
    passages: Iterable[Passage], language: str = "english", title_times: int = TITLE_TIMES
) -> DocumentIndex:
    """Build an index in memory, for a few thousand passages. ``title_times``: weight of a term of the title."""
    index = import_tantivy().Index(build_word_schema())
    index.register_tokenizer("words", build_analyzer(language))
    writer = index.writer(50_000_000, 1)
    count = 0
    for number, passage in enumerate(passages):
        writer.add_document(build_index_entry(number, passage, title_times))
        count += 1
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return DocumentIndex(LocalPassages.of_index(index, language), IndexMetadata(count, count, count, language))
