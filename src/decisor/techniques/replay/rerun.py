"""Debug and backtrack: change one thing in a recorded run and go on from there. Plan-RAG, section 3.3.

Of a reasoning DAG, the changed node and what rests on it are answered again, then the answers are put together again. A
node whose parents' answers came out the same (normalised) keeps its own; when all did, the decision stands. Of loops
that go step by step, and of searches, the replies and observations before the changed step are replayed, and from there
on it is a run like any other. Nothing that is reused costs a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.aio import in_order
from decisor.errors import SetupError
from decisor.replies.attribution import normal
from decisor.replies.fields import LABEL, NAMES
from decisor.replies.plans import Part, PlanGraph, ordered
from decisor.run import Run
from decisor.techniques import technique
from decisor.techniques.plan_dag.node import note, show_graph
from decisor.techniques.plan_dag.result import reason_of
from decisor.techniques.reasoning_dag import ReasoningDAG, source_of
from decisor.techniques.replay.playback import Later, Replaying
from decisor.techniques.replay.recorded_run import Past, PastStep, how_of, read_past
from decisor.techniques.shared.decision import THINK, tell
from decisor.techniques.shared.part_lms import with_lms
from decisor.techniques.shared.render import show_observation
from decisor.trace.events import Entry
from decisor.trace.graph_events import GraphPlan, NodeAnswer, NodeSpan
from decisor.types import Action, Decision, Observation, Question, Record, Technique


@dataclass(frozen=True, slots=True)
class Edit:
    """``at``: a node of a DAG (Q2.1 or 2.1) or the number of a step. Nothing else given: it is only done again.

    Of a node: ``answer`` sets its answer, ``ask`` its question (with tags), ``context`` is told beside it. Of a step:
    ``thought`` is what the model goes on from, ``action`` replaces what it did, ``observation`` what came back.
    """

    at: str
    answer: str | None = None
    ask: str | None = None
    context: str = ""
    thought: str = ""
    action: Action | str | None = None
    observation: Observation | str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A node or step in both runs, in words. ``how``: reused, edited, or again."""

    at: str
    before: str
    after: str
    how: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """Both runs, side by side. ``replayed``: actions that the run's usage counts and that were not done again."""

    before: Decision
    after: Decision
    changes: tuple[Change, ...]
    replayed: int = 0


async def rerun(
    events: Sequence[Entry],
    edits: Sequence[Edit],
    run: Run,
    how: Technique | None = None,
    question: Question | None = None,
) -> Rerun:
    """Go on from a recorded run after ``edits``. ``how`` and ``question`` where the trace does not name them. The run's
    environment is to be tools on data: an action of the past is not done again, so a state that it left is not there.

    Raises:
        SetupError: the trace cannot be gone on from, an edit does not fit it, or a tool it needs is not there.
    """
    past = read_past(events)
    asked = question or past.question
    if past.decision is None or asked is None:
        raise SetupError("The trace does not hold a whole run: it has no question or no decision.")
    if how is None:
        if not past.technique:
            raise SetupError("The trace does not name its technique.")
        name, settings = how_of(past)
        how = technique(name, **settings)
    past = replace(past, question=asked)
    if isinstance(how, ReasoningDAG):
        return await rerun_graph(past, edits, how, run)
    if past.nested or getattr(how, "at_once", 1) > 1:
        raise SetupError(
            f"A run of {past.technique or how} cannot be gone on from: its steps are not in one line: several "
            "things were done at once."
        )
    return await rerun_steps(past, edits, how, run)


async def rerun_graph(past: Past, edits: Sequence[Edit], how: ReasoningDAG, run: Run) -> Rerun:
    if past.plan is None or past.decision is None or past.question is None:
        raise SetupError("The trace holds no plan.")
    named = by_node(edits, past.plan)
    plan = edited_plan(past.plan, named)
    parts = {part.id: part for part in plan.parts}
    question, old = past.question, past.answers
    went: dict[str, str] = {}
    env = Later(run.env, past)
    later = run.using(env=env)
    later.trace.add(GraphPlan(show_graph(plan), plan), later.span_id)

    async def act(id: str, done: Mapping[str, NodeAnswer]) -> NodeAnswer:
        part, edit = parts[id], named.get(id)
        changed = edit is not None or not all(same(done[parent], old.get(parent)) for parent in part.parents)
        went[id] = "edited" if edit else "again" if changed or id not in old else "reused"
        if edit and edit.answer is not None:
            asked = old[id].question if id in old else part.query
            return kept(part, NodeAnswer(id, asked, edit.answer, attribution="given"), later, reused=False)
        if went[id] == "reused":
            return kept(part, old[id], later)
        if not any(done[parent].missing for parent in part.parents):
            env.need(source_of(part, env.tools()))
        return await how.node(part, done, question, later, edit.context if edit else "")

    needs = {part.id: part.parents for part in plan.parts}
    answers = await in_order(act, needs, how.at_once, how.schedule == "levels")
    if all(same(answer, old.get(id)) for id, answer in answers.items()):
        decision = tell(past.decision, later)
    else:
        decision = await how.aggregate(question, plan, list(answers.values()), later)
    rows = [Change(id, reason_of(old[id]) if id in old else "", reason_of(answers[id]), went[id]) for id in answers]
    return Rerun(past.decision, decision, tuple(rows))


def kept(part: Part, answer: NodeAnswer, run: Run, reused: bool = True) -> NodeAnswer:
    """An answer that is taken as it is, in a span like any other. ``reused``: from the run before."""
    with run.span(NodeSpan(part.id, part.query, part.parents, part.source)) as sub:
        return note(answer, sub, reused)


def same(one: NodeAnswer, other: NodeAnswer | None) -> bool:
    return other is not None and one.status == other.status and normal(one.answer) == normal(other.answer)


def by_node(edits: Sequence[Edit], plan: PlanGraph) -> dict[str, Edit]:
    """Edits by the id of their node."""
    known = {part.id.upper().lstrip("Q"): part.id for part in plan.parts}
    found: dict[str, Edit] = {}
    for edit in edits:
        if (id := known.get(edit.at.strip().upper().lstrip("Q"))) is None:
            raise SetupError(f"There is no node {edit.at}; there is {', '.join(known.values())}.")
        if edit.thought or edit.action is not None or edit.observation is not None:
            raise SetupError("A node of a graph takes an answer, a question (ask) or a context.")
        found[id] = edit
    return found


def edited_plan(plan: PlanGraph, edits: Mapping[str, Edit]) -> PlanGraph:
    """The plan with new questions; their tags say what they need now, parents without a tag stay."""
    parts = {part.id: part for part in plan.parts}
    for id, edit in edits.items():
        if edit.ask is not None:
            part = Part(id, edit.ask.strip(), source=parts[id].source)
            if not part.query:
                raise SetupError(f"The new question of {id} is empty.")
            if wrong := [tag for tag in part.tags if tag not in parts or id in above(tag, parts)]:
                raise SetupError(f"{id} cannot need {wrong[0]}: it is not there, or needs {id} itself.")
            before = [parent for parent in parts[id].parents if parent not in parts[id].tags]
            parts[id] = replace(part, parents=tuple(dict.fromkeys([*before, *part.tags])))
    return replace(plan, parts=ordered(parts))


def above(id: str, parts: Mapping[str, Part]) -> set[str]:
    """A node and all that it rests on."""
    found: set[str] = set()
    wanted = [id]
    while wanted:
        if (one := wanted.pop()) not in found:
            found.add(one)
            wanted += parts[one].parents
    return found


async def rerun_steps(past: Past, edits: Sequence[Edit], how: Technique, run: Run) -> Rerun:
    if len(edits) != 1:
        raise SetupError("Steps follow from each other: change one of them.")
    edit = edits[0]
    number = int(edit.at) if edit.at.isdecimal() else 0
    if not 1 <= number <= len(past.steps) or past.question is None or past.decision is None:
        there = "is 1" if len(past.steps) == 1 else f"are {len(past.steps)}"
        raise SetupError(f"There is no step {edit.at}; there {there}.")
    if edit.answer is not None or edit.ask is not None or edit.context:
        raise SetupError("A step takes a thought, an action or an observation.")
    step = past.steps[number - 1]
    if step.reply < 0 and (edit.action is not None or edit.thought):
        raise SetupError(f"No LM asked for step {number}: it takes an observation.")
    text = past.replies[step.reply].text if step.reply >= 0 else ""
    written = with_field(text, "input", as_input(edit.action)) if edit.action is not None else text
    if isinstance(edit.action, Action):
        written = with_field(written, "action", edit.action.tool)
    if edit.thought and edit.action is not None:
        written = with_field(written, "thought", edit.thought)
    replies = list(past.replies[: max(step.reply, 0)])
    if step.reply >= 0 and (edit.action is not None or edit.observation is not None):
        replies.append(replace(past.replies[step.reply], text=written, finish="stop"))
    thought = edit.thought if edit.action is None else ""
    seen = [one for one in past.steps[: number - 1] if one.action.tool != THINK or THINK in run.env.tools()]
    if edit.observation is not None:
        action = as_action(edit.action, step.action)
        seen.append(PastStep(action, as_observation(edit.observation, len(seen) + 1), step.reply))
    env = Later(run.env, past, seen)
    again = run.using(lm=Replaying(run.lm, replies, thought), env=env)
    if (judge := getattr(how, "judge", None)) is not None:
        how = with_lms(how, {"judge": Replaying(judge, replies)})
    before = len(run.trace.entries)
    decision = await how(past.question, again)
    after = read_past(run.trace.entries[before:])
    rows = []
    for place in range(1, max(len(past.steps), len(after.steps)) + 1):
        old, new = step_text(past.steps, place), step_text(after.steps, place)
        went = "reused" if place < number else "edited" if place == number else "again"
        rows.append(Change(str(place), old, new, went))
    return Rerun(past.decision, decision, tuple(rows), len(seen) - len(env.left or ()))


def as_input(action: Action | str) -> str:
    return action if isinstance(action, str) else action.input


def as_action(action: Action | str | None, old: Action) -> Action:
    return old if action is None else action if isinstance(action, Action) else Action(old.tool, action)


def as_observation(given: Observation | str, number: int) -> Observation:
    """A text is one record, so that it can be cited."""
    if isinstance(given, Observation):
        return given
    return Observation((Record(f"o{number}.r1", text=given, source=BY_HAND),))


def step_text(steps: Sequence[PastStep], place: int) -> str:
    if place > len(steps):
        return ""
    step = steps[place - 1]
    came = step.observation
    result = show_observation(came) if not came.records or came.error else f"{len(came.records)} records"
    if len(came.records) == 1:
        result = came.records[0].text if came.records[0].source == BY_HAND else "1 record"
    return f"{step.action.tool}: {step.action.input}\n-> {result}"


def with_field(reply: str, name: str, value: str) -> str:
    """A labelled reply with another value after one label; the label is added where it is missing.

    >>> with_field("Thought: a\\nAction: sql\\nAction input: select 1", "input", "select 2")
    'Thought: a\\nAction: sql\\nAction input: select 2'
    """
    found = list(LABEL.finditer(reply))
    for place, label in enumerate(found):
        if NAMES[label["name"].casefold().replace("_", " ")] == name:
            end = found[place + 1].start() if place + 1 < len(found) else len(reply)
            return f"{reply[: label.end()]} {value}" + ("\n" + reply[end:] if end < len(reply) else "")
    if name == "thought":
        return f"Thought: {value}\n{reply}"
    raise SetupError(
        "The reply of this step has no labels (Action, Action input), so it cannot be changed by parts. "
        "Set its observation instead."
    )


BY_HAND = "set by hand"
