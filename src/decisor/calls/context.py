"""How many tokens a model takes, prompt and reply together: as an endpoint says it, remembered for the process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from decisor.types import LM

NUMBER = r"(\d[\d,]*)"
CONTEXT = (
    rf"(?:maximum )?context (?:length|window|size)(?: of the model)?(?: is| of|:)? (?:only )?{NUMBER}",
    rf"context (?:length|window|size) \({NUMBER}",
    rf"n_ctx\W+{NUMBER}",
    rf"(?:>|exceeds?) (?:the )?(?:limit of )?{NUMBER}(?: tokens)?(?: maximum)?",
    rf"maximum (?:of|is|allowed)?:? ?{NUMBER} tokens",
    rf"limit(?: of|:)? {NUMBER}",
)
PROMPT = (
    rf"\({NUMBER} in the messages",
    rf"prompt is too long: {NUMBER}",
    rf"resulted in {NUMBER}",
    rf"requested (?:about )?{NUMBER}",
    rf"n_prompt_tokens\W+{NUMBER}",
    rf"(?:request|input|prompt)(?: length)? \(?{NUMBER}",
    rf"(?:has|contains) (?:at least )?{NUMBER} (?:input )?tokens",
)
LOOKS = 2


def sizes_in(complaint: str) -> tuple[int, int]:
    """The tokens of the context and of the prompt that a refusal names, 0 for what it does not.

    >>> sizes_in("This model's maximum context length is 8192 tokens. However, your messages resulted in 9,121 tokens.")
    (8192, 9121)
    >>> sizes_in("request (1545 tokens) exceeds the available context size (1024 tokens), try increasing it")
    (1024, 1545)
    >>> sizes_in("prompt is too long: 210000 tokens > 200000 maximum")
    (200000, 210000)
    """
    context, prompt = first_number(CONTEXT, complaint), first_number(PROMPT, complaint)
    return (context, prompt) if not prompt or context <= prompt else (0, prompt)


def first_number(forms: tuple[str, ...], text: str) -> int:
    for form in forms:
        if match := re.search(form, text, re.I):
            return int(match[1].replace(",", ""))
    return 0


@dataclass
class ContextLength:
    """Of one model at one endpoint. ``look``: asks the endpoint, 0 where it does not say."""

    look: Callable[[], int] = lambda: 0
    tokens: int = 0
    looks: int = 0

    async def find(self) -> int:
        """Tokens, or 0 where nobody knows."""
        if not self.tokens and self.looks < LOOKS:
            self.looks += 1
            self.tokens = await asyncio.to_thread(self.look) or self.tokens
        return self.tokens

    def learn(self, tokens: int) -> None:
        """From a refusal."""
        self.tokens = tokens


def context_of(lm: LM) -> ContextLength | None:
    """Of the LM, or of the one that it wraps."""
    at: object = lm
    while at is not None:
        context = getattr(at, "context", None)
        if isinstance(context, ContextLength):
            return context
        at = getattr(at, "lm", None)
    return None
