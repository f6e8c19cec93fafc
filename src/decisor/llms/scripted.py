"""An LLM that plays replies from a list or a function, so that tests read like transcripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from decisor.errors import LLMError
from decisor.llms.prices import FREE, Price
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
        text = turn.content
        for word in sampling.stop:
            text = text.partition(word)[0]
        tokens = sum(len(message.content) for message in messages) // 4
        return Completion(
            (text,) * sampling.n,
            Usage(1, tokens, len(text) // 4),
            model=self.name,
            turn=turn if sampling.tools else None,
        )
