"""Going on from a run that did not come to its end: what was bought and queried is not bought and queried again.

A prompt that was answered gets that answer, an action that was done brings what it brought. Everything else is done for
real, so where the data or the words have changed it is a run like any other from there on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from decisor.run import Run
from decisor.techniques.replay.playback import ReplayingEnvironment
from decisor.techniques.replay.recorded_run import RecordedStep, read_recorded_run
from decisor.trace.events import ActionResult, Entry, LMCall, UnreadableReply
from decisor.trace.writing import OnText, streamed
from decisor.types import LM, Completion, Message, Sampling, Usage

Prompt = tuple[tuple[str, str], ...]


@dataclass
class BoughtLM:
    """An LM with the replies that it gave before. What else is asked of it is asked of the LM itself."""

    lm: LM
    replies: dict[Prompt, list[LMCall]] = field(default_factory=lambda: defaultdict(list))

    @property
    def name(self) -> str:
        return self.lm.name

    def __getattr__(self, name: str) -> object:
        return getattr(self.lm, name)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        return self.bought(messages, sampling) or await self.lm.complete(messages, sampling)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        return self.bought(messages, sampling) or await streamed(self.lm, messages, sampling, on_text)

    def bought(self, messages: Sequence[Message], sampling: Sampling) -> Completion | None:
        """The reply that the prompt got before, once."""
        if not (replies := self.replies.get(prompt_of(messages))) or sampling.logprobs:
            return None
        reply = replies.pop(0)
        return Completion(reply.texts, Usage(), finish=reply.finish, model=reply.model or self.name, replayed=True)


def resuming(run: Run, entries: Sequence[Entry]) -> Run:
    """The same run, which first does what was done."""
    lm = BoughtLM(run.lm)
    for call in bought(entries):
        lm.replies[prompt_of(call.messages)].append(call)
    return run.using(lm=lm, env=ReplayingEnvironment(run.env, read_recorded_run(entries), done_before(entries)))


def bought(entries: Sequence[Entry]) -> list[LMCall]:
    """Without those at its end that could not be read: they would end it again."""
    calls: list[tuple[LMCall, bool]] = []
    for entry in entries:
        if isinstance(entry.event, LMCall):
            calls.append((entry.event, True))
        elif isinstance(entry.event, UnreadableReply) and calls:
            calls[-1] = calls[-1][0], False
    while calls and not calls[-1][1]:
        calls.pop()
    return [call for call, _ in calls]


def done_before(entries: Sequence[Entry]) -> list[RecordedStep]:
    """Without one that failed where the run ended: it may be what ended it."""
    steps = list(read_recorded_run(entries).steps)
    last = next((entry.event for entry in reversed(entries) if isinstance(entry.event, LMCall | ActionResult)), None)
    if steps and isinstance(last, ActionResult) and last.observation.error:
        steps.pop()
    return steps


def prompt_of(messages: Sequence[Message]) -> Prompt:
    return tuple((message.role, message.content) for message in messages)
