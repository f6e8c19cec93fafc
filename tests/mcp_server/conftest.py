"""An LLM over HTTP that queries once and answers."""

from collections.abc import Iterator

import pytest

from server.serving import planner
from servers.openai_server import serve_threaded


@pytest.fixture
def llm() -> Iterator[str]:
    with serve_threaded(planner()) as url:
        yield f"m@{url}"
