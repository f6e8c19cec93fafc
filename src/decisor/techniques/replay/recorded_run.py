"""A recorded run, read back in order to continue it: question, replies, steps, plan, node answers and decision.

Only this file knows how a trace stores them. ``ReplayingLLM`` and ``ReplayingEnvironment`` first repeat recorded
replies and observations, then ask the real ones. ``replace_reply_fields`` changes fields of a reply: labelled text, a
JSON object or a function call. A trace may be someone else's: ``check_recorded_settings`` accepts from it only
built-in techniques, numbers and choices, never an LLM, a host, a path or a module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_origin, get_type_hints

from decisor.errors import ParseError, SetupError
from decisor.parsing.labelled import LABEL, NAMES, LabelledReply
from decisor.parsing.plan import PlanGraph
from decisor.parsing.reply_form import (
    UNION,
    ReplyShape,
    convert_function_call,
    list_dataclass_keys,
    normalize_function_name,
    read_json_reply,
)
from decisor.runtime.prompt import TokenEstimates, estimate_prompt_tokens
from decisor.system.settings import drop_none_type, setting_fields
from decisor.system.text import fit_on_one_line
from decisor.techniques import TECHNIQUES, find_technique_class
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.techniques.shared.answer import THINK
from decisor.techniques.shared.judge import list_llm_parts
from decisor.techniques.shared.observations import show_plan
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    GraphPlan,
    LLMCall,
    NodeAnswer,
    NodeResult,
    NodeSpan,
    OnText,
    Plan,
    PlanChange,
    RunStart,
    Span,
    TechniqueChoice,
    TraceEntry,
    stream_if_possible,
)
from decisor.types import (
    LLM,
    Action,
    Completion,
    Decision,
    Environment,
    Function,
    FunctionSource,
    Message,
    Observation,
    ObservationMemory,
    Question,
    Record,
    Sampling,
    ToolCall,
    Usage,
    Value,
)

NONE: Mapping[str, str] = MappingProxyType({})


def build_prompt_key(messages: Sequence[Message]) -> tuple[tuple[str, ...], ...]:
    """Build a key that is the same for the same conversation, whatever ids its provider gave the calls."""
    return tuple(
        (message.role, message.content, *(text for call in message.calls for text in (call.name, call.arguments)))
        for message in messages
    )


def check_recorded_settings(
    recorded: str, recorded_settings: Mapping[str, str], technique: str = "", settings: Mapping[str, str] = NONE
) -> tuple[str, dict[str, str]]:
    """Return the technique and settings to continue with: a person's values, else those of the trace.

    A trace may only name built-in techniques, numbers and choices, never an LLM, a host, a path or a module.

    Raises:
        SetupError: the trace names something else, and the person did not.
    """
    name = technique or check_built_in(recorded)
    kind = find_technique_class(name)
    # Settings belong to a technique: those of another one are left out.
    own = not technique or technique == recorded
    from_trace = {key: str(text) for key, text in recorded_settings.items()} if own else {}
    fields, hints = setting_fields(kind), get_type_hints(kind)
    for key, text in from_trace.items():
        if key in settings or (key in fields and text == fields[key].default):
            continue
        # An LLM is a host: a trace that names one could have a person's data sent to it.
        if (part := key.removesuffix("_llm")) in list_llm_parts(kind) and part != key:
            raise SetupError(
                f"The trace names an LLM for the {part}, {fit_on_one_line(text, 200)}. LLMs come from the command line "
                f"only: give -o {key}=MODEL@URL to use one."
            )
        # A text may be a path or a module, which a foreign trace must not choose.
        if key in fields and not is_harmless_type(hints[key]):
            raise SetupError(
                f"The trace sets {key} to {fit_on_one_line(text, 200)}. That comes from the command line only: give "
                f"-o {key}={fit_on_one_line(text, 200) or '...'} to use it."
            )
    return name, {**from_trace, **settings}


def check_built_in(name: str) -> str:
    """Return the name of a technique from a file. Raise SetupError if this package has no such technique."""
    if name not in TECHNIQUES:
        raise SetupError(
            f"The trace names the technique {fit_on_one_line(name, 200)}, which is none of decisor's. Techniques of "
            "your own come from the command line only: give -t NAME to use one."
        )
    return name


def is_harmless_type(kind: object) -> bool:
    """Return whether values of a type refer to nothing outside: numbers, bools or fixed words."""
    kind = drop_none_type(kind)
    return kind in (int, float, bool) or get_origin(kind) is Literal


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """An action, its observation, and the index (from 0) of the reply that asked for it; -1 for none."""

    action: Action
    observation: Observation
    reply: int


READINGS = "readings"
"""The span in which an LLM is asked whether the question has two readings, before the technique begins."""


@dataclass(frozen=True)
class RecordedRun:
    """A run read from a trace."""

    question: Question | None = None
    technique: str = ""
    """Empty if the trace does not name it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[LLMCall, ...] = ()
    """All calls of the LLM, in order."""
    steps: tuple[RecordedStep, ...] = ()
    """In the order in which they began: those of one reply may have ended in another."""
    plan: PlanGraph | None = None
    plans: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Steps of each plan by the number of the action before it; 0 for the first."""
    answers: Mapping[str, NodeAnswer] = field(default_factory=dict)
    decision: Decision | None = None
    nested: bool = False
    """True if it has spans, so that calls may have run at the same time."""
    at_hand: tuple[str, ...] = ()
    """Tools that were available."""

    def plan_after(self, step: int) -> tuple[str, ...]:
        """Return the plan in force after a number of steps; empty without one."""
        return next((self.plans[at] for at in sorted(self.plans, reverse=True) if at <= step), ())

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that were available according to the trace, and tools that were used."""
        return tuple(dict.fromkeys([*self.at_hand, *(step.action.tool for step in self.steps)]))

    @property
    def observations(self) -> int:
        """Highest observation number in the ids of records (o3.r1: 3)."""
        names = [record.id for step in self.steps for record in step.observation.records]
        names += [record.id for answer in self.answers.values() for record in answer.documents]
        return max((parse_observation_number(name) for name in names), default=0)


def parse_observation_number(id: str) -> int:
    head = id.partition(".")[0].lstrip("o")
    return int(head) if head.isdecimal() else 0


def read_recorded_run(entries: Sequence[TraceEntry]) -> RecordedRun:
    """Read a recorded run from the entries of a trace.

    Raises:
        SetupError: the trace refers to an action or technique that does not exist.
    """
    past = RecordedRun()
    calls: list[LLMCall] = []
    actions: dict[int, tuple[Action, int]] = {}
    steps: dict[int, RecordedStep] = {}
    plans: dict[int, tuple[str, ...]] = {}
    answers: dict[str, NodeAnswer] = {}
    # What was asked about readings is left out.
    spans = {entry.id for entry in entries if isinstance(entry.event, Span) and entry.event.name == READINGS}
    entries = [entry for entry in entries if entry.id not in spans and entry.span not in spans]
    for entry in entries:
        match entry.event:
            case RunStart() as start:
                name, settings = parse_technique_label(start.technique)
                past = replace(
                    past,
                    question=start.question,
                    technique=name,
                    at_hand=start.tools,
                    settings={**settings, **start.settings},
                )
            case TechniqueChoice(technique=name):
                # Of the settings of the technique that was begun, those that this one has too.
                own = setting_fields(find_technique_class(check_built_in(name)))
                kept = {key: value for key, value in past.settings.items() if key in own}
                past = replace(past, technique=name, settings=kept)
            case LLMCall() as call:
                calls.append(call)
            case ActionStart(tool=tool, input=text):
                actions[entry.id] = Action(tool, text), len(calls) - 1
            case ActionResult(action=start_id, observation=observation):
                if start_id not in actions:
                    raise SetupError(f"The trace holds a result of an action, {start_id}, that it does not hold.")
                action, reply = actions[start_id]
                steps[start_id] = RecordedStep(action, observation, reply)
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
    in_order = tuple(steps[start_id] for start_id in sorted(steps))
    return replace(past, calls=tuple(calls), steps=in_order, plans=plans, answers=answers, nested=nested)


def parse_technique_label(label: str) -> tuple[str, dict[str, str]]:
    """Parse the label of a technique in an evaluation into name and settings.

    >>> parse_technique_label("plan_rag max_steps=4 replan=no")
    ('plan_rag', {'max_steps': '4', 'replan': 'no'})
    """
    name, *settings = label.split() or [""]
    return name, dict(setting.split("=", 1) for setting in settings if "=" in setting)


FIRST = ("replan", "plan", "thought")
"""Labels that are written where they are missing, in this order; without the others there is no reply to change."""
NO_FIELDS = (
    "The reply of this step has no labels (Action, Action input), so it cannot be changed by parts. "
    "Set its observation instead."
)


@dataclass(frozen=True, slots=True)
class ReplyFields:
    """The required content of a reply; an empty field stays as the LLM wrote it."""

    thought: str = ""
    action: str = ""
    input: str | None = None
    plan: tuple[str, ...] = ()
    why: str = ""
    """Reason of a replan; with it the plan is a new one."""

    def labels(self) -> dict[str, str]:
        plan = show_plan([" ".join(step.split()) for step in self.plan]) if self.plan else ""
        why = f"Y, {self.why}" if self.why else ""
        values = {"replan": why, "plan": plan, "thought": self.thought, "action": self.action}
        own = {name: value for name, value in values.items() if value}
        return own if self.input is None else {**own, "input": self.input}

    def keys(self) -> dict[str, Value]:
        values: dict[str, Value] = {
            "replan": bool(self.why),
            "why": self.why,
            "plan": list(self.plan),
            "thought": self.thought,
            "action": self.action,
            "action_input": self.input,
        }
        return {key: value for key, value in values.items() if value or (key == "action_input" and value is not None)}


def replace_reply_fields(reply: str, changes: ReplyFields, tools: Sequence[str] = ()) -> str:
    """Replace fields of a reply: labelled text, a JSON object or a function call.

    ``tools``: names that a function call may have.

    >>> replace_reply_fields("Thought: a\\nAction: sql\\nAction input: select 1", ReplyFields(input="select 2"))
    'Thought: a\\nAction: sql\\nAction input: select 2'
    >>> replace_reply_fields('{"name": "sql", "arguments": {"input": "select 1"}}', ReplyFields(input="select 2"),
    ...     ["sql"])
    '{"action": "sql", "action_input": "select 2"}'

    Raises:
        SetupError: it has no such parts.
    """
    try:
        value = read_json_reply(reply)
        if value is not None:
            return json.dumps({**unwrap_labelled_object(value, tools), **changes.keys()}, ensure_ascii=False)
    except ParseError as error:
        raise SetupError(NO_FIELDS) from error
    # In reverse, because a missing label is put in front of the reply.
    for name, text in reversed(changes.labels().items()):
        reply = replace_label(reply, name, text)
    return reply


def unwrap_labelled_object(value: Mapping[str, Value], tools: Sequence[str]) -> Mapping[str, Value]:
    """Convert an object or a function call to the keys of a labelled reply."""
    inner, keys = value.get(UNION), dict.fromkeys(list_dataclass_keys(LabelledReply), "")
    shapes = ReplyShape(keys, enums={"action": list(tools)}), ReplyShape(keys, "final_answer")
    return convert_function_call(inner if isinstance(inner, Mapping) else value, shapes)


def replace_label(reply: str, name: str, value: str) -> str:
    labels = list(LABEL.finditer(reply))
    for place, label in enumerate(labels):
        if NAMES[label["name"].casefold().replace("_", " ")] == name:
            end = labels[place + 1].start() if place + 1 < len(labels) else len(reply)
            return f"{reply[: label.end()]} {value}" + ("\n" + reply[end:] if end < len(reply) else "")
    if name in FIRST and labels:
        return f"{'Re-plan' if name == 'replan' else name.capitalize()}: {value}\n{reply}"
    raise SetupError(NO_FIELDS)


BY_HAND = "byhand001"
"""Id of a call that no LLM wrote: nine letters and digits, which every provider takes."""


def replace_call(turn: Message, action: Action, changes: ReplyFields) -> Message:
    """Replace the call that asked for an action in the turn of a conversation. The thoughts that led to it go.

    >>> turn = Message("assistant", "", (ToolCall("c1", "sql", '{"query": "select 1"}'),))
    >>> replace_call(turn, Action("sql", "select 1"), ReplyFields(input="select 2")).calls[0].arguments
    '{"query": "select 2"}'

    Raises:
        SetupError: it has no such call.
    """
    input = action.input if changes.input is None else changes.input
    name = normalize_function_name(changes.action or action.tool)
    for at, call in enumerate(turn.calls):
        if call.name != normalize_function_name(action.tool):
            continue
        # A tool with arguments of its own is given their JSON, any other one the text among them.
        new_arguments = {call.arguments: input}
        with suppress(ParseError):
            values = read_json_reply(call.arguments) or {}
            for key, value in values.items():
                new_arguments[str(value)] = json.dumps({**values, key: input}, ensure_ascii=False)
        if action.input in new_arguments:
            changed = replace(call, name=name, arguments=new_arguments[action.input])
            calls = (*turn.calls[:at], changed, *turn.calls[at + 1 :])
            return replace(turn, content=changes.thought or turn.content, calls=calls, raw=None)
    raise SetupError(NO_FIELDS)


def replace_plan_call(turn: Message, changes: ReplyFields) -> Message:
    """Replace the plan in the turn of a conversation, or put it before its other calls."""
    arguments: dict[str, object] = {"steps": changes.plan, **({"why": changes.why} if changes.why else {})}
    plan = ToolCall(BY_HAND, "plan", json.dumps(arguments, ensure_ascii=False))
    others = [call for call in turn.calls if call.name != "plan"]
    written = [replace(plan, id=call.id) for call in turn.calls if call.name == "plan"]
    return replace(turn, calls=(written[0] if written else plan, *others), raw=None)


FLAGS = {"sql": "--db", "cypher": "--graph", "passages": "--docs", "whatif": "--model"}
OWN = "--tools"
NOTHING = ReplyFields()


@dataclass
class ReplayingLLM:
    """An LLM that repeats recorded replies first, without a call, and then asks the real one."""

    llm: LLM
    left: list[LLMCall]
    """Calls whose replies are not used yet; may be shared with the LLM of a judge."""
    estimates: TokenEstimates
    """They learn from the repeated replies, so that a long prompt is shortened where it was before."""
    begins: ReplyFields = NOTHING
    """Required content of the first new reply: the LLM is told thought and plan, and the plan replaces any other."""
    is_interrupted: bool = False
    """True: a prompt that was never asked is asked for real. False: it gets the next reply, because a tool that is
    described in other words changes every prompt."""
    prompt: Sequence[Message] = ()
    """Prompt of the first new reply; the prompts after an unreadable reply begin with it."""

    @property
    def name(self) -> str:
        return self.llm.name

    # Price, context, ways and settings of the LLM are read by name: all of them are the real one's.
    def __getattr__(self, name: str) -> object:
        return getattr(self.llm, name)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        """Return the recorded reply, or ask the LLM.

        Raise SetupError if log-probabilities of a replayed reply are wanted: a trace does not store them.
        """
        if (reply := self.past(messages, sampling)) is not None:
            return reply
        return self.changed(messages, await self.llm.complete(self.hinted(messages), sampling))

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Completion:
        """Return the recorded reply or stream a new one; raises as ``complete``."""
        if (reply := self.past(messages, sampling)) is not None:
            return reply
        return self.changed(messages, await stream_if_possible(self.llm, self.hinted(messages), sampling, on_text))

    def past(self, messages: Sequence[Message], sampling: Sampling) -> Completion | None:
        """Return the recorded reply to a prompt and remove it; None if there is none.

        Each is used once: an LLM that was asked the same twice gave two samples.
        """
        if not self.left or (sampling.logprobs and self.is_interrupted):
            return None
        if sampling.logprobs:
            raise SetupError("A run that reads log-probabilities cannot be gone on from: a trace does not hold them.")
        prompt = build_prompt_key(messages)
        places = (at for at, call in enumerate(self.left) if build_prompt_key(call.messages) == prompt)
        if (place := next(places, None if self.is_interrupted else 0)) is None:
            return None
        call = self.left.pop(place)
        if not call.usage.estimates:
            tokens = estimate_prompt_tokens(messages, sampling.tools)
            self.estimates.learn(self.name, tokens, call.usage.prompt_tokens)
        return Completion(
            call.texts or ("",), Usage(), call.finish, call.model or self.name, replayed=True, turn=call.turn
        )

    def is_first(self, messages: Sequence[Message]) -> bool:
        """Return whether the messages ask for the first new reply, or repeat that request with a complaint."""
        self.prompt = self.prompt or tuple(messages)
        *before, last = self.prompt
        return list(messages[:-1]) == before and messages[-1].content.startswith(last.content)

    def hinted(self, messages: Sequence[Message]) -> Sequence[Message]:
        hint = build_beginning_hint(self.begins)
        if not hint or not self.is_first(messages):
            return messages
        if messages[-1].role == "tool":  # what stands in a result is data, not an instruction
            return [*messages, Message("user", hint.strip())]
        return [*messages[:-1], replace(messages[-1], content=messages[-1].content + hint)]

    def changed(self, messages: Sequence[Message], reply: Completion) -> Completion:
        """Return a reply with the required plan.

        A reply that cannot be changed is unreadable too, and will be asked for again.
        """
        if not self.begins.plan or not self.is_first(messages):
            return reply
        if reply.turn is not None and reply.turn.calls:
            return replace(reply, turn=replace_plan_call(reply.turn, self.begins))
        with suppress(SetupError):
            reply = replace(reply, texts=(replace_reply_fields(reply.text, replace(self.begins, thought="")),))
        return reply


def build_beginning_hint(begins: ReplyFields) -> str:
    """Build the end of a prompt that states the required plan or thought of the reply."""
    if begins.plan:
        steps = "\n".join(f"Step {number}: {step}" for number, step in enumerate(begins.plan, 1))
        new = " It is a new plan: say that you re-plan, because a person wants it." if begins.why else ""
        return f"\n\nThe plan is set by a person:\n{steps}\nWrite this plan word for word, and go on by it.{new}\n"
    return f"\n\nYour thought for this step is:\n{begins.thought}\nGo on from it.\n" if begins.thought else ""


@dataclass
class ReplayingEnvironment:
    """An environment that repeats recorded observations and executes only new actions.

    New records are numbered on from the recorded ones; forks share ``left``.

    Earlier actions are not done again, so the environment must be one that no action changes: tools on data.
    """

    env: Environment
    past: RecordedRun
    done: Sequence[RecordedStep] = ()
    left: list[RecordedStep] | None = None
    shift: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = list(self.done) if self.left is None else self.left
        names = [record.id for step in self.done for record in step.observation.records]
        last = max((parse_observation_number(name) for name in names), default=0)
        # New ids go on after the recorded ones: an id that is used twice would make a citation ambiguous.
        self.shift = max(last, len(self.done)) if self.done else self.past.observations if self.past.answers else 0
        numbered: Callable[[int], Environment] | None = getattr(self.env, "numbered_from", None)
        if numbered is not None:
            self.env, self.shift = numbered(self.shift + 1), 0

    def tools(self) -> tuple[str, ...]:
        """Return the available tools and those of the past run.

        A missing tool must not change the choice of technique.
        """
        return (*self.env.tools(), *self.missing())

    def forms(self) -> dict[str, str]:
        return list_tool_languages(self.env)

    def functions(self) -> tuple[Function, ...]:
        return self.env.functions() if isinstance(self.env, FunctionSource) else ()

    def missing(self) -> tuple[str, ...]:
        """Return the tools of the past run that are not available now."""
        # A thought needs no tool.
        there = (*self.env.tools(), THINK)
        return tuple(tool for tool in self.past.tools if tool not in there)

    def describe(self) -> str:
        gone = [f"### Tool: {tool}\nNot at hand now: it cannot be used." for tool in self.missing()]
        return "\n\n".join([text for text in (self.env.describe(), *gone) if text])

    def need(self, tool: str) -> None:
        """Raise SetupError if a tool of the past run is not available now."""
        if tool in self.missing():
            raise SetupError(f"To go on, the tool {tool} is needed: name its data again, with {FLAGS.get(tool, OWN)}.")

    async def step(self, action: Action) -> Observation:
        """Return the recorded observation, or execute the action.

        Raise SetupError if a tool of the past run is not available now.
        """
        left = self.left or []
        if (place := next((place for place, one in enumerate(left) if one.action == action), None)) is not None:
            observation = left.pop(place).observation
            if isinstance(self.env, ObservationMemory) and observation.records:
                self.env.remember(parse_observation_number(observation.records[0].id), action, observation)
            return observation
        self.need(action.tool)
        observation = await self.env.step(action)
        records = tuple(shift_record_id(record, self.shift) for record in observation.records)
        return replace(observation, records=records)

    def fork(self) -> ReplayingEnvironment:
        return replace(self, env=self.env.fork())


def shift_record_id(record: Record, by: int) -> Record:
    _, dot, tail = record.id.partition(".")
    return (
        replace(record, id=f"o{parse_observation_number(record.id) + by}{dot}{tail}")
        if parse_observation_number(record.id)
        else record
    )
