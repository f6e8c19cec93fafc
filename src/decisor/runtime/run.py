"""A run, through which a technique asks the LLM and acts in the environment.

Everything a technique does is ``ask`` or ``act``, so every call is charged, traced and error-handled here and nowhere
else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from decisor.errors import BudgetExceeded, LLMError, OutageError, ParseError, ToolError
from decisor.parsing.labelled import get_reply_answer, refuse_form_text
from decisor.parsing.prompting import USUAL, Asking, Calling, Way, append_complaint, vary_sampling, ways_of
from decisor.parsing.reply_form import Form, fill_in_form, is_json_reply
from decisor.runtime.budget import Budget, CallUnderWay
from decisor.runtime.call import ChargedCall, ShortenedConversations
from decisor.system.secrets import redact
from decisor.system.tasks import map_concurrently
from decisor.system.text import frame_observation, frame_text
from decisor.trace.events import ActionResult, ActionStart, NodeSpan, Note, Span, Trace, UnreadableReply
from decisor.types import (
    LLM,
    Action,
    Completion,
    Decision,
    Environment,
    Message,
    Observation,
    Question,
    Sampling,
    Usage,
)

T = TypeVar("T")
UNFINISHED = {
    "length": ("Your reply was cut off at its length limit. Answer more briefly.", "truncated"),
    "content_filter": ("Your reply was held back by a content filter. Say it in other words.", "content_filter"),
    "refusal": ("That is no answer: the question is about the data you were given.", "refusal"),
    "loop": ("Your reply repeated itself and was stopped. Answer briefly, and say nothing twice.", "loop"),
}
"""Ways to stop that make a reply no answer: what is said to it, once, and the reason that is counted."""
MOST = {"limits": 0, "content_filter": 1, "refusal": 1, "no_citation": 2, "unknown_source": 2}
"""How often a reply of this kind is asked for again at one place: more would bring the same, at a price."""
KEEP_OR_CORRECT = "Correct it, or keep it and say what it rests on."
ACTION = Usage(actions=1)


@dataclass(frozen=True)
class Run:
    """A run of one LLM in one environment, with one budget and one trace."""

    llm: LLM
    env: Environment
    budget: Budget = field(default_factory=Budget)
    trace: Trace = field(default_factory=Trace)
    span_id: int = 0
    retries: int = 2
    """How often a reply that cannot be read goes back to the LLM with the complaint."""
    calling: Calling = "text"
    """In which way replies are asked for."""
    asking: Asking = USUAL
    """Temperature and wording that a person set."""
    conversations: ShortenedConversations = field(default_factory=ShortenedConversations)
    """Those with tool calls that were too long: a technique goes on with its own list of messages."""

    @property
    def way(self) -> Way:
        """The way in which replies are asked for, as far as it is known that this LLM takes it."""
        if self.calling != "auto":
            return self.calling
        ways = ways_of(self.llm)
        return ways.best() if ways is not None else "text"

    def sampling(self, form: Form[T], sampling: Sampling) -> Sampling:
        """Add the schema or functions that hold the LLM to the form.

        Stop words are for text: within an object they would cut it.
        """
        if not form.shapes or self.way == "text":
            return sampling
        if self.way == "tools":
            return replace(sampling, stop=(), functions=form.functions())
        return replace(sampling, stop=(), schema=form.schema())

    def wording(self, form: Form[T]) -> str:
        """Return the sentence of a prompt about the form of the reply."""
        return form.wording(self.way)

    async def ask(
        self,
        prompt: str | Sequence[Message],
        form: Form[T] | Callable[[str], T],
        sampling: Sampling = Sampling(),
        final: bool = False,
        tries: int | None = None,
    ) -> T:
        """Ask the LLM for a reply of this form and read it.

        If it cannot be read, the LLM is asked again, with the complaint and an example. A plain function reads text
        that is asked for as text.

        An answer with objections goes back once, and then stands with the rest of them.

        ``final`` may use the budget's reserve: the call that answers. ``tries``: how often it is asked at most,
        where that is not ``retries`` + 1; an LLM that insists on the same answer (``MOST``) is asked less often.

        Raises:
            ParseError: none of its replies could be read.
            BudgetExceeded: a limit is reached.
            LLMError: the endpoint failed for good.
        """
        form = form if isinstance(form, Form) else Form("reply", "", form)
        prompt = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        messages = prompt
        insists: dict[str, int] = {}
        last = self.retries if tries is None else max(tries, 1) - 1
        standing: list[T] = []  # A value that was objected to: it stands where no later reply can be read.
        for attempt in range(last + 1):
            way = self.way
            try:
                reply = await self.complete(messages, self.sampling(form, vary_sampling(sampling, attempt)), final)
            except (BudgetExceeded, LLMError):
                # The value before the objection could be read, which is better than no answer.
                if standing:
                    return standing[0]
                raise
            self._note_way(way, form, reply)
            try:
                if reply.finish in UNFINISHED:
                    raise ParseError(*UNFINISHED[reply.finish])
                value = form.read(reply.text)
                # Small models copy the form or its example instead of filling it in.
                refuse_form_text(value, form)
                if why := explain_wrong_form(self.env, get_reply_answer(value)):
                    raise ParseError(why, "wrong_form")
                # An objection is raised once: an LLM that keeps its claim has decided, and asking on would be paid in
                # vain.
                if standing or attempt == last or not (objections := form.objections(value)):
                    return value
                standing.append(value)
                raise ParseError(" ".join([*(one.text for one in objections), KEEP_OR_CORRECT]), "objection")
            except ParseError as complaint:
                self.trace.add(UnreadableReply(complaint.reason, str(complaint)), self.span_id)
                insists[complaint.reason] = insists.get(complaint.reason, 0) + 1
                if attempt == last or insists[complaint.reason] > MOST.get(complaint.reason, last):
                    if standing:
                        return standing[0]
                    raise
                # If ``auto`` just gave up a way of asking, the next prompt must say the new form in words.
                example = self.example(form, complaint.reason) if self.way == way else self.wording(form)
                # Built on the first prompt, not the last one, so that complaints do not pile up.
                messages = append_complaint(prompt, reply.text, complaint, example)
        raise AssertionError("unreachable")

    def example(self, form: Form[T], reason: str) -> str:
        """Return the form filled in, with the tools of this run. reason: of the reply that could not be used."""
        forms: Callable[[], Mapping[str, str]] | None = getattr(self.env, "forms", None)
        return fill_in_form(form, self.way, forms() if forms else {}, self.env.describe(), reason)

    def _note_way(self, way: Way, form: Form[T], reply: Completion) -> None:
        """Note for ``auto`` that the endpoint refused or ignored the way of asking."""
        ways = ways_of(self.llm)
        if ways is None or self.calling != "auto" or way == "text" or not form.shapes:
            return
        # An endpoint that ignores a schema says so only by its reply: whole, and no object.
        if way not in ways.against and reply.finish == "stop" and reply.text.strip() and not is_json_reply(reply.text):
            ways.against[way] = "it wrote text all the same"
        if self.way != way:
            note = f"{self.llm.name} does not take {way} ({ways.against[way]}): replies are asked for as {self.way}."
            self.trace.add(Note(note), self.span_id)

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling = Sampling(), final: bool = False
    ) -> Completion:
        """Make one charged and traced call, unparsed. For techniques that read several texts of one call.

        A prompt that is too long for the model loses records, and the trace says so. Texts that an endpoint did not
        give are asked for one by one, each a call of its own, as far as the budget allows: at least one text comes
        back, and at most ``sampling.n``.

        With ``sampling.tools`` it is the next turn of a conversation, in ``Completion.turn``: one, whatever ``n`` is.
        If the conversation is too long, its results are shortened, here and in its later prompts.
        """
        sampling = replace(sampling, n=1) if sampling.tools else sampling
        reply = await self._complete(messages, sampling, final)
        missing = sampling.n - len(reply.texts)
        return await self._with_more(reply, missing, messages, sampling, final) if missing > 0 else reply

    async def _with_more(
        self, reply: Completion, missing: int, messages: Sequence[Message], sampling: Sampling, final: bool
    ) -> Completion:
        async def one_more(number: int) -> Completion | None:
            # With the same seed each further text would be the same.
            seed = None if sampling.seed is None else sampling.seed + number
            try:
                return await self._complete(messages, replace(sampling, n=1, seed=seed), final)
            except (BudgetExceeded, LLMError) as error:
                if isinstance(error, LLMError) and error.permanent:
                    raise
                return None

        # Join them as one reply to the prompt.
        more = [one for one in await map_concurrently(one_more, range(1, 1 + missing)) if one is not None]
        texts = (*reply.texts, *(text for one in more for text in one.texts))
        usage = sum((one.usage for one in more), reply.usage)
        return replace(reply, texts=texts, usage=usage, logprobs=sum((one.logprobs for one in more), reply.logprobs))

    def _complete(self, messages: Sequence[Message], sampling: Sampling, final: bool) -> Awaitable[Completion]:
        call = ChargedCall(self.llm, self.budget, self.trace, self.span_id, final, sampling.tools, self.conversations)
        return call.complete(messages, self.asking.of(sampling))

    async def act(self, action: Action) -> Observation:
        """Do an action and return its observation. A refused or failed query is an observation, not an exception.

        Raises:
            BudgetExceeded: a limit is reached.
            OutageError: the tool's server cannot be reached; asking the LLM on would be paid for in vain.
        """
        outage = False
        self.budget.reserve(ACTION)
        start = self.trace.add(ActionStart(action.tool, action.input), self.span_id)
        clocks = tuple(budget.clock for budget in self.budget.chain())
        call = CallUnderWay(clocks, self.budget.seconds_left, asyncio.timeout(self.budget.seconds_left()))
        began = time.monotonic()
        try:
            async with call:
                # What tools bring back is other people's text: it is cleaned, so that nothing hides in it.
                observation = frame_observation(await self.env.step(action))
        # A failed query is something that the LLM can learn from, so it becomes an observation.
        except ToolError as error:
            observation, outage = (
                Observation(note=frame_text(redact(str(error)), first=False), error=True),
                error.outage,
            )
        except TimeoutError as error:
            raise BudgetExceeded("seconds", self.budget.limit_of_seconds()) from error
        finally:
            self.budget.charge(ACTION, ACTION)
        # The wait for a person or for a place is no time of the query.
        self.trace.add(ActionResult(start, observation, round(call.seconds(began), 6)), self.span_id)
        # The trace gets the observation first; then the run ends, for asking on would be paid for in vain.
        if outage:
            raise OutageError(observation.note)
        return observation

    @contextmanager
    def span(self, span: str | NodeSpan) -> Iterator[Run]:
        """Open a span of the trace and yield this run within it. Safe to open many at once."""
        event = Span(span) if isinstance(span, str) else span
        yield replace(self, span_id=self.trace.add(event, self.span_id))

    def using(self, llm: LLM | None = None, env: Environment | None = None, budget: Budget | None = None) -> Run:
        """Return this run with another LLM, environment or budget."""
        return replace(self, llm=llm or self.llm, env=env or self.env, budget=budget or self.budget)


def explain_wrong_form(env: Environment, answer: str) -> str:
    """Explain why a text can be no answer in an environment; '' if it can be, or none can tell."""
    check: Callable[[str], str] | None = getattr(env, "wrong_form", None)
    return check(answer) if check is not None and answer else ""


class Technique(Protocol):
    """A reasoning loop."""

    async def __call__(self, question: Question, run: Run) -> Decision: ...
