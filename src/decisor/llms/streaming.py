"""A reply as it is written: with the faults of one that comes at once, and read by the same reader.

``EventStream`` parses server-sent events, in pieces of any size. ``ChatParts`` joins the chunks of OpenAI's form, chat
or completion, into the one reply that they make. A reply that goes round in circles is noticed while it is written,
and cut where that began.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import urandom
from typing import Any, Protocol

from decisor.errors import LLMError
from decisor.llms.endpoint import Endpoint
from decisor.llms.prices import estimate_prompt_usage
from decisor.llms.retry import RetryableError, build_fault, fault_in_reply
from decisor.llms.turns import THOUGHT_FIELDS, to_mapping
from decisor.trace.events import OnText
from decisor.types import Completion, Usage

LINE_END = re.compile(rb"\r\n|\n|\r")
MARK = b"\xef\xbb\xbf"


class EventStream:
    """A parser of server-sent events that takes bytes and gives the data of each whole event.

    Comments, which keep a connection alive, are no events.

    An event of the name ``error``, or a field of that name (llama.cpp), comes as an object that has ``error``.

    >>> stream = EventStream()
    >>> pieces = b": hello\\r\\n\\r\\ndata: {", b'"a":\\r\\ndata: 1}\\r', b"\\n\\r\\n"
    >>> [data for piece in pieces for data in stream.feed(piece)]
    ['{"a":\\n1}']
    """

    def __init__(self) -> None:
        self.rest = b""
        self.name = b""
        self.data: list[bytes] = []
        self.is_first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        text = self.rest + piece
        held_back = b"\r" if text.endswith(b"\r") else b""  # its line feed may be on the way
        *lines, rest = LINE_END.split(text.removesuffix(b"\r"))
        if held_back:
            rest += held_back
        self.rest = rest
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[str]:
        """Yield the events that no empty line ended: some endpoints leave out the last one."""
        for line in (self.rest.removesuffix(b"\r"), b""):
            yield from self._line(line)
        self.rest = b""

    def _line(self, line: bytes) -> Iterator[str]:
        if self.is_first:
            line, self.is_first = line.removeprefix(MARK), False
        if not line:
            if self.data:
                data = b"\n".join(self.data).decode("utf-8", "replace")
                is_error = self.name == b"error" and '"error"' not in data
                yield f'{{"error": {data}}}' if is_error else data
            self.name, self.data = b"", []
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self.data.append(value)
        elif name == b"event":
            self.name = value
        elif name == b"error":
            self.data.append(b'{"error": %b}' % value)


LAST = "[DONE]"


class ChatParts:
    """A reply that is joined from the chunks of its stream. It is whole after a last chunk, or after a finish reason
    for each choice."""

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
        thinking = next((pieces for pieces in first["thoughts"].values() if isinstance(pieces, list)), ())
        written: str = "".join(first["text"]) or "".join(arguments) or "".join(thinking)
        return written

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add a chunk; raise LLMError if it is an error."""
        if error := chunk.get("error"):
            raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, self.where)
        self.about |= {name: chunk[name] for name in ("usage", "timings", "model") if chunk.get(name)}
        choices = chunk.get("choices")
        for at, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, Mapping):
                index = choice.get("index")
                self._add_choice(index if isinstance(index, int) else at, choice)

    def _add_choice(self, index: int, choice: Mapping[str, Any]) -> None:
        whole = self.choices.setdefault(
            index,
            {
                "text": [],
                "thoughts": {},
                "thinking_parts": [],
                "refusal": [],
                "tool_calls": {},
                "logprobs": {},
                "finish_reason": None,
                "is_chat": False,
            },
        )
        delta = to_mapping(choice.get("delta")) or to_mapping(choice.get("message"))
        whole["is_chat"] = whole["is_chat"] or "text" not in choice
        for name, sources in (
            ("text", (delta.get("content"), choice.get("text"))),
            ("refusal", (delta.get("refusal"),)),
        ):
            whole[name] += [text for source in sources for text in join_content_parts(source)][:1]
        # Mistral's models write their thoughts as parts of the content.
        content = delta.get("content")
        for part in map(to_mapping, content if isinstance(content, list) else ()):
            whole["thinking_parts"] += join_content_parts(part.get("thinking"))
        for name in THOUGHT_FIELDS:
            add_thought(whole["thoughts"], name, delta.get(name))
        calls = delta.get("tool_calls")
        for at, call in enumerate(calls if isinstance(calls, list) else ()):
            add_tool_call(whole["tool_calls"], at, to_mapping(call))
        for name, values in to_mapping(choice.get("logprobs")).items():
            if isinstance(values, list):
                whole["logprobs"].setdefault(name, []).extend(values)
        whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]

    def reply(self, finish: str = "") -> dict[str, object]:
        """Return the reply as an endpoint without a stream sends it. finish: why it was ended here."""
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
        **{name: join_thought(pieces) for name, pieces in whole["thoughts"].items()},
    }
    if not text and not calls and not finish and whole["finish_reason"] in ("length", "content_filter"):
        message["content"] = None
    if thinking := "".join(whole["thinking_parts"]):
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thinking}]}]
        message["content"] = [*parts, *([{"type": "text", "text": text}] if text else [])]
    return {"message": message, **ending}


def add_tool_call(calls: dict[tuple[int, int], dict[str, Any]], at: int, part: Mapping[str, Any]) -> None:
    """Add a piece of a call to the calls, by their index and the number of calls that had it before."""
    function, index = to_mapping(part.get("function")), part.get("index")
    at = index if isinstance(index, int) else at
    key = (at, max((number for of, number in calls if of == at), default=0))
    # Gemini and some versions of Ollama give each of several calls the index 0, or none.
    known, is_named = calls.get(key), bool(function.get("name"))
    if known and is_named and (part["id"] != known.get("id") if part.get("id") else index is None):
        key = (at, key[1] + 1)
    call = calls.setdefault(key, {"type": "function", "function": {"name": "", "arguments": ""}})
    call |= {name: value for name, value in part.items() if value and name not in ("index", "function")}
    for name, value in function.items():
        if name in call["function"] and value is not None:
            call["function"][name] += value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


GROWING = ("text", "summary", "data", "thinking", "signature")
"""Fields of a part of a thought that come in pieces."""


def add_thought(thoughts: dict[str, Any], name: str, value: object) -> None:
    """Add a piece of a thought: a text, parts with their places (OpenRouter), or an object (Gemini)."""
    if isinstance(value, str):
        thoughts.setdefault(name, []).append(value)
    elif isinstance(value, Mapping):
        thoughts[name] = {**thoughts.get(name, {}), **value}
    elif isinstance(value, list):
        parts = thoughts.setdefault(name, {})
        for at, part in enumerate(map(to_mapping, value)):
            whole = parts.setdefault((part.get("type"), part.get("index", at)), {})
            for key, piece in part.items():
                is_more = key in GROWING and isinstance(piece, str) and isinstance(whole.get(key), str)
                if is_more or piece is not None or key not in whole:
                    whole[key] = whole[key] + piece if is_more else piece


def join_thought(pieces: Any) -> object:
    """Join the pieces of a thought as a reply at once has it."""
    if isinstance(pieces, list):
        return "".join(pieces)
    return list(pieces.values()) if any(isinstance(key, tuple) for key in pieces) else pieces


def join_content_parts(content: object) -> list[str]:
    """Join the texts of a content, a text or a list of parts, as a list of one; [] without text."""
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, list):
        return []
    joined = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return [joined] if joined else []


PERIODS = ((600, 60), (2_400, 480))
"""The last so many characters, if all of them are one piece of at most so many again and again, are a loop."""


def find_loop_start(text: str) -> int | None:
    """Find the start of the loop that a text ends in; None without a loop. The first round of the loop is left out.

    Ten times the same short piece, or five times the same long one, is no table and no list: those differ somewhere.

    >>> text = "Thought: " + "look again. " * 80
    >>> text[: find_loop_start(text)]
    'Thought: look again.'
    >>> find_loop_start("".join(f"{i} look again. " for i in range(200))) is None
    True
    """
    for length, longest in PERIODS:
        tail = text[-length:]
        if len(tail) == length and (period := find_period(tail, longest)):
            start = len(text) - length
            # Back to where the repetition began.
            while start and text[start - 1] == text[start - 1 + period]:
                start -= 1
            return start + period
    return None


def find_period(text: str, longest: int) -> int:
    """Return the least period of a text, at most ``longest``; 0 if it has none. p is a period if each character is the
    one p before it.

    >>> find_period("abcabcab", 3), find_period("abcabcab", 2)
    (3, 0)
    """
    at = 0
    while 0 < (at := text.find(text[:longest], at + 1)) <= longest:
        # A text with a period equals itself shifted by it; find() skips shifts whose first piece does not fit.
        if text[at:] == text[: len(text) - at]:
            return at
    return 0


LOOK_EVERY = 200
"""Characters between two looks at whether it repeats itself."""
LOOP = "loop"
Read = Callable[[object], Completion]


class Send(Protocol):
    """A function that sends a request as ``Endpoint.post`` does."""

    def __call__(
        self, body: Mapping[str, object], read: Read, ends: float, bill: list[Usage], url: str = ""
    ) -> Awaitable[Completion]: ...


class StreamParts(Protocol):
    """A reply that is joined from the chunks of its stream, with the text so far."""

    is_done: bool

    @property
    def is_whole(self) -> bool: ...

    @property
    def text(self) -> str: ...

    def add(self, chunk: Mapping[str, object]) -> None: ...

    def reply(self, finish: str = "") -> dict[str, object]: ...


class ReplyLoop(Exception):
    """A reply that goes round in circles."""


@dataclass
class StreamAttempt:
    """One attempt at a streamed reply."""

    parts: StreamParts
    where: str
    alive: Callable[[], None]
    """Called with each event."""
    on_text: OnText
    """Called with all of the text so far."""
    events: EventStream = field(default_factory=EventStream)
    is_begun: bool = False
    looked_at: int = 0
    text: str = ""

    def take(self, piece: bytes) -> bool:
        """Take a piece of the body; return whether it was the end.

        Raises LLMError if it contains an error, and ReplyLoop.
        """
        return self._hear(self.events.feed(piece))

    def end(self) -> None:
        """Check the reply at the end of the connection; raise LLMError if it is not whole."""
        self._hear(self.events.end())
        if not self.is_begun:
            raise RetryableError(f"{self.where} sent no stream of events and no completion.")
        if not self.parts.is_whole:
            raise RetryableError(f"{self.where} broke off: its reply is not whole.", "connection")

    def _hear(self, events: Iterable[str]) -> bool:
        for data in events:
            self.is_begun = True
            self.alive()
            if data.strip() == LAST:
                self.parts.is_done = True
            else:
                self.parts.add(parse_chunk(data, self.where))
                text = self.parts.text
                if len(text) != len(self.text):
                    self.text = text
                    self.on_text(text)
                # Not at each event: a look costs as much as the text is long.
                if len(text) - self.looked_at >= LOOK_EVERY:
                    self.looked_at = len(text)
                    if find_loop_start(text) is not None:
                        raise ReplyLoop
        return self.parts.is_done

    def cost(self, used: Usage) -> Usage:
        """Return ``used`` with the completion tokens written so far, at a token per four characters."""
        return replace(used, completion_tokens=max(used.completion_tokens, (len(self.text) + 3) // 4))


def parse_chunk(data: str, where: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if not isinstance(chunk, Mapping):
        raise RetryableError(f"{where} sent a chunk that is no valid JSON.")
    return chunk


async def stream_reply(
    endpoint: Endpoint,
    new_parts: Callable[[], StreamParts],
    on_text: OnText,
    alive: Callable[[], None],
    body: Mapping[str, object],
    read: Read,
    ends: float,
    bill: list[Usage],
    url: str = "",
) -> Completion:
    """Post as ``Endpoint.post`` does, for a body that asks for a stream.

    An attempt that broke is made anew, from its beginning.

    A reply that repeats itself is cut where that began, ends with ``loop``, and costs the tokens written.

    Raises:
        LLMError: as sorted out by ``build_fault``; its text holds no key.
    """
    payload = json.dumps(body).encode()
    headers = {"Idempotency-Key": urandom(16).hex()}

    async def once() -> Completion:
        # Each attempt begins anew: what a broken one wrote is no part of the reply.
        writing = StreamAttempt(new_parts(), endpoint.where, alive, on_text)
        try:
            try:
                reply = await endpoint.opened().post(url or endpoint.url, payload, headers, bill, writing.take)
                if not 200 <= reply.status < 300:
                    raise build_fault(reply.status, reply.headers, reply.body, endpoint.where)
                if reply.body.lstrip()[:1] in (b"{", b"["):  # it does not stream
                    return endpoint.read(reply.body, payload, read)
                # A stream in one piece, of an endpoint that packs it; taken already, the body is empty.
                writing.take(reply.body)
                writing.end()
                return read(writing.parts.reply())
            except ReplyLoop:
                return cut_loop(read(writing.parts.reply(LOOP)))
        except LLMError as error:
            # What was written is paid for, although no count came with it.
            if writing.is_begun:
                error.used = writing.cost(error.used if error.used.tokens else estimate_prompt_usage(payload))
            if error.used.tokens:
                bill.append(error.used)
            raise endpoint.clean(error) from None
        except asyncio.CancelledError:
            bill.append(writing.cost(Usage()))  # its prompt is on the bill already
            raise

    return await endpoint.retries.call(once, ends)


def cut_loop(reply: Completion) -> Completion:
    """Cut the loop off the texts of a reply."""
    if reply.turn and reply.turn.calls:  # it stands in the arguments of the last call
        return replace(reply, finish=LOOP)
    starts = [find_loop_start(text) for text in reply.texts]
    if not any(starts):  # it stood behind a stop word
        return replace(reply, finish="stop", logprobs=())
    texts = tuple(text[:start] for text, start in zip(reply.texts, starts, strict=True))
    turn = reply.turn and replace(reply.turn, content=texts[0])
    return replace(reply, texts=texts, finish=LOOP, logprobs=(), turn=turn)
