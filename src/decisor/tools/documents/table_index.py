"""An index in PostgreSQL that is open: finds the passages of a query. Satisfies ``types.Retriever``.

    by words    for each term of the query: worth <- ln(1 + (N - n + 0.5) / (n + 0.5)), N passages, n that have it
                score of a passage <- sum of worth * times * 2.2 / (times + 0.3 + 0.9 * length / mean length)
    by meaning  the nearest vectors by their cosine, by pgvector
    hybrid      both, joined as those of an index on disk

It is BM25 with tantivy's terms and constants, computed by the server from the lists of the query's terms alone: a query
brings over the passages that it shows, and reads nothing else. Of very frequent terms only the best candidates by the
rarer ones get their share: adding up every list costs three times as much, and finds the same among ten.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decisor.errors import SetupError, ToolError
from decisor.tools.databases.sandbox.engine import Caps
from decisor.tools.databases.sandbox.process import Worker
from decisor.tools.documents.bm25 import K1, B, analyzer, query_terms
from decisor.tools.documents.embedder import Embedder, Reranker
from decisor.tools.documents.fusion import fuse_ranks
from decisor.tools.documents.index import LOOKED_AT, Mode, default_embedder, few_titles, record_of, reranked
from decisor.tools.documents.index_files import FORMAT, About
from decisor.tools.documents.passage import Passage
from decisor.tools.documents.table_place import ABOUT, TablePlace, Tables, not_ours, table_place
from decisor.tools.documents.vectors import SEARCHING
from decisor.types import Record, Table, Value

if TYPE_CHECKING:
    import tantivy

WORK_MB = 64
CAPS = Caps(rows=2_000, cell_chars=1_000_000, bytes=64_000_000)
OF_PASSAGES = """SELECT id, title, section, position, text, score FROM best JOIN {passages} USING (number)
ORDER BY score DESC, number"""
FEW, CANDIDATES = 100_000, 5_000
"""Entries of the rarest terms that are added up for all passages, and how many of these passages get the rest."""
SCORE = f"""worth / (1::float + ({K1 * (1 - B):.2f}::float + norm * (entry & 65535)) / (entry >> 16 & 65535))"""
BY_WORDS = f"""WITH lists AS (
    SELECT passages, n, sum(cardinality(passages)) OVER (ORDER BY n, term) AS upto FROM (
        SELECT term, passages, (sum(cardinality(passages)) OVER (PARTITION BY term))::float AS n
        FROM {{words}} WHERE term = ANY(:terms)) AS own
), every AS (
    SELECT (about->>'passages')::float AS every, greatest(terms, 1)::float AS terms FROM {{about}}
), weights AS MATERIALIZED (
    SELECT ln(1 + (every - n + 0.5) / (n + 0.5)) * {K1 + 1}::float AS worth,
        {K1 * B:.2f}::float * every / terms AS norm, passages,
        upto <= greatest({FEW}, min(upto) OVER ()) AS rare FROM lists, every
), rare AS (
    SELECT worth, norm, unnest(passages) AS entry FROM weights WHERE rare
), firsts AS MATERIALIZED (
    SELECT entry >> 32 AS number, sum({SCORE}) AS score FROM rare
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT greatest({CANDIDATES}, :most)
), others AS (
    SELECT worth, norm, unnest(passages) AS entry FROM weights WHERE NOT rare
), best AS (
    SELECT number, sum(score) AS score FROM (
        SELECT number, score FROM firsts UNION ALL
        SELECT entry >> 32, {SCORE} FROM others WHERE entry >> 32 IN (SELECT number FROM firsts)
    ) AS parts GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most
)
{OF_PASSAGES}"""
"""What is the same for all entries of a list is computed once (MATERIALIZED), and in floats: numbers with a point are
decimals in PostgreSQL, which cost ten times as much."""
BY_MEANING = f"""WITH best AS (
    SELECT number, 1 - (vector <=> :vector::halfvec) AS score FROM {{vectors}}
    ORDER BY vector <=> :vector::halfvec LIMIT :most
)
{OF_PASSAGES}"""
TITLES = "SELECT title FROM {passages} WHERE number = ANY(:numbers) ORDER BY number"
COLUMNS = """SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(:name) AND attnum > 0
    AND NOT attisdropped ORDER BY attnum"""


@dataclass(frozen=True, eq=False)
class TableIndex:
    """Open with ``await open_table(place)``. The connection is that of the databases' sandbox: a process of its own,
    that only reads. ``depth``: how many of each ranking are joined or ranked again."""

    worker: Worker
    tables: Tables
    about: About
    words: tantivy.TextAnalyzer
    mode: Mode = "bm25"
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    depth: int = 100

    async def find(self, query: str, limit: int = 10) -> tuple[Record, ...]:
        """As ``Index.find``. Raises ToolError where the server does not answer, or not in time."""
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
        terms = query_terms(self.words, query)
        return await self._records(BY_WORDS, {"terms": list(terms), "most": limit}) if terms and limit > 0 else ()

    async def by_meaning(self, query: str, limit: int) -> tuple[Record, ...]:
        assert self.embedder is not None
        vector = (await asyncio.to_thread(self.embedder.embed, [query]))[0]
        text = "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"
        return await self._records(BY_MEANING, {"vector": text, "most": limit})

    async def _records(self, query: str, parameters: Mapping[str, Value]) -> tuple[Record, ...]:
        table = await self._rows(query, parameters)
        return tuple(record_of(Passage(str(id), str(text), str(title), str(section), as_int(position)), as_float(score))
                     for id, title, section, position, text, score in table.rows)  # fmt: skip

    async def titles(self, most: int = 12) -> tuple[tuple[str, ...], bool]:
        """As ``Index.titles``."""
        step = max(1, self.about.next_number // LOOKED_AT)
        numbers: list[Value] = list(range(0, self.about.next_number + 1, step))
        rows = (await self._rows(TITLES, {"numbers": numbers})).rows
        return few_titles((str(title) for (title,) in rows), step == 1, most)

    async def _rows(self, query: str, parameters: Mapping[str, Value]) -> Table:
        return await self.worker.run(self.tables.sql(query), parameters, trusted=True)

    async def close(self) -> None:
        await self.worker.close()

    def __len__(self) -> int:
        """How many passages there are."""
        return self.about.passages


def as_int(value: Value) -> int:
    return value if isinstance(value, int) else 0


def as_float(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


async def open_table(
    place: TablePlace | str,
    mode: Mode | None = None,
    embedder: Embedder | None = None,
    reranker: Reranker | None = None,
    by_name: Callable[[str], Embedder | None] = lambda name: None,
) -> TableIndex:
    """``mode``: hybrid where there are vectors and None is said, else bm25. ``by_name``: the embedder of that name,
    where none is given.

    Raises:
        SetupError: the server does not answer, there is no such index, or it holds no vectors of ``embedder``.
    """
    place = table_place(place) if isinstance(place, str) else place
    worker = Worker("postgres", with_settings(place.url), CAPS, source=place.tables.name)
    try:
        await worker.start()
        about = await about_of(worker, place)
        mode = mode or ("hybrid" if about.embedder else "bm25")
        if mode != "bm25":
            embedder = embedder_for(place, about, embedder or by_name(about.embedder))
    except BaseException:
        await worker.close()
        raise
    return TableIndex(worker, place.tables, about, analyzer(about.language), mode, embedder, reranker)


def embedder_for(place: TablePlace, about: About, embedder: Embedder | None) -> Embedder:
    """Raises SetupError where the index has no vectors of it."""
    if not about.embedder:
        raise SetupError(f"The index {place} holds no vectors: build it again with --dense.")
    embedder = embedder or default_embedder(about.embedder)
    if embedder.name != about.embedder:
        raise SetupError(f"The index {place} was made by the embedder {about.embedder}, not {embedder.name}.")
    return embedder


async def about_of(worker: Worker, place: TablePlace) -> About:
    """Raises SetupError where there is no index, or one of another version."""
    tables = place.tables
    columns: dict[str, list[str]] = {}
    for part in ("", "about"):
        rows = (await worker.run(COLUMNS, {"name": tables.table(part)}, trusted=True)).rows
        columns[part] = [str(name) for (name,) in rows]
    if not columns["about"]:
        if columns[""]:
            raise not_ours(place, columns[""])
        raise SetupError(f"There is no table {place}: make an index with decisor index SOURCE --out {place}.")
    try:
        rows = (await worker.run(tables.sql(ABOUT), trusted=True)).rows
    except ToolError as error:
        raise SetupError(f"The index {place} cannot be read: {error}") from error
    return about_in(str(rows[0][0]) if rows else "", place)


def about_in(text: str, place: TablePlace) -> About:
    try:
        about = About(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise SetupError(f"The index {place} cannot be read: build it again with --fresh.") from error
    if about.format != FORMAT:
        raise SetupError(f"The index {place} has format {about.format}, not {FORMAT}: build it again with --fresh.")
    return about


def with_settings(url: str) -> str:
    """With what a search needs: enough neighbours that are looked at (HNSW), memory for the scores of a million."""
    settings = f"-c%20hnsw.ef_search%3D{SEARCHING}%20-c%20work_mem%3D{WORK_MB}MB"
    if own := re.search(r"[?&]options=[^&]*", url):
        return f"{url[: own.end()]}%20{settings}{url[own.end() :]}"
    return f"{url}{'&' if '?' in url else '?'}options={settings}"
