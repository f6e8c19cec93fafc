"""Going on from a run of a reasoning DAG: the changed node, and what rests on it, are answered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from decisor.aio import in_order
from decisor.errors import SetupError
from decisor.replies.attribution import normal
from decisor.replies.plan_graph import Part, PlanGraph, sort_by_depth
from decisor.run import Run
from decisor.techniques.plan_dag.node_answer import note, show_graph
from decisor.techniques.plan_dag.node_input import sources_of
from decisor.techniques.plan_dag.result import reason_of
from decisor.techniques.reasoning_dag import ReasoningDAG
from decisor.techniques.replay.edits import Edit, Rerun, StepChange
from decisor.techniques.replay.playback import ReplayingEnvironment
from decisor.techniques.replay.recorded_run import RecordedRun
from decisor.techniques.shared.decision import tell
from decisor.techniques.shared.forms import forms_of
from decisor.trace.graph_events import GraphPlan, NodeAnswer, NodeSpan


async def rerun_graph(past: RecordedRun, edits: Sequence[Edit], technique: ReasoningDAG, run: Run) -> Rerun:
    if past.plan is None or past.decision is None or past.question is None:
        raise SetupError("The trace holds no plan.")
    edit_of = by_node(edits, past.plan)
    plan = edited_plan(past.plan, edit_of)
    parts = {part.id: part for part in plan.parts}
    question, old = past.question, past.answers
    state_of: dict[str, str] = {}
    env = ReplayingEnvironment(run.env, past)
    later = run.using(env=env)
    later.trace.add(GraphPlan(show_graph(plan), plan), later.span_id)

    async def act(id: str, done: Mapping[str, NodeAnswer]) -> NodeAnswer:
        part, edit = parts[id], edit_of.get(id)
        changed = edit is not None or not all(same(done[parent], old.get(parent)) for parent in part.parents)
        state_of[id] = "edited" if edit else "again" if changed or id not in old else "reused"
        if edit and edit.answer is not None:
            query = old[id].question if id in old else part.query
            return keep(part, NodeAnswer(id, query, edit.answer, attribution="manual"), later, reused=False)
        if state_of[id] == "reused":
            return keep(part, old[id], later)
        if not any(done[parent].missing for parent in part.parents):
            for source in sources_of(part, forms_of(env)):
                env.need(source)
        return await technique.node(part, done, question, later, edit.context if edit else "")

    needs = {part.id: part.parents for part in plan.parts}
    answers = await in_order(act, needs, technique.at_once, technique.schedule == "levels")
    if all(same(answer, old.get(id)) for id, answer in answers.items()):
        decision = tell(past.decision, later)
    else:
        decision = await technique.aggregate(question, plan, list(answers.values()), later)
    rows = [
        StepChange(id, reason_of(old[id]) if id in old else "", reason_of(answers[id]), state_of[id]) for id in answers
    ]
    return Rerun(past.decision, decision, tuple(rows))


def keep(part: Part, answer: NodeAnswer, run: Run, reused: bool = True) -> NodeAnswer:
    """An answer that is taken as it is, in a span like any other. ``reused``: from the run before."""
    with run.span(NodeSpan(part.id, part.query, part.parents, part.source)) as sub:
        return note(answer, sub, reused)


def same(one: NodeAnswer, other: NodeAnswer | None) -> bool:
    return other is not None and one.status == other.status and normal(one.answer) == normal(other.answer)


def by_node(edits: Sequence[Edit], plan: PlanGraph) -> dict[str, Edit]:
    """Edits by the id of their node."""
    ids = {part.id.upper().lstrip("Q"): part.id for part in plan.parts}
    edits_by_id: dict[str, Edit] = {}
    for edit in edits:
        if (id := ids.get(edit.at.strip().upper().lstrip("Q"))) is None:
            raise SetupError(f"There is no node {edit.at}; there is {', '.join(ids.values())}.")
        if edit.thought or edit.action is not None or edit.observation is not None or edit.plan:
            raise SetupError("A node of a graph takes an answer, a question (ask) or a context.")
        edits_by_id[id] = edit
    return edits_by_id


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
    return replace(plan, parts=sort_by_depth(parts))


def above(id: str, parts: Mapping[str, Part]) -> set[str]:
    """A node and all that it rests on."""
    ids: set[str] = set()
    waiting = [id]
    while waiting:
        if (one := waiting.pop()) not in ids:
            ids.add(one)
            waiting += parts[one].parents
    return ids
