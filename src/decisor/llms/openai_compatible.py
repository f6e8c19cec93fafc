"""Any OpenAI-compatible endpoint:

OpenAI, vLLM, Ollama, llama.cpp, and the many that speak the same.

A chat completion is asked for without the parts that the endpoint refused before. The older completions API, which
vLLM and llama.cpp speak too, continues a text as it stands, without a chat template; log-probabilities are read in the
form of either API. An adapter serves a server whose own request differs though all else of a call is the same: vLLM's
fields for structured output, and Ollama's API with ``format`` and the length of its context. A server of either kind
that is named by its address alone is asked as any OpenAI-compatible endpoint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlunsplit

from decisor.errors import LMError
from decisor.llms.concurrency import context_length_at
from decisor.llms.endpoint import Endpoint, parse_address, run_within
from decisor.llms.prices import Price
from decisor.llms.retry import Retries, RetryableError, fault_in_reply
from decisor.llms.streaming import ChatParts, Send, clean_shown_text, run_while_writing, stream_reply
from decisor.llms.structured_output import (
    NO_SIZES,
    REFUSABLE,
    build_form_fields,
    chat_usage,
    form_instruction,
    format_calls,
    guess_refused_part,
    next_dropped_field,
    postprocess_reply,
    remember_refusals,
    replace_lone_surrogates,
    takes_no_sizes,
)
from decisor.parsing.prompting import Ways
from decisor.runtime.call import LMSettings
from decisor.system.secrets import Secret
from decisor.trace.events import OnText
from decisor.types import Completion, Message, Sampling, Token, Usage

# vLLM's: control tokens are part of the text, and no spaces are put between them.
KEEP_CONTROL_TOKENS = {"skip_special_tokens": False, "spaces_between_special_tokens": False}


def build_continuation_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]
) -> dict[str, object]:
    """Build the body of a request to ``/completions``, without the parts that the endpoint refused."""
    parts: dict[str, object] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop[:MAX_STOPS]) or None,
        "n": sampling.n if sampling.n > 1 else None,
        "seed": sampling.seed,
        "logprobs": sampling.logprobs or None,
        **KEEP_CONTROL_TOKENS,
    }
    settings = {name: value for name, value in parts.items() if value is not None and name not in without}
    return {"model": model, "prompt": "".join(message.content for message in messages), **settings}


def read_completion_choices(reply: Mapping[str, object], where: str) -> list[object]:
    """Return the choices of a completion of either API, at least one.

    Raises:
        RetryableError: there is none, or a passing error in its place.
        LMError: there is an error that will not pass.
    """
    choices = reply.get("choices")
    if isinstance(choices, list) and choices:
        return choices
    error = reply.get("error")
    if error:
        raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, where)
    raise RetryableError(f"{where} sent a completion without choices.")


def parse_continuation(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """Parse a completion object as a Completion.

    Raises:
        RetryableError: it is none, it is empty, or it holds a passing error.
        LMError: it holds an error that will not pass.
    """
    if not isinstance(reply, Mapping):
        raise RetryableError(f"{where} sent JSON that is no completion.")
    choices = read_completion_choices(reply, where)
    rows = [choice for choice in choices if isinstance(choice, Mapping) and isinstance(choice.get("text"), str)]
    if len(rows) < len(choices):
        raise RetryableError(f"{where} sent a completion without text.")
    texts = tuple(replace_lone_surrogates(row["text"]) for row in rows)
    finish, model = rows[0].get("finish_reason"), reply.get("model")
    return Completion(
        texts,
        chat_usage(reply, messages, texts),
        finish if isinstance(finish, str) else "stop",
        replace_lone_surrogates(model) if isinstance(model, str) else "",
        logprobs=read_logprobs(choices),
    )


def read_logprobs(choices: Sequence[object]) -> tuple[tuple[Token, ...], ...]:
    """Return the tokens of each choice, or () if no choice has them."""
    if not any(choice.get("logprobs") for choice in choices if isinstance(choice, dict)):
        return ()
    read = [read_tokens(choice.get("logprobs") if isinstance(choice, dict) else None) for choice in choices]
    return tuple(read) if any(read) else ()


def read_tokens(logprobs: object) -> tuple[Token, ...]:
    """Read tokens with their log-probabilities, of the chat form or the older one.

    The chat form has ``content`` (objects with token, logprob, top_logprobs), the older one parallel lists. () if
    unreadable.

    >>> read_tokens({"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5, "b": -1.0}]})
    (Token(text='a', logprob=-0.5, top={'a': -0.5, 'b': -1.0}),)
    >>> read_tokens({"content": [{"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1.0}]}]})
    (Token(text='a', logprob=-0.5, top={'b': -1.0}),)
    """
    if not isinstance(logprobs, Mapping):
        return ()
    try:
        if isinstance(content := logprobs.get("content"), list):
            return tuple(
                build_token(
                    one["token"], one["logprob"], {t["token"]: t["logprob"] for t in one.get("top_logprobs") or ()}
                )
                for one in content
            )
        tops = logprobs.get("top_logprobs") or [{}] * len(logprobs["tokens"])
        rows = zip(logprobs["tokens"], logprobs["token_logprobs"], tops, strict=True)
        return tuple(build_token(text, logprob, top or {}) for text, logprob, top in rows)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def build_token(text: object, logprob: Any, top: Mapping[str, Any]) -> Token:
    """Build a token; raise ValueError or TypeError if a number is none.

    The first token of a text may have no log-probability.
    """
    values = {
        replace_lone_surrogates(str(name)): min(0.0, float(value))
        for name, value in top.items()
        if math.isfinite(float(value))
    }
    return Token(replace_lone_surrogates(str(text)), min(0.0, float(logprob)) if logprob is not None else 0.0, values)


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
    """A translation of chat completion requests and replies for a server of another API."""

    def url(self, chat_url: str) -> str: ...

    def body(
        self, body: Mapping[str, object], without: AbstractSet[str], settings: LMSettings
    ) -> Mapping[str, object]: ...

    def reply(self, reply: object) -> object:
        """Convert a reply to a chat completion."""
        ...


class OpenAICompatible:
    """An LLM behind ``POST {base_url}/chat/completions``. A continuation goes to ``POST {base_url}/completions``.

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
        self.context = context_length_at(self.endpoint, model)
        if takes_no_sizes(self.endpoint.where):
            self.dropped.add(NO_SIZES)
        if key:
            self.endpoint.secrets.append(Secret(key.strip()))

    def __repr__(self) -> str:
        return f"OpenAICompatible({self.name!r} at {self.endpoint.where})"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Ask for at most ``sampling.n`` texts, cut at the stop words.

        An endpoint may give one only, or ignore the stop words.

        Raises:
            LMError: no usable reply within ``seconds``.
        """
        ask = partial(self._ask, messages, sampling, self.endpoint.post, EMPTY)
        reply = await run_within(self.seconds, ask, self.endpoint.where, self.price)
        if len(reply.texts) <= sampling.n:
            return reply
        return replace(reply, texts=reply.texts[: sampling.n], logprobs=reply.logprobs[: sampling.n])

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """Ask as ``complete`` does, and show the text as it is written.

        ``seconds`` is the longest time without an event. Several texts are not streamed.

        Raises:
            LMError: no usable reply.
        """
        if sampling.n > 1 or "stream" in self.dropped:
            return await self.complete(messages, sampling)
        on_text, parts = (
            clean_shown_text(on_text, sampling.stop, self.endpoint),
            partial(ChatParts, self.endpoint.where),
        )

        def ask(ends: float, bill: list[Usage], alive: Callable[[], None]) -> Awaitable[Completion]:
            send = partial(stream_reply, self.endpoint, parts, on_text, alive)
            return self._ask(messages, sampling, send, STREAMED, ends, bill)

        return await run_while_writing(self.seconds, ask, self.endpoint, self.price)

    async def close(self) -> None:
        await self.endpoint.close()

    async def _ask(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        send: Send,
        more: Mapping[str, object],
        ends: float,
        bill: list[Usage],
    ) -> Completion:
        """Send requests until one is not refused, each without the parts that were. more: further fields of the body,
        as far as the endpoint takes them.
        """
        url = self._url(sampling)
        form = build_continuation_request if sampling.continuation else build_chat_request
        read, guess = partial(self._read, messages, sampling), ""
        for _ in range(len(OPTIONAL) + 4):
            body = form(self.name, messages, sampling, self.dropped)
            body |= {name: value for name, value in more.items() if name not in self.dropped}
            sent = self._adapted(body, sampling)
            try:
                reply = await send(sent, read, ends, bill, url)
                remember_refusals(self.ways, self.dropped)
                return reply
            except LMError as error:
                refused = find_refused_part(error, {**body, **sent})
                likely = "" if refused or guess else guess_refused_part(error, body)
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
        return postprocess_reply(completion, sampling, self.endpoint.secrets, self.price, self.name)


def chat_url(base_url: str) -> str:
    """Return the chat completions address of a base URL.

    >>> chat_url("http://localhost:11434"), chat_url("https://api.example.com/v1/")
    ('http://localhost:11434/v1/chat/completions', 'https://api.example.com/v1/chat/completions')
    """
    scheme, host, path, query, _ = parse_address(base_url.strip())
    path = path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urlunsplit((scheme, host, f"{path}/chat/completions", query, ""))


def completions_url(url: str) -> str:
    """Return the completions address beside a chat completions address.

    >>> completions_url(chat_url("http://localhost:8000"))
    'http://localhost:8000/v1/completions'
    """
    return "/completions".join(url.rsplit("/chat/completions", 1))


def build_chat_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]
) -> dict[str, object]:
    """Build the body of a chat completion request, without the parts that the endpoint refused."""
    turns = [{"role": message.role, "content": message.content} for message in messages]
    if turns and (words := form_instruction(sampling, without)):
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
    return {"model": model, "messages": turns, **settings, **build_form_fields(sampling, without)}


def find_refused_part(error: LMError, body: Mapping[str, object]) -> str | None:
    """Find the optional part of ``body`` that a refusal is about; None if it is about another thing."""
    if error.kind != "request":
        return None
    text = str(error)
    names = (name for name, words in OPTIONAL.items() if name in body and re.search(words, text, re.I))
    return next((next_dropped_field(name, body) for name in names), None)


def parse_completion(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """Parse a chat completion object as a Completion.

    Raises:
        RetryableError: it is none, it is empty, or it holds a passing error.
        LMError: it holds an error that will not pass.
    """
    if not isinstance(reply, dict):
        raise RetryableError(f"{where} sent JSON that is no chat completion.")
    choices = read_completion_choices(reply, where)
    try:
        read = [parse_choice(choice, where) for choice in choices]
    except RetryableError as error:
        error.used = chat_usage(reply, messages, (), calls=0)
        raise
    texts = tuple(text for text, _ in read)
    model = reply.get("model")
    return Completion(
        texts,
        chat_usage(reply, messages, texts),
        read[0][1],
        replace_lone_surrogates(model) if isinstance(model, str) else "",
        logprobs=read_logprobs(choices),
    )


def parse_choice(choice: object, where: str) -> tuple[str, str]:
    """Parse the text of one choice and why it stopped.

    Raises RetryableError if it has no text and no reason for that.
    """
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise RetryableError(f"{where} sent a choice without a message.")
    finish = choice.get("finish_reason")
    content, refusal = message.get("content"), message.get("refusal")
    calls = message.get("tool_calls")
    if isinstance(calls, list) and (text := format_calls(content, calls)):
        return text, finish if finish in ("length", "content_filter") else "stop"
    if finish == "error":
        raise RetryableError(f"{where} broke off its completion with an error.")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    if isinstance(content, str) and (content or not refusal):
        return replace_lone_surrogates(content), finish if isinstance(finish, str) else "stop"
    if isinstance(refusal, str) and refusal:
        return replace_lone_surrogates(refusal), "refusal"
    if content is None and finish in ("length", "content_filter"):
        return "", finish
    raise RetryableError(f"{where} sent a completion without text.")


Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToVllm:
    """An adapter for vLLM's fields of structured output.

    The schema is in ``structured_outputs``, and in ``guided_json``, which versions before 0.12 read; if both were
    refused, in ``response_format``.
    """

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
    """An adapter for Ollama's own ``POST /api/chat``.

    A context that a person set is asked for, since Ollama cuts a longer prompt silently.
    """

    def url(self, chat_url: str) -> str:
        """Return the address of Ollama's own API.

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
        """Convert a reply to a chat completion; any other object stays as it is."""
        if not isinstance(reply, Mapping) or not isinstance(reply.get("message"), Mapping):
            return reply
        counts = {"prompt_tokens": reply.get("prompt_eval_count"), "completion_tokens": reply.get("eval_count")}
        usage = counts if all(isinstance(count, int) for count in counts.values()) else None
        choice = {"message": reply["message"], "finish_reason": reply.get("done_reason") or "stop"}
        return {"model": reply.get("model"), "choices": [choice], "usage": usage}


OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "num_predict",
    "max_completion_tokens": "num_predict",
    "stop": "stop",
    "seed": "seed",
}


def schema_in(body: Body) -> object:
    """Return the JSON schema of a chat completion request; None if it has none."""
    form: object = body.get("response_format")
    for key in ("json_schema", "schema"):
        form = form.get(key) if isinstance(form, Mapping) else None
    return form


def vllm(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    return OpenAICompatible(model, base_url, key, price=price, adapter=ToVllm())


def ollama(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """Return an LLM behind Ollama's own API. Its replies are not streamed."""
    lm = OpenAICompatible(model, base_url, key, price=price, adapter=ToOllama())
    lm.dropped.add("stream")
    return lm
