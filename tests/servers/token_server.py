"""A local endpoint of the older completions API around a function that writes tokens, as vLLM serves trained weights.

The function gets the request's JSON body and returns tokens, each with the probabilities of what may stand at its place
(its own among them). Stop words are honoured; special tokens leave the text, but not the token list, unless the request
says ``skip_special_tokens: false``; at most ``most`` alternatives are told, as a server allows.

    async with serve_tokens(lambda body: [Said("[Retrieval]", {"[Retrieval]": 0.9, "[No Retrieval]": 0.1})]) as url: ...
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from servers.openai_server import serve_app

SPECIAL = re.compile(r"\[[A-Z][^\]]*\]|</?paragraph>")


class Said(NamedTuple):
    text: str
    chances: dict[str, float]


def plainly(text: str, chance: float = 0.9) -> list[Said]:
    """Ordinary words, each with the same probability."""
    return [Said(word, {word: chance, " other": 1 - chance}) for word in re.findall(r"\s*\S+", text)]


@asynccontextmanager
async def serve_tokens(write: Callable[[dict[str, Any]], Sequence[Said]], most: int = 20) -> AsyncIterator[str]:
    async def completions(request: web.Request) -> web.Response:
        body = await request.json()
        if (body.get("logprobs") or 0) > most:
            message = f"Requested sample logprobs of {body['logprobs']}, which is greater than max allowed: {most}"
            return web.json_response({"error": {"message": message, "type": "BadRequestError"}}, status=400)
        usage = {"prompt_tokens": len(body["prompt"]) // 4, "completion_tokens": 9}
        choices = [choice(body, write(body))]
        return web.json_response(
            {"object": "text_completion", "model": body["model"], "choices": choices, "usage": usage}
        )

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/completions", completions)
    async with serve_app(app) as origin:
        yield f"{origin}/v1"


def choice(body: dict[str, Any], tokens: Sequence[Said]) -> dict[str, Any]:
    stops = body.get("stop") or []
    kept: list[Said] = []
    for said in tokens:
        if any(stop in said.text for stop in stops):
            break
        kept.append(said)
    shown = [said.text if body.get("skip_special_tokens") is False else SPECIAL.sub("", said.text) for said in kept]
    return {
        "index": 0,
        "text": "".join(shown),
        "finish_reason": "stop",
        "logprobs": logprobs(kept, body["logprobs"]) if body.get("logprobs") else None,
    }


def logprobs(tokens: Sequence[Said], many: int) -> dict[str, Any]:
    tops = [sorted(said.chances.items(), key=lambda item: -item[1])[:many] for said in tokens]
    return {
        "tokens": [said.text for said in tokens],
        "token_logprobs": [math.log(said.chances[said.text]) for said in tokens],
        "top_logprobs": [{text: math.log(chance) for text, chance in top} for top in tops],
        "text_offset": [0] * len(tokens),
    }
