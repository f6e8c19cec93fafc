"""One server on two sites, with an LLM over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decisor.server.settings import ServerSettings
from server.serving import Served, planner, served, sources
from servers.openai_server import serve_threaded


@pytest.fixture
def url() -> Iterator[str]:
    """Of an LLM that queries once and answers."""
    with serve_threaded(planner()) as url:
        yield url


@pytest.fixture
def site(tmp_path: Path, url: str) -> Iterator[Served]:
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as site:
        yield site
