"""An LM and an environment that first say again what they said in a recorded run, then go on for real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import SetupError
from decisor.techniques.replay.recorded_run import RecordedRun, RecordedStep, Reply, number_of
from decisor.techniques.shared.decision import THINK
from decisor.techniques.shared.forms import forms_of
from decisor.types import LM, Action, Completion, Environment, Message, Observation, Pricing, Record, Sampling, Usage

FLAGS = {"sql": "--db", "cypher": "--graph", "passages": "--docs", "whatif": "--model"}
OWN = "--tools"


@dataclass
class ReplayingLM:
    """The old replies first, without a call; then the LM. ``thought``: what the first new reply is to begin with.

    A prompt gets the reply that it got before, and one that was never asked gets the next in order: a tool that is
    described in other words changes every prompt. ``left`` is taken from, and may be shared with a judge's LM.
    """

    lm: LM
    left: list[Reply]
    thought: str = ""

    @property
    def name(self) -> str:
        return self.lm.name

    @property
    def price(self) -> Pricing | None:
        price: Pricing | None = getattr(self.lm, "price", None)
        return price

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Raises SetupError where log-probabilities are wanted of a reply that is replayed: a trace has none."""
        if self.left:
            if sampling.logprobs:
                raise SetupError(
                    "A run that reads log-probabilities cannot be gone on from: a trace does not hold them."
                )
            prompt = tuple((message.role, message.content) for message in messages)
            place = next((place for place, reply in enumerate(self.left) if reply.prompt == prompt), 0)
            reply = self.left.pop(place)
            return Completion((reply.text,), Usage(), finish=reply.finish, model=self.name, replayed=True)
        if self.thought:
            last, hint = messages[-1], f"\n\nYour thought for this step is:\n{self.thought}\nGo on from it.\n"
            messages, self.thought = [*messages[:-1], replace(last, content=last.content + hint)], ""
        return await self.lm.complete(messages, sampling)


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
