"""Servers whose own request differs from OpenAI's, though all else of a call is the same: vLLM's fields for structured
output, and Ollama's API with ``format`` and the length of its context.

A server of either kind that is named by its address alone is asked as any OpenAI-compatible endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from decisor.calls.settings import LMSettings
from decisor.lms.openai_compatible import OpenAICompatible
from decisor.lms.prices import Price

Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToVllm:
    """The schema in ``structured_outputs``, and in ``guided_json``, which versions before 0.12 read; without both, in
    ``response_format``."""

    def url(self, chat_url: str) -> str:
        return chat_url

    def body(self, body: Body, without: AbstractSet[str], settings: LMSettings) -> Body:
        schema = schema_in(body)
        own = {"structured_outputs": {"json": schema}, "guided_json": schema}
        own = {name: value for name, value in own.items() if name not in without}
        if schema is None or not own:
            return body
        return {name: value for name, value in body.items() if name != "response_format"} | own

    def reply(self, reply: object) -> object:
        return reply


@dataclass(frozen=True, slots=True)
class ToOllama:
    """``POST /api/chat``. A context that a person set is asked for, since Ollama cuts a longer prompt silently."""

    def url(self, chat_url: str) -> str:
        """
        >>> ToOllama().url("http://localhost:11434/v1/chat/completions")
        'http://localhost:11434/api/chat'
        """
        return chat_url.removesuffix("/chat/completions").removesuffix("/v1") + "/api/chat"

    def body(self, body: Body, without: AbstractSet[str], settings: LMSettings) -> Body:
        options = {own: body[name] for name, own in OPTIONS.items() if name in body}
        if settings.context:
            options["num_ctx"] = settings.context
        same = {name: body[name] for name in ("model", "messages", "tools") if name in body}
        form = schema_in(body) or ("json" if "response_format" in body else None)
        return {**same, "stream": False, "options": options, **({"format": form} if form else {})}

    def reply(self, reply: object) -> object:
        """As a chat completion; what is none stays as it is."""
        if not isinstance(reply, Mapping) or not isinstance(reply.get("message"), Mapping):
            return reply
        counts = {"prompt_tokens": reply.get("prompt_eval_count"), "completion_tokens": reply.get("eval_count")}
        usage = counts if all(isinstance(count, int) for count in counts.values()) else None
        choice = {"message": reply["message"], "finish_reason": reply.get("done_reason") or "stop"}
        return {"model": reply.get("model"), "choices": [choice], "usage": usage}


OPTIONS = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "num_predict",
           "max_completion_tokens": "num_predict", "stop": "stop", "seed": "seed"}  # fmt: skip


def schema_in(body: Body) -> object:
    """The JSON schema of a chat completion request; None where it has none."""
    form: object = body.get("response_format")
    for key in ("json_schema", "schema"):
        form = form.get(key) if isinstance(form, Mapping) else None
    return form


def vllm(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    return OpenAICompatible(model, base_url, key, price=price, adapter=ToVllm())


def ollama(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """Its replies are not streamed."""
    lm = OpenAICompatible(model, base_url, key, price=price, adapter=ToOllama())
    lm.dropped.add("stream")
    return lm
