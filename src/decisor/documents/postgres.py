"""An index of passages in PostgreSQL: built and updated in one transaction, searched read-only through the sandbox.

    T            number, id, title, section, position, text, vector    a row for each passage; comment: IndexMetadata
    T_words      term, number, times, length                           how often a passage has a term, of how many
    T_documents  key, stamp, first, count                              the passages of a document

The server adds up BM25 with tantivy's terms and constants over the rows of a query's terms.
Vectors are pgvector's ``halfvec``, compared one by one up to some ten thousand, and by HNSW beyond.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from decisor.documents.index import (
    FORMAT,
    DocumentIndex,
    FindEmbedder,
    IndexChanges,
    IndexMetadata,
    Mode,
    Progress,
    SourceDocument,
    StoredDocument,
    choose_index_mode,
    explain_rebuild,
    update_store,
    wrap_passages,
)
from decisor.documents.passage import Embedder, Passage, Reranker
from decisor.documents.search import (
    BATCH,
    EXACT,
    K1,
    SEARCHING,
    B,
    Ranked,
    VectorMemory,
    build_analyzer,
    build_indexed_text,
    list_query_terms,
)
from decisor.errors import SetupError
from decisor.sandbox.engine import Caps
from decisor.sandbox.process import Worker
from decisor.system.extras import require_package
from decisor.system.secrets import find_url_secrets, hide_password, redact
from decisor.system.storage import cache_folder, stamp_of
from decisor.types import Value

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

    Connection = psycopg.Connection[tuple[object, ...]]

NAME = re.compile(r"(?:\w{1,40}\.)?\w{1,40}")
CAPS = Caps(rows=2_000, cell_chars=1_000_000, bytes=64_000_000)
CREATE = """CREATE TABLE IF NOT EXISTS $T (number integer PRIMARY KEY, id text, title text, section text,
    position integer, text text);
CREATE TABLE IF NOT EXISTS $T_words (number integer, times integer, length integer, term text COLLATE "C",
    PRIMARY KEY (term, number) INCLUDE (times, length));
CREATE TABLE IF NOT EXISTS $T_documents (key text COLLATE "C" PRIMARY KEY, stamp bytea, first integer, count integer)"""
# Not TRUNCATE, which locks readers out and is not MVCC-safe.
EMPTY_TABLES = "DELETE FROM $T; DELETE FROM $T_words; DELETE FROM $T_documents"
# Numbers with a point are decimals in PostgreSQL, ten times as slow as floats.
BY_WORDS = f"""WITH worths AS MATERIALIZED (
    SELECT term, ln(1 + (:every::float - count(*) + 0.5) / (count(*) + 0.5)) * {K1 + 1}::float AS worth
    FROM $T_words WHERE term = ANY(:terms) GROUP BY term
) SELECT number, sum(worth * times / (times + {K1 * (1 - B):.2f}::float + :norm::float * length)) AS score
FROM worths JOIN $T_words USING (term) GROUP BY number ORDER BY score DESC, number LIMIT :most"""
BY_MEANING = """SELECT number, 1 - (vector::halfvec(WIDTH) <=> :vector::halfvec(WIDTH)) AS score FROM $T
ORDER BY vector::halfvec(WIDTH) <=> :vector::halfvec(WIDTH) LIMIT :most"""
READ = "SELECT number, id, text, title, section, position FROM $T WHERE number = ANY(:numbers)"
SIZE = "SELECT sum(pg_total_relation_size(name)) FROM unnest(ARRAY['$T', '$T_words', '$T_documents']) AS name"
COUNTS = "SELECT count(*), coalesce(sum(count), 0)::int, (SELECT coalesce(sum(times), 0) FROM $T_words)::int8"


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


def is_table_url(place: str) -> bool:
    return place.lower().startswith(("postgresql://", "postgres://"))


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


def parse_table_metadata(comment: object, place: TablePlace) -> IndexMetadata:
    """Parse the comment of a table. Raise SetupError if it is no index of this version."""
    try:
        about = IndexMetadata(**json.loads(str(comment)))
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
class TablePassages:
    """The passages of an index in PostgreSQL. Satisfies ``PassageSource``; ToolError if the server does not answer."""

    worker: Worker
    """Process of its own that only reads."""
    place: TablePlace
    about: IndexMetadata

    async def by_words(self, text: str, limit: int) -> Ranked:
        terms: list[Value] = list(list_query_terms(build_analyzer(self.about.language), text))
        if not terms or limit < 1:
            return []
        # k1 * b / average length, in BM25's denominator (Robertson and Zaragoza 2009).
        norm = K1 * B * self.about.passages / max(1, self.about.terms)
        return await self._rank(BY_WORDS, terms=terms, every=self.about.passages, norm=norm, most=limit)

    async def by_meaning(self, vector: NDArray[np.float32], limit: int) -> Ranked:
        width = f"({self.about.width})" if self.about.passages > EXACT else ""  # an HNSW index is on vectors of a width
        ranked = await self._rank(BY_MEANING.replace("(WIDTH)", width), vector=str(vector.tolist()), most=limit)
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))

    async def read(self, numbers: Sequence[int]) -> dict[int, Passage]:
        rows = await self._run(READ, numbers=list(numbers))
        return {number: Passage(*texts) for number, *texts in rows}

    async def _rank(self, query: str, **parameters: Value) -> Ranked:
        return [(number, float(score)) for number, score in await self._run(query, **parameters)]

    async def _run(self, query: str, **parameters: Value) -> Iterable[Any]:
        return (await self.worker.run(self.place.sql(query), parameters, trusted=True)).rows

    async def close(self) -> None:
        await self.worker.close()


async def open_table_index(
    place: TablePlace | str,
    mode: Mode | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    by_name: FindEmbedder = lambda name: None,
) -> DocumentIndex:
    """Open an index in a table, as ``open_index`` does.

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
        query = "SELECT to_regclass(:name) IS NULL, obj_description(to_regclass(:name), 'pg_class')"
        ((is_missing, comment),) = (await worker.run(query, {"name": place.sql("$T")}, trusted=True)).rows
        if is_missing:
            raise SetupError(f"There is no table {place}: make an index with decisor index SOURCE --out {place}.")
        about = parse_table_metadata(comment, place)
        chosen, embedder = choose_index_mode(place, about, mode, embedder, by_name)
    except BaseException:
        await worker.close()
        raise
    return DocumentIndex(TablePassages(worker, place, about), about, chosen, embedder, reranker)


def build_table_index(
    passages: Iterable[Passage], place: str, language: str = "english", embedder: Embedder | None = None
) -> IndexChanges:
    """Build an index of passages in a table, ``postgresql://HOST/DATABASE/TABLE``, as ``build_index`` does."""
    about = IndexMetadata(language=language)
    return update_table_index(wrap_passages(passages), parse_table_place(place), about, embedder)[0]


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
    storable = (replace(document, key=replace_unstorable(document.key)) for document in documents)
    with connect_to_table(place) as db:
        lock = int.from_bytes(stamp_of(place.sql("$T"))[:8], "big", signed=True)
        # The lock ends with the transaction, so a killed builder leaves none.
        if db.execute("SELECT pg_try_advisory_xact_lock(%s)", (lock,)).fetchone() != (True,):
            raise SetupError(f"{place} is being built by another process: wait for it to end.")
        before = read_table_metadata(db, place)
        why = explain_rebuild(before, about) if before and not fresh else ""
        has_vectors = before is not None and before.embedder == about.embedder
        with closing(TableStore(db, place, about, embedder)) as store:
            store.run(CREATE)
            if before and not fresh and not why:
                store.about = before
            else:
                store.run(EMPTY_TABLES)
            if embedder is not None and not has_vectors:
                store.run("CREATE EXTENSION IF NOT EXISTS vector")
                store.run("ALTER TABLE $T DROP COLUMN IF EXISTS vector, ADD COLUMN vector halfvec")
            changes = update_store(store, store.about.next_number, storable, progress)
            if not changes.passages and not may_be_empty:
                db.rollback()
                return IndexChanges(unread=changes.unread, skipped=changes.skipped), 0
            size = int(store.run(SIZE)[0][0])
            db.commit()
            if store.memory is not None:
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


def read_table_metadata(db: Connection, place: TablePlace) -> IndexMetadata | None:
    """Return the metadata of a table, None if it does not exist. Raise SetupError if it was made otherwise."""
    query = "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(%s)"
    row = db.execute(query, (place.sql("$T"),)).fetchone()
    return parse_table_metadata(row[0], place) if row else None


class TableStore:
    """The tables of an index while they are written in one transaction. Satisfies the protocol ``PassageStore``."""

    def __init__(self, db: Connection, place: TablePlace, about: IndexMetadata, embedder: Embedder | None) -> None:
        self.db, self.place, self.about = db, place, about
        self.words = build_analyzer(about.language)
        self.waiting: list[tuple[int, Passage]] = []
        self.gone: list[int] = []
        remains = cache_folder() / f"{stamp_of(str(place)).hex()}.embedded"
        self.memory = VectorMemory(remains, embedder) if embedder else None

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.db.execute(self.place.sql(statement).encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def copy(self, target: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self.db.cursor().copy(self.place.sql(f"COPY {target} FROM STDIN").encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def documents(self) -> dict[str, StoredDocument]:
        rows = self.run("SELECT key, stamp, first, count FROM $T_documents")
        return {key: StoredDocument(*values) for key, *values in rows}

    def put(self, number: int, passage: Passage) -> None:
        id, text, title, section = map(replace_unstorable, (passage.id, passage.text, passage.title, passage.section))
        self.waiting.append((number, Passage(id, text, title, section, passage.position)))
        if len(self.waiting) >= BATCH:
            self.write()

    def drop(self, numbers: range) -> None:
        self.gone += numbers

    def write(self) -> None:
        """Write the waiting passages with their terms and vectors."""
        columns = "number, id, text, title, section, position"
        entries: list[tuple[int, int, int, str]] = []
        rows: list[tuple[object, ...]] = [(number, *astuple(passage)) for number, passage in self.waiting]
        if self.memory is not None and self.waiting:
            columns += ", vector"
            vectors = self.memory.embed([passage for _, passage in self.waiting], self.about.width)
            self.about = replace(self.about, width=vectors.shape[1])
            rows = [(*row, str(vector.tolist())) for row, vector in zip(rows, vectors, strict=True)]
        for number, passage in self.waiting:
            terms = Counter(self.words.analyze(build_indexed_text(passage)))
            entries += [(number, times, terms.total(), term) for term, times in terms.items()]
        self.copy(f"$T ({columns})", rows)
        entries.sort(key=lambda entry: entry[3])  # frequent terms of many passages then lie side by side
        self.copy("$T_words", entries)
        self.waiting.clear()

    def finish(self, changed: Mapping[str, StoredDocument | None], next_number: int) -> IndexMetadata:
        """Write waiting passages, delete removed ones, and store the metadata in the table's comment."""
        from psycopg.sql import SQL, Literal

        self.write()
        self.run("DELETE FROM $T_documents WHERE key = ANY(%s)", list(changed))
        self.copy("$T_documents", ((key, *document) for key, document in changed.items() if document is not None))
        for table in ("$T", "$T_words") if self.gone else ():
            self.run(f"DELETE FROM {table} WHERE number = ANY(%s)", self.gone)
        ((documents, passages, terms),) = self.run(f"{COUNTS} FROM $T_documents")
        about = replace(self.about, passages=passages, documents=documents, next_number=next_number, terms=terms)
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
        if self.memory is not None:
            self.memory.close()


def replace_unstorable(text: str) -> str:
    """Replace characters that PostgreSQL cannot store.

    >>> replace_unstorable("a\\0b") == "a\\ufffdb", replace_unstorable("\\ud800")
    (True, '?')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
