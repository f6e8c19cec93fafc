"""What a server sends that streams: events of OpenAI's form and of the Messages API, as bytes for ``wire_server``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def event(data: Any, end: bytes = b"\n") -> bytes:
    text = data.encode() if isinstance(data, str) else json.dumps(data, ensure_ascii=False).encode()
    return b"data: " + text + end + end


def piece(text: str, **choice: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **choice}]}


def ending(finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}


def chat(*texts: str, usage: dict[str, Any] | None = USAGE, done: bool = True, finish: str = "stop") -> list[Any]:
    """The events of a whole reply."""
    last: list[Any] = [{"choices": [], "usage": usage}] if usage else []
    return [*(piece(text) for text in texts), ending(finish), *last, *(["[DONE]"] if done else [])]


def body_of(events: Iterable[Any], end: bytes = b"\n") -> bytes:
    return b"".join(one if isinstance(one, bytes) else event(one, end) for one in events)


def streamed(body: bytes) -> bytes:
    """A whole reply, in chunks of HTTP."""
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def open_ended(body: bytes) -> bytes:
    """A reply whose end is the end of the connection."""
    return HEAD + b"\r\n" + body


def message_events(*texts: str, reason: str = "end_turn") -> list[dict[str, Any]]:
    """The events of a whole message of the Messages API."""
    start = {
        "type": "message",
        "model": "claude-x",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1},
    }
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
