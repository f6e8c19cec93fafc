from __future__ import annotations

import json
import urllib.request
from typing import Any

import aiohttp

from servers.openai_server import serve, serve_threaded

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Where?"}], "stop": ["\nObservation"]}


def last_words(request: dict[str, Any]) -> str:
    return f"You said {request['messages'][-1]['content']}\nObservation: made up"


async def test_the_server_answers_with_the_function_and_honours_stop_words() -> None:
    async with (
        serve(last_words) as base_url,
        aiohttp.ClientSession() as session,
        session.post(f"{base_url}/chat/completions", json=REQUEST) as response,
    ):
        body = await response.json()
    assert body["choices"][0]["message"]["content"] == "You said Where?"


def test_the_threaded_server_answers_blocking_clients() -> None:
    with serve_threaded(last_words) as base_url:
        request = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(REQUEST).encode())
        with urllib.request.urlopen(request, timeout=60) as response:
            body = json.load(response)
    assert body["choices"][0]["message"]["content"] == "You said Where?"
