"""Going on from a run whose steps follow from each other: what comes before the changed step is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decisor.errors import SetupError
from decisor.replies.labelled import LABEL, NAMES
from decisor.run import Run
from decisor.techniques.replay.edits import Change, Edit, Rerun
from decisor.techniques.replay.playback import ReplayingEnvironment, ReplayingLM
from decisor.techniques.replay.recorded_run import RecordedRun, RecordedStep, Reply, read_recorded_run
from decisor.techniques.shared.decision import THINK
from decisor.techniques.shared.part_lms import with_lms
from decisor.techniques.shared.render import show_observation
from decisor.types import Action, Observation, Record, Technique

BY_HAND = "set by hand"


async def rerun_steps(past: RecordedRun, edits: Sequence[Edit], technique: Technique, run: Run) -> Rerun:
    if past.question is None or past.decision is None:
        raise SetupError("The trace does not hold a whole run: it has no question or no decision.")
    edit, number = the_edit(past, edits)
    step = past.steps[number - 1]
    done = [one for one in past.steps[: number - 1] if one.action.tool != THINK or THINK in run.env.tools()]
    if edit.observation is not None:
        action = as_action(edit.action, step.action)
        done.append(RecordedStep(action, as_observation(edit.observation, len(done) + 1), step.reply))
    replies = replies_before(past, step, edit)
    thought = edit.thought if edit.action is None else ""
    env = ReplayingEnvironment(run.env, past, done)
    again = run.using(lm=ReplayingLM(run.lm, replies, thought), env=env)
    if (judge := getattr(technique, "judge", None)) is not None:
        technique = with_lms(technique, {"judge": ReplayingLM(judge, replies)})
    before = len(run.trace.entries)
    decision = await technique(past.question, again)
    after = read_recorded_run(run.trace.entries[before:])
    rows = []
    for place in range(1, max(len(past.steps), len(after.steps)) + 1):
        old, new = step_text(past.steps, place), step_text(after.steps, place)
        state = "reused" if place < number else "edited" if place == number else "again"
        rows.append(Change(str(place), old, new, state))
    return Rerun(past.decision, decision, tuple(rows), len(done) - len(env.left or ()))


def the_edit(past: RecordedRun, edits: Sequence[Edit]) -> tuple[Edit, int]:
    """The one edit and the number of its step, from 1. Raises SetupError where it does not fit the run."""
    if len(edits) != 1:
        raise SetupError("Steps follow from each other: change one of them.")
    edit = edits[0]
    number = int(edit.at) if edit.at.isdecimal() else 0
    if not 1 <= number <= len(past.steps):
        there = "is 1" if len(past.steps) == 1 else f"are {len(past.steps)}"
        raise SetupError(f"There is no step {edit.at}; there {there}.")
    if edit.answer is not None or edit.ask is not None or edit.context:
        raise SetupError("A step takes a thought, an action or an observation.")
    if past.steps[number - 1].reply < 0 and (edit.action is not None or edit.thought):
        raise SetupError(f"No LM asked for step {number}: it takes an observation.")
    return edit, number


def replies_before(past: RecordedRun, step: RecordedStep, edit: Edit) -> list[Reply]:
    """What the LM wrote before the step; also the reply that asked for it, where its action or observation is set."""
    if step.reply < 0:
        return []
    replies = list(past.replies[: step.reply])
    reply = past.replies[step.reply]
    if edit.action is not None:
        text = with_field(reply.text, "input", as_input(edit.action))
        if isinstance(edit.action, Action):
            text = with_field(text, "action", edit.action.tool)
        if edit.thought:
            text = with_field(text, "thought", edit.thought)
        replies.append(replace(reply, text=text, finish="stop"))
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
    result = show_observation(came) if not came.records or came.error else f"{len(came.records)} records"
    if len(came.records) == 1:
        result = came.records[0].text if came.records[0].source == BY_HAND else "1 record"
    return f"{step.action.tool}: {step.action.input}\n-> {result}"


def with_field(reply: str, name: str, value: str) -> str:
    """A labelled reply with another value after one label; the label is added where it is missing.

    >>> with_field("Thought: a\\nAction: sql\\nAction input: select 1", "input", "select 2")
    'Thought: a\\nAction: sql\\nAction input: select 2'
    """
    labels = list(LABEL.finditer(reply))
    for place, label in enumerate(labels):
        if NAMES[label["name"].casefold().replace("_", " ")] == name:
            end = labels[place + 1].start() if place + 1 < len(labels) else len(reply)
            return f"{reply[: label.end()]} {value}" + ("\n" + reply[end:] if end < len(reply) else "")
    if name == "thought":
        return f"Thought: {value}\n{reply}"
    raise SetupError(
        "The reply of this step has no labels (Action, Action input), so it cannot be changed by parts. "
        "Set its observation instead."
    )
