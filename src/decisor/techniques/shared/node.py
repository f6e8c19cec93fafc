"""A node of a search tree, and how a judge, or the model that goes on from it, reads what led there."""

from __future__ import annotations

from dataclasses import dataclass, field

from decisor.techniques.shared.render import show_observation
from decisor.trace.search_events import Ended
from decisor.types import Environment, Observation, Step

SHOWN_TO_JUDGE = 1_024
UNREADABLE = "(unreadable)"
"""Stands for the action of a reply that could not be used. No model is shown it: what is shown may be written again."""


@dataclass(slots=True, eq=False)
class Node:
    """``env``: the state after ``step``. ``text``: the step as the model reads it. ``elo`` and ``matches`` (how often
    it was updated) belong to RadAgent, ``value`` and ``visits`` to ToT and LATS. ``rated``: a sequence through it
    ended. ``closed``: not walked into."""

    id: int
    parent: Node | None
    depth: int
    env: Environment
    step: Step | None = None
    text: str = ""
    ended: Ended = ""
    answer: str = ""
    because: str = ""
    children: list[Node] = field(default_factory=list)
    elo: float = 0.0
    matches: int = 0
    rated: bool = False
    closed: bool = False
    value: float = 0.0
    visits: int = 0

    def path(self) -> list[Node]:
        """From below the root to here."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None and node.step is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


def tried_line(node: Node) -> str:
    """What was done at a node, what came back, and how the sequences through it ended."""
    assert node.step is not None
    action = node.step.action
    observation = show_observation(node.step.observation)
    came_back = f" -> {observation[:300]}" if observation and not node.ended else ""
    ends = "; ".join(ENDED[leaf.ended].format(answer=leaf.answer[:100]) for leaf in ended_below(node))
    return f"{action.tool} {action.input[:300]}{came_back}" + (f"\n   How it ended: {ends}" if ends else "")


def ended_below(node: Node) -> list[Node]:
    """The sequences through a node that ended, itself where it did."""
    return [node] if node.ended else [leaf for child in node.children for leaf in ended_below(child)]


ENDED = {"answered": "with the answer {answer}", "gave_up": "given up", "steps": "no steps were left"}


def show_sequence(node: Node) -> str:
    """A sequence as a judge reads it: numbered steps, long observations cut, and how it ended."""
    lines: list[str] = []
    for number, at in enumerate(node.path(), 1):
        step = at.step
        assert step is not None
        if step.thought:
            lines.append(f"{number}. Thought: {step.thought[:SHOWN_TO_JUDGE]}")
        observation = show_observation(step.observation)[:SHOWN_TO_JUDGE] if step.observation != Observation() else ""
        if step.action.tool != UNREADABLE:
            lines.append(f"{number}. Action: {step.action.tool} {step.action.input[:SHOWN_TO_JUDGE]}")
        if observation:
            lines.append(f"{number}. Observation: {observation}")
    return "\n".join([*lines, ENDS[node.ended].format(answer=node.answer, because=node.because)])


ENDS = {
    "": "(It goes on.)",
    "answered": "It ends with the answer: {answer} {because}",
    "gave_up": "It ends without an answer: given up.",
    "steps": "It ends without an answer: no steps were left.",
}
