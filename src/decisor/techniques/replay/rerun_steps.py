"""Going on from a run whose steps follow from each other: what comes before the changed step is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import SetupError
from decisor.plurals import counted
from decisor.run import Run, Technique
from decisor.techniques.replay.edits import Edit, Rerun, StepChange
from decisor.techniques.replay.playback import ReplayingEnvironment, ReplayingLM
from decisor.techniques.replay.recorded_run import RecordedRun, RecordedStep, Reply, read_recorded_run
from decisor.techniques.replay.reply_fields import Fields, with_fields
from decisor.techniques.shared.decision import THINK
from decisor.techniques.shared.part_lms import with_lms
from decisor.techniques.shared.render import show_observation
from decisor.types import Action, Observation, Record

BY_HAND = "set by hand"


async def rerun_steps(past: RecordedRun, edits: Sequence[Edit], technique: Technique, run: Run) -> Rerun:
    if past.question is None or past.decision is None:
        raise SetupError("The trace does not hold a whole run: it has no question or no decision.")
    edit, number = the_edit(past, edits, technique)
    done = [one for one in past.steps[: number - 1] if one.action.tool != THINK or THINK in run.env.tools()]
    if edit.observation is not None:
        step = past.steps[number - 1]
        action = as_action(edit.action, step.action)
        done.append(RecordedStep(action, as_observation(edit.observation, len(done) + 1), step.reply))
    replies = replies_before(past, number, edit)
    env = ReplayingEnvironment(run.env, past, done)
    again = run.using(lm=ReplayingLM(run.lm, replies, begins_of(edit)), env=env)
    if (judge := getattr(technique, "judge", None)) is not None:
        technique = with_lms(technique, {"judge": ReplayingLM(judge, replies)})
    before = len(run.trace.entries)
    decision = await technique(past.question, again)
    after = read_recorded_run(run.trace.entries[before:])
    rows = [plan_change(past, after, int(edit.at))] if edit.plan else []
    for place in range(1, max(len(past.steps), len(after.steps)) + 1):
        old, new = step_text(past.steps, place), step_text(after.steps, place)
        is_edited = place == number and not edit.plan
        state = "reused" if place < number else "edited" if is_edited else "again"
        rows.append(StepChange(str(place), old, new, state))
    return Rerun(past.decision, decision, tuple(rows), len(done) - len(env.left or ()))


def begins_of(edit: Edit) -> Fields:
    """What the first new reply is to say."""
    if edit.plan:
        return Fields(plan=edit.plan, why=BY_HAND if int(edit.at) else "")
    return Fields(edit.thought if edit.action is None else "")


def plan_change(past: RecordedRun, after: RecordedRun, at: int) -> StepChange:
    old, new = ("\n".join(one.plan_after(at)) for one in (past, after))
    return StepChange(f"plan after {at}" if at else "plan", old, new, "edited")


def the_edit(past: RecordedRun, edits: Sequence[Edit], technique: Technique) -> tuple[Edit, int]:
    """The one edit and the number of the first step that is done again, from 1. Raises SetupError where it does not fit
    the run."""
    if len(edits) != 1:
        raise SetupError("Steps follow from each other: change one of them.")
    edit = edits[0]
    if edit.plan:
        return edit, after_plan(past, edit, technique)
    number = int(edit.at) if edit.at.isdecimal() else 0
    if not 1 <= number <= len(past.steps):
        there = "is 1" if len(past.steps) == 1 else f"are {len(past.steps)}"
        raise SetupError(f"There is no step {edit.at}; there {there}.")
    if edit.answer is not None or edit.ask is not None or edit.context:
        raise SetupError("A step takes a thought, an action or an observation.")
    if past.steps[number - 1].reply < 0 and (edit.action is not None or edit.thought):
        raise SetupError(f"No LM asked for step {number}: it takes an observation.")
    return edit, number


def after_plan(past: RecordedRun, edit: Edit, technique: Technique) -> int:
    """The number of the first step by the new plan. Raises SetupError where there is no such plan."""
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


def replies_before(past: RecordedRun, number: int, edit: Edit) -> list[Reply]:
    """What the LM wrote before the step; also the reply that asked for it, where its action or observation is set."""
    if edit.plan:
        return list(past.replies[: past.steps[number - 2].reply + 1]) if number > 1 else []
    step = past.steps[number - 1]
    if step.reply < 0:
        return []
    replies = list(past.replies[: step.reply])
    reply = past.replies[step.reply]
    if edit.action is not None:
        tool = edit.action.tool if isinstance(edit.action, Action) else ""
        fields = Fields(edit.thought, tool, as_input(edit.action))
        replies.append(replace(reply, text=with_fields(reply.text, fields, (step.action.tool,)), finish="stop"))
    elif edit.observation is not None:
        replies.append(replace(reply, finish="stop"))
    return replies


def as_input(action: Action | str) -> str:
    return action if isinstance(action, str) else action.input


def as_action(action: Action | str | None, old: Action) -> Action:
    return old if action is None else action if isinstance(action, Action) else Action(old.tool, action)


def as_observation(observation: Observation | str, number: int) -> Observation:
    """A text is one record, so that it can be cited."""
    if isinstance(observation, Observation):
        return observation
    return Observation((Record(f"o{number}.r1", text=observation, source=BY_HAND),))


def step_text(steps: Sequence[RecordedStep], place: int) -> str:
    if place > len(steps):
        return ""
    step = steps[place - 1]
    came = step.observation
    result = show_observation(came) if not came.records or came.error else counted(len(came.records), "record")
    if len(came.records) == 1:
        result = came.records[0].text if came.records[0].source == BY_HAND else "1 record"
    return f"{step.action.tool}: {step.action.input}\n-> {result}"
