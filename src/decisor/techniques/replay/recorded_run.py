"""A recorded run, read back for going on from it: its question, replies, steps, plan, node answers and decision.

The one place here that knows how a trace holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decisor.errors import SetupError
from decisor.replies.plan_graph import PlanGraph
from decisor.settings import settings_of
from decisor.techniques import kind_of
from decisor.techniques.replay.trusted_settings import built_in
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    Entry,
    LMCall,
    Plan,
    PlanChange,
    RunStart,
    Span,
    TechniqueChoice,
)
from decisor.trace.graph_events import GraphPlan, NodeAnswer, NodeResult, NodeSpan
from decisor.types import Action, Decision, Observation, Question


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An action, what came back, and which reply (its place, from 0) asked for it."""

    action: Action
    observation: Observation
    reply: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What the LM wrote, why it stopped, and the prompt it answered: (role, content) of each message."""

    text: str
    finish: str
    prompt: tuple[tuple[str, str], ...] = ()


READINGS = "readings"
"""The span in which an LM is asked whether the question has two readings, before the technique begins."""


@dataclass(frozen=True)
class RecordedRun:
    """``technique`` is '' where the trace does not say; an evaluation gives it as a label with its settings.
    ``replies``: of each LM call, in order. ``plans``: the steps of each plan, by the number of the action that it was
    made after, 0 for the first. ``nested``: it has spans, so calls may have run at the same time."""

    question: Question | None = None
    technique: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    replies: tuple[Reply, ...] = ()
    steps: tuple[RecordedStep, ...] = ()
    plan: PlanGraph | None = None
    plans: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    answers: Mapping[str, NodeAnswer] = field(default_factory=dict)
    decision: Decision | None = None
    nested: bool = False
    at_hand: tuple[str, ...] = ()

    def plan_after(self, step: int) -> tuple[str, ...]:
        """The plan that holds after so many steps; () where there is none."""
        return next((self.plans[at] for at in sorted(self.plans, reverse=True) if at <= step), ())

    @property
    def tools(self) -> tuple[str, ...]:
        """Those that were at hand, as far as the trace says it, and those that were used."""
        return tuple(dict.fromkeys([*self.at_hand, *(step.action.tool for step in self.steps)]))

    @property
    def observations(self) -> int:
        """The highest number that an observation's records carry (o3.r1: 3)."""
        names = [record.id for step in self.steps for record in step.observation.records]
        names += [record.id for answer in self.answers.values() for record in answer.documents]
        return max((number_of(name) for name in names), default=0)


def number_of(id: str) -> int:
    head = id.partition(".")[0].lstrip("o")
    return int(head) if head.isdecimal() else 0


def read_recorded_run(entries: Sequence[Entry]) -> RecordedRun:
    """
    Raises:
        SetupError: the trace names what is not there.
    """
    past = RecordedRun()
    replies: list[Reply] = []
    actions: dict[int, tuple[Action, int]] = {}
    steps: list[RecordedStep] = []
    plans: dict[int, tuple[str, ...]] = {}
    answers: dict[str, NodeAnswer] = {}
    entries = without_span(entries, READINGS)
    for entry in entries:
        match entry.event:
            case RunStart() as start:
                name, settings = label_parts(start.technique)
                past = replace(past, question=start.question, technique=name, at_hand=start.tools,
                               settings={**settings, **start.settings})  # fmt: skip
            case TechniqueChoice(technique=name):
                past = replace(past, technique=name, settings=settings_for(name, past.settings))
            case LMCall(messages=messages, texts=texts, finish=finish):
                replies.append(Reply(texts[0] if texts else "", finish, tuple((m.role, m.content) for m in messages)))
            case ActionStart(tool=tool, input=text):
                actions[entry.id] = Action(tool, text), len(replies) - 1
            case ActionResult(action=start_id, observation=observation):
                if start_id not in actions:
                    raise SetupError(f"The trace holds a result of an action, {start_id}, that it does not hold.")
                action, reply = actions[start_id]
                steps.append(RecordedStep(action, observation, reply))
            case Plan(steps=plan):
                plans[0] = plan
            case PlanChange(after_step=after, steps=plan):
                plans[after] = plan
            case GraphPlan(graph=graph) if past.plan is None:
                past = replace(past, plan=graph)
            case NodeResult(answer=answer):
                answers[answer.node] = answer
            case Conclusion(decision=decision) if entry.span == 0:
                past = replace(past, decision=decision)
            case _:
                pass
    nested = any(isinstance(entry.event, Span | NodeSpan) for entry in entries)
    return replace(
        past, replies=tuple(replies), steps=tuple(steps), plans=plans, answers=answers, nested=nested
    )  # fmt: skip


def without_span(entries: Sequence[Entry], name: str) -> list[Entry]:
    """What stands in a span of this name, and the span, left out."""
    spans = {entry.id for entry in entries if isinstance(entry.event, Span) and entry.event.name == name}
    return [entry for entry in entries if entry.id not in spans and entry.span not in spans]


def label_parts(label: str) -> tuple[str, dict[str, str]]:
    """A technique's label of an evaluation: its name and its settings.

    >>> label_parts("plan_rag max_steps=4 replan=no")
    ('plan_rag', {'max_steps': '4', 'replan': 'no'})
    """
    name, *settings = label.split() or [""]
    return name, dict(setting.split("=", 1) for setting in settings if "=" in setting)


def settings_for(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Those of the settings of ``auto`` that are also of the technique that ran in its place."""
    own = settings_of(kind_of(built_in(name)))
    return {key: value for key, value in settings.items() if key in own}
