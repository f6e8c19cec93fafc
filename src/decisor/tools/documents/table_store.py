"""The tables of an index in PostgreSQL while they are written, in bulk (COPY)."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypeAlias

from decisor.tools.documents.bm25 import analyzer, indexed_text
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.index_files import About
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.table_place import Tables
from decisor.tools.documents.table_vectors import VectorTable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[object, ...]]

BLOCK = 100_000
"""Numbers of passages that share a row of a term: what an update writes anew of a frequent one."""
WAITING = 2_000
MOST_LENGTH = 65_535
Lists: TypeAlias = Mapping[tuple[str, int], "array[int]"]
"""By term and block."""
KEYS = """ALTER TABLE {passages} ADD PRIMARY KEY (number); ALTER TABLE {words} ADD PRIMARY KEY (term, block);
ALTER TABLE {documents} ADD PRIMARY KEY (key); ANALYZE {passages}; ANALYZE {words}"""
LISTS = 'CREATE TEMPORARY TABLE {name} (term text COLLATE "C", block integer, entries bigint[]) ON COMMIT DROP'
PUT_IN = """INSERT INTO {words} AS w SELECT term, block, entries FROM more
    ON CONFLICT (term, block) DO UPDATE SET passages = w.passages || excluded.passages"""
TAKE_OUT = """UPDATE {words} AS w SET passages = ARRAY(SELECT entry FROM unnest(w.passages) AS entry
    WHERE NOT EXISTS (SELECT FROM unnest(g.entries) AS number WHERE number = entry >> 32))
    FROM gone AS g WHERE w.term = g.term AND w.block = g.block"""
TAKE_EMPTY = """DELETE FROM {words} AS w USING gone AS g WHERE w.term = g.term AND w.block = g.block
    AND cardinality(w.passages) = 0"""


class TableStore:
    """Within a transaction, which is not ended here. ``anew``: the tables are empty, and have no keys yet.
    Satisfies ``update.Store``."""

    def __init__(self, db: Connection, tables: Tables, about: About, embedder: Embedder | None, anew: bool) -> None:
        self.db, self.tables, self.about, self.anew = db, tables, about, anew
        self.words = analyzer(about.language)
        self.vectors = VectorTable(db, tables, embedder, about.width) if embedder else None
        self.older = {} if anew else self._older()
        self.waiting: list[tuple[int, Passage]] = []
        self.noted: list[tuple[str, bytes, int, int]] = []
        self.more: dict[tuple[str, int], array[int]] = defaultdict(lambda: array("q"))
        self.gone: dict[tuple[str, int], array[int]] = defaultdict(lambda: array("q"))
        self.block = 0
        row = None if anew else self.run("SELECT terms FROM {about}").fetchone()
        self.terms = int(str(row[0])) if row else 0

    def _older(self) -> dict[str, tuple[bytes, int, int]]:
        rows = self.run("SELECT key, stamp, first, count FROM {documents}").fetchall()
        return {str(key): (bytes(stamp), int(str(first)), int(str(count)))
                for key, stamp, first, count in rows if isinstance(stamp, bytes)}  # fmt: skip

    def run(self, statement: str, parameters: tuple[object, ...] = ()) -> psycopg.Cursor[tuple[object, ...]]:
        return self.db.execute(self.tables.sql(statement).encode(), parameters or None)

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        return self.older.get(storable(key))

    def put(self, number: int, passage: Passage) -> None:
        if number // BLOCK != self.block:
            self.write_words()
            self.block = number // BLOCK
        id, text, title, section = map(storable, (passage.id, passage.text, passage.title, passage.section))
        passage = Passage(id, text, title, section, passage.position)
        terms = self.words.analyze(indexed_text(passage))
        length = min(len(terms), MOST_LENGTH)
        for term, times in Counter(terms).items():
            self.more[term, self.block].append(number << 32 | min(times, MOST_LENGTH) << 16 | length)
        self.terms += len(terms)
        self.waiting.append((number, passage))
        if len(self.waiting) >= WAITING:
            self.write()

    def drop(self, first: int, count: int) -> None:
        gone = "DELETE FROM {passages} WHERE number BETWEEN %s AND %s RETURNING number, title, section, text"
        for number, title, section, text in self.run(gone, (first, first + count - 1)).fetchall():
            at = int(str(number))
            terms = self.words.analyze(indexed_text(Passage("", str(text), str(title), str(section))))
            for term in dict.fromkeys(terms):
                self.gone[term, at // BLOCK].append(at)
            self.terms -= len(terms)
        if self.vectors is not None:
            self.vectors.drop(first, count)

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        self.noted.append((storable(key), stamp, first, count))

    def forget(self, key: str) -> None:
        self.run("DELETE FROM {documents} WHERE key = %s", (key,))

    def documents(self) -> list[tuple[str, int, int]]:
        return [(key, first, count) for key, (_, first, count) in self.older.items()]

    def write(self) -> None:
        """What waits."""
        with self.db.cursor().copy(self.tables.sql("COPY {passages} FROM STDIN").encode()) as copy:
            for number, one in self.waiting:
                copy.write_row((number, one.id, one.title, one.section, one.position, one.text))
        if self.vectors is not None and self.waiting:
            self.vectors.add(self.waiting)
        if not self.anew:
            self.run("DELETE FROM {documents} WHERE key = ANY(%s)", ([key for key, *_ in self.noted],))
        with self.db.cursor().copy(self.tables.sql("COPY {documents} FROM STDIN").encode()) as copy:
            for row in self.noted:
                copy.write_row(row)
        self.waiting.clear()
        self.noted.clear()

    def write_words(self) -> None:
        if self.anew:
            self.copy_lists(self.tables.table("words"), self.more)
        elif self.more:
            self.db.execute(LISTS.format(name="more").encode())
            self.copy_lists("more", self.more)
            self.run(PUT_IN)
            self.db.execute("DROP TABLE more")
        self.more.clear()

    def copy_lists(self, table: str, lists: Lists) -> None:
        with self.db.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for (term, block), entries in lists.items():
                name = term.replace("\\", "\\\\")
                copy.write(f"{name}\t{block}\t{{{','.join(map(str, entries))}}}\n")

    def finish(self, next_number: int) -> About:
        """All is written, with what it is."""
        self.write()
        self.write_words()
        if self.gone:
            self.db.execute(LISTS.format(name="gone").encode())
            self.copy_lists("gone", self.gone)
            self.run(TAKE_OUT)
            self.run(TAKE_EMPTY)
        if self.anew:
            self.run(KEYS)
        documents, passages = self.run("SELECT count(*), coalesce(sum(count), 0) FROM {documents}").fetchall()[0]
        width = self.vectors.finish() if self.vectors is not None else 0
        about = replace(self.about, passages=int(str(passages)), documents=int(str(documents)),
                        next_number=next_number, width=width)  # fmt: skip
        self.run("DELETE FROM {about}")
        self.run("INSERT INTO {about} VALUES (%s, %s)", (json.dumps(asdict(about)), self.terms))
        return about

    def forget_vectors(self) -> None:
        """Those that are remembered for a build that is killed."""
        if self.vectors is not None:
            self.vectors.memory.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self.vectors is not None:
            self.vectors.memory.file.close()


def storable(text: str) -> str:
    """With a mark in the place of what PostgreSQL has no room for.

    >>> storable("a\\0b") == "a\\ufffdb", storable("\\ud800")
    (True, '?')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
