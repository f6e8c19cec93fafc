"""Any OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, and the many that speak the same."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Protocol
from urllib.parse import urlunsplit

from decisor.calling import Ways
from decisor.calls.settings import LMSettings
from decisor.errors import LMError
from decisor.lms.chat_stream import ChatParts
from decisor.lms.completions_api import choices_of, continuation_request, logprobs_of, parse_continuation
from decisor.lms.counts import chat_usage
from decisor.lms.endpoint import Endpoint, parse_address, within
from decisor.lms.facts import context_at
from decisor.lms.postprocess import postprocess, tidy
from decisor.lms.prices import Price
from decisor.lms.retry import Again, Retries
from decisor.lms.streaming import Send, as_shown, stream, while_it_writes
from decisor.lms.structured import (
    NO_SIZES,
    REFUSABLE,
    call_text,
    form_fields,
    instruction,
    likely_part,
    refused_field,
    remember,
    takes_no_sizes,
)
from decisor.secrets import Secret
from decisor.trace.writing import OnText
from decisor.types import Completion, Message, Sampling, Usage

OPENAI = "https://api.openai.com/v1"
MAX_STOPS = 4
# What an endpoint may refuse and we can do without, and how its complaint names it.
OPTIONAL = {
    **REFUSABLE,
    "stream_options": r"stream_options|include_usage",
    "stream": r"['\"`]stream['\"`]|streaming|param(?:eter)?s? stream\b",
    "max_tokens": r"max_tokens",
    "temperature": r"temperature",
    "top_p": r"top_p",
    "stop_sequences": r"stop_sequences",
    "stop": r"['\"`]stop['\"`]|stop (?:word|sequence)|param(?:eter)?s? stop\b",
    "seed": r"\bseed\b",
    "n": r"['\"`]n['\"`]|param(?:eter)?s? n\b",
    "skip_special_tokens": r"skip_special_tokens",
    "spaces_between_special_tokens": r"spaces_between_special_tokens",
}


STREAMED: Mapping[str, object] = {"stream": True, "stream_options": {"include_usage": True}}
EMPTY: Mapping[str, object] = {}


class Adapter(Protocol):
    """What a server of another kind is sent in place of a chat completion request, where, and how it replies."""

    def url(self, chat_url: str) -> str: ...

    def body(
        self, body: Mapping[str, object], without: AbstractSet[str], settings: LMSettings
    ) -> Mapping[str, object]: ...

    def reply(self, reply: object) -> object:
        """As a chat completion."""
        ...


class OpenAICompatible:
    """One LM behind ``POST {base_url}/chat/completions``, and for a continuation ``POST {base_url}/completions``.

    ``key``: sent as a bearer token, in another ``key_header`` as it is; many local endpoints need none. ``seconds``:
    wall clock for one completion with all its retries. ``max_bytes``: of a decoded reply. ``price``: None means
    unknown. ``adapter``: for a server with an API of its own. ``dropped`` collects what this endpoint refused, so that
    it is asked without from then on.
    """

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
        key: str | None = None,
        seconds: float = 300.0,
        max_bytes: int = 8 * 2**20,
        price: Price | None = None,
        retries: Retries | None = None,
        key_header: str = "Authorization",
        adapter: Adapter | None = None,
    ) -> None:
        self.name = model
        self.seconds = seconds
        self.price = price
        self.adapter = adapter
        self.dropped: set[str] = set()
        self.settings = LMSettings()
        self.ways = Ways()
        headers: dict[str, Secret | str] = {"User-Agent": "decisor"}
        if key:
            headers[key_header] = Secret(f"{'Bearer ' * (key_header == 'Authorization')}{key.strip()}")
        self.endpoint = Endpoint(chat_url(base_url), headers, max_bytes, retries or Retries())
        self.context = context_at(self.endpoint, model)
        if takes_no_sizes(self.endpoint.where):
            self.dropped.add(NO_SIZES)
        if key:
            self.endpoint.secrets.append(Secret(key.strip()))

    def __repr__(self) -> str:
        return f"OpenAICompatible({self.name!r} at {self.endpoint.where})"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """At most ``sampling.n`` texts (an endpoint may give one only), cut at the stop words also where the endpoint
        ignores them.

        Raises:
            LMError: no usable reply within ``seconds``.
        """
        ask = partial(self._ask, messages, sampling, self.endpoint.post, EMPTY)
        reply = await within(self.seconds, ask, self.endpoint.where, self.price)
        if len(reply.texts) <= sampling.n:
            return reply
        return replace(reply, texts=reply.texts[: sampling.n], logprobs=reply.logprobs[: sampling.n])

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """As ``complete``, with the text as it is written; ``seconds`` is the longest that nothing may come. Several
        texts are not streamed.

        Raises:
            LMError: no usable reply.
        """
        if sampling.n > 1 or "stream" in self.dropped:
            return await self.complete(messages, sampling)
        on_text, parts = as_shown(on_text, sampling.stop, self.endpoint), partial(ChatParts, self.endpoint.where)

        def ask(ends: float, bill: list[Usage], alive: Callable[[], None]) -> Awaitable[Completion]:
            send = partial(stream, self.endpoint, parts, on_text, alive)
            return self._ask(messages, sampling, send, STREAMED, ends, bill)

        return await while_it_writes(self.seconds, ask, self.endpoint, self.price)

    async def close(self) -> None:
        await self.endpoint.close()

    async def _ask(
        self, messages: Sequence[Message], sampling: Sampling, send: Send, more: Mapping[str, object], ends: float,
        bill: list[Usage],
    ) -> Completion:  # fmt: skip
        """``more``: what the body holds beside, as far as the endpoint takes it."""
        url = self._url(sampling)
        form = continuation_request if sampling.continuation else request
        read, guess = partial(self._read, messages, sampling), ""
        for _ in range(len(OPTIONAL) + 4):
            body = form(self.name, messages, sampling, self.dropped)
            body |= {name: value for name, value in more.items() if name not in self.dropped}
            sent = self._adapted(body, sampling)
            try:
                reply = await send(sent, read, ends, bill, url)
                remember(self.ways, self.dropped)
                return reply
            except LMError as error:
                refused = refused_part(error, {**body, **sent})
                likely = "" if refused or guess else likely_part(error, body)
                if not refused and not likely:
                    self.dropped.discard(guess)
                    raise
                guess = guess or likely
                self.dropped.add(refused or likely)
        raise AssertionError("unreachable")

    def _adapted(self, body: Mapping[str, object], sampling: Sampling) -> Mapping[str, object]:
        if self.adapter is None or sampling.continuation:
            return body
        return self.adapter.body(body, self.dropped, self.settings)

    def _url(self, sampling: Sampling) -> str:
        url = self.endpoint.url
        if sampling.continuation:
            return completions_url(url)
        return url if self.adapter is None else self.adapter.url(url)

    def _read(self, messages: Sequence[Message], sampling: Sampling, reply: object) -> Completion:
        parse = parse_continuation if sampling.continuation else parse_completion
        if self.adapter is not None and not sampling.continuation:
            reply = self.adapter.reply(reply)
        completion = parse(reply, messages, self.endpoint.where)
        return postprocess(completion, sampling, self.endpoint.secrets, self.price, self.name)


def chat_url(base_url: str) -> str:
    """
    >>> chat_url("http://localhost:11434"), chat_url("https://api.example.com/v1/")
    ('http://localhost:11434/v1/chat/completions', 'https://api.example.com/v1/chat/completions')
    """
    scheme, host, path, query, _ = parse_address(base_url.strip())
    path = path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urlunsplit((scheme, host, f"{path}/chat/completions", query, ""))


def completions_url(url: str) -> str:
    """
    >>> completions_url(chat_url("http://localhost:8000"))
    'http://localhost:8000/v1/completions'
    """
    return "/completions".join(url.rsplit("/chat/completions", 1))


def request(model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]) -> dict[str, object]:
    """The body of a chat completion request, leaving out what the endpoint is known to refuse."""
    turns = [{"role": message.role, "content": message.content} for message in messages]
    if turns and (words := instruction(sampling, without)):
        turns[-1]["content"] += f"\n\n{words}"
    limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
    parts: dict[str, object] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        limit: sampling.max_tokens,
        "stop": list(sampling.stop[:MAX_STOPS]) or None,
        "n": sampling.n if sampling.n > 1 else None,
        "seed": sampling.seed,
        "logprobs": True if sampling.logprobs else None,
        "top_logprobs": sampling.logprobs or None,
    }
    settings = {name: value for name, value in parts.items() if value is not None and name not in without}
    return {"model": model, "messages": turns, **settings, **form_fields(sampling, without)}


def refused_part(error: LMError, body: Mapping[str, object]) -> str | None:
    """The optional part of ``body`` that this refusal is about; None where it is about something else."""
    if error.kind != "request":
        return None
    text = str(error)
    names = (name for name, words in OPTIONAL.items() if name in body and re.search(words, text, re.I))
    return next((refused_field(name, body) for name in names), None)


def parse_completion(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """A chat completion object as a Completion.

    Raises:
        Again: it is none, it is empty, or it holds a passing error.
        LMError: it holds an error that will not pass.
    """
    if not isinstance(reply, dict):
        raise Again(f"{where} sent JSON that is no chat completion.")
    choices = choices_of(reply, where)
    try:
        read = [parse_choice(choice, where) for choice in choices]
    except Again as error:
        error.used = chat_usage(reply, messages, (), calls=0)
        raise
    texts = tuple(text for text, _ in read)
    model = reply.get("model")
    return Completion(
        texts,
        chat_usage(reply, messages, texts),
        read[0][1],
        tidy(model) if isinstance(model, str) else "",
        logprobs=logprobs_of(choices),
    )


def parse_choice(choice: object, where: str) -> tuple[str, str]:
    """The text of one choice and why it stopped; raises Again where it has no text and no reason for that."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Again(f"{where} sent a choice without a message.")
    finish = choice.get("finish_reason")
    content, refusal = message.get("content"), message.get("refusal")
    calls = message.get("tool_calls")
    if isinstance(calls, list) and (text := call_text(content, calls)):
        return text, finish if finish in ("length", "content_filter") else "stop"
    if finish == "error":
        raise Again(f"{where} broke off its completion with an error.")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    if isinstance(content, str) and (content or not refusal):
        return tidy(content), finish if isinstance(finish, str) else "stop"
    if isinstance(refusal, str) and refusal:
        return tidy(refusal), "refusal"
    if content is None and finish in ("length", "content_filter"):
        return "", finish
    raise Again(f"{where} sent a completion without text.")
