"""One call of an LM: its prompt made to fit, its reply capped, its cost reserved, charged and traced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from decisor.budget import NOTHING, Budget
from decisor.calls.clock import CallUnderWay
from decisor.calls.context import context_of, sizes_in
from decisor.calls.cutting import cut_in_half
from decisor.calls.estimates import fewest_tokens_in, raw_tokens, tokens_in
from decisor.calls.prompt_parts import shorten
from decisor.calls.settings import settings_of
from decisor.errors import BudgetExceeded, LMError, SetupError
from decisor.secrets import redact
from decisor.trace.events import FailedCall, LMCall, Note, ShortenedPrompt, Trace
from decisor.trace.writing import streamed
from decisor.types import LM, Completion, Message, Pricing, Sampling, Usage

LONGEST_REPLY = 2048
"""Tokens, where nobody names another cap."""
THOUGHTFUL_REPLY = 16_384
"""For a model whose reply was cut off before it said anything: it thinks first, and its thoughts count."""
SHORTEST_REPLY = 64
"""Tokens; a call that could not have them is not made."""
USUAL_REPLY = 512
"""Tokens that a reply may have at least, where tokens or dollars are limited and enough of them are left."""
LAST_REPLY = 256
"""Tokens that a final prompt leaves to its reply, where it has to be made shorter."""
LOOK_AT = 256
"""Tokens; a shorter prompt fits into any context."""
REPLY_SHARE = 4
"""One in so many tokens of a context is the reply's at least."""
UNSURE = 1.25
"""Before an LM has counted a prompt, one that may be too long by so much is sent all the same."""
TRIES_TO_FIT = 1
CALL = Usage(calls=1)
PRICE = "set DECISOR_PRICE (dollars per million tokens of prompt and reply, such as 0.4,1.6), or leave the limit out"
CUT_OFF = "It was cut off before its reply was there; what it cost is an estimate."
TOO_LONG = (
    "The prompt is about {tokens:,} tokens long without what can be left out, and of the {context:,} tokens that this "
    "LM takes {room:,} are for it. Let fewer tables be read (--tables), give shorter rules, or serve the LM with a "
    "longer context."
)
UNSENT = "It was cut off before it was sent, so it cost nothing."


@dataclass(frozen=True)
class Call:
    """To one LM, from one budget, into one trace. ``final``: it may use what the budget keeps back."""

    lm: LM
    budget: Budget
    trace: Trace
    span: int
    final: bool = False

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Raises BudgetExceeded, before anything is sent where that can be known; LMError of the kind ``context`` where
        the prompt cannot be made to fit; and other LMErrors."""
        sampling = self.with_settings(sampling)
        for left in range(TRIES_TO_FIT, -1, -1):
            messages = await self.fit(messages, sampling)
            try:
                return await self.charged(messages, sampling)
            except LMError as error:
                if error.kind != "context" or not left:
                    raise
                messages = self.learn(messages, error)
        raise AssertionError("unreachable")

    def with_settings(self, sampling: Sampling) -> Sampling:
        """What a person set for this LM; and a cap on the reply."""
        settings = settings_of(self.lm)
        usual = THOUGHTFUL_REPLY if self.lm.name in self.budget.estimates.thinkers else LONGEST_REPLY
        cap = sampling.max_tokens or settings.max_tokens or usual
        cap = min(cap, settings.max_tokens or cap)
        temperature = sampling.temperature or settings.temperature or 0.0
        return replace(sampling, max_tokens=cap, capped=cap != sampling.max_tokens, temperature=temperature)

    def count(self, messages: Sequence[Message]) -> int:
        return self.budget.estimates.tokens(self.lm.name, raw_tokens(messages))

    async def context(self, tokens: int) -> int:
        """Tokens, 0 where nobody knows. It is only looked for where a prompt of so many could be too long."""
        known = self.known_context()
        context = context_of(self.lm) if not known and tokens >= LOOK_AT else None
        return known if context is None else await context.find()

    def known_context(self) -> int:
        context = context_of(self.lm)
        return settings_of(self.lm).context or (context.tokens if context is not None else 0)

    async def fit(self, messages: Sequence[Message], sampling: Sampling) -> Sequence[Message]:
        """The prompt without what the context has no room for; a final one without what the budget has no room for.

        Raises:
            LMError: what may not be left out is too long already.
        """
        tokens = self.count(messages)
        if context := await self.context(tokens):
            room = context - min(sampling.max_tokens or LONGEST_REPLY, max(context // REPLY_SHARE, SHORTEST_REPLY))
            shorter = self.shortened(messages, tokens, room, "context")
            if shorter is None and self.is_too_long(messages, room):
                raise LMError(TOO_LONG.format(tokens=tokens, context=context, room=room), "context")
            messages = shorter or messages
        left = self.budget.tokens_left(True, 0) if self.final else None
        if left is not None:
            messages = self.shortened(messages, self.count(messages), left - LAST_REPLY, "tokens") or messages
        return messages

    def is_too_long(self, messages: Sequence[Message], room: int) -> bool:
        if self.budget.estimates.knows(self.lm.name):
            return self.count(messages) > room
        return sum(fewest_tokens_in(message.content) for message in messages) > room * UNSURE

    def shortened(
        self, messages: Sequence[Message], tokens: int, room: int, limit: Literal["context", "tokens"]
    ) -> Sequence[Message] | None:
        """With at most ``room`` tokens, which the trace says; None where that cannot be."""
        if tokens <= room:
            return messages
        factor = self.budget.estimates.factor(self.lm.name)
        short = shorten(messages, room, self.count, lambda line: int(tokens_in(line) * factor))
        if short is None:
            return None
        self.trace.add(ShortenedPrompt(limit, tokens, room, short.left_out), self.span)
        return short.messages

    def learn(self, messages: Sequence[Message], error: LMError) -> Sequence[Message]:
        """From a refusal: how long the prompt was and what the model takes. Where it names neither, half the prompt.

        Raises:
            LMError: there is nothing to make shorter.
        """
        room, prompt = sizes_in(str(error))
        context = context_of(self.lm)
        if prompt:
            self.budget.estimates.learn(self.lm.name, raw_tokens(messages), prompt)
        if room and context is not None:
            context.learn(room)
            if self.count(messages) > room:
                return messages  # which will be made to fit
        tokens = self.count(messages)
        shorter = self.shortened(messages, tokens, min(room or tokens, tokens) // 2, "context")
        shorter = shorter or cut_in_half(messages)
        if shorter is None:
            raise error
        return shorter

    def plan(self, prompt: int, sampling: Sampling) -> tuple[Usage, Usage, int]:
        """The most that a call may cost, what a final one after it is likely to, and the cap on its reply that keeps it
        within its limits. ``prompt``: tokens."""
        most = cap = sampling.max_tokens or LONGEST_REPLY
        if not self.budget.limits_cost:
            return CALL, NOTHING, cap
        likely = self.budget.likely_reply()
        price: Pricing | None = getattr(self.lm, "price", None)
        keep = Usage(1, prompt, likely, price.dollars(prompt, likely) if price else None)
        if price is None and self.budget.limits_dollars:
            raise SetupError(f"The price of {self.lm.name} is not known, so a limit of dollars says nothing: {PRICE}.")
        cap = min(cap, max(USUAL_REPLY, 2 * likely))
        if (tokens := self.budget.tokens_left(self.final, keep.tokens)) is not None:
            cap = min(cap, (tokens - prompt) // sampling.n)
        dollars = self.budget.dollars_left(self.final, keep.dollars or 0.0)
        if dollars is not None and price is not None and (per_token := price.dollars(0, 10**6) / 10**6):
            cap = min(cap, int((dollars - price.dollars(prompt, 0)) / per_token / sampling.n))
        cap = max(cap, min(most, SHORTEST_REPLY))  # then it is refused
        reply = sampling.n * cap
        return Usage(1, prompt, reply, price.dollars(prompt, reply) if price else None), keep, cap

    async def charged(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """``since`` in the trace: the last entry before the call began, so what it may have waited for."""
        raw = raw_tokens(messages)
        prompt = self.budget.estimates.tokens(self.lm.name, raw)
        request, keep, cap = self.plan(prompt, sampling)
        if context := self.known_context():
            cap = min(cap, max(context - prompt, SHORTEST_REPLY))
        if cap != sampling.max_tokens:
            sampling = replace(sampling, max_tokens=cap, capped=True)
        self.budget.reserve(request, self.final, keep)
        used, since, began = CALL, len(self.trace.entries), time.monotonic()
        clocks = tuple(budget.clock for budget in self.budget.chain())
        call = CallUnderWay(clocks, self.seconds_left, asyncio.timeout(self.seconds_left()), self.say)
        try:
            async with call:
                reply = await self.reply(messages, sampling)
            used = reply.usage if reply.usage.seconds else replace(reply.usage, seconds=call.seconds(began))
        except LMError as error:
            used = used + error.used
            if error.kind == "timeout" and used.tokens:
                used = self.likely_cost(messages, sampling, request)
            used = replace(used, seconds=call.seconds(began))
            self.trace.add(FailedCall(error.kind, redact(str(error)), used), self.span)
            raise
        except (TimeoutError, asyncio.CancelledError) as error:
            reason = "seconds" if isinstance(error, TimeoutError) else "cancelled"
            cost = Usage() if call.is_unsent else self.likely_cost(messages, sampling, request)
            used = replace(cost, seconds=call.seconds(began))
            self.trace.add(FailedCall(reason, UNSENT if call.is_unsent else CUT_OFF, used), self.span)
            if reason == "cancelled":
                raise
            raise BudgetExceeded("seconds", self.budget.limit_of_seconds()) from error
        finally:
            self.budget.charge(request, used)
        self.budget.estimates.learn_from(self.lm.name, raw, reply)
        model = reply.model or self.lm.name
        event = LMCall(model, messages, reply.texts, reply.finish, used, since=since, replayed=reply.replayed)
        self.trace.add(event, self.span)
        return reply

    def say(self, words: str) -> None:
        self.trace.add(Note(words, passing=True), self.span)

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> Awaitable[Completion]:
        """Streamed, where somebody watches and the LM can."""
        if self.trace.writers is None or not hasattr(self.lm, "stream"):
            return self.lm.complete(messages, sampling)
        return self.reply_as_written(messages, sampling)

    async def reply_as_written(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        assert self.trace.writers is not None
        with self.trace.writers.call(self.span) as on_text:
            return await streamed(self.lm, messages, sampling, on_text)

    def seconds_left(self) -> float | None:
        return self.budget.seconds_left(self.final)

    def likely_cost(self, messages: Sequence[Message], sampling: Sampling, request: Usage) -> Usage:
        """Of a call that was cut off: what was reserved for it; where nothing was, a reply as others were."""
        if request.tokens:
            return replace(request, estimates=1)
        prompt = self.count(messages)
        reply = sampling.n * min(sampling.max_tokens or LONGEST_REPLY, self.budget.likely_reply())
        price: Pricing | None = getattr(self.lm, "price", None)
        return Usage(1, prompt, reply, price.dollars(prompt, reply) if price else None, estimates=1)
