"""Vectors of passages in PostgreSQL, by pgvector: half-precision numbers, compared exactly up to some ten thousand, and
by a graph of neighbours (HNSW) beyond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decisor.cache import cache_folder, stamp_of
from decisor.errors import SetupError
from decisor.tools.documents.embedder import Embedder
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.table_place import Tables
from decisor.tools.documents.vectors import BATCH, EXACT, VectorMemory

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

    Connection = psycopg.Connection[tuple[object, ...]]

OLDEST = (0, 7)
"""The first pgvector that has halfvec."""
MOST_WIDTH = 4_000
MOST_MEMORY_MB = 2_000
HEAD, END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
WITHOUT = (
    "Vectors need pgvector 0.7 or newer on the server: its package is postgresql-N-pgvector, and then CREATE EXTENSION "
    "vector in the database"
)


class VectorTable:
    """What writes them. ``width``: of those that are there; 0 where none are."""

    def __init__(self, db: Connection, tables: Tables, embedder: Embedder, width: int) -> None:
        need_pgvector(db)
        self.db, self.tables, self.embedder, self.width = db, tables, embedder, width
        folder = cache_folder() / "embedded"
        folder.mkdir(parents=True, exist_ok=True)
        self.memory = VectorMemory(folder / f"{stamp_of(db.info.dsn, tables.table()).hex()}.part", embedder.name)

    def add(self, passages: Sequence[tuple[int, Passage]]) -> None:
        for start in range(0, len(passages), BATCH):
            batch = passages[start : start + BATCH]
            vectors = self.memory.embed(self.embedder, [passage.whole for _, passage in batch])
            self._table(vectors.shape[1])
            copy_vectors(self.db, self.tables.table("vectors"), [number for number, _ in batch], vectors)

    def _table(self, width: int) -> None:
        if not self.width:
            if width > MOST_WIDTH:
                raise SetupError(f"{self.embedder.name} gives {width:,} numbers a text; pgvector takes {MOST_WIDTH:,}.")
            columns = f"number integer PRIMARY KEY, vector halfvec({width}) NOT NULL"
            self.db.execute(f"CREATE TABLE {self.tables.table('vectors')} ({columns})".encode())
            self.width = width
        if width != self.width:
            raise SetupError(f"{self.embedder.name} gives {width} numbers a text, not {self.width}.")

    def drop(self, first: int, count: int) -> None:
        if self.width:
            gone = f"DELETE FROM {self.tables.table('vectors')} WHERE number BETWEEN %s AND %s"
            self.db.execute(gone.encode(), (first, first + count - 1))

    def finish(self) -> int:
        """With neighbours where there are many; the width."""
        self._table(self.width or 1)
        name = self.tables.table("vectors")
        row = self.db.execute(f"SELECT count(*) FROM {name}".encode()).fetchone()
        count = int(str(row[0])) if row else 0
        has = "SELECT FROM pg_index WHERE indrelid = %s::regclass AND NOT indisprimary"
        if count > EXACT and not self.db.execute(has, (name,)).fetchall():
            need = count * (2 * self.width + 500) >> 20
            self.db.execute(f"SET LOCAL maintenance_work_mem = '{min(MOST_MEMORY_MB, 64 + need)}MB'".encode())
            self.db.execute(f"CREATE INDEX ON {name} USING hnsw (vector halfvec_cosine_ops)".encode())
        self.db.execute(f"ANALYZE {name}".encode())
        return self.width


def need_pgvector(db: Connection) -> None:
    """Raises SetupError where it is not there, or too old."""
    import psycopg

    try:
        with db.transaction():
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise SetupError(f"{WITHOUT} ({' '.join(str(error).split())}).") from error
    row = db.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = str(row[0]) if row else ""
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
        raise SetupError(f"{WITHOUT} (it is {version}: ALTER EXTENSION vector UPDATE).")


def copy_vectors(db: Connection, table: str, numbers: Sequence[int], vectors: NDArray[np.float16]) -> None:
    """In the server's own binary form: a row has two fields, each with its length in bytes before it."""
    import numpy as np

    count, width = vectors.shape
    form = np.dtype([("fields", ">i2"), ("long", ">i4"), ("number", ">i4"), ("size", ">i4"), ("width", ">i2"),
                     ("unused", ">i2"), ("vector", ">f2", (width,))])  # fmt: skip
    rows = np.zeros(count, form)
    rows["fields"], rows["long"], rows["size"], rows["width"] = 2, 4, 4 + 2 * width, width
    rows["number"], rows["vector"] = numbers, vectors
    with db.cursor().copy(f"COPY {table} (number, vector) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(HEAD + rows.tobytes() + END)
