"""Indexes in PostgreSQL: what they find beside an index on disk, and what an update, a failure and a stranger's table
leave."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

import decisor
from decisor.cli.sources import IndexRequest, build_or_update_index
from decisor.documents.index import (
    DocumentIndex,
    IndexMetadata,
    SourceDocument,
    build_index,
    build_memory_index,
    open_index,
    wrap_passages,
)
from decisor.documents.passage import Passage
from decisor.documents.postgres import (
    TablePassages,
    build_table_index,
    open_table_index,
    parse_table_place,
    update_table_index,
)
from decisor.documents.reader import RowForm
from decisor.errors import SetupError, ToolError
from decisor.llms.scripted import ScriptedLLM
from decisor.session.open_sources import open_documents
from decisor.testing import check_retriever
from decisor.types import Record
from servers.sql_databases import lacking, postgres_database

TOWNS = (
    Passage("t1", "Genua is a port on the Ligurian sea. It exports marble.", "Genua"),
    Passage("t2", "Kraków lies on the Vistula. It was the capital until 1596.", "Kraków"),
    Passage("t3", "The capital is the town where a government sits.", "Capital"),
    Passage("t4", "東京は日本の首都である。", "東京"),
)
QUERIES = (
    "Which city exports marbles?",
    "capital on the Vistula",
    "東京の首都",
    "krakow",
    "zebra",
    "'; DROP TABLE x; --",
)


@pytest.fixture
def url() -> Iterator[str]:
    with postgres_database([]) as url:
        yield url


@pytest.fixture
def place(url: str) -> str:
    build_table_index(TOWNS, f"{url}/towns")
    return f"{url}/towns"


@pytest.fixture
def with_vectors(url: str) -> str:
    """A database that can have vectors."""
    with psycopg.connect(url) as db:
        if not db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchall():
            lacking("pgvector on PostgreSQL at 127.0.0.1:5432", SetupError("no pgvector"))
    return url


class Letters:
    """Vectors of how often each of five letters is in a text."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[text.lower().count(letter) + 0.1 for letter in "aeiou"] for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@asynccontextmanager
async def opened(place: str, embedder: Letters | None = None) -> AsyncIterator[DocumentIndex]:
    table = await open_table_index(place, embedder=embedder)
    try:
        yield table
    finally:
        await table.close()


def rows_of(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as db:
        return db.execute(query.encode()).fetchall()


async def ids(place: str, query: str) -> list[str]:
    async with opened(place) as table:
        return [record.id for record in await table.find(query)]


async def test_the_same_passages_are_found_with_the_same_scores_as_on_disk(place: str, tmp_path: Path) -> None:
    build_index(TOWNS, tmp_path / "towns")
    local = open_index(tmp_path / "towns")
    async with opened(place) as table:
        await check_retriever(table, "capital")
        for query in QUERIES:
            assert await table.find(query) == await local.find(query)
        assert await table.titles() == await local.titles()
        assert len(table) == 4


async def test_what_an_update_leaves_ranks_as_if_it_were_built_anew(place: str) -> None:
    changed = (TOWNS[0], Passage("t2", "Kraków has a dragon.", "Kraków"), Passage("t5", "Łódź makes cloth.", "Łódź"))
    changes = build_table_index(changed, place)
    assert (changes.unchanged, changes.updated, changes.added, changes.deleted, changes.passages) == (1, 1, 1, 2, 3)
    async with opened(place) as table:
        for query in ("capital", "marble port", "dragon Kraków", "cloth"):
            assert await table.find(query) == await build_memory_index(changed).find(query)


async def test_texts_that_postgresql_cannot_hold_are_indexed_all_the_same(url: str) -> None:
    odd = (Passage("a\0", "marble\0port \\ \t {1,2} \ud800", "NULL\n\\N"), Passage("b", "port", "Genua"))
    build_table_index(odd, f"{url}/odd")
    assert await ids(f"{url}/odd", "marble") == ["a\ufffd"]
    assert build_table_index(odd, f"{url}/odd").unchanged == 2
    build_table_index(odd[1:], f"{url}/odd")
    assert rows_of(url, "SELECT term FROM odd_words ORDER BY term") == [("genua",), ("port",)]


async def test_many_passages_are_found_and_dropped_one_by_one(url: str) -> None:
    many = [Passage(f"p{at}", f"word{at % 5} common marble{at} " * (1 + at % 3), f"T{at % 4}") for at in range(60)]
    build_table_index(many, f"{url}/many")
    rest = [one for at, one in enumerate(many) if at % 3]
    changes = build_table_index([*rest, Passage("new", "common word1")], f"{url}/many")
    assert (changes.added, changes.deleted, changes.passages) == (1, 20, 41)
    local = build_memory_index([*rest, Passage("new", "common word1")])
    async with opened(f"{url}/many") as table:
        for query in ("common", "word1 marble4", "marble30", "T2 word3"):
            there, here = await table.find(query, 50), await local.find(query, 50)
            assert [record.score for record in there] == pytest.approx([record.score for record in here], rel=1e-4)
            assert {record.id for record in there} == {record.id for record in here}
    assert rows_of(url, "SELECT count(*) FROM many_words WHERE number NOT IN (SELECT number FROM many)") == [(0,)]


async def test_vectors_and_both_rankings_joined_are_those_of_an_index_on_disk(
    with_vectors: str, tmp_path: Path
) -> None:
    place = f"{with_vectors}/towns"
    build_table_index(TOWNS, place, embedder=Letters())
    build_index(TOWNS, tmp_path / "towns", embedder=Letters())
    for mode in ("dense", "hybrid"):
        local = open_index(tmp_path / "towns", mode, Letters())
        table = await open_table_index(place, mode, Letters())
        for query in QUERIES:
            there = await table.find(query, 3)
            here = await local.find(query, 3)
            assert [record.id for record in there] == [record.id for record in here]
            assert [record.score for record in there] == pytest.approx([record.score for record in here], abs=2e-3)
        await table.close()
    with pytest.raises(SetupError, match="made by the embedder letters: give it"):
        await open_table_index(place)


async def test_many_vectors_get_a_graph_of_neighbours_that_an_update_keeps(
    with_vectors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decisor.documents.postgres.EXACT", 20)
    place = f"{with_vectors}/many"
    many = [Passage(f"p{at}", "a" * (at % 7) + "e" * (at % 5) + "i" * (at % 11), str(at)) for at in range(40)]
    build_table_index(many, place, embedder=Letters())
    build_table_index(many[5:], place, embedder=Letters())
    assert rows_of(with_vectors, "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'") == [(1,)]
    async with opened(place, Letters()) as table:
        found = await replace(table, mode="dense").find(many[9].whole, 30)
        assert len(found) == 30 and found[0].id == "p9"
    build_table_index(many, place)
    assert rows_of(with_vectors, "SELECT count(vector) FROM many") == [(0,)]


class Reversed:
    async def score(self, query: str, records: Sequence[Record]) -> Sequence[float]:
        return list(range(len(records)))


async def test_a_reranker_has_the_last_word(place: str) -> None:
    table = await open_table_index(place, reranker=Reversed())
    assert [record.id for record in await table.find("capital on the Vistula", 1)] == ["t3"]
    await table.close()


async def test_a_build_that_fails_leaves_the_old_index(place: str) -> None:
    def broken() -> Iterator[SourceDocument]:
        yield from wrap_passages([Passage("x", "A marble statue.")])
        raise RuntimeError("the disk is gone")

    for fresh in (False, True):
        with pytest.raises(RuntimeError, match="disk is gone"):
            update_table_index(broken(), parse_table_place(place), IndexMetadata(), fresh=fresh)
    assert await ids(place, "marble") == ["t1"]
    assert await ids(place, "statue") == []


async def test_a_second_builder_is_kept_out_and_readers_are_not(place: str) -> None:
    async with opened(place) as table:

        def meanwhile() -> Iterator[SourceDocument]:
            with pytest.raises(SetupError, match="being built by another process"):
                build_table_index(TOWNS, place)
            yield from wrap_passages([Passage("x", "A marble statue.")])

        update_table_index(meanwhile(), parse_table_place(place), IndexMetadata(), fresh=True)
        assert [record.id for record in await table.find("marble")] == ["x"]


def test_a_table_that_something_else_made_is_neither_read_nor_replaced(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE articles (nr int PRIMARY KEY, body text)")
        db.execute("INSERT INTO articles VALUES (1, 'Marble is cut in Carrara.')")
    for fresh in (False, True):
        with pytest.raises(SetupError, match=r"is no index of passages.*decisor index .* --table articles --out"):
            update_table_index(wrap_passages(TOWNS), parse_table_place(f"{url}/articles"), IndexMetadata(), fresh=fresh)
    assert rows_of(url, "SELECT body FROM articles") == [("Marble is cut in Carrara.",)]


async def test_rows_of_a_stranger_s_table_are_searched_after_the_command_that_is_named(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE TABLE articles (nr int PRIMARY KEY, body text)")
        db.execute("INSERT INTO articles VALUES (1, 'Marble is cut in Carrara.'), (2, 'Salt comes from Trapani.')")
    with pytest.raises(SetupError, match="is no index of passages"):
        await open_documents(f"{url}/articles")
    out = f"{url}/articles_index"
    request = IndexRequest(url, out, "english", False, "", RowForm(text="body"), ("articles",))
    report = await asyncio.to_thread(
        build_or_update_index, request, lambda reading: nullcontext(lambda key, passages: None)
    )
    assert report.changes.added == 2
    tool = await open_documents(out)
    assert [record.source for record in (await tool.call("salt of Trapani")).records] == ["articles:2"]
    await tool.close()


async def test_what_is_asked_of_a_table_only_reads(place: str, url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE SEQUENCE s")
    async with opened(place) as table:
        assert isinstance(table.source, TablePassages)
        with pytest.raises(ToolError):
            await table.source.worker.run("DELETE FROM towns RETURNING id", trusted=True)
        with pytest.raises(ToolError, match="read-only"):
            await table.source.worker.run("SELECT setval('s', 1) FROM (SELECT 1) AS t", trusted=True)
    assert rows_of(url, "SELECT count(*) FROM towns") == [(4,)]


async def test_who_could_read_an_index_can_read_it_when_it_is_built_anew(place: str, url: str) -> None:
    with psycopg.connect(url) as db:
        for part in ("towns", "towns_words"):
            db.execute(f"GRANT SELECT ON {part} TO PUBLIC".encode())
    assert "language english, now german" in build_table_index(TOWNS, place, "german").anew
    readable = "SELECT count(*) FROM pg_class, aclexplode(relacl) AS a WHERE a.grantee = 0 AND relname LIKE 'towns%'"
    assert rows_of(url, readable) == [(2,)]


@pytest.mark.parametrize(
    ("end", "complaint"),
    [
        ("", "names no table of passages"),
        ("/a;b", "names no table of passages"),
        ("/nothing", "There is no table .*make an index with decisor index"),
    ],
)
async def test_a_place_without_an_index_is_said_in_a_line_without_its_password(
    url: str, end: str, complaint: str
) -> None:
    with pytest.raises(SetupError, match=complaint) as raised:
        await open_documents(url.replace("postgres@", "postgres:hunter22@") + end)
    assert "hunter22" not in str(raised.value) and "\n" not in str(raised.value)


def test_a_server_that_does_not_answer_is_said_without_the_password() -> None:
    with pytest.raises(SetupError, match=r"No index can be made in postgresql://me:.hidden.@127") as raised:
        build_table_index(TOWNS, "postgresql://me:hunter22@127.0.0.1:9/x/t")
    assert "hunter22" not in str(raised.value)


async def test_a_question_is_asked_of_a_table_and_its_trace_has_no_password(place: str, tmp_path: Path) -> None:
    secret = place.replace("postgres@", "postgres:hunter22@")
    llm = ScriptedLLM(["Final answer: Genua\nBecause: it exports marble [o1.r1]"])
    async with decisor.open(docs=secret) as data:
        assert "towns, 4 documents; titles:" in data.tools[0].describe()
        result = await data.ask("Which port exports marble?", technique="rag", llm=llm)
    assert result.answer == "Genua"
    result.save(tmp_path / "trace.jsonl")
    assert "hunter22" not in (tmp_path / "trace.jsonl").read_text()


def test_an_index_in_a_schema_lies_beside_what_is_there(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute("CREATE SCHEMA hr")
        db.execute("CREATE TABLE towns (id int)")
    build_table_index(TOWNS, f"{url}/hr.towns")
    build_table_index(TOWNS, f"{url}/hr.towns", "none")
    assert rows_of(url, "SELECT count(*) FROM hr.towns") == [(4,)]
    assert rows_of(url, "SELECT count(*) FROM public.towns") == [(0,)]
