"""The Responses API of OpenAI, which other servers speak too, as an adapter of chat completions.

Nothing is stored at the provider: the reasoning of a model comes encrypted among the items of its output, and goes back
with them. The API knows no stop words, seeds or several texts: texts are cut at stop words on our side, as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from decisor.llms.openai_compatible import Body, OpenAICompatible
from decisor.llms.prices import Price
from decisor.llms.retry import fault_in_reply
from decisor.llms.turns import drop_field, to_mapping
from decisor.runtime.call import LLMSettings

PATH = "/responses"
ENCRYPTED = "reasoning.encrypted_content"
FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
NAMES = {
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
        return PATH.join(chat_url.rsplit("/chat/completions", 1))

    def body(self, body: Body, without: AbstractSet[str], settings: LLMSettings) -> Body:
        turns: Any = body["messages"]
        sent = {NAMES[name]: value for name, value in body.items() if name in NAMES}
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
                {
                    "id": item.get("call_id"),
                    "function": {"name": item.get("name"), "arguments": item.get("arguments")},
                }
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
        finish = FINISH.get(str(reason), "loop" if reply.get("status") == "loop" else "stop")
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
