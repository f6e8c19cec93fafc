"""A recorded run, read back for going on from it: its question, replies, steps, plan, node answers and decision.

The one place here that knows how a trace holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decisor.errors import SetupError
from decisor.replies.plan_graph import Part, PlanGraph
from decisor.settings import settings_of
from decisor.techniques import kind_of
from decisor.techniques.plan_dag.node_answer import NodeAnswer, node_answer_of
from decisor.techniques.replay.trusted_settings import built_in
from decisor.trace.events import Event, decision_of, observation_of, plain
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


@dataclass(frozen=True)
class RecordedRun:
    """``technique`` is '' where the trace does not say; an evaluation gives it as a label with its settings.
    ``replies``: of each LM call, in order. ``nested``: it has spans, so calls may have run at the same time."""

    question: Question | None = None
    technique: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    replies: tuple[Reply, ...] = ()
    steps: tuple[RecordedStep, ...] = ()
    plan: PlanGraph | None = None
    answers: Mapping[str, NodeAnswer] = field(default_factory=dict)
    decision: Decision | None = None
    nested: bool = False
    at_hand: tuple[str, ...] = ()

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


def read_recorded_run(events: Sequence[Event]) -> RecordedRun:
    """
    Raises:
        SetupError: an event is not as a run writes it.
    """
    try:
        return recorded_run_of(events)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SetupError(f"The trace holds an event that cannot be gone on from ({error!r}).") from error


def recorded_run_of(events: Sequence[Event]) -> RecordedRun:
    head: dict[str, Any] = {}
    replies: list[Reply] = []
    actions: dict[int, tuple[Action, int]] = {}
    steps: list[RecordedStep] = []
    answers: dict[str, NodeAnswer] = {}
    for event in events:
        data = event.data
        if event.kind == "run":
            name, *settings = str(data["technique"]).split()
            labelled = dict(setting.split("=", 1) for setting in settings if "=" in setting)
            head = {"question": Question(**plain(data["question"])), "technique": name,
                    "settings": {**labelled, **plain(data.get("settings", {}))},
                    "at_hand": tuple(map(str, plain(data.get("tools", ()))))}  # fmt: skip
        elif event.kind == "note" and data.get("name") == "auto":
            head |= chosen_by_auto(data["technique"], head.get("settings", {}))
        elif event.kind == "lm":
            asked = tuple((one["role"], one["content"]) for one in plain(data.get("messages", ())))
            replies.append(Reply(data["texts"][0], data["finish"], asked))
        elif event.kind == "action":
            actions[event.id] = Action(data["tool"], data["input"]), len(replies) - 1
        elif event.kind == "observation":
            action, reply = actions[data["action"]]
            steps.append(RecordedStep(action, observation_of(plain(data["observation"])), reply))
        elif event.kind == "plan" and "nodes" in data and "plan" not in head:
            head["plan"] = plan_of(plain(data))
        elif event.kind == "note" and "answered" in data:
            one = node_answer_of(plain(data["answered"]))
            answers[one.node] = one
        elif event.kind == "decision" and event.parent == 0:
            head["decision"] = decision_of(plain(data["decision"]))
    nested = any(event.kind == "span" for event in events)
    return RecordedRun(**head, replies=tuple(replies), steps=tuple(steps), answers=answers, nested=nested)


def chosen_by_auto(name: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """The technique that ran in the place of ``auto``, with those of its settings that are the technique's too."""
    settings_there = settings_of(kind_of(built_in(name)))
    return {"technique": name, "settings": {key: value for key, value in settings.items() if key in settings_there}}


def plan_of(data: Mapping[str, Any]) -> PlanGraph:
    parts = tuple(Part(**{**part, "parents": tuple(part["parents"])}) for part in data["nodes"])
    return PlanGraph(parts, tuple(data["repairs"]), data["simple"])
