"""An index of passages in PostgreSQL: built and updated in one transaction, searched read-only through the sandbox.

    T            number, id, title, section, position, text, vector    a row for each passage; comment: TableMetadata
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

from decisor.documents.index import (
    FORMAT,
    LOOKED_AT,
    IndexChanges,
    IndexMetadata,
    Mode,
    Progress,
    SourceDocument,
    StoreUpdater,
    build_passage_record,
    choose_index_embedder,
    explain_rebuild,
    rerank_records,
    sample_titles,
    wrap_passages,
)
from decisor.documents.passage import Embedder, Passage, Reranker
from decisor.documents.search import (
    BATCH,
    EXACT,
    K1,
    SEARCHING,
    B,
    VectorMemory,
    build_analyzer,
    build_indexed_text,
    fuse_ranks,
    list_query_terms,
)
from decisor.errors import SetupError
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.system.extras import require_package
from decisor.system.secrets import find_url_secrets, hide_password, redact
from decisor.system.storage import cache_folder, stamp_of
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
    """The database and the table of an index."""

    url: str
    name: str
    schema: str = ""
    """'' for the default one."""

    def sql(self, text: str) -> str:
        """Replace $T, $T_words and $T_documents by the names of the tables."""
        start = f'"{self.schema}"."{self.name}' if self.schema else f'"{self.name}'
        return re.sub(r"\$T(\w*)", rf'{start}\1"', text)

    def __str__(self) -> str:
        """Return the place without its password."""
        address, mark, options = hide_password(self.url).partition("?")
        return f"{address}/{self.schema}{'.' if self.schema else ''}{self.name}{mark}{options}"


@dataclass(frozen=True, slots=True)
class TableMetadata(IndexMetadata):
    """The facts about an index in a table."""

    terms: int = 0
    """Number of terms of all passages."""


def is_table_url(place: str) -> bool:
    return place.lower().startswith(SCHEMES)


def parse_table_place(place: str) -> TablePlace:
    """Parse the URL of a table: ``postgresql://HOST/DATABASE/TABLE`` or SCHEMA.TABLE.

    >>> parse_table_place("postgresql://me@host/shop/hr.handbook?sslmode=require")
    TablePlace(url='postgresql://me@host/shop?sslmode=require', name='handbook', schema='hr')

    Raises:
        SetupError: it names no table.
    """
    address, mark, options = place.partition("?")
    database, _, table = address.partition("://")[2].rpartition("@")[2].partition("/")[2].partition("/")
    if not database or not NAME.fullmatch(table):
        raise SetupError(
            f"{hide_password(place)} names no table of passages: write postgresql://HOST/DATABASE/TABLE, or "
            "SCHEMA.TABLE, of letters, digits and _ (a database is named with --db)."
        )
    schema, _, name = table.rpartition(".")
    return TablePlace(f"{address[: -len(table) - 1]}{mark}{options}", name, schema)


def parse_table_metadata(comment: object, place: TablePlace) -> TableMetadata:
    """Parse the comment of a table. Raise SetupError if it is no index of this version."""
    try:
        about = TableMetadata(**json.loads(str(comment)))
        if about.format != FORMAT:
            raise ValueError(f"format {about.format}")
        return about
    except (ValueError, TypeError) as error:
        database, name = hide_password(place.url), place.name
        raise SetupError(
            f"{place} is no index of passages that this version made. To search the table's rows, index them: decisor "
            f"index {database} --table {name} --out {database.partition('?')[0]}/{name}_index (--text, --title and "
            f"--id name the columns). An index of an earlier version has to be dropped: {name} and {name}_*."
        ) from error


@dataclass(frozen=True, eq=False)
class TableIndex:
    """An open index in PostgreSQL. Open it with ``await open_table_index(place)``. Satisfies ``types.Retriever``."""

    worker: Worker
    """Process of its own that only reads."""
    place: TablePlace
    about: TableMetadata
    words: tantivy.TextAnalyzer
    mode: Mode = "bm25"
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    depth: int = 100
    """Number of hits of each ranking that are fused or reranked."""

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """Return the best passages as ``DocumentIndex.find`` does.

        Raise ToolError if the server does not answer in time.
        """
        wide = max(limit, self.depth) if self.reranker or self.mode == "hybrid" else limit
        by_words = await self.by_words(query, wide) if self.mode != "dense" else ()
        by_meaning = await self.by_meaning(query, wide) if self.mode != "bm25" else ()
        records = by_words or by_meaning
        if self.mode == "hybrid":
            # A passage in both rankings is one record, with the score of the fusion.
            known = {record.id: record for record in (*by_meaning, *by_words)}
            order = fuse_ranks([record.id for record in by_words], [record.id for record in by_meaning])
            records = tuple(replace(known[id], score=float(f"{score:.6g}")) for id, score in order)
        if self.reranker is not None:
            records = await rerank_records(self.reranker, query, records[:wide])
        return records[:limit]

    async def by_words(self, query: str, limit: int) -> tuple[Record, ...]:
        terms: list[Value] = list(list_query_terms(self.words, query))
        # k1 * b / average length, in BM25's denominator (Robertson and Zaragoza 2009).
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
            build_passage_record(
                Passage(str(id), str(text), str(title), str(section), int(str(position))), float(str(score))
            )
            for id, text, title, section, position, score in rows
        )

    async def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """Return different titles of documents, and whether these are all."""
        step = max(1, self.about.next_number // LOOKED_AT)
        numbers: list[Value] = list(range(0, self.about.next_number + 1, step))
        rows = (await self.worker.run(self.place.sql(TITLES), {"numbers": numbers}, trusted=True)).rows
        return sample_titles((str(title) for (title,) in rows), step == 1, most)

    async def close(self) -> None:
        await self.worker.close()

    def __len__(self) -> int:
        return self.about.passages


async def open_table_index(
    place: TablePlace | str,
    mode: Mode | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    by_name: Callable[[str], Embedder | None] = lambda name: None,
) -> TableIndex:
    """Open an index in a table.

    ``mode``: None means hybrid if the index has vectors, else bm25. ``by_name``: function that finds the embedder of a
    name if none is given.

    Raises:
        SetupError: the server does not answer, there is no such index, or it holds no vectors of ``embedder``.
    """
    place = parse_table_place(place) if isinstance(place, str) else place
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
        about = parse_table_metadata(rows[0][1], place)
        mode = mode or ("hybrid" if about.embedder else "bm25")
        if mode != "bm25":
            embedder = choose_index_embedder(place, about, embedder or by_name(about.embedder))
    except BaseException:
        await worker.close()
        raise
    return TableIndex(worker, place, about, build_analyzer(about.language), mode, embedder, reranker)


def build_table_index(
    passages: Iterable[Passage], place: str, language: str = "english", embedder: Embedder | None = None
) -> IndexChanges:
    """Build an index of passages in a table that a URL names, as ``build_index`` does.

    The URL is ``postgresql://HOST/DATABASE/TABLE``.
    """
    return update_table_index(
        wrap_passages(passages), parse_table_place(place), IndexMetadata(language=language), embedder
    )[0]


def update_table_index(
    documents: Iterable[SourceDocument],
    place: TablePlace,
    about: IndexMetadata,
    embedder: Embedder | None = None,
    fresh: bool = False,
    progress: Progress = lambda key, passages: None,
    may_be_empty: bool = True,
) -> tuple[IndexChanges, int]:
    """Update an index in a table to hold exactly the given documents. Return the changes and the size in bytes.

    Whoever reads it meanwhile sees it as it was. A build that fails or is killed changes nothing.

    Raises:
        SetupError: the server does not answer or refuses, the table is somebody else's, or another builder is at work.
    """
    about = replace(about, embedder=embedder.name if embedder else "")
    with connect_to_table(place) as db:
        lock = int.from_bytes(stamp_of(place.sql("$T"))[:8], "big", signed=True)
        # The lock ends with the transaction, so a killed builder leaves none.
        if db.execute("SELECT pg_try_advisory_xact_lock(%s)", (lock,)).fetchone() != (True,):
            raise SetupError(f"{place} is being built by another process: wait for it to end.")
        before = read_table_metadata(db, place)
        why = explain_rebuild(before, about) if before and not fresh else ""
        with closing(TableStore(db, place, about, embedder, before, bool(fresh or why))) as store:
            changes = StoreUpdater(store, store.about.next_number).update(documents, progress)
            if not changes.passages and not may_be_empty:
                db.rollback()
                return IndexChanges(unread=changes.unread, skipped=changes.skipped), 0
            size = store.run(SIZE)[0][0]
            db.commit()
            if embedder is not None:
                store.memory.path.unlink(missing_ok=True)
            db.autocommit = True
            store.run("VACUUM ANALYZE $T, $T_words")  # without it each entry of a term is looked up in the table
        return replace(changes, anew=why), size


@contextmanager
def connect_to_table(place: TablePlace) -> Iterator[Connection]:
    with require_package("psycopg", "postgres"):
        import psycopg

    try:
        with psycopg.connect(place.url, connect_timeout=10, application_name="decisor", client_encoding="UTF8") as db:
            yield db
    except psycopg.Error as error:
        why = redact(" ".join(str(error).split()), find_url_secrets(place.url))
        raise SetupError(f"No index can be made in {place}: {why}. Nothing of it was changed.") from error


def read_table_metadata(db: Connection, place: TablePlace) -> TableMetadata | None:
    """Return the metadata of a table, None if it does not exist. Raise SetupError if it was made otherwise."""
    query = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(%s)"
    row = db.execute(query, (place.sql("$T"),)).fetchone()
    return parse_table_metadata(row[0], place) if row else None


class TableStore:
    """The tables of an index while they are written in one transaction. Satisfies the protocol ``PassageStore``.

    ``before``: what is there. ``anew``: it is deleted, which readers see when the transaction ends.
    """

    def __init__(
        self,
        db: Connection,
        place: TablePlace,
        about: IndexMetadata,
        embedder: Embedder | None,
        before: TableMetadata | None,
        anew: bool,
    ) -> None:
        self.db, self.place, self.embedder = db, place, embedder
        self.about = before if before and not anew else TableMetadata(**asdict(about))
        self.words, self.terms = build_analyzer(about.language), self.about.terms
        self.waiting: list[tuple[int, Passage]] = []
        self.entries: list[tuple[int, int, int, str]] = []
        self.gone, self.forgotten = list[int](), list[str]()
        self.noted: list[tuple[str, bytes, int, int]] = []
        self.run(CREATE)
        if anew:
            for table in TABLES:
                # Not TRUNCATE, which locks readers out and is not MVCC-safe.
                self.run(f"DELETE FROM {table}")
        if embedder is not None:
            self.memory = VectorMemory(cache_folder() / f"{stamp_of(str(place)).hex()}.embedded", embedder.name)
            if before is None or before.embedder != embedder.name:
                self.run("CREATE EXTENSION IF NOT EXISTS vector")
                self.run("ALTER TABLE $T DROP COLUMN IF EXISTS vector, ADD COLUMN vector halfvec")
        rows = self.run("SELECT key, stamp, first, count FROM $T_documents")
        self.older: dict[str, tuple[bytes, int, int]] = {key: (stamp, *numbers) for key, stamp, *numbers in rows}

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.db.execute(self.place.sql(statement).encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def copy(self, target: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self.db.cursor().copy(self.place.sql(f"COPY {target} FROM STDIN").encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def earlier(self, key: str) -> tuple[bytes, int, int] | None:
        return self.older.get(replace_unstorable(key))

    def put(self, number: int, passage: Passage) -> None:
        id, text, title, section = map(replace_unstorable, (passage.id, passage.text, passage.title, passage.section))
        passage = Passage(id, text, title, section, passage.position)
        terms = Counter(self.words.analyze(build_indexed_text(passage)))
        length = terms.total()
        self.terms += length
        self.entries += [(number, times, length, term) for term, times in terms.items()]
        self.waiting.append((number, passage))
        if len(self.waiting) >= BATCH:
            self.write()

    def drop(self, first: int, count: int) -> None:
        self.gone += range(first, first + count)

    def note(self, key: str, stamp: bytes, first: int, count: int) -> None:
        self.noted.append((replace_unstorable(key), stamp, first, count))

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def documents(self) -> list[tuple[str, int, int]]:
        return [(key, first, count) for key, (_, first, count) in self.older.items()]

    def write(self) -> None:
        """Write the waiting passages with their terms and vectors."""
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

    def finish(self, next_number: int) -> TableMetadata:
        """Write waiting passages, delete removed ones, and store the metadata in the table's comment."""
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
            # pgvector builds a graph that does not fit this memory much slower.
            self.run(f"SET LOCAL maintenance_work_mem = '{memory}MB'")
            near = f"((vector::halfvec({about.width})) halfvec_cosine_ops)"
            self.run(f'CREATE INDEX IF NOT EXISTS "{self.place.name}_near" ON $T USING hnsw {near}')
        name, comment = SQL(self.place.sql("$T")), Literal(json.dumps(asdict(about)))
        self.db.execute(SQL("COMMENT ON TABLE {} IS {}").format(name, comment))
        return about

    def close(self) -> None:
        if self.embedder is not None:
            self.memory.file.close()


def replace_unstorable(text: str) -> str:
    """Replace characters that PostgreSQL cannot store.

    >>> replace_unstorable("a\\0b") == "a\\ufffdb", replace_unstorable("\\ud800")
    (True, '?')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
