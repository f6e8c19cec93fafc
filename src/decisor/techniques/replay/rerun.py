"""Debug and backtrack: change one thing in a recorded run and continue from there (Plan-RAG, section 3.3).

In a reasoning DAG the changed node and all nodes that rest on it are answered again, and the answers are aggregated
again. A node whose parents' answers stay the same (normalized) keeps its answer; if all do, the decision stands. In
loops of steps and in searches, replies and observations before the changed step are replayed, and the rest is a run
like any other. Reused replies cost no call.

``resume_interrupted_run`` continues a run that did not end: a prompt or action that was answered gets the recorded
answer, and all else is done for real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.errors import SetupError
from decisor.parsing.attribution import normalize_answer
from decisor.parsing.plan import PlanGraph, PlanPart, sort_by_depth
from decisor.runtime.run import Run, Technique
from decisor.system.tasks import run_in_dependency_order
from decisor.system.wording import format_count
from decisor.techniques import build_technique as from_settings
from decisor.techniques.dag.experts import choose_part_sources
from decisor.techniques.dag.nodes import explain_node, format_plan_graph, record_node_answer
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.techniques.replay.recorded_run import (
    RecordedRun,
    RecordedStep,
    ReplayingEnvironment,
    ReplayingLLM,
    ReplyFields,
    check_recorded_settings,
    read_recorded_run,
    replace_call,
    replace_reply_fields,
)
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.techniques.shared.answer import THINK, record_decision
from decisor.techniques.shared.judge import set_part_llms
from decisor.techniques.shared.observations import show_observation
from decisor.trace.events import ActionResult, GraphPlan, LLMCall, NodeAnswer, NodeSpan, TraceEntry, UnreadableReply
from decisor.types import Action, Decision, Observation, Record


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a node or step of a recorded run. Without a field besides ``at`` it is repeated unchanged."""

    at: str
    """A node of a DAG (Q2.1 or 2.1), or the number of a step from 1."""
    answer: str | None = None
    """The answer of the node."""
    ask: str | None = None
    """The question of the node, with tags."""
    context: str = ""
    """A text to show with the question of the node."""
    thought: str = ""
    """The thought of the step, from which the LLM continues."""
    action: Action | str | None = None
    """The action of the step, or its new input."""
    observation: Observation | str | None = None
    """The observation of the step."""
    plan: tuple[str, ...] = ()
    """The steps of the plan that holds after the step; of the first plan after step 0."""

    def texts(self) -> dict[str, str]:
        """Return the changed fields for people, each step of a plan on a line."""
        values = {name: getattr(self, name) for name in self.__slots__} | {"plan": "\n".join(self.plan)}
        return {name: text for name, text in values.items() if isinstance(text, str) and text}


@dataclass(frozen=True, slots=True)
class StepChange:
    """A node or step in both runs, in words."""

    at: str
    before: str
    after: str
    how: str
    """reused, edited or again."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """A recorded run and its repetition with changes."""

    before: Decision
    after: Decision
    changes: tuple[StepChange, ...]
    replayed: int = 0
    """Actions that count in the usage but were not executed again."""


async def rerun_graph(past: RecordedRun, edit: Edit, technique: ReasoningDAG, run: Run) -> Rerun:
    if past.plan is None or past.decision is None or past.question is None:
        raise SetupError("The trace does not hold a whole run: it lacks the question, the plan or the decision.")
    edited = find_edited_node(edit, past.plan)
    plan = edit_plan(past.plan, edited, edit)
    parts = {part.id: part for part in plan.parts}
    question, old = past.question, past.answers
    state_of: dict[str, str] = {}
    env = ReplayingEnvironment(run.env, past)
    later = run.using(env=env)
    later.trace.add(GraphPlan(format_plan_graph(plan), plan), later.span_id)

    async def act(id: str, done: Mapping[str, NodeAnswer]) -> NodeAnswer:
        part = parts[id]
        # A node is answered again only if what it rests on changed: the rest keeps its answer, at no cost.
        is_kept = id in old and all(is_same_answer(done[parent], old.get(parent)) for parent in part.parents)
        state_of[id] = "edited" if id == edited else "reused" if is_kept else "again"
        if id == edited and edit.answer is not None:
            query = old[id].question if id in old else part.query
            return keep_node_answer(part, NodeAnswer(id, query, edit.answer, attribution="manual"), later, reused=False)
        if state_of[id] == "reused":
            return keep_node_answer(part, old[id], later)
        # A blocked node asks no source, so a source that is gone does not matter to it.
        if not any(done[parent].missing for parent in part.parents):
            for source in choose_part_sources(part, list_tool_languages(env)):
                env.need(source)
        return await technique.node(part, done, question, later, edit.context if id == edited else "")

    needs = {part.id: part.parents for part in plan.parts}
    answers = await run_in_dependency_order(act, needs, technique.at_once, technique.schedule == "levels")
    # Nothing changed, so the decision stands, without a call of the aggregator.
    if all(is_same_answer(answer, old.get(id)) for id, answer in answers.items()):
        decision = record_decision(past.decision, later)
    else:
        decision = await technique.aggregate(question, plan, list(answers.values()), later)
    rows = [
        StepChange(id, explain_node(old[id]) if id in old else "", explain_node(answers[id]), state_of[id])
        for id in answers
    ]
    return Rerun(past.decision, decision, tuple(rows))


def keep_node_answer(part: PlanPart, answer: NodeAnswer, run: Run, reused: bool = True) -> NodeAnswer:
    """Record an answer as it is, in a span like any other. ``reused``: True if it comes from the earlier run."""
    with run.span(NodeSpan(part.id, part.query, part.parents, part.source)) as sub:
        return record_node_answer(answer, sub, reused)


def is_same_answer(one: NodeAnswer, other: NodeAnswer | None) -> bool:
    return (
        other is not None
        and one.status == other.status
        and normalize_answer(one.answer) == normalize_answer(other.answer)
    )


def find_edited_node(edit: Edit, plan: PlanGraph) -> str:
    """Return the id of the node that an edit changes; raise SetupError if it does not fit."""
    ids = {part.id.upper().lstrip("Q"): part.id for part in plan.parts}
    if (id := ids.get(edit.at.strip().upper().lstrip("Q"))) is None:
        raise SetupError(f"There is no node {edit.at}; there is {', '.join(ids.values())}.")
    if edit.thought or edit.action is not None or edit.observation is not None or edit.plan:
        raise SetupError("A node of a graph takes an answer, a question (ask) or a context.")
    return id


def edit_plan(plan: PlanGraph, id: str, edit: Edit) -> PlanGraph:
    """Return the plan with the new question of a node. Its tags give the new parents; parents without a tag stay."""
    if edit.ask is None:
        return plan
    parts = {part.id: part for part in plan.parts}
    part = PlanPart(id, edit.ask.strip(), source=parts[id].source)
    if not part.query:
        raise SetupError(f"The new question of {id} is empty.")
    if wrong := [tag for tag in part.tags if tag not in parts or id in find_ancestors(tag, parts)]:
        raise SetupError(f"{id} cannot need {wrong[0]}: it is not there, or needs {id} itself.")
    before = [parent for parent in parts[id].parents if parent not in parts[id].tags]
    parts[id] = replace(part, parents=tuple(dict.fromkeys([*before, *part.tags])))
    return replace(plan, parts=sort_by_depth(parts))


def find_ancestors(id: str, parts: Mapping[str, PlanPart]) -> set[str]:
    """Return the ids of a node and of all nodes that it rests on."""
    ids: set[str] = set()
    waiting = [id]
    while waiting:
        if (one := waiting.pop()) not in ids:
            ids.add(one)
            waiting += parts[one].parents
    return ids


BY_HAND = "set by hand"


async def rerun_steps(past: RecordedRun, edit: Edit, technique: Technique, run: Run) -> Rerun:
    if past.question is None or past.decision is None:
        raise SetupError("The trace does not hold a whole run: it has no question or no decision.")
    number = check_edit(past, edit, technique)
    done = [one for one in past.steps[: number - 1] if one.action.tool != THINK or THINK in run.env.tools()]
    if edit.observation is not None:
        step = past.steps[number - 1]
        action = Action(step.action.tool, edit.action) if isinstance(edit.action, str) else edit.action or step.action
        observation = edit.observation
        if isinstance(observation, str):  # as a record, so that it can be cited
            observation = Observation((Record(f"o{len(done) + 1}.r1", text=observation, source=BY_HAND),))
        done.append(RecordedStep(action, observation, step.reply))
    if edit.plan:
        begins = ReplyFields(plan=edit.plan, why=BY_HAND if int(edit.at) else "")
    else:
        begins = ReplyFields(edit.thought if edit.action is None else "")
    calls = select_calls_before(past, number, edit)
    env = ReplayingEnvironment(run.env, past, done)
    again = run.using(llm=ReplayingLLM(run.llm, calls, run.budget.estimates, begins), env=env)
    if (judge := getattr(technique, "judge", None)) is not None:
        technique = set_part_llms(technique, {"judge": ReplayingLLM(judge, calls, run.budget.estimates)})
    before = len(run.trace.entries)
    decision = await technique(past.question, again)
    after = read_recorded_run(run.trace.entries[before:])
    rows = []
    if edit.plan:
        at = int(edit.at)
        old_plan, new_plan = ("\n".join(recorded.plan_after(at)) for recorded in (past, after))
        rows = [StepChange(f"plan after {at}" if at else "plan", old_plan, new_plan, "edited")]
    for place in range(1, max(len(past.steps), len(after.steps)) + 1):
        old, new = format_recorded_step(past.steps, place), format_recorded_step(after.steps, place)
        is_edited = place == number and not edit.plan
        state = "reused" if place < number else "edited" if is_edited else "again"
        rows.append(StepChange(str(place), old, new, state))
    return Rerun(past.decision, decision, tuple(rows), len(done) - len(env.left or ()))


def check_edit(past: RecordedRun, edit: Edit, technique: Technique) -> int:
    """Return the number of the first step to do again, from 1. Raise SetupError if the edit does not fit the run."""
    if edit.plan:
        return check_plan_edit(past, edit, technique)
    number = int(edit.at) if edit.at.isdecimal() else 0
    if not 1 <= number <= len(past.steps):
        there = "is 1" if len(past.steps) == 1 else f"are {len(past.steps)}"
        raise SetupError(f"There is no step {edit.at}; there {there}.")
    if edit.answer is not None or edit.ask is not None or edit.context:
        raise SetupError("A step takes a thought, an action or an observation.")
    if past.steps[number - 1].reply < 0 and (edit.action is not None or edit.thought):
        raise SetupError(f"No LLM asked for step {number}: it takes an observation.")
    return number


def check_plan_edit(past: RecordedRun, edit: Edit, technique: Technique) -> int:
    """Return the number of the first step under the new plan. Raise SetupError if the run has no such plan."""
    number = int(edit.at) if edit.at.isdecimal() else -1
    if not past.plans:
        raise SetupError("This run has no plan of steps to change.")
    if not 0 <= number <= len(past.steps):
        raise SetupError(f"A plan holds after a step: 0 for the first plan, at most {len(past.steps)}.")
    if number and not getattr(technique, "replan", True):
        raise SetupError("This run does not replan: change its first plan, at 0.")
    if edit != Edit(edit.at, plan=edit.plan) or not all(step.strip() for step in edit.plan):
        raise SetupError("A plan is changed alone, and none of its steps is empty.")
    return number + 1


def select_calls_before(past: RecordedRun, number: int, edit: Edit) -> list[LLMCall]:
    """Select the calls before a step.

    It includes the call that asked for the step if its action or observation is set.
    """
    if edit.plan:
        return list(past.calls[: past.steps[number - 2].reply + 1]) if number > 1 else []
    step = past.steps[number - 1]
    if step.reply < 0:
        return []
    calls = list(past.calls[: step.reply])
    call = replace(past.calls[step.reply], finish="stop")
    if edit.action is not None:
        tool = edit.action.tool if isinstance(edit.action, Action) else ""
        fields = ReplyFields(edit.thought, tool, get_action_input(edit.action))
        if call.turn is not None and call.turn.calls:
            turn = replace_call(call.turn, step.action, fields)
            return [*calls, replace(call, texts=(turn.content,), turn=turn)]
        text = replace_reply_fields("".join(call.texts[:1]), fields, (step.action.tool,))
        return [*calls, replace(call, texts=(text,), turn=call.turn and replace(call.turn, content=text))]
    return calls if edit.observation is None else [*calls, call]


def get_action_input(action: Action | str) -> str:
    return action if isinstance(action, str) else action.input


def format_recorded_step(steps: Sequence[RecordedStep], place: int) -> str:
    if place > len(steps):
        return ""
    step = steps[place - 1]
    came = step.observation
    result = show_observation(came) if not came.records or came.error else format_count(len(came.records), "record")
    if len(came.records) == 1:
        result = came.records[0].text if came.records[0].source == BY_HAND else "1 record"
    return f"{step.action.tool}: {step.action.input}\n-> {result}"


async def rerun_with_edit(
    entries: Sequence[TraceEntry], edit: Edit, run: Run, technique: Technique | None = None
) -> Rerun:
    """Continue a recorded run after a change.

    ``technique``: needed if the trace does not name it. The environment must be tools on data, because recorded actions
    are not executed again and so no action may change a state.

    Raises:
        SetupError: the trace cannot be gone on from, the edit does not fit it, or a tool it needs is not there.
    """
    past = read_recorded_run(entries)
    if technique is None:
        if not past.technique:
            raise SetupError("The trace does not name its technique.")
        name, settings = check_recorded_settings(past.technique, past.settings)
        technique = from_settings(name, **settings)
    if isinstance(technique, ReasoningDAG):
        return await rerun_graph(past, edit, technique, run)
    # Replies are replayed in their order, which says nothing where calls ran at the same time.
    if past.nested or getattr(technique, "at_once", 1) > 1:
        raise SetupError(
            f"A run of {past.technique or technique} cannot be gone on from: its steps are not in one line: several "
            "things were done at once."
        )
    return await rerun_steps(past, edit, technique, run)


def resume_interrupted_run(run: Run, entries: Sequence[TraceEntry]) -> Run:
    """Return the run with the replies and observations of an interrupted run to reuse."""
    llm = ReplayingLLM(run.llm, select_reusable_calls(entries), run.budget.estimates, is_interrupted=True)
    past = read_recorded_run(entries)
    return run.using(llm=llm, env=ReplayingEnvironment(run.env, past, select_reusable_steps(entries)))


def select_reusable_calls(entries: Sequence[TraceEntry]) -> list[LLMCall]:
    """Select the LLM calls to reuse.

    Unreadable replies at the end are dropped, because they would end the run again.
    """
    calls: list[tuple[LLMCall, bool]] = []
    for entry in entries:
        if isinstance(entry.event, LLMCall):
            calls.append((entry.event, True))
        elif isinstance(entry.event, UnreadableReply) and calls:
            calls[-1] = calls[-1][0], False
    while calls and not calls[-1][1]:
        calls.pop()
    return [call for call, _ in calls]


def select_reusable_steps(entries: Sequence[TraceEntry]) -> list[RecordedStep]:
    """Select the recorded steps to reuse. Failed ones at the end are dropped, because they may have ended the run."""
    events = [entry.event for entry in entries if isinstance(entry.event, LLMCall | ActionResult)]
    failed = []
    while events and isinstance(event := events.pop(), ActionResult):
        if event.observation.error:
            failed.append(id(event.observation))
    return [step for step in read_recorded_run(entries).steps if id(step.observation) not in failed]
