"""An index of passages in PostgreSQL: built and updated in one transaction, searched read-only through the sandbox.

    T            number, id, title, section, position, text, vector    a row for each passage; comment: ``TableAbout``
    T_words      term, number, times, length                           how often a passage has a term, of how many
    T_documents  key, stamp, first, count                              the passages of a document

The server adds up BM25 with tantivy's terms and constants over the rows of a query's terms.
Vectors are pgvector's ``halfvec``, compared one by one up to some ten thousand, and by HNSW beyond.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from decisor.cache import cache_folder, stamp_of
from decisor.errors import SetupError
from decisor.extras import needs
from decisor.secrets import redact, secrets_in, without_password
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.documents.bm25 import K1, B, analyzer, indexed_text, query_terms
from decisor.tools.documents.embedder import Embedder, Reranker
from decisor.tools.documents.fusion import fuse_ranks
from decisor.tools.documents.index import LOOKED_AT, Mode, embedder_for, few_titles, record_of, reranked
from decisor.tools.documents.index_files import FORMAT, About
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.update import Changes, Document, Progress, Updater, apart, each_alone, take_all
from decisor.tools.documents.vectors import BATCH, EXACT, SEARCHING, VectorMemory
from decisor.types import Record, Value

if TYPE_CHECKING:
    import psycopg
    import tantivy

    Connection = psycopg.Connection[tuple[object, ...]]

SCHEMES = ("postgresql://", "postgres://")
NAME = re.compile(r"(?:\w{1,40}\.)?\w{1,40}")
CAPS = Caps(rows=2_000, cell_chars=1_000_000, bytes=64_000_000)
TABLES = ("$T", "$T_words", "$T_documents")
CREATE = """CREATE TABLE IF NOT EXISTS $T (number integer PRIMARY KEY, id text, title text, section text,
    position integer, text text);
CREATE TABLE IF NOT EXISTS $T_words (number integer, times integer, length integer, term text COLLATE "C",
    PRIMARY KEY (term, number) INCLUDE (times, length));
CREATE TABLE IF NOT EXISTS $T_documents (key text COLLATE "C" PRIMARY KEY, stamp bytea, first integer, count integer)"""
# Numbers with a point are decimals in PostgreSQL, ten times as slow as floats.
BY_WORDS = f"""WITH worths AS MATERIALIZED (
    SELECT term, ln(1 + (:every::float - count(*) + 0.5) / (count(*) + 0.5)) * {K1 + 1}::float AS worth
    FROM $T_words WHERE term = ANY(:terms) GROUP BY term
), best AS (
    SELECT number, sum(worth * times / (times + {K1 * (1 - B):.2f}::float + :norm::float * length)) AS score
    FROM worths JOIN $T_words USING (term) GROUP BY number ORDER BY score DESC, number LIMIT :most
) SELECT id, text, title, section, position, score FROM best JOIN $T USING (number) ORDER BY score DESC, number"""
BY_MEANING = """SELECT id, text, title, section, position, score FROM (
    SELECT *, 1 - (vector::halfvec(WIDTH) <=> :vector::halfvec(WIDTH)) AS score FROM $T
    ORDER BY vector::halfvec(WIDTH) <=> :vector::halfvec(WIDTH) LIMIT :most
) AS best ORDER BY score DESC, number"""
SIZE = "SELECT " + " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
TITLES = "SELECT title FROM $T WHERE number = ANY(:numbers) ORDER BY number"
THERE = "SELECT to_regclass(:name) IS NULL AS missing, obj_description(to_regclass(:name), 'pg_class') AS about"


@dataclass(frozen=True)
class TablePlace:
    """The database and the table of an index. ``schema``: '' for the default one."""

    url: str
    name: str
    schema: str = ""

    def sql(self, text: str) -> str:
        """Put the names of the tables in the places of $T, $T_words and $T_documents."""
        start = f'"{self.schema}"."{self.name}' if self.schema else f'"{self.name}'
        return re.sub(r"\$T(\w*)", rf'{start}\1"', text)

    def __str__(self) -> str:
        """Show it without its password."""
        address, mark, options = without_password(self.url).partition("?")
        return f"{address}/{self.schema}{'.' if self.schema else ''}{self.name}{mark}{options}"


@dataclass(frozen=True, slots=True)
class TableAbout(About):
    """``terms``: of all passages together."""

    terms: int = 0


def names_table(place: str) -> bool:
    return place.lower().startswith(SCHEMES)


def parse_place(place: str) -> TablePlace:
    """
    >>> parse_place("postgresql://me@host/shop/hr.handbook?sslmode=require")
    TablePlace(url='postgresql://me@host/shop?sslmode=require', name='handbook', schema='hr')

    Raises:
        SetupError: it names no table.
    """
    address, mark, options = place.partition("?")
    database, _, table = address.partition("://")[2].rpartition("@")[2].partition("/")[2].partition("/")
    if not database or not NAME.fullmatch(table):
        raise SetupError(
            f"{without_password(place)} names no table of passages: write postgresql://HOST/DATABASE/TABLE, or "
            "SCHEMA.TABLE, of letters, digits and _ (a database is named with --db)."
        )
    schema, _, name = table.rpartition(".")
    return TablePlace(f"{address[: -len(table) - 1]}{mark}{options}", name, schema)


def parse_about(comment: object, place: TablePlace) -> TableAbout:
    """Raises SetupError where it is no comment of an index of this version."""
    try:
        about = TableAbout(**json.loads(str(comment)))
        if about.format != FORMAT:
            raise ValueError(f"format {about.format}")
        return about
    except (ValueError, TypeError) as error:
        database, name = without_password(place.url), place.name
        raise SetupError(
            f"{place} is no index of passages that this version made. To search the table's rows, index them: decisor "
            f"index {database} --table {name} --out {database.partition('?')[0]}/{name}_index (--text, --title and "
            f"--id name the columns). An index of an earlier version has to be dropped: {name} and {name}_*."
        ) from error


@dataclass(frozen=True, eq=False)
class TableIndex:
    """An open index. Open with ``await open_table(place)``; ``worker`` is a process of its own, that only reads.

    ``depth``: how many of each ranking are joined or ranked again. Satisfies ``types.Retriever``.
    """

    worker: Worker
    place: TablePlace
    about: TableAbout
    words: tantivy.TextAnalyzer
    mode: Mode = "bm25"
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    depth: int = 100

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """Find as ``Index.find`` does. Raises ToolError where the server does not answer, or not in time."""
        wide = max(limit, self.depth) if self.reranker or self.mode == "hybrid" else limit
        by_words = await self.by_words(query, wide) if self.mode != "dense" else ()
        by_meaning = await self.by_meaning(query, wide) if self.mode != "bm25" else ()
        records = by_words or by_meaning
        if self.mode == "hybrid":
            known = {record.id: record for record in (*by_meaning, *by_words)}
            order = fuse_ranks([record.id for record in by_words], [record.id for record in by_meaning])
            records = tuple(replace(known[id], score=float(f"{score:.6g}")) for id, score in order)
        if self.reranker is not None:
            records = await reranked(self.reranker, query, records[:wide])
        return records[:limit]

    async def by_words(self, query: str, limit: int) -> tuple[Record, ...]:
        terms: list[Value] = list(query_terms(self.words, query))
        norm = K1 * B * self.about.passages / max(1, self.about.terms)
        values: dict[str, Value] = {"terms": terms, "every": self.about.passages, "norm": norm, "most": limit}
        return await self._records(BY_WORDS, values) if terms and limit > 0 else ()

    async def by_meaning(self, text: str, limit: int) -> tuple[Record, ...]:
        if self.embedder is None or not self.about.width:
            return ()
        vector = (await asyncio.to_thread(self.embedder.embed, [text]))[0]
        width = f"({self.about.width})" if self.about.passages > EXACT else ""  # an HNSW index is on vectors of a width
        return await self._records(
            BY_MEANING.replace("(WIDTH)", width), {"vector": str(vector.tolist()), "most": limit}
        )

    async def _records(self, query: str, parameters: Mapping[str, Value]) -> tuple[Record, ...]:
        rows = (await self.worker.run(self.place.sql(query), parameters, trusted=True)).rows
        return tuple(
            record_of(Passage(str(id), str(text), str(title), str(section), int(str(position))), float(str(score)))
            for id, text, title, section, position, score in rows
        )

    async def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """List titles as ``Index.titles`` does."""
        step = max(1, self.about.next_number // LOOKED_AT)
        numbers: list[Value] = list(range(0, self.about.next_number + 1, step))
        rows = (await self.worker.run(self.place.sql(TITLES), {"numbers": numbers}, trusted=True)).rows
        return few_titles((str(title) for (title,) in rows), step == 1, most)

    async def close(self) -> None:
        await self.worker.close()

    def __len__(self) -> int:
        return self.about.passages


async def open_table(
    place: TablePlace | str, mode: Mode | None = None, embedder: Embedder | None = None,
    reranker: Reranker | None = None, by_name: Callable[[str], Embedder | None] = lambda name: None,
) -> TableIndex:  # fmt: skip
    """Open an index. ``mode``: hybrid where there are vectors and None is said, else bm25. ``by_name``: the embedder of
    that name, where none is given.

    Raises:
        SetupError: the server does not answer, there is no such index, or it holds no vectors of ``embedder``.
    """
    place = parse_place(place) if isinstance(place, str) else place
    # Enough neighbours that HNSW looks at, and memory for the scores of many passages.
    settings = f"options=-c%20hnsw.ef_search%3D{SEARCHING}%20-c%20work_mem%3D64MB"
    url = place.url.replace("options=", f"{settings}%20", 1)
    if url == place.url:
        url += f"{'&' if '?' in url else '?'}{settings}"
    worker = Worker("postgres", url, CAPS, source=place.name)
    try:
        await worker.start()
        rows = (await worker.run(THERE, {"name": place.sql("$T")}, trusted=True)).rows
        if rows[0][0]:
            raise SetupError(f"There is no table {place}: make an index with decisor index SOURCE --out {place}.")
        about = parse_about(rows[0][1], place)
        mode = mode or ("hybrid" if about.embedder else "bm25")
        if mode != "bm25":
            embedder = embedder_for(place, about, embedder or by_name(about.embedder))
    except BaseException:
        await worker.close()
        raise
    return TableIndex(worker, place, about, analyzer(about.language), mode, embedder, reranker)


def build_table(
    passages: Iterable[Passage], place: str, language: str = "english", embedder: Embedder | None = None
) -> Changes:
    """Build as ``build_index`` does, in the table that ``postgresql://HOST/DATABASE/TABLE`` names."""
    return update_table(each_alone(passages), parse_place(place), About(language=language), embedder)[0]


def update_table(
    documents: Iterable[Document], place: TablePlace, about: About, embedder: Embedder | None = None,
    fresh: bool = False, progress: Progress = lambda key, passages: None, may_be_empty: bool = True,
) -> tuple[Changes, int]:  # fmt: skip
    """Update as ``index_build.update`` does, in a table; and say how many bytes the index has.

    Whoever reads it meanwhile sees it as it was. A build that fails or is killed changes nothing.

    Raises:
        SetupError: the server does not answer or refuses, the table is somebody else's, or another builder is at work.
    """
    with connecting(place) as db:
        lock = int.from_bytes(stamp_of(place.sql("$T"))[:8], "big", signed=True)
        if db.execute("SELECT pg_try_advisory_xact_lock(%s)", (lock,)).fetchone() != (True,):
            raise SetupError(f"{place} is being built by another process: wait for it to end.")
        before = stored_about(db, place)
        about = replace(about, embedder=embedder.name if embedder else "")
        why = apart(before, about) if before and not fresh else ""
        with closing(TableStore(db, place, about, embedder, before, bool(fresh or why))) as store:
            updater = Updater(store, store.about.next_number)
            take_all(updater, documents, progress)
            changes = updater.changes(store.finish(updater.number))
            if not changes.passages and not may_be_empty:
                db.rollback()
                return Changes(unread=changes.unread, skipped=changes.skipped), 0
            size = store.run(SIZE)[0][0]
            db.commit()
            if embedder is not None:
                store.memory.path.unlink(missing_ok=True)
            db.autocommit = True
            store.run("VACUUM ANALYZE $T, $T_words")  # without it each entry of a term is looked up in the table
        return replace(changes, anew=why), size


@contextmanager
def connecting(place: TablePlace) -> Iterator[Connection]:
    with needs("psycopg", "postgres"):
        import psycopg

    try:
        with psycopg.connect(place.url, connect_timeout=10, application_name="decisor", client_encoding="UTF8") as db:
            yield db
    except psycopg.Error as error:
        why = redact(" ".join(str(error).split()), secrets_in(place.url))
        raise SetupError(f"No index can be made in {place}: {why}. Nothing of it was changed.") from error


def stored_about(db: Connection, place: TablePlace) -> TableAbout | None:
    """Return None where there is no such table. Raises SetupError where something else made it."""
    query = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(%s)"
    row = db.execute(query, (place.sql("$T"),)).fetchone()
    return parse_about(row[0], place) if row else None


class TableStore:
    """The tables of an index while they are written, within a transaction. Satisfies ``update.Store``.

    ``before``: what is there. ``anew``: it is deleted, which readers see when the transaction ends.
    """

    def __init__(
        self, db: Connection, place: TablePlace, about: About, embedder: Embedder | None, before: TableAbout | None,
        anew: bool,
    ) -> None:  # fmt: skip
        self.db, self.place, self.embedder = db, place, embedder
        self.about = before if before and not anew else TableAbout(**asdict(about))
        self.words, self.terms = analyzer(about.language), self.about.terms
        self.waiting: list[tuple[int, Passage]] = []
        self.entries: list[tuple[int, int, int, str]] = []
        self.gone: list[int] = []
        self.forgotten: list[str] = []
        self.noted: list[tuple[str, bytes, int, int]] = []
        self.run(CREATE)
        if anew:
            for table in TABLES:
                self.run(f"DELETE FROM {table}")
        if embedder is not None:
            self.memory = VectorMemory(cache_folder() / f"{stamp_of(str(place)).hex()}.embedded", embedder.name)
            if before is None or before.embedder != embedder.name:
                self.run("CREATE EXTENSION IF NOT EXISTS vector")
                self.run("ALTER TABLE $T DROP COLUMN IF EXISTS vector, ADD COLUMN vector halfvec")
        rows = self.run("SELECT key, stamp, first, count FROM $T_documents")
        self.older: dict[str, tuple[bytes, int, int]] = {
            key: (stamp, first, count) for key, stamp, first, count in rows
        }

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.db.execute(self.place.sql(statement).encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def copy(self, target: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self.db.cursor().copy(self.place.sql(f"COPY {target} FROM STDIN").encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        return self.older.get(storable(key))

    def put(self, number: int, passage: Passage) -> None:
        id, text, title, section = map(storable, (passage.id, passage.text, passage.title, passage.section))
        passage = Passage(id, text, title, section, passage.position)
        terms = Counter(self.words.analyze(indexed_text(passage)))
        length = terms.total()
        self.terms += length
        self.entries += [(number, times, length, term) for term, times in terms.items()]
        self.waiting.append((number, passage))
        if len(self.waiting) >= BATCH:
            self.write()

    def drop(self, first: int, count: int) -> None:
        self.gone += range(first, first + count)

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        self.noted.append((storable(key), stamp, first, count))

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def documents(self) -> list[tuple[str, int, int]]:
        return [(key, first, count) for key, (_, first, count) in self.older.items()]

    def write(self) -> None:
        """Write the passages that wait."""
        vectors: list[tuple[str, ...]] = [()] * len(self.waiting)
        if self.embedder is not None and self.waiting:
            rows = self.memory.embed(self.embedder, [passage.whole for _, passage in self.waiting])
            if self.about.width not in (0, width := rows.shape[1]):
                raise SetupError(f"{self.embedder.name} gives {width} numbers a text, not {self.about.width}.")
            self.about, vectors = replace(self.about, width=width), [(str(vector.tolist()),) for vector in rows]
        passages = ((number, one.id, one.title, one.section, one.position, one.text) for number, one in self.waiting)
        columns = "number, id, title, section, position, text" + (", vector" if self.embedder else "")
        self.copy(f"$T ({columns})", ((*row, *vector) for row, vector in zip(passages, vectors, strict=True)))
        self.entries.sort(key=lambda entry: entry[3])  # frequent terms of many passages then lie side by side
        self.copy("$T_words", self.entries)
        self.waiting.clear()
        self.entries.clear()

    def finish(self, next_number: int) -> TableAbout:
        """Write all that waits, take out what is gone, and say in the table's comment what the index is."""
        from psycopg.sql import SQL, Literal

        self.write()
        self.run("DELETE FROM $T_documents WHERE key = ANY(%s)", self.forgotten + [key for key, *_ in self.noted])
        self.copy("$T_documents", self.noted)
        self.run("DELETE FROM $T WHERE number = ANY(%s)", self.gone)
        take_out = (
            "WITH gone AS (DELETE FROM $T_words WHERE number = ANY(%s) RETURNING times) SELECT sum(times) FROM gone"
        )
        terms = self.terms - (self.run(take_out, self.gone)[0][0] or 0)
        ((documents, passages),) = self.run("SELECT count(*), coalesce(sum(count), 0) FROM $T_documents")
        about = replace(self.about, passages=int(passages), documents=documents, next_number=next_number, terms=terms)
        if about.width and passages > EXACT:
            memory = min(2_000, 64 + (passages * (2 * about.width + 500) >> 20))
            self.run(f"SET LOCAL maintenance_work_mem = '{memory}MB'")
            near = f"((vector::halfvec({about.width})) halfvec_cosine_ops)"
            self.run(f'CREATE INDEX IF NOT EXISTS "{self.place.name}_near" ON $T USING hnsw {near}')
        name, comment = SQL(self.place.sql("$T")), Literal(json.dumps(asdict(about)))
        self.db.execute(SQL("COMMENT ON TABLE {} IS {}").format(name, comment))
        return about

    def close(self) -> None:
        if self.embedder is not None:
            self.memory.file.close()


def storable(text: str) -> str:
    """Put a mark in the place of what PostgreSQL has no room for.

    >>> storable("a\\0b") == "a\\ufffdb", storable("\\ud800")
    (True, '?')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
