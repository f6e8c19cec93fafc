"""One call of an LLM: prompt made to fit, reply capped, cost reserved, charged and traced.

The context length of a model (prompt and reply together) is read from the endpoint or from a refusal, and remembered
for the process. A prompt that is too long loses records; one without records is cut in half. Of a conversation with
tool calls the results are shortened, for all its later prompts. The settings of a person for an LLM hold for each of
its calls.

A conversation of tool calls that is too long for its LLM is shortened once and then kept so. Leaving a little more out
of each prompt would give every call another beginning, and an endpoint's cache would never hold it. So at ``FULL`` of
the context many results become one line each, down to ``GOAL``, and all later prompts of the conversation begin with
the shortened messages. No message is left out: providers refuse a call without its result.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from decisor.errors import BudgetExceeded, LLMError, SetupError
from decisor.runtime.budget import NOTHING, Budget, CallUnderWay
from decisor.runtime.prompt import (
    ShortPrompt,
    estimate_fewest_tokens,
    estimate_prompt_tokens,
    estimate_tokens,
    list_sent_texts,
    shorten_prompt,
)
from decisor.system.secrets import redact
from decisor.system.wording import format_count
from decisor.trace.events import FailedCall, LLMCall, Note, ShortenedPrompt, Trace, stream_if_possible
from decisor.types import LLM, Completion, Function, Message, Pricing, Sampling, Usage

FULL, GOAL = 0.75, 0.4
"""Shares of the context: a longer prompt is shortened, down to the second."""
LATEST = 2
"""Results that stay whole as long as the prompt has the length of the goal without them."""
ROW = re.compile(r"^\[(o\d+)\.[a-z]*(\d*)[^\]\n]*\]", re.M)
HEADER = re.compile(r"^record \| (.+)$", re.M)
LINE = "{id}: {count}{columns}; ask for `rows {id} {first}` to see them again"
LONG_RESULT = 400
"""Characters; a result without rows keeps so many of its beginning."""
RESULT_GAP = "(... left out, because the conversation is too long ...)"


@dataclass(slots=True)
class ShortenedConversations:
    """The conversations of a run that were shortened: their messages at that time, and the replacement."""

    beginnings: list[tuple[tuple[Message, ...], tuple[Message, ...]]] = field(default_factory=list)

    def shorten(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages of a conversation with the beginning that was sent for it the last time."""
        for whole, short in self.beginnings:
            if tuple(messages[: len(whole)]) == whole:
                return (*short, *messages[len(whole) :])
        return messages

    def keep(self, messages: Sequence[Message], short: Sequence[Message]) -> None:
        """Keep the replacement of these messages, which also replaces that of their beginning."""
        self.beginnings = [pair for pair in self.beginnings if tuple(messages[: len(pair[0])]) != pair[0]]
        self.beginnings.append((tuple(messages), tuple(short)))


def shorten_conversation(
    messages: Sequence[Message], goal: int, room: int, count: Callable[[Sequence[Message]], int]
) -> ShortPrompt:
    """Make one line of each result but the latest, and of these too while the prompt is longer than ``goal`` tokens.

    Results that the LLM has not read yet stay, but lose lines from their end while the prompt is longer than ``room``.
    Thoughts of earlier turns go: models refuse thoughts about another prompt.
    """
    now = [message if message.raw is None else replace(message, raw=None) for message in messages]
    last_reply = max((at for at, message in enumerate(now) if message.role == "assistant"), default=0)
    results, left_out = list_results(now), list[str]()
    read = [at for at in results if at < last_reply]
    for at in read:
        if at in results[-LATEST:] and count(now) <= goal:
            break
        line, ids = shorten_result(now[at].content)
        if len(line) < len(now[at].content):
            now[at] = replace(now[at], content=line)
            left_out += ids
    unread = [at for at in results if at > last_reply]
    while count(now) > room and unread:
        at = max(unread, key=lambda at: len(now[at].content))
        text = now[at].content
        if len(text) <= LONG_RESULT:
            break
        # The second half of the lines goes, or of the characters of a single line.
        lines = text.removesuffix(RESULT_GAP).rstrip("\n").split("\n")
        half = "\n".join(lines[: len(lines) // 2]) if len(lines) > 1 else text[: len(text) // 2]
        now[at] = replace(now[at], content=f"{half}\n{RESULT_GAP}")
    return ShortPrompt(tuple(now), tuple(left_out))


def list_results(messages: Sequence[Message]) -> list[int]:
    """Return the places of the results, also of calls that were written as text and answered in a user's turn."""
    first_reply = next((at for at, message in enumerate(messages) if message.role == "assistant"), len(messages))
    return [
        at
        for at, message in enumerate(messages)
        if message.role == "tool" or (message.role == "user" and at > first_reply and ROW.search(message.content))
    ]


def shorten_result(text: str) -> tuple[str, list[str]]:
    r"""Return a line for each observation in a result, and the ids of these; of other results the beginning.

    >>> shorten_result("record | name | cost\n[o1.r1] | oak | 90\n[o1.r2] | elm | 95\nAll 2 rows.")
    ('o1: 2 rows of name, cost; ask for `rows o1 1` to see them again', ['o1'])
    """
    rows: dict[str, list[str]] = {}
    for row in ROW.finditer(text):
        rows.setdefault(row[1], []).append(row[2])
    if not rows:
        return (text if len(text) <= LONG_RESULT else f"{text[:LONG_RESULT]} {RESULT_GAP}"), []
    header = HEADER.search(text)
    columns = f" of {header[1].replace(' | ', ', ')}" if header else ""
    lines = [
        LINE.format(
            id=id,
            count=format_count(len(numbers), "row" if header else "passage"),
            columns=columns,
            first=numbers[0] or 1,
        )
        for id, numbers in rows.items()
    ]
    return "\n".join(lines), list(rows)


NUMBER = r"(\d[\d,]*)"
# Each endpoint words its refusal differently, so the sizes are looked for in the text of it.
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


def read_refused_sizes(complaint: str) -> tuple[int, int]:
    """Read the tokens of context and prompt that a refusal names; 0 for a size that it does not name.

    >>> read_refused_sizes("This model's maximum context length is 8192 tokens. "
    ...     "However, your messages resulted in 9,121 tokens.")
    (8192, 9121)
    >>> read_refused_sizes("request (1545 tokens) exceeds the available context size (1024 tokens), try increasing it")
    (1024, 1545)
    >>> read_refused_sizes("prompt is too long: 210000 tokens > 200000 maximum")
    (200000, 210000)
    """
    context, prompt = first_number(CONTEXT, complaint), first_number(PROMPT, complaint)
    # A prompt that fits its context is not refused for its length: then the number that was read as the context is
    # another one.
    return (context, prompt) if not prompt or context <= prompt else (0, prompt)


CAP = re.compile(r"max_\w*tokens|maximum tokens|(?:completion|output) tokens", re.I)
"""In a refusal of a request for too long a reply."""


def read_longest_reply(complaint: str, cap: int) -> int:
    """Read the tokens of the longest reply that a refusal of ``cap`` allows; ``LONGEST_REPLY`` if it names none.

    >>> read_longest_reply("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 16_000)
    8192
    >>> read_longest_reply("max_tokens is too large: 16000. This model's maximum context length is 8192 tokens", 16_000)
    2048
    """
    numbers = [int(number.replace(",", "")) for number in re.findall(NUMBER, complaint)]
    # Prompt and reply share a context, so its length is no limit of the reply alone.
    limits = [] if "context" in complaint.lower() else [number for number in numbers if LONGEST_REPLY < number < cap]
    return min(limits, default=LONGEST_REPLY)


def first_number(forms: tuple[str, ...], text: str) -> int:
    for form in forms:
        if match := re.search(form, text, re.I):
            return int(match[1].replace(",", ""))
    return 0


@dataclass
class ContextLength:
    """The context length of one model at one endpoint, in tokens; 0 if unknown."""

    look: Callable[[], int] = lambda: 0
    """Asks the endpoint; 0 means that it does not say."""
    tokens: int = 0
    looks: int = 0
    """Number of times that the endpoint was asked."""
    longest_reply: int = 0
    """Tokens of the longest reply, from a refusal of a longer one; 0 if none was refused."""

    async def find(self) -> int:
        """Return the context length in tokens, 0 if unknown. The endpoint is asked at most ``LOOKS`` times."""
        if not self.tokens and self.looks < LOOKS:
            self.looks += 1
            # The question is a blocking request, and a refusal may name the length while it is under way.
            self.tokens = await asyncio.to_thread(self.look) or self.tokens
        return self.tokens

    def learn(self, tokens: int) -> None:
        """Set the context length that a refusal named."""
        self.tokens = tokens


def context_length_of(llm: LLM) -> ContextLength | None:
    """Return the context length of an LLM, or of an LLM that it wraps; None without one."""
    at: object = llm
    while at is not None:
        context = getattr(at, "context", None)
        if isinstance(context, ContextLength):
            return context
        at = getattr(at, "llm", None)
    return None


GAP = "\n[... left out, because the conversation is too long ...]\n"
SHORTEST_CUT = 400


def cut_in_half(messages: Sequence[Message]) -> list[Message] | None:
    """Cut a prompt to half its characters; None if that is impossible.

    The longest messages lose their middle first; system messages stay.

    >>> [len(m.content) for m in cut_in_half([Message("system", "s" * 50), Message("user", "u" * 10_000)])]
    [50, 4975]
    """
    texts = [message.content for message in messages]
    goal = sum(map(len, texts)) // 2
    # A system message has the task and the form: without it no reply could be read.
    able = [i for i, message in enumerate(messages) if message.role != "system" and len(message.content) > SHORTEST_CUT]
    while able and (over := sum(map(len, texts)) - goal) > 0:
        at = max(able, key=lambda i: len(texts[i]))
        text = texts[at]
        # A quarter of a message always stays, more of its end (3/5) than of its beginning, for the request comes last.
        keep = max(len(text) - over - len(GAP), len(text) // 4)
        texts[at] = text[: keep * 2 // 5] + GAP + text[len(text) - (keep - keep * 2 // 5) :]
        able.remove(at)
    # Not even near half: sending it would most likely be refused again.
    if sum(map(len, texts)) > goal * 1.5:
        return None
    # Thoughts go with what is cut: models refuse those that were thought about another prompt.
    return [replace(message, content=text, raw=None) for message, text in zip(messages, texts, strict=True)]


@dataclass(frozen=True, slots=True)
class LLMSettings:
    """The settings of a person for every call of one LLM. None means that the person set nothing."""

    timeout: float | None = None
    """Seconds for one completion with all its retries."""
    context: int | None = None
    """Tokens that prompt and reply may have together."""
    max_tokens: int | None = None
    """Tokens of a reply."""
    temperature: float | None = None
    """Of calls for which a technique names none."""


NONE = LLMSettings()


def llm_settings_of(llm: LLM) -> LLMSettings:
    """Return the settings of an LLM, or of an LLM that it wraps."""
    at: object = llm
    while at is not None:
        settings = getattr(at, "settings", None)
        if isinstance(settings, LLMSettings):
            return settings
        at = getattr(at, "llm", None)
    return NONE


LONGEST_REPLY = 2048
"""Tokens, where nobody names another cap."""
TOOLS_REPLY = 16_000
"""The same of a conversation with tools: models that think before their calls need more than ``LONGEST_REPLY``."""
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
"""Before an LLM has counted a prompt, one that may be too long by so much is sent all the same."""
TRIES_TO_FIT = 1
CALL = Usage(calls=1)
PRICE = "set DECISOR_PRICE (dollars per million tokens of prompt and reply, such as 0.4,1.6), or leave the limit out"
CUT_OFF = "It was cut off before its reply was there; what it cost is an estimate."
TOO_LONG = (
    "The prompt is about {tokens:,} tokens long without what can be left out, and of the {context:,} tokens that this "
    "LLM takes {room:,} are for it. Let fewer tables be read (--tables), give shorter rules, or serve the LLM with a "
    "longer context."
)
UNSENT = "It was cut off before it was sent, so it cost nothing."


@dataclass(frozen=True)
class ChargedCall:
    """A call of one LLM that is charged to one budget and recorded in one trace."""

    llm: LLM
    budget: Budget
    trace: Trace
    span: int
    final: bool = False
    """Whether it may use the part that the budget keeps back."""
    tools: tuple[Function, ...] = ()
    """Functions that are sent with the prompt, which is a conversation then."""
    conversations: ShortenedConversations = field(default_factory=ShortenedConversations)
    """Those that earlier calls of the run shortened."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Send the prompt, shortened if it must be, and return the reply.

        Raises BudgetExceeded, before anything is sent if that can be known; LLMError of the kind ``context`` if the
        prompt cannot be made to fit; and other LLMErrors.
        """
        before = sent = self.conversations.shorten(messages)
        for left in range(TRIES_TO_FIT, -1, -1):
            capped = self.with_settings(sampling)
            sent = await self.fit(sent, capped)
            if self.tools and sent is not before:
                self.conversations.keep(messages, sent)
            try:
                return await self.charged(sent, capped)
            except LLMError as error:
                if error.kind not in ("context", "request") or not left:
                    raise
                if not self.learn_cap(capped, error):
                    sent = self.learn(sent, error)
        raise AssertionError("unreachable")

    def with_settings(self, sampling: Sampling) -> Sampling:
        """Apply the settings of a person for this LLM, and a cap on the reply."""
        settings = llm_settings_of(self.llm)
        usual = TOOLS_REPLY if self.tools else LONGEST_REPLY
        usual = THOUGHTFUL_REPLY if self.llm.name in self.budget.estimates.thinkers else usual
        if (context := context_length_of(self.llm)) is not None and context.longest_reply:
            usual = min(usual, context.longest_reply)
        cap = sampling.max_tokens or settings.max_tokens or usual
        cap = min(cap, settings.max_tokens or cap)
        # A temperature of 0 counts as unnamed: it is the default of ``Sampling``.
        temperature = sampling.temperature or settings.temperature or 0.0
        return replace(sampling, max_tokens=cap, capped=cap != sampling.max_tokens, temperature=temperature)

    def count(self, messages: Sequence[Message]) -> int:
        return self.budget.estimates.tokens(self.llm.name, estimate_prompt_tokens(messages, self.tools))

    async def context(self, tokens: int) -> int:
        """Return the context length of the LLM in tokens, 0 if unknown.

        The endpoint is only asked for it if a prompt of ``tokens`` could be too long.
        """
        known = self.known_context()
        context = context_length_of(self.llm) if not known and tokens >= LOOK_AT else None
        return known if context is None else await context.find()

    def known_context(self) -> int:
        context = context_length_of(self.llm)
        return llm_settings_of(self.llm).context or (context.tokens if context is not None else 0)

    async def fit(self, messages: Sequence[Message], sampling: Sampling) -> Sequence[Message]:
        """Leave records out of the prompt until it fits the context.

        A final prompt is made to fit the tokens of the budget too.

        Raises:
            LLMError: what may not be left out is too long already.
        """
        tokens = self.count(messages)
        if context := await self.context(tokens):
            # Prompt and reply share the context: a share of it is left for the reply.
            room = context - min(sampling.max_tokens or LONGEST_REPLY, max(context // REPLY_SHARE, SHORTEST_REPLY))
            shorter = self.shortened(messages, tokens, room, "context", context)
            if shorter is None and self.is_too_long(messages, room):
                raise LLMError(TOO_LONG.format(tokens=tokens, context=context, room=room), "context")
            messages = shorter or messages
        # The final call is the run's last chance to answer: it is shortened rather than refused for its tokens.
        left = self.budget.tokens_left(True, 0) if self.final else None
        if left is not None:
            messages = self.shortened(messages, self.count(messages), left - LAST_REPLY, "tokens") or messages
        return messages

    def is_too_long(self, messages: Sequence[Message], room: int) -> bool:
        if self.budget.estimates.knows(self.llm.name):
            return self.count(messages) > room
        # Nothing was counted yet, so only a prompt that is too long by the lowest estimate, and by a margin, is refused
        # unsent.
        return sum(map(estimate_fewest_tokens, list_sent_texts(messages, self.tools))) > room * UNSURE

    def shortened(
        self, messages: Sequence[Message], tokens: int, room: int, limit: Literal["context", "tokens"], context: int = 0
    ) -> Sequence[Message] | None:
        """Leave records out until the prompt has at most ``room`` tokens; None if that cannot be.

        A conversation is shortened before it fills the ``context``, if that is known, and by more than it must be: so
        it happens seldom. The trace notes it.
        """
        full = goal = room
        if self.tools and context:
            full, goal = min(room, int(FULL * context)), int(GOAL * context)
        if tokens <= full:
            return messages
        shorter, left_out = tuple(messages), tuple[str, ...]()
        if self.tools:
            conversation = shorten_conversation(messages, goal, room, self.count)
            shorter, left_out = conversation.messages, conversation.left_out
        factor = self.budget.estimates.factor(self.llm.name)
        short = shorten_prompt(shorter, room, self.count, lambda line: int(estimate_tokens(line) * factor))
        if short is None:
            return None
        if short.messages == tuple(messages):
            return messages
        self.trace.add(ShortenedPrompt(limit, tokens, full, left_out + short.left_out), self.span)
        return short.messages

    def learn_cap(self, sampling: Sampling, error: LLMError) -> bool:
        """Learn from a refusal that the model writes no reply as long as the cap. False if it is about something else.

        A cap that a person or a technique named is theirs to change.
        """
        cap, context = sampling.max_tokens or 0, context_length_of(self.llm)
        if context is None or not sampling.capped or cap <= LONGEST_REPLY or not CAP.search(str(error)):
            return False
        context.longest_reply = read_longest_reply(str(error), cap)
        return True

    def learn(self, messages: Sequence[Message], error: LLMError) -> Sequence[Message]:
        """Learn the sizes of prompt and context from a refusal, and shorten the prompt.

        Without a size in the refusal, the prompt is halved.

        Raises:
            LLMError: there is nothing to make shorter, or it was refused for another reason.
        """
        if error.kind != "context":
            raise error
        room, prompt = read_refused_sizes(str(error))
        context = context_length_of(self.llm)
        if prompt:
            self.budget.estimates.learn(self.llm.name, estimate_prompt_tokens(messages, self.tools), prompt)
        if room and context is not None:
            context.learn(room)
            if self.count(messages) > room:
                return messages  # which will be made to fit
        tokens = self.count(messages)
        # The refusal named no size, or one that the estimate meets: half is certain to make a difference.
        shorter = self.shortened(messages, tokens, min(room or tokens, tokens) // 2, "context")
        shorter = shorter or cut_in_half(messages)
        if shorter is None:
            raise error
        return shorter

    def plan(self, prompt: int, sampling: Sampling) -> tuple[Usage, Usage, int]:
        """Return the highest cost of a call, the likely cost of a final call after it, and its reply cap.

        The cap keeps the call within its limits. prompt: tokens.
        """
        most = cap = sampling.max_tokens or LONGEST_REPLY
        if not self.budget.limits_cost:
            return CALL, NOTHING, cap
        likely = self.budget.likely_reply()
        price: Pricing | None = getattr(self.llm, "price", None)
        # A final call shows about the same prompt, so its cost is estimated from this one.
        keep = Usage(1, prompt, likely, price.dollars(prompt, likely) if price else None)
        if price is None and self.budget.limits_dollars:
            raise SetupError(f"The price of {self.llm.name} is not known, so a limit of dollars says nothing: {PRICE}.")
        # The whole cap is reserved. One far above the usual reply would reserve the limit away.
        cap = min(cap, max(USUAL_REPLY, 2 * likely))
        if (tokens := self.budget.tokens_left(self.final, keep.tokens)) is not None:
            # Even a corrected estimate is up to a tenth off (a table after prose), and the endpoint counts the tokens.
            cap = min(cap, (tokens - prompt - prompt // 10) // sampling.n)
        dollars = self.budget.dollars_left(self.final, keep.dollars or 0.0)
        if dollars is not None and price is not None and (per_token := price.dollars(0, 10**6) / 10**6):
            cap = min(cap, int((dollars - price.dollars(prompt, 0)) / per_token / sampling.n))
        cap = max(cap, min(most, SHORTEST_REPLY))  # then it is refused
        reply = sampling.n * cap
        return Usage(1, prompt, reply, price.dollars(prompt, reply) if price else None), keep, cap

    async def charged(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Make the call within its reservation and deadline; charge and trace it.

        ``since`` in the trace is the last entry before the call began, so the call may have waited for any entry up to
        it.
        """
        raw = estimate_prompt_tokens(messages, self.tools)
        prompt = self.budget.estimates.tokens(self.llm.name, raw)
        # What the call may cost, and the cap that keeps it within its limits and the context.
        request, keep, cap = self.plan(prompt, sampling)
        if context := self.known_context():
            cap = min(cap, max(context - prompt, SHORTEST_REPLY))
        if cap != sampling.max_tokens:
            sampling = replace(sampling, max_tokens=cap, capped=True)
        # From here to ``charge`` in the finally block there is a reservation, whatever happens between.
        self.budget.reserve(request, self.final, keep)
        used, since, began = CALL, len(self.trace.entries), time.monotonic()
        clocks = tuple(budget.clock for budget in self.budget.chain())
        call = CallUnderWay(clocks, self.seconds_left, asyncio.timeout(self.seconds_left()), self.say)
        try:
            async with call:
                reply = await self.reply(messages, sampling)
            # The seconds of the shared endpoint are kept: they are without the wait for a place.
            used = reply.usage if reply.usage.seconds else replace(reply.usage, seconds=call.seconds(began))
        except LLMError as error:
            # A form that is refused within a call is asked for in another way and counts nothing; so do tools.
            used = error.used if error.kind == "tools" else used + error.used
            if error.kind == "timeout" and used.tokens:
                used = self.likely_cost(messages, sampling, request)
            used = replace(used, seconds=call.seconds(began))
            self.trace.add(FailedCall(error.kind, redact(str(error)), used), self.span)
            raise
        except (TimeoutError, asyncio.CancelledError) as error:
            reason = "seconds" if isinstance(error, TimeoutError) else "cancelled"
            # The endpoint does not tell what a broken call cost, and will bill it: an estimate, unless it was never
            # sent.
            cost = Usage() if call.is_unsent else self.likely_cost(messages, sampling, request)
            used = replace(cost, seconds=call.seconds(began))
            self.trace.add(FailedCall(reason, UNSENT if call.is_unsent else CUT_OFF, used), self.span)
            # A cancellation must be raised on, or the task that was told to stop goes on.
            if reason == "cancelled":
                raise
            raise BudgetExceeded("seconds", self.budget.limit_of_seconds()) from error
        finally:
            self.budget.charge(request, used)
        # Only a reply that came back corrects the estimates.
        self.budget.estimates.learn_from(self.llm.name, raw, reply)
        model = reply.model or self.llm.name
        self.trace.add(
            LLMCall(model, messages, reply.texts, reply.finish, used, since, reply.replayed, reply.turn), self.span
        )
        return reply

    def say(self, words: str) -> None:
        self.trace.add(Note(words, passing=True), self.span)

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> Awaitable[Completion]:
        """Ask the LLM, streamed if somebody watches and the LLM can stream."""
        if self.trace.writers is None or not hasattr(self.llm, "stream"):
            return self.llm.complete(messages, sampling)
        return self.reply_as_written(messages, sampling)

    async def reply_as_written(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        assert self.trace.writers is not None
        with self.trace.writers.call(self.span) as on_text:
            return await stream_if_possible(self.llm, messages, sampling, on_text)

    def seconds_left(self) -> float | None:
        return self.budget.seconds_left(self.final)

    def likely_cost(self, messages: Sequence[Message], sampling: Sampling, request: Usage) -> Usage:
        """Estimate the cost of a call that was cut off.

        It is the reservation of the call; without one, the prompt and a reply as long as others were.
        """
        if request.tokens:
            return replace(request, estimates=1)
        prompt = self.count(messages)
        reply = sampling.n * min(sampling.max_tokens or LONGEST_REPLY, self.budget.likely_reply())
        price: Pricing | None = getattr(self.llm, "price", None)
        return Usage(1, prompt, reply, price.dollars(prompt, reply) if price else None, estimates=1)
