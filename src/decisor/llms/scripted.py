"""An LLM that plays replies from a list or a function, so that tests read like transcripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import LLMError
from decisor.llms.prices import FREE, Price
from decisor.llms.turns import cut_at_stop_words, list_request_texts
from decisor.runtime.prompt import list_turn_texts
from decisor.trace.events import OnText
from decisor.types import Completion, Message, Sampling, Usage


@dataclass
class ScriptedLLM:
    """An LLM that plays replies in order, for tests and examples."""

    replies: Sequence[str | Message] | Callable[[Sequence[Message]], str | Message]
    """Replies in order, or a function of the messages; a Message is a turn with tool calls."""
    name: str = "scripted"
    seen: list[str] = field(default_factory=list)
    """Last message of each prompt."""
    price: Price | None = FREE

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Return the next reply, cut at the stop words as an endpoint would.

        Raises:
            LLMError: the script is at its end.
        """
        self.seen.append(messages[-1].content)
        if callable(self.replies):
            reply = self.replies(messages)
        elif len(self.seen) <= len(self.replies):
            reply = self.replies[len(self.seen) - 1]
        else:
            raise LLMError(f"The script has {len(self.replies)} replies; one more was asked for.", "script", True)
        turn = reply if isinstance(reply, Message) else Message("assistant", reply)
        text = cut_at_stop_words(turn.content, sampling.stop)
        turn = replace(turn, content=text)
        prompt, written = (
            sum(map(len, texts)) // 4 for texts in (list_request_texts(messages, sampling), list_turn_texts(turn))
        )
        return Completion(
            (text,) * sampling.n, Usage(1, prompt, written), model=self.name, turn=turn if sampling.tools else None
        )

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """Return the next reply, shown word by word: its text, else the arguments of its calls."""
        reply = await self.complete(messages, sampling)
        calls = reply.turn.calls if reply.turn else ()
        text = reply.text or "".join(call.arguments for call in calls)
        for word in re.finditer(r"\S+\s*", text):
            on_text(text[: word.end()])
        return reply
