"""A corpus whose vectors an endpoint made: indexed by the command, and searched by a set of questions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from decisor.cli import run_command_line as command
from decisor.errors import SetupError
from decisor.lab.qa.bench import open_corpus_index, open_passages_tool
from servers.openai_server import serve_app

COLOURS = {"sea": "blue waves", "fire": "red flames"}


async def embeddings(request: web.Request) -> web.Response:
    body = await request.json()
    vectors = [[1.0, 0.0] if "blue" in text or "azure" in text else [0.0, 1.0] for text in body["input"]]
    rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return web.json_response({"data": rows, "model": body["model"]})


async def test_the_endpoint_that_made_the_vectors_is_named_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": name, "text": text, "title": name}) for name, text in COLOURS.items()]
    Path("wiki.jsonl").write_text("\n".join(rows))
    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    async with serve_app(app) as origin:
        words = ["index", "wiki.jsonl", "--out", "wiki.index", "--embed", f"colours@{origin}"]
        assert await asyncio.to_thread(command, words) == 0
        place = open_corpus_index(Path("wiki.index"), "dense")
        with pytest.raises(SetupError, match="colours"):
            open_passages_tool(place, "dense", 1)
        monkeypatch.setenv("DECISOR_EMBED", f"colours@{origin}")
        tool = open_passages_tool(place, "dense", 1)
        observation = await tool.call("azure")
        assert [record.fields.get("title") for record in observation.records] == ["sea"]
        await tool.close()
