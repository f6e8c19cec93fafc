"""Building and updating an index from documents: what changed is cut and indexed again, the rest is kept.

old, new <- the generation that counts, an empty one beside it (files of the old one are linked, not copied)
for each document: unchanged stamp -> keep; else delete its old passages, add its new ones
delete the passages of documents that are gone;  commit;  switch
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from decisor.errors import SetupError
from decisor.tools.documents.bm25 import analyzer, document, engine, schema
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.index_files import About, clean, current, locked, read_about, switch, write_about
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.update import Changes, Document, Progress, Updater, apart, each_alone, take_all
from decisor.tools.documents.vectors import VectorBuilder

if TYPE_CHECKING:
    import tantivy

WRITER_BYTES = 200_000_000
THREADS = 2
MOST_WAITING = 10_000
VECTORS, EMBEDDED = "vectors.usearch", "embedded.db"


def build_index(
    passages: Iterable[Passage], path: Path | str, language: str = "english", embedder: Embedder | None = None
) -> Changes:
    """An index of passages as they are; what was in ``path`` is updated to hold just these.

    Raises:
        SetupError: the place cannot be written, holds something else, or another builder is at work.
        OSError: the disk is full.
    """
    return update(each_alone(passages), Path(path), About(language=language), embedder)


def update(
    documents: Iterable[Document],
    path: Path,
    about: About,
    embedder: Embedder | None = None,
    fresh: bool = False,
    progress: Progress = lambda key, passages: None,
    may_be_empty: bool = True,
) -> Changes:
    """Make ``path`` hold just these documents. ``fresh``: whatever is there is built anew, as it is where the language,
    the embedder or the length of passages changed. Unless it ``may_be_empty``, no passages leave it as it was."""
    about = replace(about, embedder=embedder.name if embedder else "")
    with locked(path):
        old = current(path)
        clean(path, old)
        before, anew = _before(path / str(old), about) if old and not fresh else (None, "")
        folder = path / str(old + 1)
        (folder / "words").mkdir(parents=True)
        if before is not None:
            _link(path / str(old) / "words", folder / "words")
            shutil.copyfile(path / str(old) / "documents.db", folder / "documents.db")
        about = replace(about, next_number=before.next_number if before else 0)
        vectors = None
        if embedder is not None:
            older = path / str(old) / VECTORS if before else None
            vectors = VectorBuilder(embedder, path / EMBEDDED, older)
        try:
            with plain_faults(), closing(LocalStore(folder, about, vectors)) as store:
                updater = Updater(store, about.next_number)
                take_all(updater, documents, progress)
                changes = updater.changes(store.finish(updater.number))
            if not changes.passages and not may_be_empty:
                return Changes(unread=changes.unread, skipped=changes.skipped)
            if before is None or changes.any:
                switch(path, old + 1)
            (path / EMBEDDED).unlink(missing_ok=True)
        finally:
            clean(path, current(path))
        return replace(changes, anew=anew)


OS_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def plain_faults() -> Iterator[None]:
    """Raises OSError where the disk is full, or does not answer, whichever part of an index met it."""
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


def _before(folder: Path, about: About) -> tuple[About | None, str]:
    """What can be updated, or why it cannot."""
    try:
        before = read_about(folder)
        engine().Index.open(str(folder / "words"))
    except (SetupError, ValueError, OSError):
        return None, "it was damaged, or made by another version"
    why = apart(before, about)
    return (None, why) if why else (before, "")


def _link(source: Path, target: Path) -> None:
    """Tantivy never changes a file it has written: it writes new ones and renames."""
    for file in source.iterdir():
        if file.name.startswith(".tantivy") and file.suffix == ".lock":
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copyfile(file, target / file.name)


class LocalStore:
    """The folder of a generation, while it is built. Satisfies ``update.Store``."""

    def __init__(self, folder: Path, about: About, vectors: VectorBuilder | None = None) -> None:
        self.folder, self.about, self.vectors = folder, about, vectors
        index = engine().Index(schema(), str(folder / "words"))
        index.register_tokenizer("words", analyzer(about.language))
        self.index: tantivy.Index = index
        self.writer: tantivy.IndexWriter = index.writer(WRITER_BYTES, THREADS)
        self.rows = sqlite3.connect(folder / "documents.db", isolation_level=None)
        self.rows.executescript(
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
        self.writer.add_document(document(number, passage))
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

    def finish(self, next_number: int) -> About:
        """Everything is on disk, with what it is."""
        self.write()
        self.writer.commit()
        self.writer.wait_merging_threads()
        documents, passages = self.rows.execute("SELECT count(*), coalesce(sum(count), 0) FROM documents").fetchone()
        self.rows.execute("COMMIT")
        width = self.vectors.finish(self.folder / VECTORS) if self.vectors is not None else 0
        about = replace(self.about, passages=passages, documents=documents, next_number=next_number, width=width)
        write_about(self.folder, about)
        return about

    def close(self) -> None:
        self.rows.close()
        if self.vectors is not None:
            self.vectors.close()
        with suppress(RuntimeError):  # it has been committed
            self.writer.rollback()
