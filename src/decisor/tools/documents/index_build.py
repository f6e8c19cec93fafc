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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from decisor.errors import SetupError
from decisor.tools.documents.bm25 import analyzer, document, engine, schema
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.index_files import About, clean, current, locked, read_about, switch, write_about
from decisor.tools.documents.passage import Passage, stamp_of
from decisor.tools.documents.text_formats import Unreadable
from decisor.tools.documents.vectors import VectorBuilder

if TYPE_CHECKING:
    import tantivy

WRITER_BYTES = 200_000_000
THREADS = 2
MOST_WAITING = 10_000
MOST_SKIPPED = 1_000
VECTORS, EMBEDDED = "vectors.usearch", "embedded.part"

Progress: TypeAlias = Callable[[str, int], None]
"""Hears of each document that was looked at: its key, and how many passages were indexed so far."""


@dataclass(frozen=True, slots=True)
class Document:
    """Something that is added, changed and deleted as one: a file, a line of JSON, a row.

    ``key`` names it for good; ``stamp`` is a digest of its content; ``cut`` gives its passages.
    """

    key: str
    stamp: bytes
    cut: Callable[[], Iterable[Passage]]


@dataclass(frozen=True, slots=True)
class Changes:
    """Documents by what became of them, and how many passages there are now. ``skipped`` names the first
    thousand of the ``unread``, each with why. ``anew``: why nothing of an index that was there could be kept."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    passages: int = 0
    unread: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    anew: str = ""


def build_index(
    passages: Iterable[Passage], path: Path | str, language: str = "english", embedder: Embedder | None = None
) -> Changes:
    """An index of passages as they are; what was in ``path`` is updated to hold just these.

    Raises:
        SetupError: the place cannot be written, holds something else, or another builder is at work.
        OSError: the disk is full.
    """
    documents = (
        Document(one.id, stamp_of(one.title, one.section, one.text), lambda one=one: (one,))  # type: ignore[misc]
        for one in passages
    )
    return update(documents, Path(path), About(language=language), embedder)


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
            with plain_faults(), closing(Builder(folder, about, vectors)) as builder:
                for one in documents:
                    builder.take(one)
                    progress(one.key, builder.number - about.next_number)
                changes = builder.finish()
            if not changes.passages and not may_be_empty:
                return Changes(unread=changes.unread, skipped=changes.skipped)
            if before is None or changes.added or changes.updated or changes.deleted:
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
    settings = (
        ("language", before.language, about.language),
        ("embedder", before.embedder, about.embedder),
        ("words of a passage", before.words, about.words),
    )
    apart = [f"{name} {was or 'none'}, now {now or 'none'}" for name, was, now in settings if was != now]
    return (None, f"it had other settings ({'; '.join(apart)})") if apart else (before, "")


def _link(source: Path, target: Path) -> None:
    """Tantivy never changes a file it has written: it writes new ones and renames."""
    for file in source.iterdir():
        if file.name.startswith(".tantivy") and file.suffix == ".lock":
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copyfile(file, target / file.name)


class Builder:
    """One build, in its generation's folder."""

    def __init__(self, folder: Path, about: About, vectors: VectorBuilder | None = None) -> None:
        self.folder, self.about, self.number, self.vectors = folder, about, about.next_number, vectors
        self.added = self.updated = self.unchanged = self.unread = 0
        self.skipped: list[tuple[str, str]] = []
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
        self.stamps: dict[str, bytes] = {}
        self.changed: list[tuple[str, bytes, int, int]] = []

    def take(self, one: Document) -> None:
        """Add it, put it in the place of its older self, or leave it as it is.

        A key that came before is skipped, and so is what cannot be read; what was indexed of that earlier goes.
        """
        if one.key in self.stamps:
            if self.stamps[one.key] != one.stamp:
                self.skip(one.key, "another one before it has this name or id")
            return
        earlier: tuple[bytes, int, int] | None = None
        if self.older:
            query = "SELECT stamp, first, count FROM documents WHERE key = ?"
            earlier = self.rows.execute(query, (one.key,)).fetchone()
        if earlier is not None and earlier[0] == one.stamp:
            self.unchanged += 1
            self.stamps[one.key] = one.stamp
            return
        try:
            passages = tuple(one.cut())
        except Unreadable as error:
            self.skip(one.key, str(error))
            return
        self.stamps[one.key] = one.stamp
        if earlier is not None:
            self.drop(earlier[1], earlier[2])
        for at, passage in enumerate(passages):
            self.writer.add_document(document(self.number + at, passage))
            if self.vectors is not None:
                self.vectors.add(self.number + at, passage)
        self.changed.append((one.key, one.stamp, self.number, len(passages)))
        if len(self.changed) >= MOST_WAITING:
            self.write()
        self.number += len(passages)
        self.updated += earlier is not None
        self.added += earlier is None

    def write(self) -> None:
        self.rows.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", self.changed)
        self.changed.clear()

    def skip(self, key: str, why: str) -> None:
        self.unread += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append((key, why))

    def drop(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.writer.delete_documents_by_term("number", number)
        if self.vectors is not None:
            self.vectors.drop(range(first, first + count))

    def gone(self) -> Iterator[tuple[str, int, int]]:
        """What is in the index and was not seen."""
        self.write()
        if self.older:
            rows = self.rows.execute("SELECT key, first, count FROM documents").fetchall()
            yield from (row for row in rows if row[0] not in self.stamps)

    def finish(self) -> Changes:
        deleted = 0
        for key, first, count in self.gone():
            self.drop(first, count)
            self.rows.execute("DELETE FROM documents WHERE key = ?", (key,))
            deleted += 1
        self.writer.commit()
        self.writer.wait_merging_threads()
        documents, passages = self.rows.execute("SELECT count(*), coalesce(sum(count), 0) FROM documents").fetchone()
        self.rows.execute("COMMIT")
        width = self.vectors.finish(self.folder / VECTORS) if self.vectors is not None else 0
        about = replace(self.about, passages=passages, documents=documents, next_number=self.number, width=width)
        write_about(self.folder, about)
        return Changes(
            added=self.added, updated=self.updated, deleted=deleted, unchanged=self.unchanged, passages=passages,
            unread=self.unread, skipped=tuple(self.skipped),
        )  # fmt: skip

    def close(self) -> None:
        self.rows.close()
        if self.vectors is not None:
            self.vectors.close()
        with suppress(RuntimeError):  # it has been committed
            self.writer.rollback()
