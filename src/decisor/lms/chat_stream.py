"""The chunks of a stream of OpenAI's form, chat or completion, as the one reply that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisor.lms.counts import mapping
from decisor.lms.faults import fault_in_reply

LAST = "[DONE]"


class ChatParts:
    """Joins chunks. ``text``: what was written so far, of the reply, else of a tool's arguments, else of the thinking
    before it. Whole: the endpoint said that it was the last chunk, or why each choice ended."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.about: dict[str, object] = {}
        self.choices: dict[int, dict[str, Any]] = {}
        self.is_done = False

    @property
    def is_whole(self) -> bool:
        ends = [choice["finish_reason"] for choice in self.choices.values()]
        return self.is_done or (bool(ends) and all(ends))

    @property
    def text(self) -> str:
        first = next(iter(self.choices.values()), None)
        if first is None:
            return ""
        arguments = [call["function"]["arguments"] for call in first["tool_calls"].values()]
        written: str = "".join(first["text"]) or "".join(arguments) or "".join(first["thinking"])
        return written

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Raises LMError where it is an error."""
        if error := chunk.get("error"):
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, self.where)
        self.about |= {name: chunk[name] for name in ("usage", "timings", "model") if chunk.get(name)}
        choices = chunk.get("choices")
        for at, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, Mapping):
                index = choice.get("index")
                self._add_choice(index if isinstance(index, int) else at, choice)

    def _add_choice(self, index: int, choice: Mapping[str, Any]) -> None:
        whole = self.choices.setdefault(index, {
            "text": [], "thinking": [], "refusal": [], "tool_calls": {}, "logprobs": {}, "finish_reason": None,
            "is_chat": False})  # fmt: skip
        delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
        whole["is_chat"] = whole["is_chat"] or "text" not in choice
        for name, sources in (
            ("text", (delta.get("content"), choice.get("text"))),
            ("thinking", (delta.get("reasoning_content"), delta.get("reasoning"))),
            ("refusal", (delta.get("refusal"),)),
        ):
            whole[name] += [text for source in sources for text in texts_in(source)][:1]
        calls = delta.get("tool_calls")
        for at, call in enumerate(calls if isinstance(calls, list) else ()):
            add_tool_call(whole["tool_calls"], at, mapping(call))
        for name, values in mapping(choice.get("logprobs")).items():
            if isinstance(values, list):
                whole["logprobs"].setdefault(name, []).extend(values)
        whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]

    def reply(self, finish: str = "") -> dict[str, object]:
        """As it would have come at once. ``finish``: why it was ended here."""
        return {**self.about, "choices": [choice_of(whole, finish) for _, whole in sorted(self.choices.items())]}


def choice_of(whole: Mapping[str, Any], finish: str) -> dict[str, object]:
    text, calls = "".join(whole["text"]), list(whole["tool_calls"].values())
    ending = {"finish_reason": finish or whole["finish_reason"], "logprobs": whole["logprobs"] or None}
    if not whole["is_chat"]:
        return {"text": text, **ending}
    message = {
        "content": text if text or finish or not calls else None,
        "refusal": "".join(whole["refusal"]) or None,
        **({"tool_calls": calls} if calls else {}),
    }
    if not text and not calls and not finish and whole["finish_reason"] in ("length", "content_filter"):
        message["content"] = None
    return {"message": message, **ending}


def add_tool_call(calls: dict[int, dict[str, Any]], at: int, part: Mapping[str, Any]) -> None:
    index = part.get("index")
    call = calls.setdefault(
        index if isinstance(index, int) else at, {"type": "function", "function": {"name": "", "arguments": ""}}
    )
    call |= {name: part[name] for name in ("id", "type") if part.get(name)}
    for name, text in mapping(part.get("function")).items():
        if isinstance(text, str) and name in call["function"]:
            call["function"][name] += text


def texts_in(content: object) -> list[str]:
    """A text, or a list of parts with texts, as one; none where it is neither."""
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        return []
    joined = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return [joined] if joined else []
