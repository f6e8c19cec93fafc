"""What becomes of each document: new ones are cut and indexed, changed ones again, the rest is kept.

for each document: unchanged stamp -> keep; else drop its old passages, put its new ones
drop the passages of documents that are gone
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from decisor.cache import stamp_of
from decisor.tools.documents.index_files import About
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.text_formats import Unreadable

MOST_SKIPPED = 1_000

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


def each_alone(passages: Iterable[Passage]) -> Iterator[Document]:
    """Each passage as a document by itself."""
    for one in passages:
        yield Document(one.id, stamp_of(one.title, one.section, one.text), lambda one=one: (one,))  # type: ignore[misc]


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

    @property
    def any(self) -> bool:
        return bool(self.added or self.updated or self.deleted)


class Store(Protocol):
    """Where passages lie: each under a number of its own, those of a document side by side."""

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        """Of a document that is in the store: its stamp, the number of its first passage, how many they are."""
        ...

    def put(self, number: int, passage: Passage) -> None: ...

    def drop(self, first: int, count: int) -> None: ...

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        """The document has these passages, and no others."""
        ...

    def forget(self, key: str) -> None: ...

    def documents(self) -> Iterable[tuple[str, int, int]]:
        """Key, first number and count of those that were there before."""
        ...


class Updater:
    """Brings a store to hold just the documents that it takes. ``number`` is that of the next passage."""

    def __init__(self, store: Store, number: int) -> None:
        self.store, self.number = store, number
        self.added = self.updated = self.deleted = self.unchanged = self.unread = 0
        self.skipped: list[tuple[str, str]] = []
        self.stamps: dict[str, bytes] = {}

    def take(self, one: Document) -> None:
        """Add it, put it in the place of its older self, or leave it as it is.

        A key that came before is skipped, and so is what cannot be read; what was indexed of that earlier goes.
        """
        if one.key in self.stamps:
            if self.stamps[one.key] != one.stamp:
                self.skip(one.key, "another one before it has this name or id")
            return
        earlier = self.store.earlier(one.key)
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
            self.store.drop(earlier[1], earlier[2])
        for at, passage in enumerate(passages):
            self.store.put(self.number + at, passage)
        self.store.note(one.key, one.stamp, self.number, len(passages))
        self.number += len(passages)
        self.updated += earlier is not None
        self.added += earlier is None

    def skip(self, key: str, why: str) -> None:
        self.unread += 1
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append((key, why))

    def drop_rest(self) -> None:
        """What is in the store and was not taken."""
        for key, first, count in self.store.documents():
            if key not in self.stamps:
                self.store.drop(first, count)
                self.store.forget(key)
                self.deleted += 1

    def changes(self, about: About) -> Changes:
        return Changes(
            added=self.added, updated=self.updated, deleted=self.deleted, unchanged=self.unchanged,
            passages=about.passages, unread=self.unread, skipped=tuple(self.skipped),
        )  # fmt: skip


def take_all(updater: Updater, documents: Iterable[Document], progress: Progress) -> None:
    """All of them, and then what is gone."""
    before = updater.number
    for one in documents:
        updater.take(one)
        progress(one.key, updater.number - before)
    updater.drop_rest()


def apart(before: About, about: About) -> str:
    """Why what is there cannot be updated; '' where it can."""
    settings = (
        ("language", before.language, about.language),
        ("embedder", before.embedder, about.embedder),
        ("words of a passage", before.words, about.words),
    )
    other = [f"{name} {was or 'none'}, now {now or 'none'}" for name, was, now in settings if was != now]
    return f"it had other settings ({'; '.join(other)})" if other else ""
