"""The events of a stream of the Messages API as the one message that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from decisor.lms.counts import mapping
from decisor.lms.faults import fault_in_reply


class MessageParts:
    """Joins events. ``text``: what was written so far, of texts, of a tool's input, of the thinking before them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.message: dict[str, Any] = {"content": [], "stop_reason": None, "usage": {}}
        self.blocks: dict[int, dict[str, Any]] = {}
        self.inputs: dict[int, str] = {}
        self.is_done = False

    @property
    def is_whole(self) -> bool:
        return self.is_done or bool(self.message["stop_reason"])

    @property
    def text(self) -> str:
        blocks = self.blocks.values()
        texts = ("".join(str(block.get(name) or "") for block in blocks) for name in ("text", "thinking"))
        written, thinking = texts
        return written or "".join(self.inputs.values()) or thinking

    def add(self, event: Mapping[str, Any]) -> None:
        """Raises LMError where it is an error."""
        if error := event.get("error"):
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, self.where)
        index = event.get("index")
        at = index if isinstance(index, int) else 0
        match event.get("type"):
            case "message_start":
                start = mapping(event.get("message"))
                self.message |= {name: start[name] for name in ("type", "model") if name in start}
                self._count(start.get("usage"))
            case "content_block_start":
                self.blocks[at] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                self._add_delta(at, mapping(event.get("delta")))
            case "message_delta":
                self.message["stop_reason"] = mapping(event.get("delta")).get("stop_reason")
                self._count(event.get("usage"))
            case "message_stop":
                self.is_done = True
            case _:
                pass

    def _count(self, usage: object) -> None:
        self.message["usage"] |= {name: count for name, count in mapping(usage).items() if count is not None}

    def _add_delta(self, at: int, delta: Mapping[str, Any]) -> None:
        block = self.blocks.setdefault(at, {"type": "text"})
        for name in ("text", "thinking"):
            if isinstance(delta.get(name), str):
                block[name] = str(block.get(name) or "") + delta[name]
        if isinstance(delta.get("partial_json"), str):
            self.inputs[at] = self.inputs.get(at, "") + delta["partial_json"]

    def reply(self, finish: str = "") -> dict[str, object]:
        """As it would have come at once. ``finish``: why it was ended here."""
        content = [self._block(at, block) for at, block in sorted(self.blocks.items())]
        return {**self.message, "content": content, **({"stop_reason": finish} if finish else {})}

    def _block(self, at: int, block: dict[str, object]) -> dict[str, object]:
        text = self.inputs.get(at, "")
        if not text.strip():
            return block
        try:
            return {**block, "input": json.loads(text)}
        except (ValueError, RecursionError):
            return {"type": "text", "text": text}  # it was cut off
