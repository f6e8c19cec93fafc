"""An LM and an environment that first say again what they said in a recorded run, then go on for real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from decisor.calling import Ways, ways_of
from decisor.errors import SetupError
from decisor.techniques.replay.recorded_run import RecordedRun, RecordedStep, Reply, number_of
from decisor.techniques.replay.reply_fields import Fields, with_fields
from decisor.techniques.shared.decision import THINK
from decisor.techniques.shared.forms import forms_of
from decisor.trace.writing import OnText, streamed
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Pricing, Record, Sampling, Usage

FLAGS = {"sql": "--db", "cypher": "--graph", "passages": "--docs", "whatif": "--model"}
OWN = "--tools"
NOTHING = Fields()


@dataclass
class ReplayingLM:
    """The old replies first, without a call; then the LM. ``begins``: what the first new reply is to say: its thought
    and its plan are told to the LM, and the plan stands in the reply whatever the LM made of it.

    A prompt gets the reply that it got before, and one that was never asked gets the next in order: a tool that is
    described in other words changes every prompt. ``left`` is taken from, and may be shared with a judge's LM.
    ``prompt``: that of the first new reply, which those to a reply that could not be read begin with too.
    """

    lm: LM
    left: list[Reply]
    begins: Fields = NOTHING
    prompt: Sequence[Message] = ()

    @property
    def name(self) -> str:
        return self.lm.name

    @property
    def price(self) -> Pricing | None:
        price: Pricing | None = getattr(self.lm, "price", None)
        return price

    @property
    def ways(self) -> Ways | None:
        return ways_of(self.lm)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Raises SetupError where log-probabilities are wanted of a reply that is replayed: a trace has none."""
        if (reply := self.past(messages, sampling)) is not None:
            return reply
        return self.changed(messages, await self.lm.complete(self.hinted(messages), sampling))

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """As ``complete``."""
        if (reply := self.past(messages, sampling)) is not None:
            return reply
        return self.changed(messages, await streamed(self.lm, self.hinted(messages), sampling, on_text))

    def past(self, messages: Sequence[Message], sampling: Sampling) -> Completion | None:
        """What was said; None where all of it was said again."""
        if not self.left:
            return None
        if sampling.logprobs:
            raise SetupError("A run that reads log-probabilities cannot be gone on from: a trace does not hold them.")
        prompt = tuple((message.role, message.content) for message in messages)
        place = next((place for place, reply in enumerate(self.left) if reply.prompt == prompt), 0)
        reply = self.left.pop(place)
        return Completion((reply.text,), Usage(), finish=reply.finish, model=self.name, replayed=True)

    def is_first(self, messages: Sequence[Message]) -> bool:
        """Whether this asks for the first new reply, or for it once more, with a complaint at its end."""
        self.prompt = self.prompt or tuple(messages)
        *before, last = self.prompt
        return list(messages[:-1]) == before and messages[-1].content.startswith(last.content)

    def hinted(self, messages: Sequence[Message]) -> Sequence[Message]:
        hint = hint_of(self.begins)
        if not hint or not self.is_first(messages):
            return messages
        return [*messages[:-1], replace(messages[-1], content=messages[-1].content + hint)]

    def changed(self, messages: Sequence[Message], reply: Completion) -> Completion:
        """A reply that cannot be changed is not one that can be read, and is asked for again."""
        if not self.begins.plan or not self.is_first(messages):
            return reply
        with suppress(SetupError):
            reply = replace(reply, texts=(with_fields(reply.text, replace(self.begins, thought="")),))
        return reply


def hint_of(begins: Fields) -> str:
    """What the end of a prompt says of what the reply to it is to say."""
    if begins.plan:
        steps = "\n".join(f"Step {number}: {step}" for number, step in enumerate(begins.plan, 1))
        new = " It is a new plan: say that you re-plan, because a person wants it." if begins.why else ""
        return f"\n\nThe plan is set by a person:\n{steps}\nWrite this plan word for word, and go on by it.{new}\n"
    return f"\n\nYour thought for this step is:\n{begins.thought}\nGo on from it.\n" if begins.thought else ""


@dataclass
class ReplayingEnvironment:
    """An environment after a past one: an action that was done before brings what it brought then; others are done for
    real, and what they bring is numbered on from there. Forks share what is ``left`` of the past.

    What was done before is not done again, so the environment must be one that no action changes: tools on data.
    """

    env: Environment
    past: RecordedRun
    done: Sequence[RecordedStep] = ()
    left: list[RecordedStep] | None = None
    shift: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = list(self.done) if self.left is None else self.left
        names = [record.id for step in self.done for record in step.observation.records]
        last = max((number_of(name) for name in names), default=0)
        self.shift = max(last, len(self.done)) if self.done else self.past.observations if self.past.answers else 0
        numbered: Callable[[int], Environment] | None = getattr(self.env, "numbered_from", None)
        if numbered is not None:
            self.env, self.shift = numbered(self.shift + 1), 0

    def tools(self) -> tuple[str, ...]:
        """With those that were there: a run is not to take another way because a tool is not named again."""
        return (*self.env.tools(), *self.missing())

    def forms(self) -> dict[str, str]:
        return forms_of(self.env)

    def missing(self) -> tuple[str, ...]:
        """Those that were there and are not now."""
        there = (*self.env.tools(), THINK)
        return tuple(tool for tool in self.past.tools if tool not in there)

    def describe(self) -> str:
        gone = [f"### Tool: {tool}\nNot at hand now: it cannot be used." for tool in self.missing()]
        return "\n\n".join([text for text in (self.env.describe(), *gone) if text])

    def need(self, tool: str) -> None:
        """Raises SetupError where the tool was there in the past and is not now."""
        if tool in self.missing():
            raise SetupError(f"To go on, the tool {tool} is needed: name its data again, with {FLAGS.get(tool, OWN)}.")

    async def step(self, action: Action) -> Observation:
        """Raises SetupError where the tool was there in the past and is not now."""
        left = self.left or []
        if (place := next((place for place, one in enumerate(left) if one.action == action), None)) is not None:
            return self.remembered(action, left.pop(place).observation)
        self.need(action.tool)
        observation = await self.env.step(action)
        records = tuple(with_shift(record, self.shift) for record in observation.records)
        return replace(observation, records=records)

    def remembered(self, action: Action, observation: Observation) -> Observation:
        """The tools that work with what others bring know of it too."""
        remember: Callable[[int, Action, Observation], None] | None = getattr(self.env, "remember", None)
        if remember is not None and observation.records:
            remember(number_of(observation.records[0].id), action, observation)
        return observation

    def fork(self) -> ReplayingEnvironment:
        return replace(self, env=self.env.fork())


def with_shift(record: Record, by: int) -> Record:
    _, dot, tail = record.id.partition(".")
    return replace(record, id=f"o{number_of(record.id) + by}{dot}{tail}") if number_of(record.id) else record
