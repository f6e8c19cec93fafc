"""The Messages API of Anthropic, natively."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from decisor.calling import Ways
from decisor.calls.settings import LMSettings
from decisor.errors import LMError
from decisor.lms.anthropic_stream import MessageParts
from decisor.lms.cache_marks import CacheMarks
from decisor.lms.counts import anthropic_usage
from decisor.lms.endpoint import Endpoint, within
from decisor.lms.facts import context_at
from decisor.lms.faults import fault_in_reply
from decisor.lms.openai_compatible import refused_part
from decisor.lms.postprocess import postprocess, tidy
from decisor.lms.prices import Price
from decisor.lms.retry import Again, Retries
from decisor.lms.streaming import Send, as_shown, stream, while_it_writes
from decisor.lms.structured import call_text, instruction
from decisor.secrets import Secret
from decisor.trace.writing import OnText
from decisor.types import Completion, Message, Sampling, Usage

ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
MAX_TOKENS = 8192
REPLY = "reply"
"""The tool whose input is the reply, where that is to fit a schema."""
USE_REPLY = f"Reply by using the tool {REPLY}, once, and write nothing else."
USE_ONE = "Reply by using one of the tools, once, and write nothing else."
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "stop", "max_tokens": "length", "refusal": "refusal",
          "model_context_window_exceeded": "length", "loop": "loop"}  # fmt: skip

DROPPABLE = ("temperature", "top_p", "stop_sequences", "tool_choice", "tools")

EMPTY: Mapping[str, object] = {}
STREAMED: Mapping[str, object] = {"stream": True}


class Anthropic:
    """One LM behind ``POST {base_url}/v1/messages``. Fields as in OpenAICompatible.

    A schema is asked for as the input of a tool that must be used; of a model that refuses to be forced (one that
    thinks), by an instruction, from its first refusal on. ``n`` texts are ``n`` calls; a seed is not offered.
    """

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
        self.name = model
        self.seconds = seconds
        self.price = price
        self.dropped: set[str] = set()
        self.marks = CacheMarks()
        self.settings = LMSettings()
        self.ways = Ways()
        headers: dict[str, Secret | str] = {
            "User-Agent": "decisor",
            "anthropic-version": VERSION,
            "x-api-key": Secret(key.strip()),
        }
        url = base_url.strip().rstrip("/").removesuffix("/v1") + "/v1/messages"
        self.endpoint = Endpoint(url, headers, max_bytes, retries or Retries())
        self.context = context_at(self.endpoint, model)

    def __repr__(self) -> str:
        return f"Anthropic({self.name!r} at {self.endpoint.where})"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """One text, whatever ``sampling.n`` is, cut at the stop words.

        Raises:
            LMError: no usable reply within ``seconds``.
        """
        ask = partial(self._ask, messages, sampling, self.endpoint.post, EMPTY)
        return await within(self.seconds, ask, self.endpoint.where, self.price)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """As ``complete``, with the text as it is written; ``seconds`` is the longest that nothing may come.

        Raises:
            LMError: no usable reply.
        """
        on_text, parts = as_shown(on_text, sampling.stop, self.endpoint), partial(MessageParts, self.endpoint.where)

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
        """``more``: what the body holds beside."""
        while True:
            marks = None if "cache_control" in self.dropped else self.marks
            body = request(self.name, messages, sampling, self.dropped, marks)
            try:
                return await send({**body, **more}, partial(self._read, messages, sampling), ends, bill)
            except LMError as error:
                refused = refused_part(error, body)
                if marks is not None and error.kind == "request" and "cache_control" in str(error):
                    self.dropped.add("cache_control")
                    continue
                if refused in self.dropped or refused not in DROPPABLE:
                    raise
                self.dropped.add(refused)
                if refused == "tools":
                    self.ways.against |= {"json": "it refused tools", "tools": "it refused tools"}

    def _read(self, messages: Sequence[Message], sampling: Sampling, reply: object) -> Completion:
        completion = parse_message(reply, messages, self.endpoint.where)
        return postprocess(completion, sampling, self.endpoint.secrets, self.price, self.name)


def request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str], marks: CacheMarks | None = None
) -> dict[str, object]:
    """The body of a Messages request: system text apart, turns that alternate, blank stop words left out; ``marks``:
    for the endpoint's cache."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    words = instruction(sampling, {"tools", "response_format"}) if "tools" in without else to_use(sampling, without)
    turns = alternating([*messages_of(messages), *([Message("user", words)] if words else [])])
    if system and not turns:
        turns, system = [{"role": "user", "content": system}], ""
    body: dict[str, object] = {
        "model": model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "messages": marks.messages(turns) if marks and turns else turns,
        "temperature": min(1.0, sampling.temperature),
    }
    if sampling.top_p is not None:
        body["top_p"] = sampling.top_p
    if system:
        body["system"] = marks.system(system) if marks else system
    if stops := [stop for stop in sampling.stop if stop.strip()]:
        body["stop_sequences"] = stops
    if "tools" not in without:
        body |= tools_of(sampling)
    if "tool_choice" in without and "tool_choice" in body:
        body["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return {name: value for name, value in body.items() if name not in without - {"tool_choice"}}


def to_use(sampling: Sampling, without: AbstractSet[str]) -> str:
    """What the prompt says where a tool must be used and the endpoint lets nobody be forced to; '' else."""
    if "tool_choice" not in without or not (sampling.functions or sampling.schema):
        return ""
    return USE_ONE if sampling.functions else USE_REPLY


def tools_of(sampling: Sampling) -> dict[str, object]:
    """The tools of which one must be used: the functions, or one whose input is the object that fits the schema."""
    if sampling.functions:
        tools = [{"name": one.name, "description": one.description, "input_schema": one.parameters}
                 for one in sampling.functions]  # fmt: skip
        return {"tools": tools, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
    if sampling.schema is None:
        return {}
    tool = {"name": REPLY, "description": "Give the reply.", "input_schema": sampling.schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": REPLY}}


def messages_of(messages: Sequence[Message]) -> list[Message]:
    """Without those of the system, which stand apart."""
    return [message for message in messages if message.role != "system"]


def alternating(messages: Sequence[Message]) -> list[dict[str, str]]:
    """User and assistant in turn, the user first; neighbours of one role are joined."""
    turns: list[dict[str, str]] = []
    for message in messages:
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += f"\n\n{message.content}"
        else:
            turns.append({"role": message.role, "content": message.content})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": "Go on."})
    return turns


def parse_message(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """A Messages reply as a Completion; a used tool's input is the text, as JSON.

    Raises:
        Again: it is none, it is empty, or it holds a passing error.
        LMError: it holds an error that will not pass.
    """
    if not isinstance(reply, Mapping):
        raise Again(f"{where} sent JSON that is no message.")
    if isinstance(reply.get("error"), Mapping):
        raise fault_in_reply(reply["error"], where)
    usage = reply.get("usage")
    blocks, finish = reply.get("content"), FINISH.get(str(reply.get("stop_reason")), "stop")
    if not isinstance(blocks, list) or (
        not blocks and finish == "stop" and reply.get("stop_reason") != "stop_sequence"
    ):
        raise Again(f"{where} sent a message without content.", used=anthropic_usage(usage, messages, (), calls=0))
    text = text_of(blocks)
    model = reply.get("model")
    return Completion(
        (text,),
        anthropic_usage(usage, messages, [text]),
        finish,
        tidy(model) if isinstance(model, str) else "",
    )


def text_of(blocks: Sequence[object]) -> str:
    """What was written. Of the tool ``reply`` the input, of other tools that were used the calls, as JSON."""
    rows = [block for block in blocks if isinstance(block, Mapping)]
    written = "".join(tidy(str(row.get("text") or "")) for row in rows if row.get("type") == "text")
    uses = [row for row in rows if row.get("type") == "tool_use"]
    if not uses:
        return written
    if uses[0].get("name") == REPLY:
        return tidy(json.dumps(uses[0].get("input"), ensure_ascii=False))
    calls = [{"function": {"name": one.get("name"), "arguments": one.get("input")}} for one in uses]
    return call_text(written, calls)
