"""The Messages API of Anthropic: requests, replies, streams, and the marks for its cache.

A prompt is marked for the cache after the system text, and where it departs from an earlier one. A prefix is found
again only where a block ended, so prompts that begin alike are cut at the same places.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisor.errors import LLMError
from decisor.llms.endpoint import open_endpoint
from decisor.llms.endpoint_llm import EndpointLLM
from decisor.llms.prices import Price
from decisor.llms.retry import Retries, RetryableError, fault_in_reply
from decisor.llms.turns import (
    anthropic_usage,
    build_call,
    drop_field,
    find_refused_part,
    form_instruction,
    format_calls,
    list_request_texts,
    load_arguments,
    read_raw,
    replace_lone_surrogates,
    to_mapping,
)
from decisor.runtime.prompt import list_turn_texts
from decisor.trace.prompts import common_affix_length
from decisor.types import Completion, Message, Sampling, ToolCall


class MessageParts:
    """A message that is joined from the events of its stream."""

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
        # Shown is the text, else the input of a tool, else the thinking before them.
        written, thinking = (
            "".join(str(block.get(name) or "") for block in self.blocks.values()) for name in ("text", "thinking")
        )
        return written or "".join(self.inputs.values()) or thinking

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event; raise LLMError if it is an error."""
        if error := event.get("error"):
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, self.where)
        index = event.get("index")
        at = index if isinstance(index, int) else 0
        match event.get("type"):
            case "message_start":
                start = to_mapping(event.get("message"))
                self.message |= {name: start[name] for name in ("type", "model") if name in start}
                self._count(start.get("usage"))
            case "content_block_start":
                self.blocks[at] = dict(to_mapping(event.get("content_block")))
            case "content_block_delta":
                block, delta = self.blocks.setdefault(at, {"type": "text"}), to_mapping(event.get("delta"))
                for name in ("text", "thinking", "signature"):
                    if isinstance(piece := delta.get(name), str):
                        block[name] = str(block.get(name) or "") + piece
                if isinstance(piece := delta.get("partial_json"), str):
                    self.inputs[at] = self.inputs.get(at, "") + piece
            case "message_delta":
                self.message["stop_reason"] = to_mapping(event.get("delta")).get("stop_reason")
                self._count(event.get("usage"))
            case "message_stop":
                self.is_done = True
            case _:
                pass

    def _count(self, usage: object) -> None:
        self.message["usage"] |= {name: count for name, count in to_mapping(usage).items() if count is not None}

    def reply(self, finish: str = "") -> dict[str, object]:
        """Return the message as an endpoint without a stream sends it. finish: why it was ended here."""
        content = []
        for at, block in sorted(self.blocks.items()):
            text = self.inputs.get(at, "")
            try:
                content.append({**block, "input": json.loads(text)} if text.strip() else block)
            except (ValueError, RecursionError):
                content.append({**block, "input": text})  # it was cut off
        return {**self.message, "content": content, **({"stop_reason": finish} if finish else {})}


WORTH = 3_000
"""Characters; shorter prefixes are not kept by the endpoint."""
RECENT = 64
ALIKE = 256
"""Characters that prompts have in common at least, to be compared."""
MARK = {"cache_control": {"type": "ephemeral"}}
Place = tuple[int, int]
"""A turn, and a position in its text."""


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt that was sent."""

    turns: tuple[tuple[str, str], ...]
    """Pairs of role and text."""
    cuts: tuple[Place, ...]
    """Ends of its blocks, in order."""


@dataclass
class CacheMarks:
    """The recent prompts of one LLM, by which new prompts are marked for the endpoint's cache."""

    recent: deque[SentPrompt] = field(default_factory=lambda: deque(maxlen=RECENT))

    def system(self, text: str) -> str | list[dict[str, object]]:
        return [{"type": "text", "text": text, **MARK}] if len(text) >= WORTH else text

    def messages(self, turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Build turns with blocks that end where an earlier prompt begins to differ.

        The last common block has the mark.
        """
        # A mark alone is not found again: the endpoint keeps a prefix only up to the end of a block.
        texts = tuple((turn["role"], turn["content"]) for turn in turns)
        place, cuts = self._place(texts)
        self.recent.appendleft(SentPrompt(texts, cuts))
        marked = [dict(turn) for turn in turns]
        for number, turn in enumerate(marked):
            if ends := [at for of, at in cuts if of == number]:
                turn["content"] = split_into_blocks(turns[number]["content"], ends, place == (number, ends[-1]))
        return marked

    def _place(self, turns: tuple[tuple[str, str], ...]) -> tuple[Place | None, tuple[Place, ...]]:
        """Find the end of the longest common beginning with a recent prompt, and the cuts up to it.

        None and () if it is shorter than ``WORTH``.
        """
        best: Place = (0, 0)
        cuts: tuple[Place, ...] = ()
        # The first characters sort out prompts of other techniques before the whole texts are compared.
        for prompt in self.recent:
            if (
                prompt.turns[0][1][:ALIKE] == turns[0][1][:ALIKE]
                and (place := find_common_end(prompt.turns, turns)) > best
            ):
                best, cuts = place, tuple(cut for cut in prompt.cuts if cut <= place)
        # Writing to the cache costs more than a plain prompt: a short beginning is not worth it.
        if sum(len(text) for _, text in turns[: best[0]]) + best[1] < WORTH:
            return None, ()
        return best, cuts if best in cuts else (*cuts, best)


def split_into_blocks(text: str, ends: Sequence[int], is_marked: bool) -> list[dict[str, object]]:
    """Split a text into blocks at ``ends``; the block that ends last may have the mark.

    >>> split_into_blocks("abc", [1, 2], True)[1:]
    [{'type': 'text', 'text': 'b', 'cache_control': {'type': 'ephemeral'}}, {'type': 'text', 'text': 'c'}]
    """
    starts = [0, *ends]
    pieces = [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
    row: list[dict[str, object]] = [{"type": "text", "text": piece} for piece in pieces if piece]
    if is_marked:
        row[len(ends) - 1] |= MARK
    return row


def find_common_end(before: Sequence[tuple[str, str]], turns: Sequence[tuple[str, str]]) -> Place:
    """Find the place up to which two prompts are equal, in whole lines.

    It is the end of a turn rather than the beginning of the next.

    >>> find_common_end([("user", "a"), ("user", "b\\nc")], [("user", "a"), ("user", "b\\nd")])
    (1, 2)
    >>> find_common_end([("user", "a"), ("user", "b")], [("user", "a"), ("user", "c")])
    (0, 1)
    """
    same = 0
    while same < min(len(before), len(turns)) and before[same] == turns[same]:
        same += 1
    if same < min(len(before), len(turns)) and before[same][0] == turns[same][0]:
        text = turns[same][1]
        length = common_affix_length(before[same][1], text, False)
        if length < len(text):
            # Whole lines: a block that ends within a word would be tokenized otherwise than the text.
            length = text.rfind("\n", 0, length) + 1
        if length:
            return same, length
    while same and not turns[same - 1][1]:  # a turn without text has no block to mark
        same -= 1
    return (same - 1, len(turns[same - 1][1])) if same else (0, 0)


ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
MAX_TOKENS = 8192
REPLY = "reply"
"""The tool whose input is the reply, where that is to fit a schema."""
USE_REPLY = f"Reply by using the tool {REPLY}, once, and write nothing else."
USE_ONE = "Reply by using one of the tools, once, and write nothing else."
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "refusal": "refusal",
    "model_context_window_exceeded": "length",
    "loop": "loop",
}

DROPPABLE = ("temperature", "top_p", "stop_sequences", "tool_choice", "tools")


class Anthropic(EndpointLLM):
    """An LLM behind ``POST {base_url}/v1/messages``.

    A schema is asked for as the input of a tool that must be used; of a model that refuses to be forced (one that
    thinks), by an instruction, from its first refusal on. ``n`` texts are ``n`` calls; a seed is not offered.
    """

    stream_fields = {"stream": True}  # noqa: RUF012
    ways_of_field = {"tools": ("json", "tools")}  # noqa: RUF012

    def __init__(
        self,
        model: str,
        key: str,
        base_url: str = ANTHROPIC,
        seconds: float = 300.0,
        max_bytes: int = 8 * 2**20,
        price: Price | None = None,
        retries: Retries | None = None,
    ) -> None:
        url = base_url.strip().rstrip("/").removesuffix("/v1") + "/v1/messages"
        headers = {"anthropic-version": VERSION}
        endpoint = open_endpoint(
            url, key, max_bytes=max_bytes, retries=retries, key_header="x-api-key", headers=headers
        )
        self.connect(model, endpoint, seconds, price)
        self.marks = CacheMarks()

    def build_request(self, messages: Sequence[Message], sampling: Sampling) -> tuple[dict[str, object], str]:
        marks = None if "cache_control" in self.dropped else self.marks
        return build_messages_request(self.name, messages, sampling, self.dropped, marks), ""

    def parse_reply(self, reply: object, messages: Sequence[Message], sampling: Sampling) -> Completion:
        return parse_message(reply, messages, sampling, self.endpoint.where)

    def open_parts(self) -> MessageParts:
        return MessageParts(self.endpoint.where)

    def find_refused(self, error: LLMError, body: Mapping[str, object]) -> str:
        if "cache_control" not in self.dropped and error.kind == "request" and "cache_control" in str(error):
            return "cache_control"
        refused = find_refused_part(error, body)
        return refused if refused in DROPPABLE else ""


def build_messages_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str], marks: CacheMarks | None = None
) -> dict[str, object]:
    """Build the body of a Messages request.

    System text stands apart, turns alternate, blank stop words are left out. marks: for the endpoint's cache.
    """
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    words = ""
    if "tools" in without:
        words = form_instruction(sampling, {"tools", "response_format"})
    elif "tool_choice" in without and (sampling.functions or sampling.schema):
        words = USE_ONE if sampling.functions else USE_REPLY
    asked = [message for message in messages if message.role != "system"]
    turns = alternate_turns([*asked, *([Message("user", words)] if words else [])], model)
    # The API takes no request without a turn.
    if system and not turns:
        turns, system = [{"role": "user", "content": [{"type": "text", "text": system}]}], ""
    called = [call.name for message in messages for call in message.calls]
    if sampling.tools or called:
        turns = turns if marks is None else mark_user_turns(turns)
    else:
        turns = [{**turn, "content": "\n\n".join(block["text"] for block in turn["content"])} for turn in turns]
        turns = marks.messages(turns) if marks and turns else turns
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "messages": turns,
        # OpenAI's scale goes to 2, this API's to 1.
        "temperature": min(1.0, sampling.temperature),
    }
    if sampling.top_p is not None:
        body["top_p"] = sampling.top_p
    if system:
        body["system"] = marks.system(system) if marks else system
    # A stop word of white space alone is refused here.
    if stops := [stop for stop in sampling.stop if stop.strip()]:
        body["stop_sequences"] = stops
    if "tools" not in without:
        body |= build_tools(sampling)
    if called and "tools" not in body:
        # A conversation with calls is refused without tools, though none may be called any more.
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in dict.fromkeys(called)]
        body |= {"tools": tools, "tool_choice": {"type": "none"}}
    # Dropped means no longer forced: the tools are still offered, and the prompt asks for one.
    if "tool_choice" in without and "tool_choice" in body:
        body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return {name: value for name, value in body.items() if name not in without - {"tool_choice"}}


def build_tools(sampling: Sampling) -> dict[str, object]:
    """Build the tools of a conversation, or those of which one must be used.

    The latter are the functions, or one tool whose input is the object that fits the schema.
    """
    if offered := sampling.functions or sampling.tools:
        tools = [
            {"name": function.name, "description": function.description, "input_schema": function.parameters}
            for function in offered
        ]
        forced = {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}} if sampling.functions else {}
        return {"tools": tools, **forced}
    if sampling.schema is None:
        return {}
    tool = {"name": REPLY, "description": "Give the reply.", "input_schema": sampling.schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": REPLY}}


def alternate_turns(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """Build turns of user and assistant in alternation, the user first, each a list of blocks.

    Neighbours of one role are joined: all results of a reply stand in one turn, before any text, as the API wants it.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, blocks = "assistant" if message.role == "assistant" else "user", build_blocks(message, model)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if turns and turns[0]["role"] == "assistant":
        # The first turn must be the user's.
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    for turn in turns:
        turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return turns


def build_blocks(message: Message, model: str) -> list[dict[str, Any]]:
    """Build the content blocks of a message: this model's own, if it wrote more than words and calls."""
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.content}]
    uses = [{"type": "tool_use"}] * len(message.calls)
    blocks = read_raw(message, model, "messages") or [{"type": "text", "text": message.content}, *uses]
    calls = iter(message.calls)
    return [
        {**block, **build_use(next(calls))} if block["type"] == "tool_use" else block
        for block in blocks
        if block["type"] != "text" or block["text"].strip()  # a blank text is refused
    ]


def build_use(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "name": call.name, "input": load_arguments(call)}


def mark_user_turns(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the last block of the last two turns of the user for the cache.

    A conversation only grows, so the first of the marks is found again, and the second is written for the next request.
    """
    ends = [at for at, turn in enumerate(turns) if turn["role"] == "user"][-2:]
    return [
        {**turn, "content": [*turn["content"][:-1], {**turn["content"][-1], **MARK}]} if at in ends else turn
        for at, turn in enumerate(turns)
    ]


def parse_message(reply: object, messages: Sequence[Message], sampling: Sampling, where: str) -> Completion:
    """Parse a Messages reply as a Completion; a used tool's input is the text, as JSON.

    Raises:
        RetryableError: it is none, it is empty, or it holds a passing error.
        LLMError: it holds an error that will not pass.
    """
    if not isinstance(reply, Mapping):
        raise RetryableError(f"{where} sent JSON that is no message.")
    if isinstance(reply.get("error"), Mapping):
        raise fault_in_reply(reply["error"], where)
    usage, sent = reply.get("usage"), list_request_texts(messages, sampling)
    blocks, finish = reply.get("content"), FINISH.get(str(reply.get("stop_reason")), "stop")
    # An empty message is fine if a stop word ended it at once, or the length did; and after results of tools.
    is_fine = finish != "stop" or reply.get("stop_reason") == "stop_sequence" or sampling.tools
    if not isinstance(blocks, list) or not (blocks or is_fine):
        raise RetryableError(f"{where} sent a message without content.", used=anthropic_usage(usage, sent, (), calls=0))
    turn = read_blocks([block for block in blocks if isinstance(block, Mapping)])
    if turn.calls and not sampling.tools:
        is_reply = turn.calls[0].name == REPLY
        turn = Message("assistant", turn.calls[0].arguments if is_reply else format_calls(turn.content, turn.calls))
    model = reply.get("model")
    return Completion(
        (turn.content,),
        anthropic_usage(usage, sent, list_turn_texts(turn)),
        finish,
        replace_lone_surrogates(model) if isinstance(model, str) else "",
        turn=turn if sampling.tools else None,
    )


def read_blocks(blocks: list[Mapping[str, Any]]) -> Message:
    """Read content blocks as a turn. Thoughts are kept raw, with the order of all blocks."""
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    calls = tuple(build_call(block.get("id", ""), block.get("name"), block.get("input")) for block in uses)
    is_more = any(block.get("type") not in ("text", "tool_use") for block in blocks)
    kept = [drop_field(block, "input") if block.get("type") == "tool_use" else block for block in blocks]
    return Message("assistant", replace_lone_surrogates(text), calls, raw={"messages": kept} if is_more else None)
