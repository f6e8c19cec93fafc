"""Any OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp, and the many that speak the same.

A chat completion is asked for without the parts that the endpoint refused. The older completions API, which vLLM and
llama.cpp speak too, continues a text as it stands, without a chat template; replies and log-probabilities of both are
read alike. An adapter serves a server whose own request differs though all else of a call is the same: Ollama's API,
with ``format`` and the length of its context. A server that is named by its address alone is asked as any
OpenAI-compatible endpoint.

The Responses API of OpenAI, which other servers speak too, is another adapter. Nothing is stored at the provider: the
reasoning of a model comes encrypted among the items of its output, and goes back with them. The API knows no stop
words, seeds or several texts: texts are cut at stop words on our side, as always.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

from decisor.errors import LLMError
from decisor.llms.endpoint import build_api_url, open_endpoint
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.llms.prices import Price
from decisor.llms.retry import Retries, RetryableError, fault_in_reply
from decisor.llms.streaming import ChatParts, StreamParts
from decisor.llms.turns import (
    NO_SIZES,
    STRICT,
    THOUGHT_FIELDS,
    build_call,
    build_form_fields,
    chat_usage,
    drop_field,
    dump_arguments,
    find_refused_part,
    form_instruction,
    format_calls,
    guess_refused_part,
    list_named_calls,
    list_request_texts,
    read_raw,
    replace_lone_surrogates,
    to_mapping,
)
from decisor.runtime.call import LLMSettings
from decisor.runtime.prompt import list_turn_texts
from decisor.types import Completion, Message, Sampling, Token

OPENAI = "https://api.openai.com/v1"
MAX_STOPS = 4


class Adapter(Protocol):
    """A translation of chat completion requests and replies for a server of another API."""

    def url(self, chat_url: str) -> str: ...

    def body(
        self, body: Mapping[str, object], without: AbstractSet[str], settings: LLMSettings
    ) -> Mapping[str, object]: ...

    def reply(self, reply: object) -> object:
        """Convert a reply to a chat completion."""
        ...

    def open_parts(self, where: str) -> StreamParts: ...


class OpenAICompatible(EndpointLLM):
    """An LLM behind ``POST {base_url}/chat/completions``. A continuation goes to ``POST {base_url}/completions``.

    ``key``: sent as a bearer token, in another ``key_header`` as it is; many local endpoints need none. ``max_bytes``:
    of a decoded reply. ``adapter``: for a server with an API of its own.
    """

    stream_fields = {"stream": True, "stream_options": {"include_usage": True}}  # noqa: RUF012
    ways_of_field = {"response_format": ("json",), "tools": ("tools",)}  # noqa: RUF012

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
        url = build_api_url(base_url, "/chat/completions")
        endpoint = open_endpoint(url, key, max_bytes=max_bytes, retries=retries, key_header=key_header)
        self.connect(model, endpoint, seconds, price)
        self.adapter = adapter
        # Known ahead, so that not even the first call is refused.
        if endpoint.where.partition(":")[0].endswith(STRICT):
            self.dropped.add(NO_SIZES)

    def build_request(self, messages: Sequence[Message], sampling: Sampling) -> tuple[dict[str, object], str]:
        url = self.endpoint.url
        if sampling.continuation:
            body = build_continuation_request(self.name, messages, sampling, self.dropped)
            return body, "/completions".join(url.rsplit("/chat/completions", 1))
        body = build_chat_request(self.name, messages, sampling, self.dropped)
        return body, "" if self.adapter is None else self.adapter.url(url)

    def adapt(self, body: Mapping[str, object], sampling: Sampling) -> Mapping[str, object]:
        if self.adapter is None or sampling.continuation:
            return body
        return self.adapter.body(body, self.dropped, self.settings)

    def parse_reply(self, reply: object, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if self.adapter is not None and not sampling.continuation:
            reply = self.adapter.reply(reply)
        return parse_completion(reply, messages, sampling, self.endpoint.where)

    def open_parts(self) -> StreamParts:
        return ChatParts(self.endpoint.where) if self.adapter is None else self.adapter.open_parts(self.endpoint.where)

    def find_refused(self, error: LLMError, body: Mapping[str, object]) -> str:
        return find_refused_part(error, body)

    def guess_refused(self, error: LLMError, body: Mapping[str, object]) -> str:
        return guess_refused_part(error, body)


def build_chat_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]
) -> dict[str, object]:
    """Build the body of a chat completion request, without the parts that the endpoint refused."""
    turns = [build_chat_turn(message, model) for message in messages]
    if turns and (words := form_instruction(sampling, without)):
        turns[-1]["content"] = f"{messages[-1].content}\n\n{words}"
    settings = build_sampling_fields(
        sampling,
        without,
        # OpenAI's reasoning models refuse max_tokens and take the newer name; many servers know only the older one.
        limit="max_completion_tokens" if "max_tokens" in without else "max_tokens",
        logprobs=True if sampling.logprobs else None,
        top_logprobs=sampling.logprobs or None,
    )
    return {"model": model, "messages": turns, **settings, **build_form_fields(sampling, without)}


def build_chat_turn(message: Message, model: str) -> dict[str, object]:
    """Build a turn of a chat completion request, with the thoughts of this model in it."""
    turn: dict[str, object] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        turn["tool_call_id"] = message.call_id
    raw: Mapping[str, Any] = read_raw(message, model, "chat") or {}
    if message.calls:
        turn["content"] = message.content or None
        calls = [{"id": call.id, "type": "function", "function": {"name": call.name}} for call in message.calls]
        # The signature of a thought may stand in a call, so its other fields go back too.
        turn["tool_calls"] = [
            {**row, "id": call.id, "function": {**row["function"], "arguments": dump_arguments(call)}}
            for row, call in zip(raw.get("tool_calls", calls), message.calls, strict=True)
        ]
    return turn | {name: value for name, value in raw.items() if name != "tool_calls"}


def build_continuation_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]
) -> dict[str, object]:
    """Build the body of a request to ``/completions``, without the parts that the endpoint refused."""
    settings = build_sampling_fields(
        sampling,
        without,
        logprobs=sampling.logprobs or None,
        # vLLM's: control tokens are part of the text, and no spaces are put between them.
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
    )
    return {"model": model, "prompt": "".join(message.content for message in messages), **settings}


def build_sampling_fields(
    sampling: Sampling, without: set[str], limit: str = "max_tokens", **more: object
) -> dict[str, object]:
    """Build the fields that both APIs share, and ``more``; without values of None and refused fields."""
    fields: dict[str, object] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        limit: sampling.max_tokens,
        # OpenAI takes four; the others are cut on our side.
        "stop": list(sampling.stop[:MAX_STOPS]) or None,
        "n": sampling.n if sampling.n > 1 else None,
        "seed": sampling.seed,
        **more,
    }
    return {name: value for name, value in fields.items() if value is not None and name not in without}


def parse_completion(reply: object, messages: Sequence[Message], sampling: Sampling, where: str) -> Completion:
    """Parse a completion of either API.

    Raises:
        RetryableError: it is none, it is empty, or it holds a passing error.
        LLMError: it holds an error that will not pass.
    """
    if not isinstance(reply, Mapping):
        raise RetryableError(f"{where} sent JSON that is no chat completion.")
    choices = reply.get("choices")
    # Some endpoints send an error with status 200.
    if not isinstance(choices, list) or not choices:
        if error := reply.get("error"):
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, where)
        raise RetryableError(f"{where} sent a completion without choices.")
    sent = list_request_texts(messages, sampling)
    try:
        rows = [parse_choice(choice, messages, sampling, where) for choice in choices]
    except RetryableError as error:
        error.used = chat_usage(reply, sent, (), calls=0)
        raise
    model, tokens = reply.get("model"), tuple(read_tokens(choice.get("logprobs")) for choice in choices)
    turn, finish = rows[0]
    return Completion(
        tuple(turn.content for turn, _ in rows),
        chat_usage(reply, sent, [text for turn, _ in rows for text in list_turn_texts(turn)]),
        finish,
        replace_lone_surrogates(model) if isinstance(model, str) else "",
        logprobs=tokens if any(tokens) else (),
        turn=turn if sampling.tools else None,
    )


def parse_choice(choice: object, messages: Sequence[Message], sampling: Sampling, where: str) -> tuple[Message, str]:
    """Parse the turn of one choice and why it stopped. Calls of ``sampling.functions`` are its content, as JSON.

    Raises RetryableError if it has no text and no reason for that.
    """
    if not isinstance(choice, Mapping):
        raise RetryableError(f"{where} sent a choice without a message.")
    finish, message = choice.get("finish_reason"), choice.get("message", {"content": choice.get("text")})
    if not isinstance(message, Mapping) or not choice.keys() & {"message", "text"}:
        raise RetryableError(f"{where} sent a choice without a message.")
    content, refusal = message.get("content"), message.get("refusal")
    raw = {name: message[name] for name in THOUGHT_FIELDS if message.get(name) is not None}
    # Content as a list of parts, as some endpoints send it; of Mistral's models that think, the thoughts among them.
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        if any(part.get("type") == "thinking" for part in parts):
            raw["content"] = content
        content = "".join(str(part.get("text", "")) for part in parts)
    text = replace_lone_surrogates(content) if isinstance(content, str) else ""
    rows = list_named_calls(message.get("tool_calls"), messages)
    calls = tuple(build_call(row["id"], row["function"]["name"], row["function"].get("arguments")) for row in rows)
    # A call of a function is a reply, whatever finish reason the endpoint gives it.
    if calls:
        finish = finish if finish in ("length", "content_filter", "loop") else "stop"
        if not sampling.tools:
            return Message("assistant", format_calls(text, calls)), finish
    elif finish == "error":
        raise RetryableError(f"{where} broke off its completion with an error.")
    elif not text and isinstance(refusal, str) and refusal:
        return Message("assistant", replace_lone_surrogates(refusal)), "refusal"
    # A model that thinks may use up its tokens before it writes a word: empty, but no fault of the connection. After
    # results of tools an empty reply is usual, and asking the same again would bring no other.
    elif not (isinstance(content, str) or finish in ("length", "content_filter") or sampling.tools):
        raise RetryableError(f"{where} sent a completion without text.")
    if any(value for row in rows for name, value in row.items() if name not in ("id", "type", "index", "function")):
        raw["tool_calls"] = [{**row, "function": drop_field(row["function"], "arguments")} for row in rows]
    return Message("assistant", text, calls, raw={"chat": raw} if raw else None), (
        finish if isinstance(finish, str) and finish != "tool_calls" else "stop"
    )


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


Body = Mapping[str, object]


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

    def body(self, body: Body, without: AbstractSet[str], settings: LLMSettings) -> Body:
        options = {own: body[name] for name, own in OPTIONS.items() if name in body}
        if settings.context:
            # Ollama cuts the prompt at its own default without saying so.
            options["num_ctx"] = settings.context
        same = {name: body[name] for name in ("model", "messages", "tools") if name in body}
        same["messages"] = build_ollama_turns(body["messages"])
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

    def open_parts(self, where: str) -> ChatParts:
        return ChatParts(where)


def build_ollama_turns(turns: Any) -> list[dict[str, object]]:
    """Build Ollama's own turns of those of a chat completion: arguments are objects, and a result names its tool."""
    name_of = {call["id"]: call["function"]["name"] for turn in turns for call in turn.get("tool_calls", ())}
    rows = []
    for turn in turns:
        row = {**turn, "content": turn["content"] or ""}
        if calls := turn.get("tool_calls"):
            objects = [{**call["function"], "arguments": json.loads(call["function"]["arguments"])} for call in calls]
            row["tool_calls"] = [{**call, "function": object} for call, object in zip(calls, objects, strict=True)]
        if "tool_call_id" in turn:
            row["tool_name"] = name_of.get(turn["tool_call_id"], "")
        rows.append(row)
    return rows


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


def ollama(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """Return an LLM behind Ollama's own API. Its replies are not streamed."""
    llm = OpenAICompatible(model, base_url, key, price=price, adapter=ToOllama())
    llm.dropped.add("stream")
    return llm


RESPONSES_PATH = "/responses"
ENCRYPTED = "reasoning.encrypted_content"
RESPONSES_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
RESPONSES_NAMES = {
    "model": "model",
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "tool_choice": "tool_choice",
    "parallel_tool_calls": "parallel_tool_calls",
    "stream": "stream",
}
"""Fields of a chat completion request, and what this API calls them."""


class ToResponses:
    """An adapter for ``POST {base_url}/responses``."""

    def url(self, chat_url: str) -> str:
        """Return the address of the Responses API.

        >>> ToResponses().url("https://api.openai.com/v1/chat/completions")
        'https://api.openai.com/v1/responses'
        """
        return RESPONSES_PATH.join(chat_url.rsplit("/chat/completions", 1))

    def body(self, body: Body, without: AbstractSet[str], settings: LLMSettings) -> Body:
        turns: Any = body["messages"]
        sent = {RESPONSES_NAMES[name]: value for name, value in body.items() if name in RESPONSES_NAMES}
        sent |= {"input": [item for turn in turns for item in build_items(turn)], "store": False}
        if "include" not in without:
            sent["include"] = [ENCRYPTED]
        if tools := body.get("tools"):
            # Not strict: a strict schema requires every property.
            sent["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in tools]  # type: ignore[attr-defined]
        if form := to_mapping(body.get("response_format")):
            sent["text"] = {"format": {"type": form["type"], **to_mapping(form.get("json_schema"))}}
        return sent

    def reply(self, reply: object) -> object:
        """Convert a response to a chat completion; any other object stays as it is."""
        items = reply.get("output") if isinstance(reply, Mapping) else None
        if not isinstance(reply, Mapping) or not isinstance(items, list) or reply.get("error"):
            return reply
        items = [item for item in items if isinstance(item, Mapping)]
        parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or ()]
        texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
        message: dict[str, object] = {
            "content": "".join(texts) if texts else None,
            "refusal": "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"),
            "tool_calls": [
                {"id": item.get("call_id"), "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
                for item in items
                if item.get("type") == "function_call"
            ],
        }
        thoughts = [item for item in items if item.get("type") == "reasoning"]
        # Without its content an item is looked for in a store where it is not, and the calls beside it name it.
        if thoughts and all(item.get("encrypted_content") or item.get("content") for item in thoughts):
            message["output"] = [
                drop_field(item, "arguments") if item.get("type") == "function_call" else item for item in items
            ]
        reason = to_mapping(reply.get("incomplete_details")).get("reason")
        finish = RESPONSES_FINISH.get(str(reason), "loop" if reply.get("status") == "loop" else "stop")
        counts = to_mapping(reply.get("usage"))
        usage = {
            "prompt_tokens": counts.get("input_tokens"),
            "completion_tokens": counts.get("output_tokens"),
            "prompt_tokens_details": counts.get("input_tokens_details"),
        }
        choice = {"message": message, "finish_reason": finish}
        return {"model": reply.get("model"), "choices": [choice], "usage": usage}

    def open_parts(self, where: str) -> ResponseParts:
        return ResponseParts(where)


def build_items(turn: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Build the input items of one turn of a chat completion; an output that this model wrote goes back as it came."""
    if turn["role"] == "tool":
        return [{"type": "function_call_output", "call_id": turn["tool_call_id"], "output": turn["content"]}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in turn.get("tool_calls", ())
    ]
    if "output" in turn:
        written = iter(calls)
        return [{**item, **next(written)} if item.get("type") == "function_call" else item for item in turn["output"]]
    words = {"type": "message", "role": turn["role"], "content": turn["content"]}
    return [*([words] if turn["content"] or not calls else []), *calls]


class ResponseParts:
    """A response that is joined from the events of its stream."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.response: Mapping[str, Any] = {}
        self.items: dict[int, dict[str, Any]] = {}
        self.pieces: dict[str, dict[int, str]] = {"output_text": {}, "function_call_arguments": {}, "reasoning": {}}
        self.is_done = False

    @property
    def is_whole(self) -> bool:
        return bool(self.response)

    @property
    def text(self) -> str:
        return next((text for pieces in self.pieces.values() if (text := "".join(pieces.values()))), "")

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event; raise LLMError if it is an error."""
        kind = str(event.get("type") or "").removeprefix("response.")
        error = event.get("error") or (event if kind == "error" else to_mapping(event.get("response")).get("error"))
        if error:
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, self.where)
        index = event.get("output_index")
        at = index if isinstance(index, int) else 0
        name, _, action = kind.rpartition(".")
        if kind in ("output_item.added", "output_item.done"):
            self.items[at] = dict(to_mapping(event.get("item")))
        elif action == "delta" and isinstance(delta := event.get("delta"), str):
            pieces = self.pieces.get("reasoning" if name.startswith("reasoning") else name, {})
            pieces[at] = pieces.get(at, "") + delta
        elif kind in ("completed", "incomplete"):
            self.response, self.is_done = to_mapping(event.get("response")), True

    def reply(self, finish: str = "") -> dict[str, object]:
        """Return the response as an endpoint without a stream sends it. finish: why it was ended here."""
        if self.response.get("output"):
            return {**self.response}
        for at, text in self.pieces["output_text"].items():
            self.items.setdefault(at, {"type": "message"})["content"] = [{"type": "output_text", "text": text}]
        for at, text in self.pieces["function_call_arguments"].items():
            self.items.setdefault(at, {"type": "function_call"})["arguments"] = text
        items = [item for _, item in sorted(self.items.items())]
        return {**self.response, "output": items, **({"status": finish} if finish else {})}


def responses(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """Return an LLM behind the Responses API. ``base_url``: with or without ``/responses``."""
    return OpenAICompatible(model, base_url, key, price=price, adapter=ToResponses())
