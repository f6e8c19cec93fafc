"""The two verbs. Everything a technique does is ``ask`` the model or ``act`` in the environment, through one Run, so
every call is charged, traced and error-handled here and nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from decisor.aio import each
from decisor.budget import Budget
from decisor.calling import Calling, Way, Ways
from decisor.errors import BudgetExceeded, LMError, OutageError, ParseError, SetupError, ToolError
from decisor.outside import framed, framed_observation
from decisor.replies.form import Form
from decisor.secrets import redact
from decisor.trace.events import ActionResult, ActionStart, FailedCall, LMCall, Span, Trace, UnreadableReply
from decisor.trace.graph_events import NodeSpan
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Pricing, Sampling, Usage

T = TypeVar("T")
UNFINISHED = {
    "length": ("Your reply was cut off at its length limit. Answer more briefly.", "truncated"),
    "content_filter": ("Your reply was held back by a content filter. Say it in other words.", "content_filter"),
    "refusal": ("That is no answer: the question is about the data you were given.", "refusal"),
}
"""Ways to stop that make a reply no answer: what is said to it, once, and the reason that is counted."""
CALL, ACTION = Usage(calls=1), Usage(actions=1)
GAP = "\n[... left out, because the conversation is too long ...]\n"
SHORTEST_CUT = 400
PRICE = "set DECISOR_PRICE (dollars per million tokens of prompt and reply, such as 0.4,1.6), or leave the limit out"
CUT_OFF = "It was cut off before its reply was there; what it cost is an estimate."


@dataclass(frozen=True)
class Run:
    """One LM, one environment, one budget, one trace.

    ``retries``: how often a reply that cannot be read goes back to the model with the complaint. ``calling``: in which
    way replies are asked for.
    """

    lm: LM
    env: Environment
    budget: Budget = field(default_factory=Budget)
    trace: Trace = field(default_factory=Trace)
    span_id: int = 0
    retries: int = 2
    calling: Calling = "text"

    @property
    def way(self) -> Way:
        """How replies are asked for, as far as it is known what this LM takes."""
        if self.calling != "auto":
            return self.calling
        ways: Ways | None = getattr(self.lm, "ways", None)
        return ways.best() if ways is not None else "text"

    def sampling(self, form: Form[T], sampling: Sampling) -> Sampling:
        """The same with what holds the LM to the form."""
        return sampling

    def wording(self, form: Form[T]) -> str:
        """What a prompt says of the form of the reply."""
        return form.wording(self.way)

    async def ask(
        self,
        prompt: str | Sequence[Message],
        form: Form[T] | Callable[[str], T],
        sampling: Sampling = Sampling(),
        final: bool = False,
    ) -> T:
        """Ask the LM for a reply of this form and read it; one that cannot be read goes back with the complaint. A
        plain function reads text that is asked for as text.

        ``final`` may use what the budget keeps back: the call that answers.

        Raises:
            ParseError: it still could not be read after ``retries`` more tries.
            BudgetExceeded: a limit is reached.
            LMError: the endpoint failed for good.
        """
        form = form if isinstance(form, Form) else Form("reply", "", form)
        sampling = self.sampling(form, sampling)
        messages = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        unfinished = 0
        for left in range(self.retries, -1, -1):
            reply = await self.complete(messages, sampling, final)
            try:
                if reply.finish in UNFINISHED:
                    unfinished += 1
                    raise ParseError(*UNFINISHED[reply.finish])
                return form.read(reply.text)
            except ParseError as complaint:
                self.trace.add(UnreadableReply(complaint.reason, str(complaint)), self.span_id)
                if not left or complaint.reason == "limits" or unfinished > 1:
                    raise
                again = f"{complaint}\nAnswer again, in the form asked for."
                messages = [*messages, Message("assistant", reply.text or "(nothing)"), Message("user", again)]
        raise AssertionError("unreachable")

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling = Sampling(), final: bool = False
    ) -> Completion:
        """One charged and traced call, unparsed (for techniques that read several texts of one call).

        A conversation that is too long for the model is shortened once, by rule, and the trace says so. Texts that an
        endpoint did not give are asked for one by one, each a call of its own, as far as the budget allows: at least
        one text comes back, and at most ``sampling.n``.
        """
        try:
            reply = await self._complete(messages, sampling, final)
        except LMError as error:
            shorter = shortened(messages) if error.kind == "context" else None
            if shorter is None:
                raise
            messages = shorter
            reply = await self._complete(messages, sampling, final)
        missing = range(1, 1 + sampling.n - len(reply.texts))
        if not missing:
            return reply

        async def one_more(number: int) -> Completion | None:
            seed = None if sampling.seed is None else sampling.seed + number
            try:
                return await self._complete(messages, replace(sampling, n=1, seed=seed), final)
            except (BudgetExceeded, LMError) as error:
                if isinstance(error, LMError) and error.permanent:
                    raise
                return None

        return joined([reply, *filter(None, await each(one_more, missing))])

    async def _complete(self, messages: Sequence[Message], sampling: Sampling, final: bool) -> Completion:
        """``since`` in the trace: the last entry before the call began, so what it may have waited for."""
        limited = self.budget.limits_cost
        request = self._likely_cost(messages, sampling) if limited else CALL
        if limited and request.dollars is None and self.budget.limits_dollars:
            raise SetupError(f"The price of {self.lm.name} is not known, so a limit of dollars says nothing: {PRICE}.")
        self.budget.reserve(request, final)
        used = CALL
        since, began = len(self.trace.entries), time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                reply = await self.lm.complete(messages, sampling)
            used = reply.usage if reply.usage.seconds else replace(reply.usage, seconds=time.monotonic() - began)
        except LMError as error:
            used = replace(used + error.used, seconds=time.monotonic() - began)
            self.trace.add(FailedCall(error.kind, redact(str(error)), used), self.span_id)
            raise
        except (TimeoutError, asyncio.CancelledError) as error:
            reason = "seconds" if isinstance(error, TimeoutError) else "cancelled"
            used = replace(self._likely_cost(messages, sampling), seconds=time.monotonic() - began, estimates=1)
            self.trace.add(FailedCall(reason, CUT_OFF, used), self.span_id)
            if reason == "cancelled":
                raise
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(request, used)
        model = reply.model or self.lm.name
        call = LMCall(model, messages, reply.texts, reply.finish, used, since=since, replayed=reply.replayed)
        self.trace.add(call, self.span_id)
        return reply

    def _likely_cost(self, messages: Sequence[Message], sampling: Sampling) -> Usage:
        """Of one call: a token for four bytes of its prompt, its reply as long as it may be, or as others were."""
        prompt = (sum(map(size_of, messages)) + 3) // 4
        reply = sampling.n * (sampling.max_tokens or self.budget.likely_reply())
        price: Pricing | None = getattr(self.lm, "price", None)
        return Usage(1, prompt, reply, price.dollars(prompt, reply) if price else None)

    async def act(self, action: Action) -> Observation:
        """Do it. A refused or failed query is an observation, not an exception.

        Raises:
            BudgetExceeded: a limit is reached.
            OutageError: what the tool stands on cannot be reached; asking the LM on would be paid for in vain.
        """
        outage = False
        self.budget.reserve(ACTION)
        start = self.trace.add(ActionStart(action.tool, action.input), self.span_id)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                observation = framed_observation(await self.env.step(action))
        except ToolError as error:
            observation, outage = Observation(note=framed(redact(str(error)), first=False), error=True), error.outage
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limits.seconds or 0.0) from error
        finally:
            self.budget.charge(ACTION, ACTION)
        self.trace.add(ActionResult(start, observation, round(time.monotonic() - began, 6)), self.span_id)
        if outage:
            raise OutageError(observation.note)
        return observation

    @contextmanager
    def span(self, span: str | NodeSpan) -> Iterator[Run]:
        """The same run, one level deeper in the trace: in a span of that name. Safe to open many at once."""
        event = Span(span) if isinstance(span, str) else span
        yield replace(self, span_id=self.trace.add(event, self.span_id))

    def using(self, lm: LM | None = None, env: Environment | None = None, budget: Budget | None = None) -> Run:
        """The same run with a part switched."""
        return replace(self, lm=lm or self.lm, env=env or self.env, budget=budget or self.budget)


def size_of(message: Message) -> int:
    """In bytes."""
    return len(message.content) if message.content.isascii() else len(message.content.encode("utf-8", "replace"))


def joined(replies: Sequence[Completion]) -> Completion:
    """Several replies to one prompt as one."""
    texts = tuple(text for reply in replies for text in reply.texts)
    usage = sum((reply.usage for reply in replies[1:]), replies[0].usage)
    return replace(replies[0], texts=texts, usage=usage, logprobs=sum((reply.logprobs for reply in replies), ()))


def shortened(messages: Sequence[Message]) -> list[Message] | None:
    """Half of it: the longest messages lose their middle first, those of the system stay. None where that is no help.

    >>> [len(m.content) for m in shortened([Message("system", "s" * 50), Message("user", "u" * 10_000)])]
    [50, 4975]
    """
    texts = [message.content for message in messages]
    goal = sum(map(len, texts)) // 2
    able = [i for i, message in enumerate(messages) if message.role != "system" and len(message.content) > SHORTEST_CUT]
    while able and (over := sum(map(len, texts)) - goal) > 0:
        at = max(able, key=lambda i: len(texts[i]))
        text = texts[at]
        keep = max(len(text) - over - len(GAP), len(text) // 4)
        texts[at] = text[: keep * 2 // 5] + GAP + text[len(text) - (keep - keep * 2 // 5) :]
        able.remove(at)
    if sum(map(len, texts)) > goal * 1.5:
        return None
    return [Message(message.role, text) for message, text in zip(messages, texts, strict=True)]
