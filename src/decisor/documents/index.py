"""An index of passages on disk: build, update, open and search it.

    INDEX/CURRENT        the number of the current version, replaced by one rename
    INDEX/lock           held while an index is built; the system releases it when the builder dies
    INDEX/7/             a version: about.json, words/ (tantivy), documents.db, vectors (if dense)

A builder works in a new version, into which the files of the old one are linked, and switches CURRENT at the end. If
it is killed before, the old version stays current, and the next builder removes the remains.

    for each document: unchanged stamp -> keep; else delete its old passages, add its new ones
    delete the passages of documents that are gone;  commit;  switch

``StoreUpdater`` does this for any ``PassageStore``. An open ``DocumentIndex`` satisfies ``types.Retriever``.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from decisor.documents.formats import UnreadableDocument
from decisor.documents.passage import Embedder, Passage, Reranker
from decisor.documents.search import (
    TITLE_TIMES,
    PassageVectors,
    VectorBuilder,
    WordIndex,
    blend_scores,
    build_analyzer,
    build_index_entry,
    build_word_schema,
    fuse_ranks,
    import_tantivy,
)
from decisor.errors import SetupError
from decisor.system.storage import stamp_of
from decisor.types import Record, Value

if TYPE_CHECKING:
    import tantivy


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
    aside = path.with_name(f"{path.name}.new")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
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


class PassageStore(Protocol):
    """A store of numbered passages; those of one document have consecutive numbers."""

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        """Return stamp, first passage number and passage count of a stored document; None if unknown."""
        ...

    def put(self, number: int, passage: Passage) -> None: ...

    def drop(self, first: int, count: int) -> None: ...

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        """Record that a document has exactly these passages."""
        ...

    def forget(self, key: str) -> None: ...

    def documents(self) -> Iterable[tuple[str, int, int]]:
        """Return key, first number and count of the documents stored before."""
        ...

    def finish(self, next_number: int) -> IndexMetadata:
        """Write everything with the metadata of the index, and return the metadata."""
        ...


class StoreUpdater:
    """An update that brings a store to hold exactly the documents it takes. ``number``: of the next passage."""

    def __init__(self, store: PassageStore, number: int) -> None:
        self.store, self.number = store, number
        self.counts: Counter[str] = Counter()
        self.skipped: list[tuple[str, str]] = []
        self.stamps: dict[str, bytes] = {}

    def update(self, documents: Iterable[SourceDocument], progress: Progress) -> IndexChanges:
        """Take all documents, delete the others, and finish the store."""
        before = self.number
        for document in documents:
            self.take(document)
            progress(document.key, self.number - before)
        for key, first, count in self.store.documents():
            if key not in self.stamps:
                self.store.drop(first, count)
                self.store.forget(key)
                self.counts["deleted"] += 1
        about = self.store.finish(self.number)
        return replace(IndexChanges(**self.counts), passages=about.passages, skipped=tuple(self.skipped))  # type: ignore[arg-type]

    def take(self, document: SourceDocument) -> None:
        """Add a document, replace its older version, or leave it unchanged.

        A key that came before is skipped, and so is what cannot be read; what was indexed of that earlier goes.
        """
        key, stamp = document.key, document.stamp
        if key in self.stamps:
            if self.stamps[key] != stamp:
                self.skip(key, "another one before it has this name or id")
            return
        earlier = self.store.earlier(key)
        if earlier is not None and earlier[0] == stamp:
            self.counts["unchanged"] += 1
            self.stamps[key] = stamp
            return
        try:
            passages = tuple(document.cut())
        except UnreadableDocument as error:
            self.skip(key, str(error))
            return
        self.stamps[key] = stamp
        if earlier is not None:
            self.store.drop(earlier[1], earlier[2])
        for at, passage in enumerate(passages):
            self.store.put(self.number + at, passage)
        self.store.note(key, stamp, self.number, len(passages))
        self.number += len(passages)
        self.counts["added" if earlier is None else "updated"] += 1

    def skip(self, key: str, why: str) -> None:
        self.counts["unread"] += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append((key, why))


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
MOST_WAITING = 10_000
VECTORS, EMBEDDED = "vectors.usearch", "embedded.db"


def build_index(
    passages: Iterable[Passage], path: Path | str, language: str = "english", embedder: Embedder | None = None
) -> IndexChanges:
    """Build an index of the given passages; an index in ``path`` is updated to hold exactly these.

    Raises:
        SetupError: the place cannot be written, holds something else, or another builder is at work.
        OSError: the disk is full.
    """
    return update_index(wrap_passages(passages), Path(path), IndexMetadata(language=language), embedder)


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
        about = replace(about, next_number=before.next_number if before else 0)
        vectors = None
        if embedder is not None:
            older = path / str(old) / VECTORS if before else None
            vectors = VectorBuilder(embedder, path / EMBEDDED, older)
        try:
            with raise_disk_errors(), closing(LocalStore(folder, about, vectors)) as store:
                changes = StoreUpdater(store, about.next_number).update(documents, progress)
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
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
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

    def __init__(self, folder: Path, about: IndexMetadata, vectors: VectorBuilder | None = None) -> None:
        self.folder, self.about, self.vectors = folder, about, vectors
        index = import_tantivy().Index(build_word_schema(), str(folder / "words"))
        index.register_tokenizer("words", build_analyzer(about.language))
        self.index: tantivy.Index = index
        self.writer: tantivy.IndexWriter = index.writer(WRITER_BYTES, THREADS)
        self.rows = sqlite3.connect(folder / "documents.db", isolation_level=None)
        self.rows.executescript(
            # The file is a copy that a crash may spoil; ``switch_version`` flushes it before anybody reads it.
            "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
            "CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY, stamp BLOB, first INTEGER, count INTEGER)"
            " WITHOUT ROWID;"
            "BEGIN"
        )
        self.older = bool(self.rows.execute("SELECT count(*) FROM documents").fetchone()[0])
        self.changed: list[tuple[str, bytes, int, int]] = []

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        query = "SELECT stamp, first, count FROM documents WHERE key = ?"
        row: tuple[bytes, int, int] | None = self.rows.execute(query, (key,)).fetchone() if self.older else None
        return row

    def put(self, number: int, passage: Passage) -> None:
        self.writer.add_document(build_index_entry(number, passage))
        if self.vectors is not None:
            self.vectors.add(number, passage)

    def drop(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.writer.delete_documents_by_term("number", number)
        if self.vectors is not None:
            self.vectors.drop(range(first, first + count))

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        self.changed.append((key, stamp, first, count))
        if len(self.changed) >= MOST_WAITING:
            self.write()

    def write(self) -> None:
        self.rows.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", self.changed)
        self.changed.clear()

    def forget(self, key: str) -> None:
        self.rows.execute("DELETE FROM documents WHERE key = ?", (key,))

    def documents(self) -> list[tuple[str, int, int]]:
        self.write()
        return self.rows.execute("SELECT key, first, count FROM documents").fetchall() if self.older else []

    def finish(self, next_number: int) -> IndexMetadata:
        self.write()
        self.writer.commit()
        # Merges write files after the commit; the version must not be switched under them.
        self.writer.wait_merging_threads()
        documents, passages = self.rows.execute("SELECT count(*), coalesce(sum(count), 0) FROM documents").fetchone()
        self.rows.execute("COMMIT")
        width = self.vectors.finish(self.folder / VECTORS) if self.vectors is not None else 0
        about = replace(self.about, passages=passages, documents=documents, next_number=next_number, width=width)
        write_durably(self.folder / "about.json", json.dumps(asdict(about), indent=1))
        return about

    def close(self) -> None:
        self.rows.close()
        if self.vectors is not None:
            self.vectors.close()
        with suppress(RuntimeError):  # it has been committed
            self.writer.rollback()


Mode = Literal["bm25", "dense", "hybrid"]
Fusion = Literal["scores", "ranks"]
LOOKED_AT = 400
"""Passages that are read for the titles of an index."""
MODES = ("bm25", "dense", "hybrid")


@dataclass(frozen=True, eq=False)
class DocumentIndex:
    """An open index of passages. Open it with ``open_index`` or ``build_memory_index``."""

    words: WordIndex
    about: IndexMetadata
    mode: Mode = "bm25"
    vectors: PassageVectors | None = None
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    depth: int = 100
    """Number of hits of each ranking that are fused or reranked."""
    fusion: Fusion = "ranks"
    """How hybrid joins its rankings, by their ranks (reciprocal rank fusion) or by their scores, which puts a right
    passage first a little more often and finds a little less among ten (docs/measurements/documents.md)."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """Return the best passages, best first. By words alone the result is empty if no word of the query occurs.

        A record's id is its passage's, its source the document's; fields: title, section, position. The score is
        BM25's, the cosine, what they come to (hybrid), or the reranker's.
        """
        # A passage that both rankings have far down may come first when they are fused.
        wide = max(limit, self.depth) if self.reranker or self.mode == "hybrid" else limit
        if self.mode == "bm25":
            hits = self.words.search(query, wide)
        else:
            hits = await asyncio.to_thread(self._by_meaning, query, wide)
        if self.reranker is None:
            return tuple(build_passage_record(self.words.read(address), score) for address, score in hits[:limit])
        records = [build_passage_record(self.words.read(address), score) for address, score in hits[:wide]]
        return (await rerank_records(self.reranker, query, records))[:limit]

    def _by_meaning(self, query: str, wide: int) -> list[tuple[tantivy.DocAddress, float]]:
        """Search by vectors, and in hybrid mode fuse both rankings."""
        assert self.embedder is not None and self.vectors is not None
        vector = self.embedder.embed([query])[0]
        near = self.vectors.search(vector, wide)
        if self.mode == "hybrid":
            hits = self.words.search(query, wide)
            by_words = dict(zip(self.words.numbers([at for at, _ in hits]), (score for _, score in hits), strict=True))
            if self.fusion == "ranks":
                near = fuse_ranks(list(by_words), [number for number, _ in near])
            else:
                there = dict(near)
                # A passage found by its words alone has a cosine too: without it it would count as unlike the query.
                more = self.vectors.cosines(vector, [number for number in by_words if number not in there])
                near = blend_scores(by_words, there | dict(more))
        places = self.words.addresses([number for number, _ in near[:wide]])
        return [(places[number], score) for number, score in near if number in places]

    def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """Return different titles of documents, and whether these are all.

        A large index is sampled at evenly spread passages.
        """
        last = max(self.about.next_number, len(self))
        step = max(1, last // LOOKED_AT)
        places = self.words.addresses(list(range(0, last + 1, step)))
        return sample_titles((self.words.read(places[number]).title for number in sorted(places)), step == 1, most)

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.words)


def sample_titles(titles: Iterable[str], whole: bool, most: int) -> tuple[tuple[str, ...], bool]:
    """Return at most ``most`` different titles, and whether these are all. ``whole``: True if no passage was left out.

    >>> sample_titles(["Genua", "", "Genua", "Oslo", "Rome"], True, 2)
    (('Genua', 'Rome'), False)
    """
    names = [name for name in dict.fromkeys(title.strip() for title in titles) if name]
    sample = names[:: max(1, -(-len(names) // most))]
    return tuple(sample), whole and len(sample) == len(names)


async def rerank_records(reranker: Reranker, query: str, records: Sequence[Record]) -> tuple[Record, ...]:
    """Sort records by the reranker's scores, best first."""
    scores = await reranker.score(query, records)
    scored = sorted(zip(records, scores, strict=True), key=lambda pair: -pair[1])
    return tuple(replace(one, score=float(score)) for one, score in scored)


def build_passage_record(passage: Passage, score: float) -> Record:
    fields: dict[str, Value] = {"title": passage.title} if passage.title else {}
    if passage.section:
        fields["section"] = passage.section
    if passage.position:
        fields["position"] = passage.position
    source = passage.id.rpartition("#")[0] if passage.position else passage.id
    return Record(passage.id, fields, passage.text, source, float(f"{score:.6g}"))


def open_index(
    path: Path | str, mode: Mode = "bm25", embedder: Embedder | None = None, reranker: Reranker | None = None
) -> DocumentIndex:
    """Open an index by memory-mapping, which takes milliseconds at any size.

    ``embedder``: the one that built the index; MiniLM where that was the one and none is given.

    Raises:
        SetupError: there is no index, it is damaged, or it holds no vectors of ``embedder`` for ``mode``.
    """
    path = Path(path)
    if mode not in MODES:
        raise SetupError(f"There is no mode {mode!r}; there is {', '.join(MODES)}.")
    if not is_index(path):
        raise SetupError(f"There is no index in {path}: make one with decisor index SOURCE --out {path}.")
    number = read_current_version(path)
    while True:
        folder = path / str(number)
        try:
            about = read_index_metadata(folder)
            words = WordIndex.open(folder / "words", about.language)
            has_vectors = mode != "bm25" and about.embedder
            vectors = PassageVectors.open(folder / VECTORS) if has_vectors else None
            break
        except SetupError:  # a builder may have removed this version since its number was read
            if (newer := read_current_version(path)) == number:
                raise
            number = newer
    if mode != "bm25":
        embedder = choose_index_embedder(path, about, embedder)
    return DocumentIndex(words, about, mode, vectors, embedder, reranker)


def choose_index_embedder(place: object, about: IndexMetadata, embedder: Embedder | None) -> Embedder:
    """Choose the embedder that made the vectors of an index: the given one or MiniLM.

    Raise SetupError if the index has no vectors or another embedder made them.
    """
    from decisor.documents.minilm import NAME, MiniLM

    if not about.embedder:
        raise SetupError(f"The index {place} holds no vectors: build it again with --dense.")
    if embedder is None and about.embedder == NAME:
        return MiniLM.open()
    if embedder is None:
        raise SetupError(
            f"The index was made by the embedder {about.embedder}: give it, with --embed {about.embedder}@URL."
        )
    if embedder.name != about.embedder:
        raise SetupError(f"The index {place} was made by the embedder {about.embedder}, not {embedder.name}.")
    return embedder


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
    return DocumentIndex(WordIndex.over(index, language), IndexMetadata(count, count, count, language))
