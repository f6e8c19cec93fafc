"""The prompts of one conversation, each kept as an addition to an earlier one.

A loop sends its whole history with every call, so keeping every prompt whole would grow with the square of its length.
A trace holds no keys and no passwords that a model wrote: its replies, its queries, its plans, and the prompts that
show them again. What tools brought back stays as it is, for it is the evidence. A prompt repeats the one before it, so
only its new lines are looked at.

A conversation with tool calls sends each reply back with the next prompt. So a prompt is an addition to an earlier one
and the turn that answered that, and a query stands in the file once as a call and once as the action that ran it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, overload

from decisor.system.secrets import redact_event, redact_text
from decisor.system.serialization import dataclass_values
from decisor.types import Message

LINKS = 32
"""After so many prompts that build on each other one is kept whole, so that reading any is quick."""
WORTH = 100
"""Characters that must be alike for one to be kept as what it adds."""
SPANS = 16


@dataclass(frozen=True, slots=True)
class PromptAddition:
    """The prompt of a line of a trace file, as an addition to an earlier one. See ``TracePrompt`` for the fields."""

    since: int
    same: int
    start: int
    end: int
    new: tuple[Message, ...]

    def extend(self, earlier: Mapping[int, Sequence[Message]]) -> tuple[Message, ...]:
        """Return all messages. earlier: messages and turn of the entries before it; raise LookupError without one."""
        return extend_messages(earlier[self.since], self.new, self.same, self.start, self.end)


@dataclass(frozen=True)
class PromptInFile:
    """The mark of a field for a prompt: a line of a trace file has a list of messages in it, or a PromptAddition."""

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> Any:
        return handler.generate_schema(tuple[Message, ...] | PromptAddition)


@dataclass(frozen=True, eq=False)
class TracePrompt(Sequence[Message]):
    """A prompt that is kept as an addition to an earlier one, and reads like the list of its messages."""

    entry: int
    """Id of the entry of its call."""
    new: tuple[Message, ...]
    """The messages that differ; the first of them without its ``start`` and ``end``."""
    before: TracePrompt | None = None
    """The earlier prompt; None if ``new`` is all."""
    same: int = 0
    """Number of messages at the beginning that are as in ``before``."""
    start: int = 0
    """Characters at the beginning of the next message that are as in ``before``."""
    end: int = 0
    """Characters at its end that are as in ``before``."""
    turn: Message | None = None
    """The reply, which a prompt that is an addition to this one may begin with after its messages."""

    def whole(self) -> tuple[Message, ...]:
        # A loop, not recursion: reading a prompt follows up to LINKS earlier ones.
        links: list[TracePrompt] = []
        at = self
        while at.before is not None:
            links.append(at)
            at = at.before
        messages = at.new
        for link in reversed(links):
            assert link.before is not None
            earlier = with_turn(messages, link.before.turn)
            messages = extend_messages(earlier, link.new, link.same, link.start, link.end)
        return messages

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        return self.whole()[at]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.whole())

    def __len__(self) -> int:
        return self.same + len(self.new)

    def as_addition(self) -> object:
        """Return the form for a line of a trace file.

        It is a list of messages, or an object that names the entry it builds on.
        """
        new = [build_message_row(message) for message in self.new]
        if self.before is None:
            return new
        return {"since": self.before.entry, "same": self.same, "start": self.start, "end": self.end, "new": new}


@dataclass(slots=True)
class PromptHistory:
    """The last whole prompt of each of the latest spans, to compare the next one with."""

    last: OrderedDict[int, tuple[TracePrompt, tuple[Message, ...], int]] = field(default_factory=OrderedDict)

    def latest(self, span: int) -> tuple[Message, ...]:
        """Return the last prompt of a span; () without one."""
        return self.last[span][1] if span in self.last else ()

    def add(self, messages: Sequence[Message], span: int, entry: int, turn: Message | None = None) -> TracePrompt:
        """Build a prompt from the messages that differ from the last prompt of its span. turn: the reply to it."""
        whole = tuple(messages)
        before, earlier, links = self.last.pop(span, (None, (), 0))
        prompt = TracePrompt(entry, whole, turn=turn)
        if before is not None and links < LINKS:
            prompt = build_addition(prompt, before, earlier)
        self.last[span] = prompt, with_turn(whole, turn), links + 1 if prompt.before else 0
        if len(self.last) > SPANS:
            # Spans end without notice: the one that was used longest ago is forgotten, and its next prompt is kept
            # whole.
            self.last.popitem(last=False)
        return prompt


def with_turn(messages: Sequence[Message], turn: Message | None) -> tuple[Message, ...]:
    """Return the messages of a prompt, followed by the turn that answered it."""
    return (*messages, turn) if turn is not None else tuple(messages)


def build_addition(prompt: TracePrompt, before: TracePrompt, earlier: tuple[Message, ...]) -> TracePrompt:
    """Return a whole prompt as an addition to ``before``, whose messages, and then its turn, are ``earlier``.

    It stays whole if they have little in common.
    """
    whole, same = prompt.new, 0
    while same < min(len(whole), len(earlier)) and whole[same] == earlier[same]:
        same += 1
    new, start, end = whole[same:], 0, 0
    if new and same < len(earlier) and earlier[same].role == new[0].role:
        here, there = new[0].content, earlier[same].content
        start = common_affix_length(here, there, False)
        # Beginning and end must not overlap in either text: in "aa" to "aaa" each letter counts once.
        end = min(common_affix_length(here, there, True), len(here) - start, len(there) - start)
        new = (replace(new[0], content=here[start : len(here) - end]), *new[1:])
    if start + end + sum(len(message.content) for message in whole[:same]) < WORTH:
        return prompt
    return replace(prompt, new=new, before=before, same=same, start=start, end=end)


def extend_messages(
    earlier: Sequence[Message], new: Sequence[Message], same: int, start: int, end: int
) -> tuple[Message, ...]:
    """Return the messages of a prompt that was kept as an addition to ``earlier``."""
    if not (start or end):
        return (*earlier[:same], *new)
    there = earlier[same].content
    first = replace(new[0], content=there[:start] + new[0].content + there[len(there) - end :])
    return (*earlier[:same], first, *new[1:])


def common_affix_length(one: str, other: str, at_the_end: bool) -> int:
    """Return the number of characters that both texts begin with, or end with.

    >>> common_affix_length("step 1, step 2", "step 1, and", False), common_affix_length("a line.", "no line.", True)
    (8, 6)
    """
    low, high = 0, min(len(one), len(other))
    # Bisection over slices, which C compares: a loop over characters is slow on prompts of 100,000.
    while low < high:
        middle = (low + high + 1) // 2
        if at_the_end:
            equal = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            equal = one[low:middle] == other[low:middle]
        low, high = (middle, high) if equal else (low, middle - 1)
    return low


def redact_messages(messages: Sequence[Message], before: Sequence[Message] = ()) -> Sequence[Message]:
    """Hide secrets in messages. before: an earlier prompt, redacted, which this one may repeat."""
    return [
        message if message == old else redact_message(message, old.content if old else "")
        for message, old in zip_longest(messages, before[: len(messages)])
    ]


def redact_message(message: Message, before: str = "") -> Message:
    """Hide secrets in a message: its text, the arguments of its calls, and what its provider wrote beside them."""
    content, calls = redact_new_lines(message.content, before), redact_event(message.calls)
    redacted = replace(message, content=content, calls=calls, raw=redact_json(message.raw))
    return message if redacted == message else redacted


def redact_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: redact_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(item) for item in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_new_lines(text: str, before: str) -> str:
    """Hide secrets in the lines of a text that come after its common beginning with ``before``.

    The common whole lines were looked at already.
    """
    if text == before:
        return text
    # From the beginning of the first line that differs, because a key may go on from the old part of a line.
    cut = text.rfind("\n", 0, common_affix_length(text, before, False)) + 1
    new = text[cut:]
    return text if (hidden := redact_text(new)) is new else text[:cut] + hidden


def build_message_row(message: Message) -> dict[str, object]:
    """Build the row of a message for a trace, without empty fields."""
    # A dict, not the class that is read back: the encoder of JSON is slower at dataclasses.
    row: dict[str, object] = {"role": message.role, "content": message.content}
    if message.calls:
        row["calls"] = [dataclass_values(call) for call in message.calls]
    if message.call_id:
        row["call_id"] = message.call_id
    return row if message.raw is None else {**row, "raw": message.raw}


THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Keys of providers for the text of a thought: DeepSeek, Moonshot and llama.cpp; vLLM and OpenRouter; Ollama."""


def read_thoughts(turn: Message) -> str:
    """Read a model's thoughts before its turn, as far as its provider shows it; '' if it does not.

    >>> read_thoughts(Message("assistant", "", raw={"messages": [{"type": "thinking", "thinking": "Compare."}]}))
    'Compare.'
    """
    # Some providers give the same thought in two fields.
    return "\n\n".join(dict.fromkeys(find_thoughts(turn.raw)))


def find_thoughts(value: object, is_thought: bool = False) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from find_thoughts(item, is_thought)
    elif isinstance(value, Mapping):
        is_thought |= str(value.get("type")).startswith(("reasoning", "summary"))
        for key, item in value.items():
            if (
                isinstance(item, str)
                and item.strip()
                and (key in THOUGHTS or (is_thought and key in ("text", "summary")))
            ):
                yield item.strip()
            elif key not in ("tool_calls", "input"):
                yield from find_thoughts(item, is_thought or key in THOUGHTS)
